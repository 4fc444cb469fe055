"""Theta sums: the whole analysis of the discrete Gaussian in one place.

With `theta(c; s) = sum over integers x of exp(-(x - c)^2 / (2 s))`, Poisson summation gives

    theta(c; s) / sqrt(2 pi s) = 1 + 2 sum_{n >= 1} exp(-2 pi^2 s n^2) cos(2 pi n c).

The series over n converges fast for `s` above `POISSON_FROM`, the sum over x below it; both are given here so that each
is used where it is short. `s` is the noise parameter sigma2, `c` the centre of the tilted distribution.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from flint import acb, arb

from exactdp.balls import ball
from exactdp.doubles import FEW_SLACK, FORMULA_SLACK, UNIT, Complexes, Floats, Ints

POISSON_FROM = 0.25
"""Noise parameters of at least this are summed by Poisson's formula, smaller ones term by term."""

TWO_PI_SQUARED = 2 * math.pi**2
_PARABOLA_FROM = 0.4  # Lemma 5 (a) holds from here
_NEGLIGIBLE = 46.0  # exp(-46) = 1e-20, below half a unit in the last place of 1 by a factor 10^4
_IN_RANGE = 300.0  # e^300 and its square are doubles
_LEFT_OUT = 1e-19  # all terms left out of a series together, the largest of which is exp(-46)

LATER_TERMS = 1.0001
"""All terms of a theta series relative to the bound of its first one (docs/theory/engine.md, Lemma 4)."""


def poisson_terms(s: float, largest_phase: float = math.pi) -> int:
    """How many terms of the Poisson series matter at phases up to `largest_phase`.

    Term n is at most exp(-2 pi^2 s n^2 + 2 pi s n |v|); with |v| <= pi and s >= 1/4 the terms from the returned number
    plus one on add up to less than 2e-20 (Lemma 3 of docs/theory/engine.md).
    """
    n = 1
    while TWO_PI_SQUARED * s * n * n - 2 * math.pi * s * n * largest_phase < _NEGLIGIBLE:
        n += 1
    return n - 1


def direct_reach(s: float) -> int:
    """How far from the centre (itself within 1/2 of 0) the direct sum must go: exp(-(d - 1/2)^2 / (2 s)) < 1e-20."""
    return math.ceil(0.5 + math.sqrt(2 * s * _NEGLIGIBLE)) + 1


def direct_weights(s: float, centre: float) -> tuple[Floats, Floats]:
    """Offsets d and the probabilities proportional to exp(-(d - centre)^2 / (2 s)), for |centre| <= 1/2 and small s."""
    reach = direct_reach(s)
    offsets = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-((offsets - centre) ** 2 - centre * centre) / (2 * s))
    return offsets, weights / math.fsum(weights)


def peak_parabola(s: float, centre: float, budget: float = 40.0) -> tuple[float, float]:
    """Strength and slack with |cf(v)| <= exp(slack - strength v^2), |v| <= pi, for noise `s` tilted to `centre`.

    The better, at a typical budget, of Lemma 5's two parabolas: (a) for noise from 0.4 on, strength = s/2 - log 2 / pi^2 with
    slack log(theta(0) / theta(centre)); (b) for any noise, strength = P(|X - X'| = 1) / pi^2, no slack.
    """
    options: list[tuple[float, float]] = []
    if s >= _PARABOLA_FROM:
        own = -log_theta_ratio(centre, s) * (1 + FORMULA_SLACK) + FEW_SLACK
        options.append((wide_parabola(s), own))
    if s < 1.0:
        _, p = direct_weights(s, centre - math.floor(centre + 0.5))
        options.append((2 * float(p[:-1] @ p[1:]) / math.pi**2 * (1 - FORMULA_SLACK), 0.0))
    return options[0] if len(options) == 1 else min(options, key=lambda o: (budget + o[1]) / o[0])


def wide_parabola(s: float) -> float:
    """The strength of Lemma 5 (a), for noise from 0.4 on."""
    return (s / 2 - math.log(2) / math.pi**2) * (1 - FORMULA_SLACK)


def untilted_penalty(s: Floats, size: Floats) -> Floats:
    """At most -log phi(v), phi the characteristic function of noise s >= 0.4 and size = |v| <= pi; elementwise.

    phi(v) <= e^{-s v^2 / 2} (1 + e^{-2 pi s (pi - |v|)}) (docs/theory/engine.md, Lemma 5 (c)).
    """
    quadratic = 0.5 * s * size * size
    near = np.exp(-2 * math.pi * s * np.maximum(math.pi - size, 0.0))
    result: Floats = quadratic - near  # log(1 + x) <= x
    return result


