"""Every mechanism's loss against its definition: the two output distributions, summed term by term in 60 digits."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import PHASE_ERROR, UNIT
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.gaussian_mixture import GaussianMixture
from exactdp.mechanisms.integer_noise import IntegerNoise
from exactdp.mechanisms.loss import Loss
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.poisson_sampled import PoissonSampled
from exactdp.mechanisms.randomized_response import RandomizedResponse
from exactdp.mechanisms.skellam import Skellam

DIGITS = 60
Pairs = list[tuple[mpmath.mpf, mpmath.mpf]]

FINITE: list[Mechanism] = [
    DiscreteLaplace(1),
    DiscreteLaplace("7/3", 5),
    DiscreteLaplace("1/9"),
    DiscreteLaplace.from_epsilon("0.3", 3),
    DiscreteLaplace(8, 24),
    RandomizedResponse(1),
    RandomizedResponse("1/50"),
    RandomizedResponse("3.5", 7),
    RandomizedResponse(noise="1/2", categories=4),
    RandomizedResponse(noise=0.999),
    RandomizedResponse(12, 1000),
    ApproximateDP(1),
    ApproximateDP("0.3", "1e-6"),
    ApproximateDP(0, "1/7"),
    ApproximateDP(0),
    ApproximateDP(5, 0.9),
    IntegerNoise(["1/8", "3/8", "1/2"]),
    IntegerNoise(["1/10", "1/5", "2/5", "1/5", "1/10"], 2, first=-2),
    Outcomes(["1/2", "1/2"], ["1/2", "1/2"]),
    Outcomes(["2/3", "1/3"], ["1/3", "2/3"]),
    Outcomes(["1/4", "1/4", "1/2", 0], ["1/16", "1/2", "1/8", "5/16"]),  # powers of 2 and 4
    Outcomes(["4/7", "2/7", "1/7"], ["1/7", "2/7", "4/7"]),
    Outcomes([0.5, 0.2, 0.3], [0.1, 0.3, 0.6]),  # no common step
    Outcomes([0.5, 0.2, 0.2, 0.1, 0], [0.1, 0.3, 0.1, 0, 0.5]),
    Outcomes([0.1, 0.2, 0.3, 0.4, 0, 0], [0.2, 0.3, 0.4, 0.05, 0, 0.05]),
]
TILTS = [Fraction(0), Fraction(-1, 2), Fraction(3, 2), Fraction(-9, 4)]
MOMENTS = [Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 3), Fraction(-7, 2), Fraction(40)]


def _number(value: Fraction | int) -> mpmath.mpf:
    value = Fraction(value)
    return mpmath.mpf(value.numerator) / value.denominator


@cache
def _pairs(mechanism: Mechanism) -> Pairs:
    """Both output distributions, outcome by outcome, from the definition of the mechanism."""
    with mpmath.workdps(DIGITS + 10):
        if isinstance(mechanism, DiscreteLaplace):
            D, reach = mechanism.sensitivity, math.ceil(170 * mechanism.scale)
            window = range(-reach, reach + D + 1)
            weights = {x: mpmath.exp(-abs(x) / _number(mechanism.scale)) for x in range(-reach - D, reach + D + 1)}
            total = mpmath.fsum(weights.values())
            return [(weights[x] / total, weights[x - D] / total) for x in window]
        if isinstance(mechanism, RandomizedResponse):
            k = mechanism.categories
            if mechanism.noise is None:
                odds = [mpmath.exp(_number(mechanism.epsilon or 0)), *([mpmath.mpf(1)] * (k - 1))]
            else:
                odds = [_number(mechanism.noise) / k] * k
                odds[0] += 1 - _number(mechanism.noise)
            truth, other = odds[0] / mpmath.fsum(odds), odds[1] / mpmath.fsum(odds)
            return [(truth, other), (other, truth), *([(other, other)] * (k - 2))]
        if isinstance(mechanism, ApproximateDP):
            delta, growth = _number(mechanism.delta), mpmath.exp(_number(mechanism.epsilon))
            high, low = (1 - delta) * growth / (1 + growth), (1 - delta) / (1 + growth)
            return [(delta, mpmath.mpf(0)), (high, low), (low, high), (mpmath.mpf(0), delta)]
        if isinstance(mechanism, IntegerNoise):
            pmf, none = [_number(p) for p in mechanism.pmf], [mpmath.mpf(0)] * mechanism.sensitivity
            return list(zip([*pmf, *none], [*none, *pmf], strict=True))
        assert isinstance(mechanism, Outcomes)
        return [(_number(a), _number(b)) for a, b in zip(mechanism.p, mechanism.q, strict=True)]


@cache
def _values(mechanism: Mechanism, backward: bool = False) -> dict[mpmath.mpf, mpmath.mpf]:
    """The finite losses in increasing order with their probabilities given that the loss is finite."""
    with mpmath.workdps(DIGITS):
        result: dict[mpmath.mpf, mpmath.mpf] = {}
        pairs = [(q, p) if backward else (p, q) for p, q in _pairs(mechanism)]
        found = sorted((mpmath.log(p / q), p) for p, q in pairs if p and q)
        last = None
        for value, mass in found:
            if last is None or value - last > mpmath.mpf(10) ** -(DIGITS - 15):
                last = value
            result[last] = result.get(last, 0) + mass
        total = mpmath.fsum(result.values())
        return {value: mass / total for value, mass in result.items()}


def _tilted_values(mechanism: Mechanism, tilt: Fraction, backward: bool) -> dict[mpmath.mpf, mpmath.mpf]:
    with mpmath.workdps(DIGITS):
        weighed = {x: p * mpmath.exp(_number(tilt) * x) for x, p in _values(mechanism, backward).items()}
        total = mpmath.fsum(weighed.values())
        return {x: w / total for x, w in weighed.items()}


def _middle(value: arb) -> mpmath.mpf:
    return mpmath.mpf(value.mid().str(DIGITS, radius=False))


def _assert_encloses(enclosure: arb, exact: mpmath.mpf, width: float = 1e-45) -> None:
    """The ball holds the exact value (but for the digits of the reference), and it is narrow."""
    size = 1 + abs(exact)
    assert abs(_middle(enclosure) - exact) <= _middle(enclosure.rad()) + size * 1e-48
    assert _middle(enclosure.rad()) <= size * width


def _steps(distance: mpmath.mpf, units: list[mpmath.mpf]) -> tuple[int, ...]:
    """Whole numbers n with sum n_j units_j = distance: any number of one unit, at most two of several."""
    if not units:
        assert abs(distance) < 1e-40
        return ()
    if len(units) == 1:
        n = int(mpmath.nint(distance / units[0]))
        assert abs(distance - n * units[0]) < 1e-40
        return (n,)
    for i in range(len(units)):
        for j in range(len(units)):
            for a, b in ((0, 0), (1, 0), (-1, 0), (1, -1)):
                if abs(distance - a * units[i] - b * units[j]) < 1e-40 and (i != j or not b):
                    result = [0] * len(units)
                    result[i] += a
                    result[j] += b
                    return tuple(result)
    raise AssertionError("no combination of the units")


def _directions(mechanism: Mechanism) -> list[tuple[bool, Loss]]:
    return [(False, mechanism.loss()), (True, mechanism.loss().reversed())]


SMOOTH: list[Mechanism] = [  # against their oracle in test_sampled.py
    GaussianMixture(1, [0, 1], ["1/2", "1/2"]),
    PoissonSampled(Gaussian(1), "1/100"),
]
UNBOUNDED: list[Mechanism] = [Skellam("5/2", 3)]  # against its oracle in test_skellam.py

finite_mechanisms = pytest.mark.parametrize("mechanism", FINITE, ids=str)


@finite_mechanisms
def test_lost_mass_and_ends(mechanism: Mechanism) -> None:
    with mpmath.workdps(DIGITS), precision(BITS):
        for backward, loss in _directions(mechanism):
            pairs = [(q, p) if backward else (p, q) for p, q in _pairs(mechanism)]
            _assert_encloses(ball(loss.lost), mpmath.fsum(p for p, q in pairs if not q))
            least, greatest = loss.ends
            values = list(_values(mechanism, backward))
            assert least is not None
            assert greatest is not None
            _assert_encloses(least, values[0])
            _assert_encloses(greatest, values[-1])


@finite_mechanisms
def test_moments_are_those_of_the_definition(mechanism: Mechanism) -> None:
    with mpmath.workdps(DIGITS), precision(BITS):
        for backward, loss in _directions(mechanism):
            for z in MOMENTS:
                direct = mpmath.log(
                    mpmath.fsum(p * mpmath.exp(_number(z) * x) for x, p in _values(mechanism, backward).items())
                )
                _assert_encloses(loss.log_moment(z), direct)
                above = mpmath.mpf(loss.log_moment_upper(float(z))) - direct
                room = 1e-12 * max(1, float(abs(direct)) / 10)
                slack = above if z.denominator & (z.denominator - 1) == 0 else above + room  # 1/3 is not a double
                assert 0 <= slack <= 2 * room


@finite_mechanisms
def test_the_likelihood_ratio_integrates_to_one(mechanism: Mechanism) -> None:
    with mpmath.workdps(DIGITS), precision(BITS):
        loss = mechanism.loss()
        total = loss.log_moment(Fraction(-1)).exp() * ball(1 - loss.lost) + ball(loss.reversed().lost)
        _assert_encloses(total, mpmath.mpf(1))


@finite_mechanisms
def test_rho_bounds_every_renyi_divergence(mechanism: Mechanism) -> None:
    with mpmath.workdps(DIGITS), precision(BITS):
        pairs = [(p, q) for p, q in _pairs(mechanism) if p or q]
        if not all(p and q for p, q in pairs):
            assert mechanism.rho == math.inf
            return
        assert isinstance(mechanism.rho, Fraction)
        for _, loss in _directions(mechanism):
            for order in (Fraction(9, 8), Fraction(2), Fraction(10)):
                renyi = loss.log_moment(order - 1) / (order - 1).numerator * (order - 1).denominator
                assert _middle(renyi) <= _number(mechanism.rho * order) + mpmath.mpf(10) ** -50
        greatest = max(abs(mpmath.log(p / q)) for p, q in pairs)
        assert abs(_number(mechanism.rho) - greatest**2 / 2) <= mpmath.mpf(10) ** -50 * (1 + greatest)


@finite_mechanisms
@pytest.mark.parametrize("tilt", TILTS, ids=str)
def test_tilted_loss(mechanism: Mechanism, tilt: Fraction) -> None:
    """Atoms, characteristic function within its stated error (phases perturbed as allowed), peak, mean and variance."""
    rng = np.random.default_rng(7)
    with mpmath.workdps(DIGITS):
        for backward, loss in _directions(mechanism):
            exact = _tilted_values(mechanism, tilt, backward)
            tilted = loss.tilted(tilt)
            anchor, units = _middle(tilted.anchor), [_middle(u) for u in tilted.units]
            rows = {_steps(x - anchor, units): p for x, p in exact.items()}
            assert len(rows) == len(exact)
            assert tilted.spread == 0
            v = np.concatenate(
                [rng.uniform(-math.pi, math.pi, (len(units), 5)), rng.normal(size=(len(units), 2)) * 1e-9], axis=1
            )
            log_cf, error = tilted.log_cf(v, np.zeros(v.shape[1]))
            assert log_cf.shape == error.shape == (7,)
            for column in range(7):
                for sign in (-1, 0, 1):
                    phases = [
                        mpmath.mpf(x) + sign * (3 * UNIT * abs(mpmath.mpf(x)) + PHASE_ERROR) for x in v[:, column]
                    ]
                    direct = mpmath.fsum(
                        p * mpmath.expj(mpmath.fsum(n * x for n, x in zip(row, phases, strict=True)))
                        for row, p in rows.items()
                    )
                    stated = mpmath.mpf(error[column])
                    assert abs(mpmath.exp(mpmath.mpmathify(log_cf[column])) - direct) <= stated * abs(direct)
                assert error[column] < 1e-11 / abs(np.exp(log_cf[column]))

            atoms = tilted.atoms(1e-20)
            assert (atoms is None) == (len(units) != 1)
            if atoms is not None:
                assert math.fsum(atoms.weights) + atoms.missing == pytest.approx(1, abs=1e-14)
                assert [(int(n),) for n in atoms.positions] == sorted(rows)
                for n, weight in zip(atoms.positions, atoms.weights, strict=True):
                    assert abs(mpmath.mpf(weight) / rows[(int(n),)] - 1) <= atoms.relative

            mean = mpmath.fsum(x * p for x, p in exact.items())
            variance = mpmath.fsum((x - mean) ** 2 * p for x, p in exact.items())
            size = max(abs(x) for x in exact)
            got = loss.mean_variance(float(tilt))
            assert abs(got[0] - mean) <= 1e-12 * (1 + size)
            assert abs(got[1] - variance) <= 1e-11 * (1 + size**2)
            assert loss.widest >= variance * (1 - mpmath.mpf(10) ** -12)


@finite_mechanisms
@pytest.mark.parametrize("tilt", TILTS, ids=str)
def test_the_peak_bounds_the_characteristic_function(mechanism: Mechanism, tilt: Fraction) -> None:
    rng = np.random.default_rng(8)
    for _, loss in _directions(mechanism):
        tilted = loss.tilted(tilt)
        assert (tilted.peak is None) == (not tilted.units)
        if tilted.peak is not None:
            v = rng.uniform(-math.pi, math.pi, (len(tilted.units), 501))
            v[tilted.peak.unit] = np.linspace(-math.pi, math.pi, 501)
            if len(tilted.units) > 1:
                v[:, ::2] *= np.arange(len(tilted.units))[:, None] == tilted.peak.unit
            log_cf, error = tilted.log_cf(v, np.zeros(v.shape[1]))
            phase = np.remainder(v[tilted.peak.unit] * tilted.peak.step + math.pi, 2 * math.pi) - math.pi
            bound = np.exp(tilted.peak.slack - tilted.peak.strength * phase**2)
            assert np.all(np.exp(log_cf.real) <= bound * (1 + error) + 1e-15)


def test_a_long_lattice() -> None:
    """600 steps: the characteristic function keeps its stated error."""
    noise, tilt = DiscreteLaplace(30, 600), Fraction(-3, 4)
    tilted = noise.loss().tilted(tilt)
    v = np.array([[1e-4, 0.3, -2.9]])
    log_cf, error = tilted.log_cf(v, np.zeros(v.shape[1]))
    with mpmath.workdps(40):
        a, q = 1 / mpmath.mpf(30), mpmath.exp(-1 / mpmath.mpf(30))
        masses = [(1 - q) / (1 + q) * q**x for x in range(601)]
        masses[0], masses[600] = 1 / (1 + q), q**600 / (1 + q)
        masses = [p * mpmath.exp(_number(tilt) * a * (600 - 2 * x)) for x, p in enumerate(masses)]
        origin = int(mpmath.nint((600 - _middle(tilted.anchor) / a) / 2))
        for column in range(3):
            phase = mpmath.mpf(v[0, column])
            direct = mpmath.fsum(p * mpmath.expj((origin - x) * phase) for x, p in enumerate(masses)) / mpmath.fsum(
                masses
            )
            gap = abs(mpmath.exp(mpmath.mpmathify(log_cf[column])) - direct)
            assert gap <= mpmath.mpf(error[column]) * abs(direct)


@pytest.mark.parametrize("noise", [DiscreteLaplace(1), DiscreteLaplace("7/3", 5), DiscreteLaplace("1/9")], ids=str)
def test_discrete_laplace_probabilities(noise: DiscreteLaplace) -> None:
    with mpmath.workdps(40):
        a = 1 / _number(noise.scale)
        total = mpmath.nsum(lambda x: mpmath.exp(-a * abs(x)), [-mpmath.inf, mpmath.inf])
        for x in (0, 1, -1, 2, 5, -9, 40):
            assert noise.pmf(x) == pytest.approx(float(mpmath.exp(-a * abs(x)) / total), rel=1e-13)
            above = mpmath.nsum(lambda y: mpmath.exp(-a * y), [abs(x) + (x <= 0), mpmath.inf]) / total
            assert noise.tail(x) == pytest.approx(float(above if x > 0 else 1 - above), rel=1e-13)
    assert noise.tail(1) + noise.tail(0) == 1


def test_epsilon_of_the_pure_mechanisms() -> None:
    assert DiscreteLaplace.from_epsilon("0.1", 3) == DiscreteLaplace(30, 3)
    assert DiscreteLaplace.from_epsilon(0.1, 3).epsilon == Fraction(1, 10)
    assert RandomizedResponse("1/3", 5).epsilon_upper == Fraction(1, 3)
    upper = RandomizedResponse(noise="1/2", categories=4).epsilon_upper
    with mpmath.workdps(DIGITS):
        assert 0 < _number(upper) - mpmath.log(5) < mpmath.mpf(10) ** -50


GAUSSIANS = [Gaussian(1), Gaussian("0.37", "2/3"), Gaussian(sigma=0.1, sensitivity=0.05), Gaussian(400, 3)]


@pytest.mark.parametrize("noise", GAUSSIANS, ids=str)
def test_gaussian_loss(noise: Gaussian) -> None:
    loss = noise.loss()
    assert loss.ends == (None, None)
    assert loss.reversed() is loss
    with mpmath.workdps(DIGITS), precision(BITS):
        assert loss.lost == 0
        s, D = _number(noise.sigma2), _number(noise.sensitivity)
        root, ratio = mpmath.sqrt(s), D * D / s
        for z in (Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 4), Fraction(-7, 2)):

            def integrand(y: mpmath.mpf, z: Fraction = z) -> mpmath.mpf:
                """A normal density at x = y sigma (0 on one data set, D on the other) times e^{zL}."""
                value = ((y * root - D) ** 2 - (y * root) ** 2) / (2 * s)
                return mpmath.npdf(y) * mpmath.exp(_number(z) * value)

            middle = -_number(z) * D / root
            with mpmath.workdps(22):
                direct = mpmath.log(mpmath.quad(integrand, [middle + k for k in range(-10, 11, 5)]))
            exact = loss.log_moment(z)
            assert abs(_middle(exact) - direct) < 1e-18 * (1 + abs(direct))
            assert _middle(exact.rad()) < 1e-50 * (1 + abs(direct))
            above = mpmath.mpf(loss.log_moment_upper(float(z))) - _middle(exact)
            assert 0 <= above <= 1e-14 * (1 + abs(direct))
            tilted = loss.tilted(z)
            _assert_encloses(tilted.anchor, ratio / 2 + ratio * _number(z), 1e-50)
            assert abs(tilted.spread - ratio) <= UNIT * ratio
            assert loss.mean_variance(float(z)) == pytest.approx(
                (float(ratio * (0.5 + float(z))), float(ratio)), rel=1e-14
            )
            log_cf, error = tilted.log_cf(np.zeros((0, 5)), np.zeros(5))
            assert log_cf.shape == error.shape == (5,)
            assert not log_cf.any()
            assert not error.any()
            assert tilted.units == ()
            assert tilted.peak is None
            assert tilted.atoms(1e-20) is None
        assert loss.widest == pytest.approx(float(ratio), rel=1e-15)
        assert noise.rho == noise.sensitivity**2 / (2 * noise.sigma2)


def test_outcomes_are_merged_and_put_on_one_step_where_there_is_one() -> None:
    def shape(p: list[str], q: list[str]) -> tuple[int, int]:
        tilted = Outcomes(p, q).loss().tilted(Fraction(0))
        atoms = tilted.atoms(0)
        return len(tilted.units), -1 if atoms is None else len(atoms.positions)

    assert shape(["1/2", "1/2"], ["1/2", "1/2"]) == (0, -1)
    assert shape(["1/3", "1/3", "1/3"], ["1/6", "1/6", "2/3"]) == (1, 2)
    assert shape(["4/7", "2/7", "1/7"], ["1/7", "2/7", "4/7"]) == (1, 3)
    assert shape(["9/19", "6/19", "4/19"], ["4/19", "6/19", "9/19"]) == (1, 3)  # powers of 9/4
    assert shape(["1/2", "1/5", "3/10"], ["1/10", "3/10", "3/5"]) == (2, -1)


def test_outcomes_with_almost_equal_ratios_keep_their_step() -> None:
    tiny = Fraction(1, 10**70)
    loss = Outcomes([Fraction(1, 2) + tiny, Fraction(1, 2) - tiny], ["1/2", "1/2"]).loss()
    with mpmath.workdps(100), precision(BITS):
        unit = loss.tilted(Fraction(0)).units[0]
        assert abs(_middle(unit) * mpmath.mpf(10) ** 70 - 4) < 1e-40
        assert _middle(unit.rad()) < mpmath.mpf(10) ** -120


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=7))
def test_the_two_directions_of_any_table(weights: list[tuple[int, int]]) -> None:
    """E_P[e^{zL}; L finite] = E_Q[e^{(-1-z)L'}; L' finite] with L' the reversed loss."""
    tops = [sum(w[side] for w in weights) for side in (0, 1)]
    if not all(tops):
        return
    p, q = ([Fraction(w[side], tops[side]) for w in weights] for side in (0, 1))
    if not any(a and b for a, b in weights):
        with pytest.raises(InvalidInputError, match="share an outcome"):
            Outcomes(p, q)
        return
    loss = Outcomes(p, q).loss()
    back = loss.reversed()
    with precision(BITS):
        for z in (Fraction(0), Fraction(-1, 3), Fraction(5, 2)):
            gap = loss.log_moment(z) + ball(1 - loss.lost).log() - back.log_moment(-1 - z) - ball(1 - back.lost).log()
            assert gap.contains(0)
            assert gap.rad() < arb(10) ** -45
            assert (back.reversed().log_moment(z) - loss.log_moment(z)).contains(0)


@pytest.mark.parametrize("mechanism", [*FINITE, *GAUSSIANS], ids=str)
def test_mechanisms_are_values(mechanism: Mechanism) -> None:
    names = {
        c.__name__: c for c in (ApproximateDP, DiscreteLaplace, Gaussian, IntegerNoise, Outcomes, RandomizedResponse)
    }
    for copy in (pickle.loads(pickle.dumps(mechanism)), eval(repr(mechanism), names)):
        assert copy == mechanism
        assert hash(copy) == hash(mechanism)
        assert copy is not mechanism
    assert sum(other == mechanism for other in [*FINITE, *GAUSSIANS]) == 1
    with pytest.raises(AttributeError):
        mechanism.rho = 1  # type: ignore[misc]


def test_the_peak_of_two_unequal_atoms_is_tight() -> None:
    """One rare atom: the parabola touches at pi, so a strength 1% larger would be no bound."""
    for epsilon in (8, 12):
        tilted = RandomizedResponse(epsilon).loss().tilted(Fraction(0))
        log_cf, _ = tilted.log_cf(np.array([[math.pi]]), np.zeros(1))
        assert tilted.peak is not None
        claimed = tilted.peak.strength * math.pi**2
        assert claimed <= -log_cf.real[0] * (1 + 1e-9)
        assert claimed > -log_cf.real[0] * 0.995


@pytest.mark.parametrize("factor", ["1/7", "1", "2", "9", "12345.678"])
@pytest.mark.parametrize("scale", ["2", "1/3", "17/5"])
def test_a_scaled_laplace_has_the_variance_asked_for_or_a_little_more(scale: str, factor: str) -> None:
    by = Fraction(factor)
    found = DiscreteLaplace(scale, 3)._scaled(by)
    wanted = Fraction(scale) ** 2 * by
    assert wanted <= found.scale**2 <= wanted * (1 + Fraction(3, 10**14))
    assert found.sensitivity == 3
    if by in (1, 9):
        assert found.scale**2 == wanted


def estimate_variance(answer: RandomizedResponse) -> mpmath.mpf:
    """Of (1[answer = c] - q) / (p - q) where the truth is not c, with p and q by definition."""
    k = answer.categories
    with mpmath.workdps(60):
        if answer.noise is not None:
            q = mpmath.mpf(answer.noise.numerator) / answer.noise.denominator / k
        else:
            q = 1 / (mpmath.exp(mpmath.mpf(answer.epsilon.numerator) / answer.epsilon.denominator) + k - 1)
        p = 1 - (k - 1) * q
        return q * (1 - q) / (p - q) ** 2


@pytest.mark.parametrize("factor", ["1/50", "1", "3/2", "4", "1000"])
@pytest.mark.parametrize(
    "answer", [RandomizedResponse(1), RandomizedResponse("1/10", 7), RandomizedResponse(noise="1/4", categories=3)]
)
def test_a_scaled_response_has_the_variance_asked_for_or_a_little_more(answer: RandomizedResponse, factor: str) -> None:
    found = answer._scaled(Fraction(factor))
    with mpmath.workdps(60):
        ratio = estimate_variance(found) / estimate_variance(answer)
        wanted = mpmath.mpf(Fraction(factor).numerator) / Fraction(factor).denominator
        assert wanted <= ratio * (1 + mpmath.mpf(10) ** -50)
        assert ratio <= wanted * (1 + mpmath.mpf(10) ** -9)
    assert found.categories == answer.categories


def test_what_has_no_single_parameter_is_not_scaled() -> None:
    for refused in (ApproximateDP("1/2"), Outcomes(["2/3", "1/3"], ["1/3", "2/3"])):
        with pytest.raises(InvalidInputError, match="Only noise of one parameter"):
            refused.scaled(2)


@pytest.mark.parametrize("mechanism", SMOOTH, ids=str)
def test_smooth_mechanisms_have_two_directions(mechanism: Mechanism) -> None:
    loss = mechanism.loss()
    assert loss.reversed() is not loss
    assert loss.reversed().reversed() is loss
    assert loss.unit is None
    assert loss.tilted(Fraction(1, 2)).table() is None
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


@pytest.mark.parametrize("mechanism", UNBOUNDED, ids=str)
def test_unbounded_mechanisms_are_symmetric_and_listed(mechanism: Mechanism) -> None:
    loss = mechanism.loss()
    assert loss.reversed() is loss
    assert loss.ends == (None, None)
    values = loss.tilted(Fraction(1, 2)).values()
    assert values is not None
    assert sum(values[1]) == pytest.approx(1, abs=1e-14)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
