"""Verification of a design certificate: every different composition among the pairs again, by other routes.

Balls on other tilts with other N than the certificate names, with few digits first and more where these do not decide. Where a
lattice is too fine for that, balls on the line, with another tilt, period and smoothing; and where these do not decide, certified
float64 by the methods on the line, asked in the opposite order of the planner's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial

from flint import arb

from exactdp.accounting.certificates.verify import Verification, check_hash, concluded, made_checks
from exactdp.accounting.composition import Composition
from exactdp.accounting.line_enclosures import enclosed_on_line
from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, precision
from exactdp.brackets import Bracket, mirrored_ball
from exactdp.census.built_in import release as built_in
from exactdp.census.built_in import release_names
from exactdp.census.design_certificate import DesignCertificate, DesignContour, has_digits
from exactdp.census.design_proof import Pair, side_in_balls, side_of_ball
from exactdp.census.workers import make_runner
from exactdp.engine.line.methods import LineMethods, threshold
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.errors import AccuracyError, LatticeTooFineError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numbers import shown
from exactdp.numerals import counted

_FEW = 6  # digits that decide nearly every pair but the worst
_PART = 8  # compositions in one task
_WAVE = 4  # tasks for each process before it is decided whether to go on
_IN_BALLS = "balls on other contours"
_ON_LINE = "balls on the line"

Outcome = tuple[Pair, int, str]
"""A pair, the side of the claim on which its delta was proved to be (0: not decided), and by what or why not."""


@steady
def verify_design(
    certificate: DesignCertificate, *, jobs: int = 1, done: Callable[[int], None] = lambda compositions: None
) -> Verification:
    """Check a certificate of a whole design: hash, form, the witness, every pair.

    `jobs` processes share the work, and `done` hears how many compositions were checked.

    Guarantee: holds only if every pair's delta(epsilon) was proved again to be at most the claimed delta, and the witness's not
    to be for the number before the answer. A claim that cannot be recomputed does not hold, and the reason says why.

    >>> from exactdp.census import release, certify_design
    >>> verify_design(certify_design(release("dhc-units-us"), epsilon=32)).holds
    True
    """
    found: dict[Composition, Pair] = {}
    checks = made_checks(
        certificate,
        {
            "hash": check_hash,
            "form": lambda record: _check_form(record, found),
            "witness": _check_witness,
            "every pair": lambda record: _check_pairs(record, found, jobs, done),
        },
    )
    return concluded(certificate.claim, checks, "".join(f"; {c.note}" for c in checks[1:]))


def _check_form(record: DesignCertificate, found: dict[Composition, Pair]) -> tuple[bool, str]:
    """The design is the one that is named, with all its pairs; `found` gets its different compositions."""
    release = record.release
    if release.fingerprint != record.fingerprint:
        return False, f"the fingerprint is not that of the budget, which has {release.fingerprint[:12]}"
    if len(release.pairs) != record.pairs:
        return False, f"the design has {counted(len(release.pairs), 'pair')}, not {record.pairs:,}"
    if not has_digits(record.answer, record.digits):
        return False, f"the answer {shown(record.answer)} does not have {record.digits} digits"
    if record.witness not in release.pairs:
        return False, f"the witness {record.witness[0]},{record.witness[1]} is no pair of the design"
    found.update(release.compositions)
    told = {len(found), record.evidence.compositions, sum(record.evidence.methods.values())}
    if len(told) > 1:
        return (
            False,
            f"the pairs have {counted(len(found), 'different composition')}, which is not what the record counts",
        )
    note = f"{counted(record.pairs, 'pair')} of the design with the fingerprint {record.fingerprint[:12]}"
    if release.name in release_names() and built_in(release.name).fingerprint != record.fingerprint:
        note += ", which is not the built-in release of this name"
    return True, note


def _check_witness(record: DesignCertificate) -> tuple[bool, str]:
    """The witness does not satisfy the number before the answer."""
    composition = record.release.pair(*record.witness)
    pair = f"pair {record.witness[0]},{record.witness[1]}"
    _, side, how = decided(composition, record.witness, *record.refuted, record.evidence.contours)
    if side <= 0:
        why = f"{record.refuted_text} will do for it" if side else f"this could not be recomputed: {how}"
        return False, f"{pair} does not prove that a smaller number will not do: {why}"
    return True, f"{pair} proves by {how} that {record.refuted_text} is too small"


def _check_pairs(
    record: DesignCertificate, found: dict[Composition, Pair], jobs: int, done: Callable[[int], None]
) -> tuple[bool, str]:
    """The claim for every different composition, the witness's first."""
    witness = record.release.pair(*record.witness)
    todo = sorted(found.items(), key=lambda item: item[0] != witness)
    routes: Counter[str] = Counter()
    for pair, side, how in _outcomes(record, todo, jobs, done):
        if side >= 0:
            why = f"has a delta above {record.texts[1]}" if side else f"could not be recomputed: {how}"
            return False, f"pair {pair[0]},{pair[1]} {why}"
        routes[how] += 1
    if sum(routes.values()) != len(found):
        return False, f"{sum(routes.values())} of {counted(len(found), 'different composition')} were checked"
    told = ", ".join(f"{number:,} by {how}" for how, number in routes.items())
    return True, f"{counted(len(found), 'different composition')} recomputed: {told}"


