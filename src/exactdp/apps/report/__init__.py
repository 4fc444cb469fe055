"""The report: one self-contained HTML file about a release, for those who decide and those who check.

`build` renders a study with its summary; `exactdp report` and `exactdp census` write it. Everything shown is asked of the
library; `content` gathers it, the other modules only set it.
"""

from __future__ import annotations

from collections.abc import Mapping

from exactdp.apps.report.content import MemoQuestion, gather
from exactdp.apps.report.page import render
from exactdp.arithmetic_state import steady
from exactdp.census.releases import Release
from exactdp.census.study import Study
from exactdp.census.summary import Summary
from exactdp.numbers import Number

__all__ = ["build"]


@steady
def build(
    study: Study,
    summary: Summary,
    *,
    delta: Number | None = None,
    digits: int = 10,
    date: str | None = None,
    charts: bool = True,
    against: Mapping[str, Release] | None = None,
    within: Number | None = None,
    typical: Mapping[str, int] | None = None,
) -> str:
    """The report on a study as one HTML document; the same arguments give the same text.

    `delta`, one of the study's deltas, is that of the headline (default: the one at which the summary looks at the levels, or
    else the smallest). `digits` are those of the certificates. `date` is a text for the masthead; none is shown unless given.
    Charts need the extra `plots`.

    For the memo: other designs by their names (`against`), the epsilon that may be spent (`within`; then the option with the
    smallest margin at the lowest level is recommended, else the one with the least epsilon), and a typical count of some levels
    (`typical`), against which margins are judged.
    """
    return render(gather(study, summary, delta, digits, date, MemoQuestion(against, within, typical)), charts)
