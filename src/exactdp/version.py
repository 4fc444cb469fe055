"""Which code this is: the version, with a digest of the source, so that two different trees never share one.

This file stands alone, because the build reads the distribution's version from it as well (`tool.hatch.version` in
pyproject.toml). It needs neither git nor an installation, only the files that lie beside it, in a folder or in a zip.
An editable installation keeps the version of the day it was made in its metadata; `exactdp.__version__` is that of the
files as they are.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

BASE = "0.2.0.dev0"
"""What people count; a release is a commit in which it has no `.dev`."""

_SOURCE = (
    ".py",
    ".pyi",
    ".json",
    ".js",
    ".css",
    ".html",
    ".svg",
)  # not what editors and interpreters leave beside them


def source_digest(folder: Traversable | Path) -> str:
    """A digest of the names and contents of all source files in a folder, whatever ends their lines."""
    found = hashlib.sha256()
    for name, content in sorted(_read(folder, "")):
        text = content.replace(b"\r\n", b"\n")
        found.update(f"{name}\n{len(text)}\n".encode() + text)
    return found.hexdigest()


def _read(folder: Traversable | Path, above: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _read(entry, f"{above}{entry.name}/")
        elif entry.name.endswith(_SOURCE):
            yield above + entry.name, entry.read_bytes()


def _package() -> Traversable | Path:
    here = Path(__file__).parent
    if here.is_dir():
        return here
    from importlib.resources import files

    return files("exactdp")


def _state() -> list[tuple[str, int, int]]:
    """Name, size and time of every source file, as far as they are files: what a change of one changes."""
    found, folders = [], [str(Path(__file__).parent)]
    while folders:
        with suppress(NotADirectoryError, FileNotFoundError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.endswith(_SOURCE):
                    stat = entry.stat()
                    found.append((entry.path, stat.st_size, stat.st_mtime_ns))
    return sorted(found)


_state_at_first = _state()
__version__ = f"{BASE}+src{source_digest(_package())[:12]}"


def distribution_version() -> str:
    """The version of an sdist or wheel: this one, or without the digest where EXACTDP_RELEASE names the version to release.

    An index takes no version with a digest, and a number that is still counted as development is not released.
    """
    asked = os.environ.get("EXACTDP_RELEASE")
    if asked is None:
        return __version__
    if asked != BASE or "dev" in BASE:
        raise ValueError(
            f"EXACTDP_RELEASE must be the version in src/exactdp/version.py, without .dev. Found {asked}, and {BASE} there."
        )
    return BASE


def computed_with() -> dict[str, str]:
    """The versions that decide the numbers: those of this package and of the libraries that it computes with.

    Modules are loaded when they are first used. If files were changed since this one was loaded, what runs may be of both
    trees: the version then names both, so that it is nobody else's.
    """
    import flint
    import numpy
    import scipy

    return {
        "exactdp": __version__
        if _state() == _state_at_first
        else f"{__version__}.then{source_digest(_package())[:12]}",
        "python-flint": flint.__version__,
        "flint": flint.__FLINT_VERSION__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
    }


def other_versions(theirs: object) -> str:
    """What decided some numbers elsewhere, as far as it is not what decides them here, beside what is here; else nothing."""
    from exactdp.numbers import shown

    known = theirs if isinstance(theirs, dict) else {}
    return ", ".join(
        f"{name} {shown(known.get(name, 'unknown'))} (here {own})"
        for name, own in computed_with().items()
        if known.get(name) != own
    )
