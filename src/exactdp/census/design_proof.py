"""The proof of a design certificate: all pairs together in float64, one by one and in balls where that does not decide.

Searched freely: the witness is the pair that looks worst, the answer is its own, rounded up. Proved: that every other pair's
delta is at most D at E; where one's is not, it is the witness from then on. So the answer only rises, and the last one is the
least.
"""

from __future__ import annotations

import logging
import math
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
from flint import arb

from exactdp.accounting.certificates.certificate import versions
from exactdp.accounting.certificates.routes import EngineRoute, lattice_of
from exactdp.accounting.composition import Composition
from exactdp.accounting.pairs import Pairs
from exactdp.accounting.shared_pairs import SharedPairs
from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, bits_of, fraction, precision, raised
from exactdp.brackets import Point
from exactdp.census.design_certificate import (
    DIGITS,
    METHODS,
    MOST_CONTOURS,
    DesignCertificate,
    DesignContour,
    DesignEvidence,
    before,
    checked_answer,
    checked_design,
    checked_question,
    rounded_up,
)
from exactdp.census.overall import sides
from exactdp.census.pair_results import overall_of
from exactdp.census.releases import Release
from exactdp.elementwise import DIGITS as BALL_DIGITS
from exactdp.engine.family.contours import Family
from exactdp.engine.lattice.tilts import FAMILY, delta_payoff, rung_index
from exactdp.engine.payoff import delta_threshold
from exactdp.errors import AccuracyError, InvalidInputError, LatticeTooFineError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numbers import Number, rational, whole
from exactdp.numerals import counted
from exactdp.strict_json import LARGEST_EXPONENT

USUAL_DIGITS = 10
_LOG = logging.getLogger(__name__)
_SPARE = 3  # digits beyond those of the answer to which the witness's own answer is found
_ROUNDS = 6  # how often the working digits of a comparison in balls are doubled
_LEAST_LOG = -LARGEST_EXPONENT * math.log(10)
_SHARED, _, _ALONE, _BALLS = METHODS  # the second one proved certificates of earlier versions

Pair = tuple[int, int]


@steady
def certify_design(
    release: Release,
    *,
    delta: Number | None = None,
    epsilon: Number | None = None,
    digits: int | None = None,
    path: str | os.PathLike[str] | None = None,
    told: Callable[[str], None] = lambda text: None,
) -> DesignCertificate:
    """A certificate of a whole design: of the least epsilon of all pairs at `delta`, or of the least delta at `epsilon`.

    The answer has `digits` significant digits (2 to 50; without: 10, or as many as can be proved). With `path` the certificate is
    also written to that file, all of it or nothing. `told` hears what is being done, where that takes a while.

    Guarantee: every pair's delta(epsilon) is at most delta, and that of the witness is not for the number before the answer.

    >>> from exactdp.census import release
    >>> certificate = certify_design(release("dhc-units-us"), delta="1e-10")
    >>> certificate.answer, certificate.too_small, certificate.witness
    (Decimal('32.07198497'), Decimal('32.07198496'), (1, 1))
    """
    asked = {name: number for name, number in (("delta", delta), ("epsilon", epsilon)) if number is not None}
    if len(asked) != 1:
        found = " and ".join(asked) or "none of them"
        raise InvalidInputError(
            f"A certificate of a design answers one question: give delta or epsilon. Found {found}."
        )
    (given, number), design = asked.popitem(), checked_design(release)
    search = _LeastAnswer(design, given, checked_question(given, rational(number, given)), told)
    result = search.certificate(USUAL_DIGITS if digits is None else whole(digits, "digits", *DIGITS), digits is None)
    if path is not None:
        result.save(path)
    return result


def side_of_ball(value: arb, delta: Fraction) -> int:
    """The same for an enclosure, at the current precision. A comparison of balls is true only if it is certain."""
    exact = ball(delta)
    return -1 if delta >= 1 or value <= exact else 1 if value > exact else 0


