"""exactdp: exact, certified differential-privacy accounting for integer-valued noise.

A public name is loaded when it is first used (SPEC 1 of Scientific Python); `__init__.pyi` lists them with their homes.
The logger `exactdp` tells how answers are made to those who listen (docs/reference/index.md).
"""

import ast
import logging
from importlib import import_module
from importlib.util import find_spec
from pkgutil import get_data

_LISTED = (n for n in ast.parse(get_data(__name__, "__init__.pyi") or b"").body if isinstance(n, ast.ImportFrom))
_HOMES = {alias.name: str(node.module) for node in _LISTED for alias in node.names}

__all__ = list(_HOMES)

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent until a program listens


def __getattr__(name: str) -> object:
    home = _HOMES.get(name, "exactdp")
    if home == "exactdp" and (name.startswith("_") or find_spec(f"exactdp.{name}") is None):
        raise AttributeError(f"module 'exactdp' has no attribute {name!r}")
    found = import_module(f"exactdp.{name}") if home == "exactdp" else getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
