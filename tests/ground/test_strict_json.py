"""Strict JSON: what is read exactly, what is refused and in which words, one spelling for one content."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactdp.errors import InvalidInputError
from exactdp.strict_json import (
    LARGEST_EXPONENT,
    canonical,
    load,
    parse,
    pattern,
    read_decimal,
    read_fraction,
    read_text,
    read_whole,
    writable,
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1, "a": 1}', "a name occurs twice"),
        ('{"b": {"a": 1, "a": 2}}', "a name occurs twice"),
        ('{"a": 0.5}', "in quotation marks, found 0.5"),
        ('{"a": 1e3}', "in quotation marks, found 1e3"),
        ('{"a": NaN}', "in quotation marks, found NaN"),
        ('{"a": -Infinity}', "in quotation marks, found -Infinity"),
        ('{"a": 1234567890}', "found 1234567890"),
        ("[1]", "Found list"),
        ("{", "not the JSON of a certificate"),
        ("[" * 100_000, "not the JSON of a certificate"),
    ],
)
def test_what_no_certificate_has_is_refused(text: str, told: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(told)) as refused:
        parse(text)
    assert len(str(refused.value)) < 300


def test_doubles_are_read_where_they_are_wanted_and_within_their_range() -> None:
    assert load("[0.5, 1e-400, -7]", "No", 3, doubles=True) == [0.5, 0.0, -7]
    for text in ("1e400", "-1e999", "NaN", "1000"):
        with pytest.raises(
            InvalidInputError, match=f"No: a number must be a double or in quotation marks, found {text}"
        ):
            load(text, "No", 3, doubles=True)
    with pytest.raises(InvalidInputError, match="Found bytes"):
        load(b"1", "No", 3, doubles=True)


def test_numbers_are_texts_and_exact() -> None:
    record = {"f": "-11/10000", "w": "20", "d": "1.25E-10"}
    assert read_fraction(record, "f") == Fraction(-11, 10_000)
    assert read_whole(record, "w") == 20
    assert read_decimal(record, "d") == Decimal("1.25E-10")


@pytest.mark.parametrize(
    ("read", "value"),
    [
        *((read_fraction, bad) for bad in ("1/0", "0.5", "1/-2", " 1", "1\n", "", "1" * 3901, 1, None, "\u0661")),
        *((read_whole, bad) for bad in ("1.0", "1e3", "+1", "9" * 201, 1, True)),
        *((read_decimal, bad) for bad in ("1e5", ".5", "NaN", "Infinity", f"1E-{LARGEST_EXPONENT + 1}", 0.5)),
    ],
)
def test_other_spellings_are_refused_in_a_short_sentence(read: object, value: object) -> None:
    with pytest.raises(InvalidInputError, match=r"^x must") as refused:
        read({"x": value}, "x")  # type: ignore[operator]
    assert len(str(refused.value)) < 300


def test_the_patterns_are_those_of_the_reader() -> None:
    for kind, text in {"fraction": "1/3", "decimal": "1.5E-7", "whole number": "-3", "SHA-256": "0" * 64}.items():
        assert read_text({"x": text}, "x", kind) == text
        assert re.search(pattern(kind), text)
        assert not re.search(pattern(kind), f"{text} ")


def test_fractions_that_are_too_long_for_a_text_are_refused() -> None:
    longest = Fraction(2**12_900 - 1)
    assert writable(longest, "x") is longest
    assert read_fraction({"x": str(longest)}, "x") == longest
    for value in (longest + 1, 1 / (longest + 1)):
        with pytest.raises(InvalidInputError, match="x must be a fraction of at most 3,880 digits"):
            writable(value, "x")


@given(st.dictionaries(st.text(max_size=3), st.text(max_size=3) | st.integers(-9999, 9999), max_size=4))
def test_one_content_has_one_spelling(content: dict[str, object]) -> None:
    text = canonical(content)
    assert text.isascii()
    assert text == canonical(dict(reversed(content.items())))
    assert parse(text) == content == json.loads(text)
