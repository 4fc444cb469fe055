"""Every number of a report is read back, as it is shown and as programs find it, and proved with the library.

`prove` knows what each key claims; a number without a key, or with one that it does not know, fails.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import pytest
from report_pages import DESIGN, Reader

from exactdp import census
from exactdp.apps.report.content import Content, gather
from exactdp.apps.report.decision import MemoQuestion
from exactdp.apps.report.page import render
from exactdp.census.budget_files import parse_budget
from exactdp.census.runners import Serial
from exactdp.census.savings import level_pair
from exactdp.census.study import Study
from exactdp.census.summary import EpsilonRow, summarize
from exactdp.errors import InvalidInputError
from exactdp.guarantees.gaussian_estimates import gaussian_epsilon
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_epsilon, zcdp_epsilon_simple
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian

DELTAS, ALPHAS = ["1e-6", "1e-10"], ["0.05", "0.5"]
EXACTLY = ("rho", "paths", "pairs")
GRID = Fraction(1, 10_000)
WITHIN = Fraction(50)


def designs() -> Iterator[bytes]:
    """The one with hostile names, and random ones: coarse and fine noise, one path or several."""
    yield DESIGN
    rng = random.Random(16)
    for paths in (1, 2):
        unit = rng.choice([1, 3, Fraction(1, 4)])
        lines = []
        for level in "ABC":
            lines.append(f"[levels.{level}]")
            lines += [
                f'q{i} = "{unit * Fraction(rng.randint(1, 3), rng.choice([2, 4]))}"' for i in range(rng.randint(1, 2))
            ]
        lines += ["[bypassed]", "1 = []", '2 = ["B"]'][: 1 + paths]
        yield "\n".join(lines).encode()


@pytest.fixture(scope="module", params=designs(), ids=("hostile", "one path", "two paths"))
def content(request: pytest.FixtureRequest) -> Content:
    study = parse_budget(request.param, "survey.toml").account(deltas=DELTAS, alphas=ALPHAS)
    summary, lowest = summarize(study, Serial(), study.grids.deltas[-1]), list(study.release.table)[-1]
    asked = MemoQuestion({"B": study.release.scaled("9/10")}, WITHIN, {lowest: 2})
    return gather(study, summary, asked=asked)


def number(shown: str) -> Fraction:
    """What a reader of the page reads."""
    text = shown.replace("\u2212", "-").removeprefix("=\u202f").removeprefix("~")
    scale = Fraction(1, 100) if text.endswith("\u202f%") else Fraction(1)
    text = text.removesuffix("\u202f%")
    power = re.fullmatch(r"(?:(.+)\u202f\u00d7\u202f)?10\^(-?\d+)", text)
    if power:
        return scale * Fraction(power[1] or 1) * Fraction(10) ** int(power[2])
    return scale * Fraction(text.replace("\u202f", ""))


class Claims:
    """What each key of a page claims, and the proof of it."""

    def __init__(self, content: Content) -> None:
        self.content, self.study, self.release = content, content.study, content.release
        self.rows = {str(row.delta): row for row in content.summary.epsilons}

    def prove(self, key: str, value: Fraction, is_estimate: bool) -> None:
        """Fail unless the number holds for what the key says."""
        kind, _, at = key.rpartition("-")
        prefix = next((p for p in ("headline-", "words-", "risk-") if key.startswith(p)), "")
        if prefix:
            kind, at = key.removeprefix(prefix).lower().replace(" ", "-"), str(self.content.headline.delta)
        if key.startswith(("level-", "noise-")):
            part, index, *rest = key.split("-")
            getattr(self, f"_{part}_{'_'.join(rest[-1:] if part == 'noise' else rest)}")(
                *map(int, [index, *rest[:-1]] if part == "noise" else [index]), value, is_estimate
            )
            return None
        if key.startswith("memo-"):
            return self._memo(key.split("-")[1:], value, is_estimate)
        if key.startswith("certificate-"):
            return self._certificate(tuple(map(int, key.split("-")[1:])), value)
        if key in EXACTLY:
            paths, pairs = len(self.release.allocations), len(self.release.pairs)
            known: dict[str, Fraction | int] = {"rho": self.release.rho, "paths": paths, "pairs": pairs}
            assert self._is(value, Fraction(known[key]), is_estimate)
            return None
        if key == "proxy-worst":
            for delta in self.rows:
                self._understated(delta, value)
            return None
        if key in ("gaussian-alarm", "gaussian-remark"):
            return self._gaussian_note(value)
        assert is_estimate == (kind == "gaussian"), key
        claim = {"bayes-risk": self._bayes, "advantage": self._advantage, "posterior": self._posterior}.get(kind)
        if claim is not None:
            return claim(value)
        at = "1/20" if prefix and "power" in kind else at
        getattr(self, f"_{kind.replace('-', '_')}")(at, value)
        return None

    @staticmethod
    def _is(value: Fraction, wanted: Fraction, is_estimate: bool) -> bool:
        return abs(value - wanted) <= abs(wanted) / 10**3 if is_estimate else value == wanted

    def _epsilon(self, delta: str, value: Fraction) -> None:
        assert self.study.delta_bounds(value).upper <= Fraction(delta)
        own = [self.release.pair(*pair).delta_bounds(value, digits=30).upper for pair in self.release.pairs]
        assert max(own) <= Fraction(delta)
        assert self.study.delta_bounds(value - Fraction(2, 10**4)).lower > Fraction(delta)

    _overall = _epsilon

    def _proxy(self, delta: str, value: Fraction) -> None:
        assert self.release.proxy.delta_bounds(value, digits=30).upper <= Fraction(delta)

    def _zcdp_simple(self, delta: str, value: Fraction) -> None:
        rho = self.release.rho
        with mpmath.workdps(60):
            log = -mpmath.log(mpmath.mpf(Fraction(delta).numerator) / Fraction(delta).denominator)
            gap = (value - rho) ** 2
            assert mpmath.mpf(gap.numerator) / gap.denominator >= 4 * rho.numerator * log / rho.denominator
        assert value - Fraction(zcdp_epsilon_simple(rho, delta)) <= Fraction(2, 10**4)

    def _zcdp_optimal(self, delta: str, value: Fraction) -> None:
        found = Fraction(zcdp_epsilon(self.release.rho, delta))
        assert found <= value <= found + Fraction(2, 10**4)

    def _gaussian(self, delta: str, value: Fraction) -> None:
        assert float(value) == pytest.approx(gaussian_epsilon(self.release.proxy.mu, delta), abs=1e-7)

    def _gaussian_note(self, value: Fraction) -> None:
        offs = []
        for row in self.rows.values():
            low = max(
                Fraction(self.release.pair(*p).epsilon_bounds(row.delta, digits=30).lower) for p in self.release.pairs
            )
            offs.append((low - Fraction(row.gaussian)) / low)
        assert 0 < value <= max(offs)

    def _power(self, alpha: str, value: Fraction) -> None:
        assert 1 >= value >= 1 - Fraction(self.study.beta_bounds(alpha).lower)
        assert value <= 1 - Fraction(self.study.beta_bounds(alpha).upper) + Fraction(2, 10**3)

    def _zcdp_power(self, alpha: str, value: Fraction) -> None:
        assert value >= 1 - Fraction(zcdp_beta(self.release.rho, alpha))

    def _beta(self, alpha: str, value: Fraction) -> None:
        low = Fraction(self.study.beta_bounds(alpha).lower)
        assert low - Fraction(1, 10**6) <= value <= low

    def _bayes(self, value: Fraction) -> None:
        assert value <= (1 - Fraction(self.study.delta_bounds(0).upper)) / 2

    def _advantage(self, value: Fraction) -> None:
        assert value >= Fraction(self.study.delta_bounds(0).upper)

    def _posterior(self, value: Fraction) -> None:
        power = 1 - Fraction(self.study.beta_bounds("0.05").lower)
        assert value >= power / (power + Fraction(1, 20))

    def _odds(self, delta: str, value: Fraction) -> None:
        with mpmath.workdps(60):
            factor = mpmath.exp(mpmath.mpf(self.study.epsilon_bounds(delta).upper))
            assert factor <= mpmath.mpf(value.numerator) / value.denominator <= 1.2 * factor

    _odds_multiplier = _odds

    def _saved_simple(self, delta: str, value: Fraction) -> None:
        self._saved(delta, value, zcdp_epsilon_simple(self.release.rho, delta))

    def _saved_optimal(self, delta: str, value: Fraction) -> None:
        self._saved(delta, value, zcdp_epsilon(self.release.rho, delta))

    def _saved(self, delta: str, value: Fraction, stated: float) -> None:
        less, too_little = (self.release.scaled(1 - share).account() for share in (value, value + GRID))
        assert less.delta_bounds(Fraction(stated)).upper <= Fraction(delta)
        assert too_little.delta_bounds(Fraction(stated)).lower > Fraction(delta)

    def _unused_simple(self, delta: str, value: Fraction) -> None:
        assert Fraction(self.study.epsilon_bounds(delta).upper) <= (1 - value) * Fraction(
            zcdp_epsilon_simple(self.release.rho, delta)
        )

    def _unused_optimal(self, delta: str, value: Fraction) -> None:
        assert Fraction(self.study.epsilon_bounds(delta).upper) <= (1 - value) * Fraction(
            zcdp_epsilon(self.release.rho, delta)
        )

    def _understated_by(self, delta: str) -> Fraction:
        pairs = self.release.pairs
        overall = max(Fraction(self.release.pair(*p).epsilon_bounds(delta, digits=30).upper) for p in pairs)
        return overall / Fraction(self.release.proxy.epsilon_bounds(delta, digits=30).lower) - 1

    def _understated(self, delta: str, value: Fraction) -> None:
        assert value >= self._understated_by(delta) - Fraction(1, 10**25)

    def _level_rho(self, i: int, value: Fraction, is_estimate: bool) -> None:
        assert self._is(value, self.content.noise[i].rho, is_estimate)

    def _level_share(self, i: int, value: Fraction, is_estimate: bool) -> None:
        assert self._is(value, self.content.noise[i].rho / self.release.rho, is_estimate)

    def _level_saved_simple(self, i: int, value: Fraction, _: bool) -> None:
        self._level_saved(i, value, zcdp_epsilon_simple)

    def _level_saved_optimal(self, i: int, value: Fraction, _: bool) -> None:
        self._level_saved(i, value, zcdp_epsilon)

    def _level_saved(self, i: int, value: Fraction, convert: object) -> None:
        row = self.content.summary.levels[i]
        part = level_pair(self.release, row.level)
        stated = Fraction(convert(part.rho, row.delta))  # type: ignore[operator]
        assert part.scaled(1 - value).delta_bounds(stated).upper <= row.delta
        assert part.scaled(1 - value - GRID).delta_bounds(stated).lower > row.delta

    def _level_unused_simple(self, i: int, value: Fraction, _: bool) -> None:
        self._level_unused(i, value, zcdp_epsilon_simple)

    def _level_unused_optimal(self, i: int, value: Fraction, _: bool) -> None:
        self._level_unused(i, value, zcdp_epsilon)

    def _level_unused(self, i: int, value: Fraction, convert: object) -> None:
        row = self.content.summary.levels[i]
        part = level_pair(self.release, row.level)
        stated = Fraction(convert(part.rho, row.delta))  # type: ignore[operator]
        assert part.delta_bounds((1 - value) * stated, digits=20).upper <= row.delta

    def _budget(self, i: int, j: int) -> Fraction:
        level = self.content.noise[i]
        return self.release.table[level.level][level.queries[j].query]

    def _noise_rho(self, i: int, j: int, value: Fraction, is_estimate: bool) -> None:
        assert self._is(value, self._budget(i, j), is_estimate)

    def _noise_sigma2(self, i: int, j: int, value: Fraction, is_estimate: bool) -> None:
        assert self._is(value, 1 / self._budget(i, j), is_estimate)

    def _noise_error(self, i: int, j: int, value: Fraction, is_estimate: bool) -> None:
        assert is_estimate
        assert float(value) == pytest.approx(DiscreteGaussian(1 / self._budget(i, j)).variance ** 0.5, rel=1e-3)

    def _noise_margin(self, i: int, j: int, value: Fraction, _: bool) -> None:
        noise = DiscreteGaussian(1 / self._budget(i, j))
        inside = [sum(noise.pmf(x) for x in range(-m, m + 1)) for m in (int(value) - 1, int(value))]
        assert inside[0] < 0.95 <= inside[1]

    def _memo(self, parts: list[str], value: Fraction, is_estimate: bool) -> None:
        """Numbers of the options, of the objective, of unusable cells, and of the certificate of the whole release."""
        kind, *numbers = parts
        decision, delta = self.content.decision, self.content.headline.delta
        if kind == "within":
            assert value == WITHIN
        elif kind == "certificate":
            release = decision.judged[int(numbers[0])].release
            assert all(release.pair(*p).delta_bounds(value, digits=30).upper <= delta for p in release.pairs)
        elif kind == "unusable":
            found = decision.unusable(decision.judged[int(numbers[0])])
            assert value in {margin for _, _, margin, count in found if margin >= count}
        else:
            option = decision.options[int(numbers[0])].release
            if kind == "epsilon":
                own = [option.pair(*pair).delta_bounds(value, digits=30).upper for pair in option.pairs]
                assert max(own) <= delta
            elif kind == "zcdp":
                assert Fraction(zcdp_epsilon(option.rho, delta)) <= value
            elif kind == "rho":
                assert self._is(value, option.rho, is_estimate)
            else:
                assert kind == "margin"
                least = min(option.table[list(option.table)[int(numbers[1])]].values())
                noise = DiscreteGaussian(1 / least)
                inside = [sum(noise.pmf(x) for x in range(-m, m + 1)) for m in (int(value) - 1, int(value))]
                assert inside[0] < 0.95 <= inside[1]

    def _certificate(self, pair: tuple[int, ...], value: Fraction) -> None:
        assert Fraction(self.release.pair(*pair).delta_bounds(self.content.stated, digits=40).upper) <= value


def test_every_number_of_a_report_is_proved(content: Content) -> None:
    claims, numbers = Claims(content), Reader(render(content, charts=False)).numbers
    assert len(numbers) > 50
    for key, (value, shown) in numbers.items():
        is_estimate = "~" in shown
        claims.prove(key, number(shown), is_estimate)
        claims.prove(key, Fraction(value), is_estimate)


def test_a_number_on_the_unsafe_side_is_found(content: Content) -> None:
    claims, numbers = Claims(content), Reader(render(content, charts=False)).numbers
    row: EpsilonRow = content.summary.epsilons[0]
    study: Study = content.study
    assert study.epsilon(row.delta) > 0
    for key in (
        f"epsilon-{row.delta}",
        f"beta-{content.summary.powers[0].alpha}",
        "headline-saved-simple",
        "risk-Power",
    ):
        up = key.startswith(("beta", "headline-saved"))
        unsafe = number(numbers[key][1]) * (1 + Fraction(1, 500) * (1 if up else -1))
        with pytest.raises(AssertionError):
            claims.prove(key, unsafe, False)
    with pytest.raises((AssertionError, AttributeError)):
        claims.prove("something-new", Fraction(1), False)


def test_the_memo_recommends_by_its_objective(content: Content) -> None:
    decision = content.decision
    within = [option for option in decision.options if option.epsilon <= WITHIN]
    assert decision.chosen is not None
    assert decision.chosen.margins[decision.level] == min(option.margins[decision.level] for option in within)
    least = dataclasses.replace(decision, within=None).chosen
    assert least is not None
    assert least.epsilon == min(option.epsilon for option in decision.options)
    nothing = dataclasses.replace(content, decision=dataclasses.replace(decision, within=Fraction(1, 1000)))
    assert nothing.decision.chosen is None
    assert "No option meets the objective" in render(nothing, charts=False)
    words = " ".join(" ".join(Reader(render(content, charts=False)).words).split())
    for said in (
        "Question.",
        "Recommendation:",
        "What it does not mean",
        "Certificate of the whole release",
        "Sign-off",
    ):
        assert said in words
    silent = dataclasses.replace(content, decision=dataclasses.replace(decision, typical={}))
    assert "No typical counts were given" in render(silent, charts=False)
    sourced = dataclasses.replace(content, decision=dataclasses.replace(decision, source="Counted by nobody."))
    assert "Counted by nobody. Other counts can be given." in render(sourced, charts=False)


def test_margins_of_the_census_are_judged_by_people_by_area_unless_counts_are_given() -> None:
    persons = census.release("dhc-persons-us")
    assert MemoQuestion().checked(persons)[2] == {"State": 6_499_006, "County": 105_456, "Block": 41}
    assert MemoQuestion(typical={"Block": "23"}).checked(persons)[2] == {"Block": 23}
    assert MemoQuestion(typical={}).checked(persons)[2] == {}
    assert MemoQuestion().checked(census.release("dhc-units-us"))[2] == {}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (MemoQuestion(typical={"Nowhere": 3}), "A typical count is for a level of the design"),
        (MemoQuestion(typical={"Region": "0"}), "typical count of Region"),
        (MemoQuestion(within="much"), "within"),
        (MemoQuestion(dict.fromkeys("BCDEFGH", parse_budget(DESIGN, "survey.toml"))), "at most 6 other designs"),
    ],
)
def test_a_memo_that_cannot_be_made_is_refused(asked: MemoQuestion, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        asked.checked(parse_budget(DESIGN, "survey.toml"))


def test_estimates_look_different_from_bounds(content: Content) -> None:
    page = render(content, charts=False)
    for key, (_, shown) in Reader(page).numbers.items():
        assert "\u2248" not in shown, key
    for found in re.findall(r'<data value="[^"]*" data-key="gaussian-\d[^"]*">(.*?)</data>', page):
        assert found.startswith('<span class="estimate">~')
    assert "~1.23" in page  # the legend


def test_the_report_says_what_its_numbers_do_not_mean(content: Content) -> None:
    words = " ".join(" ".join(Reader(render(content, charts=False)).words).split())
    for said in (
        "Not the probability that somebody is identified",
        "Not an average",
        "is not a failure that may be ignored",
    ):
        assert said in words
    assert "simple conversion at" in words
    assert "scaled by one factor" in words
    assert "than without" not in words
    assert "finds the record" not in words
    assert "Replace one record by any other" in words
