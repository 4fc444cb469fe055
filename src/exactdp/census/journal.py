"""The journal of a long run: finished pairs on disk, so that a stopped run goes on where it was.

One line for each finished part, each with a digest of itself; a line that was cut off or altered is left out and its pairs
are done again. The name of the file contains a digest of what was asked, so that other questions never meet.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import exactdp
from exactdp.census.grids import ARGUMENTS, Grids
from exactdp.census.pair_results import Interval, PairResult
from exactdp.census.releases import Release


@dataclass(frozen=True)
class Journal:
    """Finished pairs of one run."""

    path: Path
    release: Release
    grids: Grids

    @classmethod
    def open(cls, folder: Path, release: Release, grids: Grids) -> Journal:
        """The journal of this question in a folder, which is made if need be."""
        folder.mkdir(parents=True, exist_ok=True)
        asked = json.dumps(
            [exactdp.__version__, release.fingerprint, grids.digits]
            + [[str(x) for x in grid] for grid in grids.by_quantity.values()]
        )
        return cls(folder / f"progress-{_digest(asked)[:12]}.jsonl", release, grids)

    def finished(self) -> dict[tuple[int, int], PairResult]:
        """The pairs that need not be done again."""
        if not self.path.exists():
            return {}
        found: dict[tuple[int, int], PairResult] = {}
        wanted = set(self.release.pairs)
        for line in self.path.read_bytes().split(b"\n"):
            for result in self._read(line):
                if result.pair in wanted:
                    found[result.pair] = result
        return found

    def add(self, results: Iterable[PairResult]) -> None:
        """Keep finished pairs: written to disk before this returns."""
        content = json.dumps([_record(r) for r in results])
        with self.path.open("ab") as file:
            # a line of its own, even after one that was cut off
            file.write(f"\n{_digest(content)} {content}\n".encode())
            file.flush()
            os.fsync(file.fileno())

    def _read(self, line: bytes) -> list[PairResult]:
        digest, _, content = line.decode("utf-8", errors="replace").partition(" ")
        if digest != _digest(content):
            return []
        try:
            return [self._result(record) for record in json.loads(content)]
        except (ValueError, KeyError, TypeError, IndexError, InvalidOperation):
            return []

    def _result(self, record: dict[str, Any]) -> PairResult:
        number: Any = float if self.grids.digits is None else Decimal
        columns: list[tuple[Interval, ...]] = []
        for name, grid in self.grids.by_quantity.items():
            if len(record[name]) != len(grid):
                raise ValueError(name)
            columns.append(tuple((number(low), number(high)) for low, high in record[name]))
        first, second = record["pair"]
        return PairResult((int(first), int(second)), *columns)


def _record(result: PairResult) -> dict[str, object]:
    """The bounds of a pair as the shortest texts that read back as the same numbers."""
    bounds = {name: [[str(x) for x in interval] for interval in getattr(result, name)] for name in ARGUMENTS}
    return {"pair": result.pair, **bounds}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
