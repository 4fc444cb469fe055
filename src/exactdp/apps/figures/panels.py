"""A sheet of many small panels with the same axes, and a large one: lines and texts are drawn straight on the figure.

Axes of their own cost matplotlib thirty milliseconds a panel, most of it for ticks and labels that all panels have in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exactdp.apps.figures.style import GRID, INK, SOFT, dress, new_figure, power_of_ten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Transform

_ACROSS, _WIDE, _TALL = 6, 3, 2  # panels in a row; the size of the large panel in small ones
_CELL, _GAP = 1.08, 0.36  # inches: a small panel's side, and what is between two
_LEFT, _RIGHT, _BELOW = 0.62, 0.18, 0.55
_ABOVE = (0.74, 0.92)  # without and with small panels, whose note is a line of the title
_TICK, _LABEL, _TITLE = 2.5 / 72, 6.0 / 72, 3.0 / 72  # inches from the frame
_Box = tuple[float, float, float, float]
_LINE: dict[str, Any] = {"linewidths": 0.6, "colors": SOFT}


@dataclass(frozen=True)
class Ruler:
    """One axis: where it has ticks, the first and the last of them at its ends."""

    ticks: Sequence[float]
    is_log: bool = False

    def places(self) -> list[float]:
        """Where the ticks are, as shares of the axis."""
        at = [math.log10(x) for x in self.ticks] if self.is_log else list(self.ticks)
        return [(x - at[0]) / (at[-1] - at[0]) for x in at]

    def labels(self) -> list[str]:
        """What is written at the ticks."""
        return [power_of_ten(round(math.log10(x))) if self.is_log else f"{x:g}" for x in self.ticks]


@dataclass(frozen=True)
class Panel:
    """A small panel: the rectangle that it has on the figure, in inches, and how data are mapped into it."""

    figure: Figure
    box: _Box
    to_figure: Transform
    name: str

    def plot(self, x: Sequence[float], y: Any, *, ls: Any = "-", **style: Any) -> None:
        """A line, cut at the frame."""
        from matplotlib.lines import Line2D
        from matplotlib.transforms import Bbox, TransformedBbox

        line = Line2D(x, y, ls=ls, solid_capstyle="butt", transform=self.to_figure, gid=self.name, **style)
        left, bottom, width, height = self.box
        self.figure.add_artist(line, clip=True)
        line.set_clip_box(TransformedBbox(Bbox.from_bounds(left, bottom, width, height), self.figure.dpi_scale_trans))

    def title(self, text: str) -> None:
        """Above the frame."""
        left, bottom, width, height = self.box
        self._write(left + width / 2, bottom + height + _TITLE, text, ha="center", va="baseline", fontsize=8, color=INK)

    def note(self, text: str) -> None:
        """In the upper right corner."""
        left, bottom, width, height = self.box
        place = left + 0.97 * width, bottom + 0.95 * height
        self._write(*place, text, ha="right", va="top", fontsize=6.5, color=SOFT)

    def _write(self, x: float, y: float, text: str, **style: Any) -> None:
        self.figure.text(x, y, text, transform=self.figure.dpi_scale_trans, gid=self.name, **style)


@dataclass(frozen=True)
class Sheet:
    """Small panels row by row, and the large one in the lower right corner, which has axes of its own."""

    figure: Figure
    small: tuple[Panel, ...]
    large: Axes

    @property
    def panels(self) -> tuple[Panel | Axes, ...]:
        """All of them, the large one last."""
        return *self.small, self.large


def make_sheet(names: Sequence[str], x: Ruler, y: Ruler) -> Sheet:
    """A panel for each name with frame, grid, ticks and title; that of the last name is the large one, without ticks yet."""
    count = len(names) - 1
    across = min(_ACROSS, _WIDE + math.ceil(count / _TALL))
    down = max(math.ceil((count + _WIDE * _TALL) / across), _TALL)
    pitch = _CELL + _GAP
    width = across * pitch - _GAP + _LEFT + _RIGHT
    height = down * pitch - _GAP + _BELOW + _ABOVE[count > 0]
    figure = new_figure(width, height, layout=None)
    cells = [(i, j) for i in range(down) for j in range(across) if i < down - _TALL or j < across - _WIDE][:count]
    boxes: list[_Box] = [(_LEFT + j * pitch, _BELOW + (down - 1 - i) * pitch, _CELL, _CELL) for i, j in cells]
    _draw_frames(figure, boxes, x, y)
    for (i, j), box in zip(cells, boxes, strict=True):
        is_lowest = i == down - 1 or (j < across - _WIDE and (i + 1, j) not in cells)
        _label(figure, box, x if is_lowest else None, y if j == 0 else None)
    small = tuple(
        Panel(figure, box, _transform(figure, box, x, y), name) for box, name in zip(boxes, names, strict=False)
    )
    for panel in small:
        panel.title(panel.name)
    room = _GAP / 2 if count else 0.0  # for its labels, beside the panels to its left
    left = _LEFT + (across - _WIDE) * pitch + room
    wide, tall = _WIDE * pitch - _GAP - room, _TALL * pitch - _GAP
    large = figure.add_axes((left / width, _BELOW / height, wide / width, tall / height))
    large.set_title(names[-1], fontsize=8, pad=3, y=1.0, color=INK)
    dress(large)
    return Sheet(figure, small, large)


def _transform(figure: Figure, box: _Box, x: Ruler, y: Ruler) -> Transform:
    """From data to a rectangle of the figure."""
    from matplotlib.scale import LogTransform
    from matplotlib.transforms import Affine2D, Bbox, BboxTransform, IdentityTransform, blended_transform_factory

    (left, right), (low, high) = ([math.log10(r.ticks[k]) if r.is_log else r.ticks[k] for k in (0, -1)] for r in (x, y))
    linear = BboxTransform(Bbox.from_extents(left, low, right, high), Bbox.from_bounds(*box))
    scales = [LogTransform(10) if r.is_log else IdentityTransform() for r in (x, y)]
    found: Transform = blended_transform_factory(*scales) + Affine2D(linear.get_matrix()) + figure.dpi_scale_trans
    return found


def _draw_frames(figure: Figure, boxes: Sequence[_Box], x: Ruler, y: Ruler) -> None:
    """The grids behind the data, and left and lower edges with ticks in front of them."""
    from matplotlib.collections import LineCollection

    grids, edges = [], []
    for left, bottom, width, height in boxes:
        across, up = (
            [start + size * p for p in ruler.places()] for ruler, start, size in ((x, left, width), (y, bottom, height))
        )
        grids += [[(at, bottom), (at, bottom + height)] for at in across] + [
            [(left, at), (left + width, at)] for at in up
        ]
        edges += [[(left, bottom), (left + width, bottom)], [(left, bottom), (left, bottom + height)]]
        edges += [[(at, bottom), (at, bottom - _TICK)] for at in across] + [
            [(left, at), (left - _TICK, at)] for at in up
        ]
    inches = figure.dpi_scale_trans
    figure.add_artist(LineCollection(grids, transform=inches, zorder=0.5, linewidths=0.5, colors=GRID))
    figure.add_artist(LineCollection(edges, transform=inches, zorder=2.5, **_LINE))


def _label(figure: Figure, box: _Box, x: Ruler | None, y: Ruler | None) -> None:
    """The numbers below and to the left of a panel, where it has any."""
    for place, text, style in _numbers(box, x, y):
        figure.text(*place, text, transform=figure.dpi_scale_trans, fontsize=8, color=INK, **style)


def _numbers(box: _Box, x: Ruler | None, y: Ruler | None) -> Iterator[tuple[tuple[float, float], str, dict[str, Any]]]:
    left, bottom, width, height = box
    for share, text in zip(x.places(), x.labels(), strict=True) if x else ():
        yield (left + share * width, bottom - _LABEL), text, {"ha": "center", "va": "top"}
    for share, text in zip(y.places(), y.labels(), strict=True) if y else ():
        yield (left - _LABEL, bottom + share * height), text, {"ha": "right", "va": "center_baseline"}
