"""What a campaign counts: trials, and what went wrong in which."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Trials made, and one sentence for each that went wrong, with the seed that repeats it."""

    trials: int = 0
    wrong: list[str] = field(default_factory=list)

    def check(self, holds: bool, otherwise: str) -> None:
        """One more trial."""
        self.trials += 1
        if not holds:
            self.wrong.append(otherwise)

    @staticmethod
    def total(parts: Iterable[Tally]) -> Tally:
        whole = Tally()
        for part in parts:
            whole.trials += part.trials
            whole.wrong += part.wrong
        return whole


@dataclass(frozen=True)
class Campaign:
    """A family of faults: what is tried from one seed, from how many seeds, and in words."""

    trial: Callable[[int], Tally]
    seeds: int
    words: str
