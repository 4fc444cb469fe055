"""The files of a study: every pair and the overall curves as CSV and JSON, written completely or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

import exactdp
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.census.grids import ARGUMENTS, Grids
from exactdp.census.pair_results import PairResult, PairTable
from exactdp.census.study import Study
from exactdp.census.summary import Summary
from exactdp.csv_cells import as_cell
from exactdp.files import write_text
from exactdp.guarantees.calibration import least_text
from exactdp.numbers import exact_text
from exactdp.numerals import DOWN, UP, all_for_file, for_file, whole_text

CURVE_POINTS = 241
_PLAIN = (str, int, float)
_BoundTexts: TypeAlias = tuple[tuple[int, int], list[list[tuple[str, str]]]]


def write_study(study: Study, summary: Summary, folder: Path) -> list[Path]:
    """pairs.csv, overall.csv, tradeoff.csv (the overall curve, from below) and study.json in a folder that exists."""
    curve, bounds = study.tradeoff(CURVE_POINTS), _bound_texts(study.grids, study.results)
    texts = {
        "pairs.csv": _pairs_csv(study.grids, bounds),
        "overall.csv": numeric_csv(("quantity", "argument", "at", "lower", "upper"), _overall_rows(study, summary)),
        "tradeoff.csv": numeric_csv(
            ("alpha", "beta_lower"), zip(curve.alpha.tolist(), curve.beta.tolist(), strict=True)
        ),
        "study.json": _in_lines(_record(study, summary, curve), "pairs", _pairs_json(study.grids, bounds)),
    }
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts]


def as_csv(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table as CSV text; numbers are written so that they read back exactly, and no text starts a formula (csv_cells.py)."""
    return _csv(map(as_cell, header), ([x if type(x) is float else as_cell(plain(x)) for x in row] for row in rows))


