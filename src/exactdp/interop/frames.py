"""Results as tables: data frames of pandas or polars, CSV and Parquet files, and HTML for notebooks.

A column has one type. Floats stay the doubles they are. Fractions become the nearest doubles in data frames and Parquet files,
and exact texts in CSV. Decimals, and numbers beyond the range of a column, are texts, which lose nothing.
"""

from __future__ import annotations

import html
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np

from exactdp.accounting.certificates.certificate import Certificate
from exactdp.accounting.certificates.verify import Verification
from exactdp.accounting.composition import Composition
from exactdp.accounting.cross_check import CrossCheck, Opinion
from exactdp.accounting.explanation import Explanation
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.brackets import Bounds
from exactdp.census.releases import Allocation, Release
from exactdp.census.savings import Saving
from exactdp.census.study import Study
from exactdp.census.tables import as_csv, decimal_text
from exactdp.errors import InvalidInputError, MissingExtraError
from exactdp.files import write_bytes, write_text
from exactdp.guarantees.calibration import Calibration
from exactdp.guarantees.comparison import Comparison
from exactdp.guarantees.risk import Risk
from exactdp.guarantees.tightest_mu import GaussianDP
from exactdp.numbers import shown

MOST_ROWS = 60
"""Rows that a notebook shows; the title says how many there are."""

_CELLS = (str, bool, int, float, Fraction, Decimal)
_NAME = "name"


@dataclass(frozen=True)
class Table:
    """What a table shows, the names of its columns, and its rows."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]


def to_frame(obj: object, library: Literal["pandas", "polars"] = "pandas") -> Any:
    """A data frame of a result, of a list of results, or of rows given as mappings from column to value.

    A mapping from name to result (or row) gets a first column `name`.
    """
    if library not in _FRAMES:
        raise InvalidInputError(f"A data frame is made by one of {', '.join(_FRAMES)}. Found {shown(library)}.")
    return _FRAMES[library](_typed(table_of(obj)))


def write_table(obj: object, path: str | os.PathLike[str]) -> None:
    """Write what `to_frame` shows as CSV or Parquet, as the suffix says, all of it or nothing."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InvalidInputError(f"A table is written to a .csv or .parquet file. Found {shown(Path(path).name)}.")
    table = table_of(obj)
    if suffix == ".csv":
        try:
            write_text(path, as_csv(table.columns, (map(_text, row) for row in table.rows)))
        except UnicodeEncodeError as error:
            raise InvalidInputError(f"A text in a file must be Unicode. Found {error.object[error.start]!a}.") from None
    else:
        write_bytes(path, _parquet(_typed(table)))


def table_of(obj: object) -> Table:
    """The table behind a result, a list of results or rows, or a mapping of them."""
    table = _TABLES.get(type(obj))
    if table is not None:
        return table(obj)
    if isinstance(obj, Mapping):
        if obj and all(_is_row(value) for value in obj.values()):
            return _joined([_named(str(name), table_of(value)) for name, value in obj.items()])
        for name in obj:
            if not isinstance(name, str):
                raise InvalidInputError(f"The name of a column must be a text. Found {shown(name)}.")
        return Table("", tuple(obj), [list(obj.values())])
    if isinstance(obj, (list, tuple)) and all(_is_row(value) for value in obj):
        return _joined([table_of(value) for value in obj])
    known = ", ".join(kind.__name__ for kind in _TABLES)
    raise InvalidInputError(f"A table shows one of {known}, or a list or mapping of rows. Found {shown(obj)}.")


def _is_row(value: object) -> bool:
    return type(value) in _TABLES or isinstance(value, Mapping)


def _named(name: str, table: Table) -> Table:
    if _NAME in table.columns:
        raise InvalidInputError(f"Rows by name have no column called {_NAME}. Found one in {shown(name)}; rename it.")
    return Table(table.title, (_NAME, *table.columns), [(name, *row) for row in table.rows])


