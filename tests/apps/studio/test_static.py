"""The files of the studio's page: nothing from elsewhere, colours one can read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import exactdp

STATIC = Path(exactdp.__file__).parent / "apps" / "studio" / "static"


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_have_enough_contrast(theme: int) -> None:
    tokens = dict(re.findall(r"--([\w-]+): light-dark\((#\w{6}, #\w{6})\)", (STATIC / "tokens.css").read_text()))
    colour = {name: both.split(", ")[theme] for name, both in tokens.items()}
    for text in ("text", "muted", "accent"):
        for surface in ("page", "surface", "sunken", "accent-soft"):
            assert _contrast(colour[text], colour[surface]) >= 4.5, (text, surface)
    for name in ("bad", "warn"):
        for surface in ("surface", f"{name}-soft"):
            assert _contrast(colour[name], colour[surface]) >= 4.5, (name, surface)
    assert _contrast(colour["on-accent"], colour["accent"]) >= 4.5
    for line in ("exact", "optimal", "simple", "gaussian", "whole", "kept", "line-strong"):
        assert _contrast(colour[line], colour["surface"]) >= 3, line


def test_the_page_holds_no_script_or_style_of_its_own_and_no_address() -> None:
    html = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:", html)
    for path in filter(Path.is_file, STATIC.rglob("*")):
        addresses = set(re.findall(r"https?://[^\s\"'`<>]+", path.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path.name
        assert "innerHTML" not in path.read_text()
