"""Noise by OpenDP and its audit: formats, refusals, files, the distribution, the certificate, right and wrong samplers."""

from __future__ import annotations

import csv
import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, chi2
from typer.testing import Result

import exactdp.apps.cli.release
import exactdp.apps.release.audit
from command_line import run
from exactdp import ApproximateDP, Composition, DiscreteGaussian, DiscreteLaplace, census, verify
from exactdp.accounting.tradeoff_vertices import tails_at
from exactdp.apps.release import audit as audits
from exactdp.apps.release import noisy_table as noise
from exactdp.apps.release.audit import audit, exact_errors
from exactdp.apps.release.counts import parse_counts
from exactdp.apps.release.noisy_table import release_table
from exactdp.apps.release.publication import check_outputs, output_paths
from exactdp.errors import InvalidInputError, LatticeTooFineError, MissingExtraError
from exactdp.interop import opendp
from exactdp.interop.opendp import add_noise, drawn_sigma2, scale_for
from small_release import SURVEY as DESIGN

COUNTS = """level,query,region,cell,count
Nation,sex,,female,51234
Region,age * sex,North,"0-17, female",4000
Nation,sex,,male,50111
Nation,age * sex,,"0-17, female",9000
Region,age * sex,South,"0-17, female",0
"""
MIXED = Composition({DiscreteGaussian("5/2"): 3, DiscreteGaussian(9, sensitivity=2): 2})


def from_pmf(factor: float = 1.0, seed: int = 1) -> opendp.Sampler:
    """A seeded sampler for tests of the audit: inversion of the probabilities, sigma multiplied by `factor`."""
    generator = np.random.default_rng(seed)

    def sampler(counts: Sequence[int], scale: float) -> list[int]:
        x = np.arange(-math.ceil(12 * scale) - 12, math.ceil(12 * scale) + 13)
        weights = np.exp(-(x**2) / (2 * (factor * scale) ** 2))
        return (np.array(counts) + generator.choice(x, len(counts), p=weights / weights.sum())).tolist()

    return sampler


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "survey.toml").write_text(DESIGN)
    (tmp_path / "counts.csv").write_text(COUNTS)
    return tmp_path


@pytest.fixture
def design(folder: Path) -> census.Release:
    return census.read_budget(folder / "survey.toml")


def release(folder: Path, *more: str, output: str = "noisy.csv") -> Result:
    return run("release", str(folder / "counts.csv"), str(folder / "survey.toml"), "-o", str(folder / output), *more)


@pytest.mark.parametrize("sigma2", ["2", "4", "10/3", "1/1000", "1e18", "9/4", "0.1", "123456789/1000"])
def test_the_scale_is_the_smallest_double_that_is_enough(sigma2: str) -> None:
    scale, wanted = scale_for(sigma2), Fraction(sigma2)
    assert Fraction(scale) ** 2 >= wanted > Fraction(math.nextafter(scale, 0)) ** 2
    assert 0 <= drawn_sigma2(sigma2) / wanted - 1 < Fraction(1, 10**15)


def test_more_discrete_noise_is_not_always_more_private() -> None:
    """Why the guarantee must be that of the noise drawn."""
    assert (1 * DiscreteGaussian("1.001")).delta_bounds("4.5").lower > (1 * DiscreteGaussian(1)).delta("4.5")


