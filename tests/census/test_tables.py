"""The files of a study: every bound in them is a true claim as the decimal that is written, and reads back as the same double."""

from __future__ import annotations

import csv
import io
import json
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from exactdp.apps.figures.style import new_figure, write_figure
from exactdp.census.runners import Serial
from exactdp.census.summary import summarize
from exactdp.census.tables import numeric_csv, write_study
from exactdp.errors import InvalidInputError
from small_release import SMALL


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_what_is_written_is_proved(tmp_path: Path) -> None:
    study = SMALL.account(epsilons=["10/3"], deltas=["1/3"], alphas=["0.05"])
    write_study(study, summarize(study, Serial(), study.grids.deltas[0]), tmp_path)
    rows = read((tmp_path / "pairs.csv").read_text())
    assert len(rows) == len(study.results) * 3
    for row in rows:
        assert float(row["at"]) == float(Fraction(row["at_exact"]))
        result = study.result((int(row["k"]), int(row["l"])))
        own = dict(zip(study.grids.by_quantity[row["quantity"]], getattr(result, row["quantity"]), strict=True))
        low, high = own[Fraction(row["at_exact"])]
        assert (float(row["lower"]), float(row["upper"])) == (low, high)
        assert Decimal(row["lower"]) <= Decimal(low)
        assert Decimal(row["upper"]) >= Decimal(high)
    for row in rows[::4]:  # every quantity of some pairs, in balls
        pair = study.release.pair(int(row["k"]), int(row["l"]))
        exact = getattr(pair, f"{row['quantity']}_bounds")(Fraction(row["at_exact"]), digits=16)
        assert Fraction(Decimal(row["lower"])) <= Fraction(exact.lower)
        assert Fraction(Decimal(row["upper"])) >= Fraction(exact.upper)
    assert {row["quantity"] for row in rows[::4]} == set(study.grids.by_quantity)
    for row in read((tmp_path / "overall.csv").read_text()):
        largest = getattr(study, f"{row['quantity']}_bounds")(Fraction(row["at_exact"]))
        assert Decimal(row["lower"]) <= Decimal(largest.upper)
        assert Decimal(row["upper"]) >= Decimal(largest.lower)
    for row in read((tmp_path / "tradeoff.csv").read_text())[::40]:
        assert Decimal(row["beta_lower"]) <= Decimal(study.beta_bounds(Fraction(Decimal(row["alpha"]))).upper)
    assert json.loads((tmp_path / "study.json").read_text())["release"] == "small"


def test_bounds_are_safe_as_decimals() -> None:
    rng = random.Random(5)
    values = [rng.uniform(-1, 1) * 10 ** rng.randint(-300, 300) for _ in range(2000)]
    rows = read(numeric_csv(("lower", "upper", "other"), [(x, x, x) for x in values]))
    for x, row in zip(values, rows, strict=True):
        assert Decimal(row["lower"]) <= Decimal(x) <= Decimal(row["upper"])
        assert {float(text) for text in row.values()} == {x}


def test_no_fraction_stands_in_a_column_of_numbers() -> None:
    text = numeric_csv(("name", "at", "upper"), [("a", Fraction(1, 3), 0.5), ("b", Fraction(1, 10**8), None)])
    assert text == "name,at,at_exact,upper\na,0.3333333333333333,1/3,0.5\nb,1e-8,1/100000000,\n"
    assert numeric_csv(("at",), [(Fraction(1, 4),)]) == "at\n0.25\n"


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_the_ending_of_a_figure_is_honoured(ending: str, start: bytes, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"a.{ending.upper()}"
    write_figure(path, new_figure(1, 1))
    assert path.read_bytes().startswith(start)
    with pytest.raises(InvalidInputError, match=r"\.png, \.pdf or \.svg file\. Found a\.jpg"):
        write_figure(tmp_path / "a.jpg", new_figure(1, 1))
