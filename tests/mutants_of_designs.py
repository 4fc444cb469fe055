"""The mutants of what a design can say: neighbours, noise, budgets (see mutant_table)."""

from __future__ import annotations

TESTS = {
    "numbers.py": ["tests/ground/test_numbers.py"],
    "mechanisms/discrete_laplace.py": ["tests/mechanisms/test_mechanisms.py"],
    "mechanisms/randomized_response.py": ["tests/mechanisms/test_mechanisms.py"],
    "census/cell_noise.py": ["tests/census/test_unusual_designs.py", "-k", "mechanisms or laplace_scale"],
    "census/releases.py": ["tests/census/test_unusual_designs.py", "-k", "mechanisms or neighbours or rho or checked"],
    "census/savings.py": ["tests/census/test_unusual_designs.py", "-k", "one_level"],
    "census/margins.py": ["tests/census/test_margins.py"],
}

MUTANTS = [
    (
        "a root rounded down",
        "numbers.py",
        "return math.isqrt(-(-value.numerator // value.denominator) - 1) + 1",
        "return math.isqrt(value.numerator // value.denominator)",
    ),
    (
        "a Laplace scale below what was asked for",
        "mechanisms/discrete_laplace.py",
        "DiscreteLaplace(root_up(self.scale**2 * by), self.sensitivity)",
        "DiscreteLaplace(root_up(self.scale**2 * by) * Fraction(99, 100), self.sensitivity)",
    ),
    (
        "randomized response with less noise than asked for",
        "mechanisms/randomized_response.py",
        "w = by * q * (1 - q) / (1 - k * q) ** 2",
        "w = by * q * (1 - q) / (1 - k * q)",
    ),
    (
        "sensitivity of Laplace noise dropped",
        "census/cell_noise.py",
        "root_up(1 / rho), self.sensitivity)",
        "root_up(1 / rho))",
    ),
    ("sensitivity of Gaussian noise dropped", "census/cell_noise.py", "(1 / rho, self.sensitivity)", "(1 / rho)"),
    ("cells that a record touches dropped", "census/releases.py", "+= count * noise.cells", "+= count"),
    ("rho of a pair that is not the worst", "census/releases.py", "return times * max(", "return times * min("),
    (
        "noise checked on the full path only",
        "census/releases.py",
        "for factor in {Fraction(1), most[level]}:",
        "for factor in {Fraction(1)}:",
    ),
    ("one path of a level's pair", "census/savings.py", "(2 if release.relation == REPLACE else 1)", "1"),
    (
        "noise of a level's queries dropped",
        "census/savings.py",
        "{level: release.table[level]}, release.noise)",
        "{level: release.table[level]})",
    ),
    (
        "epsilon at delta 0 of the first pair only",
        "census/overall.py",
        "return max(lows), max(highs)",
        "return lows[-1], highs[-1]",
    ),
    (
        "a Laplace margin too short",
        "census/margins.py",
        "max(math.ceil(enough) - 1, 0)",
        "max(math.ceil(enough) - 2, 0)",
    ),
]
