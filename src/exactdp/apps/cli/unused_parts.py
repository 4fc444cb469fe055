"""What libraries load or make for its name only: in a process of our own it is put off or left out.

scipy.special copies every name of NumPy, and to look up `f2py`, `testing`, `ma` or `random` is to load them; matplotlib loads
axes in three dimensions to have them in a list. A fifth of a second at every start, and no command uses any of it but `ma`,
through matplotlib: what touches a part of NumPy gets all of it. scipy.special also writes the same remark on array libraries
into the description of each of its functions, for which it takes them apart: half of the time that it takes to load.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib.util import LazyLoader, find_spec, module_from_spec
from typing import TypeVar

import numpy as np

_PUT_OFF = ("numpy.f2py", "numpy.testing", "numpy.ma", "numpy.random", "numpy.ctypeslib", "numpy.polynomial")
_LEFT_OUT = "mpl_toolkits.mplot3d"
_Function = TypeVar("_Function")


def put_off_unused_parts() -> None:
    """Have parts of NumPy loaded at their first use, if they are not loaded yet; any that this cannot be done for stay as they
    are. Without axes in three dimensions matplotlib does with a warning."""
    for name in _PUT_OFF:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
            part = module_from_spec(spec)
            sys.modules[name] = part
            spec.loader.exec_module(part)
            setattr(np, name.rpartition(".")[2], part)
    if _LEFT_OUT not in sys.modules:
        sys.modules[_LEFT_OUT] = None  # type: ignore[assignment]
        warnings.filterwarnings("ignore", "Unable to import Axes3D", UserWarning)
    _load_undescribed()


def _load_undescribed() -> None:
    """Load scipy.special with the descriptions that its functions are compiled with; a SciPy that has other ways keeps them."""
    with suppress(ImportError, AttributeError):
        from scipy._lib import _array_api

        described = _array_api.xp_capabilities
        _array_api.xp_capabilities = _undescribed
        try:
            import scipy.special  # noqa: F401
        except (TypeError, ValueError):  # those who need what it does get it when they load it
            pass
        finally:
            _array_api.xp_capabilities = described


def _undescribed(**_: object) -> Callable[[_Function], _Function]:
    return lambda function: function
