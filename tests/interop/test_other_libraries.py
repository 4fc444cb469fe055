"""Histories of Opacus and measurements of OpenDP as compositions, and dp_accounting's own test cases with our accountant."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from exactdp import Composition, DiscreteGaussian, DiscreteLaplace, Gaussian, GaussianMixture, Laplace, PoissonSampled
from exactdp.errors import InvalidInputError
from exactdp.interop.opacus import from_opacus
from exactdp.interop.opendp_measurements import from_opendp

INTEGER = {"__function__": "atom_domain", "__kwargs__": {"T": "i64"}}
REAL = {"__function__": "atom_domain", "__kwargs__": {"T": "f64"}}
VECTOR = {"__function__": "vector_domain", "__kwargs__": {"atom_domain": INTEGER, "size": None}}


def _made(name: str, domain: Any, scale: Any) -> dict[str, Any]:
    return {"__function__": name, "__kwargs__": {"input_domain": domain, "scale": scale}}


def test_an_opacus_history() -> None:
    history = [(1.1, 0.01, 30), (1.1, 0.01, 12), (0.8, 0.5, 1), (2.0, 0.1, 0)]
    expected = Composition({PoissonSampled(Gaussian("1.21"), "0.01"): 42, PoissonSampled(Gaussian("0.64"), "0.5"): 1})
    assert from_opacus(history) == expected
    assert from_opacus([list(entry) for entry in history]) == expected


@pytest.mark.parametrize(
    ("history", "text"),
    [
        ([(1.0, 0.1)], r"must be \(noise_multiplier, sample_rate, num_steps\). Found \(1.0, 0.1\) at \[0\]"),
        ([(0, 0.1, 5)], r"noise_multiplier must be positive .* Found 0 at \[0\]"),
        ([(1, 2, 5)], "rate must be .* Found 2"),
        ([(1, 0.1, 2.5)], r"num_steps at \[0\] must be a whole number"),
        ("history", "must be a list"),
        ([], "at least one mechanism"),
    ],
)
def test_histories_that_are_refused(history: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        from_opacus(history)


def test_measurements_of_opendp_live_and_serialised() -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    from opendp.mod import serialize

    one = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64"), scale=2.5)
    two = dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=0.1)
    real = dp.m.make_laplace(dp.atom_domain(T="f64", nan=False), dp.absolute_distance(T="f64"), scale=2.5)
    both = DiscreteGaussian("25/4") + DiscreteLaplace(Fraction(0.1))
    assert from_opendp([one, two]) == from_opendp([serialize(one), serialize(two)]) == both
    assert from_opendp(dp.c.make_composition([one, one])) == 2 * DiscreteGaussian("25/4")
    assert from_opendp(serialize(dp.c.make_composition([one, one]))) == 2 * DiscreteGaussian("25/4")
    assert from_opendp(two, distance=3) == Composition([DiscreteLaplace(Fraction(0.1), 3)])
    with pytest.raises(InvalidInputError, match=r"on integers only .* Found f64"):
        from_opendp(real)


@pytest.mark.parametrize(
    ("measurement", "distance", "text"),
    [
        ("{", 1, "must be an object of its or its JSON"),
        (3, 1, "must say how it was made"),
        ({"__function__": "make_gaussian"}, 1, "must name its function and arguments"),
        (_made("make_quantile", INTEGER, 1.0), 1, "make_composition of them are known. Found make_quantile"),
        (_made("make_laplace", REAL, 1.0), 1, "Found f64"),
        (_made("make_laplace", INTEGER, 0.0), 1, "scale must be positive"),
        (_made("make_gaussian", VECTOR, 1.0), 2, "must be 1, 2 or 3.* Found distance 2"),
        (_made("make_gaussian", INTEGER, 1.0), "1/2", "distance must be a whole number"),
    ],
)
def test_measurements_that_are_refused(measurement: Any, distance: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        from_opendp(measurement, distance)


def test_a_gaussian_on_one_number_moves_by_the_distance() -> None:
    assert from_opendp(_made("make_gaussian", INTEGER, 2.0), 3) == Composition([DiscreteGaussian(4, 3)])


dp_event = pytest.importorskip("dp_accounting.dp_event")
SAMPLED = dp_event.PoissonSampledDpEvent(0.2, dp_event.GaussianDpEvent(0.5))
MIXTURES = [
    (dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.2, 0.6, 0.2]), 3),
    (dp_event.MixtureOfGaussiansDpEvent(2.0, [0.0, 2.0, 3.0], [0.33, 0.34, 0.33]), 2),
]
THEIR_CASES = [  # events, epsilon, delta, tolerances of delta and of epsilon: dp_accounting 0.6.0, pld_privacy_accountant_test.py
    ([(SAMPLED, 1), (SAMPLED, 2)], 1, 0.15594, 1e-3, 1e-3),
    ([(dp_event.SelfComposedDpEvent(SAMPLED, 3), 1)], 1, 0.15594, 1e-3, 1e-3),
    ([(dp_event.LaplaceDpEvent(1), 3), (dp_event.LaplaceDpEvent(2), 2)], 4, 1e-14, 1e-6, 1e-6),
    ([(dp_event.DiscreteLaplaceDpEvent(1, 1), 3), (dp_event.DiscreteLaplaceDpEvent(0.5, 1), 2)], 4, 0.0, 1e-6, 1e-6),
    (MIXTURES, 17.193115, 1e-6, 1e-12, 1e-6),
]


@pytest.mark.parametrize(("events", "epsilon", "delta", "close_delta", "close_epsilon"), THEIR_CASES)
@pytest.mark.filterwarnings("ignore::exactdp.AccuracyWarning")
def test_their_cases(events: Any, epsilon: float, delta: float, close_delta: float, close_epsilon: float) -> None:
    from exactdp.interop.dp_accounting import ExactAccountant

    accountant = ExactAccountant()
    for event, count in events:
        accountant.compose(event, count)
    assert accountant.get_delta(epsilon) == pytest.approx(delta, abs=close_delta)
    if delta == 1e-14:  # 0 in truth, 1e-14 by their truncation
        assert accountant.get_epsilon(0) == epsilon
    else:
        assert accountant.get_epsilon(delta) == pytest.approx(epsilon, abs=close_epsilon)


def test_events_become_these_mechanisms() -> None:
    from exactdp.interop.dp_accounting import ExactAccountant

    accountant = ExactAccountant()
    accountant.compose(dp_event.PoissonSampledDpEvent(0.25, dp_event.GaussianDpEvent(2.0)), 7)
    accountant.compose(dp_event.PoissonSampledDpEvent(1.0, dp_event.LaplaceDpEvent(0.5)))
    accountant.compose(dp_event.PoissonSampledDpEvent(0.0, dp_event.GaussianDpEvent(1.0)))
    accountant.compose(dp_event.PoissonSampledDpEvent(0.5, dp_event.DiscreteLaplaceDpEvent(0.5, 1)))
    accountant.compose(dp_event.PoissonSampledDpEvent(0.5, dp_event.LaplaceDpEvent(2.0)))
    accountant.compose(dp_event.MixtureOfGaussiansDpEvent(2.0, [0.0, 1.0], [0.75, 0.25]))
    assert accountant.composition == (
        7 * PoissonSampled(Gaussian(4), "1/4")
        + Laplace("1/2")
        + PoissonSampled(DiscreteLaplace(2), "1/2")
        + PoissonSampled(Laplace(2), "1/2")
        + GaussianMixture(4, [0, 1], ["3/4", "1/4"])
    )
    accountant.compose(dp_event.PoissonSampledDpEvent(0.5, dp_event.GaussianDpEvent(0.0)))
    assert accountant.get_delta(1.0) == 1
