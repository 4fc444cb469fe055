"""Cells of CSV files that no spreadsheet takes for a formula.

A spreadsheet computes a cell that starts with =, +, -, @, a tab or a line break, so that a name could make it fetch an address or
run a program. Such a text is written with an apostrophe before it, which spreadsheets take as "this is text"; the readers of
exactdp take it off again. Numbers stay as they are.
"""

from __future__ import annotations

import re

_STARTS_A_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?(/\d+)?|inf|nan)", re.ASCII | re.IGNORECASE)


def as_cell(value: object) -> object:
    """What stands in the cell for a value.

    Guarantee: `from_cell(as_cell(text)) == text` for every text, and a text starts no formula unless it is a number.

    >>> as_cell("=1+1"), as_cell("-1.5"), as_cell("age * sex"), as_cell("'=")
    ("'=1+1", '-1.5', 'age * sex', "''=")
    """
    if isinstance(value, str) and _STARTS_A_FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def from_cell(text: str) -> str:
    """The text that was written so.

    >>> from_cell("'=1+1"), from_cell("'tis")
    ('=1+1', "'tis")
    """
    return text[1:] if text.startswith("'") and _STARTS_A_FORMULA.match(text) else text
