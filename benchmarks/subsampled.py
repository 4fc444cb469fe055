"""DP-SGD: certified bounds beside dp_accounting's default accountant, case by case.

    python benchmarks/subsampled.py             a dozen cases, some minutes
    python benchmarks/subsampled.py --all       noise 0.5 to 4, rate 1e-4 to 0.1, 1 to 100,000 steps, delta 1e-3 to 1e-100

Each case: sigma, rate, steps and the epsilon at which delta is about the stated one. CPU seconds of one question asked from
nothing, the relative width of our bounds, and how far the peer's delta is from them. Needs the extra `interop`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from fractions import Fraction

from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant

from exactdp import Composition, Gaussian, PoissonSampled
from exactdp.numerals import about

FEW = [
    ("1", "0.01", 1, "1e-5"),
    ("1", "0.01", 10, "1e-10"),
    ("0.5", "0.001", 100, "1e-6"),
    ("1", "0.01", 100, "1e-6"),
    ("1", "0.01", 1000, "1e-6"),
    ("2", "0.01", 1000, "1e-10"),
    ("3", "0.01", 1000, "1e-20"),
    ("2", "0.1", 1000, "1e-100"),
    ("4", "0.001", 10_000, "1e-10"),
    ("1", "0.001", 10_000, "1e-6"),
    ("0.8", "0.004", 30_000, "1e-5"),
    ("2", "0.01", 100_000, "1e-10"),
    ("4", "0.1", 100_000, "1e-30"),
]


def every() -> Iterator[tuple[str, str, int, str]]:
    """The grid of all cases."""
    for steps in (1, 10, 100, 1000, 10_000, 100_000):
        for sigma in ("0.5", "1", "2", "4"):
            for rate in ("0.0001", "0.001", "0.01", "0.1"):
                for delta in ("1e-3", "1e-10", "1e-30", "1e-100"):
                    yield sigma, rate, steps, delta


def composition(sigma: str, rate: str, steps: int) -> Composition:
    """So many steps, from nothing."""
    return PoissonSampled(Gaussian(sigma=sigma), rate) * steps


def ours(sigma: str, rate: str, steps: int, epsilon: Fraction) -> tuple[float, float]:
    """Certified bounds of delta."""
    low, high = composition(sigma, rate, steps).delta_bounds(epsilon)
    return float(low), float(high)


def theirs(sigma: str, rate: str, steps: int, epsilon: float) -> float:
    """dp_accounting's default: its PLD accountant with its default grid."""
    accountant = PLDAccountant()
    event = dp_event.PoissonSampledDpEvent(float(rate), dp_event.GaussianDpEvent(float(sigma)))
    accountant.compose(event, steps)
    return float(accountant.get_delta(epsilon))


def main() -> None:
    """Print one row for each case, and the cases that miss what is promised."""
    parser = argparse.ArgumentParser(description="DP-SGD cases beside dp_accounting.")
    parser.add_argument("--all", action="store_true", help="the whole grid")
    parser.add_argument("--alone", action="store_true", help="without the peer")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("sigma   rate    steps  epsilon      delta        width    ours   theirs  their delta, relative to ours")
    wide = slower = count = 0
    for sigma, rate, steps, delta in every() if asked.all else FEW:
        epsilon = Fraction(round(composition(sigma, rate, steps).epsilon(delta) * 1000), 1000)
        if epsilon <= 0:
            continue
        start = time.process_time()
        low, high = ours(sigma, rate, steps, epsilon)
        own = time.process_time() - start
        apart = (high - low) / high if high else 0.0
        promised = 1e-9 if steps >= 100 else 1e-6
        row = f"{sigma:5} {rate:7} {steps:7}  {about(epsilon, 5):10} {about(high, 5):12} {apart:8.1e} {own:7.3f}"
        count, wide = count + 1, wide + (apart > promised)
        if not asked.alone:
            start = time.process_time()
            peer = theirs(sigma, rate, steps, float(epsilon))
            seconds = time.process_time() - start
            slower += own > seconds
            row += f" {seconds:8.3f}  {peer / high - 1:+.1e}"
        print(row + ("  wide" if apart > promised else ""), flush=True)
    print(f"{count} cases, {wide} wider than promised, {slower} slower than dp_accounting.")


if __name__ == "__main__":
    main()
