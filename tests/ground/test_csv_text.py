"""Texts of spreadsheets: every encoding they write is read as it is, and refusals name the line and hold nothing."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactdp.csv_text import decoded, refuse_spreadsheet, separator
from exactdp.errors import InvalidInputError

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"))


@given(TEXTS)
def test_what_spreadsheets_write_is_read_as_it_is(text: str) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        assert decoded(text.encode(encoding), "A budget file") == text
    assert decoded(codecs.BOM_UTF16_BE + text.encode("utf-16-be"), "Counts") == text


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a\nb\nñ4711".encode("latin-1"), 3),
        ("a\r\nñ4711".encode("latin-1"), 2),
        ("a\rb\rñ4711".encode("latin-1"), 3),
        ("a\n4711".encode("utf-16-le"), 1),  # without a mark
        ("a\n4711".encode("utf-32"), 1),
        ("a\nb4711\n".encode("utf-16")[:-1], 2),
        ("a\n4711".encode("utf-16") + b"\x00\xd8\x41\x00", 2),
        (b"PK\x03\x04\x14\x00\x06\x004711", 1),
    ],
)
def test_other_bytes_are_refused_with_their_line_and_not_shown(content: bytes, line: int) -> None:
    with pytest.raises(InvalidInputError, match=f"in line {line}; save it as UTF-8") as refused:
        decoded(content, "Counts")
    assert "4711" not in str(refused.value)
    assert refused.value.__context__ is None  # a UnicodeDecodeError would hold all of the content


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("level,query,rho", ","),
        ("level;query;rho", ";"),
        ("level\tquery\trho", "\t"),
        ('"a;b",level', ","),
        ('"a,""b";level', ";"),
        ("level,a;b;c", ","),
        ("level", ","),
        ("", ","),
    ],
)
def test_the_header_tells_the_separator(header: str, expected: str) -> None:
    assert separator(header) == expected


@pytest.mark.parametrize("name", ["budget.xlsx", "BUDGET.XLS", "a.b.ods"])
def test_workbooks_are_told_what_to_save_as(name: str) -> None:
    with pytest.raises(InvalidInputError, match="save the sheet as CSV UTF-8"):
        refuse_spreadsheet(name, "A budget file")
    refuse_spreadsheet("budget.csv", "A budget file")