def _joined(tables: Iterable[Table]) -> Table:
    """One below the other; a cell that a table does not have is empty."""
    parts = list(tables)
    columns = tuple(dict.fromkeys(column for part in parts for column in part.columns))
    cells = [dict(zip(part.columns, row, strict=True)) for part in parts for row in part.rows]
    titles = {part.title for part in parts}
    return Table(titles.pop() if len(titles) == 1 else "", columns, [[c.get(name) for name in columns] for c in cells])


def _bounds_table(bounds: Bounds) -> Table:
    lower, upper = (end.ravel().tolist() if isinstance(end, np.ndarray) else [end] for end in bounds)
    return Table("Certified bounds", ("lower", "upper"), list(zip(lower, upper, strict=True)))


def _comparison_table(comparison: Comparison) -> Table:
    row = {
        "given": comparison.given,
        "value": comparison.value,
        "quantity": comparison.quantity,
        "lower": comparison.exact[0],
        "upper": comparison.exact[1],
        "gaussian": comparison.gaussian,
        "zcdp_optimal": comparison.zcdp_optimal,
        "zcdp_simple": comparison.zcdp_simple,
        "shortcut_understates": comparison.shortcut_understates,
    }
    return Table(_comparison_page(comparison).title, tuple(row), [list(row.values())])


def _comparison_page(comparison: Comparison) -> Table:
    title = f"{comparison.quantity} at {comparison.given} = {_brief(comparison.value)}. {comparison.statement}"
    return Table(title, ("method", "value", "worth"), comparison.rows())


def _composition_table(composition: Composition) -> Table:
    counts = composition.mechanisms
    title = f"{sum(counts.values()):,} mechanisms, rho = {_brief(composition.rho)}"
    return Table(title, ("mechanism", "count"), [(str(m), n) for m, n in counts.items()])


def _certificate_table(certificate: Certificate) -> Table:
    names = ("lower", "upper", "digits", "sha256")
    return Table(certificate.claim, ("field", "value"), [(name, str(getattr(certificate, name))) for name in names])


def _cross_check_table(check: CrossCheck) -> Table:
    verdict = "all overlap" if not check.opinions or check.agree else "THEY DO NOT OVERLAP: please report this"
    rows = [(check.epsilon, *row) for o in check.opinions for row in _opinion_table(o).rows]
    columns = ("epsilon", *(f.name for f in fields(Opinion)))
    return Table(f"delta({_brief(check.epsilon)}) by every method that applies: {verdict}", columns, rows)


def _opinion_table(opinion: Opinion) -> Table:
    names = tuple(f.name for f in fields(Opinion))
    return Table("One method's answer", names, [[getattr(opinion, name) for name in names]])


def _explanation_table(explanation: Explanation) -> Table:
    return Table(f"delta({_brief(explanation.epsilon)})", ("item", "value"), explanation.items())


def _risk_table(risk: Risk) -> Table:
    intervals = (risk.advantage, risk.power, risk.bayes_risk, risk.posterior, risk.odds)
    rows = [(name, *ends, says) for (name, _, says), ends in zip(risk.rows(), intervals, strict=True)]
    return Table("Risk, certified", ("figure", "lower", "upper", "meaning"), rows)


def _calibration_table(found: Calibration) -> Table:
    rows = [(found.factor, found.step, str(found.composition))]
    return Table("Least noise, proved", ("factor", "step", "composition"), rows)


def _mu_table(found: GaussianDP) -> Table:
    return Table("Gaussian DP, proved", ("mu at least", "mu at most"), [(found.lower, found.upper)])


def _budget_table(budget: Release | Allocation) -> Table:
    title = budget.title if isinstance(budget, Release) else f"Allocation {budget.number}"
    rows = [(level, query, rho) for level, queries in budget.table.items() for query, rho in queries.items()]
    return Table(title, ("level", "query", "rho"), rows)


def _saving_table(saving: Saving) -> Table:
    names = ("epsilon", "delta", "factor", "saved")
    return Table("Noise that could be saved", names, [[getattr(saving, name) for name in names]])


