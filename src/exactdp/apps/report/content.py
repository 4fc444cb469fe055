"""What a report says, apart from how it looks: the numbers of a study, the certificates, the curves, all asked of the library."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from exactdp.accounting.explanation import Explanation
from exactdp.apps.report.certificates import Claim, WholeClaim, make_claims, whole_claim
from exactdp.apps.report.decision import Decision, MemoQuestion, decide
from exactdp.census.budget_files import budget_toml
from exactdp.census.cell_noise import USUAL
from exactdp.census.margins import noise_of
from exactdp.census.releases import Release
from exactdp.census.study import Study
from exactdp.census.summary import EpsilonRow, Summary
from exactdp.elementwise import read_digits
from exactdp.errors import InvalidInputError
from exactdp.guarantees.comparison import Comparison, Grade
from exactdp.guarantees.gaussian_estimates import gaussian_beta, gaussian_log_delta
from exactdp.guarantees.neighbours import Neighbours, neighbours, relation_of
from exactdp.guarantees.risk import Risk, risk_of
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_epsilon_simple, zcdp_log_delta
from exactdp.numbers import Number, log_rational, read_share, shown
from exactdp.numerals import DOWN, UP, rounded, with_places

ALPHA, PRIOR = Fraction(1, 20), Fraction(1, 2)
LEAST_ALPHA = 1e-6
"""Where the chart of the trade-off curve begins."""

_PROFILE_POINTS, _CURVE_POINTS, _CONVERSION_POINTS = 31, 81, 61  # lines between them are within a pixel of the curves
_LONGEST_DATE = 60


@dataclass(frozen=True)
class QueryNoise:
    """The noise of one query: parameter, variance, standard error and 95% margin of one count."""

    query: str
    rho: Fraction
    sigma2: Fraction
    variance: float
    standard_error: float
    margin: int
    """The least whole number that the noise exceeds in size with a probability of at most 5%."""


@dataclass(frozen=True)
class LevelNoise:
    """One level of the full path: its budget and the noise of its queries."""

    level: str
    rho: Fraction
    queries: tuple[QueryNoise, ...]


@dataclass(frozen=True)
class Curves:
    """What the charts of the guarantee show. Exact curves on the safe side; zCDP's are safe, the Gaussian formula is not."""

    epsilons: list[float]
    log_delta: list[float]
    zcdp_log_delta: list[float]
    gaussian_log_delta: list[float]
    simple: list[tuple[float, float]]
    """epsilon by the simple conversion, and the logarithm of delta that it goes with."""
    alphas: list[float]
    betas: list[float]
    other_alphas: list[float]
    zcdp_betas: list[float]
    gaussian_betas: list[float]


@dataclass(frozen=True)
class Content:
    """Everything that a report says about a release."""

    study: Study
    summary: Summary
    headline: EpsilonRow
    stated: Fraction
    """The epsilon of the headline: the certified upper bound, rounded up to a short decimal."""
    risk: Risk
    zcdp_power: Fraction
    explanation: Explanation
    noise: tuple[LevelNoise, ...]
    claims: tuple[Claim, ...]
    curves: Curves
    budget: str | None
    """The design as a budget file; None where its names cannot be written as one."""
    date: str | None
    decision: Decision
    wholes: tuple[WholeClaim, ...]
    """Of the release, and of the option that is recommended, where that is another one."""

    @property
    def release(self) -> Release:
        """The release."""
        return self.study.release

    def comparison(self, row: EpsilonRow) -> Comparison:
        """One row of the table of epsilons as a comparison, which knows whether the Gaussian formula errs."""
        exact = float(row.epsilon[0]), float(row.epsilon[1])
        return Comparison("delta", row.delta, exact, row.gaussian, row.zcdp_simple, row.zcdp_optimal)

    @property
    def neighbours(self) -> Neighbours:
        """Who the neighbours are, in words."""
        return neighbours(relation_of(self.release))

    def graded(self, grade: Grade) -> list[EpsilonRow]:
        """The rows at which the Gaussian formula deserves this grade."""
        return [row for row in self.summary.epsilons if self.comparison(row).grade is grade]

    @property
    def alarms(self) -> list[EpsilonRow]:
        """The rows at which the Gaussian formula is proved to understate epsilon, in digits that people quote."""
        return self.graded(Grade.ALARM)


