"""The mutants of sampled and other smooth mechanisms (docs/theory/smooth.md)."""

from __future__ import annotations

_SAMPLED = ["tests/mechanisms/test_sampled.py", "-m", "not soak"]
_LABELS = ["tests/mechanisms/test_step_labels.py", "-m", "not soak"]
_LAPLACE = "tests/mechanisms/test_sampled_laplace.py"

_CUT = ["tests/mechanisms/test_cut_steps.py", "-m", "not soak"]

TESTS = {
    "mechanisms/trapezoidal_rule.py": [_LABELS[0], *_SAMPLED],
    "mechanisms/gaussian_mixture_loss.py": [_LABELS[0], *_SAMPLED],
    "mechanisms/poisson_sampled.py": [_LAPLACE, *_SAMPLED],
    "mechanisms/laplace_tables.py": [_LAPLACE],
    "accounting/between_tables.py": [_LAPLACE],
    "mechanisms/rule_weights.py": _SAMPLED,
    "mechanisms/step_labels.py": _LABELS,
    "engine/line/large_steps.py": _LABELS,
    "mechanisms/rule_table.py": _SAMPLED,
    "mechanisms/gauss_panels.py": _CUT,
    "mechanisms/cut_mixture_loss.py": _CUT,
    "engine/line/cut_steps.py": _CUT,
    "mechanisms/laplace.py": ["tests/mechanisms/test_laplace.py"],
    "mechanisms/skellam.py": ["tests/mechanisms/test_skellam.py"],
    "mechanisms/bessel_table.py": ["tests/mechanisms/test_skellam.py"],
}

_RULE, _LOSS = "mechanisms/trapezoidal_rule.py", "mechanisms/gaussian_mixture_loss.py"
_STEP, _LARGE = "mechanisms/step_labels.py", "engine/line/large_steps.py"

_PANELS, _BELOW, _CUTS = "mechanisms/gauss_panels.py", "mechanisms/cut_mixture_loss.py", "engine/line/cut_steps.py"
_TABLES, _BETWEEN = "mechanisms/laplace_tables.py", "accounting/between_tables.py"

