"""Counts are confidential: no error shows one, nor has another error behind it that does."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from typer.testing import CliRunner

from exactdp import census
from exactdp.apps import cli
from exactdp.apps.release.counts import parse_counts, read_counts
from exactdp.errors import InvalidInputError
from exactdp.interop.opendp import add_noise, opendp_noise

SECRET = "73311"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "survey.toml").write_text('[levels.Nation]\nsex = "1/2"\n')
    return tmp_path


@pytest.fixture
def allocation(folder: Path) -> census.Allocation:
    return census.read_budget(folder / "survey.toml").allocations[1]


@pytest.mark.parametrize(
    "text",
    [
        f"level,query,cell,count\nNation,sex,female,{SECRET}.5\n",
        f"level,query,cell,count\nNation,sex,female,-{SECRET}\n",
        f"level,query,cell,count\nNation,sex,female,\x1c{SECRET}\n",
        f"level,query,cell,count\nNation,sex,female,{SECRET}\x00\n",
        f"level,query,cell,count\nNation,sex,female,{SECRET}{'0' * 18}\n",
        f"level,query,cell,count\nNation,sex,female,\u0663{SECRET}\n",
        f"level,query,cell,count\nNation,sex,{SECRET},1\nNation,sex,{SECRET},1\n",
        f"level,query,cell,count\n{SECRET},sex,Nation,1\n",
        f"level,query,cell,count\nNation,{SECRET},female,1\n",
        f"level,query,cell,count\nNation,sex,0-17, female,{SECRET}\n",
        f"level,query,cell,count\nNation,sex,{SECRET}\n",
        f'level,query,cell,count\nNation,sex,"female"{SECRET},1\n',
        f'level,query,cell,count\nNation,sex,"female,{SECRET}\n',
        f"Nation,sex,female,{SECRET}\n",
        f"level,query,count,{SECRET},{SECRET}\n",
        f"level,query,cell,count\nNation,sex,female,{SECRET}\udcff\n",
    ],
)
def test_no_error_shows_what_is_in_a_table_of_counts(text: str, folder: Path, allocation: census.Allocation) -> None:
    """Neither the sentence nor any error behind it, of which a traceback or a log could show everything."""
    with pytest.raises(InvalidInputError) as caught:
        parse_counts(text, allocation)
    _shows_nothing(caught.value)
    (folder / "counts.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidInputError) as caught:
        read_counts(folder / "counts.csv", allocation)
    _shows_nothing(caught.value)
    pytest.importorskip("opendp")
    inputs = [str(folder / "counts.csv"), str(folder / "survey.toml")]
    result = CliRunner().invoke(cli.app, ["release", *inputs, "-o", str(folder / "noisy.csv")])
    assert result.exit_code == 2
    assert SECRET not in result.output
    assert result.stderr.count("\n") == 1


def test_no_error_shows_a_count_that_gets_noise() -> None:
    for value in (f"{SECRET}.5", float(SECRET) + 0.5, int(SECRET) << 62, f"{SECRET}x"):
        with pytest.raises(InvalidInputError, match=r"at \[1\]") as caught:
            add_noise([1, value], 1)  # type: ignore[list-item]
        _shows_nothing(caught.value)
    pytest.importorskip("opendp")
    with pytest.raises(InvalidInputError, match="64 bits") as caught:
        opendp_noise([1, int(SECRET) << 62], 1.0)
    _shows_nothing(caught.value)


def _shows_nothing(error: BaseException) -> None:
    chain: list[BaseException] = [error]
    while (last := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(last)
    for one in chain:
        assert SECRET not in repr(one)
        assert SECRET not in "".join(traceback.format_exception_only(one))
        assert not hasattr(one, "object"), "an error of a codec holds all that it read"


def test_counts_given_for_a_budget_are_not_shown(folder: Path) -> None:
    pytest.importorskip("opendp")
    wrong, output = folder / "wrong.csv", str(folder / "n.csv")
    for text in (f"level,{SECRET}\nNation,-{SECRET}\n", f"{SECRET},1\n", f"level,query,count\nNation,sex,{SECRET}\n"):
        wrong.write_text(text)
        result = CliRunner().invoke(cli.app, ["release", str(wrong), str(wrong), "-o", output])
        assert result.exit_code == 2
        assert "DESIGN must be a budget file" in result.stderr
        assert SECRET not in result.output
