"""The journal: a stopped run goes on where it was, and no line is used that this question and this code did not write."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactdp import version
from exactdp.accounting.pairs import Pairs
from exactdp.census import journal as journals
from exactdp.census import pair_results
from exactdp.census.grids import Grids
from exactdp.census.journal import Journal
from exactdp.census.pair_results import PairResult, PairTable, sound
from exactdp.census.runners import Serial
from exactdp.census.study import Study, run_study
from exactdp.errors import AccuracyError, InvalidInputError
from small_release import SMALL

GRIDS = Grids.read(["1/2", "3"], ["1e-6"], ["0.05"])
Results = dict[tuple[int, int], PairResult]


@pytest.fixture(scope="module")
def results() -> Results:
    return {r.pair: r for r in run_study(SMALL, GRIDS, Serial()).results}


@pytest.fixture
def journal(tmp_path: Path, results: Results) -> Journal:
    """Six of ten pairs in three lines."""
    made = Journal.open(tmp_path, SMALL, GRIDS)
    listed = list(results.values())
    for i in (0, 2, 4):
        made.add(listed[i : i + 2])
    return made


def rewritten(journal: Journal, change: Callable[[dict[str, Any]], object]) -> None:
    """The journal with its first line changed by someone who puts the digest of the line right."""
    first, *rest = [line for line in journal.path.read_text().split("\n") if line]
    record = json.loads(first.partition(" ")[2])
    change(record)
    content = json.dumps(record)
    digest = hashlib.sha256(content.encode()).hexdigest()
    journal.path.write_text("\n".join([f"{digest} {content}", *rest, ""]))


@pytest.mark.posix
def test_what_would_be_read_without_end_is_no_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.open(tmp_path, SMALL, GRIDS)
    os.mkfifo(journal.path)
    for put in (lambda: journal.path.symlink_to("/dev/zero"), journal.path.mkdir):
        with pytest.raises(InvalidInputError, match=r"progress-\w+\.jsonl must be a file of at most 2 gigabytes"):
            journal.read()
        journal.path.unlink()
        put()
    journal.path.rmdir()
    journal.path.write_text("long")
    monkeypatch.setattr(journals, "_MOST_BYTES", 3)
    with pytest.raises(InvalidInputError, match="must be a file"):
        journal.read()


def test_a_stopped_run_goes_on(tmp_path: Path, results: Results) -> None:
    journal = Journal.open(tmp_path / "new" / "folder", SMALL, GRIDS)
    assert journal.read() == journals.Finished()
    half = list(results.values())[:4]
    journal.add(half[:2])
    journal.add(half[2:])
    again = Journal.open(tmp_path / "new" / "folder", SMALL, GRIDS).read()
    assert again.results == {r.pair: r for r in half}
    assert not again.remark("name")
    # a line that was cut off by a crash, a line that was altered, and a line of nonsense
    with journal.path.open("ab") as file:
        file.write(b'deadbeef [{"pair"')
    journal.add([list(results.values())[4]])
    text = journal.path.read_text()
    journal.path.write_text(text.replace('"pair": [1, 1]', '"pair": [1, 9]', 1) + "\n\xff nonsense\n")
    found = journal.read()
    assert found.set_aside == {"cut off or altered": 3}
    assert set(found.results) == {r.pair for r in list(results.values())[2:5]}
    assert all(found.results[pair] == results[pair] for pair in found.results)


def test_a_run_in_slices_of_its_grids_goes_on(
    tmp_path: Path, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs that share contours are asked together, for a few arguments at a time; each slice has a journal."""
    monkeypatch.setattr(Pairs, "region", lambda pairs, epsilon: ("its own", epsilon))
    journal = Journal.open(tmp_path, SMALL, GRIDS)
    done: list[int] = []
    runner = Serial(in_small_parts=True)
    assert run_study(SMALL, GRIDS, runner, journal, done.append).results == tuple(results.values())
    assert done == [0, 10, 10, 10, 10]
    found = sorted(tmp_path.glob("progress-*.jsonl"))
    assert len(found) == 4
    found[0].unlink()
    done.clear()
    told: list[str] = []
    assert run_study(SMALL, GRIDS, runner, journal, done.append, told.append).results == tuple(results.values())
    assert done == [30, 10]
    assert told == ["30 of 40 bounds of pairs were finished before."]


