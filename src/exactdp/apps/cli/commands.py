"""All commands: importing this registers them."""

from exactdp.apps.cli import account, calibrate, census, certificates, guarantees, race, release, report, schema, studio  # noqa: F401 - they register their commands
from exactdp.apps.cli.shell import app

__all__ = ["app"]
