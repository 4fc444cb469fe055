"""delta of one mixture of Gaussians alone: normal tails on both sides of the output whose loss is epsilon, in balls."""

from __future__ import annotations

import numpy as np
from flint import arb, ctx

from exactdp.balls import ball, precision
from exactdp.doubles import root
from exactdp.mechanisms.trapezoidal_rule import Mixture

_BITS = (160, 320, 640)  # working precisions, tried in turn
_ENOUGH_BITS = 70  # of relative accuracy


def delta_of_one(mixture: Mixture, y: arb, backward: bool) -> tuple[arb, arb] | None:
    """delta(y) and its slope, P against Q or with `backward` Q against P; None where the output was not found."""
    for bits in _BITS:
        with precision(bits):
            found = _tails(mixture, y, backward)
            if found is not None and found[0].rel_accuracy_bits() >= _ENOUGH_BITS:
                return found
    return None


def _tails(mixture: Mixture, y: arb, backward: bool) -> tuple[arb, arb] | None:
    """P(x > x0) - e^y Q(x > x0) where log f(x0) = y, or Q(x < x0) - e^y P(x < x0) where log f(x0) = -y; and the second term."""
    parts = [(ball(p), ball(s).sqrt()) for p, s in zip(mixture.weights, mixture.squares, strict=True)]
    where = _output_at(mixture, parts, -y if backward else y)
    if where is None:
        return None
    sign, half = -1 if backward else 1, arb(2).sqrt()
    mixed = sum((p * (sign * (where - m) / half).erfc() / 2 for p, m in parts), arb(0))
    single = (sign * where / half).erfc() / 2
    one, two = (single, mixed) if backward else (mixed, single)
    growth = y.exp()
    return one - growth * two, growth * two


def _output_at(mixture: Mixture, parts: list[tuple[arb, arb]], level: arb) -> arb | None:
    """The x at which log f = level, enclosed by a change of sign (log f rises); None if it was not found."""
    near = float(level.mid())
    reach = 40.0 + mixture.widest + 2 * abs(near) / mixture.widest

    def miss(x: float) -> float:
        return float(mixture.losses(np.array([x])).real[0]) - near

    if not miss(-reach) < 0 < miss(reach):
        return None
    x = arb(root(miss, -reach, reach))

    def change(at: arb) -> tuple[arb, arb]:
        sizes = [p * (m * at - m * m / 2).exp() for p, m in parts]
        total = sum(sizes, arb(0))
        slope = sum((m * size for (_, m), size in zip(parts, sizes, strict=True)), arb(0)) / total
        return total.log() - level, slope

    for _ in range(12):
        off, slope = change(x)
        x = (x - off / slope).mid()
    off, slope = change(x)
    radius = abs(off / slope).upper() * 4 + arb(2) ** (-ctx.prec + 20)
    if bool(change(x - radius)[0] < 0) and bool(change(x + radius)[0] > 0):
        return (x - radius).union(x + radius)
    return None
