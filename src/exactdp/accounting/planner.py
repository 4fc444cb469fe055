"""Who answers for a composition: the sieve on the loss's own lattice where it has a usable one, any other method otherwise."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

import numpy as np

from exactdp.accounting.between_tables import BetweenTables
from exactdp.accounting.directions import BothDirections
from exactdp.accounting.enclosures import beta_floats, epsilon_floats
from exactdp.accounting.explanation import Explanation, explain_on_lattice
from exactdp.accounting.privacy_profile import profile
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.accounting.tradeoff_vertices import tradeoff_curve
from exactdp.brackets import Bracket, Point, both, overwrite
from exactdp.doubles import Bools
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.accuracy import ACCURACY, beta_is_wide
from exactdp.engine.lattice.contours import Contours
from exactdp.engine.lattice.lattice import Group, Lattice
from exactdp.engine.line.common_lattice import few_nodes, log_share, log_share_that_matters
from exactdp.engine.line.enumeration import expected_values
from exactdp.engine.line.lattice_list import LONG_LIST, NODES, lists_suit
from exactdp.engine.line.methods import FEW_VALUES
from exactdp.engine.line.total_loss import Part, TotalLoss
from exactdp.engine.sieve.phases import LARGEST_NODES
from exactdp.errors import AccuracyError, LatticeTooFineError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.widths import WIDE, epsilon_width

LARGEST_STRIDE = 2_000_000
"""Windows that the sieve would have to walk for one contour; beyond it other methods are faster."""

MANY_STEPS = 10_000
"""Lattice steps in one standard deviation of the loss from which a contour takes longer than such a list."""

LISTED_VALUES = math.log(1e11)
"""log of the number of values up to which a list of them is quicker than a sieve that has to keep most nodes."""

SIEVED_STEPS = 100_000
"""Lattice steps in one standard deviation of the loss up to which a sieve can keep most nodes."""

_VALUES_PER_DEVIATION = 8.0  # of a list, at least
_NEARLY_ALL = -0.5  # log of a share of nodes
_SMALLEST_NORMAL = math.log(sys.float_info.min)
_LONG_LIST_WIDTH = 1e-10  # a long list leaves out more, and is not looked at again for less than this
_LOG = logging.getLogger(__name__)
_Asked = TypeVar("_Asked")
_T = TypeVar("_T")
_Ends = tuple[float, float]
_Width = Callable[[], float]
"""The width from which on others are asked, at least ACCURACY; to find it takes a while, so it is asked for where it matters."""


def _first(found: _T, _: Callable[[_Asked], _T], __: _Asked, ___: _Width) -> _T:
    return found


def _narrowed_point(
    found: Point, ask: Callable[[list[Fraction]], Point], epsilons: list[Fraction], width: _Width
) -> Point:
    """Certified points, and where they are wider than `width` what others have to say as well.

    The smaller of delta and 1 - delta may be known as 1 minus the other one only, which loses a digit. What is below the normal
    doubles has to be no narrower than WIDE: nobody can see it, and the proof of a mu asks for hundreds of them.
    """

    def is_wide(width: float) -> Bools:
        return _is_wide(found.delta, width) | _is_wide(found.rest, min(10 * width, WIDE))

    wide = np.flatnonzero(is_wide(width())).tolist() if is_wide(ACCURACY).any() else []
    if wide:
        own = Point.of_rows(np.array(found.rows())[:, wide])
        overwrite(found, wide, own.within(ask([epsilons[i] for i in wide])))
    return found


def _is_wide(bracket: Bracket, width: float) -> Bools:
    wide = bracket.is_wide(width)
    return wide & (bracket.is_wide(WIDE) | (bracket.log_upper() > _SMALLEST_NORMAL)) if wide.any() else wide


def _narrowed_epsilon(found: _Ends, ask: Callable[[Fraction], _Ends], delta: Fraction, width: _Width) -> _Ends:
    """The same for epsilon."""
    apart = epsilon_width(*found)
    return found if apart <= ACCURACY or apart <= width() else both(found, ask(delta))


def _narrowed_beta(found: _Ends, ask: Callable[[Fraction], _Ends], alpha: Fraction, width: _Width) -> _Ends:
    """The same for beta, whose width counts relative to itself."""
    is_wide = beta_is_wide(*found, ACCURACY) and beta_is_wide(*found, width())
    return both(found, ask(alpha)) if is_wide else found


@dataclass(frozen=True)
class OnLattice(BothDirections):
    """Discrete Gaussians by the sieve on their lattice; where that turns out to be too fine, by the other methods."""

    lattice: Lattice

    @cached_property
    def _own(self) -> Contours:
        return Contours(self.lattice, effort=self.effort)

    @cached_property
    def _listed_width(self) -> float | None:
        """How wide the other methods' bounds are expected to be where they answer at once, from lists; None where they do not.

        Heuristic: affects speed and accuracy only.
        """
        logs = 0.0
        for mechanism, count in self.mechanisms.items():  # mostly the first of them are too many
            logs += expected_values(TotalLoss((Part(mechanism.loss(), count),)), 0.0)
            if logs > FEW_VALUES:
                division = lists_suit(self.total, _nodes(self.lattice))
                return None if division is None else ACCURACY if division.listed < LONG_LIST else _LONG_LIST_WIDTH
        return ACCURACY

    @cached_property
    def _lists_first(self) -> bool:
        """Whether such a list is also faster than a contour. Heuristic: affects speed and accuracy only."""
        if math.sqrt(self.lattice.r) <= MANY_STEPS * self.lattice.h or self._is_fine:
            return False
        return self._listed_width is not None

    @property
    def _is_fine(self) -> bool:
        """Whether a look at the noise shows that there are far too many values to be listed, and that few nodes matter.

        Heuristic: affects speed and accuracy only.
        """
        deviations = np.sqrt(self.lattice.counts * self.lattice.sigma2)  # of each group, in steps of its own
        if float(np.log1p(_VALUES_PER_DEVIATION * deviations).sum()) <= FEW_VALUES + 1:
            return False
        return log_share(deviations.tolist()) < few_nodes(min(_nodes(self.lattice), NODES)) - 1

    def _or_else(
        self,
        by_sieve: Callable[[Contours, _Asked], _T],
        otherwise: Callable[[_Asked], _T],
        asked: _Asked,
        join: Callable[[_T, Callable[[_Asked], _T], _Asked, _Width], _T] = _first,
    ) -> _T:
        """What the sieve says; where it gives up what the other methods say, and where it is wide what both say (`join`).

        Where the values of the loss are few, wide means wider than is promised, and where listing them is faster the other
        methods are asked first.
        """

        def sieved(asked: _Asked) -> _T:
            return by_sieve(self._own, asked)

        first, second = (otherwise, sieved) if self._lists_first else (sieved, otherwise)
        try:
            found = first(asked)
        except (LatticeTooFineError, AccuracyError):
            _LOG.debug("The first method gave up on this question; the next one answers.")
            return second(asked)
        try:
            return join(found, second, asked, lambda: self._listed_width or WIDE)
        except (LatticeTooFineError, AccuracyError):
            return found

    def contours(self) -> Contours:
        """The contours of the lattice, shared by all questions."""
        return self._own

    def point(self, epsilons: list[Fraction]) -> Point:
        """delta and 1 - delta at each epsilon."""
        return self._or_else(profile, super().point, epsilons, _narrowed_point)

    def epsilon_bracket(self, delta: Fraction) -> tuple[float, float]:
        """Bounds of epsilon(delta)."""
        return self._or_else(epsilon_floats, super().epsilon_bracket, delta, _narrowed_epsilon)

    def beta_bracket(self, alpha: Fraction) -> tuple[float, float]:
        """Bounds of beta(alpha)."""
        return self._or_else(beta_floats, super().beta_bracket, alpha, _narrowed_beta)

    def curve(self, num: int) -> TradeOffCurve:
        """Vertices of the trade-off curve."""
        return self._or_else(tradeoff_curve, super().curve, num)

    def explain(self, epsilon: Fraction) -> Explanation:
        """The account of the method that is asked first."""
        return self._or_else(explain_on_lattice, super().explain, epsilon)


def answers_for(mechanisms: Mapping[Mechanism, int], effort: Effort) -> BothDirections:
    """The planner's first decision: the sieve for discrete Gaussians whose lattice is not too fine, other methods otherwise."""
    if any(m.is_enclosed for m in mechanisms):
        return BetweenTables(mechanisms, effort)
    gaussians = {m: n for m, n in mechanisms.items() if isinstance(m, DiscreteGaussian)}
    lattice = Lattice(Group.of_each(gaussians)) if len(gaussians) == len(mechanisms) else None
    on_lattice = lattice is not None and sieve_suits(lattice)
    which = "the sieve on the lattice of the loss" if on_lattice else "the methods on the line"
    _LOG.debug("%d groups of mechanisms are answered for by %s.", len(mechanisms), which)
    if lattice is None:
        return BothDirections(mechanisms, effort)
    return (OnLattice if on_lattice else BothDirections)(mechanisms, effort, lattice)