def _study_table(study: Study) -> Table:
    """One row for each pair, quantity and argument (of delta the epsilon, of epsilon the delta, of beta the alpha)."""
    rows = [
        (f"{result.pair[0]},{result.pair[1]}", quantity, argument, lower, upper)
        for result in study.results
        for quantity, grid in study.grids.by_quantity.items()
        for argument, (lower, upper) in zip(grid, getattr(result, quantity), strict=True)
    ]
    return Table(study.release.title, ("pair", "quantity", "argument", "lower", "upper"), rows)


def _curve_table(curve: TradeOffCurve) -> Table:
    return Table(
        "Trade-off curve", ("alpha", "beta"), list(zip(curve.alpha.tolist(), curve.beta.tolist(), strict=True))
    )


def _verification_table(verification: Verification) -> Table:
    rows = [(check.name, check.passed, check.note, check.seconds) for check in verification.checks]
    return Table(verification.reason, ("check", "passed", "note", "seconds"), rows)


_TABLES: dict[type, Callable[[Any], Table]] = {
    Bounds: _bounds_table,
    Comparison: _comparison_table,
    Composition: _composition_table,
    Certificate: _certificate_table,
    CrossCheck: _cross_check_table,
    Opinion: _opinion_table,
    Explanation: _explanation_table,
    Risk: _risk_table,
    Calibration: _calibration_table,
    GaussianDP: _mu_table,
    Release: _budget_table,
    Allocation: _budget_table,
    Saving: _saving_table,
    Study: _study_table,
    TradeOffCurve: _curve_table,
    Verification: _verification_table,
}


def _plain(value: object) -> Any:
    """A cell as None or one of the types of _CELLS."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, _CELLS):
        return value
    raise InvalidInputError(f"A cell must be a number, a text, true or false. Found {shown(value)}.")


def _text(value: object) -> str:
    """A cell as a text that reads back exactly; an empty one has none."""
    cell = _plain(value)
    if cell is None:
        return ""
    try:
        return decimal_text(cell) if isinstance(cell, Fraction) and _fits(cell) else str(cell)
    except ValueError:
        raise InvalidInputError("A number in a table must have at most 4,300 digits. Found more.") from None


def _brief(value: Fraction | float) -> str:
    return shown(_text(value))


Column = tuple[type, list[Any]]


def _typed(table: Table) -> dict[str, Column]:
    """The columns, each with its one type: str, bool, int or float; empty cells are None."""
    return {name: _column([_plain(row[i]) for row in table.rows]) for i, name in enumerate(table.columns)}


def _column(values: list[Any]) -> Column:
    present = [value for value in values if value is not None]
    kinds = {type(value) for value in present}
    if kinds == {bool}:
        return bool, values
    if kinds == {int} and all(-(1 << 63) <= value < 1 << 63 for value in present):
        return int, values
    if kinds and kinds <= {int, float, Fraction} and kinds != {int} and all(map(_fits, present)):
        return float, [None if value is None else float(value) for value in values]
    return str, [None if value is None else _text(value) for value in values]


def _fits(value: int | float | Fraction) -> bool:
    """Whether a number is within the range of doubles."""
    try:
        return isinstance(value, float) or value == 0 or float(value) != 0
    except OverflowError:
        return False


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
    body = ["".join(f"<td>{html.escape(_text(cell))}</td>" for cell in row) for row in rows]
    lines = ["<table>", f"<caption>{html.escape(title)}</caption>", f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    return "\n".join([*lines, *(f"<tr>{row}</tr>" for row in body), "</tbody>", "</table>"])


def as_html(result: Any) -> str:
    """The HTML of an object that a notebook shows."""
    page = _comparison_page if isinstance(result, Comparison) else _TABLES[type(result)]
    table = page(result)
    count = len(table.rows)
    more = "" if count <= MOST_ROWS else f" (the first {MOST_ROWS} of {count:,} rows)"
    return html_table(table.title + more, table.columns, table.rows[:MOST_ROWS])
