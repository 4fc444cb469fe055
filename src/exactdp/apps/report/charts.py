"""The charts of a report. Series differ by dashes and markers, not by colour alone; colours become the page's variables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from exactdp.apps.figures.style import figure_class
from exactdp.apps.report.content import ALPHA, LEAST_ALPHA, Content
from exactdp.apps.report.markup import Markup
from exactdp.apps.report.svg import EXACT, GAUSSIAN, GRID, INK, SIMPLE, SOFT, ZCDP, inline
from exactdp.numbers import log_rational
from exactdp.numerals import DOWN, about, at_least, at_most, exact, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LEVELS = 24
"""Levels beyond which a chart by level would be unreadable; the tables have them all."""

_LONGEST_LABEL = 26
_SUPERSCRIPTS = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_RING: dict[str, Any] = {"lw": 0, "marker": "o", "mfc": "none"}
_SERIES: dict[str, dict[str, Any]] = {
    "exact": {"color": EXACT, "lw": 2.2, "label": "Exact (certified bound)"},
    "zcdp": {"color": ZCDP, "lw": 1.6, "ls": (0, (6, 2.5)), "label": "zCDP, optimal (bound)"},
    "simple": {"color": SIMPLE, "lw": 1.6, "ls": (0, (1.2, 1.8)), "label": "zCDP, simple (bound)"},
    "gaussian": {"color": GAUSSIAN, **_RING, "ms": 4.2, "mew": 1.1, "label": "Gaussian formula (estimate, no bound)"},
}


def profile_chart(content: Content) -> Markup:
    """delta as a function of epsilon, on a logarithmic scale."""
    figure, axes = _figure(5.2, 4.4)
    curves, log10 = content.curves, math.log(10)
    axes.plot([e for e, _ in curves.simple], [x / log10 for _, x in curves.simple], **_SERIES["simple"])
    axes.plot(curves.epsilons, [x / log10 for x in curves.zcdp_log_delta], **_SERIES["zcdp"])
    axes.plot(curves.epsilons, [x / log10 for x in curves.log_delta], **_SERIES["exact"])
    axes.plot(curves.epsilons[::5], [x / log10 for x in curves.gaussian_log_delta[::5]], **_SERIES["gaussian"])
    least = log_rational(min(row.delta for row in content.summary.epsilons)) / log10
    axes.set(xlim=(0, curves.epsilons[-1]), ylim=(least, 0), xlabel="epsilon", ylabel="delta")
    lowest, step = math.floor(least) if least > -1 else math.ceil(least), max(1, math.ceil(-least / 6))
    ticks = range(0, lowest - 1, -step)  # six or so
    axes.set_yticks(ticks, [_power(t) for t in ticks])
    stated, at = float(content.stated), log_rational(content.headline.delta) / log10
    _cross(axes, stated, at, (0.0, least))
    _finish(figure, axes)
    return inline(
        figure,
        "chart-profile",
        "delta as a function of epsilon",
        f"Four falling curves on a logarithmic scale. At delta = {exact(content.headline.delta)} the exact curve is "
        f"below epsilon = {exact(content.stated)}, zCDP at {at_most(content.headline.zcdp_optimal)} by the optimal and at "
        f"{at_most(content.headline.zcdp_simple)} by the simple conversion. The table of guarantees has the numbers.",
    )


def tradeoff_chart(content: Content) -> Markup:
    """The trade-off curve: what the best test misses at each rate of false alarms."""
    figure, axes = _figure(5.2, 4.4)
    curves = content.curves
    blind = [1 - a for a in curves.other_alphas]
    axes.plot(curves.other_alphas, blind, color=SOFT, lw=1.2, ls=(0, (4, 2, 1, 2)), label="No information")
    axes.plot(curves.other_alphas, curves.zcdp_betas, **_SERIES["zcdp"])
    axes.plot(curves.alphas, curves.betas, **_SERIES["exact"])
    axes.plot(curves.other_alphas[2::4], curves.gaussian_betas[2::4], **_SERIES["gaussian"])
    axes.set(xscale="log", xlim=(LEAST_ALPHA, 1), ylim=(0, 1), xlabel="False alarms (alpha)", ylabel="Missed (beta)")
    powers = range(0, -7, -1)
    axes.set_xticks([10.0**p for p in powers], [_power(p) for p in powers])
    axes.minorticks_off()
    axes.set_yticks((0, 0.25, 0.5, 0.75, 1), ("0", "0.25", "0.5", "0.75", "1"))
    missed = 1 - Fraction(content.risk.power[1])
    _cross(axes, float(ALPHA), float(missed), (LEAST_ALPHA, 0.0))
    _finish(figure, axes)
    return inline(
        figure,
        "chart-tradeoff",
        "Trade-off curve of the best test",
        f"With 5% false alarms the best test misses at least {at_least(missed, 4)} of all cases by the exact curve and at least "
        f"{at_least(1 - content.zcdp_power, 4)} by zCDP; without any information it would miss 0.95.",
    )


def noise_chart(content: Content) -> Markup | None:
    """Standard errors by level, one dot for each query; none where there are too many levels."""
    if len(content.noise) > MOST_LEVELS:
        return None
    figure, axes = _figure(8.6, 0.8 + 0.31 * len(content.noise))
    from matplotlib.ticker import LogLocator

    by_level = {level.level: sorted({q.standard_error for q in level.queries}) for level in content.noise}
    for place, errors in enumerate(by_level.values()):
        axes.plot([errors[0], errors[-1]], [place, place], color=EXACT, lw=1.2, alpha=0.55)
        axes.plot(errors, [place] * len(errors), color=EXACT, ms=5, mew=1.3, **_RING)
    _level_axis(axes, [*by_level])
    errors = [error for errors in by_level.values() for error in errors if error > 0]
    if errors and max(errors) > 8 * min(errors):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
    else:
        axes.set_xlim(0, 1.1 * max(errors, default=1.0))
    axes.set_xlabel("Standard error of one count")
    _finish(figure, axes, legend=False)
    spans = "; ".join(f"{level}: {about(errors[0], 3)} to {about(errors[-1], 3)}" for level, errors in by_level.items())
    return inline(figure, "chart-noise", "Standard error of one count, by level", f"{spans}.", "chart broad")


def savings_chart(content: Content) -> Markup | None:
    """The share of the noise variance that each level on its own could save; none where there are too many levels."""
    rows = content.summary.levels
    if len(rows) > MOST_LEVELS:
        return None
    figure, axes = _figure(8.6, 1.2 + 0.36 * len(rows))
    simple, best = ([100 * float(getattr(r, name).saved) for r in rows] for name in ("saved_simple", "saved_optimal"))
    for place, (a, b) in enumerate(zip(simple, best, strict=True)):
        axes.plot([a, b], [place, place], color=SOFT, lw=1)
    places = range(len(rows))
    axes.plot(best, places, color=ZCDP, lw=0, marker="o", ms=7, label="against zCDP, optimal")
    axes.plot(simple, places, color=SIMPLE, lw=0, marker="D", ms=6, label="against zCDP, simple")
    _level_axis(axes, [row.level for row in rows])
    axes.set_xlim(min(0.0, *simple, *best), 1.08 * max(*simple, *best, 1.0))
    axes.set_xlabel("Noise variance that could be saved, percent")
    _finish(figure, axes)
    spans = "; ".join(
        f"{r.level}: {percent(r.saved_simple.saved, DOWN)} and {percent(r.saved_optimal.saved, DOWN)}" for r in rows
    )
    title = "Noise variance that each level could save, in percent"
    return inline(figure, "chart-savings", title, f"Against zCDP simple and optimal: {spans}.", "chart broad")


def need_matplotlib() -> type[Figure]:
    """Refuse, before any work, where charts cannot be drawn."""
    return figure_class("A report with charts")


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = need_matplotlib()(figsize=(width, height), dpi=72, layout="constrained")
    return figure, figure.subplots()


def _finish(figure: Figure, axes: Axes, legend: bool = True) -> None:
    """Thin spines, a light grid behind the data, the legend below."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set(linewidth=0.8, color=SOFT)
    axes.grid(True, color=GRID, lw=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=10.5, length=3, width=0.8, color=SOFT, labelcolor=INK)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(fontsize=11, color=INK)
    if legend:
        figure.legend(
            loc="outside lower center", ncols=2, frameon=False, fontsize=10.5, labelcolor=INK, handlelength=2.6
        )


def _cross(axes: Axes, x: float, y: float, origin: tuple[float, float]) -> None:
    """Hair lines from both axes to a dot."""
    axes.plot([x, x, origin[0]], [origin[1], y, y], color=SOFT, lw=0.8)
    axes.plot([x], [y], color=EXACT, marker="o", ms=7, clip_on=False, zorder=5)


def _level_axis(axes: Axes, names: Sequence[str]) -> None:
    """Levels from top to bottom; names as they are, not as formulas."""
    short = [n if len(n) <= _LONGEST_LABEL else f"{n[: _LONGEST_LABEL - 1]}\u2026" for n in names]
    axes.set_yticks(range(len(short)), short)
    axes.set_ylim(len(short) - 0.5, -0.5)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)


def _power(exponent: int) -> str:
    """A power of ten as a tick label."""
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}" if exponent else "1"
