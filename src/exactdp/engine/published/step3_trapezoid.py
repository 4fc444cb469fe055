"""Step 3, the trapezoidal rule: the integral of F becomes the mean of 2 pi F over the nodes zeta_k = 2 pi k / N, k in 1..N."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from exactdp.balls import ball, precision
from exactdp.engine.published.step1_tail_bound import certain_floor
from exactdp.engine.published.step2_fourier import cos_pi, sin_pi


def choose_nodes(proxy: Fraction, tolerance: Fraction, cut: int) -> tuple[int, float]:
    """Proposition "Practical choice of N": the smallest N >= 2 (U + 1) + dL log(2 dL), and dL = sqrt(V / (-2 log(Delta/8)))."""

    def strip() -> arb:
        return (ball(proxy) / (2 * -ball(tolerance / 8).log())).sqrt()

    with precision(128):
        shown = float(strip())
    return 2 * (cut + 1) - certain_floor(lambda: -(strip() * (2 * strip()).log())), shown


def weight(k: int, first: int, last: int, nodes: int) -> arb:
    """The sum of cos(zeta t) over first <= t <= last at zeta = 2 pi k / N, by the closed form of Theorem "method"."""
    if k == 0:
        return arb(last - first + 1)
    a, b = 2 * first * k, 2 * last * k
    cotangent = cos_pi(k, nodes) / sin_pi(k, nodes)
    return (cos_pi(a, nodes) + cos_pi(b, nodes) + cotangent * (sin_pi(b, nodes) - sin_pi(a, nodes))) / 2
