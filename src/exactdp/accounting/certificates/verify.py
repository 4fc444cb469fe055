"""Verification of a certificate by other routes: another tilt, another N, a higher precision, the published method."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Protocol, TypeVar

import numpy as np

import exactdp
from exactdp.accounting.certificates.certificate import Certificate
from exactdp.accounting.certificates.routes import QUANTITY, EngineRoute, PublishedRoute, compare, lattice_of, prove
from exactdp.arithmetic_state import steady
from exactdp.balls import raised
from exactdp.engine.published import plan as reference
from exactdp.errors import ExactDPError
from exactdp.notebooks import repr_html
from exactdp.numbers import LARGEST_EPSILON, one_line, shown

REFERENCE_COST = 2e6
"""Up to this estimate `verify` also runs the published method (about four seconds; long numbers are charged for)."""
_FEWEST = 3  # digits to which agreement with the published method means something
_EXTRA, _TRIES = 20, 3  # digits by which a recomputation is more accurate than the claim, and how often they are raised


Record = TypeVar("Record")


@dataclass(frozen=True)
class Check:
    """One check: whether it passed (None: not made), what was found, and how long it took."""

    name: str
    passed: bool | None
    note: str
    seconds: float


@steady
@dataclass(frozen=True)
class Verification:
    """Whether a certificate's claims hold, why in one line, and what was checked. True as a condition if they hold."""

    _repr_html_ = repr_html

    holds: bool
    reason: str
    checks: tuple[Check, ...]

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        words = {True: "passed", False: "FAILED", None: "not made"}
        return "\n".join([self.reason, *(f"  {words[c.passed]:<8}  {c.name}: {c.note}" for c in self.checks)])


@steady
def verify(certificate: Certificate | str | os.PathLike[str]) -> Verification:
    """Check a certificate, or the file that holds one: hash, form, another tilt, plan, published method.

    Guarantee: holds only if the claim was proved again with another tilt, another N and a higher precision. A malformed
    file raises InvalidInputError; a claim that cannot be recomputed does not hold, and the reason says why.

    >>> from exactdp import DiscreteGaussian, certify
    >>> verify(certify(10 * DiscreteGaussian(1), epsilon=30, digits=12)).holds
    True
    """
    record = certificate if isinstance(certificate, Certificate) else Certificate.load(certificate)
    checks = made_checks(record, _CHECKS)
    notes = "; ".join(c.note for c in checks if c.name in ("another tilt", "published method"))
    return concluded(record.claim, checks, f", {record.digits} digits; {notes}")


class Hashed(Protocol):
    """A record that says what its own hash should be."""

    @property
    def sha256(self) -> str:
        """The hash that it came with."""

    def digest(self) -> str:
        """The hash of its content."""


def made_checks(record: Record, checks: Mapping[str, Callable[[Record], tuple[bool | None, str]]]) -> tuple[Check, ...]:
    """The checks one after the other, up to the first that fails; what cannot be recomputed fails."""
    made: list[Check] = []
    for name, check in checks.items():
        started = time.perf_counter()
        try:
            with np.errstate(all="ignore"):  # what overflows is a bound that says nothing
                passed, note = check(record)
        except (ExactDPError, ArithmeticError) as error:
            passed, note = False, f"this could not be recomputed: {error}"
        made.append(Check(name, passed, one_line(note), time.perf_counter() - started))
        if passed is False:
            break
    return tuple(made)


def concluded(claim: str, checks: tuple[Check, ...], found: str) -> Verification:
    """The verdict: the claim holds unless the last check that was made failed; `found` is what else is said then."""
    told = one_line(claim)
    if checks[-1].passed is False:
        return Verification(False, f"Does not hold: {told}: {checks[-1].note}", checks)
    return Verification(True, f"Holds: {told}{found}", checks)


def check_hash(record: Hashed) -> tuple[bool, str]:
    """Whether the record is as it was written."""
    if record.digest() != record.sha256:
        return False, "the SHA-256 is not that of the content, so the record was altered after it was written"
    return True, "SHA-256 matches"


def _check_form(record: Certificate) -> tuple[bool, str]:
    lower, upper = Fraction(record.lower), Fraction(record.upper)
    if lower > upper:
        return False, "the lower end of the enclosure is above its upper end"
    if record.given == "delta" and max(abs(lower), abs(upper)) > LARGEST_EPSILON:
        return False, f"the claimed epsilon is above {LARGEST_EPSILON:,} in size"
    if (upper - lower) * 10**record.digits >= min(abs(lower), abs(upper)):
        return False, f"the enclosure is too wide for the {record.digits} digits that are promised"
    return True, f"the enclosure has {record.digits} digits"


