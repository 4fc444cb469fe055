"""What the documentation says about the authors' published tables and times, computed again where that can be."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import mpmath
import pytest

from exactdp import census, reference
from exactdp.balls import fraction

ROOT = Path(__file__).parent.parent
RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
RELEASE = census.release("dhc-persons-us")
DIGITS = 35  # of the published code's trade-off curves


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # a dataclass looks its module up
    spec.loader.exec_module(module)
    return module


published = _script("published")


def _shares(k: int, other: int) -> list[Fraction]:
    """The a_i of a pair, smallest first, as the published code sorts them."""
    mechanisms = RELEASE.pair(k, other).mechanisms
    return sorted(1 / m.sigma2 / RELEASE.rho for m, count in mechanisms.items() for _ in range(count))


def _lattice(shares: list[Fraction]) -> Fraction:
    return Fraction(math.lcm(*(a.denominator for a in shares)), math.gcd(*(a.numerator for a in shares)))


def _half_sum(shares: list[Fraction]) -> mpmath.mpf:
    """The sum of the a_i over 2, which is 1, in the digits of the published code."""
    return sum((mpmath.mpf(a.numerator) / a.denominator for a in shares), mpmath.mpf(0)) / 2


def test_the_quoted_points_are_shown_as_they_are() -> None:
    lines = list(published.tradeoff(RELEASE))
    assert len(lines) > 20
    assert "\n".join(lines) in RESULTS, "docs/results.md: make results"


def test_the_quoted_tails_are_shown_as_they_are() -> None:
    """Pair (6,6) takes minutes in balls: its rows are held against float64."""
    rows = published.rows_of(published.TAILS)
    quick = [row for row in rows if row["k"] != "6"]
    lines = list(published.tails(RELEASE, quick))
    assert all(line in RESULTS for line in lines), "docs/results.md: make results"
    for row in (row for row in rows if row["k"] == "6"):
        low, high = RELEASE.pair(6, 6).delta_bounds(row["epsilon"])
        shown = re.search(rf"\| \(6,6\) \| {row['delta_zcdp']} \| (\S+) \| (\S+) \|", RESULTS)
        assert shown
        assert float(shown[1]) == float(f"{float(row['published']):.12e}")
        assert low * (1 - 1e-12) <= float(shown[2]) <= high * (1 + 1e-12)


def test_a_ceiling_in_both_errors_counts_the_atom_twice() -> None:
    """The point of (2,2) at zeta = 0 has the alpha of one test and the beta of another, by the published method in balls."""
    plan = reference.make_reference_plan(RELEASE.pair(2, 2).discrete_gaussians, "1e-30")
    strict, with_atom = reference.vertex(plan, 0)
    row = next(row for row in published.rows_of(published.POINTS) if (row["k"], row["zeta"]) == ("2", "0"))
    for error in ("alpha", "beta"):
        assert abs(Fraction(row[error]) - fraction(with_atom.mid())) < Fraction("1e-24")
    assert float(with_atom - strict) == pytest.approx(3.66e-6, rel=1e-3)
    at = published.point(RELEASE, row)
    assert (at.side, at.counted) == ("above", "both")
    assert at.off == pytest.approx(float(with_atom - strict), rel=1e-6)


def test_rounding_decides_on_which_side_published_points_lie() -> None:
    """Where the sum of the a_i over 2 comes out above 1, both ceilings skip the atom at zeta = 0; else both take it."""
    sides: Counter[str] = Counter()
    quoted = {(int(r["k"]), int(r["l"])): r for r in published.rows_of(published.POINTS) if r["zeta"] == "0"}
    with mpmath.workdps(DIGITS):
        for pair in RELEASE.pairs:
            shares = _shares(*pair)
            L = _lattice(shares)
            skipped = mpmath.ceil(_half_sum(shares) * (mpmath.mpf(L.numerator) / L.denominator)) > int(L)
            sides["below" if skipped else "above"] += 1
            if pair in quoted:
                assert published.point(RELEASE, quoted[pair]).side == ("below" if skipped else "above")
        assert mpmath.nstr(_half_sum(_shares(13, 13)) - 1, 2) == "1.5e-36"
    assert len(quoted) == 5
    facts = _facts()
    assert f"{sides['above']}" == facts["pairs above the curve at zeta = 0"]
    assert f"{sides['below']}" == facts["pairs below the curve at zeta = 0"]


@pytest.mark.soak
def test_negative_betas_are_those_past_the_truncation() -> None:
    past = {pair: _past_truncation(*pair) for pair in RELEASE.pairs}
    assert past[13, 13] == 61
    assert f"{sum(past.values())}" == _facts()["negative betas"]
    first = published.rows_of(published.POINTS)[0]
    assert Fraction(first["beta"]) < 0 < published.point(RELEASE, first).lower


def _past_truncation(k: int, other: int) -> int:
    """How many of the 901 thresholds (1 - zeta) L exceed the published U at 1e-25, a multiple of 10,000."""
    shares = _shares(k, other)
    L = _lattice(shares)
    variance = sum(shares, Fraction(0)) / RELEASE.rho  # sum a_i^2 sigma_i^2, where a_i sigma_i^2 = 1 / rho
    U = 10_000 * math.ceil(float(L) * math.sqrt(2 * float(variance) * math.log(8e25)) / 10_000)
    end = math.floor(U / L)
    return sum((1 - Fraction(end * (i - 450), 450)) * L > U for i in range(901))


def _facts() -> dict[str, str]:
    return {row["fact"]: row["value"] for row in published.rows_of(published.FACTS)}


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ("deltas", r"42 epsilons, ([\d,]+) entries"),
        ("deltas proved too large", r"([\d,]+) are proved too large"),
        ("deltas not told apart from ours", r"the other ([\d,]+) lie within"),
        ("negative second terms of delta", r"negative for ([\d,]+) of the 946"),
        ("pairs above the curve at zeta = 0", r"([\d,]+) published points lie above"),
        ("pairs below the curve at zeta = 0", r"lie above the curve, ([\d,]+) below"),
        ("points on an atom with both errors above 1e-20", r"([\d,]+) points with both errors"),
        ("of these above the curve", r"of which ([\d,]+) lie above"),
        ("of these below the curve", r"of which [\d,]+ lie above the curve and ([\d,]+) below"),
        ("points", r"of the ([\d,]+) published betas"),
        ("negative betas", r"([\d,]+) of the [\d,]+ published betas are negative"),
    ],
)
def test_counts_in_prose_are_the_quoted_ones(fact: str, told: str) -> None:
    found = re.search(told, RESULTS)
    assert found, f"docs/results.md does not say: {fact}"
    assert found[1].replace(",", "") == _facts()[fact]


def test_distances_in_prose_are_the_quoted_ones() -> None:
    facts = _facts()
    assert facts["deltas proved too small"] == facts["negative deltas"] == "0"
    assert "up to 0.14%, at 1e-20 by up to 74%, at 1e-21 by up to a factor of 17, each time for pair (6,10)" in RESULTS
    stated = "largest error at a stated delta of "
    assert [facts[f"{stated}1e-{n}"] for n in (13, 18, 20, 21)] == [
        "+1.5e-10 for (6,14)",
        "+1.4e-03 for (6,10)",
        "+73.7% for (6,10)",
        "factor 17.2 for (6,10)",
    ]
    for fact, told in (
        ("farthest above", "(6,6) is up to 3.2e-4 above (at $\\zeta = 1$"),
        ("farthest above in proportion", "up to 6.4e-3 of $\\beta$ at $\\zeta = -4$"),
        ("farthest below", "(33,33), by 7.6e-6 at $\\zeta = 1$"),
        ("farthest below in proportion", "9.3e-5 of $\\beta$ at $\\zeta = -2$"),
    ):
        assert told in RESULTS
        distance, _, place = facts[fact].partition(" for ")
        digits = f"{float(distance):.1e}".replace("e-0", "e-").lstrip("-")
        assert digits in told
        zeta = re.search(r"zeta = (-?\d+)", told)
        assert zeta
        assert place.endswith(f"at zeta = {zeta[1]}")


def test_a_fact_that_has_changed_is_noticed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "all_tails", lambda *_: {"deltas": "39731"})
    monkeypatch.setattr(published, "all_points", lambda *_: {"points": "852346"})
    assert published.check_facts(RELEASE, ROOT) == 1
    assert "quoted: 39732" in capsys.readouterr().out


def test_every_query_of_the_census_is_explained() -> None:
    text = (ROOT / "docs" / "designs.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `([^`]+)` \| [^|]+ \| ([\d,]+) \|$", text.partition("## The ten queries")[2], flags=re.MULTILINE
    )
    levels = {
        "age_18_64_116": 3,
        "relgq_4_groups": 4,
        "sex": 2,
        "age_38_groups": 38,
        "hispanic": 2,
        "gq_constr_groups": 6,
        "age_10_groups": 10,
        "popSehsdTargetsRelship": 19,
        "age_40_groups": 40,
        "relship_and_eight_level_GQ": 25,
        "cenrace": 63,
        "relgq": 42,
        "detailed": 42 * 2 * 116 * 2 * 63,
    }
    for name in ("dhc-persons-us", "dhc-persons-pr"):
        paths = census.release(name).allocations.values()
        assert {query for path in paths for level in path.table.values() for query in level} == {
            query for query, _ in rows
        }
    for query, cells in rows:
        assert math.prod(levels[attribute] for attribute in query.split(" * ")) == int(cells.replace(",", ""))


def test_the_speed_ups_are_told_as_they_are() -> None:
    """Times are of one run and not checked; counts and ratios of cited numbers are."""
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").partition("## The speed-ups of the paper")[2]
    plan = reference.make_reference_plan(RELEASE.pair(13, 13).discrete_gaussians, "1e-35")
    coarse = reference.make_reference_plan(RELEASE.pair(13, 13).discrete_gaussians, "1e-25")
    assert f"no sieve, (13,13), {plan.N:,} nodes |" in text
    assert f"sieve, (13,13), {len(plan.kept)} nodes |" in text
    assert f"{coarse.N:,} / {len(coarse.kept)} is {round(coarse.N / len(coarse.kept)):,}" in text
    assert f"{plan.N:,} / {len(plan.kept)} is {round(plan.N / len(plan.kept)):,}" in text
    assert f"$10^6 / 203$ is {round(10**6 / 203):,}" in text
    assert f"| {len(RELEASE.pairs) // 2} h | 946 times 0.5 h |" in text
    largest = max(m.sigma2 for m in RELEASE.pair(13, 13).discrete_gaussians)
    assert f"({math.ceil(48 * largest) + 1:,} for the largest noise)" in text
    assert 1824 * 0.5 == 912 == 9.5 * 96
    assert f"{1000 / 1824:.3f} h" in text
    speedups = _script("speedups")
    assert speedups.BEGIN in text
    assert speedups.END in text.partition(speedups.BEGIN)[2]
    epsilons = speedups.published_epsilons(RELEASE)
    assert len(epsilons) == 42
    quoted = {row["epsilon"] for row in published.rows_of(published.TAILS)}
    assert all(min(abs(Fraction(e) - Fraction(q)) for e in epsilons) < Fraction("1e-12") for q in quoted)
