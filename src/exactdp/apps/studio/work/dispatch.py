"""Every question that a worker can be asked, by its name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

from exactdp.apps.studio.work import overall
from exactdp.apps.studio.work import pair as questions
from exactdp.apps.studio.work import report as reports
from exactdp.apps.studio.work.designs import PlacedError, Record
from exactdp.errors import InvalidInputError

QUESTIONS: dict[str, Callable[[Record], Record]] = {
    "parse": questions.parse,
    "check": questions.check,
    "export": questions.export,
    "pair": questions.pair,
    "convert": questions.convert,
    "calibrate": questions.calibrated,
    "certify": questions.certificate,
    "table": questions.table,
    "report": reports.report,
    "overall_plan": overall.plan,
    "overall_part": overall.part,
}

_FIELD = re.compile(r"(?:A grid of )?(epsilon|delta|alpha|beta|advantage|scale|rho|grid|digits)s?\b")


def answered(name: str, question: Record) -> Record:
    """The answer to one question; what the library warns of is put into its remarks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = QUESTIONS[name](question)
        except PlacedError:
            raise
        except InvalidInputError as error:
            field = _FIELD.match(str(error))
            raise PlacedError(str(error), field=field[1]) if field else error from None
    remarks = [*answer.get("remarks", []), *(str(w.message) for w in caught)]
    return {**answer, "remarks": list(dict.fromkeys(remarks))}
