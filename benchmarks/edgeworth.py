"""The numbers of docs/theory/edgeworth.md.

make theory                                   all tables, and docs/images/edgeworth.png and distribution.png
python benchmarks/edgeworth.py moments        one of: moments errors claims slopes gap pairs figures
"""

from __future__ import annotations

import importlib.util
import math
import random
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from flint import arb

import exactdp
from exactdp import Composition, DiscreteGaussian
from exactdp.apps.figures.theory import TWO_MECHANISMS, figure_convolution, figure_edgeworth, fitted_slope
from exactdp.balls import precision
from exactdp.theory.edgeworth_bound import EdgeworthBound
from exactdp.theory.gaussian_gap.gap import GaussianGap
from exactdp.theory.local_error import local_errors
from exactdp.theory.published_inequalities import check_claims

NOISES = ("0.1", "0.2", "0.4", "1", "2", "4", "10")
PRINTED = ("72.21", "4.12", "0.19", "8.34e-6", "8.92e-14", "2.55e-30", "< 1e-50")
FOLDS = (1, 2, 5, 10, 40, 100, 400)
ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"

_SPEC = importlib.util.spec_from_file_location("gap_oracle", ROOT / "tests" / "gap_oracle.py")
assert _SPEC is not None
assert _SPEC.loader is not None
gap_oracle = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(gap_oracle)


def moments() -> None:
    print(
        "| sigma2 | lambda_4, printed | lambda_4, certified digits | lambda_6 | K_3 |\n| --- | --- | --- | --- | --- |"
    )
    for noise, printed in zip(NOISES, PRINTED, strict=True):
        fourth, sixth = (exactdp.theory.standardized_cumulant(noise, r, digits=12) for r in (4, 6))
        third = exactdp.theory.standardized_moment(noise, 3, digits=12)
        print(f"| {noise} | {printed} | {fourth.lower:.9e} | {sixth.lower:.6e} | {third.lower:.9f} |")
    release = exactdp.census.release("dhc-persons-us")
    noises = {m.sigma2 for pair in release.pairs for m in release.pair(*pair).discrete_gaussians}
    finest, coarsest = max(noises), min(noises)
    for name, s in (("coarsest", coarsest), ("finest", finest)):
        found = exactdp.theory.standardized_cumulant(s, 4, digits=5)
        print(f"\nDHC persons, {name} noise: sigma2 = {float(s):.4f}, lambda_4 = {found.lower:.3e}")


