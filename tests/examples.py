"""Runs the examples of a Markdown page: python blocks, commands, and the files that both of them read.

`python tests/examples.py PAGE...` writes anew what the commands of the pages print.
"""

from __future__ import annotations

import ast
import contextlib
import re
import shlex
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from typer.testing import CliRunner

import exactdp
from exactdp.apps import cli
from exactdp.apps.cli import tables

COLUMNS = 100
"""Of the terminal that the documentation shows."""
_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def blocks(path: Path, language: str) -> list[tuple[str, str]]:
    """What stands after the language, and the text, of every fenced block of this language."""
    return [(rest, text) for found, rest, text in _BLOCK.findall(path.read_text()) if found == language]


def write_files(path: Path, folder: Path) -> None:
    """Write every block with a title into the folder, under its title."""
    for _, rest, text in _BLOCK.findall(path.read_text()):
        if title := re.search(r'title="([\w.-]+)"', rest):
            (folder / title[1]).write_text(text)


def run_python(path: Path) -> int:
    """Run every python block in one scope, with `exactdp` in it; `expression  # -> text` must print so. How many did."""
    scope: dict[str, object] = {"exactdp": exactdp}
    compared = 0
    for _, block in blocks(path, "python"):
        lines = block.splitlines()
        for statement in ast.parse(block).body:
            code = ast.get_source_segment(block, statement) or ""
            line = lines[(statement.end_lineno or statement.lineno) - 1]
            if "# -> " in line:
                assert str(eval(code, scope)) == line.split("# -> ")[1].strip(), f"{path.name}: {line}"
                compared += 1
            else:
                exec(compile(code, path.name, "exec"), scope)
    return compared


def run_commands(path: Path) -> int:
    """Run every `$ exactdp ...` of the console blocks; what it prints, blank lines left out, must follow. How many ran."""
    done = 0
    for _, block in blocks(path, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            assert _lines(printed(command, path)) == _lines(expected), f"{path.name}: {command}"
            done += 1
    return done


def printed(command: str, path: Path) -> str:
    """What a command prints on a terminal of COLUMNS columns."""
    program, *arguments = shlex.split(command, comments=True)
    assert program == "exactdp", f"{path.name}: only exactdp is run here. Found {command}."
    with patch.object(tables, "width", return_value=COLUMNS):
        result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 0, f"{path.name}: {command}\n{result.output}"
    return str(result.stdout)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _refresh(path: Path) -> None:
    """Write anew what the commands of a page print."""

    def anew(block: re.Match[str]) -> str:
        if block[1] != "console":
            return block[0]
        commands = [part.partition("\n")[0] for part in re.split(r"^\$ ", block[3], flags=re.MULTILINE)[1:]]
        told = "\n".join(f"$ {command}\n{printed(command, path).rstrip()}\n" for command in commands)
        return f"```console{block[2]}\n{told}```"

    page = path.resolve()
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_files(page, Path(folder))
        text = _BLOCK.sub(anew, page.read_text())
    page.write_text(text)


if __name__ == "__main__":
    here = Path.cwd()
    for name in sys.argv[1:]:
        _refresh(here / name)
