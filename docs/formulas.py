r"""The hook of mkdocs.yml that turns LaTeX into MathML while the site is built, so that a reader's browser loads nothing for it.

`pymdownx.arithmatex` finds the formulas (`$...$` and `$$...$$`, which repository viewers show too), latex2mathml converts them,
and `_mended` sets what browsers (MathML Core) read differently from TeX. A formula that cannot be converted stops the build.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

_FOUND = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>([,.;:?)]*)', flags=re.DOTALL)
_SPACE = "http://www.w3.org/1998/Math/MathML"
_CHILDREN = {"mfrac": 2, "msub": 2, "msup": 2, "msubsup": 3, "munder": 2, "mover": 2, "munderover": 3, "mroot": 2}
_SIGNS = {"~": "\N{TILDE OPERATOR}", **{sign: sign for sign in ":±∓⌊⌋⌈⌉⟨⟩≔"}}
_SIGNED = "+\N{MINUS SIGN}"
_CLOSING = ")]}⌋⌉⟩|‖!"
_LIMITS = {"max", "min", "sup", "inf", "lim"}


def on_page_content(text: str, page: Any, **_: object) -> str:
    """The page with MathML in the place of its formulas; punctuation stays on the line of the formula before it."""
    return _FOUND.sub(_converter(page.file.src_path), text)


def _converter(path: str) -> Callable[[re.Match[str]], str]:
    def convert_one(found: re.Match[str]) -> str:
        latex = html.unescape(found[2]).strip()
        try:
            formula = mathml(latex, display=found[1] == "div")
        except Exception as error:
            reason = f"{type(error).__name__} {error}".strip()
            raise PluginError(f"{path}: the formula {latex} cannot be converted to MathML: {reason}.") from error
        return f'<span class="unbroken">{formula}{found[3]}</span>' if found[3] else formula

    return convert_one


def mathml(latex: str, display: bool) -> str:
    """The formula as a `<math>` element, a display in a box that scrolls. ValueError where it is not what LaTeX would accept."""
    if latex.count("{") - latex.count(r"\{") != latex.count("}") - latex.count(r"\}"):
        raise ValueError("its braces do not match")
    source = (
        re.sub(r"\\(begin|end)\{aligned\}", r"\\\1{align*}", latex).replace(r"\mathrm{", r"\text{").replace(":=", "≔")
    )
    root = ElementTree.fromstring(convert(source, display="block" if display else "inline"))
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_SPACE}}}")
    for element in reversed(list(root.iter())):
        if "\\" in (element.text or "") or "$" in (element.text or ""):
            raise ValueError(f"{element.text} is not known")
        if len(element) != _CHILDREN.get(element.tag, len(element)):
            raise ValueError(f"{element.tag} has {len(element)} parts")
        _mended(element, display)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<div class="formula">{text}</div>' if display else text


def _mended(element: ElementTree.Element, display: bool) -> None:
    """Signs are operators, names of functions are not; both get TeX's spacing; columns are aligned by style."""
    text = element.text or ""
    if element.tag == "mi" and text in _SIGNS:
        element.tag, element.text = "mo", _SIGNS[text]
    if element.tag == "mover" and element[1].text == "―":
        element.tag = "mrow"
        element.remove(element[1])
        element.set("style", "border-top: 0.06em solid; padding-top: 0.1em")
    if element.tag == "mo" and (text == "∞" or (text[:1].isalpha() and text != "mod")):
        element.tag = "mi"
        element.set("mathvariant", "normal")
    if element.tag == "mo" and text in ("|", "‖", "/"):
        element.attrib |= {"lspace": "0", "rspace": "0", "stretchy": element.get("stretchy", "false")}
    if element.tag == "mrow" and len(element) == 1 and element[0].tag == "mo":
        element[0].attrib |= {"lspace": "0", "rspace": "0"}
    if align := element.attrib.pop("columnalign", None):
        element.set("style", f"text-align: {align}")
    if display and element.tag == "msub" and element[0].text in _LIMITS:
        element.tag = "munder"
    if element.tag not in _CHILDREN:
        _spaced(element)


def _spaced(row: ElementTree.Element) -> None:
    """A thin space between a function's name and its neighbours; a sign after an opening bracket or a relation is a sign."""
    for before, after in pairwise(list(row)):
        operators = [part.tag for part in (before, after)].count("mo")
        if operators == 0 and (_is_name(before) or _is_name(after)):
            row.insert(list(row).index(after), ElementTree.Element("mspace", width="0.167em"))
        if operators == 2 and str(after.text) in _SIGNED and str(before.text) not in _CLOSING:
            after.set("form", "prefix")


def _is_name(element: ElementTree.Element) -> bool:
    """Whether this is the name of a function, such as log or the mean E, with or without an index or a power."""
    base = element[0] if element.tag in ("msub", "msup", "msubsup", "munder") else element
    text = base.text or ""
    return base.tag == "mi" and text[:1].isalpha() and (len(text) > 1 or base.get("mathvariant") == "normal")
