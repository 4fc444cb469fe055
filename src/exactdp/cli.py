"""The command line: `exactdp`."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True)


def main() -> None:
    """Entry point."""
    app()
