"""Mutation check: weaken or drop one bound at a time in a copy of the package, and see that some test fails.

    make mutants
    python tests/mutants.py census/ pairs     only those in files whose names contain one of these
    python tests/mutants.py -j 4              four at a time; by default as many as there are cores

A mutant that survives is an error. The tests run are those that own the bounds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = {
    "engine/family/nodes.py": ["tests/engine/test_family.py"],
    "engine/family/contours.py": ["tests/engine/test_family.py"],
    "accounting/pairs.py": ["tests/engine/test_family.py"],
    "accounting/enclosures.py": ["tests/accounting/test_enclosures.py", "-m", "not soak"],
    "arithmetic_state.py": ["tests/ground/test_arithmetic_state.py"],
    "doubles.py": ["tests/ground/test_doubles.py"],
    "brackets.py": [
        "tests/ground/test_brackets.py",
        "tests/accounting/test_wide_answers.py",
        "tests/accounting/test_enclosures.py",
        "tests/accounting/test_composition.py",
        "-m",
        "not soak",
    ],
    "census/overall.py": ["tests/census/test_study.py", "-k", "envelope or overall"],
    "guarantees/calibration.py": ["tests/census/test_savings.py", "tests/guarantees/test_calibration.py"],
    "interop/dp_accounting.py": ["tests/interop/test_new_events.py"],
    "mechanisms/loss.py": ["tests/mechanisms/test_mechanisms.py"],
    "guarantees/tightest_mu.py": ["tests/guarantees/test_tightest_mu.py"],
    "guarantees/near_gaussian.py": ["tests/guarantees/test_tightest_mu.py"],
    "engine/sieve/reduction.py": ["tests/engine/test_reduction.py"],
    "census/screening.py": ["tests/census/test_screening.py"],
    "census/journal.py": ["tests/census/test_journal.py"],
    "census/pair_results.py": ["tests/census/test_journal.py"],
    "census/workers.py": ["tests/census/test_runs.py", "-k", "other_code and cores"],
    "theory/gaussian_gap/gap.py": ["tests/theory/test_gaussian_gap.py"],
    "theory/gaussian_gap/central_zone.py": ["tests/theory/test_gaussian_gap.py"],
    "theory/gaussian_gap/far_peaks.py": ["tests/theory/test_gaussian_gap.py"],
    "theory/edgeworth_bound.py": ["tests/theory/test_theory.py"],
    "theory/local_error.py": ["tests/theory/test_theory.py"],
    "theory/moments.py": ["tests/theory/test_theory.py"],
    **{
        f"{name}.py": [
            "tests/engine/test_line_methods.py",
            "tests/accounting/test_any_composition.py",
            "tests/accounting/test_closed_forms.py",
        ]
        for name in (
            "engine/line/plan",
            "engine/line/float64",
            "engine/sieve/fixed_point",
            "engine/line/enumeration",
            "engine/line/conditioning",
            "accounting/directions",
            "accounting/tradeoff_dual",
        )
    },
}
OTHERS = ["tests/engine/test_bounds.py"]

MUTANTS = [
    (
        "flushing to zero not undone",
        "arithmetic_state.py",
        "    before = _to_default()\n",
        "    yield\n    return\n    before = None\n",
    ),
    ("rounding not looked at", "arithmetic_state.py", " and _one + _bit == _one == _one - _bit", ""),
    ("NumPy's error state left as it is", "arithmetic_state.py", 'under="ignore", invalid="warn"', ""),
    (
        "the decimal context left as it is",
        "arithmetic_state.py",
        "decimal.localcontext(_DECIMALS)",
        "decimal.localcontext()",
    ),
    ("a subnormal lower end rounded to nearest", "doubles.py", "(1 - slack) - TINY", "(1 - slack)"),
    ("an upper end of 0 for what underflows", "doubles.py", "(1 + slack) + TINY", "(1 + slack)"),
    (
        "doubling past the largest value",
        "guarantees/calibration.py",
        "before, m, move = m, min(m + move, largest), 2 * move",
        "before, m, move = m, (m + move if m + move <= largest else m), 2 * move",
    ),
    (
        "a tiny delta met by doubles",
        "guarantees/calibration.py",
        "log_delta_bounds(self.epsilon)[1] <= self._log_delta - self._log_error",
        "log_delta_bounds(self.epsilon)[1] <= self._log_delta + 1",
    ),
    ("range of the exponential mechanism too short", "interop/dp_accounting.py", "epsilon**2 / 8", "epsilon**2 / 10"),
    (
        "events that nothing covers forgotten",
        "interop/dp_accounting.py",
        "bool(share.covers) or not (share.rho or share.xi)",
        "True",
    ),
    (
        "far peaks of members dropped",
        "census/screening.py",
        "self.grid.second(lam, 0.0) + self.far",
        "self.grid.second(lam, 0.0)",
    ),
    (
        "far peaks dropped",
        "theory/gaussian_gap/gap.py",
        "float(grid.second(lam, images)) + self.far.total",
        "float(grid.second(lam, images))",
    ),
    (
        "second order dropped",
        "theory/gaussian_gap/central_zone.py",
        "terms.linear * gauss + bend * terms.total",
        "terms.linear * gauss",
    ),
    (
        "the tail's growing part dropped",
        "theory/gaussian_gap/central_zone.py",
        "tail += 4 * g.count",
        "tail += 0 * g.count",
    ),
    ("images dropped", "theory/gaussian_gap/central_zone.py", "own + images * np.sum(", "own + 0 * np.sum("),
    ("kink half as large", "theory/gaussian_gap/central_zone.py", "return 2 * (product", "return (product"),
    (
        "cells not widened",
        "theory/gaussian_gap/far_peaks.py",
        "math.sqrt(spread / 2) * (1 + SUM_SLACK)",
        "math.sqrt(spread / 2) * 0",
    ),
    ("extra peaks dropped", "theory/gaussian_gap/far_peaks.py", "log_size = log_extra - root", "log_size = -root"),
    ("translates dropped", "theory/gaussian_gap/far_peaks.py", "if half else omega**-2.0", "if False else omega**-2.0"),
    (
        "the lattice forgotten",
        "theory/gaussian_gap/gap.py",
        "return smooth + kink * density, error",
        "return smooth, error",
    ),
    ("a Faddeeva slack too small", "theory/gaussian_gap/gap.py", "FADDEEVA_SLACK = 1e-12", "FADDEEVA_SLACK = 1e-18"),
    (
        "the third term 1% too small",
        "theory/edgeworth_bound.py",
        "slope * 8 * self._moments[3]",
        "slope * 7.9 * self._moments[3]",
    ),
    ("Lambda_6 without its square", "theory/edgeworth_bound.py", "inner * inner * arb(0.5)", "inner * arb(0.5)"),
    ("no e^G in the sharper bound", "theory/edgeworth_bound.py", "(x * x / 2 + rest.expm1())", "(x * x / 2)"),
    (
        "the sharper bound without what is far",
        "theory/edgeworth_bound.py",
        "return (near + far + self",
        "return (near + self",
    ),
    (
        "aliasing weakened",
        "engine/lattice/plan.py",
        "exponents + slack - math.log(",
        "exponents + slack - 0.0101 - math.log(",
    ),
    ("aliasing below dropped", "engine/lattice/plan.py", "np.logaddexp(sides[0], sides[1])", "sides[1]"),
    ("aliasing above dropped", "engine/lattice/plan.py", "np.logaddexp(sides[0], sides[1])", "sides[0]"),
    ("aliasing not subtracted, float64", "engine/lattice/float64.py", "self.value - self.aliased - ", "self.value - "),
    (
        "aliasing not subtracted, balls",
        "engine/lattice/ball.py",
        "value - aliased / 2 + arb(0, (aliased / 2 + dropped)",
        "value + arb(0, (dropped)",
    ),
    (
        "dropped nodes weakened",
        "engine/sieve/bands.py",
        "- budgets), log_beyond)) + SUM_SLACK",
        "- budgets), log_beyond)) - 0.0101",
    ),
    ("dropped nodes left out, float64", "engine/lattice/float64.py", "self.value + self.dropped +", "self.value +"),
    (
        "dropped nodes left out below, float64",
        "engine/lattice/float64.py",
        "self.aliased - self.dropped -",
        "self.aliased -",
    ),
    (
        "dropped nodes left out, balls",
        "engine/lattice/ball.py",
        "(aliased / 2 + dropped).upper()",
        "(aliased / 2).upper()",
    ),
    ("trimmed nodes not charged", "engine/lattice/plan.py", "log_dropped=total", "log_dropped=plan.log_dropped"),
    (
        "trimmed nodes charged 1% less",
        "engine/lattice/plan.py",
        "(math.log(2 / plan.nodes) + SUM_SLACK)",
        "(math.log(2 / plan.nodes) - 0.0101)",
    ),
    (
        "parabola too steep",
        "mechanisms/theta.py",
        "(s / 2 - math.log(2) / math.pi**2)",
        "(s / 2 - 0.99 * math.log(2) / math.pi**2)",
    ),
    (
        "parabola without slack",
        "mechanisms/theta.py",
        "options.append(((s / 2 - math.log(2) / math.pi**2) * (1 - FORMULA_SLACK), own))",
        "options.append(((s / 2 - math.log(2) / math.pi**2) * (1 - FORMULA_SLACK), 0.0))",
    ),
    (
        "second parabola too steep",
        "mechanisms/theta.py",
        "/ math.pi**2 * (1 - FORMULA_SLACK), 0.0))",
        "/ math.pi**2 * 2.6, 0.0))",
    ),
    ("theta truncation weakened", "mechanisms/theta.py", "LATER_TERMS * count", "0.9899 * count"),
    ("theta truncation left out", "engine/lattice/moments.py", "error += float(np.sum(left_out[skip]))", "pass"),
    (
        "theta truncation weakened, balls",
        "engine/lattice/ball.py",
        "math.log(LATER_TERMS * g.count)",
        "math.log(0.9899 * g.count)",
    ),
    (
        "theta truncation left out, balls",
        "engine/lattice/ball.py",
        "return factor * acb(1 + error, error)",
        "return factor",
    ),
    ("rounding left out", "engine/lattice/float64.py", ") * (1 + ACCOUNT_SLACK)", ") * 0.0"),
    ("rounding weakened", "engine/lattice/float64.py", ") * (1 + ACCOUNT_SLACK)", ") * 0.99"),
    ("rounding of exponents weakened", "engine/lattice/moments.py", "(groups + 2) * UNIT", "(groups - 2) * UNIT"),
    ("rounding constant too small", "engine/lattice/float64.py", "TERM_UNITS = 160", "TERM_UNITS = 120"),
    ("mixture tail weakened", "engine/lattice/conditioning.py", "beyond * (1 + REMAINDER_SLACK)", "beyond * 0.99"),
    (
        "mixture tail dropped",
        "engine/lattice/conditioning.py",
        "math.exp(above - scale) + math.exp(below - scale)",
        "math.exp(above - scale)",
    ),
    (
        "a node within budget lost",
        "engine/sieve/windows.py",
        "penalty * (1 - SUM_SLACK) <= bands.at(k)",
        "penalty * 1.3 <= bands.at(k)",
    ),
    (
        "members sieved at less than half the budget",
        "engine/family/nodes.py",
        "tuple(2 * s for s in",
        "tuple(2.3 * s for s in",
    ),
    (
        "partners tested too strictly",
        "engine/family/nodes.py",
        "penalty * (1 - SUM_SLACK) <= room[here]",
        "penalty * 1.3 <= room[here]",
    ),
    (
        "translates on one side only",
        "engine/family/nodes.py",
        "shifts + own, shifts - own",
        "shifts + own, shifts + own",
    ),
    ("dropped nodes of pairs weakened", "engine/family/nodes.py", "corners) + math.log(2)", "corners) - 12"),
    (
        "a member with itself counted once",
        "engine/family/contours.py",
        "second[places], 2.0, 1.0)",
        "second[places], 1.0, 1.0)",
    ),
    (
        "Theta of another pair",
        "engine/family/contours.py",
        "low = low + (theta[pairs] -",
        "low = low + 0 * (theta[pairs] -",
    ),
    (
        "errors of pairs left out",
        "engine/family/contours.py",
        "error_a, error_b, count)",
        "0 * error_a, 0 * error_b, 0 * count - 1e9)",
    ),
    (
        "epsilon proved at one end only",
        "accounting/pairs.py",
        "too_large & small_enough",
        "too_large | small_enough",
    ),
    (
        "the best pair instead of the worst",
        "census/overall.py",
        "point.rest.lower_floats().min())\n            return",
        "point.rest.lower_floats().max())\n            return",
    ),
    (
        "a chord through lowered vertices",
        "census/overall.py",
        "exp_above(beta.high, CHAIN_SLACK)",
        "exp_above(beta.low, CHAIN_SLACK) * (1 - 1e-9)",
    ),
    ("any question's line", "census/journal.py", 'if record["question"] != self.question:', "if False:"),
    ("any code's line", "census/journal.py", 'others := other_versions(record["code"])', 'others := ""'),
    ("ends in any order", "census/pair_results.py", "if not (low <= high and inside):", "if not inside:"),
    ("probabilities of any size", "census/pair_results.py", "low >= 0 and high <= 1", "True"),
    ("any code's result", "census/workers.py", "others := other_versions(self.code)", 'others := ""'),
    ("a suspect left out", "census/overall.py", "if bounds[p] > limit}", "if bounds[p] > limit + 1e-3}"),
    (
        "smoothing not charged",
        "engine/line/float64.py",
        "lower = lower - self.smoothed",
        "lower = lower - 0.45 * self.smoothed",
    ),
    (
        "smoothing not charged on the other side",
        "engine/line/float64.py",
        "upper = upper + self.smoothed",
        "upper = upper",
    ),
    ("aliasing on the line not charged", "engine/line/float64.py", "self.value - self.aliased - ", "self.value - "),
    (
        "dropped on the line not charged",
        "engine/line/float64.py",
        "upper = self.value + self.dropped +",
        "upper = self.value +",
    ),
    (
        "an alias side left out",
        "engine/line/plan.py",
        "float(np.logaddexp(self._side(-1, period, y, enough - 0.7), ",
        "float(max(-1e9, ",
    ),
    ("phases off by 2^-40", "engine/sieve/fixed_point.py", "(2 * math.pi / 2**64)", "(2 * math.pi / 2**64) + 2.0**-40"),
    (
        "values listed: rounding not charged",
        "engine/line/enumeration.py",
        "upper = (value + wrong +",
        "upper = (value + 1e-3 * wrong +",
    ),
    (
        "values listed: a value too many",
        "engine/line/enumeration.py",
        'first = np.searchsorted(self._values, starts, side="right")',
        'first = np.searchsorted(self._values, starts, side="right") + 1',
    ),
    (
        "coarse values left out",
        "engine/line/conditioning.py",
        "doubt.sum() <= _SETTLED * lower.sum()",
        "doubt.sum() <= 1e-3 * lower.sum()",
    ),
    (
        "coarse cheap bounds too good",
        "engine/line/conditioning.py",
        "np.log(-np.expm1(other)) - FEW_SLACK, own",
        "np.log(-np.expm1(3.0 * other)) - 1e-15, own",
    ),
    (
        "infinite loss left out",
        "accounting/directions.py",
        "_plus(_times(finite.delta, kept), lost)",
        "_times(finite.delta, kept)",
    ),
    (
        "one direction only",
        "accounting/directions.py",
        "worst = _worse(worst, other.point(sizes))",
        "other.point(sizes)",
    ),
    (
        "epsilon of one direction only",
        "accounting/directions.py",
        "[d.epsilon(delta) for d in self._directions]",
        "[self._directions[0].epsilon(delta)]",
    ),
    ("the mirror in balls without its shift", "brackets.py", "-ball(epsilon).expm1() + ball", "ball"),
    (
        "the mirror in brackets without its shift",
        "brackets.py",
        "(away + shrink * point.delta.upper_floats())",
        "(shrink * point.delta.upper_floats())",
    ),
    ("digits promised too early", "accounting/enclosures.py", "bits > (digits + 1) *", "bits > (digits - 2) *"),
    ("beta from too few chords", "accounting/tradeoff_dual.py", "return max(ends)", "return min(ends)"),
    (
        "reduction: radius too small",
        "engine/sieve/reduction.py",
        "budget * (1 + FORMULA_SLACK), allowance",
        "budget * 0.98, allowance",
    ),
    ("smoothing 1% less", "engine/line/float64.py", "smoothed = (1 + tau) *", "smoothed = 0.99 * (1 + tau) *"),
    (
        "aliasing on the line 1% less",
        "engine/line/plan.py",
        "best = min(best, exponent +",
        "best = min(best, exponent - 0.0101 +",
    ),
    ("beyond the last node 1% less", "engine/line/plan.py", "(2 * math.pi**2 * last)", "(2.02 * math.pi**2 * last)"),
    ("nodes of a band 1% fewer", "engine/line/plan.py", "math.log(2 * (final", "math.log(1.98 * (final"),
    ("a peak 1% too strong", "mechanisms/loss.py", "strength = 2 * total", "strength = 2.02 * total"),
    (
        "one step too little noise",
        "guarantees/calibration.py",
        "return Fraction(high, grid)",
        "return Fraction(high - 1, grid)",
    ),
    (
        "mu proved on too few intervals",
        "guarantees/tightest_mu.py",
        "                if needed[i] > goal and pieces <= room and _is_long(*waiting[i]):",
        "                if False:",
    ),
    (
        "a chord checked at one end",
        "guarantees/tightest_mu.py",
        "            for e in pair:\n                tangent",
        "            for e in pair[:1]:\n                tangent",
    ),
    (
        "the distance from the Gaussian 1% smaller",
        "guarantees/near_gaussian.py",
        "excess = (2 * arb.pi()",
        "excess = (1.98 * arb.pi()",
    ),
    (
        "1% more room above the Gaussian",
        "guarantees/near_gaussian.py",
        "return best.lower()",
        "return (1.01 * best).lower()",
    ),
    (
        "no mu-GDP claimed 1% too early",
        "guarantees/tightest_mu.py",
        "bool(mu * mu < 2 * composition.rho)",
        "bool(mu * mu < 2.02 * composition.rho)",
    ),
    (
        "of two brackets the ends further in, where they exclude each other too",
        "brackets.py",
        "usable[0] & (low > lower) & (low <= upper)",
        "usable[0] & (low > lower)",
    ),
    (
        "tilts off the integers for nothing",
        "guarantees/near_gaussian.py",
        "logs.expm1().upper()",
        "arb(0)",
    ),
    (
        "one end of an interval of tilts",
        "guarantees/near_gaussian.py",
        "ends[0].max(ends[1])",
        "ends[0].min(ends[1])",
    ),
]


def survives(_: str, file: str, old: str, new: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src")
        target = Path(folder) / "src" / "exactdp" / file
        target.write_text(target.read_text().replace(old, new))
        environment = {
            **os.environ,
            "PYTHONPATH": f"{folder}/src{os.pathsep}{ROOT / 'tests'}",
            "PYTHONDONTWRITEBYTECODE": "1",
            **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")},
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--no-header",
            "-p",
            "no:cacheprovider",
            *TESTS.get(file, OTHERS),
        ]
        code = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False).returncode
        if code in (4, 5):  # pytest's own: no such file, no test
            raise RuntimeError(f"No test was run for {file}: {' '.join(TESTS.get(file, OTHERS))}. Update TESTS.")
        return code == 0


def main() -> None:
    parser = argparse.ArgumentParser(description="Weaken one bound at a time and see that some test fails.")
    parser.add_argument("parts", nargs="*", default=[""], help="only files whose names contain one of these")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    asked = parser.parse_args()
    chosen = [m for m in MUTANTS if any(part in m[1] for part in asked.parts)]
    for name, file, old, _ in chosen:
        if (ROOT / "src" / "exactdp" / file).read_text().count(old) != 1:
            sys.exit(f"The mutant '{name}' does not apply: {file} has changed. Update tests/mutants.py.")
    alive = []
    with ThreadPoolExecutor(max(asked.jobs, 1)) as pool:
        running = {pool.submit(survives, *mutant): mutant[0] for mutant in chosen}
        for done in as_completed(running):
            print(f"{'SURVIVES' if done.result() else 'killed  '}  {running[done]}", flush=True)
            alive += [running[done]] * done.result()
    print(f"{len(chosen) - len(alive)} of {len(chosen)} mutants killed")
    sys.exit(1 if alive else 0)


if __name__ == "__main__":
    main()
