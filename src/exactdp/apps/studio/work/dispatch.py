"""Every question that a worker can be asked, by its name; the first line of each is what the API says about it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from exactdp.apps.studio.work import designs, overall, pair, tools
from exactdp.apps.studio.work.designs import Record

QUESTIONS: dict[str, Callable[[Record], Mapping[str, Any]]] = {
    "parse": designs.parse,
    "check": designs.check,
    "export": designs.export,
    "pair": pair.pair,
    "convert": tools.convert,
    "calibrate": tools.calibrated,
    "certify": tools.certificate,
    "table": tools.table,
    "report": tools.report,
    "overall_plan": overall.plan,
    "overall_part": overall.part,
}


def answered(name: str, question: Record) -> Record:
    """The answer to one question; what the library warns of is put into its remarks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = QUESTIONS[name](question)
    remarks = [*answer.get("remarks", []), *(str(w.message) for w in caught)]
    return {**answer, "remarks": list(dict.fromkeys(remarks))}
