"""Exact accounting behind the interface of Google's dp_accounting, and compositions as its privacy loss distributions.

`ExactAccountant` is a dp_accounting `PrivacyAccountant`: the same events, the same `calibrate_dp_mechanism`, with certified
answers. `to_pld` (interop/pld.py) turns a composition into a pessimistic `PrivacyLossDistribution`. Soundness, the neighbouring
relations and what is refused: docs/interop.md. Numbers in events are doubles and mean exactly that double.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, fraction, precision
from exactdp.brackets import Bounds
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.errors import InvalidInputError, MissingExtraError
from exactdp.interop.moments import Moments
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.randomized_response import RandomizedResponse
from exactdp.numbers import read_delta, read_epsilon, shown

try:
    import attr
    from dp_accounting import dp_event
    from dp_accounting.privacy_accountant import NeighboringRelation, PrivacyAccountant

    from exactdp.interop.pld import to_pld
except ImportError:
    raise MissingExtraError("The dp_accounting accountant", "interop") from None

__all__ = ["DiscreteGaussianDpEvent", "ExactAccountant", "to_pld"]

_ALMOST_WHOLE = 1 + Fraction(1, 2**40)  # math.sqrt(3) ** 2 counts as 3
_LARGEST_OF_UNITS = 3  # the largest squared sensitivity that allows no shift but units


if hasattr(dp_event, "DiscreteGaussianDpEvent"):
    DiscreteGaussianDpEvent = dp_event.DiscreteGaussianDpEvent
else:

    @attr.s(frozen=True, slots=True, auto_attribs=True)
    class DiscreteGaussianDpEvent(dp_event.DpEvent):  # type: ignore[misc,no-redef]
        """Discrete Gaussian noise of parameter sigma on an integer-valued function of L2 sensitivity `sensitivity`.

        `dimension` is the number of outputs of the function; None means unknown. The same fields and meaning as the class of
        this name in newer versions of dp_accounting.
        """

        sigma: float
        sensitivity: float = 1.0
        dimension: int | None = None


@dataclass(frozen=True)
class _Share:
    """What one event adds: mechanisms that it is, or a bound xi + a rho of its Renyi divergences of all orders a > 1, or all.

    `covers`: beside such a bound, mechanisms that dominate the event without being its worst case. They serve upper ends only.
    """

    mechanisms: Counter[Mechanism] = field(default_factory=Counter)
    covers: Counter[Mechanism] = field(default_factory=Counter)
    rho: Fraction = Fraction(0)
    xi: Fraction = Fraction(0)
    reveals: bool = False


_NOTHING = _Share()
_EVERYTHING = _Share(reveals=True)


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
            share = _share(event, self.neighboring_relation)
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
        epsilon = target_epsilon if math.isinf(target_epsilon) else _exactly(target_epsilon, "target_epsilon")
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
        delta = read_delta(_exactly(target_delta, "target_delta"))
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


def _share(event: Any, relation: Any) -> _Share:
    """What an event that is no composition adds. InvalidInputError if it is not supported, with the reason."""
    for kind, share in _SHARES.items():
        if isinstance(event, kind):
            return share(event, relation)
    name = type(event).__name__
    reason = next(
        (reason for word, reason in _REASONS.items() if word in name), "nothing is known about such events here"
    )
    raise InvalidInputError(f"Unsupported event: exactdp has no mechanism for {name}, as {reason}.")


def _gaussian(event: Any, relation: Any) -> _Share:
    """Norms of at most C and noise C z: the sum moves by C, or by 2 C where a record is replaced by any other."""
    multiplier = _at_least_0(event.noise_multiplier, "noise_multiplier")
    if not multiplier:
        return _EVERYTHING
    steps = 2 if relation is NeighboringRelation.REPLACE_ONE else 1
    return _one_of(lambda: Gaussian(multiplier**2, steps), _Share(rho=steps**2 / (2 * multiplier**2)))


def _discrete_gaussian(event: Any, _: Any) -> _Share:
    """Integer vectors at distance at most `sensitivity`: one shift in one dimension; up to three unit shifts; else zCDP."""
    sigma, sensitivity = _at_least_0(event.sigma, "sigma"), _at_least_0(event.sensitivity, "sensitivity")
    dimension = event.dimension
    if dimension is not None and (not isinstance(dimension, (int, np.integer)) or dimension < 1):
        raise InvalidInputError(f"dimension must be a whole number of at least 1, or None. Found {shown(dimension)}.")
    shift, square = math.floor(sensitivity * _ALMOST_WHOLE), math.floor(sensitivity**2 * _ALMOST_WHOLE)
    if not square:
        return _NOTHING
    if not sigma:
        return _EVERYTHING
    if dimension == 1:
        return _one_of(lambda: DiscreteGaussian(sigma**2, shift), _Share(rho=shift**2 / (2 * sigma**2)))
    by_moments = _Share(rho=square / (2 * sigma**2))
    if square > _LARGEST_OF_UNITS:
        return by_moments
    count = square if dimension is None else min(square, int(dimension))
    return _one_of(lambda: DiscreteGaussian(sigma**2), by_moments, count)


def _discrete_laplace(event: Any, relation: Any) -> _Share:
    _demand(event, relation, NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_SPECIAL)
    rate = _at_least_0(event.noise_parameter, "noise_parameter")
    sensitivity = _exactly(event.sensitivity, "sensitivity")
    if sensitivity.denominator != 1 or sensitivity < 0:
        raise InvalidInputError(f"sensitivity must be a whole number of at least 0. Found {shown(event.sensitivity)}.")
    if not sensitivity:
        return _NOTHING
    if not rate:
        return _EVERYTHING  # no distribution at all; dp_accounting says the same
    return _one_of(lambda: DiscreteLaplace(1 / rate, int(sensitivity)), _pure(rate * sensitivity))


def _randomized_response(event: Any, relation: Any) -> _Share:
    """Replacing an answer by another one, or by the special record, whose answer is uniform."""
    _demand(event, relation, NeighboringRelation.REPLACE_ONE, NeighboringRelation.REPLACE_SPECIAL)
    noise, k = _at_least_0(event.noise_parameter, "noise_parameter"), event.num_buckets
    if not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidInputError(f"num_buckets must be a whole number of at least 1. Found {shown(k)}.")
    if noise > 1:
        raise InvalidInputError(f"noise_parameter must be between 0 and 1. Found {shown(event.noise_parameter)}.")
    k = int(k)
    if k == 1 or noise == 1:
        return _NOTHING
    if not noise:
        return _EVERYTHING
    truth, other = 1 - noise + noise / k, noise / k
    with precision(BITS):
        by_moments = _pure(fraction(ball(truth / other).log().upper()))
    if relation is NeighboringRelation.REPLACE_ONE:
        return _one_of(lambda: RandomizedResponse(noise=noise, categories=k), by_moments)
    return _one_of(lambda: Outcomes([truth, 1 - truth], [Fraction(1, k), Fraction(k - 1, k)]), by_moments)


def _zcdp(event: Any, _: Any) -> _Share:
    return _Share(rho=_at_least_0(event.rho, "rho"), xi=_at_least_0(event.xi, "xi"))


def _black_box(event: Any, _: Any) -> _Share:
    epsilon, delta = _at_least_0(event.epsilon, "epsilon"), read_delta(_at_least_0(event.delta, "delta"))
    if delta == 1:
        return _EVERYTHING
    if not delta:
        return _one_of(lambda: ApproximateDP(epsilon), _pure(epsilon))
    return _Share(Counter([ApproximateDP(epsilon, delta)]))


def _exponential(event: Any, _: Any) -> _Share:
    """Losses in an interval of length epsilon: D_a <= a epsilon^2 / 8, and epsilon-DP (docs/interop.md)."""
    epsilon = _at_least_0(event.epsilon, "epsilon")
    return _covered(epsilon, _Share(rho=epsilon**2 / 8) if epsilon <= 4 else _Share(xi=epsilon))


def _permute_and_flip(event: Any, _: Any) -> _Share:
    """epsilon-DP, and nothing more that we could prove."""
    epsilon = _at_least_0(event.epsilon, "epsilon")
    return _covered(epsilon, _pure(epsilon))


def _covered(epsilon: Fraction, by_moments: _Share) -> _Share:
    """An epsilon-DP event that is not the worst of its kind."""
    covers = _one_of(lambda: ApproximateDP(epsilon), _NOTHING).mechanisms
    return replace(by_moments, covers=covers) if epsilon else _NOTHING


_SHARES: dict[Any, Callable[[Any, Any], _Share]] = {
    dp_event.NoOpDpEvent: lambda *_: _NOTHING,
    dp_event.NonPrivateDpEvent: lambda *_: _EVERYTHING,
    dp_event.GaussianDpEvent: _gaussian,
    DiscreteGaussianDpEvent: _discrete_gaussian,
    dp_event.DiscreteLaplaceDpEvent: _discrete_laplace,
    dp_event.RandomizedResponseDpEvent: _randomized_response,
    dp_event.ZCDpEvent: _zcdp,
}
"""What an event of each kind adds under a neighbouring relation."""

_NEWER: dict[str, Callable[[Any, Any], _Share]] = {
    "EpsilonDeltaDpEvent": _black_box,
    "ExponentialMechanismDpEvent": _exponential,
    "PermuteAndFlipDpEvent": _permute_and_flip,
}
"""The same for events that dp_accounting 0.6.0 does not have."""
_SHARES.update({getattr(dp_event, name): share for name, share in _NEWER.items() if hasattr(dp_event, name)})

_REASONS = {
    "Sampled": "the gain in privacy from sampling records is not accounted for",
    "Subsampled": "the gain in privacy from sampling records is not accounted for",
    "RandomAllocation": "the gain in privacy from allocating records at random is not accounted for",
    "Tree": "trees are not taken apart; compose a GaussianDpEvent for each node that a record can be in",
    "RepeatAndSelect": "a selection among repeated runs is not accounted for",
    "MixtureOfGaussians": "mixtures of Gaussians are not accounted for",
    "Laplace": "its noise is continuous; for noise on integers use DiscreteLaplaceDpEvent",
    "Unsupported": "it says of itself that nothing is known about it",
}
"""Why the others are refused, by a part of their names."""


def _one_of(build: Callable[[], Mechanism], otherwise: _Share, count: int = 1) -> _Share:
    """The mechanism `count` times, or the moment bound where its numbers are outside the limits of exactdp."""
    try:
        return _Share(Counter({build(): count}))
    except InvalidInputError:
        return otherwise


def _pure(epsilon: Fraction) -> _Share:
    """epsilon-DP: every Renyi divergence is at most epsilon, and at most a epsilon^2 / 2."""
    return _Share(xi=epsilon) if epsilon > 1 else _Share(rho=epsilon**2 / 2)


def _demand(event: Any, relation: Any, *allowed: Any) -> None:
    if relation not in allowed:
        names = " or ".join(a.name for a in allowed)
        raise InvalidInputError(
            f"neighboring_relation must be {names} for {type(event).__name__}. Found {relation.name}."
        )


def _exactly(value: object, name: str) -> Fraction:
    """A number of any kind; a float is that very double."""
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise InvalidInputError(f"{name} must be a finite number. Found {value}.")
        return Fraction(float(value))
    if isinstance(value, (int, np.integer, Fraction)) and not isinstance(value, bool):
        return Fraction(int(value)) if isinstance(value, np.integer) else Fraction(value)
    raise InvalidInputError(f"{name} must be a number. Found {shown(value)}.")


def _at_least_0(value: object, name: str) -> Fraction:
    result = _exactly(value, name)
    if result < 0:
        raise InvalidInputError(f"{name} must be at least 0. Found {shown(value)}.")
    return result
