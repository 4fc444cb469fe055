"""What each event of dp_accounting adds to an exact account: mechanisms of exactdp, a moment bound, or everything.

An event that is no mechanism of exactdp is refused by name. Soundness and the neighbouring relations: docs/interop.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from exactdp.balls import BITS, ball, fraction, precision
from exactdp.errors import InvalidInputError, MissingExtraError
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.gaussian_mixture import GaussianMixture
from exactdp.mechanisms.laplace import Laplace
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.poisson_sampled import PoissonSampled
from exactdp.mechanisms.randomized_response import RandomizedResponse
from exactdp.numbers import read_delta, shown

try:
    import attr
    from dp_accounting import dp_event
    from dp_accounting.privacy_accountant import NeighboringRelation
except ImportError:
    raise MissingExtraError("The dp_accounting accountant", "interop") from None

_ALMOST_WHOLE = 1 + Fraction(1, 2**40)  # math.sqrt(3) ** 2 counts as 3
_ROUNDED = Fraction(1, 10**12)  # by which probabilities may miss 1
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
class EventShare:
    """What one event adds: mechanisms that it is, or a bound xi + a rho of its Renyi divergences of all orders a > 1, or all.

    `covers`: beside such a bound, mechanisms that dominate the event without being its worst case. They serve upper ends only.
    """

    mechanisms: Counter[Mechanism] = field(default_factory=Counter)
    covers: Counter[Mechanism] = field(default_factory=Counter)
    rho: Fraction = Fraction(0)
    xi: Fraction = Fraction(0)
    reveals: bool = False


NOTHING = EventShare()
EVERYTHING = EventShare(reveals=True)


def share_of(event: Any, relation: Any) -> EventShare:
    """What an event that is no composition adds. InvalidInputError if it is not supported, with the reason."""
    for kind, share in _SHARES.items():
        if isinstance(event, kind):
            return share(event, relation)
    name = type(event).__name__
    reason = next(
        (reason for word, reason in _REASONS.items() if word in name), "nothing is known about such events here"
    )
    raise InvalidInputError(f"Unsupported event: exactdp has no mechanism for {name}, as {reason}.")


def _gaussian(event: Any, relation: Any) -> EventShare:
    """Norms of at most C and noise C z: the sum moves by C, or by 2 C where a record is replaced by any other."""
    multiplier = _at_least_0(event.noise_multiplier, "noise_multiplier")
    if not multiplier:
        return EVERYTHING
    steps = 2 if relation is NeighboringRelation.REPLACE_ONE else 1
    return _one_of(lambda: Gaussian(multiplier**2, steps), EventShare(rho=steps**2 / (2 * multiplier**2)))


def _discrete_gaussian(event: Any, _: Any) -> EventShare:
    """Integer vectors at distance at most `sensitivity`: one shift in one dimension; up to three unit shifts; else zCDP."""
    sigma, sensitivity = _at_least_0(event.sigma, "sigma"), _at_least_0(event.sensitivity, "sensitivity")
    dimension = event.dimension
    if dimension is not None and (not isinstance(dimension, (int, np.integer)) or dimension < 1):
        raise InvalidInputError(f"dimension must be a whole number of at least 1, or None. Found {shown(dimension)}.")
    shift, square = math.floor(sensitivity * _ALMOST_WHOLE), math.floor(sensitivity**2 * _ALMOST_WHOLE)
    if not square:
        return NOTHING
    if not sigma:
        return EVERYTHING
    if dimension == 1:
        return _one_of(lambda: DiscreteGaussian(sigma**2, shift), EventShare(rho=shift**2 / (2 * sigma**2)))
    by_moments = EventShare(rho=square / (2 * sigma**2))
    if square > _LARGEST_OF_UNITS:
        return by_moments
    count = square if dimension is None else min(square, int(dimension))
    return _one_of(lambda: DiscreteGaussian(sigma**2), by_moments, count)


def _discrete_laplace(event: Any, relation: Any) -> EventShare:
    _demand(event, relation, NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_SPECIAL)
    rate = _at_least_0(event.noise_parameter, "noise_parameter")
    sensitivity = exactly(event.sensitivity, "sensitivity")
    if sensitivity.denominator != 1 or sensitivity < 0:
        raise InvalidInputError(f"sensitivity must be a whole number of at least 0. Found {shown(event.sensitivity)}.")
    if not sensitivity:
        return NOTHING
    if not rate:
        return EVERYTHING  # no distribution at all; dp_accounting says the same
    return _one_of(lambda: DiscreteLaplace(1 / rate, int(sensitivity)), _pure(rate * sensitivity))


def _randomized_response(event: Any, relation: Any) -> EventShare:
    """Replacing an answer by another one, or by the special record, whose answer is uniform."""
    _demand(event, relation, NeighboringRelation.REPLACE_ONE, NeighboringRelation.REPLACE_SPECIAL)
    noise, k = _at_least_0(event.noise_parameter, "noise_parameter"), event.num_buckets
    if not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidInputError(f"num_buckets must be a whole number of at least 1. Found {shown(k)}.")
    if noise > 1:
        raise InvalidInputError(f"noise_parameter must be between 0 and 1. Found {shown(event.noise_parameter)}.")
    k = int(k)
    if k == 1 or noise == 1:
        return NOTHING
    if not noise:
        return EVERYTHING
    truth, other = 1 - noise + noise / k, noise / k
    with precision(BITS):
        by_moments = _pure(fraction(ball(truth / other).log().upper()))
    if relation is NeighboringRelation.REPLACE_ONE:
        return _one_of(lambda: RandomizedResponse(noise=noise, categories=k), by_moments)
    return _one_of(lambda: Outcomes([truth, 1 - truth], [Fraction(1, k), Fraction(k - 1, k)]), by_moments)


def _laplace(event: Any, relation: Any) -> EventShare:
    _demand(event, relation, NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_SPECIAL)
    scale = _at_least_0(event.noise_multiplier, "noise_multiplier")
    return _one_of(lambda: Laplace(scale), _pure(1 / scale)) if scale else EVERYTHING


def _mixture(event: Any, relation: Any) -> EventShare:
    """Sensitivities and probabilities, which may add up to 1 but for rounding: then the largest sensitivity gets the rest."""
    _demand(event, relation, NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_SPECIAL)
    sigma = _at_least_0(event.standard_deviation, "standard_deviation")
    moves = [_at_least_0(c, "sensitivities") for c in event.sensitivities]
    weights = [_at_least_0(p, "sampling_probs") for p in event.sampling_probs]
    if len(moves) != len(weights) or not moves or abs(sum(weights, Fraction(-1))) > _ROUNDED:
        raise InvalidInputError("sampling_probs must be as many as sensitivities and add up to 1 (to 12 digits).")
    if not any(moves):
        return NOTHING
    if not sigma:
        return EVERYTHING
    order = sorted(range(len(moves)), key=lambda i: -moves[i])
    weights = [weights[i] for i in order]
    weights[0] += max(-sum(weights, Fraction(-1)), Fraction(0))  # more weight on the largest sensitivity dominates
    excess = sum(weights, Fraction(-1))
    for i in reversed(range(len(weights))):  # and less on the smallest
        taken = min(excess, weights[i])
        weights[i], excess = weights[i] - taken, excess - taken
    return EventShare(Counter([GaussianMixture(sigma**2, [moves[i] for i in order], weights)]))


def _poisson_sampled(event: Any, relation: Any) -> EventShare:
    """The same event on a sample. Data sets differ by a record, or by one replaced by the special one that adds nothing."""
    rate = _at_least_0(event.sampling_probability, "sampling_probability")
    if rate > 1:
        raise InvalidInputError(
            f"sampling_probability must be between 0 and 1. Found {shown(event.sampling_probability)}."
        )
    inner = event.event
    if isinstance(inner, dp_event.SelfComposedDpEvent | dp_event.ComposedDpEvent):
        raise InvalidInputError(
            "Unsupported event: a composition on one sample is not taken apart; sample each of its events by itself."
        )
    if not rate:
        return NOTHING
    _demand(event, relation, NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_SPECIAL)
    share = share_of(inner, relation)
    if rate == 1 or share == NOTHING:
        return share
    if share.reveals:
        return EVERYTHING
    if len(share.mechanisms) != 1 or sum(share.mechanisms.values()) != 1:
        raise InvalidInputError(
            f"Unsupported event: exactdp has no mechanism for {type(inner).__name__} on a sample of the records."
        )
    return EventShare(Counter([PoissonSampled(next(iter(share.mechanisms)), rate)]))


def _zcdp(event: Any, _: Any) -> EventShare:
    return EventShare(rho=_at_least_0(event.rho, "rho"), xi=_at_least_0(event.xi, "xi"))


def _black_box(event: Any, _: Any) -> EventShare:
    epsilon, delta = _at_least_0(event.epsilon, "epsilon"), read_delta(_at_least_0(event.delta, "delta"))
    if delta == 1:
        return EVERYTHING
    if not delta:
        return _one_of(lambda: ApproximateDP(epsilon), _pure(epsilon))
    return EventShare(Counter([ApproximateDP(epsilon, delta)]))


def _exponential(event: Any, _: Any) -> EventShare:
    """Losses in an interval of length epsilon: D_a <= a epsilon^2 / 8, and epsilon-DP (docs/interop.md)."""
    epsilon = _at_least_0(event.epsilon, "epsilon")
    return _covered(epsilon, EventShare(rho=epsilon**2 / 8) if epsilon <= 4 else EventShare(xi=epsilon))


def _permute_and_flip(event: Any, _: Any) -> EventShare:
    """epsilon-DP, and nothing more that we could prove."""
    epsilon = _at_least_0(event.epsilon, "epsilon")
    return _covered(epsilon, _pure(epsilon))


def _covered(epsilon: Fraction, by_moments: EventShare) -> EventShare:
    """An epsilon-DP event that is not the worst of its kind."""
    covers = _one_of(lambda: ApproximateDP(epsilon), NOTHING).mechanisms
    return replace(by_moments, covers=covers) if epsilon else NOTHING


_SHARES: dict[Any, Callable[[Any, Any], EventShare]] = {
    dp_event.NoOpDpEvent: lambda *_: NOTHING,
    dp_event.NonPrivateDpEvent: lambda *_: EVERYTHING,
    dp_event.GaussianDpEvent: _gaussian,
    DiscreteGaussianDpEvent: _discrete_gaussian,
    dp_event.DiscreteLaplaceDpEvent: _discrete_laplace,
    dp_event.RandomizedResponseDpEvent: _randomized_response,
    dp_event.ZCDpEvent: _zcdp,
    dp_event.LaplaceDpEvent: _laplace,
    dp_event.PoissonSampledDpEvent: _poisson_sampled,
    dp_event.MixtureOfGaussiansDpEvent: _mixture,
}
"""What an event of each kind adds under a neighbouring relation."""

_NEWER: dict[str, Callable[[Any, Any], EventShare]] = {
    "EpsilonDeltaDpEvent": _black_box,
    "ExponentialMechanismDpEvent": _exponential,
    "PermuteAndFlipDpEvent": _permute_and_flip,
}
"""The same for events that dp_accounting 0.6.0 does not have."""
_SHARES.update({getattr(dp_event, name): share for name, share in _NEWER.items() if hasattr(dp_event, name)})

_REASONS = {
    "SampledWith": "the gain in privacy from samples of a fixed size is not accounted for; use PoissonSampledDpEvent",
    "Subsampled": "the gain in privacy from truncated samples is not accounted for",
    "RandomAllocation": "the gain in privacy from allocating records at random is not accounted for",
    "Tree": "trees are not taken apart; compose a GaussianDpEvent for each node that a record can be in",
    "RepeatAndSelect": "a selection among repeated runs is not accounted for",
    "Unsupported": "it says of itself that nothing is known about it",
}
"""Why the others are refused, by a part of their names."""


def _one_of(build: Callable[[], Mechanism], otherwise: EventShare, count: int = 1) -> EventShare:
    """The mechanism `count` times, or the moment bound where its numbers are outside the limits of exactdp."""
    try:
        return EventShare(Counter({build(): count}))
    except InvalidInputError:
        return otherwise


def _pure(epsilon: Fraction) -> EventShare:
    """epsilon-DP: every Renyi divergence is at most epsilon, and at most a epsilon^2 / 2."""
    return EventShare(xi=epsilon) if epsilon > 1 else EventShare(rho=epsilon**2 / 2)


def _demand(event: Any, relation: Any, *allowed: Any) -> None:
    if relation not in allowed:
        names = " or ".join(a.name for a in allowed)
        raise InvalidInputError(
            f"neighboring_relation must be {names} for {type(event).__name__}. Found {relation.name}."
        )


def exactly(value: object, name: str) -> Fraction:
    """A number of any kind; a float is that very double."""
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise InvalidInputError(f"{name} must be a finite number. Found {value}.")
        return Fraction(float(value))
    if isinstance(value, (int, np.integer, Fraction)) and not isinstance(value, bool):
        return Fraction(int(value)) if isinstance(value, np.integer) else Fraction(value)
    raise InvalidInputError(f"{name} must be a number. Found {shown(value)}.")


def _at_least_0(value: object, name: str) -> Fraction:
    result = exactly(value, name)
    if result < 0:
        raise InvalidInputError(f"{name} must be at least 0. Found {shown(value)}.")
    return result
