"""Means of e^{i k a x} over a weighted list of x, for k = 0, 1, 2, ... at once and in balls: matrices of turns, multiplied."""

from __future__ import annotations

from flint import acb, acb_mat, arb

from exactdp.balls import precision

BITS = 128
"""Precision of the products. Each term costs about as much as two sines in doubles."""

_BLOCK = 64  # frequencies that share a row


def even_means(values: list[arb], weights: list[arb], step: arb, count: int) -> list[acb]:
    """sum_j weights[j] e^{i k step values[j]} for k below `count`: k = 64 a + b, and e^{i k x} = e^{i 64 a x} e^{i b x}.

    Each turn has its own exponential: the boxes of repeated products of turns would grow by a factor of up to sqrt(2) each.
    """
    with precision(BITS):
        angles = [step * value for value in values]
        rows = [
            [weight * turn for weight, turn in zip(weights, _turns(angles, k), strict=True)]
            for k in range(0, count, _BLOCK)
        ]
        columns = [_turns(angles, k) for k in range(min(_BLOCK, count))]
        found: list[acb] = (acb_mat(rows) * acb_mat(columns).transpose()).entries()
        return found[:count]


def _turns(angles: list[arb], k: int) -> list[acb]:
    return [acb(0, k * angle).exp() for angle in angles]
