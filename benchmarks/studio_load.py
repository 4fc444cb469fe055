"""The studio under load: many clients at once, mixed questions, no error, steady memory.

    .venv/bin/python benchmarks/studio_load.py [--clients 50] [--seconds 60]
    .venv/bin/python benchmarks/studio_load.py --plans 4 [--seconds 30]

Starts `exactdp studio` on a free port. Every client asks one question after the other: mostly pairs of edited designs, some
checks, exports, uploads, conversions, certificates and pages, now and then all pairs or a calibration, sometimes a bad file or
an answer that it does not wait for. What is neither answered nor rightly refused counts as an error. Prints a table and the
memory of the server and its workers over time; the exit code is 1 if there was an error or if memory kept growing.

With --plans, so many clients ask for all pairs of a wide design, whose plan alone takes seconds, while one asks short questions;
printed is how long these take beside them, and how long when nobody else asks, in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import in_browser

MIX = {
    "pair": 50,
    "pair, left early": 6,
    "pair of P.L. 94-171": 3,
    "check": 8,
    "export": 6,
    "upload": 6,
    "bad upload": 6,
    "convert": 5,
    "certify": 3,
    "page": 5,
    "overall": 1,
    "calibrate": 1,
}
GROWTH = 1.15
"""The last quarter of the run may need so much more memory than the third; before, caches fill."""


@dataclass
class Tally:
    """What came of the requests."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)


class Client:
    """One user, with a design of their own."""

    def __init__(self, http: httpx.AsyncClient, number: int, designs: dict[str, Any], tally: Tally) -> None:
        self._http, self._tally, self._random = http, tally, random.Random(number)
        self._designs = designs

    def _edited(self, name: str) -> dict[str, Any]:
        design = dict(self._designs[name])
        levels = [dict(level) for level in design["levels"]]
        first = dict(levels[0]["queries"][0], rho=f"{self._random.randint(50, 150)}/10000")
        levels[0] = {**levels[0], "queries": [first, *levels[0]["queries"][1:]]}
        return {**design, "levels": levels, "scale": f"{self._random.randint(80, 120)}/100"}

    async def run(self, until: float) -> None:
        """Ask until the time is over."""
        kinds, weights = list(MIX), list(MIX.values())
        while time.monotonic() < until:
            kind = self._random.choices(kinds, weights)[0]
            start = time.monotonic()
            try:
                problem = await self._ask(kind)
            except httpx.HTTPError as error:
                problem = type(error).__name__
            if problem:
                self._tally.errors.append(f"{kind}: {problem}")
            self._tally.seconds[kind].append(time.monotonic() - start)
            await asyncio.sleep(self._random.uniform(0.05, 0.4))

    async def _ask(self, kind: str) -> str:
        design = self._edited("dhc-persons-us")
        if kind == "page":
            return _unless((await self._http.get("/")).status_code, 200)
        if kind == "overall":
            return await self._overall(design)
        if kind == "pair, left early":
            try:
                await self._http.post("/api/v1/pair", json={"design": design}, timeout=0.02)
            except httpx.TimeoutException:
                return ""
            return ""
        path, body, expected = {
            "pair": ("pair", {"design": design, "epsilons": ["26.34"]}, 200),
            "pair of P.L. 94-171": ("pair", {"design": self._edited("pl94-persons-us")}, 200),
            "check": ("check", {"design": design}, 200),
            "export": ("export", {"design": design}, 200),
            "upload": ("parse", {"file_name": "a.csv", "text": "level,sex\nUS,1/3\n"}, 200),
            "bad upload": ("parse", {"file_name": "a.csv", "text": f"level,sex\nUS,{self._random.random()}/0\n"}, 422),
            "convert": ("convert", {"rho": f"{self._random.randint(1, 500)}/100", "alphas": ["0.05"]}, 200),
            "certify": ("certify", {"design": design, "delta": "1e-10"}, 200),
            "calibrate": ("calibrate", {"design": design, "epsilon": "20", "delta": "1e-10"}, 200),
        }[kind]
        response = await self._http.post(f"/api/v1/{path}", json=body)
        return _unless(response.status_code, expected)

    async def _overall(self, design: Any) -> str:
        last = ""
        async with self._http.stream("POST", "/api/v1/overall", json={"design": design, "tradeoff": None}) as response:
            async for line in response.aiter_lines():
                last = line
        return "" if last.startswith('{"event":"done"') else last[:100]


def _unless(status: int, expected: int) -> str:
    return "" if status == expected else f"status {status}"


async def _watch(process: psutil.Process, tally: Tally, until: float) -> None:
    start = time.monotonic()
    while time.monotonic() < until:
        total = 0
        for one in (process, *process.children(recursive=True)):
            try:
                total += one.memory_full_info().uss
            except psutil.Error:
                continue
        tally.memory.append((time.monotonic() - start, total / 2**20))
        await asyncio.sleep(1)


