"""The journal of a long run: finished pairs on disk, so that a stopped run goes on where it was.

One line for each finished part, each with a digest of itself, the digest of the question that it answers and the versions of
the code that computed it. A line is used only where all of them are those of this run and its bounds are bounds; every other
line is set aside: it stays in the file, and its pairs are done again. Nothing is ever deleted, so that a return to the code
that wrote a line makes it count again.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from exactdp.census.grids import Grids
from exactdp.census.pair_results import Interval, PairResult, PairTable, sound
from exactdp.census.releases import Release
from exactdp.errors import ExactDPError, InvalidInputError
from exactdp.numbers import exact_text
from exactdp.version import computed_with, other_versions

_MOST_BYTES = 2 << 30
_DAMAGED = "cut off or altered"
_OTHER_QUESTION = "of another question"
_OTHER_FORMAT = "of another version's form"
_UNSOUND = "without valid bounds"


@dataclass
class Finished:
    """What a journal holds: the pairs that need not be done again, and how many lines were set aside for which reason."""

    results: dict[tuple[int, int], PairResult] = field(default_factory=dict)
    set_aside: Counter[str] = field(default_factory=Counter)

    def remark(self, name: str) -> str:
        """One sentence on what was set aside; nothing where all lines count."""
        if not self.set_aside:
            return ""
        lines = "one line was" if self.set_aside.total() == 1 else f"{self.set_aside.total()} lines were"
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(self.set_aside.items()))
        return f"{name}: {lines} set aside ({why}); nothing was deleted, and the pairs are done again."


@dataclass(frozen=True)
class Journal:
    """Finished pairs of one question, by the code of this process."""

    path: Path
    release: Release
    grids: Grids

    @classmethod
    def open(cls, folder: Path, release: Release, grids: Grids) -> Journal:
        """The journal of this question in a folder, which is made if need be."""
        folder.mkdir(parents=True, exist_ok=True)
        journal = cls(folder, release, grids)
        return replace(journal, path=folder / f"progress-{journal.question[:12]}.jsonl")

    def of(self, grids: Grids) -> Journal:
        """The journal of a slice of this question, beside it: a question of its own."""
        return self if grids == self.grids else Journal.open(self.path.parent, self.release, grids)

    @cached_property
    def question(self) -> str:
        """A digest of what is asked: the design, the grids, the arithmetic."""
        asked = [[exact_text(x) for x in grid] for grid in self.grids.by_quantity.values()]
        return _digest(json.dumps(["exactdp journal 3", self.release.fingerprint, self.grids.digits, *asked]))

    @cached_property
    def _pairs(self) -> frozenset[tuple[int, int]]:
        return frozenset(self.release.pairs)

    def read(self) -> Finished:
        """The pairs that need not be done again."""
        found = Finished()
        if not self.path.exists():
            return found
        self._check()
        for line in self.path.read_bytes().split(b"\n"):
            if line.strip():
                results, reason = self._read(line)
                found.results.update((result.pair, result) for result in results)
                found.set_aside.update([reason] if reason else [])
        return found

    def _check(self) -> None:
        """Refuse what would be read without end: a pipe, a device, far more than any run writes."""
        found = self.path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            raise InvalidInputError(
                f"{self.path} must be a file of at most {_MOST_BYTES >> 30} gigabytes, the journal of a run. "
                "Found something else; move it away, or choose another folder."
            )

    def add(self, results: PairTable | Collection[PairResult]) -> None:
        """Keep finished pairs: written to disk before this returns."""
        table = results if isinstance(results, PairTable) else PairTable.of(results, self.grids)
        head = json.dumps({"question": self.question, "code": computed_with()}).removesuffix("}")
        content = f'{head}, "results": [{", ".join(table.as_json())}]}}'
        try:
            with self.path.open("ab") as file:
                # a line of its own, even after one that was cut off
                file.write(f"\n{_digest(content)} {content}\n".encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # a full disk tells no name
            raise OSError(error.errno, error.strerror, str(self.path)) from None

    def _read(self, line: bytes) -> tuple[list[PairResult], str]:
        """The results of a line, or why it has none that count."""
        digest, _, content = line.decode("utf-8", errors="replace").partition(" ")
        if digest != _digest(content):
            return [], _DAMAGED
        try:
            record = json.loads(content)
        except (ValueError, RecursionError):
            return [], _DAMAGED
        if not isinstance(record, dict) or not {"question", "code", "results"} <= record.keys():
            return [], _OTHER_FORMAT  # the first version wrote lists
        if record["question"] != self.question:
            return [], _OTHER_QUESTION
        if others := other_versions(record["code"]):
            return [], f"computed with {others}"
        try:
            return [self._result(entry) for entry in record["results"]], ""
        except (ExactDPError, ValueError, KeyError, TypeError, InvalidOperation):
            return [], _UNSOUND

    def _result(self, record: dict[str, Any]) -> PairResult:
        columns = [self._bounds(record[name]) for name in self.grids.by_quantity]
        first, second = record["pair"]
        if (first, second) not in self._pairs:
            raise ValueError("no pair of the release")
        return sound(PairResult((first, second), *columns), self.grids)

    def _bounds(self, written: Any) -> tuple[Interval, ...]:
        """What `PairTable.as_json` wrote of one quantity."""
        if self.grids.digits is None:
            ends = np.frombuffer(bytes.fromhex(written), "<f8").reshape(-1, 2)
            return tuple((low, high) for low, high in ends.tolist())
        return tuple((Decimal(low), Decimal(high)) for low, high in written)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
