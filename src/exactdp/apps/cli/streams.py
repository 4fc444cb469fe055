"""The standard streams and the interrupt key: what goes wrong with them ends in a sentence or in silence, never in a traceback.

This module imports nothing that takes time, because it is there before everything else.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141


class OutputLostError(Exception):
    """Standard output cannot be written. It is no OSError: of a broken pipe click and rich make exit code 1."""

    def __init__(self, error: OSError) -> None:
        reason = "it is closed" if error.errno == errno.EBADF else error.strerror
        super().__init__(f"Standard output cannot be written: {reason}.")
        self.is_pipe = error.errno == errno.EPIPE  # whoever reads has seen enough, as in `exactdp ... | head`


class _StandardOutput(io.FileIO):
    """Descriptor 1, whose failures are told apart from those of files."""

    def write(self, content: ReadableBuffer, /) -> int:
        try:
            return super().write(content)
        except OSError as error:
            raise OutputLostError(error) from None


def prepare() -> None:
    """Standard streams for a process of its own: none of them missing, and failures of standard output with their own name."""
    if os.name != "posix" or sys.stdout is not sys.__stdout__:
        return
    _fill_gaps()
    given: TextIO | None = sys.stdout
    encoding, is_terminal = given.encoding if given else "utf-8", os.isatty(1)
    raw = _StandardOutput(1, "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding,
        # a file's name may be no text at all, and a locale may know few characters
        "backslashreplace" if given is None or given.errors == "strict" else given.errors,
        line_buffering=is_terminal,
    )
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(
            io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", line_buffering=True
        )


def _fill_gaps() -> None:
    """Occupy standard descriptors that are closed, or the next file to be opened would become one of them."""
    for number in (0, 1, 2):
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue
        # the lowest free one is taken, which is this one; output that is closed stays so, in that it cannot be written
        os.set_inheritable(os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY), True)


def say(sentence: str) -> None:
    """A sentence on standard error, for whoever can read it."""
    try:
        print(f"exactdp: {sentence}", file=sys.stderr, flush=True)
    except OSError:
        _silence(sys.stderr)


def narrate(text: str) -> None:
    """What a long command is doing, on standard error at once, whether or not that is a terminal."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _silence(sys.stderr)


def refuse(sentence: str) -> int:
    """The same, and the exit code that goes with it."""
    say(sentence)
    return BAD_INPUT


def lost(error: OutputLostError) -> int:
    """The exit code of a command whose output nobody gets."""
    _silence(sys.stdout)
    return BROKEN_PIPE if error.is_pipe else refuse(f"{error} Send it elsewhere.")


def flushed(code: int) -> int:
    """The exit code of a command that is about to end, once all that it printed is out."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OutputLostError as error:
        told = lost(error)
        code = code if code in (BAD_INPUT, INTERRUPTED) else told
    with contextlib.suppress(OSError):
        if sys.stderr is not None:
            sys.stderr.flush()
        return code
    _silence(sys.stderr)
    return code


@contextlib.contextmanager
def telling(done: str) -> Iterator[None]:
    """What is printed here tells of something that is `done` and stays so, whether or not anybody can read it."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except OutputLostError as error:
        _silence(sys.stdout)
        say(f"{done} {error}")
    except KeyboardInterrupt:
        say(done)


def _silence(stream: TextIO) -> None:
    """Let what is left in a stream's buffer go nowhere, or Python would fail on it once more at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def is_cramped() -> bool:
    """Whether memory is limited to less than linear algebra needs, whose library would hang or end the process with 1."""
    if os.name != "posix":
        return False
    from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

    limit = getrlimit(RLIMIT_AS)[0]
    return limit != RLIM_INFINITY and limit < 512 << 20


def leave_when_interrupted() -> None:
    """While nothing is under way that needs an orderly end (imports, the end of Python itself), Ctrl-C ends it at once."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_when_interrupted() -> None:
    """Back to Python's own way, a KeyboardInterrupt."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
