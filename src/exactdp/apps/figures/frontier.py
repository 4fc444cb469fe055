"""The frontier of a design: the best objective at each epsilon, the bound below which there is none, and the given design."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from exactdp.apps.figures.style import (
    DELTA,
    EPSILON,
    EXACT,
    INK,
    LEGEND,
    SOFT,
    ZCDP,
    dress,
    new_figure,
    titled,
    write_figure,
)
from exactdp.arithmetic_state import steady
from exactdp.numerals import about, exact
from exactdp.optimize.frontier import Frontier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MANY_TIMES = 20  # from the least to the largest objective: where they need logarithms


@steady
def figure_frontier(frontier: Frontier) -> Figure:
    """Dots are designs that are proved to meet their epsilon over all pairs; in the shaded area there is none, proved.

    Between two epsilons the frontier lies between two stairs: a design at the smaller one meets the larger one, too.
    """
    figure = new_figure(6.4, 4.2)
    axes = figure.subplots()
    points = frontier.points
    epsilons = [float(e) for e, _ in points]
    found = [one.value for _, one in points]
    axes.step(epsilons, found, "o-", where="post", color=EXACT, lw=1.4, ms=4, label="Best design found, proved")
    proved = [(float(e), one.bound.value) for e, one in points if one.bound is not None]
    if proved:
        where, values = zip(*proved, strict=True)
        axes.plot(where, values, "_", color=INK, ms=9, mew=1.4, label=_proved_label(frontier))
        axes.fill_between(where, [0.0] * len(where), values, step="pre", color=SOFT, alpha=0.12, lw=0)
    axes.plot([frontier.given[0]], [frontier.given[1]], "D", color=ZCDP, ms=6, label="Given design")
    if max(found) > _MANY_TIMES * min(found):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0.0)
    first = points[0][1]
    axes.set(xlabel=f"{EPSILON} at {DELTA} = {exact(frontier.delta)}", ylabel=str(first.objectives[0]).capitalize())
    axes.legend(loc="upper right", **LEGEND)
    dress(axes)
    return titled(figure, f"{first.before.title}: accuracy against epsilon")


def _proved_label(frontier: Frontier) -> str:
    """What is proved of every point: of fewer designs where one bound is of those without very coarse noise only."""
    coarsest = [one.bound.coarsest for _, one in frontier.points if one.bound is not None and one.bound.coarsest]
    among = f", nowhere a sigma2 below {about(max(coarsest), 3)}" if coarsest else ""
    return f"No design below (proved{among})"


def save_frontier(frontier: Frontier, path: str | os.PathLike[str]) -> None:
    """Write the figure to a .png, .pdf or .svg file, all of it or nothing."""
    caption = (
        "The least objective at each epsilon. Dots: designs found, each proved to meet its epsilon over all pairs. Bars: "
        "proved bounds below which no design has its objective, nor, shaded, at any smaller epsilon. Diamond: the given "
        "design, its epsilon rounded up."
    )
    write_figure(path, figure_frontier(frontier), caption=caption)
