"""The report: one self-contained HTML file about a release, for those who decide and those who check.

`build` renders a study with its summary; `exactdp report` and `exactdp census` write it. Everything shown is asked of the
library; `content` gathers it, the other modules only set it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from exactdp.apps.report.content import gather
from exactdp.apps.report.decision import MemoQuestion
from exactdp.apps.report.page import render
from exactdp.arithmetic_state import steady
from exactdp.census.grids import Grids
from exactdp.census.releases import Release
from exactdp.census.runners import Runner
from exactdp.census.study import Study, run_study
from exactdp.census.summary import Summary
from exactdp.numbers import Number

if TYPE_CHECKING:
    from exactdp.optimize.best_design import BestDesign

__all__ = ["build"]


def study_for_report(
    release: Release, grids: Grids, runner: Runner, done: Callable[[int], None] = lambda count: None
) -> Study:
    """The study that a report needs: every pair at every delta. Trade-off curves are asked of all pairs together, not of each."""
    found = run_study(release, replace(grids, alphas=()), runner, done=done)
    return Study(release, grids, found.results)


@steady
def build(
    study: Study,
    summary: Summary,
    *,
    delta: Number | None = None,
    digits: int = 10,
    date: str | None = None,
    charts: bool = True,
    against: Mapping[str, Release | BestDesign] | None = None,
    within: Number | None = None,
    typical: Mapping[str, Number] | None = None,
) -> str:
    """The report on a study as one HTML document; the same arguments give the same text.

    `delta`, one of the study's deltas, is that of the headline (default: the one at which the summary looks at the levels, or
    else the smallest). `digits` are those of the certificates. `date` is a text for the masthead; none is shown unless given.
    Charts need the extra `plots`.

    For the memo: other designs by their names (`against`; also what `optimize.best` found), the epsilon that may be spent
    (`within`; then the option with the smallest margin at the lowest level is recommended, else the one with the least epsilon,
    in both cases among those with the same neighbours and answers), and a typical count of some levels (`typical`), against which
    margins are judged (default: people by area on average, for designs of the 2020 Census).
    """
    return render(gather(study, summary, delta, digits, date, MemoQuestion(against, within, typical)), charts)
