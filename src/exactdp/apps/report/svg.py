"""A matplotlib figure as SVG that lives inside a page: colours follow the page's, text stays text, ids are its own."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from exactdp.apps.figures.settled import lay_out
from exactdp.apps.figures.style import drawn
from exactdp.apps.report.markup import Markup, tag

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HUES = {
    "exact": "#0b5cad",
    "zcdp": "#b4470e",
    "simple": "#7a5c00",
    "gaussian": "#3f454d",
    "ink": "#1b1f24",
    "soft": "#57606b",
    "grid": "#dfe3e8",
}
EXACT, ZCDP, SIMPLE, GAUSSIAN, INK, SOFT, GRID = _HUES.values()
_COLOURS = {hue: f"var(--{name})" for name, hue in _HUES.items()}
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_SIZE = re.compile(r"([0-9.]+)px")


def inline(figure: Figure, name: str, title: str, description: str, cls: str = "chart") -> Markup:
    """The figure as an `svg` element; `name` makes its ids unique in the page. The same figure gives the same bytes."""
    root = ElementTree.fromstring(_drawn(figure, name))
    _prune(root)
    for element in root.iter():
        element.tag = _local(element.tag)
        attributes = {_local(key): value for key, value in element.attrib.items()}
        element.attrib.clear()
        element.attrib.update({k: _value(k, v, name) for k, v in attributes.items()})
    labels = tag("title", title, id=f"{name}-title"), tag("desc", description, id=f"{name}-desc")
    drawing = Markup("".join(ElementTree.tostring(child, encoding="unicode") for child in root))
    names = f"{name}-title {name}-desc"
    return tag("svg", *labels, drawing, viewBox=root.attrib["viewBox"], role="img", aria_labelledby=names, cls=cls)


def _drawn(figure: Figure, name: str) -> str:
    """The figure as matplotlib writes it, without a date."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        # the page's font shows the text, not matplotlib's
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        lay_out(figure, figure.dpi)
        for patch in (figure.patch, *(axes.patch for axes in figure.axes)):
            patch.set_facecolor("none")
        return drawn(figure, "svg", figure.dpi, {"Date": None, "Creator": None}).decode()


def _prune(element: ElementTree.Element) -> None:
    """Without what only a file of its own needs, and without white space between elements."""
    for child in list(element):
        if _local(child.tag) in ("metadata", "style"):
            element.remove(child)
        else:
            _prune(child)
    element.text = (element.text or "").strip() or None
    element.tail = None


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _value(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        return f"#{name}-{value.removeprefix('#')}"
    value = _REFERENCE.sub(rf"url(#{name}-\1)", value)
    return _style(value) if key == "style" else value


def _style(style: str) -> str:
    """The declarations with the page's colours and, but for its size, the page's font."""
    result = []
    for declaration in style.split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key == "font":
            result += [f"font-size:{size}px" for size in _SIZE.findall(value)[:1]]
        elif value and key != "font-family":
            result.append(f"{key}:{_COLOURS.get(value.lower(), value)}")
    return ";".join(result)