def log_theta_ratio(c: float, s: float) -> float:
    """log(theta(c; s) / theta(0; s)), never positive, period 1 in c.

    Guarantee: the error is at most `theta_ratio_error(s, result, 1)`, given the accuracy of libm.
    """
    if TWO_PI_SQUARED * s >= _NEGLIGIBLE:  # no term of the series matters
        return 0.0
    f = c - math.floor(c + 0.5)
    if s >= POISSON_FROM:
        total, dip = 1.0, 0.0
        for n in range(1, poisson_terms(s, 0.0) + 1):
            weight = 2 * math.exp(-TWO_PI_SQUARED * s * n * n)
            total += weight
            dip += weight * 2 * math.sin(math.pi * n * f) ** 2
        return math.log1p(-dip / total)
    reach = direct_reach(s)
    shifted = math.fsum(math.exp(-(d * d - 2 * d * f) / (2 * s)) for d in range(-reach, reach + 1))
    centred = math.fsum(math.exp(-(d * d) / (2 * s)) for d in range(-reach, reach + 1))
    return math.log(shifted / centred) - f * f / (2 * s)


def theta_ratio_error(s: float, term: float, count: float) -> float:
    """Bound on the rounding and truncation error of `count` times log_theta_ratio, itself `term` (engine.md, F3)."""
    if s < POISSON_FROM:
        return 4 * FEW_SLACK * (abs(term) + count)
    first_left_out = poisson_terms(s, 0.0) + 1
    return 1.2e-16 * (50 + 110 * s) * abs(term) + 5 * count * math.exp(-TWO_PI_SQUARED * s * first_left_out**2)


def tilted_mean_variance(c: float, s: float) -> tuple[float, float]:
    """Mean and variance of the distribution proportional to exp(-(x - c)^2 / (2 s)) on the integers.

    Heuristic use only (the choice of a tilt): accurate, but without a stated bound.
    """
    if s >= 1.0:
        return c, s
    base = math.floor(c + 0.5)
    offsets, p = direct_weights(s, c - base)
    mean = float(p @ offsets)
    return base + mean, float(p @ (offsets - mean) ** 2)


def log_cf_correction(s: float, centre: float, v: Floats) -> tuple[Complexes, Floats]:
    """The part of the tilted characteristic function that is not Gaussian, and a bound on its relative error.

    For X with probabilities proportional to exp(-(x - centre)^2 / (2 s)), |centre| <= 1/2, s >= POISSON_FROM, and phases
    |v| <= pi, the first result is L with E exp(i v X) = exp(-s v^2 / 2 + i centre v + L); the second bounds the relative
    error of exp(L) (docs/theory/engine.md, F4).
    """
    # the change is theta(centre + i s v) / theta(centre) - 1, the size the sum of the absolute values that entered it
    largest = float(np.max(np.abs(v), initial=0.0))
    total = 1.0
    re, im, size = np.zeros_like(v), np.zeros_like(v), np.zeros_like(v)
    for n in range(1, max(poisson_terms(s, largest), 1) + 1):
        decay = TWO_PI_SQUARED * s * n * n
        angle = 2 * math.pi * n * centre
        growth = 2 * math.pi * n * s * v
        total += 2 * math.exp(-decay) * math.cos(angle)
        reach = np.abs(growth)
        cosh_part, sinh_part = _scaled_hyperbolics(growth, reach, decay)
        re += 2 * math.cos(angle) * cosh_part
        im -= 2 * math.sin(angle) * sinh_part
        size += 2 * (cosh_part + np.abs(sinh_part)) * (1 + reach + decay)
    return log_one_plus(_complex(re, im) / total, size / total)


def _scaled_hyperbolics(growth: Floats, reach: Floats, decay: float) -> tuple[Floats, Floats]:
    """exp(-decay) (cosh(growth) - 1) and exp(-decay) sinh(growth), within 16 (1 + reach + decay) units of rounding of their
    sizes, reach = |growth|; where the hyperbolic functions might overflow, with the exponents joined."""
    flat = math.exp(-decay)
    if decay < _IN_RANGE and float(reach.max(initial=0.0)) < _IN_RANGE:
        half = np.sinh(growth / 2)
        return 2 * flat * half * half, flat * np.sinh(growth)
    up, down, small = np.exp(growth - decay), np.exp(-growth - decay), reach < 1
    cosh_part = np.where(small, 2 * flat * np.sinh(np.where(small, growth, 0) / 2) ** 2, (up + down) / 2 - flat)
    return cosh_part, np.where(small, flat * np.sinh(np.where(small, growth, 0)), (up - down) / 2)


def theta_left_out(s: Any, count: Any, v: Any) -> Any:
    """Bound of |count log(theta(c + i s v) / theta(c))| where it is small, for s >= POISSON_FROM and any centre c.

    The ratio differs from 1 by at most 2 sum_n p^{n^2} sinh(2 pi n s |v|) / (1 - 2 p - ...) with p = exp(-2 pi^2 s)
    (engine.md, Lemma 4). The test of this bound has a case in which it is tight.
    """
    p = np.exp(-TWO_PI_SQUARED * s)
    return LATER_TERMS * count * np.exp(s * (2 * math.pi * v - TWO_PI_SQUARED)) / (1 - 2.01 * p)


