"""Malformed requests to a studio, as many as wanted, the same for the same seed.

    python tests/studio_malformed.py [COUNT [SEED]]

sends them to a studio of its own; whatever is answered neither as asked nor with a refusal in one sentence is printed, and the
exit code is then 1.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from exactdp.apps.studio.limits import WorkLimits
from exactdp.apps.studio.work.dispatch import answered
from studio_server import SMALL, TEXT, Studio

GOOD: dict[str, Any] = {
    "/parse": {"file_name": "a.toml", "text": TEXT.decode()},
    "/check": {"design": {**SMALL, "scale": "1"}},
    "/export": {"design": {**SMALL, "source": "here"}},
    "/pair": {
        "design": SMALL,
        "pair": [1, ["Region"]],
        "deltas": ["1e-10"],
        "epsilons": [1, "2.5"],
        "alphas": ["0.05"],
        "delta_curve": {"num": 5, "least": "1e-5", "epsilons": None},
        "tradeoff": {"num": 5},
        "noise": True,
        "risk": True,
        "zcdp_beta": False,
    },
    "/overall": {"design": SMALL, "deltas": ["1e-10"], "delta_curve": {"num": 3}, "tradeoff": {"num": 5}},
    "/convert": {"rho": "1/2", "deltas": ["1e-10"], "epsilons": ["1"], "alphas": ["0.05"], "tradeoff": 5},
    "/calibrate": {"design": SMALL, "over": "pair", "epsilon": "3", "delta": "1e-6", "grid": 10, "level": None},
    "/certify": {"design": SMALL, "pair": [1, 2], "delta": "1e-6", "digits": 8},
    "/exchange": {"design": SMALL, "delta": "1e-6"},
    "/trade": {
        "design": SMALL,
        "delta": "1e-6",
        "epsilon": None,
        "take": SMALL["levels"][0]["name"],
        "give": SMALL["levels"][-1]["name"],
        "share": "1/10",
    },
    "/optimize": {"design": SMALL, "delta": "1e-6", "epsilon": "8", "requirements": [], "minimize": "variance"},
    "/hold": {"design": SMALL, "delta": "1e-6", "epsilon": "8", "level": None},
    "/frontier": {"design": SMALL, "delta": "1e-6", "factors": ["1/2", "1"]},
    "/table": {"design": SMALL, "what": "pairs", "deltas": ["1e-10"], "epsilons": [], "alphas": []},
}
HUGE = ["1e-5000", "1e5000", "1e-99999", "1e999999999", "1e-3000", "1e3000", "1e-400", "1e400", "5e-324", "2e-308"]
NO_NUMBERS = [
    "nan",
    "inf",
    "0x10",
    "1_0",
    ".5",
    "5.",
    "e5",
    "1e",
    "1e+",
    "--1",
    "1/2/3",
    "1//2",
    "\u00bd",
    "\u0661",
    "True",
]
NUMBERS = [*HUGE, *NO_NUMBERS, "0", "-0", "-1", "1", "2", "1e10", "-1e-10", "1/0", "0/1", "1/3"]
ODD: list[Any] = [
    *NUMBERS,
    *[float(text) for text in ("1e308", "5e-324", "-0.0", "0.1", "1e-10", "1e22")],
    *[0, 1, -1, 2**31, 2**53, 10**15, -(10**15)],
    *[None, True, False, "", " ", [], {}, [[]], [{}], {"": None}],
    *[
        "9" * 400,
        "9" * 401,
        "1/" + "9" * 390,
        "0." + "0" * 390 + "1",
        "=1+1",
        "\x00",
        "\r\n",
        "\ud800",
        "\U0001f600",
        "level",
    ],
    *["x" * 10_000, ["1"] * 21, ["1e-10"] * 1000, [["x"]], {"num": 10**9}, {"name": "x", "queries": []}],
]


@dataclass(frozen=True)
class Malformed:
    """A request that is mostly not in order."""

    path: str
    body: bytes
    headers: dict[str, str]


def malformed(count: int, seed: int = 0) -> Iterator[Malformed]:
    """So many requests: good ones with members replaced, removed, added and twisted, and texts that are hardly JSON."""
    draw = random.Random(seed)
    for _ in range(count):
        path = draw.choice(list(GOOD))
        body = json.loads(json.dumps(GOOD[path]))
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            body = _spoilt(body, draw)
        text = json.dumps(body).encode()
        if draw.random() < 0.15:
            text = _garbled(text, draw)
        kind = "application/json" if draw.random() < 0.97 else draw.choice(("text/plain", "", "application/json; x"))
        yield Malformed(path, text, {"content-type": kind})


def _spoilt(value: Any, draw: random.Random) -> Any:
    """The value with something odd at a place of it; deep places as often as others."""
    places = list(_places(value))
    place = draw.choice(places)
    if not place:
        return draw.choice(ODD)
    *way, last = place
    inner = value
    for step in way:
        inner = inner[step]
    what = draw.random()
    if what < 0.12:
        del inner[last]
    elif what < 0.2 and isinstance(inner, dict):
        inner[draw.choice(("", "extra", "rho", "__proto__", "\ud800"))] = draw.choice(ODD)
    elif what < 0.26 and isinstance(inner, list):
        inner += [inner[last]] * draw.choice((1, 3, 60))
    elif isinstance(inner[last], str) and what < 0.45:
        inner[last] = _twisted(inner[last], draw)
    else:
        inner[last] = draw.choice(ODD)
    return value


def _places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield way
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inner:
        yield from _places(part, (*way, name))


def _twisted(text: str, draw: random.Random) -> str:
    at = draw.randrange(len(text) + 1)
    return (
        text[:at] + draw.choice(("\x00", "\ud800", "=", "#", '"', "\n", "é", "e", "/", "-", "[", "9" * 300)) + text[at:]
    )


def _garbled(text: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(text) + 1)
    return draw.choice(
        (
            text[:at],
            text[:at] + bytes([draw.randrange(256)]) + text[at:],
            text + text,
            text.replace(b'"1e-10"', b"1e-5000").replace(b'"1/2"', b"9" * 5000),
            b"[" * 5000,
            b'{"design":' * 2000,
            text.replace(b":", b":NaN,", 1),
            b"\xef\xbb\xbf" + text,
            b"",
        )
    )


def problem(response: httpx.Response) -> str:
    """What is wrong with an answer; nothing if it is one, or a refusal in one sentence."""
    if response.status_code == 200:
        return "an event of a defect" if b"a defect of exactdp" in response.content else ""
    if response.status_code not in (400, 413, 415, 422, 503):
        return f"status {response.status_code}"
    try:
        found = response.json()
    except ValueError:
        return "not JSON"
    sentence = found.get("error", "") if isinstance(found, dict) else ""
    if response.status_code == 503 and "longer than" not in sentence:
        return f"status 503: {sentence}"
    fine = (
        sentence.endswith((".", ")")) and "\n" not in sentence and "Traceback" not in sentence and len(sentence) < 600
    )
    return "" if fine else f"no sentence: {sentence[:200]!a}"


def campaign(studio: Studio, count: int, seed: int = 0) -> tuple[Counter[int], list[str]]:
    """How often each status came, and what was wrong."""
    statuses: Counter[int] = Counter()
    wrong: list[str] = []
    for one in malformed(count, seed):
        response = studio.client.post(one.path, content=one.body, headers=one.headers)
        statuses[response.status_code] += 1
        if text := problem(response):
            wrong.append(f"{text}: POST {one.path} {one.body[:1500]!r}")
    return statuses, wrong


def main() -> int:
    """Send them and say what came."""
    count, seed = (int(text) for text in [*sys.argv[1:3], *("1000", "0")[len(sys.argv) - 1 :]])
    studio = Studio(WorkLimits(long_seconds=20), answered)
    try:
        statuses, wrong = campaign(studio, count, seed)
    finally:
        studio.close()
    for text in wrong[:20]:
        print(text)
    print(f"{count} malformed requests (seed {seed}): {dict(sorted(statuses.items()))}, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