def side_in_balls(
    composition: Composition,
    epsilon: Fraction,
    delta: Fraction,
    start: int,
    checked: tuple[DesignContour, ...] | None = None,
) -> int:
    """-1 if delta(epsilon) is at most `delta`, 1 if it is above: proved in balls, with more digits until that is decided.

    With `checked`, on other contours than those and the natural ones. AccuracyError or LatticeTooFineError where the lattice is
    too fine for balls, or the two numbers agree to more digits than are tried.
    """
    if not _has_balls(composition):
        raise LatticeTooFineError("Balls are for discrete Gaussians only.")
    lattice = lattice_of(composition)

    def attempt(working: int) -> tuple[int | None, int]:
        value = EngineRoute(lattice, working, checked).delta(epsilon)
        with precision(bits_of(working)):
            return side_of_ball(value, delta) or None, working

    return raised(attempt, start, start, _ROUNDS, "delta agrees with the claim to more digits than were tried")


@dataclass
class _LeastAnswer:
    """The search for an answer, and what proved it."""

    release: Release
    given: str
    value: Fraction
    told: Callable[[str], None]
    _methods: Counter[str] = field(default_factory=Counter)
    _contours: dict[DesignContour, None] = field(default_factory=dict)
    _known: dict[tuple[int, Fraction], Point] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._overall = overall_of(self.release)
        place = {pair: i for i, pair in enumerate(self.release.pairs)}
        self._places = {pair: place[pair] for pair in self.release.different_pairs}

    def certificate(self, digits: int, fewer: bool) -> DesignCertificate:
        """With so many digits, or with `fewer` where these cannot be proved."""
        for wanted in range(digits, DIGITS[0] - 1 if fewer else digits - 1, -1):
            try:
                return self._with(wanted)
            except (AccuracyError, LatticeTooFineError) as error:
                reason = str(error).rstrip(".")
                _LOG.debug("%d digits could not be proved: %s.", wanted, reason)
        raise AccuracyError(f"{digits} digits of this design could not be proved: {reason}. Ask for fewer digits.")

    def _with(self, digits: int) -> DesignCertificate:
        self.told(f"{counted(len(self._places), 'different composition')}; looking for the worst")
        worst = self._worst()
        while True:
            self._methods, self._contours = Counter(), {}
            answer = checked_answer(self.given, self._answer(worst, digits))
            above = self._above(worst, *self._claimed(answer))
            if not above:
                return self._record(worst, answer, digits)
            worst = above[0]

    def _claimed(self, answer: Decimal) -> tuple[Fraction, Fraction]:
        """The claimed epsilon and delta."""
        return (self.value, Fraction(answer)) if self.given == "epsilon" else (Fraction(answer), self.value)

    def _worst(self) -> Pair:
        """The pair that looks worst. Heuristic: affects speed only."""
        at = self.value if self.given == "epsilon" else _finite(self._overall.epsilon(self.value)[1])
        bounds = self._overall.point(at).delta.log_upper()
        return max(self._places, key=lambda pair: float(bounds[self._places[pair]]))

    def _answer(self, witness: Pair, digits: int) -> Decimal:
        """The least number of so many digits that will do for the witness; that the one before will not is proved as well."""
        low, high = (rounded_up(end, digits) for end in self._own_bounds(witness, digits))
        self._ask(witness, [self._claimed(answer)[0] for answer in (high, before(high, digits))])
        side, method = self._side(witness, *self._claimed(high))
        for _ in range(_ROUNDS if side < 0 else 0):
            less, by = self._side(witness, *self._claimed(before(high, digits)))
            if less > 0:
                self._methods[method] += 1
                return high
            high, method = before(high, digits), by
        raise AccuracyError(f"The bounds of the worst pair, {low} and {high}, are too wide")

    def _own_bounds(self, witness: Pair, digits: int) -> tuple[Fraction, Fraction]:
        """Bounds of the witness's own answer: in float64 where they agree to the digits wanted, in balls otherwise."""
        if self.given == "delta":
            answers = self._overall.pairs.answers(self._places[witness])
            low, high = map(_finite, answers.epsilon_bracket(self.value))
        else:
            low, high = _ends(self._ask(witness, [self.value])[0])
        composition = self.release.pair(*witness)
        if rounded_up(low, digits) == rounded_up(high, digits) or not _has_balls(composition):
            return low, high
        ask = composition.epsilon_bounds if self.given == "delta" else composition.delta_bounds
        try:
            return tuple(map(Fraction, ask(self.value, max(digits + _SPARE, BALL_DIGITS[0]))))  # type: ignore[return-value]
        except (AccuracyError, LatticeTooFineError):
            return low, high

    def _above(self, witness: Pair, epsilon: Fraction, delta: Fraction) -> list[Pair]:
        """Other pairs whose delta(epsilon) is proved to be above `delta`, the worst first; none if none is.

        Guarantee: where the list is empty, that of every composition but the witness's is proved to be at most `delta`.
        """
        overall, point = self._overall, self._overall.point(epsilon)
        found, bounds = sides(point, delta), point.delta.log_upper()
        others = [pair for pair in self._places if pair != witness]
        ranked = sorted(others, key=lambda pair: -float(bounds[self._places[pair]]))
        above = [pair for pair in ranked if found[self._places[pair]] > 0]
        if above:
            return above
        shares = isinstance(overall.pairs, SharedPairs) and overall.pairs.shares
        if shares and isinstance(overall.pairs, Pairs):
            self._contours.update(dict.fromkeys(_shared_contours(overall.pairs.family, epsilon)))
        left = [pair for pair in ranked if not found[self._places[pair]]]
        self._methods[_SHARED if shares else _ALONE] += len(ranked) - len(left)
        for number, pair in enumerate(left):
            self.told(f"{counted(len(left) - number, 'composition')} to be decided one by one")
            side, method = self._side(pair, epsilon, delta)
            if side > 0:
                return [pair]
            self._methods[method] += 1
        return []

    def _ask(self, pair: Pair, epsilons: list[Fraction]) -> list[Point]:
        """The points of one pair in float64, all at once and each only once: a contour may take seconds."""
        asked = {e: (self._places[pair], e) for e in epsilons}
        new = [e for e, key in asked.items() if key not in self._known]
        if new:
            rows = np.array(self._overall.pairs.answers(self._places[pair]).point(new).rows())
            self._known.update((asked[e], Point.of_rows(rows[:, i : i + 1])) for i, e in enumerate(new))
        return [self._known[asked[e]] for e in epsilons]

    def _side(self, pair: Pair, epsilon: Fraction, delta: Fraction) -> tuple[int, str]:
        """-1 if delta(epsilon) of one pair is proved to be at most `delta`, 1 if above; in float64, or else in balls."""
        found = int(sides(self._ask(pair, [epsilon])[0], delta)[0])
        if found:
            return found, _ALONE
        return side_in_balls(self.release.pair(*pair), epsilon, delta, USUAL_DIGITS), _BALLS

    def _record(self, witness: Pair, answer: Decimal, digits: int) -> DesignCertificate:
        evidence = DesignEvidence(
            len(self._places),
            {name: self._methods[name] for name in METHODS if self._methods[name]},
            tuple(self._contours)[:MOST_CONTOURS],
        )
        result = DesignCertificate(
            self.release,
            self.release.fingerprint,
            self.given,
            self.value,
            digits,
            answer,
            len(self.release.pairs),
            witness,
            evidence,
            versions(),
        )
        return replace(result, sha256=result.digest())


