"""Runs the examples of a Markdown page: python blocks, commands, and the files that both of them read."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

import exactdp
from exactdp.apps import cli

_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def blocks(path: Path, language: str) -> list[tuple[str, str]]:
    """What stands after the language, and the text, of every fenced block of this language."""
    return [(rest, text) for found, rest, text in _BLOCK.findall(path.read_text()) if found == language]


def write_files(path: Path, folder: Path) -> None:
    """Write every toml block with a title into the folder, under its title."""
    for rest, text in blocks(path, "toml"):
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
            program, *arguments = shlex.split(command)
            assert program == "exactdp", f"{path.name}: only exactdp is run here. Found {command}."
            result = CliRunner().invoke(cli.app, arguments)
            assert result.exit_code == 0, f"{path.name}: {command}\n{result.output}"
            assert _printed(result.stdout) == _printed(expected), f"{path.name}: {command}"
            done += 1
    return done


def _printed(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]
