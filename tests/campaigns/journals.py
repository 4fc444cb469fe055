"""Journals damaged in every way: whatever is read back from one is what was written into it, or nothing."""

from __future__ import annotations

import hashlib
import json
import math
import random
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from campaigns.tally import Tally
from exactdp.census.grids import Grids
from exactdp.census.journal import Journal
from exactdp.census.pair_results import PairResult, account_pairs
from exactdp.census.runners import Serial
from exactdp.census.study import run_study
from exactdp.doubles import Floats
from small_release import SMALL

_GRIDS = Grids.read(["1/2", "3"], ["1e-6"], ["0.05"])
_OTHERS = [(SMALL.scaled(2), _GRIDS), (SMALL, Grids.read(["1/2", "4"], ["1e-6"], ["0.05"]))]


@cache
def _genuine() -> dict[tuple[int, int], PairResult]:
    return {r.pair: r for r in run_study(SMALL, _GRIDS, Serial()).results}


def damaged(seed: int) -> Tally:
    """Fifty journals, each with one to four wounds."""
    tally, rng, results = Tally(), random.Random(seed), _genuine()
    with tempfile.TemporaryDirectory() as name:
        journal = Journal.open(Path(name), SMALL, _GRIDS)
        listed = list(results.values())
        for start in range(0, len(listed), 2):
            journal.add(listed[start : start + 2])
        whole = journal.path.read_bytes()
        for _ in range(50):
            content = whole
            for _ in range(rng.randint(1, 4)):
                content = rng.choice(_WOUNDS)(rng, content)
            journal.path.write_bytes(content)
            found = journal.read().results
            wrong = [pair for pair in found if found[pair] != results[pair]]
            tally.check(not wrong, f"seed {seed}: a damaged journal changed the pairs {wrong}")
    return tally


def _flipped(rng: random.Random, content: bytes) -> bytes:
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << rng.randrange(8))]) + content[place + 1 :]


def _cut(rng: random.Random, content: bytes) -> bytes:
    start, end = sorted(rng.randrange(len(content)) for _ in range(2))
    return content[:start] + content[end:] if len(content) - (end - start) > 10 else content


def _shuffled(rng: random.Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def _noise(rng: random.Random, content: bytes) -> bytes:
    place = rng.randrange(len(content))
    return content[:place] + rng.randbytes(rng.randint(1, 200)) + content[place:]


def _unsound(rng: random.Random, content: bytes) -> bytes:
    """A line with the digest put right, and a bound that is none."""
    lines = [line for line in content.split(b"\n") if line.count(b" ") > 3]
    try:
        record = json.loads(rng.choice(lines).partition(b" ")[2])
        quantity = rng.choice(["delta", "epsilon", "beta"])
        result = rng.choice(record["results"])
        ends = np.frombuffer(bytes.fromhex(result[quantity])).reshape(-1, 2).copy()
        bounds = ends[rng.randrange(len(ends))]
    except (ValueError, KeyError, IndexError, TypeError):  # an earlier wound
        return content
    # any two numbers in order may be bounds of an epsilon: who writes such with a right digest is not found out here
    rng.choice([_not_a_number, _exchanged] if quantity == "epsilon" else [_not_a_number, _exchanged, _impossible])(
        bounds
    )
    result[quantity] = ends.tobytes().hex()
    return content + _line(record)


def _not_a_number(bounds: Floats) -> None:
    bounds[0] = math.nan


def _exchanged(bounds: Floats) -> None:
    bounds[:] = bounds[1] + 1, bounds[0]


def _impossible(bounds: Floats) -> None:
    bounds[:] = 2, 3


def _foreign(rng: random.Random, content: bytes) -> bytes:
    """A line of the same pairs and another question, or of other code, honestly hashed."""
    release, grids = rng.choice(_OTHERS)
    with tempfile.TemporaryDirectory() as name:
        other = Journal.open(Path(name), release, grids)
        other.add(_others(release.fingerprint, grids))
        line = other.path.read_bytes()
    if rng.random() < 0.5:
        return content + line
    record = json.loads(line.partition(b" ")[2])
    record["question"] = Journal.open(Path(tempfile.gettempdir()), SMALL, _GRIDS).question
    record["code"]["exactdp"] += "0"
    return content + _line(record)


@cache
def _others(fingerprint: str, grids: Grids) -> list[PairResult]:
    release = next(r for r, g in _OTHERS if (r.fingerprint, g) == (fingerprint, grids))
    return account_pairs(release, list(release.pairs[:2]), grids)


def _line(record: object) -> bytes:
    content = json.dumps(record)
    return f"\n{hashlib.sha256(content.encode()).hexdigest()} {content}\n".encode()


_WOUNDS = [_flipped, _cut, _shuffled, _noise, _unsound, _foreign]