def test_a_table_is_read_as_it_is(design: census.Release) -> None:
    table = parse_counts(COUNTS, design.allocations[1])
    assert table.header == ("level", "query", "region", "cell", "count")
    assert table.counts == (51234, 4000, 50111, 9000, 0)
    assert table.places[1] == ("Region", "age * sex")
    assert table.rows[1][3] == "0-17, female"
    spaced = parse_counts(COUNTS.replace("age * sex", " age  *  sex "), design.allocations[1])
    assert spaced.places == table.places


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("Nation,sex,,male", "State,sex,,male", "line 4, column 1"),
        ("Nation,sex,,male", "Nation,race,,male", "line 4, column 2"),
        ("Nation,sex,,male", "Nation,sex,,female", "again in line 4"),
        ("Nation,sex,,male", " Nation , sex,,female ", "again in line 4"),
        ("50111", "50111.5", "something else in line 4, column 5"),
        ("50111", "-3", "line 4, column 5"),
        ("50111", "", "nothing in line 4, column 5"),
        ("50111", "١٢", "in line 4"),
        ("50111", "9" * 19, "in line 4"),
        ("50111", "1,2", "Found 6"),
        ('"0-17, female",9000', "0-17, female,9000", "Found 6"),
        ("Nation,age * sex", "Region,age * sex", "Found none for level Nation, query age * sex"),
        ("cell,count", "cell,number", "count is missing"),
        ("region,cell", "cell,cell", "that of column 3 again in column 4"),
        ("region,cell", "region,", "an empty one in column 4"),
        ("region,cell", "region,noisy", "cannot be called noisy"),
        (COUNTS, "", "Found nothing"),
        ('"0-17, female",0', '"0-17, female,0', "not valid CSV"),
    ],
)
def test_what_is_not_a_table_is_refused_in_one_sentence(design: census.Release, old: str, new: str, named: str) -> None:
    with pytest.raises(InvalidInputError, match=r"Found|not valid") as caught:
        parse_counts(COUNTS.replace(old, new, 1), design.allocations[1])
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_or_biased_opendp_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(opendp.metadata, "version", missing)
    with pytest.raises(MissingExtraError, match=r"exactdp\[opendp\]"):
        add_noise([1], 1)
    monkeypatch.setattr(opendp.metadata, "version", lambda _: "0.14.1")
    with pytest.raises(MissingExtraError, match=r"0\.14\.2 or newer \(found 0\.14\.1"):
        add_noise([1], 1)
    monkeypatch.setattr(opendp.metadata, "version", lambda _: "0.14.2")
    assert noise.opendp_version() == "0.14.2"


@pytest.mark.parametrize("value", [0.5, "x", True, (1 << 62) + 1])
def test_only_whole_counts_get_noise(value: object) -> None:
    with pytest.raises(InvalidInputError):
        add_noise([value], 1)  # type: ignore[list-item]


@pytest.mark.parametrize("sigma2", ["4", "1/2"])
def test_the_noise_has_the_exact_distribution(sigma2: str) -> None:
    pytest.importorskip("opendp")
    n, mechanism = 40_000, DiscreteGaussian(sigma2)
    seen = Counter(value - 7 for value in add_noise([7] * n, sigma2))
    cells = [x for x in range(-60, 61) if n * mechanism.pmf(x) > 10]
    expected = np.array([n * mechanism.pmf(x) for x in cells] + [2 * n * mechanism.tail(cells[-1] + 1)])
    found = np.array([seen[x] for x in cells] + [n - sum(seen[x] for x in cells)])
    assert np.sum((found - expected)[:-1] ** 2 / expected[:-1]) < chi2.isf(1e-9, len(cells))
    assert binom.sf(found[-1] - 1, n, min(expected[-1] / n, 1)) > 1e-9


def test_a_release_and_its_files(folder: Path, design: census.Release) -> None:
    pytest.importorskip("opendp")
    before = (folder / "counts.csv").read_bytes()
    result = release(folder, "--delta", "1e-6", "--digits", "12")
    assert result.exit_code == 0, result.output
    assert (folder / "counts.csv").read_bytes() == before
    rows = list(csv.reader((folder / "noisy.csv").read_text().splitlines()))
    given = list(csv.reader(COUNTS.splitlines()))
    assert rows[0] == ["level", "query", "region", "cell", "noisy"]
    assert [row[:4] for row in rows[1:]] == [row[:4] for row in given[1:]]
    assert all(abs(int(a[4]) - int(b[4])) < 60 for a, b in zip(rows[1:], given[1:], strict=True))
    statement = json.loads((folder / "noisy.noise.json").read_text())
    assert [Fraction(entry["sigma2_drawn"]) for entry in statement["noise"]] == [drawn_sigma2(s) for s in (2, 4, 2)]
    assert [entry["cells"] for entry in statement["noise"]] == [1, 2, 2]
    assert "design" in statement["guarantee"]["certificate_is_of"]
    assert "another of the 2 allocations" in statement["guarantee"]["covers"]
    certificate = exactdp.Certificate.load(folder / "noisy.certificate.json")
    assert verify(certificate)
    assert certificate.composition == design.pair(1, 1)
    assert abs(float(certificate.upper) / statement["guarantee"]["epsilon_at_most"] - 1) < 1e-10
    assert sorted(p.name for p in folder.iterdir()) == [
        "counts.csv",
        "noisy.certificate.json",
        "noisy.csv",
        "noisy.noise.json",
        "survey.toml",
    ]


