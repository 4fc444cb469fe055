"""Parts of NumPy that SciPy asks for by name only: loaded when somebody uses them, which no command does.

scipy.special copies every name of NumPy, and to look up `f2py` or `testing` is to load a Fortran parser and `unittest`: a sixth
of a second at every start. In a process of our own they are put off; what touches one of them gets all of it.
"""

from __future__ import annotations

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec

import numpy as np

_UNUSED = ("numpy.f2py", "numpy.testing")


def put_off_unused_parts() -> None:
    """Have the unused parts loaded at their first use, if they are not loaded yet; any that this cannot be done for stay as they
    are."""
    for name in _UNUSED:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
            part = module_from_spec(spec)
            sys.modules[name] = part
            spec.loader.exec_module(part)
            setattr(np, name.rpartition(".")[2], part)
