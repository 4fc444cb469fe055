"""Real Laplace noise against its two densities, integrated over the output."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from exactdp import Laplace
from exactdp.balls import BITS, precision
from exactdp.doubles import PHASE_ERROR, UNIT
from exactdp.errors import InvalidInputError

DIGITS = 60
LAPLACE = [Laplace(1), Laplace("1/8", sensitivity="3/2"), Laplace(40)]
MOMENTS = [Fraction(x) for x in ("0", "1", "-1", "1/3", "-7/2", "40", "-1/2")]


def _number(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


@pytest.mark.parametrize(("scale", "sensitivity"), [("1/1000", 1), (1, "1e-10")])
def test_extreme_noise_is_refused(scale: object, sensitivity: object) -> None:
    with pytest.raises(InvalidInputError, match="epsilon = sensitivity / scale must be between 1e-09 and 500"):
        Laplace(scale, sensitivity)  # type: ignore[arg-type]


def _laplace_moment(epsilon: Fraction, z: mpmath.mpc) -> mpmath.mpc:
    """E e^{zL} from the two densities, by integration over the output."""
    e = _number(epsilon)
    outer = mpmath.exp(z * e) / 2 + mpmath.exp(-(z + 1) * e) / 2
    ends = mpmath.linspace(0, e, 6 + 2 * int(abs(mpmath.im(z)) * e))
    return outer + mpmath.quad(lambda x: mpmath.exp(-x + z * (e - 2 * x)) / 2, ends, method="gauss-legendre")


@pytest.mark.parametrize("mechanism", LAPLACE, ids=str)
def test_the_moments_of_laplace_noise(mechanism: Laplace) -> None:
    loss = mechanism.loss()
    assert loss.reversed() is loss
    assert loss.unit is None
    with mpmath.workdps(DIGITS):
        for z in MOMENTS:
            exact = mpmath.log(_laplace_moment(mechanism.epsilon, _number(z)).real)
            with precision(BITS):
                found = loss.log_moment(z)
                assert abs(mpmath.mpf(found.mid().str(50, radius=False)) - exact) <= 1e-40 * (1 + abs(exact))
                assert float(found.rad()) <= 1e-40 * float(1 + abs(exact))
            assert exact <= loss.log_moment_upper(float(z)) <= exact + 1e-12 * (1 + abs(exact) + 40 * mechanism.epsilon)


@pytest.mark.parametrize("tilt", [Fraction(1, 4), Fraction(-1, 2), Fraction(5)])
@pytest.mark.parametrize("mechanism", LAPLACE, ids=str)
def test_the_characteristic_function_of_laplace_noise(mechanism: Laplace, tilt: Fraction) -> None:
    tilted = mechanism.loss().tilted(tilt)
    omega = np.array([0.0, 2.0**-20, 0.01, 0.3, 2.0, 17.0])
    e = float(mechanism.epsilon)
    with mpmath.workdps(40):
        turns = [_number(mechanism.epsilon) * om / (2 * mpmath.pi) for om in omega.tolist()]
        v = np.array([float(2 * mpmath.pi * (t - mpmath.nint(t))) for t in turns])
    logs, relative = tilted.log_cf(v[None, :], omega)
    with mpmath.workdps(30):
        total = _laplace_moment(mechanism.epsilon, _number(tilt))
        for i, om in enumerate(omega.tolist()):
            exact = _laplace_moment(mechanism.epsilon, mpmath.mpc(_number(tilt), om)) / total
            error = abs(mpmath.exp(mpmath.mpc(complex(logs[i]))) - exact)
            assert error <= relative[i] * abs(exact) + 1e-15 * om * e
            assert relative[i] * abs(exact) < 1e-13
            assert abs(exact) <= mpmath.exp(tilted.log_decay(om)) * (1 + 1e-12)
            assert tilted.peak is not None
            turn = (2 * om * e + math.pi) % (2 * math.pi) - math.pi
            assert abs(exact) <= math.exp(-tilted.peak.strength * turn**2) * (1 + 1e-12)
    assert tilted.log_decay(1e9) < math.log(1 - float(tilted._between) / 2)  # type: ignore[attr-defined]


def test_two_laplace_mechanisms_against_an_integral() -> None:
    with mpmath.workdps(30):

        def alone(t: mpmath.mpf) -> mpmath.mpf:
            return mpmath.mpf(0) if t >= 1 else 1 - mpmath.exp((t - 1) / 2 if t >= -1 else t)

        y = mpmath.mpf("0.5")
        between = mpmath.quad(lambda x: mpmath.exp((x - 1) / 2) / 4 * alone(y - x), [-1, -0.5, 1])
        exact = alone(y - 1) / 2 + mpmath.exp(-1) / 2 * alone(y + 1) + between
    bounds = (2 * Laplace(1)).delta_bounds("0.5")
    assert bounds.lower <= exact <= bounds.upper <= bounds.lower * (1 + 1e-7)
    assert Laplace(1).delta_bounds("0.5").upper == pytest.approx(1 - math.exp(-0.25), rel=1e-14)
    assert (3 * Laplace(1)).epsilon(0) == 3


def _size(e: float, tilt: float, omega: float) -> float:
    """|cf| of the tilted loss from its definition: mass 1/2 at e, e^-e / 2 at -e, the density e^{(x - e)/2} / 4 between."""

    def moment(z: complex) -> complex:
        between = 2 * np.sinh((z + 0.5) * e) / (z + 0.5) if z != -0.5 else 2 * e
        return complex(np.exp(z * e) / 2 + np.exp(-(1 + z) * e) / 2 + np.exp(-e / 2) / 4 * between)

    return abs(moment(tilt + 1j * omega)) / abs(moment(complex(tilt)))


def test_a_decay_by_the_ends_of_the_density_is_needed() -> None:
    """Ten elevenths of the tilted mass are in the density, whose share is all there is where the atoms cancel."""
    tilted, omega = Laplace("1/20").loss().tilted(Fraction(-1, 2)), math.pi / 40
    size = _size(20.0, -0.5, omega)
    assert math.log(size) <= tilted.log_decay(omega) < math.log(size) + 0.16


def test_a_peak_of_the_atoms_is_attained() -> None:
    """One atom has nearly all of the tilted mass: at a phase of pi |cf| is 1 - 2 P, P the product of the two."""
    tilted, e = Laplace(1000).loss().tilted(Fraction(3000)), 0.001
    assert tilted.peak is not None
    log_size = math.log(_size(e, 3000.0, math.pi / (2 * e)))
    assert 1.1 * log_size <= -tilted.peak.strength * math.pi**2 * 0.8
    assert log_size <= -tilted.peak.strength * math.pi**2


@pytest.mark.parametrize("tilt", [Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize("omega", [2.0**-40, 2.0**-24, 1.0, 40.0])
def test_phases_may_be_as_wrong_as_they_say(omega: float, tilt: Fraction) -> None:
    """A phase off by 3 units of rounding and PHASE_ERROR changes no logarithm by more than the stated error, however small."""
    mechanism = Laplace(3)
    tilted, at = mechanism.loss().tilted(tilt), np.array([omega])
    v = np.array([[math.remainder(omega * float(mechanism.epsilon), 2 * math.pi)]])
    logs, relative = tilted.log_cf(v, at)
    for sign in (-1, 1):
        moved, _ = tilted.log_cf(v + sign * (PHASE_ERROR + 3 * UNIT * np.abs(v)), at)
        assert abs(moved[0] - logs[0]) <= relative[0]
