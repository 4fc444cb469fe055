"""Writing files: all of it or nothing, on disk before success is reported, and nothing but what the path names."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

Identity = tuple[int, int]
"""The device and the number of a file: whose it is, whatever stands under its name by now."""

_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # answers of file systems without hard links
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EROFS}  # of what has nothing to bring to a disk


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """`write_bytes` for a text, in UTF-8."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file, all of it or nothing: beside the target, then moved over it.

    A link is followed. A file that is replaced keeps its permissions, a new one gets those of the umask. A device, a pipe and
    this process's own output are never replaced but written where they are, where "all or nothing" cannot be had.
    """
    with _named(path):
        found = _checked(path)
        stream = None if found is None else _own_stream(found)
        if stream is not None:
            _write_all(stream, content)
        elif found is None or stat.S_ISREG(found.st_mode):
            _replace(Path(os.path.realpath(path)), content, found)
        else:
            with _opened(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0)) as device:
                _write_all(device, content)
                _sync(device)


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse, before the work, a path at which `write_bytes` could write nothing after it."""
    with _named(path):
        _checked(path)


def create(path: str | os.PathLike[str], content: bytes, made: dict[Path, Identity], private: bool = False) -> None:
    """Make a new file, all of it or nothing, and note in `made` which file that is; FileExistsError if anything is there.

    Of several processes that do this at once, one succeeds. `private` files are for their owner's eyes only.
    """
    target, mode = Path(path), 0o600 if private else 0o666
    with _named(path):
        part = _part(target)
        try:
            made[part] = made[target] = _write_new(
                part, content, mode
            )  # noted before the name is there, lest it get lost
            try:
                os.link(part, target)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                made[target] = _write_new(target, content, mode)
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        _sync_folder(target.parent)


def is_still(path: Path, identity: Identity | None) -> bool:
    """Whether the file under this name is the one of that identity."""
    with contextlib.suppress(OSError):
        return _identity(path.lstat()) == identity
    return False


def parts_of(path: Path) -> list[Path]:
    """What processes that were killed left behind while they wrote this file."""
    stem = _part_stem(path)
    with contextlib.suppress(OSError):
        return sorted(p for p in path.parent.iterdir() if p.name.startswith(stem) and p.name.endswith(".part"))
    return []


def _checked(path: str | os.PathLike[str]) -> os.stat_result | None:
    """What is at the path, through links; None if there is nothing yet."""
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        found = None
    folder = Path(os.path.realpath(path)).parent
    if found is None and not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    is_replaced = found is None or (stat.S_ISREG(found.st_mode) and _own_stream(found) is None)
    needed = [Path(path)] * (found is not None) + [folder] * is_replaced
    if not all(os.access(one, os.W_OK) for one in needed):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return found


def _replace(target: Path, content: bytes, found: os.stat_result | None) -> None:
    part = _part(target)
    try:
        _write_new(part, content, 0o666 if found is None else 0o600)
        if found is not None:
            with contextlib.suppress(OSError, AttributeError):  # only the superuser may give files away
                os.chown(part, found.st_uid, found.st_gid)
            part.chmod(stat.S_IMODE(found.st_mode))
        part.replace(target)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _write_new(path: Path, content: bytes, mode: int) -> Identity:
    """Write a file that was not there; if that fails it is gone again."""
    with _opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode) as file:
        try:
            _write_all(file, content)
            _sync(file)
            return _identity(os.fstat(file))
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()
            raise


def _write_all(file: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]


def _own_stream(found: os.stat_result) -> int | None:
    """Standard output or error if that is where the path leads, as /dev/stdout does: to replace it would cut it off."""
    for stream in () if stat.S_ISCHR(found.st_mode) else (1, 2):  # a device is as well opened anew
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(stream), found):
                return stream
    return None


def _sync(file: int) -> None:
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _sync_folder(folder: Path) -> None:
    """Bring the names of a folder to the disk, where folders can be opened."""
    if os.name == "posix":
        try:
            with _opened(folder, os.O_RDONLY) as opened:
                _sync(opened)
        except PermissionError:
            pass  # a folder in which one may write but not look: the file is there, so "denied" would be wrong


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> Iterator[int]:
    file = os.open(path, flags, mode)
    try:
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors that name the file which was asked for."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def _part_stem(target: Path) -> str:
    return f".{target.name[:40]}."  # a name may be as long as the file system allows, and the part's is longer


def _part(target: Path) -> Path:
    return target.with_name(f"{_part_stem(target)}{secrets.token_hex(4)}.part")
