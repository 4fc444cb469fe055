"""The figures of a release, drawn from certified results: nothing is accounted for here, only asked and shown.

The numbers are those of the paper's figures: 1 the exact distribution against the continuous density, 2 the overall guarantee, 3
and 4 one panel for each allocation, 5 the full path as a proxy of the overall guarantee. Every function returns a Figure of its
own, for which no display is needed. Bounds are drawn on the safe side: epsilon by its upper and beta by its lower end.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from exactdp.apps.figures.style import ERRORS, EXACT, INK, LEGEND, SIMPLE, SOFT, ZCDP, dress, new_figure, save, titled
from exactdp.apps.figures.theory import TWO_MECHANISMS, figure_convolution
from exactdp.arithmetic_state import steady
from exactdp.census.grids import Grids
from exactdp.census.pair_results import PairResult, account_pairs
from exactdp.census.releases import NO_RECORD, Release
from exactdp.census.study import Study
from exactdp.census.tables import CURVE_POINTS
from exactdp.doubles import Floats
from exactdp.guarantees.comparison import other_accounts
from exactdp.guarantees.neighbours import REPLACE
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_epsilon_simple
from exactdp.numerals import UP, about, rounded, with_places

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ALPHA, _BETA, _DELTA, _EPSILON = *ERRORS, r"$\delta$", r"$\varepsilon$"
_PROXY_ALPHAS = tuple(
    Fraction(a, 1000)
    for a in (2, 5, 10, 20, *range(30, 410, 20), *range(450, 960, 50), 970, 975, 980, 985, 990, 995, 998)
)
_CERTIFIED = "Exact (certified upper bound)"
_PANEL_ALPHAS = tuple(
    Fraction(a, 2000) for a in (1, 2, 4, 7, 10, 15, 20, 30, *range(40, 400, 20), *range(400, 2000, 100), 1960, 1990)
)
_SHOWN_DELTA = Fraction(1, 10**10)
_MILLION = 10**6
_ACROSS, _WIDE, _TALL = 6, 3, 2  # panels in a row; the size of the enlarged panel in small ones


@steady
def figure_overall(study: Study) -> Figure:
    """The overall guarantee of a release: its trade-off curve, and epsilon as a function of delta, beside zCDP's."""
    figure = new_figure(8.6, 4.2)
    left, right = figure.subplots(1, 2)
    rho = study.release.rho
    curve = study.tradeoff(CURVE_POINTS)
    alphas = np.unique(np.concatenate([np.geomspace(1e-6, 0.5, 80), np.linspace(0.0, 1.0, 81)])).tolist()
    betas = zcdp_beta(rho, alphas)
    inset = left.inset_axes((0.42, 0.26, 0.56, 0.56))
    for axes in (left, inset):
        axes.plot(curve.alpha, curve.beta, color=EXACT, lw=1.8, label="Exact")
        axes.plot(alphas, betas, color=ZCDP, lw=1.4, label="zCDP")
    _square(left)
    left.set(xlabel=_ALPHA, ylabel=_BETA)
    inset.set(xscale="log", yscale="log", xlim=(1e-6, 1), ylim=(1e-6, 1))
    inset.set(xticks=(1e-6, 1e-4, 1e-2, 1), yticks=(1e-6, 1e-4, 1e-2, 1))
    inset.minorticks_off()
    dress(inset, 7)
    left.set_title("Trade-off curve (inset: logarithmic axes)", fontsize=9, color=INK)
    left.legend(loc="upper right", ncols=2, **LEGEND)
    deltas = _deltas(61)
    _draw_epsilons(right, rho, deltas, study.epsilon(deltas))
    right.set(xlabel=_DELTA, ylabel=_EPSILON)
    right.set_title(r"$\varepsilon$ as a function of $\delta$", fontsize=9, color=INK)
    _mark(right, float(study.epsilon(_SHOWN_DELTA)), EXACT, (-6, -5))
    _mark(right, float(zcdp_epsilon_simple(rho, _SHOWN_DELTA)), SIMPLE, (6, 5))
    return titled(figure, study.release.title)


