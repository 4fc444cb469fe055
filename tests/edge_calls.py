"""Random public calls with edge values: each gives a valid answer or a documented refusal, and nothing else.

    python tests/edge_calls.py 20000 15      so many calls, from that seed

A valid answer has no NaN, bounds in order, and probabilities in [0, 1]. A refusal is an ExactDPError of one line; operators may
raise Python's own TypeError. `campaign` runs the calls and counts.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

import exactdp
from exactdp import census, conversions, guarantees, noise, theory
from exactdp.census.study import Study
from exactdp.interop import names
from small_release import COARSE

VALUES: list[Any] = [
    *(0, 1, -1, 2, 0.0, -0.0, 0.5, 5e-324, 2.2e-308, 1e-300, 1e308, -1e308, math.inf, -math.inf, math.nan, 1e10, 1e-10),
    *("0", "1", "1e-5000", "-1e-5000", "1e5000", "1e-320", "1/3", "", "x", "inf", "nan", "1e999999999", "1" * 5000),
    *(Fraction(1, 3), Fraction(1, 10**5000), 1 - Fraction(1, 10**400), Fraction(10**400), 10**5000, 10**9, 10**9 + 1),
    *(Decimal("1e-10"), Decimal("Infinity"), Decimal("NaN"), Decimal("1e-400"), None, True, [], {}, object),
    *(np.float64(1e-10), np.float32(0.1), np.float64(5e-324), np.int64(3), np.bool_(True), np.float64("nan")),
    *(np.array(0.25), np.array([0.25, 1e-9]), np.array([[0, 1]]), np.array([]), [0.5, "1e-9"], [[0.5], [1, 2]]),
]
"""What a caller may write where a number is asked for."""

USUAL = [0, 1, "0.05", 1e-10, 0.5, "1/3", 5e-324, "1e-5000", 3, 10, np.array([0.5, 0.25])]


def compositions() -> list[exactdp.Composition]:
    """One of every kind, all of them quick."""
    return [
        10 * exactdp.DiscreteGaussian(1),
        exactdp.DiscreteGaussian("1/2", 2) + exactdp.DiscreteGaussian("3/2"),
        2 * exactdp.DiscreteGaussian(10**17),
        100 * exactdp.DiscreteLaplace("23/3", sensitivity=5),
        exactdp.RandomizedResponse(1) + exactdp.DiscreteLaplace(1),
        3 * exactdp.ApproximateDP(0, "1/100"),
        2 * exactdp.ApproximateDP(1, "1e-300"),
        exactdp.ApproximateDP(0) * 1,
        4 * exactdp.Gaussian(2) + exactdp.RandomizedResponse("1/2"),
        exactdp.Outcomes(["1/2", "1/4", "1/4"], ["1/4", "1/4", "1/2"]) * 5,
        exactdp.Outcomes([1, 0], ["1/2", "1/2"]) * 2,
    ]


@dataclass(frozen=True)
class Call:
    """A public call, by its text, and the check of its answer."""

    text: str
    run: Callable[[], Any]
    check: Callable[[Any], None]


def numbers_in(answer: Any) -> Iterator[float]:
    """All numbers of an answer, as floats where they are small and large alike."""
    for part in answer if isinstance(answer, tuple) else [answer]:
        yield from (float(x) for x in np.asarray(part, dtype=object).ravel())


def in_order(low: float, high: float) -> Callable[[Any], None]:
    """A pair of bounds, or one number, within limits."""

    def check(answer: Any) -> None:
        found = list(numbers_in(answer))
        assert not any(math.isnan(x) for x in found), "not a number"
        assert all(low <= x <= high for x in found), f"outside of [{low}, {high}]"
        if isinstance(answer, tuple) and len(answer) == 2:
            half = len(found) // 2
            assert all(a <= b for a, b in zip(found[:half], found[half:], strict=True)), "bounds out of order"

    return check


PROBABILITY, ANY, LOG = in_order(0.0, 1.0), in_order(-math.inf, math.inf), in_order(-math.inf, 0.0)
ASKED: dict[str, Callable[[Any], None]] = {
    "delta_bounds": PROBABILITY,
    "delta": PROBABILITY,
    "log_delta": LOG,
    "log_delta_bounds": LOG,
    "epsilon_bounds": ANY,
    "epsilon": ANY,
    "beta_bounds": PROBABILITY,
    "beta": PROBABILITY,
}
"""What is asked of a composition, of a mechanism and of a study alike."""

CONVERSIONS: list[tuple[Callable[..., Any], Callable[[Any], None]]] = [
    *((f, ANY) for f in (conversions.zcdp_epsilon, conversions.zcdp_epsilon_simple, conversions.gaussian_epsilon)),
    *((f, PROBABILITY) for f in (conversions.zcdp_delta, conversions.zcdp_delta_simple, conversions.zcdp_beta)),
    *(
        (f, PROBABILITY)
        for f in (conversions.gaussian_delta, conversions.gaussian_beta, conversions.zcdp_beta_estimate)
    ),
    *((f, LOG) for f in (conversions.zcdp_log_delta, conversions.gaussian_log_delta)),
    *((f, PROBABILITY) for f in (guarantees.gdp_delta, guarantees.gdp_beta, names.get_beta_from_gdp)),
    *((f, PROBABILITY) for f in (names.get_advantage_from_adp, names.get_bayes_risk_from_gdp, names.puredp_to_fdp)),
    (guarantees.gdp_epsilon, ANY),
    (guarantees.gdp_mu, in_order(0.0, math.inf)),
    (lambda a, b: guarantees.rdp_epsilon({2: a, 3: "1/2"}, b), ANY),
    (lambda a, b: guarantees.rdp_delta({2: a}, b), PROBABILITY),
    (lambda a, b: guarantees.fdp_beta([(a, b)], "1/3"), PROBABILITY),
    (lambda a, b: guarantees.fdp_beta([(1, a)], b), PROBABILITY),
]


def anything(answer: Any) -> None:
    """No more is asked than that it has a text, if it has one of its own."""
    if "__str__" in vars(type(answer)):
        assert isinstance(str(answer), str)


def calls(rng: random.Random) -> Iterator[Call]:
    """Calls without end."""
    every = compositions()
    study = COARSE.account()
    curve = every[0].tradeoff(9)
    makers: list[Callable[..., Any]] = [
        exactdp.DiscreteGaussian,
        exactdp.DiscreteLaplace,
        exactdp.Skellam,
        exactdp.Gaussian,
        exactdp.RandomizedResponse,
        exactdp.ApproximateDP,
        exactdp.Outcomes,
        lambda a, b: exactdp.Composition({exactdp.DiscreteGaussian(1): a}),
        lambda a, b: exactdp.Composition([a, b]),
        lambda a, b: exactdp.Composition(a),
    ]
    while True:
        a, b, kind = rng.choice(VALUES), rng.choice(VALUES if rng.random() < 0.5 else USUAL), rng.randrange(10)
        c: Any = rng.choice(every)
        if kind < 4:
            asked, check = rng.choice(list(ASKED.items()))
            on: Any = rng.choice([c, c, c, next(iter(c.mechanisms)), study])
            if not callable(getattr(on, asked)) or (on is study and "beta" in asked):
                on = c  # there it is a parameter of the same name; here it takes a minute at tiny alphas
            yield Call(f"{about(on)}.{asked}({about(a)})", lambda on=on, asked=asked, a=a: getattr(on, asked)(a), check)
        elif kind < 7:
            f, check = rng.choice(CONVERSIONS)
            yield Call(f"{about(f)}({about(b)}, {about(a)})", lambda f=f, a=a, b=b: f(b, a), check)
        elif kind < 8:
            f = rng.choice(makers)
            yield Call(f"{about(f)}({about(a)}, {about(b)})", lambda f=f, a=a, b=b: f(a, b), anything)
        else:
            yield rng.choice(others(c, study, curve, a, b))


def others(c: exactdp.Composition, study: Study, curve: exactdp.TradeOffCurve, a: Any, b: Any) -> list[Call]:
    """The other methods and functions, each with its own shape."""
    shaped: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
        "within(max_seconds)": (lambda: c.within(max_seconds=a), anything),
        "within(max_nodes)": (lambda: c.within(max_nodes=a), anything),
        "masses": (lambda: c.masses(a), PROBABILITY),
        "explain": (lambda: c.explain(a), anything),
        "cross_check": (lambda: c.cross_check(b), anything),
        "compare(delta)": (lambda: c.compare(delta=a), anything),
        "compare(epsilon)": (lambda: c.compare(epsilon=b), anything),
        "risk": (lambda: c.risk(alpha=a, prior=b), anything),
        "risk(delta)": (lambda: c.risk(delta=a), anything),
        "scaled": (lambda: c.scaled(a), anything),
        "times": (lambda: c * a, anything),
        "plus": (lambda: c + a, anything),
        "tradeoff": (lambda: c.tradeoff(a), anything),
        "target": (lambda: exactdp.target(epsilon=a, delta=b), anything),
        "target(alpha)": (lambda: exactdp.target(alpha=a, beta=b), anything),
        "fdp_delta": (lambda: guarantees.fdp_delta(curve, a), PROBABILITY),
        "certify": (lambda: exactdp.certify(c, delta=a, digits=5), anything),
        "from_json": (lambda: exactdp.from_json(a), anything),
        "cumulant": (lambda: theory.cumulant(a, b), anything),
        "absolute_moment": (lambda: theory.absolute_moment(b, a), anything),
        "local_errors": (lambda: theory.local_errors(b, a), anything),
        "scale_for": (lambda: noise.scale_for(a), in_order(0.0, math.inf)),
        "release": (lambda: census.release(a), anything),
        "release.scaled": (lambda: COARSE.scaled(a).rho, anything),
        "release.pair": (lambda: COARSE.pair(a, b), anything),
        "account": (lambda: COARSE.account(epsilons=[a], deltas=[b] if a is None else None), anything),
        "study.worst_pair": (lambda: study.worst_pair(delta=a), anything),
    }
    return [Call(f"{name} of {c} with {about(a)}, {about(b)}", run, check) for name, (run, check) in shaped.items()]


def about(value: Any) -> str:
    """A short text of anything."""
    try:
        text = getattr(value, "__name__", None) or f"{type(value).__name__} {value!r}"
    except ValueError:  # an integer too long to print
        text = f"{type(value).__name__} with a number too long to print"
    return text if len(text) < 90 else f"{text[:87]}..."


def outcome(call: Call) -> str:
    """Run one call. "answered" or "refused"; anything else is a fault, and raised as an AssertionError that names the call."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", exactdp.AccuracyWarning)
            answer = call.run()
    except exactdp.ExactDPError as error:
        text = str(error)
        assert len(text.splitlines()) == 1, f"{call.text}: a refusal of more than one line: {text}"
        return "refused"
    except TypeError as error:
        if "NotImplemented" in str(error) or "unsupported operand" in str(error) or "multiply" in str(error):
            return "refused"
        raise AssertionError(f"{call.text}: {type(error).__name__}: {error}") from error
    except Exception as error:
        raise AssertionError(f"{call.text}: {type(error).__name__}: {error}") from error
    try:
        call.check(answer)
    except Exception as error:
        raise AssertionError(f"{call.text}: {error!r} in {about(answer)}") from error
    return "answered"


def campaign(count: int, seed: int = 15, slow: float | None = None) -> tuple[Counter[str], list[str]]:
    """So many calls: how many were answered and refused, and the faults; calls above `slow` seconds are printed."""
    seen: Counter[str] = Counter()
    faults = []
    for call in itertools.islice(calls(random.Random(seed)), count):
        start = time.perf_counter()
        try:
            seen[outcome(call)] += 1
        except AssertionError as error:
            faults.append(str(error))
        if slow is not None and time.perf_counter() - start > slow:
            print(f"{time.perf_counter() - start:.1f} s: {call.text}", flush=True)
    return seen, faults


if __name__ == "__main__":
    found, wrong = campaign(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 15, slow=3.0)
    print("\n".join(sorted(set(wrong))))
    print(f"{sum(found.values()) + len(wrong)} calls: {dict(found)}, {len(wrong)} faults")
    sys.exit(1 if wrong else 0)
