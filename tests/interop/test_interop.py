"""The dp_accounting bridge: their conformance suite, every event against closed forms or their own accountant, the export."""

from __future__ import annotations

import itertools
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attr
import numpy as np
import pytest

import exactdp
from exactdp import (
    ApproximateDP,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    InvalidInputError,
    Outcomes,
    RandomizedResponse,
)
from exactdp.guarantees.gaussian_estimates import gaussian_delta
from exactdp.guarantees.zcdp import zcdp_delta, zcdp_epsilon

pytest.importorskip("dp_accounting")

from dp_accounting import (
    calibrate_dp_mechanism,
    dp_event,
    mechanism_calibration,
    pld,
    privacy_accountant_test,
    rdp,
)
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.privacy_accountant import NeighboringRelation, UnsupportedEventError

from exactdp.interop import dp_events as interop
from exactdp.interop import pld as export
from exactdp.interop.dp_accounting import DiscreteGaussianDpEvent, ExactAccountant
from exactdp.interop.pld import to_pld

ADD = NeighboringRelation.ADD_OR_REMOVE_ONE
REPLACE = NeighboringRelation.REPLACE_ONE
SPECIAL = NeighboringRelation.REPLACE_SPECIAL


class TestConformance(privacy_accountant_test.PrivacyAccountantTest):
    """dp_accounting's own suite."""

    def _make_test_accountants(self) -> list[ExactAccountant]:
        return [ExactAccountant(), *(ExactAccountant(neighboring_relation=r) for r in NeighboringRelation)]


def _composed(event: Any, relation: Any = ADD, count: int = 1) -> ExactAccountant:
    accountant = ExactAccountant(relation)
    accountant.compose(event, count)
    return accountant


def test_ten_discrete_gaussians() -> None:
    accountant = _composed(dp_event.SelfComposedDpEvent(DiscreteGaussianDpEvent(sigma=1.0), 10))
    assert round(accountant.get_epsilon(1e-10), 9) == 24.678464457
    assert accountant.composition == 10 * DiscreteGaussian(1)
    low, high = accountant.epsilon_bounds(1e-10)
    assert low <= high < low + 1e-9
    assert _composed(dp_event.GaussianDpEvent(1.0), count=10).get_epsilon(1e-10) == pytest.approx(24.570, abs=1e-3)


EVENTS: list[tuple[Any, Any, Composition]] = [
    (dp_event.GaussianDpEvent(1.5), ADD, Composition([Gaussian(sigma=1.5)])),
    (dp_event.GaussianDpEvent(1.5), SPECIAL, Composition([Gaussian(sigma=1.5)])),
    (dp_event.GaussianDpEvent(1.5), REPLACE, Composition([Gaussian(sigma=1.5, sensitivity=2)])),
    (dp_event.DiscreteLaplaceDpEvent(0.3, 2), ADD, Composition([DiscreteLaplace(1 / Fraction(0.3), 2)])),
    (dp_event.DiscreteLaplaceDpEvent(0.3, 2), SPECIAL, Composition([DiscreteLaplace(1 / Fraction(0.3), 2)])),
    (
        dp_event.RandomizedResponseDpEvent(0.25, 4),
        REPLACE,
        Composition([RandomizedResponse(noise="1/4", categories=4)]),
    ),
    (
        dp_event.RandomizedResponseDpEvent(0.25, 4),
        SPECIAL,
        Composition([Outcomes(["13/16", "3/16"], ["1/4", "3/4"])]),
    ),
]


@pytest.mark.parametrize(("event", "relation", "expected"), EVENTS, ids=lambda x: str(x)[:40])
def test_events_are_the_mechanisms_and_agree_with_the_pld_accountant(
    event: Any, relation: Any, expected: Composition
) -> None:
    ours = _composed(event, relation)
    assert ours.composition == expected
    theirs = pld.PLDAccountant(relation, value_discretization_interval=1e-4).compose(event)
    for epsilon in (0.0, 0.5, 1.0, 2.5):
        low, high = ours.delta_bounds(epsilon)
        assert low <= high <= low * (1 + 1e-9) + 1e-300
        # theirs is pessimistic: rounding losses up by at most an interval
        assert high - 1e-13 <= theirs.get_delta(epsilon) <= ours.get_delta(epsilon - 1e-4) + 1e-13
    if ours.get_delta(0.0) > 1e-6:
        assert ours.get_epsilon(1e-6) <= theirs.get_epsilon(1e-6) + 1e-9
        assert theirs.get_epsilon(1e-6) <= ours.get_epsilon(1e-6) + 2e-4


