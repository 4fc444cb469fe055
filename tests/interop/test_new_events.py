"""Every event of dp_accounting, those of newer versions too: answered with bounds that hold, or refused by name with a reason."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import attr
import numpy as np
import pytest
from scipy.stats import binom

from exactdp import ApproximateDP, InvalidInputError

pytest.importorskip("dp_accounting")

from dp_accounting import dp_event
from dp_accounting.privacy_accountant import NeighboringRelation, UnsupportedEventError

from exactdp.interop import dp_events as interop
from exactdp.interop.dp_accounting import ExactAccountant


def _stand_in(name: str, **fields: type) -> Any:
    """The event of this name, or a class like it where dp_accounting is too old to have one."""
    if hasattr(dp_event, name):
        return getattr(dp_event, name)
    return attr.make_class(name, list(fields), bases=(dp_event.DpEvent,), frozen=True)


EXPONENTIAL = _stand_in("ExponentialMechanismDpEvent", epsilon=float)
PERMUTE_AND_FLIP = _stand_in("PermuteAndFlipDpEvent", epsilon=float)
EPSILON_DELTA = _stand_in("EpsilonDeltaDpEvent", epsilon=float, delta=float)
RANDOM_ALLOCATION = _stand_in("RandomAllocationDpEvent", event=Any, num_selected=int, num_steps=int)
NEW = [EXPONENTIAL, PERMUTE_AND_FLIP, EPSILON_DELTA, RANDOM_ALLOCATION]
FIELDS = {
    "event": dp_event.GaussianDpEvent(2.0),
    "events": [dp_event.GaussianDpEvent(2.0)],
    "noise_parameter": 0.5,
    "sampling_probability": 0.1,
    "delta": 1e-6,
    "sensitivities": [1.0],
    "sampling_probs": [1.0],
    "dimension": 1,
}
"""What is put into the fields; 2 into all others."""


@pytest.fixture(autouse=True)
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if dp_accounting were of a version that has all of them."""
    for event in NEW:
        if event.__name__ in interop._NEWER:
            monkeypatch.setitem(interop._SHARES, event, interop._NEWER[event.__name__])


def _all_events(kind: Any = dp_event.DpEvent) -> Iterator[Any]:
    for event in kind.__subclasses__():
        theirs = event.__module__.startswith(("dp_accounting.dp_event", "exactdp"))
        # attrs makes a class anew, and the first one stays in the list until it is collected
        if (theirs and getattr(sys.modules[event.__module__], event.__name__, None) is event) or event in NEW:
            yield event
        yield from _all_events(event)


def test_the_list_has_the_events_of_this_version() -> None:
    found = {event.__name__ for event in _all_events()}
    assert {name for name in vars(dp_event) if name.endswith("DpEvent") and name != "DpEvent"} <= found
    assert {event.__name__ for event in NEW} <= found


