"""Certificates: versioned JSON records of an answer, and their verification by other routes.

What a verified certificate proves: the claimed enclosure contains the exact answer to the recorded question about the
recorded composition, keeps the promised digits, and the recorded plan is the one this library makes for it.

The SHA-256 guards against accidents only, since whoever edits a record can hash it again. What guards the claim is the
recomputation, on another tilt with another N at a higher precision, and by the published method where affordable.
A change that leaves every statement true (an enclosure widened within the promised digits, another library version, and
a new hash) is not a false claim, and verifies. Nothing here says who made a certificate: sign the file for that.

Plans are part of the format: a change of the engine's plans needs a new VERSION.
"""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from exactdp.accounting.certificates.record import Record
from exactdp.accounting.certificates.routes import QUANTITY, Evaluation, prove
from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.elementwise import read_digits
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.notebooks import repr_html
from exactdp.numbers import LARGEST_EPSILON, Number, exact_text, rational, shown
from exactdp.numerals import exact
from exactdp.strict_json import read_decimal, read_fraction, read_text, read_whole, writable
from exactdp.version import computed_with

FORMAT, VERSION = "exactdp certificate", 1
_LOG = logging.getLogger(__name__)

MOST_GROUPS, _MOST_COPIES = 1_000, 10**15


@steady
@dataclass(frozen=True)
class Certificate(Record):
    """A claim about a composition: given epsilon, delta or alpha, the answer lies between `lower` and `upper`."""

    _repr_html_ = repr_html
    form = FORMAT, VERSION

    composition: Composition
    given: str
    value: Fraction
    digits: int
    lower: Decimal
    upper: Decimal
    plan: tuple[Evaluation, ...]
    libraries: Mapping[str, str] = field(hash=False)
    sha256: str = ""

    @property
    def claim(self) -> str:
        """The claim in a few words, such as "delta at epsilon = 3"; long numbers are abbreviated."""
        return f"{QUANTITY[self.given]} at {self.given} = {exact(self.value)}"

    def __str__(self) -> str:
        rows = {
            "at least": self.lower,
            "at most": self.upper,
            "digits": self.digits,
            "of": self.composition,
            "SHA-256": self.sha256,
        }
        return "\n".join([f"Certificate: {self.claim}", *(f"  {name:<8}  {value}" for name, value in rows.items())])

    @property
    def ends(self) -> tuple[Decimal, Decimal]:
        """The enclosure."""
        return self.lower, self.upper

    def content(self) -> dict[str, Any]:
        """Everything but the hash, as JSON types; every exact number is a text."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "composition": [
                {"sigma2": exact_text(m.sigma2), "sensitivity": str(m.sensitivity), "count": str(n)}
                for m, n in self.composition.discrete_gaussians.items()
            ],
            "question": {"quantity": QUANTITY[self.given], "given": self.given, "value": exact_text(self.value)},
            "digits": self.digits,
            "enclosure": {"lower": str(self.lower), "upper": str(self.upper)},
            "plan": [{k: v if k == "payoff" else str(v) for k, v in asdict(e).items()} for e in self.plan],
            "libraries": dict(self.libraries),
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Certificate:
        """The certificate of a parsed record."""
        return _read(record)


@steady
def certify(
    composition: Composition,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    alpha: Number | None = None,
    digits: int = 30,
    path: str | os.PathLike[str] | None = None,
) -> Certificate:
    """A certificate of delta at `epsilon`, of epsilon at `delta`, or of beta at `alpha`: exactly one of them.

    With `path` it is also written to that file, all of it or nothing.

    Guarantee: the enclosure contains the exact answer and is less than 10^-digits wide in relative terms.

    >>> certificate = certify(10 * DiscreteGaussian(1), epsilon=30, digits=12)
    >>> certificate.claim, f"{certificate.lower:.12E}"
    ('delta at epsilon = 30', '1.842766666664E-16')
    """
    asked = {"epsilon": epsilon, "delta": delta, "alpha": alpha}
    present = [name for name, number in asked.items() if number is not None]
    if len(present) != 1:
        found = " and ".join(present) or "none of them"
        raise InvalidInputError(f"A certificate answers one question: give epsilon, delta or alpha. Found {found}.")
    given, value = present[0], _question(present[0], rational(asked[present[0]], present[0]))
    digits = read_digits(digits)
    lower, upper, plan = prove(_checked(composition), given, value, digits)
    _LOG.debug("%d digits of %s are proved by %d Fourier sums.", digits, QUANTITY[given], len(plan))
    result = Certificate(composition, given, value, digits, lower, upper, plan, versions())
    result = replace(result, sha256=result.digest())
    if path is not None:
        result.save(path)
    return result


def _question(given: str, value: Fraction) -> Fraction:
    """The given number, refused where the answer needs no computation or the number is too long to write down."""
    if given == "epsilon":
        if abs(value) > LARGEST_EPSILON:
            raise InvalidInputError(f"epsilon must be at most {LARGEST_EPSILON:,} in size. Found {shown(value)}.")
    elif not 0 < value < 1:
        raise InvalidInputError(f"{given} must be strictly between 0 and 1 in a certificate. Found {shown(value)}.")
    return writable(value, given)


def _checked(composition: Composition) -> Composition:
    """The composition, refused where a record of it would be out of bounds."""
    if not isinstance(composition, Composition):
        raise InvalidInputError(f"A certificate is about a Composition. Found {type(composition).__name__}.")
    if len(composition.discrete_gaussians) > MOST_GROUPS:
        found = len(composition.discrete_gaussians)
        raise InvalidInputError(f"A certificate has at most {MOST_GROUPS} distinct mechanisms. Found {found}.")
    for mechanism, count in composition.discrete_gaussians.items():
        writable(mechanism.sigma2, "sigma2")
        if count > _MOST_COPIES:
            raise InvalidInputError(f"A certificate counts at most {_MOST_COPIES} equal mechanisms. Found {count:.3g}.")
    return composition


def _read(record: dict[str, Any]) -> Certificate:
    """The certificate of a parsed record; KeyError or TypeError where fields are missing or of another type."""
    if len(record["composition"]) > MOST_GROUPS:
        raise InvalidInputError(f"A certificate has at most {MOST_GROUPS} distinct mechanisms.")
    counts = {
        DiscreteGaussian(read_fraction(entry, "sigma2"), read_whole(entry, "sensitivity")): read_whole(entry, "count")
        for entry in record["composition"]
    }
    given = read_text(record["question"], "given", "short text")
    if given not in QUANTITY:
        raise InvalidInputError(f"A certificate's question gives {', '.join(QUANTITY)}. Found {given}.")
    if type(record["digits"]) is not int:
        raise InvalidInputError("digits must be a whole number from 5 to 1000 in a certificate.")
    plan = tuple(
        Evaluation(
            read_text(entry, "payoff", "short text"),
            read_whole(entry, "start"),
            read_fraction(entry, "tilt"),
            read_whole(entry, "nodes"),
            read_whole(entry, "kept"),
            read_whole(entry, "aim_digits"),
            read_whole(entry, "bits"),
            read_decimal(entry, "aliased"),
            read_decimal(entry, "dropped"),
        )
        for entry in record["plan"]
    )
    return Certificate(
        _checked(Composition(counts)),
        given,
        _question(given, read_fraction(record["question"], "value")),
        read_digits(record["digits"]),
        read_decimal(record["enclosure"], "lower"),
        read_decimal(record["enclosure"], "upper"),
        plan,
        {name: read_text(record["libraries"], name, "short text") for name in versions()},
        read_text(record, "sha256", "SHA-256"),
    )


def versions() -> dict[str, str]:
    """The versions of the libraries that a certificate names."""
    found = computed_with()
    return {"exactdp": found.pop("exactdp"), "python": platform.python_version(), **found}
