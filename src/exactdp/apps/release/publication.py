"""Publishing a draw under a name, once: by one process, completely, and never a second time unnoticed.

Before it draws, a process claims the name with a file `noisy.unfinished`, which only one of several can make. Then come
the certificate, the statement and, last, the table, each of them complete when it appears; then the claim goes. So, wherever
a process is killed or a machine stops:

- nothing is there: nothing was drawn;
- the claim without the table: a run is at work or was stopped; the table was not published, the noise may have been drawn;
- the table: it is complete and was published, with the claim beside it or without.

Whatever is there, the next run refuses and says which of these it found. Nothing is removed but what this process made.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from exactdp.arithmetic_state import steady
from exactdp.errors import InvalidInputError
from exactdp.files import Identity, check_target, create, is_still, parts_of
from exactdp.numbers import shown

_CLAIM = """exactdp release has claimed {name} and has not finished.
If no such command is at work any more it was stopped: call it again, and it says what it finds here and what to do.
"""


class Publication:
    """The right to publish under a name, from before the draw until the table is there; used in a with statement."""

    def __init__(self, output: str | os.PathLike[str], *inputs: str | os.PathLike[str], shared: bool = False) -> None:
        self.paths = output_paths(output)
        self._inputs, self._private = inputs, not shared
        self._made: dict[Path, Identity] = {}

    def __enter__(self) -> Publication:
        check_outputs(self.paths[0], *self._inputs)
        claim = claim_path(self.paths[0])
        try:
            self._create(claim, _CLAIM.format(name=self.paths[0].name))
            _refuse_any([path for path in self.paths if os.path.lexists(path)])  # of a run that ended since
        except BaseException:
            self._withdraw()
            raise
        return self

    def publish(self, table: str, statement: str, certificate: str | None) -> None:
        """Write all files, the table last."""
        if certificate is not None:
            self._create(self.paths[1], certificate)
        self._create(self.paths[2], statement)
        self._create(self.paths[0], table)

    @property
    def published(self) -> list[Path]:
        """The files that this process made and that are there, the table first."""
        return [path for path in self.paths if is_still(path, self._made.get(path))]

    @property
    def is_published(self) -> bool:
        """Whether the table is there: the disk says so, however far this process thinks it has come."""
        return is_still(self.paths[0], self._made.get(self.paths[0]))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._withdraw()

    def _create(self, path: Path, text: str) -> None:
        try:
            create(path, text.encode(), self._made, self._private)
        except FileExistsError:
            _check_absent(self.paths)
            raise

    def _withdraw(self) -> None:
        """Remove what this process made, the claim last; if the table came to be there, its files stay."""
        kept = self.paths if self.is_published else ()
        for path, identity in reversed(self._made.items()):
            if path not in kept and is_still(path, identity):
                with suppress(OSError):
                    path.unlink()


@steady
def output_paths(output: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """The table, its certificate and its statement: noisy.csv, noisy.certificate.json, noisy.noise.json."""
    table = Path(output)
    if table.suffix.lower() != ".csv":
        raise InvalidInputError(f"The table with noise must be a .csv file. Found {shown(table.name) or 'a folder'}.")
    return table, table.with_suffix(".certificate.json"), table.with_suffix(".noise.json")


def claim_path(table: Path) -> Path:
    """The file that stands for a run which has begun: noisy.unfinished."""
    return table.with_suffix(".unfinished")


@steady
def check_outputs(output: str | os.PathLike[str], *inputs: str | os.PathLike[str]) -> None:
    """Refuse outputs that are there already, above all the inputs themselves, also through links."""
    paths = output_paths(output)
    for path in (*paths, claim_path(paths[0])):
        for source in inputs:
            if path.exists() and Path(source).exists() and path.samefile(source):
                raise InvalidInputError(
                    f"The output must be another file than the input. Found {shown(path)} for both."
                )
    _check_absent(paths)
    check_target(paths[0])


def _check_absent(paths: tuple[Path, Path, Path]) -> None:
    claim, table = claim_path(paths[0]), paths[0]
    there = [path for path in paths if os.path.lexists(path)]
    if os.path.lexists(claim):
        left = [*there, *(part for path in paths for part in parts_of(path)), claim]
        if table not in there:
            raise InvalidInputError(
                f"A run for this output is at work, or was stopped before its table was there. Found {claim.name}; if none "
                f"is at work, nothing was published: remove {', '.join(path.name for path in left)}, and call it again."
            )
        if _is_complete(table, paths[2]):
            raise InvalidInputError(
                f"The output is there already, completely: a second draw of the same counts would spend the budget again. "
                f"Found {table.name}, and {claim.name} of a run that is at its end or was stopped there; "
                "if none is at work, remove the latter."
            )
    _refuse_any(there)


def _refuse_any(there: Sequence[Path]) -> None:
    if there:
        raise InvalidInputError(
            f"The output must not be there yet: a second draw of the same counts would spend the budget again. "
            f"Found {shown(there[0])}; move it away, or name another."
        )


def _is_complete(table: Path, statement: Path) -> bool:
    """Whether a table is the one that the statement beside it speaks of."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        told = json.loads(statement.read_bytes())["sha256_of_the_noisy_table"]
        return bool(told == hashlib.sha256(table.read_bytes()).hexdigest())
    return False
