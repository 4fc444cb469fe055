"""Results do not depend on what the caller, or another library, has set: NumPy's errors, decimals, Arb, the processor."""

from __future__ import annotations

import contextlib
import ctypes
import decimal
import importlib
import inspect
import itertools
import math
import mmap
import pickle
import platform
import random
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import ctx

import command_line
import edge_calls
import exactdp
from exactdp import DiscreteGaussian, arithmetic_state, census
from exactdp.apps.studio.schema.answers import as_json
from exactdp.apps.studio.schema.requests import PairQuestion
from exactdp.apps.studio.work.designs import design_of
from exactdp.apps.studio.work.dispatch import answered
from exactdp.census.cores import Cores
from exactdp.census.grids import Grids
from exactdp.census.pair_results import account_pairs
from exactdp.census.runners import Serial, Stamped
from exactdp.errors import AccuracyError
from small_release import SURVEY

FLUSH = 0x8040  # MXCSR: results (FTZ) and operands (DAZ) to zero
CONTROL = {"flush results": 0x8000, "flush operands": 0x0040, "both": FLUSH, "up": 0x4000, "down": 0x2000}
ON_X86 = platform.machine() in ("x86_64", "AMD64") and sys.platform == "linux"


class ControlWord:
    """The processor's control word of this thread, by two machine instructions: stmxcsr [rdi] and ldmxcsr [rdi]."""

    def __init__(self) -> None:
        self._pages = [mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) for _ in range(2)]
        for page, code in zip(self._pages, (b"\x0f\xae\x1f\xc3", b"\x0f\xae\x17\xc3"), strict=True):
            page.write(code)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self._store, self._load = (kind(ctypes.addressof(ctypes.c_char.from_buffer(p))) for p in self._pages)

    def read(self) -> int:
        word = ctypes.c_uint32()
        self._store(ctypes.byref(word))
        return word.value

    def write(self, value: int) -> None:
        self._load(ctypes.byref(ctypes.c_uint32(value)))

    @contextlib.contextmanager
    def plus(self, bits: int) -> Iterator[None]:
        before = self.read()
        self.write(before | bits)
        try:
            yield
        finally:
            self.write(before)


@contextlib.contextmanager
def loud_numpy() -> Iterator[None]:
    with np.errstate(all="raise"):
        yield


@contextlib.contextmanager
def odd_decimals() -> Iterator[None]:
    signals = [decimal.Inexact, decimal.Rounded, decimal.Subnormal, decimal.FloatOperation, decimal.Clamped]
    with decimal.localcontext(decimal.Context(prec=2, rounding=decimal.ROUND_UP, Emin=-5, Emax=5, traps=signals)):
        yield


@contextlib.contextmanager
def rough_arb() -> Iterator[None]:
    before = ctx.prec, ctx.pretty, ctx.cap
    ctx.prec, ctx.pretty, ctx.cap = 2, False, 2
    try:
        yield
    finally:
        ctx.prec, ctx.pretty, ctx.cap = before


@contextlib.contextmanager
def flushing() -> Iterator[None]:
    with ControlWord().plus(FLUSH):
        yield


STATES = [loud_numpy, odd_decimals, rough_arb, *([flushing] if ON_X86 else [])]


def answers(count: int, seed: int) -> list[Any]:
    """The answers to random public calls, or their refusals."""
    found: list[Any] = []
    for call in itertools.islice(edge_calls.calls(random.Random(seed)), count):
        try:
            found.append(call.run())
        except (exactdp.ExactDPError, TypeError) as error:
            found.append(error)
    return found


def fingerprint(answer: Any) -> str:
    """All bits of an answer."""
    if isinstance(answer, (float, tuple, np.ndarray)):
        return " ".join(x.hex() for x in edge_calls.numbers_in(answer))
    if isinstance(answer, exactdp.CrossCheck):  # which has the seconds
        return str([(o.method, o.log_lower, o.log_upper) for o in answer.opinions])
    try:
        return repr(answer)
    except ValueError:
        return "too long to print"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.filterwarnings("ignore::exactdp.AccuracyWarning")