def test_slices_are_put_together_in_the_order_of_the_grids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments that ask at about the same epsilon are asked together, whatever their kind and order; one may come twice."""
    grids = Grids.read(["3", "1/2", "5", "1/2"], ["1e-9", "1e-2"], ["0.3", "0.001"])
    whole = run_study(SMALL, grids, Serial()).results
    region = Pairs.region
    together = pair_results.slices(SMALL, grids)
    engine = pair_results.overall_of(SMALL).pairs
    regions = [{region(engine, e) for e in one.epsilons} for one in together]
    assert sum(map(len, regions)) == len(set().union(*regions)) > 1  # contours are planned for one slice only
    monkeypatch.setattr(Pairs, "region", lambda pairs, epsilon: ("its own", epsilon))
    asked = pair_results.slices(SMALL, grids)
    assert sum(one.size for one in asked) == grids.size
    assert len(asked) == 7  # one half comes twice
    assert [bool(one.alphas) for one in asked] == [True] * 2 + [False] * 5  # what takes the longest first
    assert run_study(SMALL, grids, Serial(in_small_parts=True), Journal.open(tmp_path, SMALL, grids)).results == whole


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


@pytest.mark.parametrize(
    ("release", "grids"),
    [
        (SMALL.scaled(2), GRIDS),
        (replace(SMALL, bypassed={**SMALL.bypassed, 2: ("Block",), 3: ("State",)}), GRIDS),
        (SMALL, Grids.read(["1/2", "4"], ["1e-6"], ["0.05"])),
        (SMALL, replace(GRIDS, digits=20)),
    ],
)
def test_a_journal_copied_onto_the_name_of_another_is_not_used(journal: Journal, release: Any, grids: Grids) -> None:
    other = Journal.open(journal.path.parent / "other", release, grids)
    shutil.copy(journal.path, other.path)
    assert other.read() == journals.Finished({}, journals.Counter({"of another question": 3}))


def test_lines_of_other_code_are_set_aside_until_it_comes_back(
    journal: Journal, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same number with another digest is other code; so is another NumPy. The lines stay in the file."""
    before = journal.path.read_bytes()
    for name, other in (("exactdp", f"{version.BASE}+src0123456789ab"), ("numpy", "1.0"), ("python-flint", "0.1")):
        with monkeypatch.context() as changed:
            theirs = {**version.computed_with(), name: other}
            changed.setattr(version, "computed_with", lambda theirs=theirs: theirs)
            changed.setattr(journals, "computed_with", lambda theirs=theirs: theirs)
            found = journal.read()
            assert not found.results
            assert re.fullmatch(rf"computed with {name} \S+ \(here {re.escape(other)}\)", next(iter(found.set_aside)))
            journal.add(results.values())
            assert journal.read().results == results
    assert journal.path.read_bytes().startswith(before)
    assert journal.read().results == dict(list(results.items())[:6])


def test_lines_of_the_first_version_are_set_aside(journal: Journal) -> None:
    content = json.dumps(
        [{"pair": [1, 1], "delta": [["0.1", "0.2"]] * 2, "epsilon": [["1", "2"]], "beta": [["0", "1"]]}]
    )
    digest = hashlib.sha256(content.encode()).hexdigest()
    with journal.path.open("a") as file:
        file.write(f"\n{digest} {content}\n")
    assert journal.read().set_aside == {"of another version's form": 1}


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("delta", ["nan", "0.5"]),
        ("delta", ["0.1", "nan"]),
        ("delta", ["0.5", "0.4"]),
        ("delta", ["-0.1", "0.4"]),
        ("delta", ["0.1", "1.1"]),
        ("beta", ["0.1", "inf"]),
        ("beta", ["-inf", "0.5"]),
        ("epsilon", ["2", "1"]),
        ("epsilon", ["inf", "inf"]),
        ("epsilon", ["-inf", "-inf"]),
        ("epsilon", ["nan", "nan"]),
        ("epsilon", ["1"]),
        ("epsilon", [[], {}]),
    ],
)
@pytest.mark.parametrize("digits", [None, 20])
def test_what_is_no_bound_is_refused(
    tmp_path: Path, results: Results, name: str, bounds: list[str], digits: int | None
) -> None:
    journal = Journal.open(tmp_path, SMALL, replace(GRIDS, digits=digits))
    journal.add(results.values())
    rewritten(journal, lambda record: put_first(record["results"][3], name, bounds, digits))
    assert journal.read() == journals.Finished({}, journals.Counter({"without valid bounds": 1}))


