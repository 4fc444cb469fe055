"""The command line: `exactdp`."""

from exactdp.cli import claims, designs, guarantees, noise, report, studies, studio  # noqa: F401 - they register their commands
from exactdp.cli.shell import app

__all__ = ["app", "main"]


def main() -> None:
    """Entry point."""
    app()
