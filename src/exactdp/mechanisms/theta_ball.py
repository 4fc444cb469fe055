"""Theta sums in ball arithmetic (Arb): rigorous at any precision, used where float64 would not be enough."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import acb, arb, ctx, fmpq

_LOCK = threading.RLock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Arb's working precision inside the block, restored afterwards even when the block fails.

    Precision is process-wide state in python-flint, so threads take turns: one lock covers every block.
    """
    with _LOCK:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def ball(value: Fraction | int) -> arb:
    """The narrowest ball around an exact rational at the current precision."""
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def fraction(value: arb) -> Fraction:
    """The exact value of a ball of radius 0."""
    mantissa, exponent = value.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def upper_double(value: arb) -> float:
    """A double above the ball, in both readings: as the binary number it is, and as the decimal it prints as.

    An exact 0 stays one, and nothing that is at most 0 becomes positive.
    """
    top = float(value.upper())
    above = math.nextafter(top, math.inf) if math.isfinite(top) else top
    return min(above, 0.0) if value <= 0 else above


def around_zero(size: arb) -> arb:
    """The ball that holds [-size, size]."""
    return (-size).union(size)


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