def quick_answers_for(mechanisms: Mapping[Mechanism, int], effort: Effort) -> BothDirections:
    """The same for one of many pairs for which contours that pairs share are too coarse: noise so coarse that most nodes matter.

    Lists of all values come first where they are short (about 1e-11 wide), and a fine lattice is not tried, whose nodes would
    be too many. Heuristic: affects speed and accuracy only.
    """
    found = answers_for(mechanisms, effort)
    if isinstance(found, OnLattice):
        suit = lists_suit(found.total, _nodes(found.lattice)) is not None
        few = suit or expected_values(found.total, 0.0) <= LISTED_VALUES
        if few or math.sqrt(found.lattice.r) > SIEVED_STEPS * found.lattice.h:
            return BothDirections(mechanisms, effort, found.lattice)
    return found


def only_lists_answer(mechanisms: Mapping[Mechanism, int]) -> bool:
    """Whether these are also all there is: nearly every node of a Fourier sum matters, so that contours are long and wide."""
    return nearly_all_nodes_matter(mechanisms) and lists_answer(mechanisms)


def nearly_all_nodes_matter(mechanisms: Mapping[Mechanism, int]) -> bool:
    """Whether hardly a node of a Fourier sum is negligible; more mechanisms only make more of them so."""
    return log_share_that_matters(TotalLoss.of(mechanisms), _NEARLY_ALL) > _NEARLY_ALL


def lists_answer(mechanisms: Mapping[Mechanism, int]) -> bool:
    """Whether a pair by itself answers at once, from lists of all values. Heuristic: affects speed and accuracy only."""
    total = TotalLoss.of(mechanisms)
    return expected_values(total, 0.0) <= FEW_VALUES or lists_suit(total) is not None


def grid_suits(mechanisms: Mapping[Mechanism, int]) -> bool:
    """Whether such a pair has neither a usable lattice nor few values. Heuristic: affects speed and accuracy only."""
    found = answers_for(mechanisms, Effort())
    if isinstance(found, OnLattice) and math.sqrt(found.lattice.r) <= SIEVED_STEPS * found.lattice.h:
        return False
    return expected_values(TotalLoss.of(mechanisms), 0.0) > LISTED_VALUES


def _nodes(lattice: Lattice) -> float:
    """About how many nodes a contour has."""
    return 20 * math.sqrt(lattice.r) / lattice.h


def sieve_suits(lattice: Lattice) -> bool:
    """Whether the sieve is expected to be the fastest method. Heuristic: affects speed and accuracy only."""
    return min(lattice.strides) <= LARGEST_STRIDE and math.sqrt(lattice.r) <= LARGEST_NODES * lattice.h