@steady
def figure_tradeoff_panels(release: Release, base: int | None = None) -> Figure:
    """The trade-off curve of allocation `base` (the full path unless told) with each allocation, one panel each."""
    base = _base(release, base)
    others, results = _with_each(release, base, Grids.read(alphas=_PANEL_ALPHAS))
    alphas = [0.0, *map(float, _PANEL_ALPHAS), 1.0]
    curves = [_ends(r.beta)[0] for r in results]
    figure, panels = _panels(len(others))
    for axes, other, curve in zip(panels, others, curves, strict=True):
        axes.plot(alphas, [1.0, *curve, 0.0], color=EXACT, lw=1.2, label="Exact")
        _square(axes)
        _note(axes, _pair(release, base, other), None if other == base else curves[-1], curve)
    large = panels[-1]
    large.plot(alphas, zcdp_beta(release.rho, alphas), color=ZCDP, lw=1.2, label="zCDP")
    large.legend(loc="upper right", **LEGEND)
    return _framed(figure, _ALPHA, _BETA, "Trade-off curve", release, base)


@steady
def figure_profile_panels(release: Release, base: int | None = None) -> Figure:
    """epsilon as a function of delta of allocation `base` (the full path unless told) with each allocation, one panel each."""
    base = _base(release, base)
    deltas = _deltas(41)
    others, results = _with_each(release, base, Grids.read(deltas=deltas))
    curves = [_ends(r.epsilon)[1] for r in results]
    figure, panels = _panels(len(others))
    top = 1.04 * float(max(zcdp_epsilon_simple(release.rho, deltas)))
    bottom = min(0.0, *(float(curve.min()) for curve in curves))
    for axes, other, curve in zip(panels, others, curves, strict=True):
        if other != base:
            axes.plot(deltas, curve, color=EXACT, lw=1.2, label=_CERTIFIED)
            _delta_axis(axes, (1e-20, 1e-10))
        else:
            _draw_epsilons(axes, release.rho, deltas, curve)
        axes.set_ylim(bottom, top)
        _note(axes, _pair(release, base, other), None if other == base else curves[-1], curve)
    return _framed(figure, _DELTA, _EPSILON, "Privacy profile", release, base)


@steady
def figure_proxy(study: Study, base: int | None = None) -> Figure:
    """How far the pair (base, base) is from the overall guarantee, relative to the pair, in parts per million.

    Left (f_base - f) / f_base against alpha, never negative; right (epsilon_base - epsilon) / epsilon_base against delta, never
    positive. The line is the middle of certified bounds; the titles say how far they are from it.
    """
    release = study.release
    base = _base(release, base)
    figure = new_figure(8.6, 3.8)
    left, right = figure.subplots(1, 2)
    deltas = _deltas(101)
    pair = _pair(release, base, base)
    own = account_pairs(release, [pair], Grids.read(deltas=deltas, alphas=_PROXY_ALPHAS))[0]
    betas, epsilons = study.beta_bounds(_PROXY_ALPHAS), study.epsilon_bounds(deltas)
    _draw_difference(left, "Trade-off curve", _PROXY_ALPHAS, _relative_difference(_ends(own.beta), betas))
    _draw_difference(right, _EPSILON, deltas, _relative_difference(_ends(own.epsilon), epsilons))
    dress(left)
    left.set(xlim=(0, 1), xlabel=_ALPHA)
    _delta_axis(right)
    right.set_xlabel(_DELTA)
    for axes, letter in ((left, "f"), (right, r"\varepsilon")):
        own_letter = rf"{letter}_{{{pair[0]},{pair[1]}}}"
        axes.set_ylabel(rf"$({own_letter} - {letter})\,/\,{own_letter}$ (parts per million)")
    return titled(figure, f"Pair {pair} as a proxy of the overall guarantee", release.title)


@steady
def save_figures(study: Study, folder: str | os.PathLike[str]) -> list[Path]:
    """Write the five figures into a folder, each as PNG and as PDF; returns the paths. The same study gives the same bytes."""
    return save(((f"figure{n}", figure) for n, figure in enumerate(_all_figures(study), start=1)), Path(folder))


