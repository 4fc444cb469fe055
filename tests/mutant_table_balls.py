"""The mutants of sums in two arithmetics: errors not charged, nodes counted twice or not at all, doubles that underflow."""

from __future__ import annotations

TESTS = {
    "engine/lattice/graded.py": ["tests/engine/test_graded.py"],
    "engine/line/ball.py": ["tests/engine/test_line_balls.py"],
    "engine/lattice/ball.py": ["tests/engine/test_graded.py", "tests/engine/test_bounds.py"],
    "engine/lattice/ball_terms.py": ["tests/engine/test_graded.py", "tests/engine/test_bounds.py"],
}

MUTANTS = [
    ("smoothing not charged to delta in balls", "engine/line/ball.py", "lower -= smoothed", "lower -= 0"),
    ("smoothing not charged to 1 - delta in balls", "engine/line/ball.py", "upper += smoothed", "upper += 0"),
    (
        "aliases not charged on the line in balls",
        "engine/line/ball.py",
        "lower, upper = value - aliased - dropped,",
        "lower, upper = value - dropped,",
    ),
    (
        "dropped nodes not charged on the line in balls",
        "engine/line/ball.py",
        "lower, upper = value - aliased - dropped, value + dropped",
        "lower, upper = value - aliased, value",
    ),
    (
        "float64's error of small nodes left out",
        "engine/lattice/graded.py",
        "float(radius) * (1 + ACCOUNT_SLACK)",
        "0.0",
    ),
    (
        "float64's error of small nodes weakened",
        "engine/lattice/graded.py",
        "float(radius) * (1 + ACCOUNT_SLACK)",
        "float(radius) * 0.99",
    ),
    ("terms that underflow left to float64", "engine/lattice/graded.py", "SMALLEST = 1e-250", "SMALLEST = 0.0"),
    ("underflow below a large transform", "engine/lattice/graded.py", "at_tilt > _LARGEST_TRANSFORM", "False"),
    (
        "underflow of powers of q",
        "engine/lattice/graded.py",
        "abs(plan.lam) * plan.lattice.h > _LARGEST_DRIFT",
        "False",
    ),
    ("small nodes summed twice", "engine/lattice/graded.py", "self.plan.kept[~self._is_small]", "self.plan.kept"),
    (
        "small nodes forgotten",
        "engine/lattice/graded.py",
        "return self._large.evaluate(thresholds, beside)",
        "return self._large.evaluate(thresholds)",
    ),
    ("rounding of terms left out of small nodes", "engine/lattice/float64.py", "return self.error_a +", "return"),
    ("rounding of sums left out of small nodes", "engine/lattice/float64.py", "self.size_a * self._summing", "0.0"),
    (
        "a row's phase one node off",
        "engine/lattice/ball.py",
        "for k in rows.starts]",
        "for k in (s + 1 for s in rows.starts)]",
    ),
    (
        "Poisson's series cut too early",
        "engine/lattice/ball_terms.py",
        "* count > 1 - self._log_negligible:",
        "* count > 1 - 0.5 * self._log_negligible:",
    ),
    (
        "theta left out by the first node of a run",
        "engine/lattice/ball_terms.py",
        "per_residue * max(abs(r), abs(last))",
        "per_residue * abs(r)",
    ),
]
