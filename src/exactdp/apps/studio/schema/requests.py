"""What requests look like: the JSON of designs and questions, with limits on every length."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from exactdp.apps.report.decision import MOST_OPTIONS
from exactdp.apps.studio.limits import AT_MOST, NAME_CHARACTERS, REPORT_POINTS, TITLE_CHARACTERS
from exactdp.census.budget_numbers import NUMBER
from exactdp.census.design_certificate import DIGITS as DESIGN_DIGITS

MUST, SENTENCE = "must", "sentence"
"""The types of our refusals: the text says what the value must be, or everything."""
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+(?:_[0-9]+)*)\s*$", re.ASCII)


def _read_number(value: object) -> str | int | float:
    """A number as JSON has it, or a text of one; what the text says is read by the library."""
    if isinstance(value, str) and 0 < len(value) <= AT_MOST.number_characters:
        exponent = _EXPONENT.search(value)
        if exponent and abs(int(exponent[1])) > AT_MOST.exponent:
            raise PydanticCustomError(MUST, f"must have an exponent of at most {AT_MOST.exponent:,} in size")
        return value
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value
    raise PydanticCustomError(
        MUST,
        f"must be a number, or a text of at most {AT_MOST.number_characters} characters such as 73/10000, 0.0073 or 1e-10",
    )


def _read_path(value: object) -> int | list[str]:
    """The number of a path, or the levels that it bypasses."""
    if (type(value) is int or _is_whole(value)) and 1 <= value <= LARGEST_PATH:  # type: ignore[operator]
        return int(value)  # type: ignore[call-overload, no-any-return]
    if isinstance(value, list) and len(value) <= AT_MOST.levels and all(map(_is_name, value)):
        return value
    raise PydanticCustomError(
        MUST, "must be the number of a path of the design, or a list of the levels that are bypassed"
    )


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= NAME_CHARACTERS


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()


LARGEST_PATH = 999_997
Whole = Annotated[int, Strict(), BeforeValidator(lambda value: int(value) if _is_whole(value) else value)]
"""A whole number; 41.0 is one too, as JSON sees it."""
Number = Annotated[
    Any,
    BeforeValidator(_read_number),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "string",
                    "pattern": f"^{NUMBER.pattern}$",
                    "maxLength": AT_MOST.number_characters,
                },
                {"type": "number"},
            ],
            "description": 'An exact number: a text such as "73/10000", "0.0073" or "1e-10"; a JSON number is the decimal '
            "that it prints as.",
            "examples": ["1e-10", "73/10000", 0.5],
        }
    ),
]
Path = Annotated[
    Any,
    BeforeValidator(_read_path),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": LARGEST_PATH},
                {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": AT_MOST.levels},
            ],
            "description": "The number of a path of the design, or the levels that the path bypasses.",
        }
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS)]
Numbers = Annotated[list[Number], Field(max_length=AT_MOST.points)]


class _Strict(BaseModel):
    """No member is ignored."""

    model_config = ConfigDict(extra="forbid")


class Query(_Strict):
    """One query of a level and its budget: noise of sigma2 = 1 / rho."""

    name: Name
    rho: Number


class Level(_Strict):
    """One geographic level and its queries."""

    name: Name
    queries: Annotated[list[Query], Field(min_length=1, max_length=AT_MOST.queries)]


class DirectedPath(_Strict):
    """A directed path of the spine: the levels that it bypasses."""

    number: Annotated[Whole, Field(ge=1, le=LARGEST_PATH)]
    bypassed: Annotated[list[Name], Field(max_length=AT_MOST.levels)] = []


class EditableDesign(_Strict):
    """A budget table (levels, top first, with their queries) and the directed paths; what the page edits."""

    name: Annotated[str, Field(max_length=NAME_CHARACTERS)] = "design"
    title: Annotated[str, Field(max_length=TITLE_CHARACTERS)] = ""
    source: Annotated[str, Field(max_length=TITLE_CHARACTERS)] = ""
    unit_of_privacy: Annotated[str, Field(max_length=NAME_CHARACTERS, description="Whose record it is.")] = ""
    levels: Annotated[list[Level], Field(min_length=1, max_length=AT_MOST.levels)]
    paths: Annotated[list[DirectedPath], Field(max_length=AT_MOST.paths)] = []
    scale: Annotated[Number, Field(description="A factor on every noise variance sigma2.")] = "1"

    @model_validator(mode="after")
    def _few_cells(self) -> EditableDesign:
        cells = sum(len(level.queries) for level in self.levels)
        if cells > AT_MOST.cells:
            raise PydanticCustomError(
                SENTENCE, f"A design must have at most {AT_MOST.cells} budgets here. Found {cells}."
            )
        return self


class About(_Strict):
    """A question about a design as a whole."""

    design: EditableDesign


class BudgetFile(_Strict):
    """A budget file: its name, which ends in .toml or .csv, and its text."""

    file_name: Annotated[
        str,
        Field(max_length=NAME_CHARACTERS, json_schema_extra={"pattern": r"\.(toml|csv)$"}, examples=["survey.toml"]),
    ]
    text: Annotated[str, Field(max_length=AT_MOST.file_characters)]


class DeltaCurveGrid(_Strict):
    """A grid of epsilons: those given, or `num` of them from 0 to where zCDP states the delta `least`."""

    num: Annotated[Whole, Field(ge=2, le=AT_MOST.curve_points)] = 41
    least: Number = "1e-15"
    epsilons: Annotated[list[Number], Field(min_length=1, max_length=AT_MOST.curve_points)] | None = None


class TradeOffGrid(_Strict):
    """A trade-off curve of at most `num` points."""

    num: Annotated[Whole, Field(ge=5, le=AT_MOST.curve_points)] = 65


class OverallDeltaCurveGrid(DeltaCurveGrid):
    """The same for all pairs, with fewer points."""

    num: Annotated[Whole, Field(ge=2, le=AT_MOST.overall_curve_points)] = 13
    epsilons: Annotated[list[Number], Field(min_length=1, max_length=AT_MOST.overall_curve_points)] | None = None


class OverallTradeOffGrid(_Strict):
    """A trade-off curve of at most `num` points."""

    num: Annotated[Whole, Field(ge=5, le=AT_MOST.overall_curve_points)] = 33


class PairOfPaths(About):
    """Two directed paths of a design, each by its number or by the levels that it bypasses; without: the full path twice."""

    pair: Annotated[list[Path], Field(min_length=2, max_length=2)] | None = None


class PairQuestion(PairOfPaths):
    """What is asked of one pair of directed paths."""

    deltas: Numbers = ["1e-10"]
    epsilons: Numbers = []
    alphas: Numbers = ["0.05"]
    delta_curve: DeltaCurveGrid | None = DeltaCurveGrid()
    tradeoff: TradeOffGrid | None = TradeOffGrid()
    noise: bool = True
    risk: bool = False
    zcdp_beta: Annotated[bool, Field(description="Whether zCDP's beta is wanted as well, which takes longer.")] = False


class OverallQuestion(About):
    """What is asked of all pairs of directed paths."""

    deltas: Numbers = ["1e-10"]
    epsilons: Numbers = []
    alphas: Numbers = ["0.05"]
    delta_curve: OverallDeltaCurveGrid | None = OverallDeltaCurveGrid()
    tradeoff: OverallTradeOffGrid | None = OverallTradeOffGrid()
    worst_pair: bool = True


class Conversion(_Strict):
    """What zCDP with this rho implies, and the Gaussian formula: epsilon at deltas, delta at epsilons, beta at alphas."""

    rho: Number
    deltas: Numbers = []
    epsilons: Numbers = []
    alphas: Numbers = []
    tradeoff: Annotated[Whole, Field(ge=5, le=AT_MOST.zcdp_points)] | None = None


class CalibrationQuestion(PairOfPaths):
    """The least factor m / grid on the noise variances that meets a target (epsilon, delta; alpha, beta; or advantage)."""

    over: Literal["pair", "overall"] = "pair"
    epsilon: Number | None = None
    delta: Number | None = None
    alpha: Number | None = None
    beta: Number | None = None
    advantage: Number | None = None
    grid: Annotated[Whole, Field(ge=1, le=AT_MOST.grid)] = 1000
    level: Name | None = None


class CertificateQuestion(PairOfPaths):
    """One question, to be answered by a certificate: exactly one of delta, epsilon and alpha (alpha for a pair only).

    Over a pair: an enclosure of the answer, 5 to 200 digits (30 unless told). Overall: the least answer for which every pair's
    delta is small enough, 2 to 50 digits (10 unless told, or as many as can be proved), with a pair that proves it.
    """

    over: Literal["pair", "overall"] = "pair"
    delta: Number | None = None
    epsilon: Number | None = None
    alpha: Number | None = None
    digits: Annotated[Whole, Field(ge=DESIGN_DIGITS[0], le=AT_MOST.digits)] | None = None


class ExchangeQuestion(About):
    """What more budget costs and buys at each cell, at one delta of the whole release."""

    delta: Number = "1e-10"


class HoldQuestion(About):
    """At most this epsilon at delta for the whole release, by more or less noise at one level, or at all."""

    delta: Number = "1e-10"
    epsilon: Number
    level: Name | None = None


class OptimizeQuestion(About):
    """The design with the least error that has at most this epsilon at delta and meets the requirements, such as
    "Block: margin <= 40"."""

    delta: Number = "1e-10"
    epsilon: Number
    requirements: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS)]], Field(max_length=AT_MOST.points)
    ] = []
    minimize: Literal["variance", "error", "margin"] = "variance"


class TradeQuestion(About):
    """A share of the budget of the level `take` for the level `give`, at the design's own epsilon or at the one given.

    With `take_query` or `give_query` it is that of one query there, a single cell of the table.
    """

    delta: Number = "1e-10"
    epsilon: Number | None = None
    take: Name
    take_query: Name | None = None
    give: Name
    give_query: Name | None = None
    share: Number


class FrontierQuestion(About):
    """The design with every budget multiplied by each factor."""

    delta: Number = "1e-10"
    factors: Annotated[list[Number], Field(min_length=1, max_length=AT_MOST.points)] = ["1/2", "3/4", "1", "3/2", "2"]


class CertificateText(_Strict):
    """The text of a certificate, of a pair or of a whole design."""

    text: Annotated[str, Field(min_length=1, max_length=AT_MOST.file_characters)]


class TableQuestion(PairOfPaths):
    """A table as CSV: the pair's curves, every pair on the grids, or the noise of the pair's paths."""

    what: Literal["curve", "pairs", "noise"] = "curve"
    deltas: Numbers = ["1e-10"]
    epsilons: Numbers = []
    alphas: Numbers = []


class NamedDesign(About):
    """A design under a name."""

    name: Name


class ReportQuestion(About):
    """A report of a design: its headline is at `delta`, its tables are at `deltas` as well.

    For the memo: other designs, the epsilon that may be spent, and typical counts of levels.
    """

    delta: Number = "1e-10"
    deltas: Annotated[list[Number], Field(max_length=REPORT_POINTS)] = ["1e-5", "1e-10", "1e-15"]
    against: Annotated[list[NamedDesign], Field(max_length=MOST_OPTIONS)] = []
    within: Number | None = None
    typical: Annotated[dict[Name, Whole], Field(max_length=AT_MOST.levels)] = {}