async def _load(address: str, process: psutil.Process, clients: int, seconds: float) -> Tally:
    tally = Tally()
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=address, timeout=180, limits=limits) as http:
        names = ("dhc-persons-us", "pl94-persons-us")
        designs = {name: (await http.get(f"/api/v1/releases/{name}")).json()["design"] for name in names}
        until = time.monotonic() + seconds
        users = [Client(http, number, designs, tally).run(until) for number in range(clients)]
        await asyncio.gather(_watch(process, tally, until), *users)
        tally.errors += [] if (await http.get("/api/v1/health")).status_code == 200 else ["no health at the end"]
    return tally


def _wide(number: int) -> dict[str, Any]:
    """A design of 400 budgets and 100 paths; each number makes another one."""
    draw = random.Random(number)
    levels = [
        {
            "name": f"L{i}",
            "queries": [{"name": f"q{j}", "rho": f"{draw.randint(1, 100)}/10000"} for j in range(20)],
        }
        for i in range(20)
    ]
    paths = [{"number": k, "bypassed": [f"L{i}" for i in range(1, 20) if draw.random() < 0.3]} for k in range(1, 101)]
    return {"name": "wide", "levels": levels, "paths": paths}


async def _short_ones(http: httpx.AsyncClient, seconds: float, marked: str) -> list[float]:
    """The milliseconds of checks that were not asked before."""
    found: list[float] = []
    until = time.monotonic() + seconds
    design = (await http.get("/api/v1/releases/dhc-persons-us")).json()["design"]
    while time.monotonic() < until:
        start = time.monotonic()
        response = await http.post("/api/v1/check", json={"design": {**design, "source": f"{marked} {len(found)}"}})
        response.raise_for_status()
        found.append(1000 * (time.monotonic() - start))
        await asyncio.sleep(0.05)
    return found


async def _beside_plans(address: str, plans: int, seconds: float) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=180) as http:

        async def plan(number: int) -> None:
            while True:
                number += plans
                await http.post("/api/v1/overall", json={"design": _wide(number), "tradeoff": None})

        alone = await _short_ones(http, seconds / 3, "alone")
        planning = [asyncio.ensure_future(plan(number)) for number in range(plans)]
        beside = await _short_ones(http, seconds, "beside")
        for task in planning:
            task.cancel()
        await asyncio.gather(*planning, return_exceptions=True)
    for label, times in (("alone", alone), (f"beside {plans} plans", beside)):
        print(
            f"check {label:<18}{len(times):>5} times, median {statistics.median(times):>6.1f} ms, largest {max(times):>7.1f} ms"
        )
    ratios = [measure(beside) / measure(alone) for measure in (statistics.median, max)]
    print(f"beside / alone: median {ratios[0]:.1f}, largest {ratios[1]:.1f}")


def _report(tally: Tally, seconds: float) -> bool:
    print(f"{'request':<22}{'count':>7}{'median ms':>11}{'95% ms':>9}{'largest ms':>12}")
    for kind in MIX:
        times = sorted(1000 * t for t in tally.seconds.get(kind, []))
        if times:
            high = times[min(int(0.95 * len(times)), len(times) - 1)]
            print(f"{kind:<22}{len(times):>7}{statistics.median(times):>11.0f}{high:>9.0f}{times[-1]:>12.0f}")
    count = sum(map(len, tally.seconds.values()))
    print(f"{count} requests, {count / seconds:.0f} each second, {len(tally.errors)} errors")
    for error in sorted(set(tally.errors))[:10]:
        print(f"  {tally.errors.count(error)} x {error}")
    sizes = [size for _, size in tally.memory]
    early, late = sizes[len(sizes) // 2 : 3 * len(sizes) // 4], sizes[3 * len(sizes) // 4 :]
    grown = statistics.mean(late) / statistics.mean(early)
    marks = ", ".join(f"{at:.0f} s {size:.0f}" for at, size in tally.memory[:: max(len(sizes) // 6, 1)])
    print(f"Memory of server and workers in MB (not shared): {marks}; last quarter / third quarter = {grown:.2f}")
    return not tally.errors and grown < GROWTH


def main() -> int:
    """Start the server, load it, end it, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--plans", type=int, default=0)
    chosen = parser.parse_args()
    with in_browser.studio() as served:
        if chosen.plans:
            asyncio.run(_beside_plans(served.address, chosen.plans, chosen.seconds))
            return 0
        tally = asyncio.run(_load(served.address, psutil.Process(served.pid), chosen.clients, chosen.seconds))
    return 0 if _report(tally, chosen.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
