"""Phases of the nodes, 2 pi (k a mod N) / N, reduced in exact integers."""

from __future__ import annotations

import math

import numpy as np

from exactdp.doubles import Floats, Ints

_LARGEST_EXACT = 134_000_000  # k * a is a whole number below 2^53 while k is below this and |a| at most half of it
_LARGEST_SQUARE = 3_000_000_000  # k * a fits in 64 bits while both are below this
LARGEST_NODES = 1 << 62
_LARGEST_WORDS = 1 << 61  # k * a mod nodes by Horner's rule in words below this, in Python integers above


def phases(k: Ints, strides: tuple[int, ...], nodes: int) -> Floats:
    """2 pi (k a mod nodes) / nodes in [-pi, pi], one row for each stride a, the reduction in exact integers; 0 <= k < nodes."""
    if nodes < _LARGEST_EXACT:
        return _turns(k, np.array([a % nodes for a in strides], dtype=np.int64)[:, None], nodes)
    if nodes < _LARGEST_SQUARE:
        residue = np.array([a % nodes for a in strides], dtype=np.int64)[:, None] * k[None, :] % nodes
    elif nodes < _LARGEST_WORDS:
        residue = np.stack([_times(k, a % nodes, nodes) for a in strides])
    else:
        residue = np.array([[x * a % nodes for x in k.tolist()] for a in strides], dtype=np.int64).reshape(
            len(strides), len(k)
        )
    return centred_angles(residue, nodes)


def angles_at(k: Ints, shifts: Ints, nodes: int) -> Floats:
    """2 pi (k a mod nodes) / nodes in [-pi, pi] element by element, 0 <= k, a < nodes < 3e9, the reduction in exact integers."""
    return _turns(k, shifts, nodes) if nodes < _LARGEST_EXACT else centred_angles(k * shifts % nodes, nodes)


def _turns(k: Ints, strides: Ints, nodes: int) -> Floats:
    """The same for few nodes, in doubles: with |a| <= nodes / 2 the product is below 2^53, so that it, the multiple of nodes next
    to it and the difference are exact. Where two multiples are as near but for rounding, either is taken."""
    result: Floats = k.astype(np.float64) * (strides - nodes * (2 * strides > nodes))
    result -= nodes * np.rint(result * (1 / nodes))
    result *= 2 * math.pi / nodes
    return result


def centred_angles(residue: Ints, nodes: int) -> Floats:
    """2 pi r / nodes in (-pi, pi] for residues r in [0, nodes), which are shifted in place."""
    residue -= nodes * (residue > nodes // 2)
    return residue.astype(np.float64) * (2 * math.pi / nodes)


def _times(k: Ints, factor: int, nodes: int) -> Ints:
    """k * factor mod nodes without overflow for nodes below 2^61: Horner's rule on pieces of the factor."""
    bits = 62 - nodes.bit_length()
    pieces = [factor >> shift & ((1 << bits) - 1) for shift in range(0, max(factor.bit_length(), 1), bits)]
    result = np.zeros_like(k)
    for piece in reversed(pieces):
        result = ((result << bits) + k * piece) % nodes
    return result


def angles(k: Ints, nodes: int) -> Floats:
    """omega_k h = 2 pi k / nodes for k in [0, nodes / 2]."""
    result: Floats = phases(k, (1,), nodes)[0]
    return result
