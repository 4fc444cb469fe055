"""What each result shows as a table: a title, columns and rows, with every value as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from exactdp.accounting.budget_cost import BudgetChange, BudgetCosts
from exactdp.accounting.certificates.certificate import Certificate
from exactdp.accounting.certificates.verify import Verification
from exactdp.accounting.composition import Composition
from exactdp.accounting.cross_check import CrossCheck, Opinion
from exactdp.accounting.explanation import Explanation
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.brackets import Bounds
from exactdp.census.budget_costs import CellCosts
from exactdp.census.cell_noise import USUAL, CellNoise
from exactdp.census.design_certificate import DesignCertificate
from exactdp.census.releases import Allocation, Release
from exactdp.census.savings import Saving
from exactdp.census.study import Study
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import Calibration
from exactdp.guarantees.comparison import Comparison
from exactdp.guarantees.risk import Risk
from exactdp.guarantees.tightest_mu import GaussianDP
from exactdp.numbers import shown
from exactdp.numerals import whole_text

_NAME = "name"
_OPINION = tuple(f.name for f in fields(Opinion))
_NOISE = tuple(f.name for f in fields(CellNoise))
_COSTS = ("epsilon", "epsilon error", "log delta", "log delta error")


@dataclass(frozen=True)
class Table:
    """What a table shows, the names of its columns, and its rows."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]


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


def page_of(result: object) -> Table:
    """The table of one result as a notebook shows it: a comparison method by method."""
    if isinstance(result, Comparison):
        return Table(_comparison_title(result), ("method", "value", "worth"), result.rows())
    return _TABLES[type(result)](result)