@pytest.mark.parametrize("relation", list(NeighboringRelation))
def test_discrete_gaussian_against_their_distribution(relation: Any) -> None:
    event = DiscreteGaussianDpEvent(sigma=1.3, sensitivity=2.0, dimension=1)
    ours = _composed(event, relation)
    assert ours.composition == Composition([DiscreteGaussian(sigma=1.3, sensitivity=2)])
    theirs = privacy_loss_distribution.from_discrete_gaussian_mechanism(1.3, 2)
    for epsilon in (0.0, 0.7, 2.0, 5.0):
        assert ours.get_delta(epsilon) - 1e-13 <= theirs.get_delta_for_epsilon(epsilon)
        assert theirs.get_delta_for_epsilon(epsilon) <= ours.get_delta(epsilon - 1e-4) + 1e-13


def test_gaussian_closed_form_and_large_counts() -> None:
    accountant = _composed(dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(1000.0), 10**6))
    accountant.compose(dp_event.NoOpDpEvent())
    assert accountant.get_delta(3.0) == pytest.approx(gaussian_delta(1, 3), rel=1e-9)
    many = _composed(dp_event.SelfComposedDpEvent(DiscreteGaussianDpEvent(1e6), 10**12))
    assert many.get_delta(3.0) == pytest.approx(gaussian_delta(1, 3), rel=1e-6)
    beyond = _composed(dp_event.GaussianDpEvent(1e8), count=10**16)  # more than a Composition holds: by moments
    assert gaussian_delta(1, 3) <= beyond.get_delta(3.0) <= zcdp_delta("1/2", 3) * (1 + 1e-9)


def test_nested_compositions_and_the_ledger() -> None:
    gaussian, laplace = dp_event.GaussianDpEvent(4.0), dp_event.DiscreteLaplaceDpEvent(0.5, 1)
    nested = dp_event.ComposedDpEvent(
        [gaussian, dp_event.SelfComposedDpEvent(dp_event.ComposedDpEvent([laplace, gaussian]), 3)]
    )
    accountant = ExactAccountant()
    assert accountant.composition is None
    assert isinstance(accountant.ledger, dp_event.NoOpDpEvent)
    assert accountant.compose(nested, 2) is accountant
    assert accountant.composition == 8 * Gaussian(16) + 6 * DiscreteLaplace(2)
    assert accountant.ledger == dp_event.SelfComposedDpEvent(nested, 2)
    accountant.compose(gaussian)
    assert accountant.composition == 9 * Gaussian(16) + 6 * DiscreteLaplace(2)
    assert accountant.ledger == dp_event.ComposedDpEvent([dp_event.SelfComposedDpEvent(nested, 2), gaussian])


def test_randomized_response_counts() -> None:
    """dp_accounting 0.6.0 forgets the count here."""
    accountant = _composed(dp_event.RandomizedResponseDpEvent(0.5, 4), REPLACE, 10)
    assert accountant.composition == 10 * RandomizedResponse(noise="1/2", categories=4)
    assert accountant.get_delta(1.0) > 0.93


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (dp_event.GaussianDpEvent(0.0), ADD),
        (DiscreteGaussianDpEvent(0.0), ADD),
        (dp_event.DiscreteLaplaceDpEvent(0.0, 1), ADD),
        (dp_event.RandomizedResponseDpEvent(0.0, 2), REPLACE),
        (dp_event.NonPrivateDpEvent(), ADD),
    ],
)
def test_no_noise_reveals_everything(event: Any, relation: Any) -> None:
    accountant = ExactAccountant(relation).compose(dp_event.NoOpDpEvent()).compose(event)
    assert accountant.get_epsilon(0.5) == math.inf
    assert accountant.delta_bounds(10.0) == (1.0, 1.0)
    with pytest.raises(InvalidInputError, match="reveals everything"):
        _ = accountant.composition


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (dp_event.RandomizedResponseDpEvent(0.0, 1), REPLACE),
        (dp_event.RandomizedResponseDpEvent(1.0, 5), SPECIAL),
        (dp_event.DiscreteLaplaceDpEvent(1.0, 0), ADD),
        (DiscreteGaussianDpEvent(1.0, 0.9), ADD),
        (dp_event.ZCDpEvent(0.0), ADD),
    ],
)
def test_what_reveals_nothing(event: Any, relation: Any) -> None:
    accountant = _composed(event, relation)
    assert accountant.composition is None
    assert accountant.get_epsilon(0) == 0 == accountant.get_delta(0)


