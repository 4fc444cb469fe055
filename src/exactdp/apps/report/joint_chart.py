"""The picture of several products together: epsilon of each change beside zCDP, and which product it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from exactdp.apps.report.charts import need_matplotlib
from exactdp.apps.report.markup import Markup
from exactdp.apps.report.svg import EXACT, GRID, INK, SOFT, ZCDP, inline

COLOURS = ("#0b5cad", "#b4470e", "#009e73", "#7a5c00", "#56b4e9", "#cc79a7", "#57606b")
Bar = tuple[str, float, tuple[float, float], tuple[tuple[str, Fraction], ...]]
"""A change, its epsilon, zCDP's two, and the share of each product."""


def joint_chart(bars: Sequence[Bar]) -> Markup:
    """Two panels side by side, a row for each change."""
    figure = need_matplotlib()(figsize=(10, 1.6 + 0.42 * len(bars)), dpi=72, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    products = sorted({name for *_, shares in bars for name, _ in shares})
    colours = dict(zip(products, COLOURS * (1 + len(products) // len(COLOURS)), strict=False))
    for place, (_, epsilon, zcdp, shares) in enumerate(reversed(bars)):
        left.barh(place, epsilon, 0.55, color=EXACT)
        left.plot(zcdp, [place] * 2, "|", color=ZCDP, ms=13, mew=2)
        start = 0.0
        for name, share in sorted(shares):
            right.barh(place, float(100 * share), 0.55, left=start, color=colours[name])
            start += float(100 * share)
    left.set_yticks(range(len(bars)), [bar[0] for bar in reversed(bars)])
    left.set_xlabel("epsilon at delta = 1e-10")
    right.set_xlabel("share of the loss, percent")
    for axes in (left, right):
        for side, spine in axes.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set(linewidth=0.8, color=SOFT)
        axes.grid(True, axis="x", color=GRID, lw=0.7)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=10.5, length=3, width=0.8, color=SOFT, labelcolor=INK)
        axes.xaxis.label.set(fontsize=11, color=INK)
    handles = [right.barh(0, 0, color=colours[name], label=name) for name in products]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=10,
        labelcolor=INK,
        handlelength=1.4,
    )
    told = "; ".join(f"{name}: about {epsilon:.0f}" for name, epsilon, *_ in bars)
    return inline(
        figure, "joint", "Epsilon of each change, and the share of each product", f"Epsilon: {told}.", "chart broad"
    )
