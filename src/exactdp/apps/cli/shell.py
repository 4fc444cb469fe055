"""The shell around every command: where errors become a sentence and an exit code, and the options that commands share.

Exit codes: 0 done, 1 a certificate does not hold or an audit is not consistent, 2 bad input, or a file, memory or output
that cannot be had (one sentence on standard error), 130 interrupted, 141 nobody reads on.
"""

from __future__ import annotations

import errno
import functools
import json
import logging
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from typer.core import TyperGroup

import exactdp
from exactdp.apps.cli import streams
from exactdp.apps.cli.streams import INTERRUPTED, OutputLostError
from exactdp.arithmetic_state import steady_state
from exactdp.census.tables import finite
from exactdp.elementwise import DIGITS
from exactdp.errors import AccuracyWarning, ExactDPError, InvalidInputError
from exactdp.numbers import exact_text, one_line, whole

FAILED = 1  # a verdict; nothing else may end with it
DEFECT = 70  # sysexits.h: an internal error
_LOG = logging.getLogger(__name__)

_USAGE_ERROR: Any = typer.BadParameter.__base__  # of click or, in later versions, of the copy of it in typer
_REMEDIES = {
    errno.ENOSPC: "Make room, or choose another place",
    errno.EDQUOT: "Make room, or choose another place",
    errno.EMFILE: "Raise the limit of open files (ulimit -n)",
    errno.ENFILE: "Raise the limit of open files (ulimit -n)",
    errno.ENOMEM: "Raise the limit of memory (ulimit -v)",
    errno.EACCES: "Check the permissions of the file and of its folder",
    errno.EPIPE: "Whoever was to read it is gone",
}