def test_the_certificate_is_of_the_noise_drawn_where_it_has_a_lattice(folder: Path) -> None:
    pytest.importorskip("opendp")
    (folder / "survey.toml").write_text('[levels.Nation]\nsex = "1/2"\n')
    (folder / "counts.csv").write_text("count,query,level\n3,sex,Nation\n")
    result = release(folder, "--json")
    record = json.loads(result.stdout)
    assert record["guarantee"]["certificate_is_of"] == "the noise drawn"
    assert [Path(f).name for f in record["files"]] == ["noisy.csv", "noisy.certificate.json", "noisy.noise.json"]
    certificate = exactdp.Certificate.load(folder / "noisy.certificate.json")
    assert certificate.composition == Composition({DiscreteGaussian(drawn_sigma2(2)): 2})
    assert verify(certificate)
    assert (folder / "noisy.csv").read_text().startswith("query,level,noisy\nsex,Nation,")


def test_a_bypass_allocation_has_its_own_levels_and_noise(folder: Path, design: census.Release) -> None:
    pytest.importorskip("opendp")
    assert "bypasses it" in release(folder, "--allocation", "2").stderr
    assert "allocations 1 to 2" in release(folder, "--allocation", "3").stderr
    kept = [line for line in COUNTS.splitlines() if not line.startswith("Region")]
    noisy = release_table(design, parse_counts("\n".join(kept), design.allocations[2]), allocation=2, digits=10)
    assert noisy.certificate is not None
    assert noisy.certificate.composition == design.pair(2, 2)
    assert [entry["sigma2_of_the_design"] for entry in noisy.statement["noise"]] == ["6/5", "12/5"]


def test_no_certificate_where_there_is_no_lattice(
    folder: Path, design: census.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise LatticeTooFineError("too fine")

    monkeypatch.setattr(noise, "certify", refuse)
    monkeypatch.setattr(noise, "opendp_noise", from_pmf())
    monkeypatch.setattr(noise, "opendp_version", lambda: "0")
    noisy = release_table(design, parse_counts(COUNTS, design.allocations[1]))
    assert noisy.certificate is None
    assert [p.name for p in noisy.save(folder / "n.csv")] == ["n.csv", "n.noise.json"]
    assert noisy.epsilon.upper < 11


@pytest.mark.posix
def test_inputs_and_earlier_outputs_are_never_replaced(folder: Path) -> None:
    counts = folder / "counts.csv"
    (folder / "soft.csv").symlink_to(counts)
    os.link(counts, folder / "hard.csv")
    for name in ("counts.csv", "soft.csv", "hard.csv"):
        with pytest.raises(InvalidInputError, match="another file than the input"):
            check_outputs(folder / name, counts)
    (folder / "dangling.csv").symlink_to(folder / "nowhere")
    (folder / "old.noise.json").write_text("{}")
    for name in ("dangling.csv", "old.csv"):
        with pytest.raises(InvalidInputError, match="spend the budget again"):
            check_outputs(folder / name, counts)
    with pytest.raises(InvalidInputError, match=r"must be a \.csv file"):
        output_paths(folder / "noisy.txt")
    assert counts.read_text() == COUNTS


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--delta", "2"], "strictly between 0 and 1"),
        (["--digits", "3"], "--digits"),
        (["--allocation", "x"], "--allocation"),
    ],
)
def test_bad_options_of_a_release(folder: Path, arguments: list[str], named: str) -> None:
    pytest.importorskip("opendp")
    result = release(folder, *arguments)
    assert result.exit_code == 2
    assert named in result.stderr
    assert not (folder / "noisy.csv").exists()


def test_bad_files_of_a_release(folder: Path) -> None:
    pytest.importorskip("opendp")
    (folder / "counts.csv").write_bytes(COUNTS.encode() + b"\xff\n")
    assert "UTF-8. Found other bytes in line 7" in release(folder).stderr
    (folder / "counts.csv").unlink()
    assert release(folder).exit_code == 2


