"""DP-SGD: certified bounds beside the default accountants of dp_accounting and of prv_accountant, case by case.

    python benchmarks/subsampled.py             a dozen cases, some minutes
    python benchmarks/subsampled.py --deep      few steps and very small deltas, at given epsilons
    python benchmarks/subsampled.py --all       noise 0.5 to 4, rate 1e-4 to 0.1, 1 to 100,000 steps, delta 1e-3 to 1e-100

Each case: sigma, rate, steps and the epsilon at which delta is about the stated one. CPU seconds of one question asked from
nothing, the relative width of our bounds, how far dp_accounting's delta is from them, and how wide prv_accountant's own bounds
are, relative to ours. Needs the extra `bench`, but for --alone, which leaves the peers out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeVar

from exactdp import Composition, Gaussian, PoissonSampled
from exactdp.numerals import about

_Answer = TypeVar("_Answer")
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

DEEP = [
    ("4", "0.001", 2, "0.03"),
    ("4", "0.001", 3, "0.03"),
    ("4", "0.001", 5, "0.03"),
    ("4", "0.001", 4, "0.06"),
    ("4", "0.0001", 3, "0.003"),
    ("2", "0.0001", 3, "0.05"),
    ("4", "0.001", 50, "0.06"),
    ("4", "0.0001", 100, "0.01"),
    ("4", "0.001", 100, "0.1"),
    ("4", "0.0001", 1000, "0.02"),
]
"""With epsilons in place of deltas."""


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


def ours(sigma: str, rate: str, steps: int, epsilon: Fraction, limit: int | None = None) -> tuple[float, float]:
    """Certified bounds of delta, within the usual limit of work or another one."""
    low, high = composition(sigma, rate, steps).within(max_seconds=limit).delta_bounds(epsilon)
    return float(low), float(high)


def theirs(sigma: str, rate: str, steps: int, epsilon: float) -> float:
    """dp_accounting's default: its PLD accountant with its default grid."""
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant()
    event = dp_event.PoissonSampledDpEvent(float(rate), dp_event.GaussianDpEvent(float(sigma)))
    accountant.compose(event, steps)
    return float(accountant.get_delta(epsilon))


def by_prv(sigma: str, rate: str, steps: int, epsilon: float) -> tuple[float, float]:
    """prv_accountant's bounds of delta with its default accuracy: 0.1 in epsilon and 1e-9 in delta."""
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    mechanism = PoissonSubsampledGaussianMechanism(noise_multiplier=float(sigma), sampling_probability=float(rate))
    accountant = PRVAccountant([mechanism], eps_error=0.1, delta_error=1e-9, max_self_compositions=[steps])
    low, _, high = accountant.compute_delta(epsilon, [steps])
    return float(low), float(high)


def timed(
    ask: Callable[[str, str, int, float], _Answer], case: tuple[str, str, int, float]
) -> tuple[_Answer | None, float]:
    """What an accountant answers, None where it fails, and its CPU seconds."""
    start = time.process_time()
    try:
        found = ask(*case)
    except (ArithmeticError, MemoryError, RuntimeError, ValueError):
        return None, time.process_time() - start
    return found, time.process_time() - start


def main() -> None:
    """Print one row for each case, and the cases that miss what is promised."""
    parser = argparse.ArgumentParser(description="DP-SGD cases beside dp_accounting.")
    parser.add_argument("--all", action="store_true", help="the whole grid")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--deep", action="store_true", help="few steps and very small deltas")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'':66}dp_accounting          prv_accountant")
    print(
        "sigma   rate    steps  epsilon      delta        width        s        s  delta, beside   s  width of its own"
    )
    wide = count = 0
    slower = {"dp_accounting": 0, "prv_accountant": 0}
    for sigma, rate, steps, at in DEEP if asked.deep else every() if asked.all else FEW:
        searched = None if asked.deep else composition(sigma, rate, steps).epsilon(at)
        epsilon = Fraction(at) if searched is None else Fraction(round(searched * 1000), 1000)
        if epsilon <= 0:
            continue
        start = time.process_time()
        low, high = ours(sigma, rate, steps, epsilon, 30 if asked.deep and steps > 16 else None)
        own = time.process_time() - start
        apart = (high - low) / high if high else 0.0
        promised = 1e-9 if steps >= 100 else 1e-6
        row = f"{sigma:5} {rate:7} {steps:7}  {about(epsilon, 5):10} {about(high, 5):12} {apart:8.1e} {own:7.3f}"
        count, wide = count + 1, wide + (apart > promised)
        if not asked.alone:
            case = sigma, rate, steps, float(epsilon)
            (peer, first), (ends, second) = timed(theirs, case), timed(by_prv, case)
            slower["dp_accounting"] += own > first
            slower["prv_accountant"] += own > second
            row += f" {first:8.3f}  " + ("fails   " if peer is None else f"{peer / high - 1:+.1e}")
            row += f" {second:8.3f}  " + ("fails" if ends is None else f"{(ends[1] - ends[0]) / high:.1e}")
        print(row + ("  wide" if apart > promised else ""), flush=True)
    beside = ", ".join(f"{number} slower than {name}" for name, number in slower.items())
    print(f"{count} cases, {wide} wider than promised" + ("." if asked.alone else f", {beside}."))


if __name__ == "__main__":
    main()