@pytest.mark.parametrize("relation", list(NeighboringRelation), ids=lambda relation: relation.name)
@pytest.mark.parametrize(
    "kind", sorted(set(_all_events()), key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__
)
def test_every_event_is_answered_or_refused_by_name(kind: Any, relation: Any) -> None:
    event = kind(**{field.name: FIELDS.get(field.name, 2) for field in attr.fields(kind)})
    accountant = ExactAccountant(relation)
    if accountant.supports(event):
        accountant.compose(event)
        low, high = accountant.epsilon_bounds(1e-5)
        assert 0 <= low <= high
        assert 0 <= accountant.delta_bounds(1.0).lower <= accountant.get_delta(1.0) <= 1
        return
    with pytest.raises(UnsupportedEventError) as refusal:
        accountant.compose(event)
    text = str(refusal.value)
    assert kind.__name__ in text
    assert ", as " in text or relation.name in text
    assert "nothing is known about such events here" not in text


def test_what_is_unknown_is_named_too() -> None:
    unknown = attr.make_class("BrandNewDpEvent", [], bases=(dp_event.DpEvent,))
    with pytest.raises(UnsupportedEventError, match="BrandNewDpEvent, as nothing is known"):
        ExactAccountant().compose(unknown())
    with pytest.raises(UnsupportedEventError, match="fixed size is not accounted for; use PoissonSampledDpEvent"):
        ExactAccountant().compose(dp_event.SampledWithoutReplacementDpEvent(10, 3, dp_event.GaussianDpEvent(1.0)))


def _worst_of_bounded_range(width: float, count: int, epsilon: float) -> float:
    """The largest delta of `count` equal pairs of two outcomes whose losses are s and s - width."""
    j = np.arange(count + 1)
    worst = 0.0
    for s in np.linspace(0, width, 41)[1:-1]:
        q = -math.expm1(s - width) / (math.exp(s) - math.exp(s - width))
        loss = j * s + (count - j) * (s - width)
        mass = binom.pmf(j, count, math.exp(s) * q)
        worst = max(worst, float(np.sum(mass * np.maximum(0.0, -np.expm1(epsilon - loss)))))
    return worst


@pytest.mark.parametrize(
    ("width", "count"), [(0.125, 1), (1.0, 1), (3.0, 1), (6.0, 3), (1.0, 5), (0.25, 100), (0.0625, 400)]
)
def test_the_exponential_mechanism_is_bounded_from_above_only(width: float, count: int) -> None:
    accountant = ExactAccountant().compose(EXPONENTIAL(width), count)
    pure = count * ApproximateDP(width)
    for share in (0.0, 0.125, 0.25, 0.5, 0.875):
        epsilon = share * width * count
        found = accountant.delta_bounds(epsilon)
        assert found.lower == 0  # nothing is claimed that an event need not do
        assert _worst_of_bounded_range(width, count, epsilon) * (1 - 1e-9) <= found.upper
        assert found.upper <= pure.delta_bounds(epsilon).upper
    assert accountant.get_delta(width * count) == 0  # pure differential privacy, which moments do not see
    with pytest.raises(InvalidInputError, match="no exactdp Composition"):
        _ = accountant.composition


def test_many_exponential_mechanisms_gain_from_their_range() -> None:
    accountant = ExactAccountant().compose(EXPONENTIAL(0.25), 100)
    pure = 100 * ApproximateDP(0.25)
    assert accountant.get_epsilon(1e-6) < 0.7 * pure.epsilon(1e-6)
    mixed = accountant.compose(dp_event.GaussianDpEvent(1.0))
    alone = ExactAccountant().compose(dp_event.GaussianDpEvent(1.0))
    assert mixed.delta_bounds(2.0).lower == alone.delta_bounds(2.0).lower
    assert mixed.get_delta(2.0) <= (pure + alone.composition).delta_bounds(2).upper


def test_what_is_not_covered_is_not_forgotten() -> None:
    accountant = ExactAccountant().compose(EXPONENTIAL(0.25)).compose(dp_event.ZCDpEvent(2.0))
    may_be = ExactAccountant().compose(dp_event.GaussianDpEvent(0.5))  # 2-zCDP
    for epsilon in (0.0, 1.0, 4.0):
        assert may_be.delta_bounds(epsilon).lower <= accountant.get_delta(epsilon)
        assert accountant.delta_bounds(epsilon).lower == 0


@pytest.mark.parametrize("count", [1, 4])
def test_permute_and_flip_is_pure_differential_privacy(count: int) -> None:
    accountant = ExactAccountant().compose(PERMUTE_AND_FLIP(1.0), count)
    pure = count * ApproximateDP(1)
    for epsilon in (0.0, 0.5, 1.0, 3.0):
        assert accountant.get_delta(epsilon) == pure.delta_bounds(epsilon).upper
        assert accountant.delta_bounds(epsilon).lower == 0
    # two candidates of equal scores, and the same with a difference of twice the sensitivity
    flipped = (1 - math.exp(-1.0)) / 2
    assert flipped < ExactAccountant().compose(PERMUTE_AND_FLIP(1.0)).get_delta(0.0)


@pytest.mark.parametrize("kind", [EXPONENTIAL, PERMUTE_AND_FLIP], ids=["exponential", "permute and flip"])
def test_extreme_and_bad_epsilons(kind: Any) -> None:
    assert ExactAccountant().compose(kind(0.0)).get_epsilon(1e-9) == 0
    for epsilon in (1e-30, 5000.0):  # outside the limits of exactdp: moments alone
        assert 0 <= ExactAccountant().compose(kind(epsilon)).get_epsilon(1e-9) <= 1.01 * epsilon + 1e-9
    with pytest.raises(UnsupportedEventError, match=r"epsilon must be at least 0. Found -1"):
        ExactAccountant().compose(kind(-1.0))
    with pytest.raises(UnsupportedEventError, match="epsilon must be a finite number"):
        ExactAccountant().compose(kind(math.inf))
