"""Long runs: workers of every kind give the same bits, killed ones change nothing, and a stopped run goes on where it was."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from joblib.externals.loky import get_reusable_executor

import exactdp
import long_runs
from exactdp.census import cores, runners, workers
from exactdp.census.cores import Cores
from exactdp.census.grids import Grids
from exactdp.census.pair_results import PairResult
from exactdp.census.runners import Runner, Serial
from exactdp.census.study import run_study
from exactdp.census.sweeps import SweptDesign, sweep
from exactdp.census.workers import Cluster, make_runner
from exactdp.errors import MissingExtraError, WorkersError
from small_release import SMALL
from worker_tasks import ChangesItsCode, DiesAlways, DiesOnce, FailsElsewhere

GRIDS = Grids.read(["1/2", "3"], ["1e-6"], ["0.05"])


def results(runner: Runner) -> dict[tuple[int, int], PairResult]:
    return {r.pair: r for r in run_study(SMALL, GRIDS, runner).results}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """For tests that leave its workers as they are."""
    with make_runner(2, "local") as runner:
        assert isinstance(runner, Cluster)
        yield runner


@pytest.fixture(scope="module")
def serial() -> dict[tuple[int, int], PairResult]:
    return results(Serial())


def test_parts_cores_and_cluster_give_the_same_bits(
    serial: dict[tuple[int, int], PairResult], cluster: Cluster
) -> None:
    assert results(Serial(in_small_parts=True)) == serial
    assert results(make_runner(2)) == serial
    assert results(cluster) == serial


def test_an_interrupt_is_dealt_with_by_this_process_and_not_by_workers(cluster: Cluster) -> None:
    """Ctrl-C reaches all of them."""
    assert list(cluster._client.run(signal.getsignal, signal.SIGINT).values()) == [signal.SIG_IGN] * 2


def test_in_balls_on_two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_ALONE", 0.0)  # the other process may come in time for some of it
    grids = Grids.read(["3"], digits=25)
    with Cores(2) as two:
        found = run_study(SMALL, grids, two).results
    assert found == SMALL.account(["3"], digits=25).results


def test_short_work_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: object) -> None:
        raise AssertionError("a process was to be started")

    monkeypatch.setattr(cores._Crew, "hire", refused)
    with Cores(2) as two:
        assert list(two.map(str, range(3))) == ["0", "1", "2"]


def test_processes_are_started_as_soon_as_the_first_of_many_items_shows_that_they_are_worth_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, clock = list[int](), [0.0]

    def worked(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr(time, "process_time", lambda: clock[0])
    monkeypatch.setattr(cores._Crew, "hire", lambda crew: started.append(len(crew._todo)))
    with Cores(2) as two:
        list(two.map(worked, [cores._WORTH / 4] * 4))
        assert not started  # the first takes a quarter of that, and leaves three
        list(two.map(worked, [cores._WORTH / 4] * 6))
        assert started[0] == 5


def test_an_error_of_a_task_here_or_elsewhere_is_raised_here(tmp_path: Path) -> None:
    with Cores(2) as two, pytest.raises(ZeroDivisionError):
        list(two.map(FailsElsewhere(tmp_path / "failed"), range(8), is_long=True))
    with Cores(2) as two, pytest.raises(TypeError):
        list(two.map(len, [3]))  # type: ignore[list-item]


@pytest.mark.posix
@pytest.mark.parametrize("kind", ["cores", "cluster"])
def test_a_killed_worker_changes_nothing(kind: str, tmp_path: Path) -> None:
    mark = tmp_path / "killed"
    with Cores(2) if kind == "cores" else Cluster("local", 2) as runner:
        assert sorted(runner.map(DiesOnce(mark), range(8), is_long=True)) == [i * i for i in range(8)]
    assert mark.exists()


@pytest.mark.parametrize("kind", ["cores", pytest.param("cluster", marks=pytest.mark.soak)])
def test_workers_that_are_lost_again_and_again_are_told_in_a_sentence(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runners, "ATTEMPTS", 2)  # each starts processes anew
    said = "in each of 2 attempts" if kind == "cores" else "again and again at the same task"
    with Cores(2) if kind == "cores" else Cluster("local", 2) as runner, pytest.raises(WorkersError, match=said):
        list(runner.map(DiesAlways(tmp_path / "killed"), range(8), is_long=True))


@pytest.mark.parametrize("kind", ["cores", "cluster"])
def test_results_of_other_code_are_refused(kind: str, tmp_path: Path) -> None:
    """Those that join later too: what counts is what comes with the result."""
    named = r"The worker process \d+" if kind == "cores" else r"The worker tcp://\S+"
    said = rf"{named} computes with exactdp 0\.2\.0\.dev0\+srcdoctored \(here {re.escape(exactdp.__version__)}\)"
    with Cores(2) if kind == "cores" else Cluster("local", 2) as runner, pytest.raises(WorkersError, match=said):
        list(runner.map(ChangesItsCode(tmp_path / "changed"), range(8), is_long=True))
    get_reusable_executor().shutdown(kill_workers=True)  # its processes serve other tests


def test_a_cluster_here_keeps_its_memory() -> None:
    with Cluster("local", 1) as runner:
        assert list(runner.map(os.environ.get, ["MALLOC_TRIM_THRESHOLD_"])) == [None]


def test_a_lost_scheduler_is_told_in_a_sentence() -> None:
    runner = Cluster("local", 1)
    found = runner.map(DiesOnce(Path("/")), range(200))
    next(found)
    assert runner._local is not None
    runner._local.close()
    with runner, pytest.raises(WorkersError, match=r"The dask scheduler \(local\) was lost"):
        list(found)


def test_a_cluster_without_workers_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_PATIENCE", 0.2)
    with Cluster("local", 1) as runner:
        assert runner._local is not None
        runner._local.scale(0)
        runner._client.retire_workers(list(runner._client.nthreads()))
        with pytest.raises(WorkersError, match="no worker after 0 seconds"):
            list(runner.map(DiesOnce(Path("/")), range(2)))


def test_a_worker_with_another_source_is_refused(tmp_path: Path) -> None:
    """One whose files differ in a line, whatever number it bears; and one of the first version, which knows no digest."""
    with long_runs.cluster(tmp_path, {"doctored": ("census/pair_results.py", "_CHUNK = 24", "_CHUNK = 23")}) as address:
        told = long_runs.exactdp("census", "--release", "pl94-persons-us", "--dask", address, "-o", str(tmp_path))
    assert told.returncode == 2
    assert told.stdout == ""
    assert re.fullmatch(
        r"loading \.\.\.\n(?:bounds of pairs: [\d,]+ of [\d,]+\n)*"
        r"exactdp: The worker tcp://\S+ computes with exactdp \S+\+src\w{12} \(here exactdp "
        + re.escape(exactdp.__version__)
        + r"\)\. Install the same versions .* goes on from there\.\n",
        told.stderr,
    )
    assert not list(tmp_path.rglob("progress-*"))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are counted in /proc")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.soak)])
def test_workers_end_with_the_run(tmp_path: Path, by: signal.Signals) -> None:
    """And what was finished is there for the next run; nobody has anything to say about it."""
    said = tmp_path / "said"
    run = long_runs.started("census", "--certified", "--no-figures", "--jobs", "2", "-o", str(tmp_path), said=said)
    try:
        journal = long_runs.first_journal(tmp_path, run)
        helpers = long_runs.helpers_of(run)
        run.send_signal(by)
        run.wait()
        assert long_runs.all_end(helpers)
        assert journal.read_bytes().count(b'"results"') >= 1
        assert re.fullmatch(rb"loading \.\.\.\n(bounds of pairs: [\d,]+ of [\d,]+\n)+", said.read_bytes())
    finally:
        run.kill()


def test_a_cluster_that_cannot_be_started_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: object) -> None:
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr("dask.distributed.LocalCluster", refused)
    with pytest.raises(exactdp.InvalidInputError, match=r"started here \(Nanny failed to start\)\. Raise the limits"):
        Cluster("local")


def test_jobs_and_addresses_are_checked() -> None:
    with pytest.raises(exactdp.InvalidInputError, match=r"jobs must be a whole number of at least 1\. Found 0"):
        make_runner(0)
    with pytest.raises(exactdp.InvalidInputError, match="No dask scheduler could be reached at nowhere"):
        Cluster("nowhere")


def test_without_dask_the_install_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'exactdp\[cluster\]'"):
        Cluster("local")


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
