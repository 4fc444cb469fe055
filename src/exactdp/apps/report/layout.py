"""The few shapes that a report is made of: sections, tables, figures, facts, notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from exactdp.apps.report.markup import Child, Markup, tag


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


@dataclass(frozen=True)
class Column:
    """The head of a column; numbers are aligned to the right."""

    head: Child
    numeric: bool = True


def table(caption: Child, columns: Sequence[Column], rows: Iterable[Sequence[Child]], cls: str | None = None) -> Markup:
    """A table whose first cell of each row is its head."""
    return grouped_table(caption, columns, [(None, rows)], cls)


def grouped_table(
    caption: Child,
    columns: Sequence[Column],
    groups: Iterable[tuple[Child, Iterable[Sequence[Child]]]],
    cls: str | None = None,
) -> Markup:
    """A table in groups of rows, each under a heading of its own unless that is None."""
    head = [tag("th", c.head, scope="col", cls="number" if c.numeric else None) for c in columns]
    bodies = []
    for title, rows in groups:
        first = None
        if title is not None:
            first = tag("tr", tag("th", title, scope="rowgroup", colspan=len(columns)), cls="group")
        bodies.append(tag("tbody", first, [tag("tr", _cells(columns, row)) for row in rows]))
    inner = tag("table", tag("caption", tag("span", caption)), tag("thead", tag("tr", head)), bodies, cls=cls)
    return tag("div", inner, cls="scroll", role="group", tabindex=0)


def _cells(columns: Sequence[Column], row: Sequence[Child]) -> list[Markup]:
    return [
        tag("td" if i else "th", cell, cls="number" if column.numeric else None, scope=None if i else "row")
        for i, (column, cell) in enumerate(zip(columns, row, strict=True))
    ]


def figure(chart: Markup | None, caption: Child) -> Markup | None:
    """A chart with its caption; nothing where there is no chart."""
    return None if chart is None else tag("figure", chart, tag("figcaption", caption))


def facts(rows: Iterable[tuple[Child, Child]], cls: str = "facts") -> Markup:
    """Names and what they are, as a description list."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in rows], cls=cls)


def paragraph(*children: Child, cls: str | None = None) -> Markup:
    """A paragraph."""
    return tag("p", *children, cls=cls)


def note(kind: str, title: str, *children: Child) -> Markup:
    """A remark set apart; its title says what it is, so that colour is not needed to understand it."""
    return tag("aside", tag("p", title, cls="note-title"), *children, cls=f"note {kind}", aria_label=title)


def share_bar(share: float) -> Markup:
    """A bar for the eye beside a number that is written out."""
    width = f"width:{max(0.0, min(1.0, share)) * 100:.2f}%"
    return tag("span", tag("span", style=width), cls="bar", aria_hidden="true")
