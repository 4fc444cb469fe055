"""Opacus's histories as compositions: DP-SGD as its accountants record it. Opacus itself is not needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.poisson_sampled import PoissonSampled
from exactdp.numbers import LARGEST_COUNT, rational, shown, whole


@steady
def from_opacus(history: Iterable[Sequence[Any]]) -> Composition:
    """The composition of a history, a list of (noise_multiplier, sample_rate, num_steps) such as `accountant.history`.

    Each step adds Gaussian noise of noise_multiplier times the clipping norm to the sum over a Poisson sample; data sets differ
    by one record added or removed. A float is the decimal it prints as.

    >>> from_opacus([(1.1, 0.01, 500), (0.9, 0.01, 100)])  # doctest: +ELLIPSIS
    Composition(500 x PoissonSampled(Gaussian('121/100'), '1/100') + 100 x PoissonSampled(Gaussian('81/100'), '1/100'))
    """
    counts: Counter[Mechanism] = Counter()
    if isinstance(history, (str, bytes)) or not isinstance(history, Iterable):
        raise InvalidInputError(
            f"A history must be a list of (noise_multiplier, sample_rate, num_steps). Found {shown(history)}."
        )
    for place, entry in enumerate(history):
        if not isinstance(entry, (Sequence, np.ndarray)) or isinstance(entry, str) or len(entry) != 3:
            raise InvalidInputError(
                f"An entry of a history must be (noise_multiplier, sample_rate, num_steps). Found {shown(entry)} at [{place}]."
            )
        noise = rational(entry[0], f"noise_multiplier at [{place}]")
        if noise <= 0:
            raise InvalidInputError(
                f"noise_multiplier must be positive (without noise nothing is private). Found {shown(entry[0])} at [{place}]."
            )
        steps = whole(entry[2], f"num_steps at [{place}]", 0, LARGEST_COUNT)
        counts[PoissonSampled(Gaussian(noise**2), entry[1])] += steps
    return Composition(counts)
