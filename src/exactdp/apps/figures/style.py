"""How figures look: one palette, one kind of axes, files that are the same bytes for the same figure."""

from __future__ import annotations

import io
import math
import os
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from exactdp.apps.figures.settled import lay_out, unhinted
from exactdp.errors import InvalidInputError, MissingExtraError
from exactdp.files import write_bytes
from exactdp.numbers import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which readers with any colour vision can tell apart; red-orange and orange also differ in lightness
EXACT, ZCDP, SIMPLE, INK, SOFT, GRID = "#0072B2", "#D55E00", "#E69F00", "#333333", "#767676", "#E4E4E4"
ERRORS = "Type I error \u03b1", "Type II error \u03b2"
DELTA, EPSILON, RHO = "\u03b4", "\u03b5", "\u03c1"
SIGMA2 = "\u03c3\u00b2"
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": 8, "labelcolor": INK, "handlelength": 1.8}
_UNDATED: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
}  # metadata by kind of file
_RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
_DPI = 160
_CAPTION = {"png": "Description", "pdf": "Subject", "svg": "Description"}
_ENDINGS = {**_UNDATED, "svg": {"Date": None}}


def figure_class(what: str = "Figures") -> type[Figure]:
    """Matplotlib's class of figures; without matplotlib a sentence that says how to get it for `what`."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(what, "plots") from None
    return Figure


def new_figure(width: float, height: float, layout: Literal["constrained"] | None = "constrained") -> Figure:
    """An empty figure, in inches, that belongs to no window and to no global state."""
    return figure_class()(figsize=(width, height), layout=layout, facecolor="white")


def dress(axes: Axes, size: float = 8) -> None:
    """Thin spines, a light grid behind the data, small ticks."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set(linewidth=0.6, color=SOFT)
    axes.grid(True, color=GRID, lw=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=size, length=2.5, width=0.6, color=SOFT, labelcolor=INK)
    for text in (axes.xaxis.label, axes.yaxis.label):
        text.set(fontsize=9, color=INK)
    axes.yaxis.get_offset_text().set(fontsize=size, color=INK)


def power_of_ten(exponent: int) -> str:
    """10 to a power as text: what matplotlib typesets as mathematics takes twenty milliseconds for every text."""
    return f"10{str(exponent).translate(_RAISED)}" if exponent else "1"


def log_ticks(axes: Axes, x: Sequence[float] | None = None, y: Sequence[float] | None = None) -> None:
    """Powers of ten as the ticks of logarithmic axes."""
    for axis, ticks in ((axes.xaxis, x), (axes.yaxis, y)):
        if ticks is not None:
            axis.set_ticks(ticks, [power_of_ten(round(math.log10(tick))) for tick in ticks])
            axis.set_ticks([], minor=True)


def titled(figure: Figure, title: str, *lines: str, **place: float) -> Figure:
    """The title of a figure: each of its lines no longer than the figure is wide."""
    longest = round(12 * figure.get_size_inches()[0])
    text = "\n".join(
        textwrap.shorten(x, longest, placeholder=" ...") for line in (title, *lines) for x in line.split("\n")
    )
    figure.suptitle(text, fontsize=9.5, color=INK, **place)
    return figure


def save(figures: Iterable[tuple[str, Figure, str]], folder: Path) -> list[Path]:
    """Write named figures with captions into a folder, each as PNG and as PDF; returns the paths. The same figure gives the same
    bytes."""
    figure_class()  # no folder is made where there is no matplotlib
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, figure, caption in figures:
        lay_out(figure, _DPI)
        for ending in _UNDATED:
            paths.append(folder / f"{name}.{ending}")
            write_figure(paths[-1], figure, ending, caption)
    return paths


def write_figure(
    path: str | os.PathLike[str], figure: Figure, ending: str | None = None, caption: str | None = None
) -> None:
    """Write a figure, all of it or nothing, as the ending of its name says: .png, .pdf or .svg; a caption goes into the file."""
    ending = Path(path).suffix.lower().removeprefix(".") if ending is None else ending
    if ending not in _ENDINGS:
        raise InvalidInputError(f"A figure is written to a .png, .pdf or .svg file. Found {shown(Path(path).name)}.")
    metadata = _ENDINGS[ending] if caption is None else {**_ENDINGS[ending], _CAPTION[ending]: caption}
    write_bytes(path, drawn(figure, ending, _DPI, metadata))


def drawn(figure: Figure, ending: str, dpi: float, metadata: dict[str, Any]) -> bytes:
    """The content of a file with the figure: drawn once, where `savefig` would draw it a first time to see what there is."""
    buffer, own = io.BytesIO(), figure.get_dpi()
    figure.set_dpi(dpi)
    with unhinted():
        if ending == "png":
            from matplotlib.backends.backend_agg import FigureCanvasAgg

            less = {"compress_level": 1}  # half the time, a fifth larger
            FigureCanvasAgg(figure).print_png(buffer, metadata=metadata, pil_kwargs=less)
        elif ending == "pdf":
            from matplotlib.backends.backend_pdf import FigureCanvasPdf

            FigureCanvasPdf(figure).print_pdf(buffer, metadata=metadata)
        else:
            from matplotlib.backends.backend_svg import FigureCanvasSVG

            FigureCanvasSVG(figure).print_svg(buffer, metadata=metadata)
    figure.set_dpi(own)
    return buffer.getvalue()