@pytest.mark.parametrize(
    ("event", "relation", "text"),
    [
        (dp_event.LaplaceDpEvent(1.0), REPLACE, "for LaplaceDpEvent. Found REPLACE_ONE"),
        (dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(1.0)), REPLACE, "for PoissonSampledDpEvent"),
        (dp_event.PoissonSampledDpEvent(1.1, dp_event.GaussianDpEvent(1.0)), ADD, "sampling_probability must be"),
        (dp_event.PoissonSampledDpEvent(0.1, dp_event.ZCDpEvent(1.0)), ADD, "no mechanism for ZCDpEvent on a sample"),
        (
            dp_event.PoissonSampledDpEvent(0.1, dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(1.0), 2)),
            *(ADD, "a composition on one sample is not taken apart"),
        ),
        (dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.4]), ADD, "add up to 1"),
        (dp_event.RandomizedResponseDpEvent(0.5, 2), ADD, "REPLACE_ONE or REPLACE_SPECIAL"),
        (dp_event.DiscreteLaplaceDpEvent(0.5, 1), REPLACE, "ADD_OR_REMOVE_ONE or REPLACE_SPECIAL"),
        (dp_event.DiscreteLaplaceDpEvent(0.5, 1.5), ADD, "sensitivity must be a whole number"),
        (dp_event.GaussianDpEvent(-1.0), ADD, "noise_multiplier must be at least 0"),
        (dp_event.GaussianDpEvent(math.nan), ADD, "finite"),
        (dp_event.ZCDpEvent(-0.5), ADD, "rho must be at least 0"),
        (dp_event.RandomizedResponseDpEvent(1.5, 2), REPLACE, "between 0 and 1"),
        (DiscreteGaussianDpEvent(1.0, 1.0, 0), ADD, "dimension must be"),
        (dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(1.0), -1), ADD, "count must be"),
        (dp_event.GaussianDpEvent("1"), ADD, "must be a number"),
    ],
    ids=lambda x: str(x)[:50],
)
def test_refusals_name_the_subevent(event: Any, relation: Any, text: str) -> None:
    accountant = _composed(dp_event.GaussianDpEvent(2.0), relation)
    whole = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(1.0), dp_event.ComposedDpEvent([event])])
    details = accountant._maybe_compose(whole, 1, False)
    assert details.invalid_event is event
    assert text in details.error_message
    assert not accountant.supports(whole)
    before = accountant.composition
    with pytest.raises(UnsupportedEventError, match="caused by subevent"):
        accountant.compose(whole)
    assert accountant.composition == before
    assert accountant.ledger == dp_event.GaussianDpEvent(2.0)


def test_relations_are_those_of_the_pld_accountant() -> None:
    events = [
        dp_event.GaussianDpEvent(1.0),
        dp_event.DiscreteLaplaceDpEvent(0.5, 1),
        dp_event.RandomizedResponseDpEvent(0.5, 3),
    ]
    for event, relation in itertools.product(events, NeighboringRelation):
        assert ExactAccountant(relation).supports(event) == pld.PLDAccountant(relation).supports(event)


# --- many dimensions


def _shapes(square: int, parts: int, largest: int) -> list[list[int]]:
    """All lists of at most `parts` decreasing shifts whose squares add up to at most `square`."""
    found: list[list[int]] = [[]]
    if parts:
        for first in range(1, largest + 1):
            if first * first <= square:
                found += [[first, *rest] for rest in _shapes(square - first * first, parts - 1, first)]
    return found


@pytest.mark.parametrize("dimension", [1, 2, 3, None])
@pytest.mark.parametrize("sensitivity", [1.0, 1.5, math.sqrt(2), math.sqrt(3), 2.0, math.sqrt(5), 3.0])
def test_discrete_gaussian_in_many_dimensions_covers_every_shift(sensitivity: float, dimension: int | None) -> None:
    accountant = _composed(DiscreteGaussianDpEvent(0.8, sensitivity, dimension))
    square = round(sensitivity**2) if sensitivity != 1.5 else 2
    exact = dimension == 1 or square < 4
    shapes = _shapes(square, dimension or 12, 5)
    for epsilon in (0.0, 1.0, 3.0):
        worst = max(
            Composition([DiscreteGaussian(sigma=0.8, sensitivity=d) for d in shape]).delta_bounds(epsilon).lower
            for shape in shapes
            if shape
        )
        assert accountant.get_delta(epsilon) >= worst
        if exact:
            assert accountant.get_delta(epsilon) == pytest.approx(worst, rel=1e-9)
    if not exact:
        with pytest.raises(InvalidInputError, match="Renyi"):
            _ = accountant.composition


