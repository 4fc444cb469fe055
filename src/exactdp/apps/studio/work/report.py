"""The HTML report of a design, as `exactdp report` writes it, with the deltas that were asked for."""

from __future__ import annotations

from importlib.util import find_spec

from exactdp.apps.studio.work.designs import Record, TextFile, file_stem, read_grids, release_of
from exactdp.census.grids import ALPHAS, Grids
from exactdp.census.study import make_study
from exactdp.census.summary import summarize
from exactdp.census.workers import Serial


def report(question: Record) -> TextFile:
    """The HTML report of the design as one self-contained file; takes up to a minute."""
    from exactdp.apps.report import build

    release = release_of(question["design"])
    headline = read_grids(deltas=[question["delta"]]).deltas[0]
    deltas = sorted({*read_grids(deltas=question["deltas"]).deltas, headline}, reverse=True)
    study = make_study(release, Grids.read(deltas=deltas, alphas=ALPHAS))
    summary = summarize(study, Serial(), headline)
    text = build(study, summary, delta=headline, charts=find_spec("matplotlib") is not None)
    return {"text": text, "file_name": f"{file_stem(release.name)}-report.html"}