class _Commands(TyperGroup):
    """The one place where errors become a sentence and an exit code."""

    def main(self, args: Sequence[str] | None = None, *more: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run a command; in stand-alone mode never a traceback for what the user can put right."""
        run = functools.partial(super().main, args, **{**extra, "standalone_mode": False})
        if not standalone_mode:
            return run(*more)
        sys.exit(streams.flushed(_exit_code(lambda: run(*more))))

    def invoke(self, *arguments: Any, **named: Any) -> Any:
        """Run the command and print what it finds, in a steady state, where a subnormal number is not printed as 0.

        Without what click makes of a broken pipe: exit code 1, which is a verdict here.
        """
        try:
            with steady_state(), warnings.catch_warnings():
                warnings.showwarning = functools.partial(_show_warning, warnings.showwarning)
                return super().invoke(*arguments, **named)
        except BrokenPipeError as error:
            raise InvalidInputError(_trouble(error)) from None


def _show_warning(otherwise: Callable[..., None], message: Warning | str, category: type[Warning], *place: Any) -> None:
    """What the library warns of is a sentence for whoever uses the command, not a line of its code."""
    if issubclass(category, AccuracyWarning):
        warn(str(message))
    else:
        otherwise(message, category, *place)


def _exit_code(run: Callable[[], Any]) -> int:
    try:
        code = run()
        return code if isinstance(code, int) else 0
    except ExactDPError as error:
        return _refuse(str(error))
    except _USAGE_ERROR as error:
        return _refuse(f"{error.format_message().rstrip('.')}. Call exactdp --help for the options.")
    except OutputLostError as error:
        return streams.lost(error)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except OSError as error:
        return _refuse(_trouble(error))
    except ImportError as error:
        return _refuse(f"A module cannot be loaded: {str(error).rstrip('.')}. Raise the limits, or install it again.")
    except MemoryError:
        return _refuse("The memory is not enough. Ask for less at once, or raise the limit (ulimit -v).")
    except RuntimeError as error:
        if "start new thread" not in str(error):  # Python has no type of its own for it
            return _defect(error)
        return _refuse("No thread can be started. Raise the limits of memory or processes (ulimit -v, ulimit -u).")
    except Exception as error:
        return _defect(error)


def _defect(error: Exception) -> int:
    """What nobody foresaw is not a verdict either. The text of the error may hold what is confidential; its place does not."""
    _LOG.debug("The defect.", exc_info=error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{type(error).__name__} in {frame.name}, {Path(frame.filename).name} line {frame.lineno}"
    _refuse(f"This is a defect of exactdp ({place}). Report it, please; exactdp -v shows more.")
    return DEFECT


def _trouble(error: OSError) -> str:
    what = f"{error.filename or 'A file'} cannot be read or written: {error.strerror}"
    return f"{what}. {_REMEDIES.get(error.errno or 0, 'Check the path')}."


def _refuse(sentence: str) -> int:
    return streams.refuse(one_line(sentence))


app = typer.Typer(cls=_Commands, add_completion=True, pretty_exceptions_enable=False, rich_markup_mode=None)

number = functools.partial(typer.Option, metavar="NUMBER")
digits = functools.partial(typer.Option, "--digits", metavar="N")
DIGITS_RANGE = f"{DIGITS[0]} to {DIGITS[1]}"
ShownOption = Annotated[str, digits(help="Significant digits to show; bounds are rounded outward.")]
MOST_SHOWN = 15  # digits of a double


def _path(text: str | Path) -> Path:
    """The path that an option names; an empty text, such as that of a variable that is not set, names none."""
    if not str(text):
        raise typer.BadParameter("an empty text names no file")
    return Path(text)


output = functools.partial(typer.Option, "--output", "-o", parser=_path)
OutputOption = Annotated[Path | None, output(metavar="FILE", help="Write here instead of standard output.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
JobsOption = Annotated[str, typer.Option("--jobs", "-j", metavar="N", help="Processes to use.")]
DaskOption = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="A dask scheduler such as tcp://host:8786, or local."),
]
EpsilonOption = Annotated[
    str | None, number("--epsilon", help="An epsilon: with --delta a target, alone it asks for delta.")
]
DeltaOption = Annotated[
    str | None, number("--delta", help="A delta: with --epsilon a target, alone it asks for epsilon.")
]
AlphaOption = Annotated[
    str | None,
    number("--alpha", help="A false-positive rate: with --beta a target, alone it asks for beta."),
]


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say on standard error how answers are made, as it happens.")
    ] = False,
) -> None:
    """Exact, certified differential-privacy accounting for integer-valued noise."""
    if verbose:
        logging.basicConfig(format="%(relativeCreated)7d ms  %(name)s: %(message)s")
        logging.getLogger("exactdp").setLevel(logging.DEBUG)
    if version:
        print(f"exactdp {exactdp.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def read_shown(text: str, most: int = MOST_SHOWN) -> int:
    """How many significant digits are shown."""
    return whole(text, "--digits", 2, most)


def read_jobs(text: str) -> int:
    """The number of processes."""
    return whole(text, "--jobs", 1, 4096)


def check_ending(output: Path, *endings: str) -> str:
    """The ending of a file that is to be written, one of those that there are; a device or a pipe gets the first."""
    if output.is_dir() or output.parts[:2] == ("/", "dev") or (output.exists() and not output.is_file()):
        return endings[0]  # a folder is refused elsewhere
    if output.suffix.lower() not in endings:
        raise InvalidInputError(f"The name of this file must end in {' or '.join(endings)}. Found {output}; rename it.")
    return output.suffix.lower()


@contextmanager
def progress(title: str, total: int, in_lines: bool = False) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error while it is a terminal; the function it gives takes what was done since.

    Elsewhere there is none, or a few lines.
    """
    if not sys.stderr.isatty():  # rich before 14.3 ends even a disabled bar with an empty line
        yield _Lines(title, total) if in_lines else lambda done: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)


class _Lines:
    """Progress as lines, one for each quarter."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total, self._done, self._quarters = title, total, 0, -1

    def __call__(self, done: int) -> None:
        self._done += done
        if 4 * self._done // self._total > self._quarters:
            self._quarters = 4 * self._done // self._total
            streams.narrate(f"{self._title}: {self._done:,} of {self._total:,}")


def tell(text: str) -> None:
    """A remark on standard error, for someone who is watching."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def warn(text: str) -> None:
    """A sentence on standard error for the record, whoever is watching."""
    print(f"exactdp: {one_line(text)}", file=sys.stderr)


def print_json(value: Any, indent: int = 1) -> None:
    """A value as JSON on standard output; what JSON does not have, such as fractions and infinities, as texts."""
    print(as_json(value, indent))


def as_json(value: Any, indent: int = 1) -> str:
    """The same as a text."""
    return json.dumps(finite(value), indent=indent, default=_text)


def _text(value: object) -> str:
    return exact_text(value) if isinstance(value, Fraction) else str(value)


def one_of(**options: object) -> tuple[str, Any]:
    """The one option that was given."""
    given = {name: value for name, value in options.items() if value not in (None, [], ())}
    if len(given) != 1:
        names = ", ".join(f"--{name}" for name in options)
        raise InvalidInputError(f"Give exactly one of {names}. Found {len(given)} of them.")
    return next(iter(given.items()))
