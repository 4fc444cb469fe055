"""Sums of squares of tilted discrete Gaussian noise: what the derivative of a Fourier sum by the budget is made of.

For X with probabilities proportional to exp(-(x - c)^2 / (2 s)) on the integers, c = D tilt, three sums at phases v:

    E e^{ivX},      E (X^2 - V) e^{ivX},      E ((X + D)^2 - V) e^{ivX},      V the variance of the untilted noise

Poisson summation turns them into sums over n of e^{-s u^2 / 2} times 1, (c + i s u)^2 and (c + D + i s u)^2 with u = v + 2 pi n,
in which s itself has cancelled (docs/theory/derivatives.md, Lemma 2). Estimates: accurate, but without a stated bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exactdp.doubles import Complexes, Floats
from exactdp.mechanisms.theta import POISSON_FROM, TWO_PI_SQUARED, direct_weights, poisson_terms


@dataclass(frozen=True)
class TiltedSquares:
    """Each of the three sums divided by exp(exponent), which is never 0; phases are measured from round(D tilt)."""

    exponent: Complexes
    plain: Complexes
    square: Complexes
    """E (X^2 - V) e^{ivX}."""
    shifted: Complexes
    """E ((X + D)^2 - V) e^{ivX}."""
    variance: float
    """V."""


def tilted_squares(s: float, sensitivity: int, tilt: float, v: Floats) -> TiltedSquares:
    """The three sums at phases |v| <= pi; `tilt` must be short enough for sensitivity * tilt to be exact."""
    centre = sensitivity * tilt
    whole = math.floor(centre + 0.5)
    make = _by_poisson if s >= POISSON_FROM else _directly
    return make(s, float(sensitivity), float(whole), centre - whole, v)


def untilted_variance(s: float) -> float:
    """V, by whichever series is short."""
    if s >= POISSON_FROM:
        return s - _short_of(s)
    offsets, weights = direct_weights(s, 0.0)
    return float(weights @ (offsets * offsets))


def _short_of(s: float) -> float:
    """s - V = 4 pi^2 s^2 sum n^2 p^{n^2} / sum p^{n^2} over all integers n, p = exp(-2 pi^2 s)."""
    terms = [math.exp(-TWO_PI_SQUARED * s * n * n) for n in range(1, poisson_terms(s, 0.0) + 2)]
    top = 2 * math.fsum(n * n * term for n, term in enumerate(terms, 1))
    return 4 * math.pi**2 * s * s * top / (1 + 2 * math.fsum(terms))


def _by_poisson(s: float, d: float, whole: float, rest: float, v: Floats) -> TiltedSquares:
    reach = max(poisson_terms(s, float(np.max(np.abs(v), initial=0.0))), 1)
    plain, square, shifted = (np.zeros(v.shape, dtype=np.complex128) for _ in range(3))
    total, centre = 0.0, whole + rest
    for n in range(-reach, reach + 1):
        total += math.exp(-TWO_PI_SQUARED * s * n * n) * math.cos(2 * math.pi * n * rest)
        u = v + 2 * math.pi * n
        # u^2 - v^2 without cancellation; |v| <= pi keeps it from being negative
        fall = 2 * math.pi * s * n * (v + math.pi * n)
        turn = 2 * math.pi * n * rest
        term = np.exp(-fall) * complex(math.cos(turn), math.sin(turn))
        plain += term
        square += term * (centre + 1j * s * u) ** 2
        shifted += term * (centre + d + 1j * s * u) ** 2
    missing = _short_of(s) * plain
    exponent = -0.5 * s * v * v + 1j * rest * v
    return TiltedSquares(
        exponent, plain / total, (square + missing) / total, (shifted + missing) / total, s - _short_of(s)
    )


def _directly(s: float, d: float, whole: float, rest: float, v: Floats) -> TiltedSquares:
    variance = untilted_variance(s)
    offsets, weights = direct_weights(s, rest)
    plain, square, shifted = (np.zeros(v.shape, dtype=np.complex128) for _ in range(3))
    for offset, weight in zip(offsets.tolist(), weights.tolist(), strict=True):
        term = weight * np.exp(1j * offset * v)
        plain += term
        square += ((whole + offset) ** 2 - variance) * term
        shifted += ((whole + d + offset) ** 2 - variance) * term
    return TiltedSquares(np.zeros(v.shape, dtype=np.complex128), plain, square, shifted, variance)
