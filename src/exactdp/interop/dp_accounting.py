"""Exact accounting behind the interface of Google's dp_accounting, and compositions as its privacy loss distributions.

`ExactAccountant` is a dp_accounting `PrivacyAccountant`: the same events, the same `calibrate_dp_mechanism`, with certified
answers. `to_pld` (interop/pld.py) turns a composition into a pessimistic `PrivacyLossDistribution`. Soundness, the neighbouring
relations and what is refused: docs/interop.md. Numbers in events are doubles and mean exactly that double.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np

from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.errors import InvalidInputError, MissingExtraError
from exactdp.interop.moments import Moments
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import read_delta, read_epsilon, shown

try:
    from dp_accounting import dp_event
    from dp_accounting.privacy_accountant import NeighboringRelation, PrivacyAccountant

    from exactdp.interop.dp_events import DiscreteGaussianDpEvent, exactly, share_of
    from exactdp.interop.pld import to_pld
except ImportError:
    raise MissingExtraError("The dp_accounting accountant", "interop") from None

__all__ = ["DiscreteGaussianDpEvent", "ExactAccountant", "to_pld"]


@steady
class ExactAccountant(PrivacyAccountant):  # type: ignore[misc]
    """A dp_accounting accountant with certified answers: `get_epsilon` and `get_delta` never understate.

    Events that are mechanisms of exactdp are accounted for exactly. Events of which only Renyi divergences are known (ZCDpEvent,
    discrete Gaussians in many dimensions, noise outside the limits of exactdp) turn the upper ends into a moment bound over
    everything; the lower ends are then those of the other events alone. So do the exponential mechanism and permute-and-flip,
    with the bound of pure differential privacy in place of the moments where that is lower.

    >>> accountant = ExactAccountant()
    >>> from exactdp.numerals import at_most
    >>> at_most(accountant.compose(DiscreteGaussianDpEvent(sigma=1.0), 10).get_epsilon(1e-10), 9)
    '24.6784645'
    """

    def __init__(self, neighboring_relation: Any = NeighboringRelation.ADD_OR_REMOVE_ONE) -> None:
        super().__init__(neighboring_relation)
        self._mechanisms: Counter[Mechanism] = Counter()
        self._covers: Counter[Mechanism] = Counter()
        self._all_covered = True
        self._rho = self._xi = Fraction(0)
        self._reveals = False
        self._built: Composition | None = None

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        if isinstance(event, dp_event.ComposedDpEvent):
            results = (self._maybe_compose(e, count, do_compose) for e in event.events)
            return next((r for r in results if r is not None), None)
        if isinstance(event, dp_event.SelfComposedDpEvent):
            if not isinstance(event.count, (int, np.integer)) or event.count < 0:
                return self._refusal(event, f"count must be a whole number of at least 0. Found {shown(event.count)}.")
            return self._maybe_compose(event.event, int(event.count) * count, do_compose)
        try:
            share = share_of(event, self.neighboring_relation)
        except InvalidInputError as error:
            return self._refusal(event, str(error))
        if do_compose and count:
            self._built = None
            self._mechanisms.update({m: n * count for m, n in share.mechanisms.items()})
            self._covers.update({m: n * count for m, n in share.covers.items()})
            self._all_covered &= bool(share.covers) or not (share.rho or share.xi)
            self._rho += share.rho * count
            self._xi += share.xi * count
            self._reveals |= share.reveals
        return None

    def _refusal(self, event: Any, text: str) -> Any:
        return self.CompositionErrorDetails(invalid_event=event, error_message=text)

    @property
    def composition(self) -> Composition | None:
        """The events as an exactdp Composition; None if there are none. Refused where an event is no mechanism of exactdp."""
        if self._reveals or self._rho or self._xi:
            what = "reveals everything" if self._reveals else "is known by its Renyi divergences only"
            raise InvalidInputError(f"These events are no exactdp Composition: one of them {what}.")
        return self._known() if self._mechanisms else None

    def _known(self) -> Composition:
        if self._built is None:
            self._built = Composition(self._mechanisms)
        return self._built

    def _known_or_none(self) -> Composition | None:
        """The composition of the exactly known events; None if there are none or exactdp's limits forbid it."""
        try:
            return self._known()
        except InvalidInputError:
            return None

    def get_delta(self, target_epsilon: float) -> float:
        """The least delta at this epsilon, rounded up."""
        return float(self.delta_bounds(target_epsilon).upper)

    def get_epsilon(self, target_delta: float) -> float:
        """The least epsilon of at least 0 at this delta, rounded up; inf where there is none."""
        return float(self.epsilon_bounds(target_delta).upper)

    def delta_bounds(self, target_epsilon: float) -> Bounds:
        """Certified bounds of delta at this epsilon (a double is that very double)."""
        epsilon = target_epsilon if math.isinf(target_epsilon) else exactly(target_epsilon, "target_epsilon")
        read_epsilon(epsilon)
        if self._reveals:
            return Bounds(1.0, 1.0)
        known = self._known_or_none()
        if known is not None and not (self._rho or self._xi):
            return known.delta_bounds(epsilon)
        lower = 0.0 if known is None else known.delta_bounds(epsilon).lower
        uppers = [max(m.delta(epsilon) for m in self._moments())]
        uppers += [covering.delta_bounds(epsilon).upper for covering in self._covering()]
        return Bounds(lower, min(uppers))

    def epsilon_bounds(self, target_delta: float) -> Bounds:
        """Certified bounds of the least epsilon of at least 0 at this delta (a double is that very double)."""
        delta = read_delta(exactly(target_delta, "target_delta"))
        if self._reveals:
            return Bounds(math.inf, math.inf)
        known = self._known_or_none()
        if known is not None and not (self._rho or self._xi):
            found = known.epsilon_bounds(delta)
            return Bounds(max(found.lower, 0.0), max(found.upper, 0.0))
        lower = 0.0 if known is None else max(known.epsilon_bounds(delta).lower, 0.0)
        uppers = [max(m.epsilon(delta) for m in self._moments())]
        uppers += [max(covering.epsilon_bounds(delta).upper, 0.0) for covering in self._covering()]
        return Bounds(lower, min(uppers))

    def _covering(self) -> list[Composition]:
        """A composition that dominates all events, if there is one."""
        try:
            return [Composition(self._mechanisms + self._covers)] if self._all_covered else []
        except InvalidInputError:
            return []

    def _moments(self) -> list[Moments]:
        """The moment bounds of both directions."""
        total = TotalLoss.of(self._mechanisms)
        directions = [total] if total.is_symmetric else [total, total.reversed()]
        return [Moments(t, self._rho, self._xi) for t in directions]