def test_every_bit_is_the_same_in_any_state(state: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
    """Random public calls: first in the state, so that nothing was made before, then without it."""
    with state():
        found = answers(80, seed=7)
    assert [fingerprint(x) for x in found] == [fingerprint(x) for x in answers(80, seed=7)]


USUAL: list[Callable[[], Any]] = [
    lambda: (10 * DiscreteGaussian(1)).delta_bounds([0, 5, 30, 100, "-3"]),
    lambda: (10 * DiscreteGaussian(1)).epsilon_bounds(["1e-10", "1e-300", 0.9]),
    lambda: (10 * DiscreteGaussian(1)).beta_bounds(["0.05", "1e-20"]),
    lambda: (10 * DiscreteGaussian(1)).tradeoff(9).beta,
    lambda: (3 * exactdp.DiscreteLaplace(2) + exactdp.Gaussian(3)).epsilon_bounds("1e-6"),
    lambda: exactdp.certify(2 * DiscreteGaussian(1), epsilon=3, digits=12).to_json(),
    lambda: exactdp.verify(exactdp.certify(2 * DiscreteGaussian(1), epsilon=3, digits=6)).holds,
    lambda: (2 * DiscreteGaussian(1)).delta_bounds(3, digits=20),
    lambda: exactdp.calibrate_sigma2(2, exactdp.target(epsilon=1, delta="1e-6"), grid=1).factor,
    lambda: exactdp.theory.cumulant(2, 4, digits=20),
    lambda: exactdp.theory.GaussianGap(10 * DiscreteGaussian(1)).at(Fraction(3)),
    lambda: exactdp.conversions.zcdp_beta("1/2", ["0.01", "0.5"]),
    lambda: exactdp.to_json(10 * DiscreteGaussian("1/3")),
    lambda: edge_calls.COARSE.account(deltas=["1e-9"]).epsilon_bounds("1e-6"),
]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("ask", USUAL)
def test_usual_questions_in_any_state(state: Callable[[], contextlib.AbstractContextManager[None]], ask: Any) -> None:
    with state():
        found = ask()
    assert repr(found) == repr(ask())


@pytest.mark.skipif(not ON_X86, reason="sets the control word of an x86 processor")
@pytest.mark.parametrize("bits", CONTROL.values(), ids=list(CONTROL))
def test_the_control_word_is_set_and_given_back(bits: int) -> None:
    word = ControlWord()
    calm = [arithmetic_state.arithmetic_is_ieee()]
    composition = 2 * DiscreteGaussian(1)
    with word.plus(bits):
        before = word.read()
        calm.append(arithmetic_state.arithmetic_is_ieee())
        with arithmetic_state.steady_state():
            calm.append(arithmetic_state.arithmetic_is_ieee())
        low, high = composition.delta_bounds("54.5")
        after = word.read()
    assert calm == [True, False, True]
    assert after & 0xE040 == before & 0xE040  # control bits; the lower six only tell what happened
    exact = composition.delta_bounds("54.5", digits=10)
    assert Decimal("5e-324") < exact.lower < Decimal("2e-308")  # where flushing would show
    assert Decimal(low) <= exact.lower
    assert Decimal(high) >= exact.upper


AT = "61.5"  # where delta of the survey is subnormal


def _subnormal(_: int) -> float:
    return float(arithmetic_state._smallest_normal * arithmetic_state._half)


def _printed(*arguments: str) -> str:
    done = command_line.run(*arguments)
    assert done.exit_code == 0
    return done.stdout


@pytest.mark.skipif(not ON_X86, reason="sets the control word of an x86 processor")
def test_tasks_are_steady_and_what_they_find_is_printed(tmp_path: Path) -> None:
    """A worker, this process as one, the command line and the studio, where all of them flush."""
    (tmp_path / "survey.toml").write_text(SURVEY, encoding="utf-8")
    release = census.read_budget(tmp_path / "survey.toml")
    grids = Grids.read([AT])
    design = {"design": design_of(release), "pair": [1, 1], "epsilons": [AT]}
    question = PairQuestion.model_validate(design).model_dump()
    tasks: list[Callable[[], Any]] = [
        lambda: Stamped.of(_subnormal, 0).result,
        lambda: list(Serial().map(_subnormal, [0])),
        lambda: list(Cores(2).map(_subnormal, [0])),
        lambda: account_pairs(release, [(1, 1)], grids)[0].delta[0],
        lambda: as_json([Stamped.of(_subnormal, 0).result]),
        lambda: answered("pair", question)["delta"][0]["upper"],
        lambda: _printed("account", str(tmp_path / "survey.toml"), "--epsilon", AT),
    ]
    with flushing():
        found = [pickle.dumps(task()) for task in tasks]
    assert found == [pickle.dumps(task()) for task in tasks]
    assert 0 < tasks[2]()[0] < sys.float_info.min


@pytest.mark.skipif(not ON_X86, reason="sets the control word of an x86 processor")
def test_what_is_loaded_on_the_way_is_noticed() -> None:
    """A library that flushes may be loaded in the middle of a command."""
    composition = 2 * DiscreteGaussian(1)
    with arithmetic_state.steady_state():
        with flushing():
            found = composition.delta_bounds("54.5")
        assert arithmetic_state._inside.steady
    assert found.lower.hex() == composition.delta_bounds("54.5").lower.hex()


def test_what_cannot_be_undone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic_state, "arithmetic_is_ieee", lambda: False)
    monkeypatch.setattr(arithmetic_state, "_to_default", lambda: None)
    with pytest.raises(AccuracyError, match="flushes subnormal numbers to zero"):
        DiscreteGaussian(1).delta(1)