@pytest.mark.parametrize("composition", [MIXED, 10 * DiscreteGaussian(1), 2 * DiscreteGaussian("1/2")])
def test_the_exact_errors_are_the_tails(composition: Composition) -> None:
    """Against P(S >= h t) from the engine: L > c under A is S > c + R/2, L <= c under B is S <= c - R/2."""
    contours = composition._contours
    step, spread = contours.lattice.step, contours.lattice.spread
    thresholds = [-2.7, -0.913, 0.377, 0.913, 1.71]
    for c, (alpha, beta) in zip(thresholds, exact_errors(composition, thresholds), strict=True):
        first = math.floor((Fraction(c) + spread / 2) / step) + 1
        other = math.floor((Fraction(c) - spread / 2) / step) + 1
        a, b = tails_at(contours, [first, other])
        assert alpha.lower <= math.exp(a.high) and math.exp(a.low) <= alpha.upper  # noqa: PT018
        assert beta.lower <= math.exp(b.rest_high) and math.exp(b.rest_low) <= beta.upper  # noqa: PT018
        assert alpha.upper - alpha.lower < 2e-4
        assert beta.upper - beta.lower < 2e-4


def test_an_audit_passes_a_right_sampler_and_finds_wrong_ones_out() -> None:
    right = audit(MIXED, 40_000, sampler=from_pmf())
    assert right.is_consistent
    assert right.draws == 40_000
    assert len(right.points) == 9
    for factor in (0.9, 1.1):
        assert not audit(MIXED, 40_000, sampler=from_pmf(factor)).is_consistent

    def shifted(counts: Sequence[int], scale: float) -> list[int]:
        return from_pmf(seed=3)([c + 1 for c in counts], scale)

    assert not audit(MIXED, 40_000, sampler=shifted).is_consistent


def test_laplace_noise_is_audited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right noise passes; with three quarters of the scale it does not."""
    mixed = 3 * DiscreteLaplace(2, sensitivity=2) + DiscreteGaussian(4)
    assert audit(mixed, 20_000, "0.999999").is_consistent
    right = audits.opendp_laplace_noise
    monkeypatch.setattr(audits, "opendp_laplace_noise", lambda counts, scale: right(counts, 0.75 * scale))
    assert not audit(mixed, 20_000, "0.999999").is_consistent
    with pytest.raises(InvalidInputError, match="ApproximateDP"):
        audit(mixed + ApproximateDP(1), 1000)


def test_the_joint_confidence_of_an_audit_is_kept() -> None:
    """At a confidence of one half, at least half of the audits of a right sampler pass: 40 of them, but for 1 run in 10^5."""
    passed = sum(audit(MIXED, 1_000, "1/2", from_pmf(seed=seed)).is_consistent for seed in range(60))
    assert passed >= binom.ppf(1e-5, 60, 0.5)


@pytest.mark.parametrize(("draws", "confidence"), [(10, "0.9"), (10**12, "0.9"), (1000, 1), (1000, 0)])
def test_bad_arguments_of_an_audit(draws: int, confidence: object) -> None:
    with pytest.raises(InvalidInputError, match="Found"):
        audit(MIXED, draws, confidence)  # type: ignore[arg-type]


def test_audit_on_the_command_line(folder: Path) -> None:
    pytest.importorskip("opendp")
    pytest.importorskip("matplotlib")
    figure = folder / "audit.png"
    arguments = ["audit", str(folder / "survey.toml"), "--draws", "4000", "--confidence", "0.999999999"]
    result = run(*arguments, "-o", str(figure))
    assert result.exit_code == 0, result.output
    assert "Every exact point lies in its band: 4,000 releases" in result.stdout
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_wrong_sampler_on_the_command_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenDP itself with nine tenths of the scale."""
    pytest.importorskip("opendp")
    monkeypatch.setattr(
        exactdp.apps.release.audit, "opendp_noise", lambda counts, scale: opendp.opendp_noise(counts, 0.9 * scale)
    )
    result = run(
        "audit", str(folder / "survey.toml"), "--draws", "24000", "--confidence", "0.9", "--pair", "1,2", "--json"
    )
    assert result.exit_code == 1
    record = json.loads(result.stdout)
    assert record["consistent"] is False
    assert record["pair"] == [1, 2]
    assert record["draws"] == 24_000
    wrong = [p for p in record["points"] if not p["consistent"]]
    assert wrong
    assert all(p["alpha_band"][0] <= p["alpha"] <= p["alpha_band"][1] for p in record["points"])


@pytest.mark.parametrize(
    "arguments", [["--draws", "3"], ["--confidence", "1"], ["--pair", "1"], ["--pair", "1,9"], ["-o", "no/where.png"]]
)
def test_bad_options_of_an_audit(folder: Path, arguments: list[str]) -> None:
    pytest.importorskip("opendp")
    result = run("audit", str(folder / "survey.toml"), *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("exactdp: ")