@pytest.mark.parametrize("rate", [0.1, 1.0, 3.0])
def test_discrete_laplace_in_many_dimensions_is_worst_in_one(rate: float) -> None:
    scale = 1 / Fraction(rate)
    for shape in ([1, 1], [2, 1], [1, 1, 1], [3, 2]):
        parts = Composition([DiscreteLaplace(scale, d) for d in shape])
        whole = _composed(dp_event.DiscreteLaplaceDpEvent(rate, sum(shape)))
        for epsilon in np.linspace(0, rate * sum(shape), 7)[:-1]:
            assert parts.delta_bounds(Fraction(epsilon)).lower <= whole.get_delta(float(epsilon)) * (1 + 1e-12)


# --- Renyi divergences only


def test_zcdp_is_the_optimal_conversion() -> None:
    accountant = _composed(dp_event.ZCDpEvent(0.125), count=4)
    for epsilon in (-1.0, 0.0, 1.0, 5.0, 40.0):
        assert accountant.get_delta(epsilon) == pytest.approx(zcdp_delta("1/2", epsilon), rel=1e-12)
    for delta in (1e-3, 1e-10, 1e-300):
        assert accountant.get_epsilon(delta) == pytest.approx(zcdp_epsilon("1/2", Fraction(delta)), rel=1e-12)
    shifted = accountant.compose(dp_event.ZCDpEvent(0.0, 0.75))
    assert shifted.get_delta(5.75) == pytest.approx(zcdp_delta("1/2", 5), rel=1e-12)
    assert shifted.get_epsilon(0.0) == math.inf
    assert shifted.get_epsilon(1.0) == 0 == shifted.get_delta(math.inf)
    assert shifted.delta_bounds(1.0).lower == 0


def test_zcdp_is_no_gaussian() -> None:
    """A coin that is 1/2-zCDP has a larger delta than the Gaussian with mu = 1; the moment bound covers it."""
    loss, epsilon = 6.0, 5.8
    p = math.exp(-((loss - 0.5) ** 2) / 2) / 2
    q = p * math.exp(-loss)
    for one, two in ((p, q), (q, p)):
        for a in np.geomspace(0.001, 1000, 2000) + 1:
            logs = [a * math.log(x) + (1 - a) * math.log(y) for x, y in ((one, two), (1 - one, 1 - two))]
            assert float(np.logaddexp(*logs)) <= a * (a - 1) / 2
    delta = p - math.exp(epsilon) * q
    assert 2 * gaussian_delta(1, epsilon) < delta <= _composed(dp_event.ZCDpEvent(0.5)).get_delta(epsilon)


def test_mixtures_with_zcdp() -> None:
    known = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(2.0), dp_event.RandomizedResponseDpEvent(0.01, 2)])
    accountant = ExactAccountant(SPECIAL).compose(known).compose(dp_event.ZCDpEvent(0.5))
    # a Gaussian of mu = 1 is one mechanism with rho = 1/2
    witness = Composition([Gaussian(4), Gaussian(1), Outcomes(["0.995", "0.005"], ["1/2", "1/2"])])
    alone = Composition([Gaussian(4), Outcomes(["0.995", "0.005"], ["1/2", "1/2"])])
    for epsilon in (0.0, 2.0, 6.0, 12.0):
        low, high = accountant.delta_bounds(epsilon)
        assert witness.delta_bounds(epsilon).lower <= high <= 1
        assert low <= alone.delta(epsilon) * (1 + 1e-6)
        assert low >= alone.delta_bounds(epsilon).lower * (1 - 1e-6)
    for delta in (0.1, 1e-5, 1e-20):
        low, high = accountant.epsilon_bounds(delta)
        assert low <= witness.epsilon(delta) <= high
        assert accountant.get_delta(high) <= delta * (1 + 1e-9)
    theirs = rdp.RdpAccountant(neighboring_relation=SPECIAL).compose(known).compose(dp_event.ZCDpEvent(0.5))
    assert accountant.get_epsilon(1e-5) <= theirs.get_epsilon(1e-5) * (1 + 1e-9)


