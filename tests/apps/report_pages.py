"""A design with hostile names, its study, and a reader of report pages."""

from __future__ import annotations

from html.parser import HTMLParser

from exactdp.census.budget_files import parse_budget
from exactdp.census.runners import Serial
from exactdp.census.study import Study
from exactdp.census.summary import Summary, summarize

DESIGN = b"""
title = "My <script>alert(1)</script> & \\"survey\\" $x^2$"
source = "</title></style><img src=x onerror=alert(1)>"
[levels."<b>Nation</b>"]
"age * 'sex' \\" onmouseover=\\"x" = "1/2"
"$\\\\frac$" = 0.25
[levels.Region]
"</td></table><script>alert(2)</script>" = 0.5
[bypassed]
1 = []
2 = ["Region"]
"""
VOID = {"br", "col", "hr", "link", "meta", "wbr", "img", "input"}


def studied(content: bytes, name: str, deltas: list[str], alphas: list[str]) -> tuple[Study, Summary]:
    study = parse_budget(content, name).account(deltas=deltas, alphas=alphas)
    return study, summarize(study, Serial(), study.grids.deltas[-1])


class Reader(HTMLParser):
    """Checks that elements are nested, and keeps what tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.numbers: dict[str, tuple[str, str]] = {}
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.words: list[str] = []
        self._number: str | None = None
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs), f"an attribute twice in {tag}"
        self.tags.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "data":
            self._number = str(found["data-key"])
            assert self._number not in self.numbers, f"two numbers have the key {self._number}"
            self.numbers[self._number] = (str(found["value"]), "")
        if tag == "sup" and self._number is not None:
            value, shown = self.numbers[self._number]
            self.numbers[self._number] = (value, f"{shown}^")
        if tag == "script":
            self.scripts.append((found, ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag
        if tag == "data":
            self._number = None

    def handle_data(self, data: str) -> None:
        if self._number is not None:
            value, shown = self.numbers[self._number]
            self.numbers[self._number] = (value, shown + data)
        if self.open and self.open[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif self.open and self.open[-1] != "style":
            self.words.append(data)

    def attributes(self, name: str) -> list[str]:
        return [str(found[name]) for _, found in self.tags if name in found]