def _outcomes(
    record: DesignCertificate, todo: Sequence[tuple[Composition, Pair]], jobs: int, done: Callable[[int], None]
) -> Iterator[Outcome]:
    """What was proved of each composition, as it is ready; processes are given so many parts at a time, and all are awaited."""
    parts = [todo[i : i + _PART] for i in range(0, len(todo), _PART)]
    check = partial(_check_part, record.epsilon, record.delta, record.evidence.contours)
    with make_runner(jobs) as runner:
        wave = 1 if runner.is_serial else _WAVE * jobs
        for i in range(0, len(parts), wave):
            ready: list[Outcome] = []
            for outcomes in runner.map(check, parts[i : i + wave]):
                ready += outcomes
                done(len(outcomes))
            yield from ready


def _check_part(
    epsilon: Fraction, delta: Fraction, contours: tuple[DesignContour, ...], part: Sequence[tuple[Composition, Pair]]
) -> list[Outcome]:
    """The outcomes of some compositions, up to the first that fails."""
    found: list[Outcome] = []
    for composition, pair in part:
        found.append(decided(composition, pair, epsilon, delta, contours))
        if found[-1][1] >= 0:
            break
    return found


def decided(
    composition: Composition, pair: Pair, epsilon: Fraction, delta: Fraction, contours: tuple[DesignContour, ...]
) -> Outcome:
    """On which side of `delta` the composition's delta(epsilon) is: in balls on other contours, or by methods on the line."""
    try:
        return pair, side_in_balls(composition, epsilon, delta, _FEW, contours), _IN_BALLS
    except (AccuracyError, LatticeTooFineError) as error:
        reason = str(error)
    if _is_beyond(composition, epsilon):
        return pair, -1, "the greatest loss"
    side = _side_on_line(composition, epsilon, delta)
    if side:
        return pair, side, _ON_LINE
    for name, ask in _on_the_line(composition, abs(epsilon)):
        try:
            bracket = ask()
        except (AccuracyError, LatticeTooFineError):
            continue
        side = 0 if bracket is None else _side_of_bracket(bracket, epsilon, delta)
        if side:
            return pair, side, f"float64 ({name})"
    return pair, 0, reason


def _side_on_line(composition: Composition, epsilon: Fraction, delta: Fraction) -> int:
    """The side of delta(epsilon) by a smoothed Fourier sum in balls on another tilt; 0 where that does not decide."""
    if not all(isinstance(mechanism, DiscreteGaussian) for mechanism in composition.mechanisms):
        return 0
    try:
        found = enclosed_on_line(composition, epsilon, is_other=True)
    except (AccuracyError, LatticeTooFineError):
        return 0
    with precision(BITS):
        return side_of_ball(found, delta)


def _is_beyond(composition: Composition, epsilon: Fraction) -> bool:
    """Whether no loss is above epsilon, so that delta(epsilon) is 0: by sums of exact fractions alone."""
    total = TotalLoss.of(composition.mechanisms)
    return total.is_symmetric and total.lost == 0 and total.greatest is not None and epsilon >= total.greatest


def _on_the_line(composition: Composition, size: Fraction) -> Iterator[tuple[str, Callable[[], Bracket | None]]]:
    """The methods that need no lattice, each from scratch, the planner's first choice last; none for losses of two directions."""
    total = TotalLoss.of(composition.mechanisms)
    if total.is_symmetric and total.lost == 0:
        yield from reversed(list(LineMethods(total).every(threshold(size))))


def _side_of_bracket(bracket: Bracket, epsilon: Fraction, delta: Fraction) -> int:
    """The side of a certified delta at the size of epsilon, turned to epsilon itself in balls."""
    low, high = float(bracket.log_lower()[0]), float(bracket.log_upper()[0])
    if math.isnan(low) or math.isnan(high):
        return 0
    with precision(BITS):
        ends = [arb(log).exp() if log > -math.inf else arb(0) for log in (low, min(high, 0.0))]
        return side_of_ball(mirrored_ball(ends[0].union(ends[1]), epsilon), delta)