def log_cf_direct(s: float, centre: float, v: Floats) -> tuple[Complexes, Floats]:
    """log E exp(i v X) for the same X with s < POISSON_FROM, and a bound on the relative error of E exp(i v X)."""
    offsets, p = direct_weights(s, centre)
    re, im, size = np.zeros_like(v), np.zeros_like(v), np.zeros_like(v)
    for d, weight in zip(offsets, p, strict=True):
        half = np.sin(0.5 * d * v)
        cosine_part, sine_part = 2 * half * half, np.sin(d * v)
        re -= weight * cosine_part
        im += weight * sine_part
        size += weight * (cosine_part + np.abs(d * v)) * (1 + abs(d) * (abs(d) + 1) / (2 * s) * 0.25)
    return log_one_plus(_complex(re, im), size)


def log_cf_of_atoms(steps: Ints, weights: Floats, v: Floats, phase_error: float) -> tuple[Complexes, Floats]:
    """log of sum_a weights[a] exp(i sum_j steps[a, j] v[j]), weights adding up to 1, and a bound on its relative error.

    The weights may be off by 4 units of rounding, each phase by 3 units of itself and `phase_error`. The atom at the origin is
    the one that phases are measured from. Guarantee: docs/theory/any-composition.md, F8.
    """
    n = v.shape[1]
    re, im, size, moved = np.zeros(n), np.zeros(n), np.zeros(n), 0.0
    for row, weight in zip(steps, weights, strict=True):
        if not row.any():
            continue
        angle, reach = np.zeros(n), np.zeros(n)
        for step, phase in zip(row.tolist(), v, strict=True):
            if step:
                angle += step * phase
                reach += abs(step) * np.abs(phase)
        half = np.sin(0.5 * angle)
        re -= weight * (2 * half * half)
        im += weight * np.sin(angle)
        size += weight * np.minimum(2 * reach, 3 + reach)
        moved += weight * float(np.sum(np.abs(row)))
    size *= max(1.0, len(weights) / 32)  # a sum of n terms in turn loses n units
    return log_one_plus(_complex(re, im), size, 2 * phase_error * moved)


def log_one_plus(change: Complexes, size: Floats, beyond: float = 0.0) -> tuple[Complexes, Floats]:
    """log(1 + change) and the relative error of 1 + change, whose absolute error is 64 units of `size` and `beyond`.

    A value smaller than its own error bound is raised to that bound, and the error covers the change: no logarithm of
    zero, ever.
    """
    error = 64 * UNIT * size + (_LEFT_OUT + beyond)
    value = 1 + change
    modulus = np.abs(value)
    lost = modulus < error
    if lost.any():
        value = np.where(lost, error, value)
        modulus = np.where(lost, error, modulus)
        change = np.where(lost, error - 1, change)
        error = np.where(lost, 3 * error, error)
    near = np.abs(change) < 0.5
    logs = log1p_complex(change)
    return (logs if near.all() else np.where(near, logs, np.log(value))), error / modulus


def log1p_complex(x: Complexes) -> Complexes:
    """log(1 + x) without cancellation, for |x| < 1/2 (elsewhere use log)."""
    re, im = x.real, x.imag
    return _complex(0.5 * np.log1p(np.maximum(re * (2 + re) + im * im, UNIT - 1)), np.arctan2(im, 1 + re))


def _complex(re: Floats, im: Floats) -> Complexes:
    result = np.empty(re.shape, dtype=np.complex128)
    result.real, result.imag = re, im
    return result


def cf_ball(v: arb, s: Fraction) -> arb:
    """The characteristic function of N_Z(0, s) at v: e^{-s v^2/2} theta_3(i s v | 2 pi i s) / theta_3(0 | 2 pi i s)."""
    height = ball(s) * v
    tau = acb(0, 2 * arb.pi() * ball(s))
    top, bottom = (acb(0, h).modular_theta(tau)[2].real for h in (height, arb(0)))
    return (-height * v / 2).exp() * top / bottom


def log_theta_ratio_ball(c: Fraction, s: Fraction) -> arb:
    """log(theta(c; s) / theta(0; s)) as a ball: theta(c; s) / sqrt(2 pi s) is Jacobi's theta_3(c | 2 pi i s)."""
    tau = acb(0, 2 * arb.pi() * ball(s))
    top = acb(ball(c - round(c))).modular_theta(tau)[2]
    bottom = acb(0).modular_theta(tau)[2]
    return (top.real / bottom.real).log()
