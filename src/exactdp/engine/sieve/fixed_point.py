"""Phases of nodes for units of any kind: k * unit / T modulo 1, in fixed point.

A turn is a real number, known as a ball of about 150 correct fractional bits. It is rounded to 128 fractional bits, multiplied by
the integers k exactly (modulo 1) and cut to 64 bits. For k up to 2^62 the phase 2 pi (k turn mod 1) in [-pi, pi] is then within
3 units of rounding of itself plus 2^-60 (docs/theory/any-composition.md, F8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from exactdp.balls import precision
from exactdp.doubles import Floats, Ints
from exactdp.errors import AccuracyError

_Words = NDArray[np.uint64]

LARGEST_NODE = 1 << 62
_FRACTION = 128
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_SMALL = 1 << 32


@dataclass(frozen=True)
class Turn:
    """A real number modulo 1 as an integer over 2^128, off by at most 2^-128."""

    bits: int

    @property
    def fraction(self) -> Fraction:
        """The number as it is kept."""
        return Fraction(self.bits, 1 << _FRACTION)

    @staticmethod
    def of(value: arb) -> Turn:
        """The turn of a ball, which must be known to 2^-130."""
        with precision(1024):
            scaled = value * arb(2) ** _FRACTION
            if not scaled.rad() < 0.25:
                raise AccuracyError("A phase is not known to 128 bits; the losses of this composition are too large.")
            whole = int((scaled.mid() + arb(0.5)).floor().unique_fmpz())
        return Turn(whole % (1 << _FRACTION))

    @staticmethod
    def nearest(value: Fraction) -> Turn:
        """The turn of an exact number."""
        return Turn(round(value * (1 << _FRACTION)) % (1 << _FRACTION))

    def phases(self, k: Ints) -> Floats:
        """2 pi (k turn mod 1), centred, for k in [0, 2^62]."""
        words = k.astype(np.uint64)
        top = self._small(words) if int(k.max(initial=0)) < _SMALL else self._large(words)
        return top.view(np.int64).astype(np.float64) * (2 * math.pi / 2**64)

    def _small(self, k: _Words) -> _Words:
        """The first 64 fractional bits of k * turn for k < 2^32, at most 2^-63 too small: the last 32 bits are left out."""
        high, middle = np.uint64(self.bits >> 64), np.uint64(self.bits >> 32 & 0xFFFFFFFF)
        with np.errstate(over="ignore"):
            result: _Words = k * high + (k * middle >> _SHIFT)
        return result

    def _large(self, k: _Words) -> _Words:
        """The same for k <= 2^62, at most 2^-64 too small."""
        u0, u1, u2, u3 = (np.uint64(self.bits >> shift & 0xFFFFFFFF) for shift in (0, 32, 64, 96))
        return _long_product(k, (u0, u1, u2, u3))


def turn_bits(value: Fraction) -> tuple[int, int]:
    """The first 64 and the next 64 fractional bits of an exact number modulo 1, rounded to 2^-128."""
    bits = (value.numerator * (1 << _FRACTION) * 2 + value.denominator) // (2 * value.denominator) % (1 << _FRACTION)
    return bits >> 64, bits & ((1 << 64) - 1)


def phases_of_turns(turns: Sequence[Turn], k: Ints) -> Floats:
    """`Turn.phases` of several turns at once, one row for each."""
    bits = np.array([(t.bits >> 64, t.bits & ((1 << 64) - 1)) for t in turns], dtype=np.uint64).reshape(-1, 2)
    return _phases(k[None, :], bits[:, :1], bits[:, 1:])


def phases_of_bits(k: Ints, bits: NDArray[np.uint64], largest: int | None = None) -> Floats:
    """2 pi (k turn mod 1), centred, for k in [0, 2^62], each k with a turn of its own: rows of `turn_bits`.

    The same as `Turn.phases`, bit for bit. With `largest`, at least every k, a phase does not depend on the other k.
    """
    return _phases(k, bits[..., 0], bits[..., 1], largest)


def _phases(k: Ints, high: _Words, low: _Words, largest: int | None = None) -> Floats:
    """Phases of integers k and turns of 128 bits that are broadcast against each other."""
    words = k.astype(np.uint64)
    with np.errstate(over="ignore"):
        if (int(k.max(initial=0)) if largest is None else largest) < _SMALL:
            top = words * (low >> _SHIFT)
            top >>= _SHIFT
            top += words * high
        else:
            top = _long_product(words, (low & _LOW, low >> _SHIFT, high & _LOW, high >> _SHIFT))
    result: Floats = top.view(np.int64).astype(np.float64)
    result *= 2 * math.pi / 2**64
    return result


def _long_product(k: _Words, limbs: tuple[Any, Any, Any, Any]) -> _Words:
    """The first 64 fractional bits of k * turn for k <= 2^62, at most 2^-64 too small, in limbs of 32 bits."""
    u0, u1, u2, u3 = limbs
    k0, k1 = k & _LOW, k >> _SHIFT
    carry = k0 * u0 >> _SHIFT
    _, carry = _column(k0 * u1, k1 * u0, carry)
    third, carry = _column(k0 * u2, k1 * u1, carry)
    with np.errstate(over="ignore"):
        fourth = k0 * u3 + k1 * u2 + carry
        result: _Words = (fourth << _SHIFT) | third
    return result


def _column(a: _Words, b: _Words, carry: _Words) -> tuple[_Words, _Words]:
    """One column of the long multiplication: its limb and what it carries."""
    total = (a & _LOW) + (b & _LOW) + (carry & _LOW)
    return total & _LOW, (a >> _SHIFT) + (b >> _SHIFT) + (total >> _SHIFT) + (carry >> _SHIFT)
