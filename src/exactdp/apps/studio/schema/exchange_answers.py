"""What answers about exchange rates, trades and certificates look like."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from exactdp.apps.studio.schema.answers import Answer, CertifiedBounds, CheckedDesign, Exact, Worked


class CellExchange(Answer):
    """One cell of the table: what a hundredth more budget costs, and what a hundredth more epsilon buys."""

    level: str
    query: str
    cost: Annotated[float, Field(description="epsilon of the worst pair for 0.01 more budget; an estimate.")]
    cost_error: Annotated[float, Field(description="How far off the cost may be, as far as can be told.")]
    standard_error: float
    margin95: int
    gain: Annotated[
        float, Field(description="The share of the standard error that 0.01 more epsilon would save; an estimate.")
    ]


class ExchangeAnswer(Worked):
    """Exchange rates of every cell, for the worst pair at one delta."""

    delta: Exact
    pair: list[int]
    tied: int
    cells: list[CellExchange]


class HeldAnswer(CheckedDesign):
    """The design with its noise scaled, and the certified epsilon of the whole release, which is at most the one asked for."""

    factor: Exact
    epsilon: CertifiedBounds
    statement: str


class TradedLevel(Answer):
    """The largest 95% margin of a level before and after."""

    level: str
    before: int
    after: int


class TradedCell(Answer):
    """The 95% margin of a single cell before and after."""

    level: str
    query: str
    before: int
    after: int


class OptimizedAnswer(CheckedDesign):
    """The best design that was found: proved to meet its guarantee and requirements, and how much better another could be."""

    epsilon: CertifiedBounds
    levels: list[TradedLevel]
    statement: str
    prices: list[str]
    """What each requirement costs, in sentences: estimates."""


class TradeAnswer(CheckedDesign):
    """The design after a trade, with the certified epsilon of the whole release, which is at most the one held."""

    factor: Exact
    epsilon: CertifiedBounds
    held: float
    levels: list[TradedLevel]
    cells: Annotated[list[TradedCell], Field(description="The single cells that were traded between, if any.")]
    statement: str


class FrontierRow(Answer):
    """A design with all budgets multiplied: certified epsilon, and the largest 95% margin of each level."""

    factor: Exact
    epsilon: CertifiedBounds
    margins: dict[str, int]


class FrontierAnswer(Worked):
    """One row for each factor."""

    delta: Exact
    rows: list[FrontierRow]


class VerificationCheck(Answer):
    """One check of a certificate; `passed` is None where it was not made."""

    name: str
    passed: bool | None
    note: str


class VerificationAnswer(Worked):
    """Whether a certificate holds: its claim was proved again."""

    holds: bool
    reason: str
    of_design: bool
    checks: list[VerificationCheck]