def put_first(result: dict[str, Any], name: str, bounds: list[Any], digits: int | None) -> None:
    """Others in place of the first bounds of a quantity, in the form that a journal has: of doubles the bytes."""
    if digits is not None:
        result[name][0] = bounds
    elif all(isinstance(x, str) for x in bounds):
        result[name] = np.array([float(x) for x in bounds]).tobytes().hex() + result[name][32:]
    else:
        result[name] = bounds


@pytest.mark.parametrize("form", ["", "0", "zz", "00" * 8, None, 7, [], [["0.1", "0.2"]]])
def test_doubles_in_another_form_are_refused(journal: Journal, form: object) -> None:
    rewritten(journal, lambda record: record["results"][0].__setitem__("delta", form))
    assert journal.read().set_aside == {"without valid bounds": 1}


@pytest.mark.parametrize("pair", [[1, 4], [2, 1], [1], [1, 2, 3], ["1", "1"], [[1], 1], None])
def test_pairs_that_the_release_does_not_have_are_refused(journal: Journal, pair: object) -> None:
    rewritten(journal, lambda record: record["results"][0].__setitem__("pair", pair))
    assert journal.read().set_aside == {"without valid bounds": 1}


@pytest.mark.parametrize("form", [None, 7, "abc", [7], [[]], [{}], {"pair": 1}])
def test_forms_that_no_version_writes_are_refused(journal: Journal, form: object) -> None:
    rewritten(journal, lambda record: record.__setitem__("results", form))
    assert journal.read().set_aside == {"without valid bounds": 1}


def test_what_was_set_aside_is_told_in_one_sentence(
    journal: Journal, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_results, "_shares", lambda release: False)  # one journal for all of it
    rewritten(journal, lambda record: record.__setitem__("question", "another"))
    with journal.path.open("a") as file:
        file.write("cut o")
    told: list[str] = []
    study = run_study(SMALL, GRIDS, Serial(), journal, warned=told.append)
    assert study.results == tuple(results[pair] for pair in SMALL.pairs)
    assert told == [
        f"{journal.path.name}: 2 lines were set aside (1 cut off or altered, 1 of another question); "
        "nothing was deleted, and the pairs are done again."
    ]
    assert journal.read().results == results


UNSOUND: dict[str, list[tuple[tuple[float, float], ...]]] = {
    "delta": [((0.5, 0.4), (0.0, 1.0)), ((0.1, 0.2), (0.0, 1.1)), ((-0.1, 0.2), (0.0, 1.0))],
    "beta": [((math.nan, 1.0),), ((0.0, math.nan),), ((0.0, 1.0), (0.0, 1.0))],
    "epsilon": [(), ((math.inf, math.inf),), ((-math.inf, -math.inf),)],
}


@pytest.mark.parametrize(("name", "bounds"), [(name, each) for name, several in UNSOUND.items() for each in several])
def test_what_is_no_bound_stops_the_run(results: Results, name: str, bounds: tuple[tuple[float, float], ...]) -> None:
    """Pair by pair, as the journal has them, and in a table, as workers send it."""
    result = next(iter(results.values()))
    assert sound(result, GRIDS) is result
    with pytest.raises(AccuracyError, match=name):
        sound(replace(result, **{name: bounds}), GRIDS)
    table = PairTable.of(list(results.values()), GRIDS)
    assert table.sound(GRIDS) is table
    assert table == tuple(results.values())
    ends = np.array([[i[0] for i in bounds]]), np.array([[i[1] for i in bounds]])
    of_one = {n: (low[:1], high[:1]) for n, (low, high) in table.bounds.items()}
    with pytest.raises(AccuracyError, match=name):
        PairTable(table.pairs[:1], {**of_one, name: ends}).sound(GRIDS)


def test_decimals_survive_the_journal(tmp_path: Path) -> None:
    study = SMALL.account(["3"], digits=30)
    journal = Journal.open(tmp_path, SMALL, study.grids)
    journal.add(study.results)
    assert Study(SMALL, study.grids, tuple(journal.read().results[p] for p in SMALL.pairs)) == study


def test_a_full_disk_names_the_journal(tmp_path: Path, results: Results) -> None:
    journal = replace(Journal.open(tmp_path, SMALL, GRIDS), path=Path("/dev/full"))
    if not journal.path.exists():
        pytest.skip("there is no device that is always full")
    with pytest.raises(OSError, match=r"/dev/full"):
        journal.add(results.values())