def _all_figures(study: Study) -> Iterator[Figure]:
    """The five figures, one at a time."""
    release = study.release
    base = _base(release, None)
    columns = {r"Two mechanisms, $\sigma^2$ = 5/2 and 10/3": TWO_MECHANISMS}
    own = _pair(release, base, base)
    columns[f"Pair {own}: the full path"] = release.pair(*own)
    coarsest = max(release.allocations, key=lambda k: (_largest_rho(release, k), k == base, -k))
    if coarsest != base:
        other = _pair(release, coarsest, coarsest)
        columns[f"Pair {other}: the coarsest noise"] = release.pair(*other)
    yield figure_convolution(columns)
    yield figure_overall(study)
    yield figure_tradeoff_panels(release, base)
    yield figure_profile_panels(release, base)
    yield figure_proxy(study, base)


def _largest_rho(release: Release, number: int) -> Fraction:
    return max(rho for queries in release.allocations[number].table.values() for rho in queries.values())


def _base(release: Release, base: int | None) -> int:
    """The allocation that the others are compared with: the one that bypasses least, unless told."""
    if base is None:
        return release.full_path
    release.pair(*_pair(release, base, base))  # if there is no such allocation, its error says which there are
    return base


def _pair(release: Release, base: int, other: int) -> tuple[int, int]:
    """The neighbours that a panel is about: both paths, or the other one alone where a record is added or removed."""
    return (base, other) if release.relation == REPLACE else (other, NO_RECORD)


def _with_each(release: Release, base: int, grids: Grids) -> tuple[list[int], list[PairResult]]:
    """The other allocations in their order, then `base` itself, which gets the enlarged panel, each with its pair with `base`."""
    others = [*(k for k in sorted(release.allocations) if k != base), base]
    pairs = [(min(base, k), max(base, k)) if release.relation == REPLACE else (k, NO_RECORD) for k in others]
    return others, account_pairs(release, pairs, grids)


def _deltas(count: int) -> list[float]:
    """From 1e-1 down to 1e-21, evenly in the logarithm."""
    return [10.0**-x for x in np.linspace(1, 21, count).tolist()]


def _ends(intervals: Sequence[Any]) -> tuple[Floats, Floats]:
    """The lower and the upper ends of certified bounds."""
    both = np.array(intervals, dtype=float)
    return both[:, 0], both[:, 1]