def gather(
    study: Study,
    summary: Summary,
    delta: Number | None = None,
    digits: int = 10,
    date: str | None = None,
    asked: MemoQuestion | None = None,
) -> Content:
    """The content of a report on a study with its summary.

    `delta` must be one of the study's; without it, it is the one at which the levels were looked at, or else the smallest.
    """
    row = _headline(summary, delta)
    release, stated = study.release, _rounded_up(row.epsilon[1])
    decision = decide(release, row, asked or MemoQuestion())
    return Content(
        study,
        summary,
        row,
        stated,
        risk_of(study, ALPHA, PRIOR, row.delta),
        1 - Fraction(zcdp_beta(release.rho, ALPHA)),
        release.pair(*row.worst_pair).explain(stated),
        tuple(level_noise(release)),
        make_claims(release, row.worst_pair, stated, read_digits(digits)),
        _curves(study, min(row.delta for row in summary.epsilons)),
        budget_file(release),
        _date(date),
        decision,
        tuple(whole_claim(option.release, row.delta, option.file_stem) for option in decision.judged),
    )


def _headline(summary: Summary, delta: Number | None) -> EpsilonRow:
    rows = {row.delta: row for row in summary.epsilons}
    if not rows or not summary.levels:
        raise InvalidInputError(
            "A report needs a study with at least one delta. Found none; account with deltas=[...]."
        )
    if delta is not None:
        asked = read_share(delta, "delta")
        if asked not in rows:
            raise InvalidInputError(
                f"The headline delta must be one of the study's. Found {shown(delta)}; add it there."
            )
        return rows[asked]
    return rows.get(summary.levels[0].delta, rows[min(rows)])


def _rounded_up(value: float | Decimal) -> Fraction:
    """Up to four decimals, or to six digits where that is finer."""
    places = max(4, 5 - rounded(value, 1, DOWN).adjusted()) if value else 4
    return Fraction(with_places(value, places, UP))


def level_noise(release: Release) -> list[LevelNoise]:
    """The noise of every query of the full path."""
    return [
        LevelNoise(
            level,
            sum(queries.values(), Fraction(0)),
            tuple(
                QueryNoise(query, rho, *noise_of(rho, release.noise.get((level, query), USUAL)))
                for query, rho in queries.items()
            ),
        )
        for level, queries in release.table.items()
    ]


def _curves(study: Study, least: Fraction) -> Curves:
    rho, mu = study.release.rho, study.release.proxy.mu
    last = zcdp_epsilon_simple(rho, least)
    epsilons = [last * i / (_PROFILE_POINTS - 1) for i in range(_PROFILE_POINTS)]
    curve = study.tradeoff(_CURVE_POINTS)
    alphas = [LEAST_ALPHA ** (1 - i / (_CONVERSION_POINTS - 1)) for i in range(_CONVERSION_POINTS)]
    return Curves(
        epsilons,
        study.log_delta(epsilons).tolist(),
        zcdp_log_delta(rho, epsilons).tolist(),
        gaussian_log_delta(mu, epsilons).tolist(),
        [(zcdp_epsilon_simple(rho, delta), log_rational(delta)) for delta in _deltas(least)],
        curve.alpha.tolist(),
        curve.beta.tolist(),
        alphas,
        zcdp_beta(rho, alphas).tolist(),
        gaussian_beta(mu, alphas).tolist(),
    )


def _deltas(least: Fraction) -> list[Fraction]:
    """From near 1 down to the least, evenly in the logarithm."""
    steps = Fraction(log_rational(least)) / (_CONVERSION_POINTS - 1)
    return [Fraction(Decimal(float(steps * i)).exp(Context(prec=20))) for i in range(1, _CONVERSION_POINTS)]


def budget_file(release: Release) -> str | None:
    """The design as a budget file; None where its names cannot be written as one."""
    try:
        return budget_toml(release)
    except InvalidInputError:
        return None


def _date(given: str | None) -> str | None:
    if given is None:
        return None
    line = " ".join(given.split())
    if not line or len(line) > _LONGEST_DATE or not line.isprintable():
        raise InvalidInputError(
            f"A date must be a printable text of 1 to {_LONGEST_DATE} characters. Found {shown(ascii(given))}."
        )
    return line
