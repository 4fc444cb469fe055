"""What the range of a trapezoidal rule leaves out, beside the bound of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactdp.mechanisms import trapezoidal_rule


def logs_of_left_out(monkeypatch: pytest.MonkeyPatch, mixture: Any, rho: float, reach: float) -> tuple[float, float]:
    """The logarithms of the sizes of all points that a shorter reach leaves out, and of their bound."""
    rule = mixture.rule(rho, 0.0)
    every = mixture.points(rho, rule)
    monkeypatch.setattr(trapezoidal_rule, "_REACH", reach)
    short = mixture.points(rho, rule)
    outside = every.log_sizes[~np.isin(every.index, short.index)]
    return float(np.logaddexp.reduce(outside)), float(short.log_left_out)
