"""The command line: `exactdp`. The commands and what they need are loaded when they are first used."""

import os
import sys

# objects between looks for cycles, which numbers do not form; by default these take a tenth of all time
_GARBAGE = (50_000, 20, 100)
# commands in a file of their name: where one of them is called, no other is loaded
_OF_THEIR_OWN = frozenset(
    {"census", "account", "calibrate", "explain", "optimize", "race", "release", "report", "studio"}
)
_DIGITS = 120_000  # more than numbers.py takes, so that all it took can be said, whatever PYTHONINTMAXSTRDIGITS is


def main() -> None:
    """Entry point: the streams first, then what takes a second to load, then the command."""
    try:
        from exactdp.apps.cli.streams import leave_when_interrupted

        leave_when_interrupted()
    except KeyboardInterrupt:
        sys.exit(130)
    import gc

    from exactdp.apps.cli import streams
    from exactdp.threads import multiply_in_one_thread

    streams.prepare()
    multiply_in_one_thread()
    sys.set_int_max_str_digits(_DIGITS)
    gc.set_threshold(*_GARBAGE)
    gc.disable()  # what is loaded stays
    # of what a killed run leaves behind joblib's own process takes care, and has nothing to tell
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
    if streams.is_cramped():
        sys.exit(streams.refuse("The memory is not enough. Raise the limit (ulimit -v) to half a gigabyte or more."))
    if sys.argv[1:2] == ["census"]:  # what takes long says from the beginning what it does
        streams.narrate("loading ...")
    try:
        from importlib import import_module

        from exactdp.apps.cli.memory import keep_freed_memory
        from exactdp.apps.cli.unused_parts import put_off_unused_parts

        keep_freed_memory()
        put_off_unused_parts()
        called = sys.argv[1] if len(sys.argv) > 1 else ""
        import_module(f"{__name__}.{called if called in _OF_THEIR_OWN else 'commands'}")
        from exactdp.apps.cli.shell import app
    except (ImportError, MemoryError, OSError) as error:
        sys.exit(streams.refuse(_not_loaded(error)))
    gc.freeze()
    gc.enable()
    streams.raise_when_interrupted()
    try:
        app()
    except KeyboardInterrupt:  # a second one, while the first was being dealt with
        sys.exit(streams.INTERRUPTED)
    finally:
        streams.leave_when_interrupted()
        gc.freeze()  # a process that ends need not look for cycles, which takes a tenth of a second after a study


def _not_loaded(error: BaseException) -> str:
    while (cause := error.__cause__ or error.__context__) is not None:  # numpy puts a page of advice on top of it
        error = cause
    reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return f"exactdp cannot be loaded: {reason}. Raise the limits of memory and open files, or install it again."


def __getattr__(name: str) -> object:
    if not name.startswith("_"):
        from importlib import import_module
        from importlib.util import find_spec

        if name == "app":
            return import_module(f"{__name__}.commands").app
        if find_spec(f"{__name__}.{name}") is not None:
            return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
