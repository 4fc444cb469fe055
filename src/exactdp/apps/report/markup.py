"""HTML by construction: every text is escaped unless it is markup already, so that no name can become code."""

from __future__ import annotations

from collections.abc import Sequence
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
