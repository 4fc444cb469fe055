"""What mechanisms are made from: how numbers are read, what is refused in which words, and a mechanism of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from exactdp.errors import InvalidInputError
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.loss import Loss
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.randomized_response import RandomizedResponse


def test_how_gaussian_inputs_are_read() -> None:
    assert Gaussian(0.1).sigma2 == Fraction(1, 10)
    assert Gaussian(sigma=0.1).sigma2 == Fraction(0.1) ** 2 != Fraction(1, 100)
    assert Gaussian(sigma=np.float32(0.1)).sigma2 == Fraction(float(np.float32(0.1))) ** 2
    for sigma in ("0.1", Decimal("0.1"), Fraction(1, 10)):
        assert Gaussian(sigma=sigma).sigma2 == Fraction(1, 100)
    assert Gaussian(sigma=3, sensitivity=0.1).sensitivity == Fraction(1, 10)


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: Gaussian(), "exactly one of sigma2 .* Found sigma2=None and sigma=None"),
    (lambda: Gaussian(3, sigma=2), "exactly one of sigma2 .* Found sigma2=3 and sigma=2"),
    (lambda: Gaussian("-1/7"), r"sigma2 must be positive\. Found -1/7\."),
    (lambda: Gaussian(sigma=-2.5), r"sigma must be positive\. Found -2.5\."),
    (lambda: Gaussian(sigma=math.inf), "sigma must be a finite number. Found inf"),
    (lambda: Gaussian(sigma=math.nan), "sigma must be a finite number. Found nan"),
    (lambda: Gaussian(1, 0), r"sensitivity must be positive\. Found 0\."),
    (lambda: Gaussian("1e-9", 7), "between 1e-18 and 1e.06 .* sensitivity 7 with sigma2 1e-9"),
    (lambda: Gaussian(sigma="1e30"), "between 1e-18 .* sensitivity 1 with sigma 1e30"),
    (lambda: DiscreteLaplace(0), r"scale must be positive\. Found 0\."),
    (lambda: DiscreteLaplace("1e19"), r"scale must be at most 1e.18\. Found 1e19\."),
    (lambda: DiscreteLaplace("x"), "scale must be a finite number .* Found 'x'"),
    (lambda: DiscreteLaplace(1, 4097), r"sensitivity must be at most 4096\. Found 4097\."),
    (lambda: DiscreteLaplace(1, 0), "sensitivity must be a whole number of at least 1. Found 0"),
    (lambda: DiscreteLaplace(1, "1/2"), "sensitivity must be a whole number of at least 1. Found 1/2"),  # type: ignore[arg-type]
    (lambda: DiscreteLaplace("1/1001"), r"epsilon = sensitivity / scale must be at most 1000 .* Found 1 / 1/1001"),
    (lambda: DiscreteLaplace.from_epsilon(-3), r"epsilon must be positive\. Found -3\."),
    (lambda: DiscreteLaplace.from_epsilon(1, 5000), "sensitivity must be at most 4096. Found 5000"),
    (lambda: RandomizedResponse(), "exactly one of epsilon and noise. Found epsilon=None"),
    (lambda: RandomizedResponse(1, noise=0.5), r"exactly one of epsilon and noise. Found epsilon=1 and noise=0\.5"),
    (lambda: RandomizedResponse(0), "epsilon must be positive. Found 0"),
    (lambda: RandomizedResponse(1001), "epsilon must be between 1e-18 .* and 1000 .* Found 1001"),
    (lambda: RandomizedResponse("1e-19"), "epsilon must be between 1e-18 .* Found 1e-19"),
    (lambda: RandomizedResponse(1, 1), "categories must be a whole number of at least 2. Found 1"),
    (lambda: RandomizedResponse(noise=0), "noise must be between 0 and 1, both excluded. Found 0"),
    (lambda: RandomizedResponse(noise=1), "noise must be between 0 and 1, both excluded. Found 1"),
    (lambda: RandomizedResponse(noise="1e-500", categories=3), "epsilon must be between .* Found noise 1e-500 among 3"),
    (lambda: ApproximateDP(-1), "epsilon must be 0 or between 1e-18 .* Found -1"),
    (lambda: ApproximateDP(2000), "epsilon must be 0 or between 1e-18 .* Found 2000"),
    (lambda: ApproximateDP(1, 1), "delta must be at least 0 and below 1. Found 1"),
    (lambda: ApproximateDP(1, "-1e-9"), "delta must be at least 0 and below 1. Found -1e-9"),
    (lambda: ApproximateDP(1, True), "delta must be a number. Found True"),
    (lambda: Outcomes([0.5, 0.4], [0.5, 0.5]), "p must add up to exactly 1 .* Found the sum 9/10"),
    (lambda: Outcomes([0.5, 0.5], ["1/3", "1/3"]), "q must add up to exactly 1 .* Found the sum 2/3"),
    (lambda: Outcomes([1.5, -0.5], [0.5, 0.5]), r"p\[1\] must not be negative. Found -1/2"),
    (lambda: Outcomes([1], [0.5, 0.5]), "same outcomes. Found 1 and 2"),
    (lambda: Outcomes([], []), "p must have from 1 to 1024 outcomes. Found 0"),
    (lambda: Outcomes(["1/1025"] * 1025, ["1/1025"] * 1025), "p must have from 1 to 1024 outcomes. Found 1025"),
    (lambda: Outcomes([1, 0], [0, 1]), r"share an outcome .* Found p = \['1', '0'\] and q = \['0', '1'\]"),
    (lambda: Outcomes("0.5 0.5", [0.5, 0.5]), "p must be a list of probabilities. Found 0.5 0.5"),
    (lambda: Outcomes(1, [1]), "p must be a list of probabilities. Found 1"),  # type: ignore[arg-type]
    (lambda: Outcomes([1], ["one"]), r"q\[0\] must be a finite number .* Found 'one'"),
]


@pytest.mark.parametrize(("build", "text"), BAD)
def test_bad_inputs_are_named(build: Callable[[], object], text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        build()


class _Plain(Mechanism):
    rho = Fraction(1)

    def loss(self) -> Loss:
        return RandomizedResponse(1).loss()


@dataclass(frozen=True)
class _Coin(_Plain):
    bias: int = 3


def test_a_mechanism_of_ones_own_needs_a_loss_and_rho_only() -> None:
    """Also a text: that of the dataclass, or the one of every object."""
    assert (_Coin() + _Coin()).delta(0.5) == (2 * RandomizedResponse(1)).delta(0.5)
    assert repr(_Coin()) == str(_Coin()) == "_Coin(bias=3)"
    assert "_Plain object" in repr(_Plain())
    assert "_Plain object" in str(_Plain())
