"""HTML by construction: every text is escaped unless it is markup already, so that no name can become code.

Below the elements are the few shapes that a report is made of: sections, tables, figures, facts, notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

_VOID = frozenset({"br", "col", "hr", "link", "meta", "wbr"})


class Markup(str):
    """Text that is HTML already; everything else is escaped when it is put into an element."""

    __slots__ = ()


Child: TypeAlias = "str | int | Sequence[Child] | None"


def text(*children: Child) -> Markup:
    """The children one after the other: markup as it is, anything else escaped, None left out.

    >>> text("a < b", Markup("<br>"), None)
    'a &lt; b<br>'
    """
    parts: list[str] = []
    for child in children:
        if isinstance(child, (list, tuple)):
            parts.append(text(*child))
        elif child is not None:
            parts.append(child if isinstance(child, Markup) else escape(str(child)))
    return Markup("".join(parts))


def tag(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """One element. `cls` is class, an underscore in a name is a hyphen, True is a bare attribute, None and False are left out.

    >>> tag("td", "<b>", cls="number", aria_label='say "x"')
    '<td class="number" aria-label="say &quot;x&quot;">&lt;b&gt;</td>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value not in (None, False))
    head = f"<{name}{written}>"
    return Markup(head if name in _VOID else f"{head}{text(*children)}</{name}>")


def _attribute(key: str, value: str | int | bool | None) -> str:
    name = "class" if key == "cls" else key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


@dataclass(frozen=True)
class Section:
    """A chapter of the report; `key` is its anchor."""

    key: str
    title: str
    body: Markup

    def render(self, number: int) -> Markup:
        """With its number, as in the table of contents."""
        heading = tag("h2", tag("span", f"{number}", cls="number"), self.title, id=f"{self.key}-title")
        return tag("section", heading, self.body, id=self.key, aria_labelledby=f"{self.key}-title")


Rows: TypeAlias = Iterable[Sequence[Child]]
Column: TypeAlias = tuple[Child, str | None]
"""The head of a column and the class of its cells."""


def columns(alignment: str, *heads: Child) -> list[Column]:
    """Columns of texts, aligned to the left (l), and of numbers, aligned to the right (r)."""
    return [(head, "number" if side == "r" else None) for side, head in zip(alignment, heads, strict=True)]


def table(caption: Child, heads: Sequence[Column], rows: Rows | Mapping[Markup, Rows], cls: str) -> Markup:
    """A table whose first cell of each row is its head; a mapping has the rows of each group under a heading of its own."""
    head = [tag("th", name, scope="col", cls=kind) for name, kind in heads]
    groups: Iterable[tuple[Markup | None, Rows]] = rows.items() if isinstance(rows, Mapping) else [(None, rows)]
    bodies = []
    for title, group in groups:
        heading = title and tag("tr", tag("th", title, scope="rowgroup", colspan=len(heads)), cls="group")
        bodies.append(tag("tbody", heading, [tag("tr", _cells(heads, row)) for row in group]))
    inner = tag("table", tag("caption", tag("span", caption)), tag("thead", tag("tr", head)), bodies, cls=cls)
    return tag("div", inner, cls="scroll", role="group", tabindex=0)


def _cells(heads: Sequence[Column], row: Sequence[Child]) -> list[Markup]:
    return [
        tag("td" if i else "th", cell, cls=kind, scope=None if i else "row")
        for i, ((_, kind), cell) in enumerate(zip(heads, row, strict=True))
    ]


def figure(chart: Markup | None, caption: Child) -> Markup | None:
    """A chart with its caption; nothing where there is no chart."""
    return None if chart is None else tag("figure", chart, tag("figcaption", caption))


def facts(rows: Iterable[tuple[Child, Child]], cls: str = "facts") -> Markup:
    """Names and what they are, as a description list."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in rows], cls=cls)


def paragraph(*children: Child) -> Markup:
    """A paragraph."""
    return tag("p", *children)


def note(kind: str, title: str, *children: Child) -> Markup:
    """A remark set apart; its title says what it is, so that colour is not needed to understand it."""
    return tag("aside", tag("p", title, cls="note-title"), *children, cls=f"note {kind}", aria_label=title)
