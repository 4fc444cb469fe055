"""For the API reference: shows the doctests and trees of docstrings as they stand, where Markdown sees quotations and prose."""

from __future__ import annotations

import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"^( *)>>> .*(?:\n(?! *$).+)*", flags=re.MULTILINE)
_TREE = re.compile(r"^( *)\w+\n *[├└].*(?:\n(?! *$).+)*", flags=re.MULTILINE)


def fenced(text: str) -> str:
    """The text with every doctest and every tree, from its first line to the next blank one, in a fence of its own."""
    text = _DOCTEST.sub(r"\1```pycon\n\g<0>\n\1```", text)
    return _TREE.sub(r"\1```text\n\g<0>\n\1```", text)


class DoctestBlocks(griffe.Extension):
    """Fences the doctests and trees of every docstring as it is read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
