"""exactdp census for several products: each change that they can be followed through, beside zCDP."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from exactdp import census
from exactdp.apps.cli import shell
from exactdp.apps.cli.tables import say, show_facts, show_table
from exactdp.census.changes import CHANGES
from exactdp.census.joint import ADAPTIVE, POST_PROCESSING, Joint, products_of
from exactdp.census.tables import numeric_csv, plain
from exactdp.errors import InvalidInputError
from exactdp.files import write_text
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_epsilon, zcdp_epsilon_simple
from exactdp.numbers import exact_text, shown
from exactdp.numerals import UP, at_least, at_most, exact, percent

_COLUMNS = ["change", "quantity", "at", "lower", "upper", "zcdp_optimal", "zcdp_simple"]


def account_jointly(
    products: str, change: str | None, deltas: Sequence[Fraction], alphas: Sequence[Fraction], folder: Path
) -> list[tuple[Joint, list[dict[str, Any]]]]:
    """Every change that is asked for, or that all these products are followed through, with its rows; a table in the folder."""
    names = [change] if change is not None else _followed(products)
    found = []
    for name in names:
        joint = census.joint(products, name)
        rows = [_epsilon_row(joint, delta) for delta in deltas] + [_beta_row(joint, alpha) for alpha in alphas]
        found.append((joint, rows))
    cells = [tuple(row[column] for column in _COLUMNS) for _, rows in found for row in rows]
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "joint.csv", numeric_csv(_COLUMNS, cells))
    return found


def _followed(products: str) -> list[str]:
    stems = products_of(products)
    names = [name for name, change in CHANGES.items() if all(stem in change.follows for stem in stems)]
    if not names:
        raise InvalidInputError(f"No change is followed through all of these products. Found {shown(products)}.")
    return names


def _epsilon_row(joint: Joint, delta: Fraction) -> dict[str, Any]:
    bounds = joint.epsilon_bounds(delta)
    others = zcdp_epsilon(joint.rho, delta), zcdp_epsilon_simple(joint.rho, delta)
    return dict(zip(_COLUMNS, (joint.change.name, "epsilon", delta, *bounds, *others), strict=True))


def _beta_row(joint: Joint, alpha: Fraction) -> dict[str, Any]:
    bounds = joint.beta_bounds(alpha)
    return dict(
        zip(_COLUMNS, (joint.change.name, "beta", alpha, *bounds, zcdp_beta(joint.rho, alpha), ""), strict=True)
    )


def show_jointly(found: list[tuple[Joint, list[dict[str, Any]]]], digits: int, as_json: bool) -> None:
    """The rows on standard output."""
    if as_json:
        records = [
            {"release": joint.name, "change": joint.change.name, "rho": exact_text(joint.rho), "rows": plain(rows)}
            for joint, rows in found
        ]
        shell.print_json({"joint": records, "post_processing": POST_PROCESSING, "adaptive": ADAPTIVE})
        return
    for joint, rows in found:
        show_facts(
            f"{joint.name}: {joint.change.name}", [*joint.words(), ("budget", f"rho = {exact(joint.rho)} (zCDP)")]
        )
        epsilons = [row for row in rows if row["quantity"] == "epsilon"]
        cells = [
            [exact(row["at"]), at_least(row["lower"], digits)]
            + [at_most(row[name], digits) for name in ("upper", "zcdp_optimal", "zcdp_simple")]
            for row in epsilons
        ]
        show_table("", ["delta", "epsilon at least", "at most", "zCDP, optimal", "zCDP, simple"], cells)
        betas = [row for row in rows if row["quantity"] == "beta"]
        cells = [
            [exact(row["at"])] + [percent(1 - Fraction(row[name]), UP, 4) for name in ("lower", "zcdp_optimal")]
            for row in betas
        ]
        show_table("", ["false alarms", "power of the best test at most", "by zCDP at most"], cells)
    say(POST_PROCESSING, ADAPTIVE)
