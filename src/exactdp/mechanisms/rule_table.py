"""A rule's points and weights in doubles: the mean of e^{i kappa (log f - centre)} at many frequencies, with its error."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

import numpy as np
from flint import arb

from exactdp.balls import ball, precision
from exactdp.doubles import CLOSE_SLACK, UNIT, Complexes, Floats
from exactdp.mechanisms.rule_weights import WORKING_BITS, Weighed
from exactdp.mechanisms.theta import log_one_plus

_AT_ONCE = 1 << 19  # points times frequencies evaluated together
_BLOCK = 128  # equally spaced frequencies whose powers are shared
_TINY = 1e-60
_FEW = 16  # points in one product of matrices
_ROWS = 16
_SOME, _GROUP = 16, 8  # terms of a sum that are added in any order, and such sums that are added
_MANY = 1024  # frequencies from which on powers are shared


class _Rule(Protocol):
    """What a table needs to know of the rule whose weights it has."""

    @property
    def shift(self) -> float:
        """By how much its line is off the real one."""

    @property
    def log_error(self) -> float:
        """log of its error, relative to the moment."""


class RuleTable:
    """A rule's points in doubles: log f less a centre (real, or complex on a shifted line), weights, and their errors."""

    def __init__(self, found: Weighed, log_moment: arb, rule: _Rule, centre: Fraction) -> None:
        with precision(WORKING_BITS):
            scale, origin = (-log_moment).exp(), ball(centre)
            losses, terms = [x - origin for x in found.losses], [t * scale for t in found.terms]
            kind = complex if rule.shift else float
            self.values = np.array([kind(x.mid()) for x in losses])
            self.weights = np.array([kind(t.mid()) for t in terms])
        self.is_real = not rule.shift
        self._reach = np.abs(self.values.real) + np.abs(self.values.imag)
        self.doubt = (2 * math.exp(found.log_left_out) + 2 * math.exp(rule.log_error)) * (1 + CLOSE_SLACK)

    def evaluate(self, kappa: Floats, alone: int = 0) -> tuple[Complexes, Floats]:
        """log of E e^{i kappa (log f - centre)} at ascending frequencies, and the relative error of that mean.

        Up to `alone` terms in all each frequency has its own sines, which is slower and closer than shared powers."""
        logs, relative = np.empty(len(kappa), dtype=np.complex128), np.empty(len(kappa))
        step, done = None if len(kappa) * len(self.values) <= alone else _even_step(kappa), 0
        most = max(_AT_ONCE // len(self.values), 1)
        while step is not None and len(kappa) - done >= _BLOCK:
            rows = min((len(kappa) - done) // _BLOCK, most)
            here = slice(done, done + rows * _BLOCK)
            logs[here], relative[here] = self._even(kappa[here][::_BLOCK], step)
            done += rows * _BLOCK
        for start in range(done, len(kappa), most):
            here = slice(start, min(start + most, len(kappa)))
            logs[here], relative[here] = (self._real if self.is_real else self._plain)(kappa[here])
        return logs, relative

    def _real(self, kappa: Floats) -> tuple[Complexes, Floats]:
        """Around 1, so that the error is relative to the change."""
        angles = np.multiply.outer(kappa, self.values)
        half, reach = np.sin(0.5 * angles), np.abs(angles)
        change = np.empty(len(kappa), dtype=np.complex128)
        half *= half
        change.real, change.imag = -2 * _dot(half, self.weights), _dot(np.sin(angles), self.weights)
        size = np.minimum(2 * reach, 3 + reach) @ self.weights * (_terms_lost(len(self.weights)) / 64)
        return log_one_plus(change, size, self.doubt)

    def _plain(self, kappa: Floats) -> tuple[Complexes, Floats]:
        """A plain sum, whose error is relative to the sizes of its terms."""
        terms = np.exp(1j * np.multiply.outer(kappa, self.values)) * self.weights
        sizes = np.abs(terms)
        size = sizes.sum(axis=1) + (sizes @ self._reach) * kappa
        return log_one_plus(terms.sum(axis=1) - 1, size, self.doubt)

    def _even(self, starts: Floats, step: float) -> tuple[Complexes, Floats]:
        """The same at starts[i] + step * j, j below _BLOCK: each term is a product of two powers, and the sums are products of
        matrices, over _FEW points at a time."""
        outer = _without_tiny(np.exp(1j * np.multiply.outer(starts, self.values)) * self.weights)
        inner = _without_tiny(np.exp(1j * np.multiply.outer(self.values, step * np.arange(_BLOCK))))
        total = np.zeros((len(starts), _BLOCK), dtype=np.complex128)
        for row in range(0, len(starts), _ROWS):  # so few that BLAS uses one thread: its threads wait in busy loops
            some = slice(row, row + _ROWS)
            for first in range(0, len(self.values), _FEW):
                total[some] += outer[some, first : first + _FEW] @ inner[first : first + _FEW]
        sizes = np.abs(outer)
        size = 1.5 * sizes.sum(axis=1) + (sizes @ self._reach) * (starts + step * _BLOCK)
        size *= (_FEW + len(self.values) / _FEW + 16) / 64
        return log_one_plus(total.ravel() - 1, np.repeat(size, _BLOCK), self.doubt + len(self.values) * _TINY)


def _dot(rows: Floats, weights: Floats) -> Floats:
    """rows @ weights over _SOME columns at a time, and these sums over _GROUP at a time: see `_terms_lost`."""
    total = np.zeros(len(rows))
    for start in range(0, len(weights), _SOME * _GROUP):
        group = np.zeros(len(rows))
        for first in range(start, min(start + _SOME * _GROUP, len(weights)), _SOME):
            group += rows[:, first : first + _SOME] @ weights[first : first + _SOME]
        total += group
    return total


def _terms_lost(count: int) -> float:
    """Units of rounding lost by `_dot` of so many terms, each of which has lost at most 16: a sum in any order loses one for each
    of its terms."""
    return 16 + _SOME + _GROUP + count / (_SOME * _GROUP) + 1


def _without_tiny(values: Complexes) -> Complexes:
    """0 for numbers below _TINY: arithmetic with numbers that underflow takes a hundred times as long."""
    values[np.abs(values) < _TINY] = 0
    return values


def _even_step(kappa: Floats) -> float | None:
    """The distance of equally spaced frequencies, if they are that to all digits and many."""
    if len(kappa) < _MANY:
        return None
    step = (float(kappa[-1]) - float(kappa[0])) / (len(kappa) - 1)
    even = float(kappa[0]) + step * np.arange(len(kappa))
    return step if bool(np.all(np.abs(kappa - even) <= 8 * UNIT * float(kappa[-1]))) else None
