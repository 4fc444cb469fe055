"""The figures of a release, drawn from certified results: nothing is accounted for here, only asked and shown.

The numbers are those of the paper's figures, and so are axes and ranges: 1 the exact distribution against the continuous
density, 2 the overall guarantee, 3 and 4 one panel for each allocation, 5 the full path as a proxy of the overall guarantee.
Every function returns a Figure of its own, for which no display is needed. Bounds are drawn on the safe side, delta by its upper
and beta by its lower end, and solid; estimates are dashed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from exactdp.apps.figures.captions import captions, captions_page
from exactdp.apps.figures.panels import Panel, Ruler, Sheet, make_sheet
from exactdp.apps.figures.style import (
    DELTA,
    EPSILON,
    ERRORS,
    EXACT,
    INK,
    LEGEND,
    SIGMA2,
    SIMPLE,
    SOFT,
    ZCDP,
    dress,
    log_ticks,
    new_figure,
    power_of_ten,
    save,
    titled,
)
from exactdp.apps.figures.theory import TWO_MECHANISMS, figure_convolution
from exactdp.arithmetic_state import steady
from exactdp.census.grids import Grids
from exactdp.census.pair_results import PairResult, account_pairs
from exactdp.census.releases import NO_RECORD, Release
from exactdp.census.study import Study
from exactdp.census.tables import CURVE_POINTS
from exactdp.doubles import Floats
from exactdp.files import write_text
from exactdp.guarantees.comparison import other_accounts
from exactdp.guarantees.neighbours import REPLACE
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_beta_estimate, zcdp_epsilon_simple
from exactdp.numerals import UP, about, rounded, with_places

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ALPHA, _BETA = ERRORS
_BULK, _END = (2, 5, 10, 20, 30, *range(50, 140, 20), *range(150, 420, 30)), (970, *range(980, 999, 6))
_PROXY_ALPHAS = tuple(Fraction(a, 1000) for a in (*_BULK, *range(450, 960, 100), *_END))
_PROXY_DELTAS = 31
_EXACT, _ZCDP, _AUTODP = "Exact", "zCDP (bound)", "zCDP, orders from 1/2 on (AutoDP: estimate, no bound)"
_CERTIFIED = "Exact (certified upper bound)"
_PANEL_ALPHAS = tuple(
    Fraction(a, 2000) for a in (1, 2, 4, 7, 10, 15, 20, 30, *range(40, 400, 20), *range(400, 2000, 100), 1960, 1990)
)
_SHOWN_DELTA = Fraction(1, 10**10)
_LEAST_DELTA, _LARGE_DELTA = Fraction(1, 10**15), Fraction(1, 50)  # of the exact curve in the figures of delta
_MILLION, _PERCENT = 10**6, 100
_DENSE, _SPARSE = 61, 31  # epsilons of a curve; the second are among the first, and what was asked is not asked again
_FLAT = 1e-6  # percent: what is closer to zero looks like zero
_HALVES, _DELTA_TICKS = (0.0, 0.5, 1.0), (1e-15, 1e-10, 1e-5, 1.0)  # on the axes of errors and of delta
_INSET_TICKS = (1e-6, 1e-4, 1e-2, 1.0)


@steady
def figure_overall(study: Study) -> Figure:
    """The overall guarantee of a release: its trade-off curve, and delta as a function of epsilon, beside zCDP's."""
    figure = new_figure(9.4, 4.5)
    left, right = figure.subplots(1, 2)
    rho = study.release.rho
    curve = study.tradeoff(CURVE_POINTS)
    alphas = np.unique(np.concatenate([np.geomspace(1e-6, 0.5, 80), np.linspace(0.0, 1.0, 81)])).tolist()
    zcdp = zcdp_beta(rho, alphas), zcdp_beta_estimate(rho, alphas)
    inset = left.inset_axes((0.4, 0.22, 0.58, 0.54))
    for axes in (left, inset):
        axes.plot(curve.alpha, curve.beta, color=EXACT, lw=1.8, label=_EXACT)
        _draw_zcdp_betas(axes, alphas, zcdp, 1.4)
    _square(left, 6)
    left.set(xlabel=_ALPHA, ylabel=_BETA)
    inset.set(xscale="log", yscale="log", xlim=(1e-6, 1), ylim=(1e-6, 1))
    log_ticks(inset, _INSET_TICKS, _INSET_TICKS)
    dress(inset, 7)
    left.set_title("Trade-off curve (inset: logarithmic axes)", fontsize=9, color=INK)
    left.legend(loc="upper right", borderaxespad=0.1, **LEGEND)
    low, high = study.epsilon([_LARGE_DELTA, _LEAST_DELTA])
    epsilons, ticks = _epsilons(low, high, _DENSE)
    stated = other_accounts(rho, "epsilon", epsilons)
    _draw_deltas(right, epsilons, study.delta(epsilons), stated, (1.8, 1.4))
    _draw_gaussian(right, epsilons, stated)
    right.legend(loc="lower left", **LEGEND)
    _delta_axes(right, ticks)
    right.set(xlabel=EPSILON, ylabel=DELTA)
    right.set_title(f"{DELTA} as a function of {EPSILON}", fontsize=9, color=INK)
    _mark(right, float(study.epsilon(_SHOWN_DELTA)), EXACT, (-6, -4))
    _mark(right, float(zcdp_epsilon_simple(rho, _SHOWN_DELTA)), SIMPLE, (6, 4))
    return titled(figure, study.release.title)


