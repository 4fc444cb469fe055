"""Results as data frames of pandas or polars, CSV and Parquet files, and HTML for notebooks.

A column has one type. Floats stay the doubles they are. Fractions become the nearest doubles in data frames and Parquet files;
in CSV they are decimals, with the exact text in a column of its own where that is needed. Bounds in CSV are on their safe side as
decimals too. Decimals, and numbers beyond the range of a column, are texts, which lose nothing.
"""

from __future__ import annotations

import html
import io
import os
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from exactdp.arithmetic_state import steady
from exactdp.census.tables import numeric_csv
from exactdp.errors import InvalidInputError, MissingExtraError
from exactdp.files import write_bytes, write_text
from exactdp.interop.result_tables import Table, cell, cell_text, is_in_range, page_of, table_of
from exactdp.numbers import shown

MOST_ROWS = 60
"""Rows that a notebook shows; the title says how many there are."""

Column = tuple[type, list[Any]]
"""The type of a column, which is str, bool, int or float, and its values; empty cells are None."""


@steady
def to_frame(obj: object, library: Literal["pandas", "polars"] = "pandas") -> Any:
    """A data frame of a result, of a list of results, or of rows given as mappings from column to value.

    A mapping from name to result (or row) gets a first column `name`.
    """
    if library not in _FRAMES:
        raise InvalidInputError(f"A data frame is made by one of {', '.join(_FRAMES)}. Found {shown(library)}.")
    return _FRAMES[library](_columns(table_of(obj)))


@steady
def write_table(obj: object, path: str | os.PathLike[str]) -> None:
    """Write what `to_frame` shows as CSV or Parquet, as the suffix says, all of it or nothing."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InvalidInputError(f"A table is written to a .csv or .parquet file. Found {shown(Path(path).name)}.")
    table = table_of(obj)
    if suffix == ".parquet":
        write_bytes(path, _parquet(_columns(table)))
        return
    try:
        write_text(path, numeric_csv(table.columns, (map(_csv_cell, row) for row in table.rows)))
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"A text in a file must be Unicode. Found {error.object[error.start]!a}.") from None


def _csv_cell(value: object) -> object:
    """A cell for a CSV file: numbers within the doubles as they are, everything else as an exact text."""
    given = cell(value)
    return given if isinstance(given, (float, Fraction)) and is_in_range(given) else cell_text(given)


@steady
def as_html(result: object) -> str:
    """The HTML of an object that a notebook shows."""
    table = page_of(result)
    count = len(table.rows)
    more = "" if count <= MOST_ROWS else f" (the first {MOST_ROWS} of {count:,} rows)"
    return html_table(table.title + more, table.columns, table.rows[:MOST_ROWS])


@steady
def html_table(title: str, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A plain HTML table; every text is escaped.

    >>> print(html_table("a < b", ["x"], [["<script>"]]))
    <table>
    <caption>a &lt; b</caption>
    <thead><tr><th scope="col">x</th></tr></thead>
    <tbody>
    <tr><td>&lt;script&gt;</td></tr>
    </tbody>
    </table>
    """
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in columns)
    body = ["".join(f"<td>{html.escape(cell_text(value))}</td>" for value in row) for row in rows]
    lines = ["<table>", f"<caption>{html.escape(title)}</caption>", f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    return "\n".join([*lines, *(f"<tr>{row}</tr>" for row in body), "</tbody>", "</table>"])


def _columns(table: Table) -> dict[str, Column]:
    return {name: _column([cell(row[i]) for row in table.rows]) for i, name in enumerate(table.columns)}


def _column(values: list[Any]) -> Column:
    present = [value for value in values if value is not None]
    kinds = {type(value) for value in present}
    if kinds == {bool}:
        return bool, values
    if kinds == {int} and all(-(1 << 63) <= value < 1 << 63 for value in present):
        return int, values
    if kinds and kinds <= {int, float, Fraction} and kinds != {int} and all(map(is_in_range, present)):
        return float, [None if value is None else float(value) for value in values]
    return str, [None if value is None else cell_text(value) for value in values]


def _pandas(columns: dict[str, Column]) -> Any:
    pandas = _module("pandas")
    full = {float: "float64", int: "int64", bool: "bool", str: None}
    gaps = {**full, int: "Int64", bool: "boolean"}
    return pandas.DataFrame(
        {
            name: pandas.Series(values, dtype=(gaps if None in values else full)[kind])
            for name, (kind, values) in columns.items()
        }
    )


def _polars(columns: dict[str, Column]) -> Any:
    polars = _module("polars")
    kinds = {float: polars.Float64, int: polars.Int64, bool: polars.Boolean, str: polars.String}
    return polars.DataFrame([polars.Series(name, values, kinds[kind]) for name, (kind, values) in columns.items()])


_FRAMES: dict[str, Callable[[dict[str, Column]], Any]] = {"pandas": _pandas, "polars": _polars}


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(f"A data frame of {name}", name) from None


def _parquet(columns: dict[str, Column]) -> bytes:
    buffer = io.BytesIO()
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        try:
            _polars(columns).write_parquet(buffer)
        except MissingExtraError:
            raise MissingExtraError("Parquet", "parquet") from None
        return buffer.getvalue()
    kinds = {float: arrow.float64(), int: arrow.int64(), bool: arrow.bool_(), str: arrow.string()}
    arrays = {name: arrow.array(values, kinds[kind]) for name, (kind, values) in columns.items()}
    parquet.write_table(arrow.table(arrays), buffer)
    return buffer.getvalue()
