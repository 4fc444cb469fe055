"""The mutants of the grid method and of noise given by a table."""

from __future__ import annotations

TESTS = {
    f"engine/grid/{name}.py": ["tests/engine/test_grid.py", "-m", "not soak"]
    for name in ("splitting", "window", "convolution", "grid_fft", "lists")
}

_GRID = "engine/grid/grid_fft.py"
_SPLITTING = "engine/grid/splitting.py"
_CONVOLUTION = "engine/grid/convolution.py"

MUTANTS = [
    (
        "split by distance, which keeps the mean loss and not Q",
        _SPLITTING,
        "(np.expm1(-s) / whole)",
        "(s / step)",
    ),
    (
        "the lower share without its move",
        _SPLITTING,
        "np.exp(-(tilt + 1) * s) * (np.expm1(-t) / whole)",
        "np.exp(-tilt * s) * (np.expm1(-t) / whole)",
    ),
    (
        "Q moved by a kernel of its own",
        _SPLITTING,
        "summed(low * np.exp(-s), high * np.exp(t))",
        "summed(low, high)",
    ),
    (
        "moves without second moments",
        _SPLITTING,
        "abs(z) * (1 + abs(z)) * squares / 8",
        "abs(z) * squares / 8",
    ),
    (
        "moves that always shrink",
        _SPLITTING,
        "return 0.0 if -1 <= z <= 0 else",
        "return 0.0 if z <= 0 else",
    ),
    (
        "nothing outside the grid",
        "engine/grid/window.py",
        "        return math.exp(best)\n",
        "        return 0.0\n",
    ),
    (
        "a tail bound of half its exponent",
        "engine/grid/window.py",
        "log + growth - d * end + FORMULA_SLACK",
        "log + growth - 2 * d * end + FORMULA_SLACK",
    ),
    (
        "wrapped mass left in the lower bound",
        _GRID,
        "wrong + t.missing * most + sum(self._outside), wrong + self._outside[0]",
        "wrong + t.missing * most + sum(self._outside), wrong",
    ),
    (
        "mass outside left out of the upper bound",
        _GRID,
        "wrong + t.missing * most + sum(self._outside), wrong",
        "wrong + t.missing * most, wrong",
    ),
    (
        "missing mass left out of the upper bound",
        _GRID,
        "wrong + t.missing * most + sum",
        "wrong + sum",
    ),
    (
        "the test's advantage with the split Q",
        _GRID,
        "lower = near * above - nearer * tested",
        "lower = near * above - nearer * discounted",
    ),
    (
        "1 - delta from above with the split Q",
        _GRID,
        "below + nearer * discounted, below + nearer * tested",
        "below + nearer * discounted, below + nearer * discounted",
    ),
    (
        "a threshold one point late",
        _GRID,
        "math.floor(-away / h) + 1, 0)",
        "math.floor(-away / h) + 2, 0)",
    ),
    (
        "relative errors of weights forgotten",
        _GRID,
        "* gap) * UNIT + t.relative",
        "* gap) * UNIT",
    ),
    (
        "moved values forgotten",
        _GRID,
        "t.absolute * most + t.moved +",
        "t.absolute * most +",
    ),
    (
        "errors of weights that add up forgotten",
        _GRID,
        "t.absolute * most + t.moved +",
        "t.moved +",
    ),
    (
        "an FFT that makes no error",
        _CONVOLUTION,
        "count * (grid.fft_error + 3 * UNIT) * norm * g",
        "0 * count * norm * g",
    ),
    (
        "the values' own errors lost on the way",
        _CONVOLUTION,
        "count * (values.value_error + 2 * UNIT",
        "count * (2 * UNIT",
    ),
    (
        "the weights' own errors lost on the way",
        _CONVOLUTION,
        "count * (values.relative + one.relative)",
        "count * one.relative",
    ),
    (
        "the missing mass of one list only",
        _CONVOLUTION,
        "            self.missing + other.missing,\n",
        "            self.missing,\n",
    ),
]