MUTANTS = [
    ("cells of Laplace noise merged at their upper ends", _TABLES, "(cells + 1 - 2 * j)", "(cells + 2 - 2 * j)"),
    (
        "cells of Laplace noise split below them",
        _TABLES,
        "c * (cells - 2 * j)",
        "c * (cells - 2 * j - (0 < j < cells))",
    ),
    (
        "a lower bound of delta from the table that tells more",
        _BETWEEN,
        "_joined(less.delta, more.delta)",
        "_joined(more.delta, more.delta)",
    ),
    (
        "an upper bound of 1 - delta from the table that tells more",
        _BETWEEN,
        "_joined(more.rest, less.rest)",
        "_joined(more.rest, more.rest)",
    ),
    (
        "an upper bound of epsilon from the table that tells less",
        _BETWEEN,
        "self._above.epsilon_",
        "self._below.epsilon_",
    ),
    (
        "a small loss on a sample by what is left of 1",
        "mechanisms/poisson_sampled.py",
        "if bool(value < -1) else",
        "if False else",
    ),
    ("a sample of all records enclosed", "mechanisms/poisson_sampled.py", "and self.rate < 1", ""),
    (
        "all records: one of several",
        "mechanisms/poisson_sampled.py",
        "base.sensitivity * self.records) if",
        "base.sensitivity) if",
    ),
    (
        "listed losses without the radius of their balls",
        "mechanisms/loss.py",
        "+ 2 * self._radius",
        "+ 0 * self._radius",
    ),
    ("units without the radius of their balls", "mechanisms/loss.py", "error += 2 * float(", "error += 0 * float("),
    (
        "probabilities of any radius",
        "mechanisms/loss.py",
        "for s in shares) < _SURE_BITS",
        "for s in shares) < -(10**9)",
    ),
    (
        "one list: a value at the question counted",
        "mechanisms/loss.py",
        "arb.max(-(y - self._values[a]).expm1(), arb(0))",
        "arb(1)",
    ),
    ("one list: a sum of any few digits", "mechanisms/loss.py", "bool(found > 0) and not few", "True"),
    ("any table on a sample", "mechanisms/poisson_sampled.py", "mechanism.pmf != mechanism.pmf[::-1]", "False"),
    ("panels: the frequency forgotten", _PANELS, "across**2 / 2 + kappa * across * turn", "across**2 / 2"),
    ("panels: the rise between two points forgotten", _PANELS, "sizes[..., :-1] + rise", "sizes[..., :-1]"),
    ("panels: exact for polynomials of twice the degree", _PANELS, "(2 * POINTS - 1)", "(4 * POINTS - 1)"),
    ("panels: outputs below the first forgotten", _PANELS, "+ float(log_ndtr(first))", "+ 4 * float(log_ndtr(first))"),
    ("panels: upper moments a little too low", _PANELS, "return found + POWER_SLACK", "return found - POWER_SLACK"),
    (
        "a cut: the share of outputs below it forgotten",
        _BELOW,
        "log_power_upper(rho, panels) - less",
        "log_power_upper(rho, panels)",
    ),
    ("a cut: the way to the shifted line forgotten", _BELOW, "[along, up, [", "[along, up - 50, ["),
    ("a cut: a decay twice as fast", _BELOW, "falling = logs - omega * angles", "falling = logs - 2 * omega * angles"),
    ("a cut: steps that fall short forgotten", _CUTS, " + self._short_of(y) * scale", ""),
    ("a cut: outputs above it counted without Q", _CUTS, "(some - growth * other) * scale", "some * scale"),
    (
        "a cut: steps fall short a third as often",
        _CUTS,
        "return self.count * self.loss.beyond[1]",
        "return 0.3 * self.count * self.loss.beyond[1]",
    ),
    (
        "Skellam: terms beyond a table fall too fast",
        "mechanisms/bessel_table.py",
        ".lower()) * (1 - FORMULA_SLACK)",
        ".lower()) * 1.05",
    ),
    ("Skellam: the bend of probabilities halved", "mechanisms/bessel_table.py", "1 + FORMULA_SLACK)\n", "0.5)\n"),
    (
        "Skellam: a tilt does not slow the fall",
        "mechanisms/bessel_table.py",
        "max(z, 0.0) * self.bend",
        "0 * self.bend",
    ),
    ("Skellam: one term for all beyond", "mechanisms/bessel_table.py", " - math.log(-math.expm1(fall))", ""),
    (
        "Skellam: what a moment leaves out forgotten",
        "mechanisms/skellam.py",
        "math.fsum(np.exp(exponents[keep] - top)) + math.exp(log_left - top)",
        "math.fsum(np.exp(exponents[keep] - top)) * (1 - 1e-11)",
    ),
    (
        "Skellam: tilted weights off by a millionth",
        "mechanisms/skellam.py",
        "self._weights: Floats = weights / total",
        "self._weights: Floats = weights / total * (1 - 1e-6)",
    ),
    (
        "Skellam: a closed form without its last outputs",
        "mechanisms/skellam.py",
        "if bool(p <= factor * q):",
        "if bool(p <= factor * q * 1.01):",
    ),
    ("Skellam: a far moment without the mirror image", "mechanisms/skellam.py", ", math.log(2)]", ", -s / 2]"),
    ("the growth of the density forgotten", _RULE, "grown = y * y / 2", "grown = 0 * y"),
    ("the zero of f forgotten", _RULE, "grown + rho * np.log", "grown + 0 * np.log"),
    ("what the frequency adds below the real line forgotten", _RULE, "+ kappa * m * np.maximum", "+ 0 * np.maximum"),
    (
        "a strip twice as wide",
        _RULE,
        "- 2 * math.pi * float(c[best]) / step",
        "- 4 * math.pi * float(c[best]) / step",
    ),
    ("one term for all that the range leaves out", _RULE, "- math.log(-math.expm1(-r * step)) for", "for"),
    ("upper moments a little too low", _RULE, "min(upper + POWER_SLACK * (1 + size)", "min(upper - 1e-11 * (1 + size)"),
    ("convexity with a smaller exponent", _RULE, "rho * (rho - 1) / 2)", "rho * (rho - 1.01) / 2)"),
    ("a decay 1% too fast", _LOSS, "- omega * points.losses.imag", "- 1.01 * omega * points.losses.imag"),
    (
        "weights of a rule off by a billionth",
        "mechanisms/rule_weights.py",
        "term = (power * loss",
        "term = (1 + 1e-9) ** 0.5 * (power * loss",
    ),
    (
        "rounding of a plain sum forgotten",
        "mechanisms/rule_table.py",
        "(sizes @ self._reach) * kappa\n",
        "(sizes @ self._reach) * 0\n        size = 0 * size\n",
    ),
    (
        "the outputs of sampled discrete noise in the wrong direction",
        "mechanisms/gaussian_mixture_loss.py",
        "values: Floats = -found.values if self._backward else found.values",
        "values: Floats = found.values",
    ),
    (
        "the other direction counted half",
        "accounting/directions.py",
        "upper - nu * at + log_most",
        "upper - nu * at + log_most - 0.7",
    ),
    (
        "records sampled less often",
        "mechanisms/poisson_sampled.py",
        "math.comb(k, n) * q**n",
        "math.comb(k, n) * (q / 1) ** n * (n < 2)",
    ),
    (
        "outcomes without the record forgotten",
        "mechanisms/poisson_sampled.py",
        "if other.lost:",
        "if False:",
    ),
    (
        "the ends of a Laplace density counted half",
        "mechanisms/laplace.py",
        "(self._high + self._low) / max(omega",
        "0.5 * (self._high + self._low) / max(omega",
    ),
    (
        "a phase of Laplace noise without its error",
        "mechanisms/laplace.py",
        "sizes, _PHASES * PHASE_ERROR)",
        "sizes)",
    ),
    ("a Laplace peak twice as strong", "mechanisms/laplace.py", "strength = 2 * self._up", "strength = 4 * self._up"),
    (
        "a Laplace moment too low",
        "mechanisms/laplace.py",
        "for x in exponents) / 2) + POWER_SLACK * size",
        "for x in exponents) / 2) - POWER_SLACK * size",
    ),
    (
        "a label grows half as fast off the real line",
        _STEP,
        "y * y / (2 * self.width**2)",
        "y * y / (4 * self.width**2)",
    ),
    ("a label falls 5% faster", _STEP, ", 0.0) / self.width**2", ", 0.0) * 1.05 / self.width**2"),
    ("a label is not at most 1 where it does not fall", _RULE, "end = 0 if self.label", "end = -1 if self.label"),
    ("what a label weighs at the end of a range doubled", _RULE, "real[end] += self", "real[end] += 2 * self"),
    ("moments of labelled steps not divided by their share", _LOSS, " - self.log_share\n", "\n"),
    (
        "upper moments of labelled steps a little too low",
        _LOSS,
        "upper -= self._least_share if",
        "upper -= self._least_share + 1e-9 if",
    ),
    ("a large step a millionth less likely", _LARGE, "+ k * some", "+ k * (some - 1e-6)"),
    ("more large steps than are told apart forgotten", _LARGE, "+ len(logs) * some", "+ len(logs) * 2 * some"),
    (
        "terms that are not asked for left out",
        _LARGE,
        "high = float(upper.sum())",
        "high = float(upper[lower > 0].sum())",
    ),
    ("cheap bounds of terms a third", _LARGE, "+ constants - orders * y", "+ constants - orders * y - 4.0"),
    ("all other mechanisms forgotten in cheap bounds", _LARGE, "* small + rest +", "* small - 5 * rest +"),
    (
        "the decay beyond the last node counted twice",
        "engine/line/plan.py",
        "+ self.log_decay(omega)",
        "+ 2 * self.log_decay(omega)",
    ),
]
