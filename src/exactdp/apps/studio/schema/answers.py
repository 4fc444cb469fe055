"""What answers look like: workers build them, the API describes them. Exact numbers are texts, certified doubles are numbers."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, GetPydanticSchema, with_config
from typing_extensions import TypedDict  # pydantic reads no other before Python 3.12

from exactdp.apps.studio.schema.requests import EditableDesign
from exactdp.arithmetic_state import steady

Exact = Annotated[str, Field(description="An exact fraction or decimal as text.", examples=["24811/5000"])]
Remarks = Annotated[list[str], Field(description="Warnings about accuracy in plain words; mostly empty.")]
Seconds = Annotated[float, Field(ge=0, description="Seconds of work.")]
FileName = Annotated[str, Field(description="A safe name of the design for files, without suffix.")]
Ends = Annotated[list[float], Field(min_length=2, max_length=2)]
PlainDesign = Annotated[dict[str, Any], GetPydanticSchema(lambda _, schema: schema(EditableDesign))]
"""An editable design as plain data."""


@steady
def as_json(value: Any) -> bytes:
    """An answer as JSON in ASCII, without NaN and infinities."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


@with_config(ConfigDict(extra="forbid"))
class Answer(TypedDict):
    """An answer has these members and no others."""


class Worked(Answer):
    """What the answer of a worker ends with."""

    remarks: Remarks
    seconds: Seconds


UNTIMED: Worked = {"remarks": [], "seconds": 0.0}
"""What a worker puts at the end; both are filled in when the work is done."""


class Place(Answer, total=False):
    """Which part of a request was refused: a field, or one budget by its level and query."""

    field: str | None
    level: str | None
    query: str | None


class Problem(Answer):
    """What went wrong, in one sentence that names the value and the remedy."""

    error: str
    where: NotRequired[Place | None]


class Health(Answer):
    """The server is there."""

    status: Literal["ok"]
    version: str


class AllPairs(Answer):
    """What is known of all pairs of directed paths before any work."""

    pairs: int
    rho: Exact
    full_path: Annotated[int, Field(description="The number of the path that bypasses nothing, or the fewest levels.")]


class DesignAnswer(AllPairs):
    """A design with what follows from it."""

    design: PlainDesign


class CheckedDesign(DesignAnswer, Worked):
    """A design whose numbers are exact fractions and whose scale is 1."""


class OpenedDesign(DesignAnswer):
    """A design to begin with, and counts that people look up at some of its levels, with their source."""

    typical: dict[str, str]
    typical_source: str


class Start(OpenedDesign):
    """The design to begin with, the version and the limits of the server."""

    version: str
    limits: dict[str, int]


class ListedRelease(Answer):
    """One built-in release."""

    name: str
    title: str
    levels: int
    cells: int
    paths: int
    pairs: int
    rho: Exact


class Releases(Answer):
    """The built-in releases."""

    releases: list[ListedRelease]


class BudgetFiles(Worked):
    """A design as budget files that read back as the same design."""

    toml: str
    csv: Annotated[str | None, Field(description="None where a name cannot be written so; `remark` says why.")]
    remark: str
    file_name: FileName


class OtherAccounts(Answer):
    """One value by other accounts than the exact one."""

    zcdp_optimal: Annotated[float, Field(description="By zCDP with the optimal conversion; a safe bound.")]
    zcdp_simple: Annotated[float, Field(description="By zCDP with the simple conversion; a safe bound.")]
    gaussian: Annotated[
        float, Field(description="By the formula of the continuous Gaussian; an estimate, not a bound.")
    ]


class CertifiedBounds(Answer):
    """Bounds of one value."""

    lower: Annotated[float, Field(description="Certified lower bound.")]
    upper: Annotated[float, Field(description="Certified upper bound.")]


class BoundedValue(CertifiedBounds, OtherAccounts):
    """One value, certified, beside other accounts."""


class Graded(Answer):
    """Whether the Gaussian formula is too low."""

    shortcut_understates: Annotated[bool, Field(description="Proved: the Gaussian formula reports too little.")]
    grade: Annotated[
        Literal["alarm", "remark", "none"],
        Field(description="How much that matters: an alarm is a difference in the digits that people quote."),
    ]


class ComparedValue(BoundedValue, Graded):
    """One value with what it says about the Gaussian formula."""

    statement: str


class EpsilonAtDelta(ComparedValue):
    """epsilon at one delta."""

    delta: Exact


class DeltaAtEpsilon(ComparedValue):
    """delta at one epsilon."""

    epsilon: Exact


class BetaAtAlpha(CertifiedBounds):
    """The type II error of the best test at one alpha; `lower` is the safe end, `power` is 1 - lower."""

    alpha: Exact
    power: float
    zcdp: Annotated[float | None, Field(description="Implied by zCDP, a safe bound; None unless it was asked for.")]
    gaussian: float