def cell(value: object) -> Any:
    """A cell as a text, a Python number or None; anything else is refused."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int, float, Fraction, Decimal)):
        return value
    raise InvalidInputError(f"A cell must be a number, a text, true or false. Found {shown(value)}.")


def cell_text(value: object) -> str:
    """A cell as a text that reads back exactly; an empty one has none."""
    given = cell(value)
    if given is None:
        return ""
    try:
        return whole_text(given) if isinstance(given, Fraction) and is_in_range(given) else str(given)
    except ValueError:
        raise InvalidInputError("A number in a table must have at most 4,300 digits. Found more.") from None


def is_in_range(value: int | float | Fraction) -> bool:
    """Whether a number is within the range of doubles."""
    try:
        return isinstance(value, float) or value == 0 or float(value) != 0
    except OverflowError:
        return False


def _is_row(value: object) -> bool:
    return type(value) in _TABLES or isinstance(value, Mapping)


def _named(name: str, table: Table) -> Table:
    if _NAME in table.columns:
        raise InvalidInputError(f"Rows by name have no column called {_NAME}. Found one in {shown(name)}; rename it.")
    return Table(table.title, (_NAME, *table.columns), [(name, *row) for row in table.rows])


def _joined(parts: Sequence[Table]) -> Table:
    """One below the other; a cell that a table does not have is empty."""
    columns = tuple(dict.fromkeys(column for part in parts for column in part.columns))
    cells = [dict(zip(part.columns, row, strict=True)) for part in parts for row in part.rows]
    titles = {part.title for part in parts}
    return Table(titles.pop() if len(titles) == 1 else "", columns, [[c.get(name) for name in columns] for c in cells])


def _brief(value: Fraction | float) -> str:
    return shown(cell_text(value))


def _row(obj: object, names: Iterable[str]) -> list[object]:
    return [getattr(obj, name) for name in names]


def _one_row(title: str, *names: str) -> Callable[[Any], Table]:
    """How a result is shown by these of its attributes."""
    return lambda result: Table(title, names, [_row(result, names)])


def _bounds_table(bounds: Bounds) -> Table:
    lower, upper = (end.ravel().tolist() if isinstance(end, np.ndarray) else [end] for end in bounds)
    return Table("Certified bounds", ("lower", "upper"), list(zip(lower, upper, strict=True)))


def _comparison_title(comparison: Comparison) -> str:
    return f"{comparison.quantity} at {comparison.given} = {_brief(comparison.value)}. {comparison.statement}"


def _comparison_table(comparison: Comparison) -> Table:
    before = ("given", "value", "quantity")
    after = ("gaussian", "zcdp_optimal", "zcdp_simple", "shortcut_understates")
    row = [*_row(comparison, before), *comparison.exact, *_row(comparison, after)]
    return Table(_comparison_title(comparison), (*before, "lower", "upper", *after), [row])


def _composition_table(composition: Composition) -> Table:
    counts = composition.mechanisms
    title = f"{sum(counts.values()):,} mechanisms, rho = {_brief(composition.rho)}"
    return Table(title, ("mechanism", "count"), [(str(m), n) for m, n in counts.items()])


def _certificate_table(certificate: Certificate) -> Table:
    names = ("lower", "upper", "digits", "sha256")
    return Table(certificate.claim, ("field", "value"), [(name, str(getattr(certificate, name))) for name in names])


def _cross_check_table(check: CrossCheck) -> Table:
    verdict = "all overlap" if not check.opinions or check.agree else "THEY DO NOT OVERLAP: please report this"
    rows = [[check.epsilon, *_row(opinion, _OPINION)] for opinion in check.opinions]
    return Table(
        f"delta({_brief(check.epsilon)}) by every method that applies: {verdict}", ("epsilon", *_OPINION), rows
    )


def _risk_table(risk: Risk) -> Table:
    intervals = (risk.advantage, risk.power, risk.bayes_risk, risk.posterior, risk.odds)
    rows = [(name, *ends, says) for (name, _, says), ends in zip(risk.rows(), intervals, strict=True)]
    return Table("Risk, certified", ("figure", "lower", "upper", "meaning"), rows)


def _calibration_table(calibration: Calibration) -> Table:
    row = (calibration.factor, calibration.step, str(calibration.composition), calibration.below_exists)
    return Table("Least noise, proved", ("factor", "step", "composition", "one step below exists"), [row])


def _budget_table(budget: Release | Allocation) -> Table:
    title = budget.title if isinstance(budget, Release) else f"Allocation {budget.number}"
    rows: list[Sequence[object]] = [
        (level, query, rho, *(_row(budget.noise.get((level, query), USUAL), _NOISE) if budget.noise else ()))
        for level, queries in budget.table.items()
        for query, rho in queries.items()
    ]
    return Table(title, ("level", "query", "rho", *(_NOISE if budget.noise else ())), rows)


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
    rows = list(zip(curve.alpha.tolist(), curve.beta.tolist(), strict=True))
    return Table("Trade-off curve", ("alpha", "beta"), rows)


def _design_certificate_table(certificate: DesignCertificate) -> Table:
    names = ("epsilon", "delta")
    rows = [*zip(names, certificate.texts, strict=True), ("too small", certificate.refuted_text)]
    rows += [
        (name, str(getattr(certificate, name))) for name in ("digits", "pairs", "witness", "fingerprint", "sha256")
    ]
    return Table(certificate.claim, ("field", "value"), rows)


def _verification_table(verification: Verification) -> Table:
    rows = [(check.name, check.passed, check.note, check.seconds) for check in verification.checks]
    return Table(verification.reason, ("check", "passed", "note", "seconds"), rows)


def _costs_table(costs: BudgetCosts) -> Table:
    columns = (costs.epsilon_per_rho, costs.epsilon_errors, costs.log_delta_per_rho, costs.log_delta_errors)
    rows = [(str(m), *row) for m, *row in zip(costs.mechanisms, costs.counts, *columns, strict=True)]
    title = f"Estimates per unit of rho at {costs.given} = {_brief(costs.value)}"
    return Table(title, ("mechanism", "count", *_COSTS), rows)


def _cell_costs_table(costs: CellCosts) -> Table:
    columns = (costs.epsilon, costs.epsilon_errors, costs.log_delta, costs.log_delta_errors)
    rows = [
        (level, query, *(column[level][query] for column in columns))
        for level, queries in costs.epsilon.items()
        for query in queries
    ]
    title = f"Estimates per unit of a cell's budget at {costs.given} = {_brief(costs.value)}"
    return Table(title, ("level", "query", *_COSTS), rows)


def _change_table(change: BudgetChange) -> Table:
    ends = (change.before, change.after, (change.change.lower, change.change.upper))
    rows = [(name, *pair) for name, pair in zip(("before", "after", "change"), ends, strict=True)]
    title = f"{change.quantity} at {change.given} = {_brief(change.value)}, certified"
    return Table(title, ("when", "lower", "upper"), rows)


_TABLES: dict[type, Callable[[Any], Table]] = {
    BudgetCosts: _costs_table,
    BudgetChange: _change_table,
    CellCosts: _cell_costs_table,
    Bounds: _bounds_table,
    Comparison: _comparison_table,
    Composition: _composition_table,
    Certificate: _certificate_table,
    DesignCertificate: _design_certificate_table,
    CrossCheck: _cross_check_table,
    Opinion: _one_row("One method's answer", *_OPINION),
    Explanation: lambda found: Table(f"delta({_brief(found.epsilon)})", ("item", "value"), found.items()),
    Risk: _risk_table,
    Calibration: _calibration_table,
    GaussianDP: lambda mu: Table("Gaussian DP, proved", ("mu at least", "mu at most"), [(mu.lower, mu.upper)]),
    Release: _budget_table,
    Allocation: _budget_table,
    CellNoise: _one_row("Noise of a query's cells", *_NOISE),
    Saving: _one_row("Noise that could be saved", "epsilon", "delta", "factor", "saved"),
    Study: _study_table,
    TradeOffCurve: _curve_table,
    Verification: _verification_table,
}
