"""The mutants of the grid method, of lattices with lists, and of noise given by a table."""

from __future__ import annotations

TESTS = {
    f"engine/grid/{name}.py": ["tests/engine/test_grid.py", "-m", "not soak"]
    for name in ("splitting", "window", "convolution", "grid_fft", "lists")
}

for _name in ("lattice_list", "lattice_bins", "light_values", "suffix_sums"):
    TESTS[f"engine/line/{_name}.py"] = ["tests/engine/test_lattice_list.py"]
TESTS["mechanisms/discrete_gaussian.py"] = ["tests/engine/test_lattice_list.py", "tests/engine/test_bounds.py"]

TESTS["engine/family/line_grid.py"] = ["tests/engine/test_line_grid.py"]

for _name in ("integer_noise", "integer_tables", "outcomes"):
    TESTS[f"mechanisms/{_name}.py"] = ["tests/mechanisms/test_integer_noise.py"]

_LISTS = "engine/line/lattice_list.py"
_BINS = "engine/line/lattice_bins.py"
_LIGHT = "engine/line/light_values.py"
_NOISE = "mechanisms/integer_noise.py"
_GRID = "engine/grid/grid_fft.py"
_SPLITTING = "engine/grid/splitting.py"
_CONVOLUTION = "engine/grid/convolution.py"