@steady
def figure_tradeoff_panels(release: Release, base: int | None = None) -> Figure:
    """The trade-off curve of allocation `base` (the full path unless told) with each allocation, one panel each, and zCDP's."""
    base = chosen_base(release, base)
    names, results = _with_each(release, base, Grids.read(alphas=_PANEL_ALPHAS))
    alphas = [0.0, *map(float, _PANEL_ALPHAS), 1.0]
    zcdp = zcdp_beta(release.rho, alphas), zcdp_beta_estimate(release.rho, alphas)
    curves = [_ends(r.beta)[0] for r in results]
    sheet = make_sheet(names, Ruler(_HALVES), Ruler(_HALVES))
    for panel, curve in zip(sheet.panels, curves, strict=True):
        exact, other = (1.8, 1.4) if panel is sheet.large else (1.2, 0.9)
        panel.plot(alphas, [1.0, *curve, 0.0], color=EXACT, lw=exact, label=_EXACT)
        _draw_zcdp_betas(panel, alphas, zcdp, other)
    _square(sheet.large, 6)
    sheet.large.legend(loc="upper right", **LEGEND)
    return _framed(sheet, curves, (_ALPHA, _BETA, "Trade-off curve"), release, base)


@steady
def figure_profile_panels(release: Release, base: int | None = None) -> Figure:
    """delta as a function of epsilon of allocation `base` (the full path unless told) with each allocation, one panel each,
    beside zCDP's by both conversions."""
    base = chosen_base(release, base)
    own = account_pairs(release, [_pair(release, base, base)], Grids.read(deltas=[_LARGE_DELTA, _LEAST_DELTA]))[0]
    low, high = _ends(own.epsilon)[1].tolist()
    epsilons, ticks = _epsilons(low, high, _SPARSE)
    names, results = _with_each(release, base, Grids.read(epsilons=epsilons))
    stated = other_accounts(release.rho, "epsilon", epsilons)
    curves = [_ends(r.delta)[1] for r in results]
    middle = ticks[len(ticks) // 2 : len(ticks) // 2 + len(ticks) % 2]
    sheet = make_sheet(names, Ruler([ticks[0], *middle, ticks[-1]]), Ruler(_DELTA_TICKS, is_log=True))
    for panel, curve in zip(sheet.panels, curves, strict=True):
        _draw_deltas(panel, epsilons, curve, stated, (1.8, 1.4) if panel is sheet.large else (1.2, 0.9))
    _draw_gaussian(sheet.large, epsilons, stated)
    _delta_axes(sheet.large, ticks)
    sheet.large.legend(loc="lower left", **LEGEND)
    return _framed(sheet, curves, (EPSILON, DELTA, "Privacy profile"), release, base)


@steady
def figure_proxy(study: Study, base: int | None = None) -> Figure:
    """How far the pair (base, base) is from the overall guarantee, relative to the pair, in percent.

    (f_base - f) / f_base against alpha, never negative; (delta_base - delta) / delta_base against epsilon and
    (epsilon_base - epsilon) / epsilon_base against delta, never positive. The line is the middle of certified bounds; the titles
    say how far they are from it.
    """
    release = study.release
    base = chosen_base(release, base)
    figure = new_figure(11.4, 3.9)
    panels = figure.subplots(1, 3)
    low, high = study.epsilon([_LARGE_DELTA, _LEAST_DELTA])
    (epsilons, ticks), deltas = _epsilons(low, high, _DENSE), _deltas(_PROXY_DELTAS)
    pair = _pair(release, base, base)
    own = account_pairs(release, [pair], Grids.read(epsilons, deltas, _PROXY_ALPHAS))[0]
    grids = (_PROXY_ALPHAS, epsilons, deltas)
    asked = ((own.beta, study.beta_bounds), (own.delta, study.delta_bounds), (own.epsilon, study.epsilon_bounds))
    letters, names = ("f", DELTA, EPSILON), ("Trade-off curve", DELTA, EPSILON)
    for axes, letter, name, grid, (mine, overall) in zip(panels, letters, names, grids, asked, strict=True):
        _draw_difference(axes, name, grid, _relative_difference(_ends(mine), overall(grid)))
        dress(axes)
        axes.set_ylabel(f"({letter}* \N{MINUS SIGN} {letter}) / {letter}* (percent)")
    panels[0].set(xlim=(0, 1), xlabel=_ALPHA)
    panels[1].set(xlim=(ticks[0], ticks[-1]), xticks=ticks, xlabel=EPSILON)
    panels[2].set(xscale="log", xlim=(1e-21, 1e-1), xlabel=DELTA)
    log_ticks(panels[2], x=(1e-20, 1e-15, 1e-10, 1e-5, 1e-1))
    return titled(figure, f"Pair {pair} (*) as a proxy of the overall guarantee", release.title)


@steady
def save_figures(study: Study, folder: str | os.PathLike[str], base: int | None = None) -> list[Path]:
    """Write the five figures into a folder, each as PNG and as PDF, and their captions, which are inside of them, too.

    `base` is the path that the others are compared with, the full path unless told. Returns the paths. The same study gives the
    same bytes.
    """
    base = chosen_base(study.release, base)
    texts = captions(study.release, base, _pair(study.release, base, base))
    figures = all_figures(study, base)
    named = (
        (f"figure{n}", figure, text) for n, (figure, text) in enumerate(zip(figures, texts, strict=False), start=1)
    )
    paths = save(named, Path(folder))
    page = Path(folder) / "captions.md"
    write_text(page, captions_page(study.release, texts))
    return [*paths, page]


def all_figures(study: Study, base: int) -> Iterator[Figure]:
    """The five figures, one at a time."""
    release = study.release
    columns = {f"Two mechanisms, {SIGMA2} = 5/2 and 10/3": TWO_MECHANISMS}
    own = _pair(release, base, base)
    columns[f"Pair {own}: the full path" if base == release.full_path else f"Pair {own}"] = release.pair(*own)
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


def chosen_base(release: Release, base: int | None) -> int:
    """The allocation that the others are compared with: the one that bypasses least, unless told."""
    if base is None:
        return release.full_path
    release.pair(*_pair(release, base, base))  # if there is no such allocation, its error says which there are
    return base


def _pair(release: Release, base: int, other: int) -> tuple[int, int]:
    """The neighbours that a panel is about: both paths, or the other one alone where a record is added or removed."""
    return (base, other) if release.relation == REPLACE else (other, NO_RECORD)


def _with_each(release: Release, base: int, grids: Grids) -> tuple[list[str], list[PairResult]]:
    """The pairs of `base` with the other allocations in their order and last with itself, each by its name and its results."""
    others = [*(k for k in sorted(release.allocations) if k != base), base]
    pairs = [(min(base, k), max(base, k)) if release.relation == REPLACE else (k, NO_RECORD) for k in others]
    return [str(_pair(release, base, other)) for other in others], account_pairs(release, pairs, grids)


def _deltas(count: int) -> list[float]:
    """From 1e-1 down to 1e-21, evenly in the logarithm."""
    return [10.0**-x for x in np.linspace(1, 21, count).tolist()]


def _ends(intervals: Sequence[Any]) -> tuple[Floats, Floats]:
    """The lower and the upper ends of certified bounds."""
    both = np.array(intervals, dtype=float)
    return both[:, 0], both[:, 1]


def _relative_difference(own: tuple[Floats, Floats], overall: tuple[Floats, Floats]) -> Floats:
    """Bounds of (own - overall) / own in percent, one row each; nan where own is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = 1 - overall[1] / own[0], 1 - overall[0] / own[1]
    result: Floats = np.where(own[0] > 0, _PERCENT * np.stack([low, high]), np.nan)
    return result


def _epsilons(low: float, high: float, count: int) -> tuple[list[float], list[float]]:
    """`count` epsilons evenly over the range from low, or 0, to high, both rounded outward to ticks; and the ticks.

    For the DHC file the range is that of the paper's figures, 10 to 30.
    """
    low = max(low, 0.0)
    width = max(high - low, 1e-12)
    power = 10.0 ** math.floor(math.log10(width / 5))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= width / 5)
    first, last = math.floor(low / step), max(math.ceil(high / step), math.floor(low / step) + 1)
    ticks = [float(f"{k * step:.12g}") for k in range(first, last + 1)]
    return np.linspace(ticks[0], ticks[-1], count).tolist(), ticks


def _square(axes: Axes, ticks: int) -> None:
    """The unit square of the two errors."""
    where = np.linspace(0, 1, ticks).tolist()
    axes.set(xlim=(0, 1), ylim=(0, 1), xticks=where, yticks=where)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    dress(axes)


def _delta_axes(axes: Axes, ticks: Sequence[float]) -> None:
    """epsilon across, the logarithm of delta up, from 1e-15 to 1."""
    axes.set_yscale("log")
    axes.set(xlim=(ticks[0], ticks[-1]), xticks=ticks, ylim=(1e-15, 1))
    axes.xaxis.set_major_formatter("{x:g}")
    log_ticks(axes, y=_DELTA_TICKS)
    dress(axes)


def _draw_zcdp_betas(axes: Axes | Panel, alphas: list[float], betas: tuple[Floats, Floats], width: float) -> None:
    """zCDP's trade-off curve twice: what zCDP says, and with orders below 1, of which it says nothing."""
    axes.plot(alphas, betas[0], color=ZCDP, lw=width, label=_ZCDP)
    axes.plot(alphas, betas[1], color=ZCDP, lw=0.9 * width, ls=(0, (3, 2)), label=_AUTODP)


def _draw_deltas(
    axes: Axes | Panel, epsilons: list[float], exact: Floats, others: dict[str, Floats], widths: tuple[float, float]
) -> None:
    """delta against epsilon: exact, and both conversions of zCDP."""
    axes.plot(epsilons, others["zcdp_simple"], color=SIMPLE, lw=widths[1], label="zCDP, simple conversion (bound)")
    axes.plot(epsilons, others["zcdp_optimal"], color=ZCDP, lw=widths[1], label="zCDP, optimal conversion (bound)")
    axes.plot(epsilons, exact, color=EXACT, lw=widths[0], label=_CERTIFIED)


def _draw_gaussian(axes: Axes, epsilons: list[float], others: dict[str, Floats]) -> None:
    """delta against epsilon of the continuous Gaussian with the same rho."""
    axes.plot(
        epsilons, others["gaussian"], color=INK, lw=0.8, ls=(0, (4, 4)), label="Continuous Gaussian formula (estimate)"
    )


def _mark(axes: Axes, value: float, colour: str, offset: tuple[int, int]) -> None:
    """A dot with its epsilon at the delta that the Census Bureau quotes."""
    at, sides = float(_SHOWN_DELTA), ("left", "bottom") if offset[0] > 0 else ("right", "top")
    axes.plot([value], [at], "o", ms=4, color=colour)
    text = axes.annotate(
        with_places(value, 2, UP), (value, at), offset, textcoords="offset points", fontsize=8, color=INK
    )
    text.set(ha=sides[0], va=sides[1])


def _draw_difference(axes: Axes, title: str, grid: Sequence[Any], bounds: Floats) -> None:
    """The middle of certified bounds in percent, and how far these are from it."""
    low, high = bounds
    axes.axhline(0.0, color=SOFT, lw=0.6)
    axes.plot([float(x) for x in grid], (low + high) / 2, color=EXACT, lw=1.4)
    if max(abs(y) for y in axes.get_ylim()) < _FLAT:  # what is zero but for rounding looks like zero
        axes.set_ylim(-_FLAT, _FLAT)
    width = float(np.nanmax(high - low, initial=0.0)) / 2
    digit, power = f"{rounded(width, 1, UP):e}".split("e")
    within = f"{digit} \N{MULTIPLICATION SIGN} {power_of_ten(int(power))}"
    axes.set_title(f"{title} (certified within {within} percent)", fontsize=9, color=INK)


def _framed(sheet: Sheet, curves: Sequence[Floats], texts: tuple[str, str, str], release: Release, base: int) -> Figure:
    """Common labels (of both axes, and what the curves are) of a sheet; and in each small panel the largest relative difference
    of its curve on the grid from that of the large one."""
    usable = curves[-1] > 0
    for panel, curve in zip(sheet.small, curves, strict=False):
        largest = float(np.max(np.abs(curve[usable] / curves[-1][usable] - 1), initial=0.0)) * _MILLION
        panel.note(f"{about(largest, 2)} ppm" if largest >= 0.01 else "< 0.01 ppm")
    figure, (x_label, y_label, title) = sheet.figure, texts
    width, height = figure.get_size_inches()
    figure.supxlabel(x_label, fontsize=9, color=INK, y=0.08 / height)
    figure.supylabel(y_label, fontsize=9, color=INK, x=0.08 / width)
    several = len(release.allocations) > 1
    all_pairs = f"({base}, l)" if release.relation == REPLACE else f"(k, {NO_RECORD})"
    of = f"s of the pairs {all_pairs}" if several else f" of the pair {_pair(release, base, base)}"
    note = "\nppm: largest difference from the large panel on the grid, relative to it" if several else ""
    return titled(figure, f"{title}{of}", release.title + note, y=1 - 0.12 / height)