def _csv(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def numeric_csv(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table of results as CSV text: columns of numbers hold decimals only, and what is written is on the safe side.

    A bound (columns `lower`, `upper` and their like) is the decimal of the same double that is not inside of it, so that the text
    is a true claim as well. An exact number that is no short decimal, such as 1/3, is written as the nearest double, and exactly
    in a column of its own beside it (`at_exact`), which is there only where it is needed.

    >>> print(numeric_csv(("at", "upper"), [(Fraction(1, 3), 0.1)]), end="")
    at,at_exact,upper
    0.3333333333333333,1/3,0.100000000000000006
    """
    names = list(header)
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    wide = [column for name, values in zip(names, columns, strict=True) for column in _columns(name, values)]
    return _csv((name for name, _ in wide), zip(*(cells for _, cells in wide), strict=True))


_SAFE = {
    **dict.fromkeys(("lower", "beta", "mu at least"), DOWN),
    **dict.fromkeys(("upper", "zcdp_optimal", "zcdp_simple", "mu at most"), UP),
}
"""The safe side of a column, by its name; `epsilon_upper` and the like go by their last word."""


def _safe_side(name: str) -> str | None:
    return _SAFE.get(name) or _SAFE.get(name.rpartition("_")[2])


def _columns(name: str, values: Sequence[object]) -> list[tuple[object, list[object]]]:
    """The cells of a column under its name, and those of exact texts beside them if a fraction there is no short decimal."""
    side, distinct = (
        _safe_side(name),
        {id(value): value for value in values},
    )  # pairs are asked the same, so these are few
    split = any(isinstance(value, Fraction) and "/" in whole_text(value) for value in distinct.values())
    cells: list[object] = []
    known = {key: _cell(value) for key, value in distinct.items() if side is None or not isinstance(value, float)}
    for value in values:
        if side is not None and isinstance(value, float):
            cells.append(for_file(value, side))
        else:
            cells.append(known[id(value)])
    if not split:
        return [(as_cell(name), cells)]
    exact = {key: exact_text(value) for key, value in distinct.items() if isinstance(value, Fraction)}
    return [(as_cell(name), cells), (as_cell(f"{name}_exact"), [exact.get(id(value)) for value in values])]


def _cell(value: object) -> object:
    """A value that is no bound: a fraction as a decimal, the nearest one where it is no short one."""
    if isinstance(value, Fraction) and "/" in whole_text(value):
        return float(value)
    return value if type(value) is float else as_cell(plain(value))


def plain(value: Any) -> Any:
    """A value for JSON and CSV: fractions as short decimals where they are such, and as fractions otherwise."""
    if type(value) in _PLAIN:
        return value
    if type(value) is tuple and all(type(x) in _PLAIN for x in value):
        return list(value)
    if isinstance(value, Fraction):
        return whole_text(value)
    if isinstance(value, Decimal):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.init}
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    return value


def finite(value: Any) -> Any:
    """Plain data without infinities and NaN, which JSON does not have: such numbers become texts."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


calibration_text = least_text


def pairs_csv(grids: Grids, results: Collection[PairResult]) -> str:
    """Every pair on the grids, one bound in a row, as `numeric_csv` writes it; what all pairs are asked is written once."""
    return _pairs_csv(grids, _bound_texts(grids, results))


def _bound_texts(grids: Grids, results: Collection[PairResult]) -> list[_BoundTexts]:
    """Every pair with its bounds on each grid, lower and upper ends as decimals on their safe side: for all files."""
    table = results if isinstance(results, PairTable) else PairTable.of(results, grids)
    columns = [
        [_rows(ends, side) for ends, side in zip(both, (DOWN, UP), strict=True)] for both in table.bounds.values()
    ]
    return [
        (pair, [list(zip(lower[i], upper[i], strict=True)) for lower, upper in columns])
        for i, pair in enumerate(table.pairs)
    ]


def _rows(ends: NDArray[Any], side: str) -> list[list[str]]:
    """One end of the bounds of all pairs as texts, a list for each pair."""
    count = ends.shape[1]
    texts = all_for_file(ends, side) if ends.dtype == float else [for_file(x, side) for x in ends.ravel().tolist()]
    return [texts[i : i + count] for i in range(0, len(texts), count)] if count else [[]] * len(ends)


def _pairs_csv(grids: Grids, texts: Iterable[_BoundTexts]) -> str:
    asked = [(quantity, ARGUMENTS[quantity], at) for quantity, grid in grids.by_quantity.items() for at in grid]
    header, *questions = numeric_csv(("quantity", "argument", "at"), asked).splitlines()
    lines = [f"k,l,{header},lower,upper"]
    for (k, other), columns in texts:
        bounds = chain.from_iterable(columns)
        lines += [
            f"{k},{other},{question},{low},{high}" for question, (low, high) in zip(questions, bounds, strict=True)
        ]
    return "\n".join([*lines, ""])


def _pairs_json(grids: Grids, texts: Iterable[_BoundTexts]) -> list[str]:
    """Every pair as a JSON object: doubles as numbers, decimals of more digits as texts."""
    form = "[{}, {}]" if grids.digits is None else '["{}", "{}"]'
    objects = []
    for pair, columns in texts:
        each = (", ".join(form.format(*ends) for ends in column) for column in columns)
        members = "".join(f', "{name}": [{bounds}]' for name, bounds in zip(grids.by_quantity, each, strict=True))
        objects.append(f'{{"pair": {json.dumps(pair)}{members}}}'.replace("inf", "Infinity"))
    return objects


def _in_lines(record: dict[str, object], last: str, texts: Sequence[str]) -> str:
    """A record as JSON, one member in a line, and its last member, a list, one element in a line."""
    members = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in record.items()]
    lines = ",\n  ".join(texts)
    return "{\n" + ",\n".join([*members, f" {json.dumps(last)}: [\n  {lines}\n ]"]) + "\n}\n"


def _overall_rows(study: Study, summary: Summary) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [
        (quantity, ARGUMENTS[quantity], at, *bounds)
        for quantity in ("delta", "epsilon")
        for at, bounds in zip(study.grids.by_quantity[quantity], study.largest(quantity), strict=True)
    ]
    return rows + [("beta", "alpha", row.alpha, *row.beta) for row in summary.powers]


def _record(study: Study, summary: Summary, curve: TradeOffCurve) -> dict[str, object]:
    return {
        "exactdp": exactdp.__version__,
        "release": study.release.name,
        "title": study.release.title,
        "source": study.release.source,
        "fingerprint": study.release.fingerprint,
        "rho": exact_text(study.release.rho),
        "digits": study.grids.digits,
        "summary": plain(summary),
        "tradeoff": {"alpha": curve.alpha.tolist(), "beta_lower": curve.beta.tolist()},
        "grids": {ARGUMENTS[name]: plain(grid) for name, grid in study.grids.by_quantity.items()},
    }