def _finite(end: float) -> Fraction:
    if not math.isfinite(end):
        raise AccuracyError("epsilon has no bounds at this delta")
    return Fraction(end)


def _has_balls(composition: Composition) -> bool:
    return all(isinstance(m, DiscreteGaussian) for m in composition.mechanisms)


def _ends(point: Point) -> tuple[Fraction, Fraction]:
    """The bounds of a certified delta as exact numbers, refused where it is too small to be written down."""
    low, high = float(point.delta.log_lower()[0]), float(point.delta.log_upper()[0])
    if high < _LEAST_LOG:
        raise InvalidInputError(
            f"The delta of every pair is below 1E-{LARGEST_EXPONENT}, too small to be written down. Ask nearer to the bulk."
        )
    with precision(BITS):
        least = fraction(arb(low).exp().lower()) if low > 2 * _LEAST_LOG else Fraction(0)
        return least, min(fraction(arb(high).exp().upper()), Fraction(1))


def _shared_contours(family: Family, epsilon: Fraction) -> list[DesignContour]:
    """The contours on which a family answers at one epsilon."""
    found = []
    for lattice in family.typical:
        payoff, at = delta_payoff(lattice, abs(epsilon), FAMILY), delta_threshold(lattice, abs(epsilon))
        contour = family.contour(payoff, rung_index(lattice, payoff, float(at.steps * lattice.step), FAMILY))
        found += [DesignContour(plan.tilt, plan.nodes) for plan in (contour.plans if contour is not None else ())]
    return found
