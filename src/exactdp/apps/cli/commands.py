"""All commands: importing this registers them."""

from exactdp.apps.cli import (  # noqa: F401 - they register their commands
    account,
    calibrate,
    census,
    certificates,
    explain,
    guarantees,
    optimize,
    race,
    release,
    report,
    schema,
    studio,
)
from exactdp.apps.cli.shell import app

__all__ = ["app"]
