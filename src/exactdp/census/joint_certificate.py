"""Certificates of several products under one change: versioned JSON records of one claim about every combination of paths.

    every combination's delta(E) is at most D, and one of them, the witness, shows that the number before E will not do.

The record holds the designs themselves and what the change moves in each, so that the verifier needs nothing else. What a
verified record proves is Theorem C5 of docs/theory/certification.md; the SHA-256 guards against accidents only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from exactdp.accounting.certificates.certificate import versions
from exactdp.accounting.certificates.record import Record
from exactdp.arithmetic_state import steady
from exactdp.census.changes import Change, Follow, Half
from exactdp.census.design_certificate import (
    DIGITS,
    LARGEST_NUMBER,
    LONGEST_TEXT,
    before,
    checked_answer,
    checked_question,
    design_content,
    has_digits,
    read_design,
)
from exactdp.census.joint import MOST, FollowedProduct, Joint
from exactdp.errors import InvalidInputError
from exactdp.notebooks import repr_html
from exactdp.numbers import exact_text, shown, whole
from exactdp.numerals import whole_text
from exactdp.strict_json import read_decimal, read_fraction, read_text

FORMAT, VERSION = "exactdp joint certificate", 1
MOST_PRODUCTS = 20
MOST_QUERIES = 1_000


@steady
@dataclass(frozen=True)
class JointCertificate(Record):
    """A claim about every combination of paths: delta(epsilon) is at most delta, and the witness proves that less will not do."""

    _repr_html_ = repr_html
    form = FORMAT, VERSION
    indent = 1

    joint: Joint = field(hash=False)
    delta: Fraction
    digits: int
    answer: Decimal
    combinations: int
    witness: int
    """The number of the combination, as `Joint.composition` takes it."""
    libraries: Mapping[str, str] = field(hash=False)
    sha256: str = ""

    @property
    def epsilon(self) -> Fraction:
        """The claimed epsilon."""
        return Fraction(self.answer)

    @property
    def too_small(self) -> Decimal:
        """The number of so many digits before the answer: the witness proves that it will not do."""
        return before(self.answer, self.digits)

    @property
    def claim(self) -> str:
        """The claim in a few words."""
        every = "the only combination of paths"
        if self.combinations > 1:
            every = f"each of {self.combinations:,} combinations of paths"
        return (
            f"{self.joint.name}, {self.joint.change.name}: at epsilon = {self.answer} {every} has delta at most "
            f"{shown(whole_text(self.delta))}"
        )

    def __str__(self) -> str:
        return f"{self.claim}; combination {self.witness} proves that epsilon = {self.too_small} is too small"

    def content(self) -> dict[str, Any]:
        """Everything but the hash, as JSON types; every exact number is a text."""
        change = self.joint.change
        return {
            "format": FORMAT,
            "version": VERSION,
            "change": {"name": change.name, "words": change.words, "invariants": change.invariants},
            "products": [_product_content(part) for part in self.joint.parts],
            "question": {"quantity": "epsilon", "given": "delta", "value": exact_text(self.delta)},
            "digits": self.digits,
            "claim": {"delta": exact_text(self.delta), "epsilon": str(self.answer), "too_small": str(self.too_small)},
            "combinations": self.combinations,
            "witness": self.witness,
            "libraries": dict(self.libraries),
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> JointCertificate:
        """The certificate of a parsed record."""
        digits = _number(record["digits"], "digits", *DIGITS)
        answer = read_decimal(record["claim"], "epsilon")
        if not has_digits(answer, digits):
            raise InvalidInputError(f"The epsilon of a claim must have {digits} digits and differ from 0.")
        joint = _read_joint(record)
        return cls(
            joint,
            checked_question("delta", read_fraction(record["question"], "value")),
            digits,
            checked_answer("delta", answer),
            _number(record["combinations"], "combinations", 1, MOST),
            _number(record["witness"], "witness", 0, MOST),
            {name: read_text(record["libraries"], name, "short text") for name in versions()},
            read_text(record, "sha256", "SHA-256"),
        )


def _product_content(part: FollowedProduct) -> dict[str, Any]:
    """A product, and what the change does to it; None in the place of a vector is what the design itself says."""

    def half(found: Half) -> dict[str, Any]:
        vector = None
        if found.vector is not None:
            vector = [{"query": q, "shift": s, "cells": n} for q, (s, n) in found.vector.items()]
        return {"still": sorted(found.still), "vector": vector}

    return {
        "design": {**design_content(part.release), "fingerprint": part.release.fingerprint},
        "moves": {
            "said": part.follow.said,
            "in_place": part.follow.is_in_place,
            "halves": [half(found) for found in part.follow.halves],
        },
    }


def _read_joint(record: Mapping[str, Any]) -> Joint:
    products = record["products"]
    if not isinstance(products, list) or not 1 <= len(products) <= MOST_PRODUCTS:
        raise InvalidInputError(f"A joint certificate has 1 to {MOST_PRODUCTS} products. Found another number.")
    parts = tuple(_read_product(product) for product in products)
    follows = {part.release.name: part.follow for part in parts}
    if len(follows) < len(parts):
        raise InvalidInputError("Each product of a joint certificate is there once. Found one twice.")
    change = record["change"]
    words = [_text(change, name) for name in ("name", "words", "invariants")]
    joint = Joint(Change(words[0], words[1], follows, "", words[2]), parts)
    if not joint.moved or joint.count > MOST:
        raise InvalidInputError(f"A joint certificate has 1 to {MOST:,} combinations of paths that move. Found others.")
    return joint


def _read_product(product: Mapping[str, Any]) -> FollowedProduct:
    release, moves = read_design(product["design"]), product["moves"]
    if product["design"]["fingerprint"] != release.fingerprint:
        raise InvalidInputError(f"The fingerprint of {shown(release.name)} is not that of its budget.")
    queries = {query for table in release.table.values() for query in table}
    halves = tuple(_read_half(half, queries) for half in moves["halves"])
    if len(halves) > 2 or type(moves["in_place"]) is not bool:
        raise InvalidInputError("A product of a joint certificate moves by at most two halves, in place or not.")
    return FollowedProduct(release, Follow(halves, moves["in_place"], _text(moves, "said")))


def _read_half(half: Mapping[str, Any], queries: set[str]) -> Half:
    still, vector = frozenset(_text({"query": q}, "query") for q in half["still"]), half["vector"]
    found = None
    if vector is not None:
        found = {
            _text(v, "query"): (
                _number(v["shift"], "shift", 1, LARGEST_NUMBER),
                _number(v["cells"], "cells", 1, LARGEST_NUMBER),
            )
            for v in vector
        }
    if len(half["still"]) > MOST_QUERIES or not (still | set(found or ())) <= queries:
        raise InvalidInputError("The queries that a change moves must be queries of the design. Found others.")
    return Half(still, found)


def _text(record: Mapping[str, Any], name: str) -> str:
    text = record[name]
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise InvalidInputError(f"{name} must be a text of at most {LONGEST_TEXT:,} characters.")
    return text


def _number(value: object, name: str, least: int, most: int) -> int:
    if type(value) is not int:
        raise InvalidInputError(f"{name} must be a whole number. Found {shown(ascii(value))}.")
    return whole(value, name, least, most)
