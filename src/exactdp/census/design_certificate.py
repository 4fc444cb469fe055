"""Certificates of a whole design: versioned JSON records of one claim about every pair of directed paths.

    every pair's delta(E) is at most D, and one pair, the witness, shows that the number before E (or before D) will not do.

One of E and D is the question; the other is the answer, rounded up to `digits` significant digits. What a verified record
proves is Theorem C4 of docs/theory/certification.md. The record holds the design itself, so that the verifier needs nothing else.
As in a certificate of one composition, the SHA-256 guards against accidents only; what guards the claim is the recomputation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from exactdp.accounting.certificates.certificate import versions
from exactdp.accounting.certificates.record import Record
from exactdp.accounting.certificates.routes import QUANTITY
from exactdp.arithmetic_state import steady
from exactdp.census.budget_design import MOST_BYPASSED, MOST_CELLS, total_budget
from exactdp.census.cell_noise import CellNoise
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.guarantees.neighbours import REPLACE
from exactdp.notebooks import repr_html
from exactdp.numbers import LARGEST_EPSILON, exact_text, positive, shown, whole
from exactdp.numerals import counted, whole_text
from exactdp.strict_json import (
    LARGEST_EXPONENT,
    read_decimal,
    read_fraction,
    read_text,
    read_whole,
    writable,
)

FORMAT, VERSION = "exactdp design certificate", 1
DIGITS = 2, 50
"""The fewest and the most significant digits of an answer."""
GIVEN = ("delta", "epsilon")
METHODS = ("float64 on shared contours", "the Gaussian gap", "float64", "balls")
"""What may have proved that a pair's delta is small enough, in the order in which it is tried."""
MOST_CONTOURS = 1_000
LONGEST_TEXT = 10_000
MOST_WORK = 500_000
"""Budgets times pairs: what a verifier must go through before it can say anything (the DHC file has 76,000)."""
LARGEST_NUMBER = 99_999_999
"""Of a directed path, and of a count."""


class DesignContour(NamedTuple):
    """The tilt and the number of nodes of Fourier sums that were used: verification takes others."""

    tilt: Fraction
    nodes: int


@dataclass(frozen=True)
class DesignEvidence:
    """How the claim was proved: the different compositions among the pairs, what decided how many of them, on which contours."""

    compositions: int
    methods: Mapping[str, int] = field(hash=False)
    contours: tuple[DesignContour, ...]