def errors() -> None:
    print("| sigma2 | m | normal density | Edgeworth | sharper bound | published, corrected | best c | U^m |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for noise in NOISES:
        for m in FOLDS:
            found, bound = local_errors(noise, m), EdgeworthBound(noise, m)
            best = bound.best()
            c = f"{float(best.cut.mid()) / math.sqrt(math.log(m)):.3f}" if m > 1 else "-"
            sizes = " | ".join(
                f"{float(b.mid()):.3e}" for b in (found.normal, found.edgeworth, bound.sharp(), best.total)
            )
            print(f"| {noise} | {m} | {sizes} | {c} | {float(best.u.mid()):.3f} |")


def claims() -> None:
    smallest: dict[str, float] = {}
    failed = checked = 0
    for noise in NOISES:
        for m in FOLDS:
            bound, found = EdgeworthBound(noise, m), local_errors(noise, m)
            with precision(128):
                most = min(bound.largest_cut, float((arb.pi() * bound.spread).mid()))
            for share in (0.1, 0.5, 0.95):
                for claim in check_claims(bound, arb(most * share), found):
                    checked += 1
                    failed += not claim.holds
                    smallest[claim.name] = min(smallest.get(claim.name, math.inf), claim.margin)
    print(f"{checked} checks, {failed} failed; smallest quotient of right by left side:\n")
    for name, margin in smallest.items():
        print(f"| {name} | {margin:.4g} |")


def slopes() -> None:
    folds, far = (1600, 3200, 6400), (100_000, 300_000, 1_000_000)
    for noise in ("0.2", "0.4", "1"):
        found = [local_errors(noise, m) for m in folds]
        normal, edgeworth = (
            np.array([float(getattr(e, which).mid()) for e in found]) for which in ("normal", "edgeworth")
        )
        sharp = np.array([float(EdgeworthBound(noise, m).sharp().mid()) for m in folds])
        published = np.array([float(EdgeworthBound(noise, m).best().total.mid()) for m in far])
        texts = [f"{fitted_slope(folds, v):.3f}" for v in (normal, edgeworth, sharp)]
        print(f"sigma2 = {noise}: normal {texts[0]}, Edgeworth {texts[1]}, sharper bound {texts[2]} (m = 1600 ... 6400), "
              f"published bound {fitted_slope(far, published):.3f} (m = 1e5 ... 1e6)")  # fmt: skip


class _Tally:
    """Violations, ratios to the true gap where that is known, sides, and seconds."""

    def __init__(self) -> None:
        self.asked = self.violations = self.sides = 0
        self.ratios: list[float] = []
        self.prepare: list[float] = []
        self.answer: list[float] = []

    def look(self, c: Composition, epsilons: list[Fraction]) -> None:
        start = time.perf_counter()
        gap = GaussianGap(c)
        gap.at(epsilons[0])
        self.prepare.append(time.perf_counter() - start)
        for epsilon in epsilons:
            start = time.perf_counter()
            found = gap.at(epsilon)
            self.answer.append(time.perf_counter() - start)
            low, high = gap_oracle.truth(c, epsilon)
            self.asked += 1
            self.violations += not (low <= found.upper and found.lower <= high)
            self.sides += found.side != "unknown"
            if min(abs(low), abs(high)) > 5 * (high - low):
                self.ratios.append(found.size / min(abs(low), abs(high)))

    def show(self) -> None:
        ratios = sorted(self.ratios)
        shares = ", ".join(f"{sum(r <= k for r in ratios) / len(ratios):.1%} within {k}" for k in (1.1, 3, 10, 100))
        print(
            f"{len(self.prepare)} compositions, {self.asked} questions, {self.violations} violations; side proved in {self.sides}"
        )
        print(
            f"bound / true gap, where the true gap is known ({len(ratios)}): median {ratios[len(ratios) // 2]:.3f}; {shares}"
        )
        prepare, answer = 1e3 * np.array(self.prepare), 1e6 * np.array(self.answer)
        median, most = float(np.median(prepare)), float(prepare.max())
        print(f"to prepare: median {median:.1f} ms, 95% {np.quantile(prepare, 0.95):.0f} ms, most {most:.0f} ms")
        print(f"one question: median {np.median(answer):.0f} microseconds")


def gap() -> None:
    rng, tally = random.Random(1), _Tally()
    for _ in range(1000):
        c = gap_oracle.some_composition(rng)
        epsilons = [Fraction(c.mu**2 / 2 + z * c.mu) for z in (rng.uniform(-1, 3), rng.uniform(0, 8))]
        tally.look(c, [max(e.limit_denominator(rng.choice([1, 4, 10**6])), Fraction(0)) for e in epsilons])
    tally.show()


def pairs() -> None:
    release, tally = exactdp.census.release("dhc-persons-us"), _Tally()
    for pair in sorted(release.pairs):
        tally.look(release.pair(*pair), [Fraction("24.00003"), Fraction("20.123")])
    tally.show()


def figures() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure_edgeworth().savefig(IMAGES / "edgeworth.png", dpi=120, metadata={"Software": None})
    shown = {
        "Two mechanisms": TWO_MECHANISMS,
        "P.L. 94-171, persons": exactdp.census.release("pl94-persons-us").pair(1, 1),
        r"$\sigma$ = 0.61 (3) and 0.77 (2)": 3 * DiscreteGaussian(sigma=0.61) + 2 * DiscreteGaussian(sigma=0.77),
    }
    figure_convolution(shown).savefig(IMAGES / "distribution.png", dpi=120, metadata={"Software": None})
    print(f"{IMAGES.name}: edgeworth.png, distribution.png")


TABLES: dict[str, Callable[[], None]] = {f.__name__: f for f in (moments, errors, claims, slopes, gap, pairs, figures)}

if __name__ == "__main__":
    for name in sys.argv[1:] or TABLES:
        print(f"\n## {name}\n")
        TABLES[name]()
