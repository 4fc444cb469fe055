"""A steady place to compute in, whatever the caller or another library has set in this process.

Four things outside of the arguments could change a result: NumPy's error state, the decimal context, Arb's precision, and the
control word of the processor. Arb's is set wherever balls are computed with (`precision` in balls.py); the others are set here,
at the public entry points, and given back afterwards. docs/theory/engine.md, section 7, has the assumptions that this keeps.
"""

from __future__ import annotations

import ctypes
import decimal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from exactdp.errors import AccuracyError

_Thing = TypeVar("_Thing")

_DECIMALS = decimal.Context(
    prec=28,
    rounding=decimal.ROUND_HALF_EVEN,
    Emin=-999999,
    Emax=999999,
    capitals=1,
    clamp=0,
    flags=[],
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)
_SPECIAL = ("__init__", "__post_init__", "__add__", "__radd__", "__mul__", "__rmul__", "__str__", "__repr__")


class _Inside(threading.local):
    steady = False


_inside = _Inside()

# names, not literals, so that they meet when the program runs
_one, _half, _two, _bit, _smallest_normal = 1.0, 0.5, 2.0, 2.0**-60, sys.float_info.min


def arithmetic_is_ieee() -> bool:
    """Whether this thread computes with subnormal numbers and rounds to nearest.

    Half of the smallest normal number, doubled, is that number again unless results (FTZ) or operands (DAZ) are flushed to 0.
    """
    return _smallest_normal * _half * _two == _smallest_normal and _one + _bit == _one == _one - _bit


@contextmanager
def steady_state() -> Iterator[None]:
    """NumPy's error state and the decimal context as they are by default, IEEE arithmetic on this thread; restored at the end."""
    before = _inside.steady
    if before and arithmetic_is_ieee():  # a library that was loaded meanwhile may have changed it
        yield
        return
    _inside.steady = True
    try:
        with (
            np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"),
            decimal.localcontext(_DECIMALS),
            _ieee_arithmetic(),
        ):
            yield
    finally:
        _inside.steady = before


@contextmanager
def _ieee_arithmetic() -> Iterator[None]:
    if arithmetic_is_ieee():
        yield
        return
    before = _to_default()
    try:
        if before is None or not arithmetic_is_ieee():
            raise AccuracyError(
                "This thread flushes subnormal numbers to zero or does not round to nearest (a library that was built with "
                "-ffast-math does so), and that could not be undone here. Load that library in another process."
            )
        yield
    finally:
        if before is not None:
            ctypes.CDLL(None).fesetenv(before)


def _to_default() -> Any:
    """Give this thread C's default environment (<fenv.h>) and return the one before; None where there is none such."""
    try:
        libc = ctypes.CDLL(None)
        before = ctypes.create_string_buffer(512)  # more than any fenv_t
        apple = sys.platform == "darwin"
        default = ctypes.byref(ctypes.c_char.in_dll(libc, "_FE_DFL_ENV")) if apple else ctypes.c_void_p(-1)
        libc.fegetenv(before)
        libc.fesetenv(default)
    except (OSError, AttributeError, TypeError, ValueError):
        return None
    return before


def steady(thing: _Thing) -> _Thing:
    """A decorator for public functions and classes: what they compute, they compute in a steady state."""
    if not isinstance(thing, type):
        return _wrapped(thing)  # type: ignore[type-var]
    for name, member in list(vars(thing).items()):
        if name in _SPECIAL or not name.startswith("_"):
            _replace(thing, name, member)
    return thing


def _replace(owner: type, name: str, member: Any) -> None:
    """Replace a member that computes something."""
    if isinstance(member, FunctionType):
        setattr(owner, name, _wrapped(member))
    elif isinstance(member, (classmethod, staticmethod)):
        setattr(owner, name, type(member)(_wrapped(member.__func__)))
    elif isinstance(member, property) and member.fget is not None:
        setattr(owner, name, property(_wrapped(member.fget), member.fset, member.fdel, member.__doc__))
    elif isinstance(member, cached_property):
        member.func = _wrapped(member.func)


_Call = TypeVar("_Call", bound=Callable[..., Any])


def _wrapped(function: _Call) -> _Call:
    if hasattr(function, "__steady__"):
        return function
    enter, inside, is_ieee = steady_state, _inside, arithmetic_is_ieee

    def call(*args: Any, **kwargs: Any) -> Any:
        if inside.steady and is_ieee():  # most calls come from calls
            return function(*args, **kwargs)
        with enter():
            return function(*args, **kwargs)

    # a function of the same module, so that doctest and inspect look for it there
    made: Any = FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    update_wrapper(made, function)
    made.__steady__ = True
    return made  # type: ignore[no-any-return]
