"""Long runs: workers of every kind give the same bits, killed ones change nothing, and a stopped run goes on where it was."""

from __future__ import annotations

import os
import signal
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import exactdp
from exactdp.census.grids import Grids
from exactdp.census.journal import Journal
from exactdp.census.pair_results import PairResult, run
from exactdp.census.study import Study
from exactdp.census.sweeps import SweptDesign, sweep
from exactdp.census.workers import Cluster, Cores, Runner, Serial, make_runner
from exactdp.errors import MissingExtraError
from small_release import SMALL

GRIDS = Grids.read(["1/2", "3"], ["1e-6"], ["0.05"])


def results(runner: Runner) -> dict[tuple[int, int], PairResult]:
    with runner:
        return {r.pair: r for part in run(SMALL, GRIDS, runner, SMALL.pairs) for r in part}


@pytest.fixture(scope="module")
def serial() -> dict[tuple[int, int], PairResult]:
    return results(Serial())


class _DiesOnce:
    """A task that kills its process the first time that any process comes to item 3."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __call__(self, item: int) -> int:
        if item == 3 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item * item


def test_parts_cores_and_cluster_give_the_same_bits(serial: dict[tuple[int, int], PairResult]) -> None:
    assert results(Serial(in_small_parts=True)) == serial
    assert results(make_runner(2)) == serial
    assert results(make_runner(2, "local")) == serial


def test_in_balls_on_two_cores() -> None:
    grids = Grids.read(["3"], digits=25)
    with Cores(2) as two:
        found = {r.pair: r for part in run(SMALL, grids, two, SMALL.pairs) for r in part}
    assert tuple(found[p] for p in SMALL.pairs) == SMALL.account(["3"], digits=25).results


@pytest.mark.posix
@pytest.mark.parametrize("kind", ["cores", "cluster"])
def test_a_killed_worker_changes_nothing(kind: str, tmp_path: Path) -> None:
    mark = tmp_path / "killed"
    with Cores(2) if kind == "cores" else Cluster("local", 2) as runner:
        assert sorted(runner.map(_DiesOnce(mark), range(8))) == [i * i for i in range(8)]
    assert mark.exists()


def test_jobs_and_addresses_are_checked() -> None:
    with pytest.raises(exactdp.InvalidInputError, match=r"jobs must be a whole number of at least 1\. Found 0"):
        make_runner(0)
    with pytest.raises(exactdp.InvalidInputError, match="No dask scheduler could be reached at nowhere"):
        Cluster("nowhere")


def test_without_dask_the_install_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'exactdp\[cluster\]'"):
        Cluster("local")


def test_a_stopped_run_goes_on(tmp_path: Path, serial: dict[tuple[int, int], PairResult]) -> None:
    journal = Journal.open(tmp_path / "new" / "folder", SMALL, GRIDS)
    assert journal.finished() == {}
    half = list(serial.values())[:4]
    journal.add(half[:2])
    journal.add(half[2:])
    assert Journal.open(tmp_path / "new" / "folder", SMALL, GRIDS).finished() == {r.pair: r for r in half}
    # a line that was cut off by a crash, a line that was altered, and a line of nonsense
    with journal.path.open("ab") as file:
        file.write(b'deadbeef [{"pair"')
    journal.add([list(serial.values())[4]])
    text = journal.path.read_text()
    journal.path.write_text(text.replace('"pair": [1, 1]', '"pair": [1, 9]', 1) + "\n\xff nonsense\n")
    found = journal.finished()
    assert list(serial.values())[4].pair in found
    assert (1, 1) not in found
    assert all(found[pair] == serial[pair] for pair in found)


def test_other_questions_have_other_journals(tmp_path: Path) -> None:
    paths = {
        Journal.open(tmp_path, release, grids).path
        for release, grids in [
            (SMALL, GRIDS),
            (SMALL.scaled(2), GRIDS),
            (SMALL, Grids.read(["1/2"], ["1e-6"], ["0.05"])),
            (SMALL, Grids.read(["1/2", "3"], ["1e-6"], ["0.05"], digits=20)),
        ]
    }
    assert len(paths) == 4


def test_decimals_survive_the_journal(tmp_path: Path) -> None:
    study = SMALL.account(["3"], digits=30)
    journal = Journal.open(tmp_path, SMALL, study.grids)
    journal.add(study.results)
    assert Study(SMALL, study.grids, tuple(journal.finished()[p] for p in SMALL.pairs)) == study


def test_sweeps_are_the_same_on_two_cores() -> None:
    designs = [SweptDesign(SMALL, Fraction(f)) for f in ("0.5", "1", "1.5")]
    deltas = [Fraction(1, 1000), Fraction(1, 10**8)]
    one = {rows[0].design: rows for rows in sweep(designs, deltas, Serial())}
    with Cores(2) as runner:
        two = {rows[0].design: rows for rows in sweep(designs, deltas, runner)}
    assert one == two
    assert one[designs[0]][0].epsilon[0] > one[designs[1]][0].epsilon[1] > one[designs[2]][0].epsilon[1]
    study = SMALL.account()
    assert one[designs[1]][1].epsilon == tuple(study.epsilon_bounds("1e-8"))