@steady
@dataclass(frozen=True)
class DesignCertificate(Record):
    """A claim about every pair of a design: delta(epsilon) is at most delta, and the witness proves that less will not do."""

    _repr_html_ = repr_html
    form = FORMAT, VERSION
    indent = 1

    release: Release
    fingerprint: str
    given: str
    value: Fraction
    digits: int
    answer: Decimal
    pairs: int
    witness: tuple[int, int]
    evidence: DesignEvidence
    libraries: Mapping[str, str] = field(hash=False)
    sha256: str = ""

    @property
    def epsilon(self) -> Fraction:
        """The claimed epsilon."""
        return self.value if self.given == "epsilon" else Fraction(self.answer)

    @property
    def delta(self) -> Fraction:
        """The claimed delta."""
        return self.value if self.given == "delta" else Fraction(self.answer)

    @property
    def too_small(self) -> Decimal:
        """The number of so many digits before the answer: the witness proves that it will not do."""
        return before(self.answer, self.digits)

    @property
    def refuted(self) -> tuple[Fraction, Fraction]:
        """The epsilon and delta that the witness does not satisfy."""
        small = Fraction(self.too_small)
        return (self.value, small) if self.given == "epsilon" else (small, self.value)

    @property
    def texts(self) -> tuple[str, str]:
        """The claimed epsilon and delta as people read them; a long question is abbreviated."""
        question, answer = shown(whole_text(self.value)), _readable(self.answer)
        return (question, answer) if self.given == "epsilon" else (answer, question)

    @property
    def refuted_text(self) -> str:
        """The number that is too small, with its name."""
        return f"{QUANTITY[self.given]} = {_readable(self.too_small)}"

    @property
    def claim(self) -> str:
        """The claim in a few words."""
        epsilon, delta = self.texts
        every = "its only pair has" if self.pairs == 1 else f"each of its {counted(self.pairs, 'pair')} has"
        return f"{shown(self.release.name)}: at epsilon = {epsilon} {every} delta at most {delta}"

    def __str__(self) -> str:
        return f"{self.claim}; pair {self.witness[0]},{self.witness[1]} proves that {self.refuted_text} is too small"

    def content(self) -> dict[str, Any]:
        """Everything but the hash, as JSON types; every exact number is a text, in lists where the order matters."""
        given, written = ("epsilon", "delta") if self.given == "epsilon" else ("delta", "epsilon")
        return {
            "format": FORMAT,
            "version": VERSION,
            "design": {**design_content(self.release), "fingerprint": self.fingerprint},
            "question": {"quantity": QUANTITY[self.given], "given": self.given, "value": exact_text(self.value)},
            "digits": self.digits,
            "claim": {given: exact_text(self.value), written: str(self.answer), "too_small": str(self.too_small)},
            "pairs": self.pairs,
            "witness": list(self.witness),
            "evidence": {
                "compositions": self.evidence.compositions,
                "methods": [{"method": m, "compositions": n} for m, n in self.evidence.methods.items()],
                "contours": [{"tilt": exact_text(c.tilt), "nodes": str(c.nodes)} for c in self.evidence.contours],
            },
            "libraries": dict(self.libraries),
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> DesignCertificate:
        """The certificate of a parsed record."""
        return _read(record)


def _readable(answer: Decimal) -> str:
    return str(answer).replace("E", "e").replace("e+", "e")


def rounded_up(value: Fraction, digits: int) -> Decimal:
    """The least decimal of so many significant digits that is at least the value."""
    return _context(digits).divide(Decimal(value.numerator), Decimal(value.denominator))


def before(answer: Decimal, digits: int) -> Decimal:
    """The largest decimal of so many significant digits that is below the answer."""
    return _context(digits).next_minus(answer)


def _context(digits: int) -> Context:
    return Context(prec=digits, rounding=ROUND_CEILING, Emin=-999_999, Emax=999_999)


def has_digits(answer: Decimal, digits: int) -> bool:
    """Whether a number can be written with so many significant digits; 0, which has no number before it, cannot."""
    return answer.is_finite() and bool(answer) and _context(digits).plus(answer) == answer


def checked_question(given: str, value: Fraction) -> Fraction:
    """The given number, refused where the answer needs no computation or the number is too long to write down."""
    if given == "epsilon":
        if abs(value) > LARGEST_EPSILON:
            raise InvalidInputError(f"epsilon must be at most {LARGEST_EPSILON:,} in size. Found {shown(value)}.")
    elif not 0 < value < 1:
        raise InvalidInputError(f"delta must be strictly between 0 and 1 in a certificate. Found {shown(value)}.")
    return writable(value, given)


def checked_answer(given: str, answer: Decimal) -> Decimal:
    """The answer, refused where it is out of the range that can be written down and asked for again."""
    if given == "delta" and abs(answer) > LARGEST_EPSILON:
        raise InvalidInputError(
            f"epsilon must be at most {LARGEST_EPSILON:,} in size in a certificate. Ask for a larger delta."
        )
    if given == "epsilon" and not (0 < answer <= 1 and answer.adjusted() >= 1 - LARGEST_EXPONENT):
        raise InvalidInputError(
            f"delta must be between 1E-{LARGEST_EXPONENT} and 1 in a certificate. Ask nearer to the bulk."
        )
    return answer


# --- the design inside


def design_content(release: Release) -> dict[str, Any]:
    """The fields of a release as JSON types, in lists, since the order of levels matters and that of keys does not."""

    def noise(level: str, query: str) -> dict[str, Any]:  # only where it is not the usual one
        found = release.noise.get((level, query))
        return {} if found is None else {"noise": found.kind, "sensitivity": found.sensitivity, "cells": found.cells}

    return {
        "name": release.name,
        "title": release.title,
        "source": release.source,
        **({"unit_of_privacy": release.unit_of_privacy} if release.unit_of_privacy else {}),
        **({} if release.relation == REPLACE else {"relation": release.relation}),
        "levels": [
            {
                "level": level,
                "queries": [{"query": q, "rho": exact_text(rho), **noise(level, q)} for q, rho in queries.items()],
            }
            for level, queries in release.table.items()
        ],
        "bypassed": [{"number": number, "levels": list(levels)} for number, levels in release.bypassed.items()],
    }


def read_design(content: Mapping[str, Any]) -> Release:
    """The release of `design_content`, refused where a path of it could not be accounted for."""
    levels, bypassed = content["levels"], content["bypassed"]
    if not isinstance(levels, list) or not isinstance(bypassed, list) or not levels or not bypassed:
        raise InvalidInputError("A design certificate lists levels and sets of bypassed levels. Found none.")
    cells = sum(len(entry["queries"]) for entry in levels)
    if max(cells, len(levels)) > MOST_CELLS or len(bypassed) > MOST_BYPASSED:
        raise InvalidInputError(
            f"A design certificate has at most {MOST_CELLS:,} budgets and {MOST_BYPASSED:,} sets of bypassed levels. Found more."
        )
    if cells * len(bypassed) * (len(bypassed) + 1) // 2 > MOST_WORK:
        raise InvalidInputError(
            f"A design certificate has at most {MOST_WORK:,} budgets, counted once for each pair of paths. Found more."
        )
    table: dict[str, dict[str, Fraction]] = {}
    noise: dict[tuple[str, str], CellNoise] = {}
    for entry in levels:
        queries = {_text(q, "query"): positive(read_fraction(q, "rho"), "rho") for q in entry["queries"]}
        if not queries:
            raise InvalidInputError("A level must have at least one query. Found none.")
        level = _text(entry, "level")
        table[level] = queries
        for q in entry["queries"]:
            if "noise" in q:
                touched = _number(q["sensitivity"], "sensitivity", 1), _number(q["cells"], "cells", 1)
                noise[level, q["query"]] = CellNoise(_text(q, "noise"), *touched)
    total_budget(table)  # refuses what no path could have
    sets = {_number(entry["number"], "number"): tuple(_texts(entry["levels"])) for entry in bypassed}
    for level in {level for chosen in sets.values() for level in chosen}:
        if level not in list(table)[1:]:
            raise InvalidInputError(f"A bypassed level must be one below the top. Found {shown(ascii(level))}.")
    name, title, source = (_text(content, text) for text in ("name", "title", "source"))
    relation = _text(content, "relation") if "relation" in content else REPLACE
    unit_of_privacy = _text(content, "unit_of_privacy") if "unit_of_privacy" in content else ""
    release = Release(name, title, source, table, sets, relation, noise, unit_of_privacy)
    release.check_noise()  # refuses noise that there is not
    return release


def checked_design(release: Release) -> Release:
    """The release, refused unless a record of it says everything about it."""
    if not isinstance(release, Release):
        raise InvalidInputError(f"A design certificate is about a Release. Found {type(release).__name__}.")
    for queries in release.table.values():
        for rho in queries.values():
            writable(rho, "rho")
    again = read_design(design_content(release))
    if again != release or again.fingerprint != release.fingerprint:
        raise InvalidInputError(
            f"{shown(release.name)} cannot be written down as a design. Certify its pairs one by one."
        )
    return release


def _text(record: Mapping[str, Any], name: str) -> str:
    text = record[name]
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise InvalidInputError(
            f"{name} must be a text of at most {LONGEST_TEXT:,} characters. Found {shown(ascii(text))}."
        )
    return text


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list):
        raise InvalidInputError(f"The levels of a set must be in a list. Found {shown(ascii(values))}.")
    return [_text({"level": value}, "level") for value in values]