def test_the_callers_state_is_given_back() -> None:
    with loud_numpy(), odd_decimals(), rough_arb():
        (10 * DiscreteGaussian(1)).delta(5)
        with pytest.raises(exactdp.InvalidInputError):
            (10 * DiscreteGaussian(1)).delta("x")
        assert np.geterr() == dict.fromkeys(("divide", "over", "under", "invalid"), "raise")
        assert decimal.getcontext().prec == 2
        assert ctx.prec == 2


def test_decimals_are_the_usual_ones_inside() -> None:
    with odd_decimals(), arithmetic_state.steady_state():
        assert str(Decimal(1) / Decimal(3)) == "0." + 28 * "3"
        assert Decimal("0.5") < 1.5


def test_threads_have_a_state_each() -> None:
    seen = []

    def ask() -> None:
        with np.errstate(all="raise"):
            seen.append(DiscreteGaussian(1).epsilon(5e-324))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [DiscreteGaussian(1).epsilon(5e-324)] * 4


NOT_STEADY = {"Bounds", "DiscreteGaussianDpEvent"}
"""A pair of numbers, and dp_accounting's own kind of record: nothing is computed in them."""


def public() -> dict[str, Any]:
    """Every public function and class."""
    rooms = ["census", "guarantees", "theory", "audit", "conversions", "noise", "plots", "reference", "report"]
    found = {name: getattr(exactdp, name) for name in exactdp.__all__}
    for room in [*rooms, "theory_plots"]:
        module = importlib.import_module(f"exactdp.{room}")
        found |= {f"{room}.{name}": getattr(module, name) for name in module.__all__}
    return {name: thing for name, thing in found.items() if inspect.isfunction(thing) or inspect.isclass(thing)}


def test_every_public_name_is_steady() -> None:
    for name, thing in public().items():
        if inspect.isfunction(thing):
            assert hasattr(thing, "__steady__"), f"{name} needs @steady"
        elif not issubclass(thing, Exception) and thing.__name__ not in NOT_STEADY:
            own = {n: m for n, m in vars(thing).items() if not n.startswith("_") and inspect.isfunction(m)}
            assert all(hasattr(m, "__steady__") for m in own.values()), f"{name} needs @steady"


def test_a_steady_function_is_still_itself() -> None:
    """Name, signature, home and doctests."""
    found = exactdp.calibrate
    assert found.__name__ == "calibrate"
    assert "grid" in inspect.signature(found).parameters
    assert found.__globals__["__name__"] == found.__module__ == "exactdp.guarantees.calibration"
    assert math.isfinite(DiscreteGaussian(1).epsilon("1e-9"))
