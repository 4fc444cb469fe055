"""Every question that a worker can be asked, by its name; the first line of each is what the API says about it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from exactdp.apps.studio.work import designs, exchange, overall, pair, tools
from exactdp.apps.studio.work.designs import Record
from exactdp.arithmetic_state import steady


class Kind(NamedTuple):
    """A kind of question: what answers it, and how long that is expected to take, which affects waiting only."""

    answer: Callable[[Record], Mapping[str, Any]]
    usual: Literal["short", "long", "report"] = "short"
    is_long: Callable[[Record], bool] = lambda _: False
    """Whether one that is usually short is long by its size."""

    def length(self, question: Record) -> str:
        """How long this one is planned to be."""
        return "long" if self.is_long(question) else self.usual


QUESTIONS = {
    "parse": Kind(designs.parse, is_long=designs.is_long_file),
    "check": Kind(designs.check),
    "export": Kind(designs.export),
    "pair": Kind(pair.pair, is_long=pair.is_long_pair),
    "convert": Kind(tools.convert),
    "calibrate": Kind(tools.calibrated, "long"),
    "certify": Kind(tools.certificate, "long"),
    "exchange": Kind(exchange.exchange, "long"),
    "hold": Kind(exchange.hold, "long"),
    "optimize": Kind(exchange.optimized, "long"),
    "trade": Kind(exchange.trade, "long"),
    "frontier": Kind(exchange.frontier, "long"),
    "verify": Kind(tools.verified, "long"),
    "table": Kind(tools.table, "long"),
    "report": Kind(tools.report, "report"),
    "overall_plan": Kind(overall.plan, "long"),
    "overall_part": Kind(overall.part, "long"),
}


@steady
def answered(name: str, question: Record) -> Record:
    """The answer to one question; what the library warns of is put into its remarks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = QUESTIONS[name].answer(question)
    remarks = [*answer.get("remarks", []), *(str(w.message) for w in caught)]
    return {**answer, "remarks": list(dict.fromkeys(remarks))}
