"""Strict JSON: exact numbers are texts of bounded length, names are unique, a refusal is one short sentence."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from exactdp.errors import InvalidInputError
from exactdp.numbers import rational, shown

LARGEST_EXPONENT = 100_000
"""Decimals below 1E-100000 are not written down."""

_MOST_BITS = 12_900  # of a numerator or denominator: 3,883 decimal digits
_TEXTS = {
    "fraction": re.compile(r"-?[0-9]{1,3900}(/[0-9]{1,3900})?"),
    "decimal": re.compile(r"-?[0-9]{1,1100}(\.[0-9]{1,1100})?(E[+-]?[0-9]{1,6})?"),
    "whole number": re.compile(r"-?[0-9]{1,200}"),
    "SHA-256": re.compile(r"[0-9a-f]{64}"),
    "short text": re.compile(r"[A-Za-z0-9.+_ -]{1,60}"),
}


def pattern(kind: str) -> str:
    """The texts of one of the kinds above, as a regular expression of JSON Schema."""
    return f"^(?:{_TEXTS[kind].pattern})$"


def parse(text: str) -> dict[str, Any]:
    """JSON without duplicate names, fractional numbers or long integers: a certificate has none."""
    record = load(text, "The file is not the JSON of a certificate", digits=9, doubles=False)
    if not isinstance(record, dict):
        raise InvalidInputError(f"A certificate is a JSON object. Found {type(record).__name__}.")
    return record


def load(text: object, refusal: str, digits: int, doubles: bool, written: Callable[[str], Any] | None = None) -> Any:
    """Any JSON value without duplicate names, NaN and Infinity, or bare integers of more than `digits` characters; numbers with a
    fraction or an exponent only with `doubles`, and only within their range, or as `written` takes them down."""

    def refuse(number: str) -> NoReturn:
        raise ValueError(f"a number must be {'a double or ' * doubles}in quotation marks, found {shown(number)}")

    def real(number: str) -> Any:
        if written is not None:
            return written(number)
        return float(number) if doubles and math.isfinite(float(number)) else refuse(number)

    def integer(number: str) -> int:
        return int(number) if len(number) <= digits else refuse(number)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name occurs twice in an object")
        return dict(pairs)

    if not isinstance(text, str):
        raise InvalidInputError(f"JSON must be given as a text. Found {type(text).__name__}.")
    try:
        return json.loads(text, parse_int=integer, parse_float=real, parse_constant=refuse, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{refusal}: {error}.") from None


def read_text(record: Mapping[str, Any], name: str, kind: str) -> str:
    """A text of one of the kinds above."""
    text = record[name]
    if not isinstance(text, str) or not _TEXTS[kind].fullmatch(text):
        raise InvalidInputError(f"{name} must be a {kind} in quotation marks. Found {shown(ascii(text))}.")
    return text


def read_fraction(record: Mapping[str, Any], name: str) -> Fraction:
    """A text such as "11/10000"."""
    return writable(rational(read_text(record, name, "fraction"), name), name)


def read_whole(record: Mapping[str, Any], name: str) -> int:
    """A text such as "20"."""
    return int(read_text(record, name, "whole number"))


def read_decimal(record: Mapping[str, Any], name: str) -> Decimal:
    """A text such as "1.25E-10", its exponent bounded."""
    result = Decimal(read_text(record, name, "decimal"))
    if abs(result.adjusted()) > LARGEST_EXPONENT:
        raise InvalidInputError(f"{name} must be between 1E-{LARGEST_EXPONENT} and 1E+{LARGEST_EXPONENT} in size.")
    return result


def writable(value: Fraction, name: str) -> Fraction:
    """The value, refused if its numerator or denominator is too long for a text."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS:
        raise InvalidInputError(f"{name} must be a fraction of at most 3,880 digits. Found {shown(value)}.")
    return value


def canonical(content: Mapping[str, Any]) -> str:
    """One spelling for each content: sorted keys, no white space, ASCII."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))
