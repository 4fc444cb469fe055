"""exactdp schema: the JSON Schemas of the files that other programs write and read."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from exactdp.apps.cli import shell
from exactdp.files import write_text
from exactdp.interop.schemas import SCHEMAS, json_schema

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(SCHEMAS)}.")]


@shell.app.command("schema")
def _schema(name: NameArgument, output: shell.OutputOption = None) -> None:
    """Print the JSON Schema of a certificate, of a design (a budget file) or of an object."""
    text = json.dumps(json_schema(name), indent=1) + "\n"
    if output is None:
        print(text, end="")
    else:
        shell.check_ending(output, ".json")
        write_text(output, text)
