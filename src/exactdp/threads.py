"""Threads of NumPy's matrix products: of ours none is large enough to gain by a second one, and waking and waiting for it takes
about 7% of the CPU time of `exactdp census`. More cores work at other parts of a question (`--jobs`), not at the same product."""

from __future__ import annotations

import os

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
"""What the libraries that NumPy may be built on read when they are loaded."""


def multiply_in_one_thread() -> None:
    """In processes to come, and in this one if NumPy is not loaded yet; who has asked for more threads gets them."""
    for name, number in ONE_THREAD.items():
        os.environ.setdefault(name, number)
