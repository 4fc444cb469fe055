"""Axes as they will be in every file of a figure: what matplotlib computes anew at each drawing is computed once.

To draw an axis is to place every tick, its label, the label of the axis and the title again, which takes most of the time of a
figure. Once the layout is known, the same labels stand for themselves, and grid and ticks are one line each.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_NEAR = 1e-9  # of the axis: what is so near to its end is on it
_BEHIND = 0.5  # as matplotlib draws axes that are below the data


def unhinted() -> AbstractContextManager[None]:
    """Texts as the font has them: to fit every letter to pixels takes a quarter of the time of a drawing."""
    import matplotlib

    return matplotlib.rc_context({"text.hinting": "none"})


def lay_out(figure: Figure, dpi: float) -> None:
    """Place what a figure consists of, once for all its files: a figure that lays itself out does so twice for each of them.

    For a figure that is only written from then on.
    """
    if (engine := figure.get_layout_engine()) is None:
        return
    own = figure.dpi
    figure.set_dpi(dpi)
    with unhinted():
        engine.execute(figure)
    figure.set_layout_engine("none")
    for axes in figure.axes:
        for one in (axes, *axes.child_axes):
            _settle(one)
    figure.set_dpi(own)


def _settle(axes: Any) -> None:
    """Both axes, where all their ticks are large ones."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_visible() and not len(axis.get_minorticklocs()):
            _settle_axis(axes, axis)


def _settle_axis(axes: Axes, axis: Axis) -> None:
    """An axis by its texts, one line for the grid and one for the ticks."""
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    across = axis is axes.xaxis
    scale = axis.get_transform()
    ticks = axis.get_major_ticks()
    places = scale.transform(np.array([tick.get_loc() for tick in ticks], dtype=float))
    low, high = sorted(scale.transform(np.array(axis.get_view_interval())).tolist())
    slack = _NEAR * (high - low)
    shown = [tick for tick, at in zip(ticks, places, strict=True) if low - slack <= at <= high + slack]
    if not shown:
        return
    at, first = [tick.get_loc() for tick in shown], shown[0]
    along = axes.get_xaxis_transform if across else axes.get_yaxis_transform
    if first.gridline.get_visible():
        lines = [[(x, 0), (x, 1)] if across else [(0, x), (1, x)] for x in at]
        axes.add_collection(
            LineCollection(
                lines,
                colors=first.gridline.get_color(),
                linewidths=first.gridline.get_linewidth(),
                transform=along("grid"),
                zorder=_BEHIND,
            ),
            autolim=False,
        )
    zeros, mark = [0.0] * len(at), first.tick1line
    marks = Line2D(
        *((at, zeros) if across else (zeros, at)),
        transform=along("tick1"),
        ls="none",
        marker=mark.get_marker(),
        ms=mark.get_markersize(),
        mew=mark.get_markeredgewidth(),
        color=mark.get_color(),
        clip_on=False,
        zorder=mark.get_zorder(),
    )
    texts = [tick.label1 for tick in shown if tick.label1.get_visible()]
    for artist in (marks, *texts, axis.label, axis.get_offset_text()):
        axes.add_artist(artist).set_clip_on(False)
    axis.set_visible(False)