class DeltaCurve(Answer):
    """delta on a grid of epsilons: columns of the same length."""

    epsilon: list[float]
    lower: list[float]
    upper: list[float]
    zcdp_optimal: list[float]
    zcdp_simple: list[float]
    gaussian: list[float]


class Points(Answer):
    """Points of a trade-off curve."""

    alpha: list[float]
    beta: list[float]


class TradeOff(Points):
    """The trade-off curve, certified from below: convex, from (0, 1) to (1, 0)."""

    gaussian: Points


class NoiseAtBudget(Answer):
    """The noise of one budget."""

    rho: Exact
    sigma2: Exact
    variance: float
    standard_error: float
    margin95: Annotated[
        int, Field(description="Exceeded in size with a probability of at most 5%; the least such number.")
    ]


class NoiseOfQuery(NoiseAtBudget):
    """The noise of one query."""

    query: str


class NoiseOfLevel(Answer):
    """One level of a path."""

    level: str
    rho: Exact
    queries: list[NoiseOfQuery]


class NoiseOfPath(Answer):
    """One path of the pair; `path` is None where it was given by its bypassed levels."""

    path: int | None
    bypassed: list[str]
    rho: Exact
    levels: list[NoiseOfLevel]


class RiskOfPair(Answer):
    """What an attacker can achieve, in certified bounds: lower and upper end of each figure."""

    alpha: Exact
    prior: Exact
    delta: Exact
    advantage: Ends
    power: Ends
    bayes_risk: Ends
    posterior: Ends
    odds: Annotated[list[float | Literal["inf"]], Field(min_length=2, max_length=2)]


class PairAnswer(Worked):
    """The exact guarantee of one pair of directed paths."""

    pair: list[int | list[str]]
    rho: Exact
    mu: float
    mechanisms: int
    file_name: FileName
    epsilon: list[EpsilonAtDelta]
    delta: list[DeltaAtEpsilon]
    beta: list[BetaAtAlpha]
    delta_curve: DeltaCurve | None
    tradeoff: TradeOff | None
    noise: list[NoiseOfPath] | None
    risk: RiskOfPair | None


class OverallEpsilon(BoundedValue):
    """epsilon of all pairs at one delta, and bounds of that of the full path with itself."""

    delta: Exact
    proxy: CertifiedBounds


class OverallDelta(BoundedValue):
    """delta of all pairs at one epsilon: a text, or a number on a curve."""

    epsilon: str | float


class WorstPair(Answer):
    """The pair of the largest epsilon at one delta, or the first of those that cannot be told apart."""

    delta: Exact
    pair: list[int]
    tied: int


class TradeOffPoint(Answer):
    """One point on or below the trade-off curve of all pairs."""

    alpha: float
    beta: float


class OverallResult(AllPairs):
    """The guarantee over all pairs of directed paths."""

    epsilon: list[OverallEpsilon]
    worst_pair: list[WorstPair]
    delta: list[OverallDelta]
    beta: list[BetaAtAlpha]
    delta_curve: DeltaCurve | None
    tradeoff: Points | None
    remarks: Remarks


class OverallStart(AllPairs):
    """The first line, unless the answer is known already."""

    event: Literal["start"]
    steps: int


Quantity = Literal["epsilon", "worst_pair", "delta", "beta", "tradeoff", "delta_curve"]
OverallRows = list[OverallEpsilon] | list[WorstPair] | list[OverallDelta] | list[BetaAtAlpha] | list[TradeOffPoint]


class OverallPart(Answer):
    """Rows of one quantity, as they come; so many of the steps are done."""

    event: Literal["part"]
    done: int
    steps: int
    quantity: Quantity
    rows: OverallRows


class OverallDone(Answer):
    """The last line: everything."""

    event: Literal["done"]
    result: OverallResult
    seconds: Seconds


class OverallError(Answer):
    """The last line where there is no result, in one sentence."""

    event: Literal["error"]
    error: str


OverallEvent = OverallStart | OverallPart | OverallDone | OverallError
"""One line of `/overall`."""


class TextFile(Answer):
    """A file to be saved."""

    text: str
    file_name: str


class ConvertedEpsilon(OtherAccounts):
    """epsilon at one delta."""

    delta: Exact


class ConvertedDelta(OtherAccounts):
    """delta at one epsilon."""

    epsilon: Exact


class ConvertedBeta(Answer):
    """beta at one alpha."""

    alpha: Exact
    zcdp: float
    gaussian: float


class ConvertedCurve(Answer):
    """zCDP's trade-off curve, from below."""

    alpha: list[float]
    zcdp: list[float]


class Converted(Worked):
    """What zCDP implies at one rho, and what the Gaussian formula says."""

    rho: Exact
    epsilon: list[ConvertedEpsilon]
    delta: list[ConvertedDelta]
    beta: list[ConvertedBeta]
    tradeoff: ConvertedCurve | None


class CalibrationAnswer(CheckedDesign):
    """The least factor on the grid: there the target holds, one step below it fails, both proved, or is out of range."""

    factor: Exact
    step: Exact
    statement: str
