"""exactdp studio: the local web page in which a design is edited."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from exactdp.apps.cli import shell, streams
from exactdp.apps.cli.designs import DEFAULT, DesignArgument, MechanismOption, read_design
from exactdp.numbers import whole


@shell.app.command("studio")
def _studio(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[str, typer.Option("--port", metavar="N", help="The port; 0 takes a free one.")] = "8765",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open a browser.")] = True,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Permit a --host that other machines can reach; asks for a token.")
    ] = False,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="NAME", help="With --allow-remote: a name by which browsers reach it; repeatable."
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every request, without what it asks.")] = False,
) -> None:
    """Open the studio: edit a design in the browser, see its exact guarantee at once. Ctrl-C ends it."""
    from exactdp.apps.studio.server.serve import serve

    release = read_design(design, mechanism, default=DEFAULT).whole("studio")
    number = whole(port, "--port", 0, 65535)
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(message)s")
    serve(release, host, number, other_names=name or (), remote=allow_remote, browser=browser, told=_tell)


def _tell(address: str) -> None:
    if "?token=" in address:
        print(
            "Whoever has this address can use the studio until it ends, and what is sent to it is not encrypted.",
            file=sys.stderr,
        )
    with streams.telling(f"The studio is open at {address}."):
        print(f"The studio is open at {address} (Ctrl-C ends it).")
