"""The moment function at the nodes, in float64, with a bound on its rounding error.

One mechanism's factor is exp(s u^2 / 2) theta(s u; s) / theta(0; s) at u = tilt w + i v, v = w omega reduced to (-pi, pi]; its
phase splits into an exact integer multiple of 2 pi k / N (round(D tilt) of them for each stride) and a small rest.
"""

from __future__ import annotations

import numpy as np

from exactdp.doubles import SUM_SLACK, UNIT, Floats, Ints
from exactdp.engine.lattice.lattice import Lattice
from exactdp.engine.sieve.phases import phases
from exactdp.mechanisms.theta import POISSON_FROM, log_cf_correction, log_cf_direct, theta_left_out

_NEGLIGIBLE = 1e-18  # the theta factors of all copies of a group, together this close to 1, are left out, and charged


def whole_centres(lattice: Lattice, lam: float) -> Floats:
    """round(D tilt) by group; D tilt and its distance to this integer are exact in float64 (tilts have few bits)."""
    return np.floor(lattice.sensitivities * lam + 0.5)


def log_moments(lattice: Lattice, lam: float, kept: Ints, nodes: int) -> tuple[Floats, Floats, Floats]:
    """log(M(tilt + i omega) / M(tilt)) without its integer phase: real part, imaginary part, bound on the absolute error.

    Guarantee: engine.md, F4.
    """
    v = phases(kept, lattice.strides, nodes)
    centres = lattice.sensitivities * lam - whole_centres(lattice, lam)
    gaussian = lattice.sigma2 >= POISSON_FROM
    fall = np.where(gaussian, 0.5 * lattice.counts * lattice.sigma2, 0.0)
    turn = np.where(gaussian, lattice.counts * centres, 0.0)
    size = np.abs(v)
    # sums in a fixed order, group after group: a matrix product may add in an order that depends on the number of threads
    real, imag = -(fall[:, None] * (v * v)).sum(axis=0), (turn[:, None] * v).sum(axis=0)
    parts = (np.abs(turn)[:, None] * size).sum(axis=0) - real
    error = 8 * UNIT * parts
    largest = size.max(axis=1)
    left_out = theta_left_out(lattice.sigma2, lattice.counts, largest)
    skip = gaussian & (left_out < _NEGLIGIBLE)  # for s below POISSON_FROM the bound means nothing and is not used
    error += float(np.sum(left_out[skip]))
    for i in np.flatnonzero(~skip):
        s, count = float(lattice.sigma2[i]), float(lattice.counts[i])
        logs, relative = (log_cf_correction if gaussian[i] else log_cf_direct)(s, float(centres[i]), v[i])
        real += count * logs.real
        imag += count * logs.imag
        own = count * (np.abs(logs.real) + np.abs(logs.imag))
        parts += own
        error += count * np.log1p(relative) + 8 * UNIT * own
    groups = len(lattice.groups)
    return real, imag, (error + (groups + 2) * UNIT * parts) * (1 + SUM_SLACK)
