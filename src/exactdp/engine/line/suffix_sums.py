"""Sums over the ends of a sorted list, discounted by distance; and long sums in blocks, so that rounding stays small."""

from __future__ import annotations

import math

import numpy as np

from exactdp.doubles import Floats

BLOCK = 512
"""Terms summed in turn; blocks are then added, so that errors grow with n / BLOCK + BLOCK."""

SUFFIX_UNITS = 128
"""Units of rounding of the exponentials of a suffix sum and of what it is multiplied by, beside one for each term and block."""

_RANGE = 300.0  # exponents within one block of suffix sums
_NARROW = 16.0  # exponents within blocks that are all summed at once

MOST_STEP = _NARROW / BLOCK
"""The largest exponent between values that are evenly apart."""


def block_sum(terms: Floats) -> float:
    """A sum whose error is a few hundred units of rounding of its size, in a fixed order."""
    padded = np.zeros(-(-len(terms) // BLOCK) * BLOCK)
    padded[: len(terms)] = terms
    return math.fsum(padded.reshape(-1, BLOCK).sum(axis=1))


def block_dot(x: Floats, y: Floats) -> float:
    """The sum of all products, likewise."""
    whole = len(x) // BLOCK * BLOCK
    blocks = np.einsum("ij,ij->i", x[:whole].reshape(-1, BLOCK), y[:whole].reshape(-1, BLOCK))
    return math.fsum(blocks) + float(np.dot(x[whole:], y[whole:]))


def suffix_sums(x: Floats, w: Floats, s: float) -> Floats:
    """S_i = sum over j >= i of w_j e^{-s (x_j - x_i)}, s > 0, x ascending.

    Cumulative sums in blocks in which the exponents stay within range; a block hands its first sum on to the one before.
    """
    if len(x) > BLOCK:
        ends = np.minimum(np.arange(BLOCK - 1, len(x) + BLOCK - 1, BLOCK), len(x) - 1)
        if float(s * np.max(x[ends] - x[::BLOCK])) <= _NARROW:
            return _of_narrow_blocks(x, w, s)
    result = np.empty(len(x))
    end, carried, at = len(x), 0.0, 0.0
    while end > 0:
        start = max(int(np.searchsorted(x, x[end - 1] - _RANGE / s, side="left")), end - BLOCK, 0)
        reference = x[end - 1]
        terms = w[start:end] * np.exp(-s * (x[start:end] - reference))  # from e^{_RANGE} down to 1
        later = carried * math.exp(-s * (at - reference)) if carried else 0.0
        sums = np.cumsum(terms[::-1])[::-1] + later
        result[start:end] = sums * np.exp(s * (x[start:end] - reference))
        carried, at, end = float(result[start]), float(x[start]), start
    return result


def _of_narrow_blocks(x: Floats, w: Floats, s: float) -> Floats:
    """The same for blocks of as many values each, in each of which exponents differ by little."""
    values = _in_descending_blocks(x, x[-1])
    reference = values[:, 0]
    growth = np.exp(-s * (values - reference[:, None]))
    found = _joined(w, growth, np.exp(-s * (values[:-1, -1] - reference[1:])) / growth[:-1, -1])
    return np.ascontiguousarray(found[::-1])


def even_suffix_sums(w: Floats, step: float, s: float) -> Floats:
    """The same for values that are `step` apart, s step <= MOST_STEP, so that all blocks have the same exponentials."""
    growth = np.exp(s * step * np.arange(BLOCK, dtype=np.float64))
    return _joined(w, growth, np.full(-(-len(w) // BLOCK) - 1, math.exp(-s * step * BLOCK)))[::-1]


def _in_descending_blocks(values: Floats, filling: float) -> Floats:
    """Blocks from the last one on, each from its last value on, which lie one after the other in memory: sums in this order take
    a third of the time. The last block is filled up at its end."""
    n = len(values)
    blocks = np.full((-(-n // BLOCK), BLOCK), filling)
    blocks.ravel()[blocks.size - n :] = values[::-1]
    return blocks


def _joined(w: Floats, growth: Floats, steps: Floats) -> Floats:
    """The sums within blocks, each with what comes after it, the last one first: a block's first sum shrinks by a step on the way
    to the one before.

    `growth` is e^{-s (x - x_last)} within each block, or within all of them, from x_last on; steps lead from the last block on.
    """
    sums = _in_descending_blocks(w, 0.0)
    sums *= growth
    np.cumsum(sums, axis=1, out=sums)
    firsts, later = sums[:, -1].tolist(), [0.0]
    for first, step in zip(firsts, steps.tolist(), strict=False):  # of all blocks but the one that comes first
        later.append(step * (first + later[-1]))
    sums += np.array(later)[:, None]
    sums /= growth
    result: Floats = sums.ravel()[sums.size - len(w) :]
    return result
