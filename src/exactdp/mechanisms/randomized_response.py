"""Randomized response: a category is reported truly with some probability, else one of the others."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, fraction, precision
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.loss import FiniteLoss, Loss
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import Number, exact_text, positive, rational, root_up, rounded_up, shown, whole

SMALLEST_EPSILON = Fraction(1, 10**18)
LARGEST_EPSILON = Fraction(1000)
LARGEST_CATEGORIES = 10**18


@steady
@dataclass(frozen=True, init=False, repr=False)
class RandomizedResponse(Mechanism):
    """An answer out of `categories` = k: the truth with probability p, each other answer with (1 - p) / (k - 1).

    Give `epsilon`, for p = e^epsilon / (e^epsilon + k - 1), or `noise`, the probability that the answer is drawn uniformly from
    all k categories, for p = 1 - noise + noise / k. Pure epsilon-DP.

    >>> RandomizedResponse(1).rho
    Fraction(1, 2)
    >>> float(RandomizedResponse(noise="1/2", categories=4).epsilon_upper)  # log 5
    1.6094379124341003
    """

    epsilon: Fraction | None
    categories: int
    noise: Fraction | None

    def __init__(self, epsilon: Number | None = None, categories: int = 2, *, noise: Number | None = None) -> None:
        if (epsilon is None) == (noise is None):
            raise InvalidInputError(
                f"Give exactly one of epsilon and noise. Found epsilon={shown(epsilon)} and noise={shown(noise)}."
            )
        by_epsilon = None if epsilon is None else positive(epsilon, "epsilon")
        by_noise = None if noise is None else rational(noise, "noise")
        if by_noise is not None and not 0 < by_noise < 1:
            raise InvalidInputError(f"noise must be between 0 and 1, both excluded. Found {shown(noise)}.")
        object.__setattr__(self, "epsilon", by_epsilon)
        object.__setattr__(self, "categories", whole(categories, "categories", 2, LARGEST_CATEGORIES))
        object.__setattr__(self, "noise", by_noise)
        if not SMALLEST_EPSILON <= self.epsilon_upper <= LARGEST_EPSILON:
            given = f"noise {shown(noise)} among {self.categories}" if epsilon is None else shown(epsilon)
            raise InvalidInputError(
                f"epsilon must be between {float(SMALLEST_EPSILON):.0e} (round a smaller one up) and "
                f"{float(LARGEST_EPSILON):.0f} (such noise protects nothing). Found {given}."
            )

    @property
    def epsilon_upper(self) -> Fraction:
        """The pure-DP parameter log(P(truth) / P(another answer)): exact for `epsilon`, just above it for `noise`."""
        if self.epsilon is not None:
            return self.epsilon
        with precision(BITS):
            return fraction(self._balls()[0].upper())

    @property
    def rho(self) -> Fraction:
        """epsilon^2 / 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return self.epsilon_upper**2 / 2

    def _balls(self) -> tuple[arb, arb, arb]:
        """Epsilon and the probabilities of the truth and of one other answer, at the current precision."""
        k = self.categories
        if self.noise is not None:
            other = self.noise / k
            return ball((1 - self.noise) / other).log1p(), ball(1 - self.noise + other), ball(other)
        assert self.epsilon is not None
        epsilon = ball(self.epsilon)
        total = epsilon.exp() + (k - 1)
        return epsilon, epsilon.exp() / total, 1 / total

    def loss(self) -> Loss:
        """epsilon on the true answer, -epsilon on the neighbour's, 0 on every other; symmetric."""
        with precision(BITS):
            epsilon, truth, other = self._balls()
            if self.categories == 2:
                return FiniteLoss(-epsilon, [2 * epsilon], [(0,), (1,)], [other, truth], greatest=self.epsilon)
            rest = (self.categories - 2) * other
            return FiniteLoss(-epsilon, [epsilon], [(0,), (1,), (2,)], [other, rest, truth], greatest=self.epsilon)

    def _scaled(self, by: Fraction) -> RandomizedResponse:
        """`by` times the variance of the unbiased estimate of a count from one answer: `noise` rounded up to 15 digits.

        With q = P(one other answer) the estimate (1[answer] - q) / (1 - k q) has the variance v = q (1 - q) / (1 - k q)^2 where
        the truth is another category. For w = by v that is solved by q = 2w / (1 + 2kw + sqrt(1 + 4 (k-1) w)). A larger
        v and a smaller root give a larger q, so that the noise is never less than asked for.
        """
        if by == 1:
            return self
        k = self.categories
        with precision(BITS):
            q = fraction(self._balls()[2].upper()) if self.noise is None else self.noise / k
        w = by * q * (1 - q) / (1 - k * q) ** 2
        square = 1 + 4 * (k - 1) * w
        noise = rounded_up(2 * k * w / (1 + 2 * k * w + square / root_up(square)))
        return RandomizedResponse(noise=noise, categories=k)

    def __str__(self) -> str:
        first = f"noise={str(self.noise)!r}" if self.epsilon is None else repr(exact_text(self.epsilon))
        extra = "" if self.categories == 2 else f", categories={self.categories}"
        return f"RandomizedResponse({first}{extra})"
