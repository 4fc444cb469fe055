"""Where discrete Gaussian noise is close to the best possible, over how many counts there are and how strong the guarantee is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from exactdp.apps.figures.style import EXACT, INK, SIMPLE, SOFT, ZCDP, new_figure
from exactdp.numerals import DOWN, UP, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NEAR = 0.01  # what counts as close
_COLOURS = {"near": EXACT, "open": SOFT, "far": SIMPLE, "very far": ZCDP}


@dataclass(frozen=True)
class NoiseCell:
    """For one number of counts and one target: variances, the last one that of all noise at least."""

    count: int
    target: str
    gaussian: Fraction
    """Of discrete Gaussian noise that is calibrated to the target."""
    best: Fraction
    """Of the best noise of whole numbers that is known to meet it."""
    least: Fraction
    """What no symmetric noise of whole numbers that meets it is below."""

    @property
    def excess(self) -> Fraction:
        """By how much discrete Gaussian noise is above the best possible, at most."""
        return self.gaussian / self.least - 1

    @property
    def saved(self) -> Fraction:
        """How much of the variance of discrete Gaussian noise the best known one saves, and the best possible at least."""
        return 1 - self.best / self.gaussian


def figure_best_noise(by_epsilon: Sequence[NoiseCell], by_mu: Sequence[NoiseCell], delta: str) -> Figure:
    """Two maps over counts and targets: epsilon at one delta, where other noise saves variance; mu-GDP, where none saves much."""
    figure = new_figure(9.6, 3.9)
    left, right = figure.subplots(1, 2)
    _draw(left, by_epsilon, f"epsilon at delta = {delta}", "Variance that better noise saves, at least")
    _draw(right, by_mu, "mu (Gaussian DP)", "Above the best possible, at most")
    return figure


def figure_families(variances: Sequence[tuple[str, str, Fraction]], delta: str) -> Figure:
    """One panel for each race, given as race, family and variance: every family by the variance that an equal guarantee takes."""
    titles = list(dict.fromkeys(title for title, _, _ in variances))
    names = sorted({name for _, name, _ in variances}, reverse=True)
    figure = new_figure(9.6, 3.9)
    panels = figure.subplots(1, len(titles), sharey=True)
    for axes, title in zip(panels, titles, strict=True):
        ranked = sorted((variance, name) for race, name, variance in variances if race == title)
        for variance, name in ranked:
            colour = EXACT if variance <= ranked[0][0] * (1 + Fraction(_NEAR)) else SIMPLE
            axes.plot([float(variance)], [names.index(name)], "o", color=colour, ms=5)
        axes.set_xscale("log")
        axes.set_xlim(float(ranked[0][0]) / 1.6, float(ranked[-1][0]) * 1.6)
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.grid(axis="y", color=SOFT, lw=0.5)
        axes.set_xlabel(f"Variance at delta = {delta}", fontsize=9, color=INK)
        axes.set_title(title, fontsize=9, color=INK)
        axes.tick_params(labelsize=8, length=0)
    return figure


def _draw(axes: Axes, cells: Sequence[NoiseCell], label: str, title: str) -> None:
    counts = sorted({cell.count for cell in cells})
    targets = sorted({cell.target for cell in cells}, key=Fraction)
    for cell in cells:
        x, y = counts.index(cell.count), targets.index(cell.target)
        kind, text = _verdict(cell)
        axes.fill([x, x + 1, x + 1, x], [y, y, y + 1, y + 1], color=_COLOURS[kind], alpha=0.75, lw=0)
        axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=8, color=INK)
    axes.set_xticks([i + 0.5 for i in range(len(counts))], [str(count) for count in counts], fontsize=8)
    axes.set_yticks([i + 0.5 for i in range(len(targets))], targets, fontsize=8)
    axes.set_xlim(0, len(counts))
    axes.set_ylim(0, len(targets))
    axes.set_xlabel("Counts", fontsize=9, color=INK)
    axes.set_ylabel(label, fontsize=9, color=INK)
    axes.set_title(title, fontsize=9, color=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)


def _verdict(cell: NoiseCell) -> tuple[str, str]:
    """Proved close, proved not close (by how much better noise is, rounded down), or open."""
    if cell.excess <= _NEAR:
        return "near", f"<{percent(cell.excess, UP, 2)}"
    if cell.saved > _NEAR:
        return ("far" if cell.saved < 0.25 else "very far"), percent(cell.saved, DOWN, 1 if cell.saved < 0.1 else 0)
    return "open", f"<{percent(cell.excess, UP, 0 if cell.excess > 0.1 else 1)}" if math.isfinite(cell.excess) else "?"