def _number(value: object, name: str, least: int = -LARGEST_NUMBER) -> int:
    if type(value) is not int:
        raise InvalidInputError(f"{name} must be a whole number. Found {shown(ascii(value))}.")
    return whole(value, name, least, LARGEST_NUMBER)


def _read(record: dict[str, Any]) -> DesignCertificate:
    """The certificate of a parsed record; KeyError or TypeError where fields are missing or of another type."""
    given = read_text(record["question"], "given", "short text")
    if given not in GIVEN:
        raise InvalidInputError(f"A design certificate's question gives {' or '.join(GIVEN)}. Found {given}.")
    digits = whole(_number(record["digits"], "digits"), "digits", *DIGITS)
    answer = read_decimal(record["claim"], QUANTITY[given])
    if not has_digits(answer, digits):
        raise InvalidInputError(f"The {QUANTITY[given]} of a claim must have {digits} digits and differ from 0.")
    evidence, first_second = record["evidence"], record["witness"]
    if not isinstance(first_second, list) or len(first_second) != 2:
        raise InvalidInputError(f"The witness must be a pair of paths. Found {shown(ascii(first_second))}.")
    if len(evidence["contours"]) > MOST_CONTOURS:
        raise InvalidInputError(f"A design certificate lists at most {MOST_CONTOURS:,} contours. Found more.")
    design = record["design"]
    return DesignCertificate(
        read_design(design),
        read_text(design, "fingerprint", "SHA-256"),
        given,
        checked_question(given, read_fraction(record["question"], "value")),
        digits,
        checked_answer(given, answer),
        _number(record["pairs"], "pairs", 1),
        (_number(first_second[0], "witness"), _number(first_second[1], "witness")),
        DesignEvidence(
            _number(evidence["compositions"], "compositions", 1),
            _read_methods(evidence["methods"]),
            tuple(DesignContour(read_fraction(c, "tilt"), read_whole(c, "nodes")) for c in evidence["contours"]),
        ),
        {name: read_text(record["libraries"], name, "short text") for name in versions()},
        read_text(record, "sha256", "SHA-256"),
    )


def _read_methods(entries: Any) -> dict[str, int]:
    counts = {_text(entry, "method"): _number(entry["compositions"], "compositions", 1) for entry in entries}
    for name in counts:
        if name not in METHODS:
            raise InvalidInputError(f"A method is one of {', '.join(METHODS)}. Found {shown(ascii(name))}.")
    return counts