MUTANTS = [
    (
        "one more unit of tilt moves by the unit and not by the variance",
        "mechanisms/discrete_gaussian.py",
        "return self.sensitivity * self.weight",
        "return self.weight",
    ),
    ("lists that stay where they are under another tilt", _LISTS, "ball(rung.index * (", "ball(0 * ("),
    ("what a list leaves out is not counted", _LIGHT, "missing=found.missing + join.lost", "missing=found.missing"),
    (
        "half of what a list leaves out",
        _LIGHT,
        "float(np.sum(b * tails[out])) * (1 + SUM_SLACK)",
        "float(np.sum(b * tails[out])) / 2",
    ),
    ("values left out and not split either", _LIGHT, "some = slice(begin, end)", "some = slice(begin + 1, end)"),
    ("a share that is not taken off", _LIGHT, "(1 - upper) * np.exp(-tilt * inside)", "np.exp(-tilt * inside)"),
    ("split by distance", _LIGHT, "upper = np.expm1(-inside) / math.expm1(-step)", "upper = inside / step"),
    ("a kink that costs an eighth of the step", _LIGHT, "most * step / 4", "most * step / 8"),
    ("curvature that costs half", _LIGHT, "max(away + 1, 2) * step**2 / 8", "max(away + 1, 2) * step**2 / 20"),
    ("mass that is split not counted", _LIGHT, "split = self.split + (join.lost", "split = 0 * (join.lost"),
    (
        "light values forgotten",
        _BINS,
        "rows[0] += cells.light",
        "rows[0] += 0.0",
    ),
    (
        "splitting costs nothing",
        _BINS,
        "wrong += cells.split.split * split_error(h, lam, cells.split.tilt, heaviest(lattice))",
        "wrong += 0.0",
    ),
    (
        "light values where splitting is too coarse",
        _LISTS,
        "if self.light is not None else self.rest",
        "if self.light is None else self.rest",
    ),
    ("the ends of a lattice are not counted", _LISTS, "lost * (1 + SUM_SLACK)", "0.5 * lost"),
    (
        "values a step too far",
        _LISTS,
        "start += int(atoms.positions[0]) * stride + low",
        "start += int(atoms.positions[0]) * stride",
    ),
    ("half of a lattice moved by a step", _LISTS, "weights[:half][::-1]", "np.append(0.0, weights[: half - 1])[::-1]"),
    ("the value at an end left out without a trace", _LISTS, "missing=atoms.missing + lost", "missing=atoms.missing"),
    ("a heavy value at an end left out", _LISTS, "lost <= _CUT and is_even(rest)", "is_even(rest)"),
    (
        "the point before the one that all ask for is forgotten",
        _BINS,
        "+ more\n",
        "+ 0 * more\n",
    ),
    (
        "the point before counts among those below",
        _BINS,
        "* below - more",
        "* below + more",
    ),
    ("counted by cells: rounding not charged", _BINS, "(value + wrong + missing)", "(value + 1e-3 * wrong + missing)"),
    ("counted by cells: rounding not taken off", _BINS, "max(value - wrong, 0.0)", "max(value - 1e-3 * wrong, 0.0)"),
    ("counted by cells: missing values forgotten", _BINS, "(value + wrong + missing)", "(value + wrong)"),
    (
        "counted by cells: errors of values forgotten",
        _BINS,
        "wrong = 2 * error * over +",
        "wrong = 0 * error * over +",
    ),
    (
        "counted by cells: errors that add up forgotten",
        _BINS,
        "wrong += (rest.absolute + lattice.absolute) * (1 + ACCOUNT_SLACK) * largest",
        "wrong += 0.0",
    ),
    (
        "the wrong point asked for",
        _BINS,
        "at = points.place(asked.first + 1)",
        "at = points.place(asked.first)",
    ),
    (
        "values on the other side of the threshold",
        _BINS,
        "cells.inside[which] > threshold.into",
        "cells.inside[which] < threshold.into",
    ),
    (
        "slices of the wrong side",
        _BINS,
        "for i in reversed(range(cells.slices)):",
        "for i in range(cells.slices):",
    ),
    (
        "the sum of a later block not discounted",
        "engine/line/suffix_sums.py",
        "later.append(step * (first + later[-1]))",
        "later.append(first + later[-1])",
    ),
    (
        "a pair with one of its members only",
        "engine/family/line_grid.py",
        "product([t for t in both if t is not None])",
        "both[0]",
    ),
    (
        "the loss of another pair",
        "engine/family/line_grid.py",
        "GridFFT(self.family.total(pair), rung",
        "GridFFT(self.family.total(0), rung",
    ),
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
        "wrong + t.missing * most + outside, wrong + wrapped",
        "wrong + t.missing * most + outside, wrong",
    ),
    (
        "mass outside left out of the upper bound",
        _GRID,
        "wrong + t.missing * most + outside, wrong",
        "wrong + t.missing * most, wrong",
    ),
    (
        "delta wraps around without aliases",
        _GRID,
        "return (1 + FFT_SLACK) * wrapped, (1 + FFT_SLACK) * missing",
        "return 0 * wrapped, (1 + FFT_SLACK) * missing",
    ),
    (
        "a circle of twice its length",
        _GRID,
        "self._wrapping.delta(y, length, self._squares)",
        "self._wrapping.delta(y, 2 * length, self._squares)",
    ),
    (
        "delta from a half circle without what is beyond it",
        _GRID,
        "return (1 + FFT_SLACK) * wrapped, (1 + FFT_SLACK) * missing",
        "return (1 + FFT_SLACK) * wrapped, 0 * missing",
    ),
    (
        "losses far below, moved as if they were above",
        "engine/grid/window.py",
        "lam * length - nu * half",
        "lam * length - nu * length",
    ),
    (
        "missing mass left out of the upper bound",
        _GRID,
        "wrong + t.missing * most + outside",
        "wrong + outside",
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
        "math.floor(-away / h) + 1  #",
        "math.floor(-away / h) + 2  #",
    ),
    (
        "relative errors of weights forgotten",
        _GRID,
        "_SUMMING * UNIT + t.relative",
        "_SUMMING * UNIT",
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
    (
        "any difference taken for the worst",
        _NOISE,
        "if sensitivity > 1 and not _is_log_concave(pmf):",
        "if False:",
    ),
    (
        "the worst difference: outcomes that do not count",
        _NOISE,
        "first = bisect_right(self.ratios, t)",
        "first = min(bisect_right(self.ratios, t) + 1, len(self.ratios))",
    ),
    (
        "gaps taken for log-concave",
        _NOISE,
        "    if not all(pmf):\n        return False\n",
        "    if not all(pmf):\n        return True\n",
    ),
    (
        "a difference of 1 whatever the sensitivity",
        _NOISE,
        "loss_of(*_shifted(self.pmf, self.sensitivity))",
        "loss_of(*_shifted(self.pmf, 1))",
    ),
    (
        "the ends of a table lose nothing",
        "mechanisms/outcomes.py",
        "            lost += a\n",
        "            lost += 0\n",
    ),
    (
        "clamped noise without its tail",
        "mechanisms/integer_tables.py",
        "            side[bound] += _gaussian_tail(sigma2, bound, side[bound])\n",
        "",
    ),
    (
        "clamped geometric noise without its tail",
        "mechanisms/integer_tables.py",
        "side[bound] = side[bound] / (1 - q)",
        "side[bound] = side[bound] / 1",
    ),
]
