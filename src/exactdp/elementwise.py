"""A question about one number asked of every element of an array-like, in its shape."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from exactdp.brackets import Bounds
from exactdp.errors import InvalidInputError
from exactdp.numbers import shown, whole

DIGITS = 5, 1000  # the fewest and the most decimal digits that can be asked for

_Floats = tuple[list[float], list[float]]


def read_digits(value: object, name: str = "digits") -> int:
    """How many decimal digits a user asks for, within those limits."""
    return whole(value, name, *DIGITS)


def each(value: Any, function: Callable[[Any], tuple[float, float]], read: Callable[[object], Any]) -> Bounds:
    """`function` of a scalar or of every element of an array-like, in its shape, one after the other."""
    return each_of_list(value, one_by_one(function), read)


def one_by_one(function: Callable[[Fraction], tuple[float, float]]) -> Callable[[list[Any]], _Floats]:
    """A function of one number as one of a list."""

    def over_list(values: list[Any]) -> _Floats:
        pairs = [function(v) for v in values]
        return [p[0] for p in pairs], [p[1] for p in pairs]

    return over_list


def _array(value: Any) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Any input as an array of objects; a scalar has no dimensions."""
    if isinstance(value, (str, Fraction, Decimal)):
        return np.array(value, dtype=object)
    try:
        return np.asarray(value, dtype=object)
    except ValueError:
        raise InvalidInputError(f"An array must be rectangular. Found {shown(value)}.") from None


def each_of_list(value: Any, function: Callable[[list[Any]], _Floats], read: Callable[[object], Any]) -> Bounds:
    """`function` of a scalar or of every element of an array-like, in its shape."""
    array = _array(value)
    lower, upper = function([read(v) for v in array.ravel()]) if array.size else ([], [])
    if array.ndim == 0:
        return Bounds(lower[0], upper[0])
    return Bounds(np.array(lower, dtype=float).reshape(array.shape), np.array(upper, dtype=float).reshape(array.shape))


def each_decimal(
    value: Any, function: Callable[[Any, int], tuple[Decimal, Decimal]], read: Callable[[object], Any], digits: object
) -> Bounds:
    """The same with decimals; arrays have dtype object."""
    count, array = read_digits(digits), _array(value)
    pairs = [function(read(v), count) for v in array.ravel()]
    if array.ndim == 0:
        return Bounds(*pairs[0])
    lower, upper = np.empty(array.shape, dtype=object), np.empty(array.shape, dtype=object)
    lower.ravel()[:], upper.ravel()[:] = [p[0] for p in pairs], [p[1] for p in pairs]
    return Bounds(lower, upper)


def each_rounded(value: Any, read: Callable[[object], Any], function: Callable[[list[Any]], list[float]]) -> Any:
    """`function` of a scalar or of every element of an array-like, in its shape."""

    def both(values: list[Any]) -> tuple[list[float], list[float]]:
        results = function(values)
        return results, results

    return each_of_list(value, both, read).upper