def test_noise_outside_the_limits_of_exactdp_is_bounded_by_moments() -> None:
    tiny = _composed(dp_event.GaussianDpEvent(1e-4))
    assert tiny.get_epsilon(1e-5) == pytest.approx(zcdp_epsilon(Fraction(1, 2) / Fraction(1e-4) ** 2, Fraction(1e-5)))
    assert _composed(DiscreteGaussianDpEvent(0.01)).get_epsilon(1e-5) > 5000
    wide = _composed(dp_event.DiscreteLaplaceDpEvent(1e-4, 5000))
    assert Composition([DiscreteLaplace(8, sensitivity=4)]).delta(0.25) < wide.get_delta(0.25) < 0.5
    assert _composed(dp_event.DiscreteLaplaceDpEvent(2000.0, 1)).get_epsilon(1e-9) == pytest.approx(2000)
    assert 1e-12 < _composed(dp_event.GaussianDpEvent(1e11)).get_delta(0.0) < 1e-9


# --- EpsilonDeltaDpEvent, of newer versions


@attr.s(frozen=True, slots=True, auto_attribs=True)
class _EpsilonDelta(dp_event.DpEvent):
    epsilon: float
    delta: float


def test_black_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    make: Callable[..., Any] = getattr(dp_event, "EpsilonDeltaDpEvent", _EpsilonDelta)
    monkeypatch.setitem(interop._SHARES, make, interop._black_box)
    accountant = _composed(make(0.5, 2.0**-20), count=3)
    assert accountant.composition == 3 * ApproximateDP("1/2", Fraction(1, 2**20))
    assert accountant.get_epsilon(1e-6) == math.inf
    assert accountant.get_delta(math.inf) == pytest.approx(3 * 2.0**-20, rel=1e-5)
    assert _composed(make(0.5, 1.0)).get_delta(3.0) == 1
    mixed = accountant.compose(dp_event.ZCDpEvent(0.25))
    witness = 3 * ApproximateDP("1/2", Fraction(1, 2**20)) + Gaussian(2)
    for epsilon in (0.0, 1.0, 4.0, math.inf):
        assert mixed.get_delta(epsilon) >= witness.delta_bounds(epsilon).lower
    assert mixed.get_epsilon(2e-6) == math.inf
    assert mixed.get_epsilon(1e-5) >= witness.epsilon_bounds(1e-5).lower
    assert _composed(make(5000.0, 0.0)).get_epsilon(1e-9) == pytest.approx(5000)


# --- calibration and other uses of an accountant


@pytest.mark.parametrize("make", [DiscreteGaussianDpEvent, dp_event.GaussianDpEvent])
@pytest.mark.parametrize("bracket", [None, mechanism_calibration.ExplicitBracketInterval(0.5, 20.0)])
def test_calibration(make: Callable[[float], Any], bracket: Any) -> None:
    def event(noise: float) -> Any:
        return dp_event.SelfComposedDpEvent(make(noise), 10)

    noise = calibrate_dp_mechanism(ExactAccountant, event, 2.0, 1e-6, bracket, tol=1e-6)
    assert _composed(event(noise)).get_epsilon(1e-6) <= 2.0
    assert _composed(event(noise - 3e-6)).get_epsilon(1e-6) > 2.0


def test_events_survive_named_tuples_and_pickles() -> None:
    event = DiscreteGaussianDpEvent(2.5, 3.0, 1)
    assert dp_event.DpEvent.from_named_tuple(event.to_named_tuple()) == event
    assert pickle.loads(pickle.dumps(event)) == event


def test_doubles_are_exact() -> None:
    assert _composed(dp_event.GaussianDpEvent(0.1)).composition == Composition([Gaussian(Fraction(0.1) ** 2)])
    assert _composed(DiscreteGaussianDpEvent(np.float32(1.1))).composition == Composition(
        [DiscreteGaussian(Fraction(float(np.float32(1.1))) ** 2)]
    )
    with pytest.raises(ValueError, match="target_delta"):
        ExactAccountant().get_epsilon(math.nan)


