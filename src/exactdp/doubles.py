"""Doubles: the types of their arrays and the units of their rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

UNIT = 2.0**-53
"""The unit of rounding u: fl(x op y) = (x op y)(1 + d), |d| <= u."""

PHASE_ERROR = 2.0**-60
"""A bound on the absolute error of a phase, beyond 3 units of rounding of itself (engine/sieve/fixed_point.py)."""

LOG_SLACK = 2.0**-49
"""16 units: a call of log (8 of its result) and a sum lose less than 10."""

EXP_SLACK = 2.0**-48
"""32 units: two calls of exp and three products lose less than 20; a logarithm of a rational is within 16 of 1 + its size."""

CHAIN_SLACK = 2.0**-47
"""64 units: two brackets multiplied or added, each converted with EXP_SLACK."""

LINE_SLACK = 2.0**-46
"""128 units: a line through a vertex, or a mixture: a slope, a product and a difference of numbers with EXP_SLACK each."""