def _relative_difference(own: tuple[Floats, Floats], overall: tuple[Floats, Floats]) -> Floats:
    """Bounds of (own - overall) / own in parts per million, one row each; nan where own is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = 1 - overall[1] / own[0], 1 - overall[0] / own[1]
    result: Floats = np.where(own[0] > 0, _MILLION * np.stack([low, high]), np.nan)
    return result


def _square(axes: Axes) -> None:
    """The unit square of the two errors."""
    axes.set(xlim=(0, 1), ylim=(0, 1), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    dress(axes)


def _delta_axis(axes: Axes, ticks: Sequence[float] = (1e-20, 1e-15, 1e-10, 1e-5, 1e-1)) -> None:
    axes.set_xscale("log")
    axes.set_xlim(1e-21, 1e-1)
    axes.set_xticks(ticks)
    axes.minorticks_off()
    dress(axes)


def _draw_epsilons(axes: Axes, rho: Fraction, deltas: list[float], exact: Floats) -> None:
    """epsilon against delta: exact, both conversions of zCDP, and the continuous Gaussian with the same rho."""
    others = other_accounts(rho, "delta", deltas)
    axes.plot(
        deltas,
        others["zcdp_simple"],
        color=SIMPLE,
        lw=1.4,
        label=r"zCDP, $\rho + 2\sqrt{\rho\,\log(1/\delta)}$ (bound)",
    )
    axes.plot(deltas, others["zcdp_optimal"], color=ZCDP, lw=1.4, label="zCDP, optimal conversion (bound)")
    axes.plot(deltas, exact, color=EXACT, lw=1.8, label=_CERTIFIED)
    axes.plot(
        deltas, others["gaussian"], color=INK, lw=0.8, ls=(0, (4, 4)), label="Continuous Gaussian formula (estimate)"
    )
    _delta_axis(axes)
    axes.legend(loc="lower left", **LEGEND)


def _mark(axes: Axes, value: float, colour: str, offset: tuple[int, int]) -> None:
    """A dot with its value at the delta that the Census Bureau quotes."""
    at, sides = float(_SHOWN_DELTA), ("left", "bottom") if offset[0] > 0 else ("right", "top")
    axes.plot([at], [value], "o", ms=4, color=colour)
    text = axes.annotate(
        with_places(value, 2, UP), (at, value), offset, textcoords="offset points", fontsize=8, color=INK
    )
    text.set(ha=sides[0], va=sides[1])


def _draw_difference(axes: Axes, title: str, grid: Sequence[Any], bounds: Floats) -> None:
    """The middle of certified bounds in parts per million, and how far these are from it."""
    low, high = bounds
    axes.axhline(0.0, color=SOFT, lw=0.6)
    axes.plot([float(x) for x in grid], (low + high) / 2, color=EXACT, lw=1.4)
    if max(abs(y) for y in axes.get_ylim()) < 0.01:  # what is zero but for rounding looks like zero
        axes.set_ylim(-0.01, 0.01)
    width = float(np.nanmax(high - low, initial=0.0)) / 2
    digit, power = f"{rounded(width, 1, UP):e}".split("e")
    axes.set_title(rf"{title} (certified within ${digit}\times10^{{{int(power)}}}$ ppm)", fontsize=9, color=INK)


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    """`count` panels, the last one enlarged in the lower right corner; the small ones fill the rest row by row."""
    small = count - 1
    across = min(_ACROSS, _WIDE + math.ceil(small / _TALL))
    down = max(math.ceil((small + _WIDE * _TALL) / across), _TALL)
    cell, gap, sides, ends = 1.08, (0.36, 0.36), (0.62, 0.18), (0.55, 0.92 if small else 0.74)  # inches
    width, height = across * (cell + gap[0]) - gap[0] + sum(sides), down * (cell + gap[1]) - gap[1] + sum(ends)
    figure = new_figure(width, height, layout=None)
    figure.subplots_adjust(sides[0] / width, ends[0] / height, 1 - sides[1] / width, 1 - ends[1] / height)
    grid = figure.add_gridspec(down, across, wspace=gap[0] / cell, hspace=gap[1] / cell)
    cells = [(i, j) for i in range(down) for j in range(across) if i < down - _TALL or j < across - _WIDE][:small]
    panels = [figure.add_subplot(grid[i, j]) for i, j in cells]
    for axes, (i, j) in zip(panels, cells, strict=True):
        is_lowest = i == down - 1 or (j < across - _WIDE and (i + 1, j) not in cells)
        axes.tick_params(labelleft=j == 0, labelbottom=is_lowest)
    return figure, [*panels, figure.add_subplot(grid[down - _TALL :, across - _WIDE :])]


def _note(axes: Axes, pair: tuple[int, int], own: Floats | None, curve: Floats) -> None:
    """The pair, and its largest relative difference on the grid from the base's own curve, unless it is that one."""
    axes.set_title(f"({pair[0]}, {pair[1]})", fontsize=8, pad=3, color=INK)
    if own is not None:
        usable = own > 0
        largest = float(np.max(np.abs(curve[usable] / own[usable] - 1), initial=0.0)) * _MILLION
        text = f"{about(largest, 2)} ppm" if largest >= 0.01 else "< 0.01 ppm"
        axes.text(0.97, 0.95, text, transform=axes.transAxes, ha="right", va="top", fontsize=6.5, color=SOFT)


def _framed(figure: Figure, x_label: str, y_label: str, title: str, release: Release, base: int) -> Figure:
    """Common labels of a grid of panels."""
    width, height = figure.get_size_inches()
    figure.supxlabel(x_label, fontsize=9, color=INK, y=0.08 / height)
    figure.supylabel(y_label, fontsize=9, color=INK, x=0.08 / width)
    several = len(release.allocations) > 1
    all_pairs = f"({base}, l)" if release.relation == REPLACE else f"(k, {NO_RECORD})"
    of = f"s of the pairs {all_pairs}" if several else f" of the pair {_pair(release, base, base)}"
    note = "\nppm: largest difference from the large panel on the grid, relative to it" if several else ""
    return titled(figure, f"{title}{of}", release.title + note, y=1 - 0.12 / height)