def _check_again(record: Certificate) -> tuple[bool, str]:
    lattice = lattice_of(record.composition)

    def attempt(working: int) -> tuple[tuple[bool, str] | None, int]:
        route = EngineRoute(lattice, working, record.plan)
        side = compare(route, lattice, record.given, record.value, record.ends).side
        if side is None:
            return None, working - record.digits + 10  # 20, 50 and 110 more than the claim has
        named = dict.fromkeys(f"{float(e.tilt):.6g} (N = {e.nodes}, {e.bits} bits)" for e in route.made.values())
        made = f"recomputed with tilt {', '.join(list(named)[:2])}" + (", ..." if len(named) > 2 else "")
        return (side == 0, f"{_missed(record, side)}{made}"), 0

    failure = "these digits do not decide whether the exact value is inside the enclosure"
    return raised(attempt, record.digits, record.digits + _EXTRA, _TRIES, failure)


def _check_plan(record: Certificate) -> tuple[bool, str]:
    ends = (record.lower, record.upper) if record.given == "delta" else None
    plan = prove(record.composition, record.given, record.value, record.digits, ends)[2]
    versions = f"exactdp {exactdp.__version__}, recorded by {record.libraries['exactdp']}"
    if len(plan) != len(record.plan):
        return False, f"the recorded plan has {len(record.plan)} sums where {len(plan)} are made ({versions})"
    for number, (mine, recorded) in enumerate(zip(plan, record.plan, strict=True), 1):
        for name, own in asdict(mine).items():
            if str(own) != str(getattr(recorded, name)):
                return False, f"{name} of sum {number} is {own}, not {shown(getattr(recorded, name))} ({versions})"
    return True, f"the plan of {len(plan)} sums is as recorded"


def _check_reference(record: Certificate) -> tuple[bool | None, str]:
    """The published method with as many digits as are affordable: its enclosure must not miss the claim."""
    mechanisms, depth = record.composition.discrete_gaussians, _depth(record)
    for digits in sorted({record.digits + 3, min(15, record.digits), 5}, reverse=True):
        tolerance = Fraction(1, 10 ** (digits + depth))
        cost = reference.estimated_cost(mechanisms, tolerance) * (1 + (digits + depth) / 100) ** 1.5
        if cost <= REFERENCE_COST:
            break
    else:
        return None, f"the published method was not run (estimated cost {cost:.0e}, limit {REFERENCE_COST:.0e})"
    try:
        route = PublishedRoute(reference.make_reference_plan(mechanisms, tolerance), digits + depth)
        lattice = lattice_of(record.composition)
        found = compare(route, lattice, record.given, record.value, record.ends)
    except ExactDPError as error:
        return None, f"the published method was not run ({error})"
    if found.side:
        return False, f"{_missed(record, found.side)}by the published method"
    if found.digits < _FEWEST:
        return None, "the published method was too coarse to say anything"
    return True, f"the published method agrees to {min(found.digits, record.digits)} digits"


def _missed(record: Certificate, side: int) -> str:
    """How the exact value misses the claim; nothing if it does not."""
    ends = {0: "", -1: f"below the lower end {shown(record.lower)}", 1: f"above the upper end {shown(record.upper)}"}
    return f"{QUANTITY[record.given]} is {ends[side]}, " if side else ""


_CHECKS: dict[str, Callable[[Certificate], tuple[bool | None, str]]] = {
    "hash": check_hash,
    "form": _check_form,
    "another tilt": _check_again,
    "plan": _check_plan,
    "published method": _check_reference,
}


def _depth(record: Certificate) -> int:
    """Decimal digits between 1 and an absolute error that is small against the claim. Heuristic: affects width only."""
    if record.given == "alpha":
        return max(0, -record.lower.adjusted()) + math.ceil(-_log10(record.value)) + 2
    epsilon = record.value if record.given == "epsilon" else Fraction(record.upper)
    small = -record.lower.adjusted() if record.given == "epsilon" else math.ceil(-_log10(record.value))
    return max(0, small) + max(0, math.ceil(epsilon / 2)) + 2


def _log10(value: Fraction) -> float:
    return (math.log(value.numerator) - math.log(value.denominator)) / math.log(10)
