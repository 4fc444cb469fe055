"""A draw is published once: by one of several processes, completely, and what a killed one leaves is recognised."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from campaigns import releases
from exactdp.apps import cli
from exactdp.apps.release.publication import Publication
from exactdp.errors import InvalidInputError

CAMPAIGN = Path(releases.__file__)
TABLE, STATEMENT = "noisy\n1\n", json.dumps({"sha256_of_the_noisy_table": "0"})


def run(folder: Path, *more: str) -> Result:
    return CliRunner().invoke(cli.app, [*releases.arguments(folder), *more])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    releases.fresh(tmp_path / "trial")
    return tmp_path / "trial"


@pytest.mark.parametrize(("what", "count"), [("races", "20"), ("steps", "11")])
def test_the_campaign_in_small(what: str, count: str) -> None:
    """Pairs of processes that race for one name; failures, interrupts and kills at every eleventh call to the system."""
    pytest.importorskip("opendp")
    if sys.platform != "linux":
        pytest.skip("processes are forked, which is safe on Linux only")
    done = subprocess.run([sys.executable, str(CAMPAIGN), what, count], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["pairs" if what == "races" else "faults"] >= 20


def test_who_comes_second_is_refused_before_the_draw_and_leaves_the_first_alone(folder: Path) -> None:
    with Publication(folder / "noisy.csv") as first:
        with pytest.raises(InvalidInputError, match=r"at work, or was stopped .* remove .*noisy\.unfinished"):
            Publication(folder / "noisy.csv").__enter__()
        assert not first.is_published
        first.publish(TABLE, STATEMENT, None)
        assert first.is_published
    assert [path.name for path in first.published] == ["noisy.csv", "noisy.noise.json"]
    assert sorted(releases.outputs(folder)) == ["noisy.csv", "noisy.noise.json"]


def test_who_fails_removes_only_what_it_made(folder: Path) -> None:
    """Another program makes a file of that name meanwhile; it stays, and so does a claim that is no longer ours."""

    def failing() -> None:
        with Publication(folder / "noisy.csv") as publication:
            (folder / "noisy.csv").write_text("another's")
            (folder / "noisy.unfinished").rename(folder / "elsewhere")
            (folder / "noisy.unfinished").write_text("another's")
            publication.publish(TABLE, STATEMENT, "{}")

    with pytest.raises(InvalidInputError, match="must not be there yet"):
        failing()
    (folder / "elsewhere").unlink()
    assert releases.outputs(folder) == {"noisy.csv": b"another's", "noisy.unfinished": b"another's"}


def test_what_a_killed_run_leaves_is_told_apart(folder: Path) -> None:
    pytest.importorskip("opendp")
    assert run(folder).exit_code == 0
    (folder / "noisy.unfinished").write_text("")
    assert "already, completely" in run(folder).stderr
    (folder / "noisy.csv").rename(folder / ".noisy.csv.01234567.part")
    told = run(folder)
    assert told.exit_code == 2
    for name in ("noisy.certificate.json", "noisy.noise.json", ".noisy.csv.01234567.part", "noisy.unfinished"):
        assert name in told.stderr
    assert "nothing was published" in told.stderr


def test_a_release_is_for_its_owner_unless_it_is_shared(folder: Path) -> None:
    pytest.importorskip("opendp")
    old = os.umask(0o022)
    try:
        for more, mode in (([], 0o600), (["--shared"], 0o644)):
            assert run(folder, *more).exit_code == 0
            for name in releases.NAMES:
                assert stat.S_IMODE((folder / name).stat().st_mode) == mode
                (folder / name).unlink()
    finally:
        os.umask(old)
