"""exactdp: exact, certified differential-privacy accounting for integer-valued noise.

A public name is loaded when it is first used (SPEC 1 of Scientific Python); `__init__.pyi` lists them with their homes.
Nothing is imported before that, because the command line starts here, and Ctrl-C is a traceback until it takes over.
The logger `exactdp` tells how answers are made to those who listen (docs/reference/index.md).
"""

_HOMES: dict[str, str] = {}


def _homes() -> dict[str, str]:
    if not _HOMES:
        import ast
        from pkgutil import get_data

        listed = ast.parse(get_data(__name__, "__init__.pyi") or b"").body
        nodes = (node for node in listed if isinstance(node, ast.ImportFrom))
        _HOMES.update((alias.name, str(node.module)) for node in nodes for alias in node.names)
    return _HOMES


def __getattr__(name: str) -> object:
    from importlib import import_module
    from importlib.util import find_spec

    if name == "__all__":
        return list(_homes())
    home = _homes().get(name, "exactdp")
    if home == "exactdp" and (name.startswith("_") or find_spec(f"exactdp.{name}") is None):
        raise AttributeError(f"module 'exactdp' has no attribute {name!r}")
    found = import_module(f"exactdp.{name}") if home == "exactdp" else getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_homes(), "__all__"})
