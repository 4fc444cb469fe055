"""The table and the picture of docs/whole-census.md: python docs/whole_census.py (needs exactdp[plots]; half a minute)."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from exactdp import census
from exactdp.apps.figures.style import EXACT, INK, LEGEND, SIMPLE, SOFT, ZCDP, dress, new_figure
from exactdp.census.joint import Joint
from exactdp.numerals import UP, at_most, exact, percent

DOCS = Path(__file__).parent
CHANGES = {
    "person added or removed": ("pl94-persons", "dhc-persons", "ddhc-a", "s-dhc"),
    "person replaced": ("pl94-persons", "dhc-persons", "ddhc-a", "s-dhc"),
    "occupied unit replaced": ("pl94-units", "dhc-units", "ddhc-b"),
    "occupied becomes vacant": ("pl94-units", "dhc-units", "ddhc-b"),
    "answers of another member": (
        "pl94-persons",
        "dhc-persons",
        "ddhc-a",
        "s-dhc",
        "pl94-units",
        "dhc-units",
        "ddhc-b",
    ),
    "answers of a householder": ("pl94-persons", "dhc-persons", "ddhc-a", "s-dhc", "pl94-units", "dhc-units", "ddhc-b"),
}
HEAD = "| change | rho | 1e-5 | **1e-10** | 1e-15 | zCDP, optimal | zCDP, simple | any path, at most | best test finds, at most |"


def joint(where: str, change: str, patterns: bool = False) -> Joint:
    """All products that a change is followed through; with every pattern that P.L. 94-171 could have, if asked for."""
    ends = {"pl94": "-patterns" if patterns else "", "dhc": "-no-prim" if where == "pr" else ""}
    names = [f"{product}-{where}{ends.get(product.partition('-')[0], '')}" for product in CHANGES[change]]
    return census.joint(names, change)


def row(where: str, change: str) -> str:
    """One line of the table: full paths, and any path."""
    found = joint(where, change)
    epsilons = [at_most(found.full.epsilon(delta)) for delta in ("1e-5", "1e-10", "1e-15")]
    zcdp = [at_most(found.zcdp_epsilon("1e-10", is_simple=simple)) for simple in (False, True)]
    power = percent(1 - Fraction(found.full.beta("0.001")), UP, 2)
    every = at_most(joint(where, change, patterns=True).epsilon("1e-10"))
    told = [
        change,
        exact(Fraction(found.full.rho)),
        epsilons[0],
        f"**{epsilons[1]}**",
        epsilons[2],
        *zcdp,
        every,
        power,
    ]
    return f"| {' | '.join(told)} |"


def table(where: str) -> str:
    """The table of one place."""
    return "\n".join([HEAD, "|" + " --- |" * 9, *(row(where, change) for change in CHANGES)])


def picture() -> None:
    """Write docs/images/whole-census.png: epsilon beside zCDP, and which product it comes from."""
    figure = new_figure(9.5, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    colours = {"pl94-persons": "#56B4E9", "dhc-persons": EXACT, "ddhc-a": "#009E73", "s-dhc": "#F0E442"}
    colours |= {"pl94-units": SOFT, "dhc-units": ZCDP, "ddhc-b": SIMPLE}
    for place, change in enumerate(reversed(CHANGES)):
        found = joint("us", change)
        left.barh(place, found.full.epsilon("1e-10"), 0.5, color=EXACT)
        left.plot(
            [found.zcdp_epsilon("1e-10", is_simple=s) for s in (False, True)], [place] * 2, "|", color=ZCDP, ms=12
        )
        start, total = 0.0, float(found.full.rho)
        for part in found.moved:
            share = sum(float(m.rho) * n for m, n in part.full.mechanisms.items()) / total * 100
            product = re.sub(r"-us.*", "", part.release.name)
            right.barh(place, share, 0.5, left=start, color=colours[product], edgecolor="white", lw=0.5)
            start += share
    left.set_yticks(range(len(CHANGES)), list(reversed(CHANGES)))
    left.set_xlabel("epsilon at delta = 1e-10: exact (bar), zCDP optimal and simple (ticks)")
    right.set_yticks(range(len(CHANGES)), [""] * len(CHANGES))
    right.set_xlabel("share of the loss (zCDP's rho) in percent, by product")
    for axes in (left, right):
        dress(axes)
    handles = [right.barh(0, 0, color=colour, label=product) for product, colour in colours.items()]
    right.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, **LEGEND)
    figure.suptitle("The 2020 Census, United States: all products together, full paths", fontsize=10, color=INK, x=0.3)
    figure.savefig(DOCS / "images" / "whole-census.png", dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    picture()
    for place in ("us", "pr"):
        print(table(place))
