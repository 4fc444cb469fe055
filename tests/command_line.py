"""Running a command in this process, and what its refusal looks like."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from exactdp.apps import cli


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def refused(result: Result, named: str = "") -> str:
    """The one sentence of a command that was refused, which names what was wrong."""
    assert result.exit_code == 2
    assert result.stdout == ""
    sentence = str(result.stderr)
    assert sentence.startswith("exactdp: ")
    assert sentence.endswith(".\n")
    assert sentence.rstrip("\n").isprintable()
    assert named in sentence
    return sentence