def test_without_dp_accounting() -> None:
    code = (
        "import sys, exactdp; assert 'dp_accounting' not in sys.modules; sys.modules['dp_accounting'] = None\n"
        "try: import exactdp.interop.dp_accounting\nexcept exactdp.ExactDPError as e: print(type(e).__name__, e)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.startswith("MissingExtraError The dp_accounting accountant needs")
    assert "exactdp[interop]" in found


# --- export

EXPORTED = [
    10 * DiscreteGaussian(1),
    3 * DiscreteGaussian(2, sensitivity=3),
    Composition([Gaussian(4)]),
    2 * RandomizedResponse("1/3") + ApproximateDP("1/2", "1e-6"),
    5 * Outcomes(["1/2", "1/2"], ["1/4", "3/4"]),
    Composition([DiscreteLaplace(2, sensitivity=3)]),
]


@pytest.mark.parametrize("composition", EXPORTED, ids=str)
def test_exported_distributions_are_pessimistic_and_close(composition: Composition) -> None:
    interval = 0.01
    exported = to_pld(composition, interval)
    epsilons = np.unique(np.concatenate([np.linspace(-2, 9, 301), np.arange(-50, 400) * interval])).tolist()
    lower, upper = composition.delta_bounds([Fraction(e) for e in epsilons])
    found = np.array([exported.get_delta_for_epsilon(e) for e in epsilons])
    assert np.all(found >= lower)
    # the loss moves by at most one interval
    before = composition.delta([Fraction(e) - Fraction(interval) for e in epsilons])
    assert np.all(found <= before * (1 + 1e-9) + 1e-19)
    # at multiples of the interval nothing is lost
    places = np.array([math.isclose(e / interval, round(e / interval), abs_tol=1e-9) for e in epsilons])
    assert np.all(found[places] <= upper[places] * (1 + 1e-9) + 1e-15)
    for delta in (1e-3, 1e-5):
        top = exported.get_epsilon_for_delta(delta)
        exact = max(composition.epsilon_bounds(Fraction(delta)).lower, 0.0)
        assert exact <= top * (1 + 1e-9) + 1e-12
        assert top <= exact + interval
    probabilities = exported._pmf_remove._probs
    assert np.all(probabilities >= 0)
    assert -1e-12 <= probabilities.sum() + exported._pmf_remove._infinity_mass - 1 <= 1e-9


def test_exported_distributions_compose() -> None:
    one, two = 3 * DiscreteGaussian(2), 2 * RandomizedResponse(1) + ApproximateDP("1/2", "1e-7")
    both = to_pld(one, 5e-3).compose(to_pld(two, 5e-3))
    twice = to_pld(one, 5e-3).self_compose(2)
    for epsilon in (0.0, 1.0, 3.0, 6.0):
        low, high = (one + two).delta_bounds(epsilon)
        assert low <= both.get_delta_for_epsilon(epsilon) <= high * 1.01
        low, high = (2 * one).delta_bounds(epsilon)
        assert low <= twice.get_delta_for_epsilon(epsilon) <= high * 1.01
    accountant_pld = privacy_loss_distribution.from_gaussian_mechanism(2.0, value_discretization_interval=5e-3)
    mixed = to_pld(one, 5e-3).compose(accountant_pld)
    low, high = (one + Gaussian(4)).delta_bounds(2)
    assert low <= mixed.get_delta_for_epsilon(2.0) <= high * 1.01


def test_export_is_rounded_up_where_chords_are_not_convex(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any choice of grid points is safe, also one whose chords turn the wrong way by the width of our bounds."""
    composition = 3 * DiscreteGaussian(2)
    monkeypatch.setattr(export, "_convex", lambda deltas, step: np.arange(len(deltas)))
    exported = to_pld(composition, 0.01)
    for epsilon in np.linspace(0, 9, 40).tolist():
        assert exported.get_delta_for_epsilon(epsilon) >= composition.delta_bounds(Fraction(epsilon)).lower


def test_export_refusals() -> None:
    with pytest.raises(InvalidInputError, match="larger interval"):
        to_pld(Composition([Gaussian(1)]), 1e-9)
    with pytest.raises(InvalidInputError, match="interval must be positive"):
        to_pld(Composition([Gaussian(1)]), 0.0)
    with pytest.raises(InvalidInputError, match="tail_mass"):
        to_pld(Composition([ApproximateDP(1, "1/2")]), 0.1, tail_mass=0.5)
    assert not hasattr(exactdp, "interop") or "interop" not in exactdp.__all__
