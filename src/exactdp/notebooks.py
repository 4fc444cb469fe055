"""How a result shows itself in a notebook."""

from __future__ import annotations


def repr_html(result: object) -> str:
    """The object as an HTML table. A class that is to be shown so says `_repr_html_ = repr_html`."""
    from exactdp.interop.frames import as_html

    return as_html(result)
