"""Reads what commands print, and proves every claim in it with the library: in balls where there are such."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath

PROOF = 18  # digits of the answers that a claim is held against
_CELL = re.compile(r" {2,}")


def tables(text: str) -> list[list[dict[str, str]]]:
    """The tables of a text: rows by the names of their columns. A table starts with its heads and ends with an empty line."""
    found = []
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.strip()]
        start = next((i for i, line in enumerate(lines) if "  " in line.strip() and not line.startswith(" ")), None)
        if start is None:
            continue
        heads = _CELL.split(lines[start].strip())
        rows = [_CELL.split(line.strip()) for line in lines[start + 1 :]]
        if rows and all(len(row) == len(heads) for row in rows):
            found.append([dict(zip(heads, row, strict=True)) for row in rows])
    return found


def number(text: str) -> Fraction:
    """A printed number, exactly as it is printed; an estimate is none that can be claimed."""
    assert not text.startswith("~"), f"{text} is an estimate"
    return Fraction(text) if "/" in text else Fraction(Decimal(text.rstrip("%"))) / (100 if text.endswith("%") else 1)


def bounds(compositions: list[Any], quantity: str, at: str) -> tuple[Fraction, Fraction]:
    """The exact worst of some compositions, between two fractions: the largest epsilon or delta, the least beta."""
    answers = [getattr(one, f"{quantity}_bounds")(at, digits=PROOF) for one in compositions]
    worst = min if quantity == "beta" else max
    return worst(Fraction(low) for low, _ in answers), worst(Fraction(high) for _, high in answers)


def check_account(text: str, compositions: list[Any], rho: Fraction) -> int:
    """Every row of `exactdp account`: both bounds, and zCDP's. How many claims were proved."""
    proved = 0
    for row in (row for table in tables(text) for row in table):
        given = next(iter(row))
        quantity = {"delta": "epsilon", "epsilon": "delta", "alpha": "beta"}[given]
        low, high = bounds(compositions, quantity, row[given])
        if quantity != "beta":  # the overall beta is that of an envelope, which is not above the least of the curves
            assert number(row[f"{quantity} at least"]) <= low, row
            proved += 1
        assert (
            (number(row["beta at least"]) <= low) if quantity == "beta" else number(row[f"{quantity} at most"]) >= high
        )
        if quantity == "beta" and len(compositions) == 1:
            assert number(row["beta at most"]) >= high, row
        zcdp = zcdp_bound(rho, quantity, row[given])
        assert number(row["zCDP"]) <= low if quantity == "beta" else number(row["zCDP"]) >= max(high, zcdp), row
        assert row["Gaussian formula"].startswith("~"), row
        proved += 2
    return proved


def zcdp_bound(rho: Fraction, quantity: str, at: str) -> Fraction:
    """At most what zCDP proves: the optimal order, found by a search in 40 digits; 0 for what is not looked at here."""
    if quantity != "epsilon":
        return Fraction(0)
    with mpmath.workdps(40):
        r, log_delta = mpmath.mpf(rho.numerator) / rho.denominator, mpmath.log(mpmath.mpf(at))

        def at(exponent: mpmath.mpf) -> mpmath.mpf:
            a = 1 + mpmath.mpf(10) ** exponent
            return a * r + (mpmath.log1p(-1 / a) * (a - 1) - mpmath.log(a) - log_delta) / (a - 1)

        best = min((mpmath.mpf(k) / 40 for k in range(-300, 300)), key=at)
        low, high = best - mpmath.mpf(1) / 40, best + mpmath.mpf(1) / 40
        for _ in range(200):  # the function has one minimum
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if at(left) < at(right) else (left, high)
        return Fraction(str(mpmath.nstr(at(low) - mpmath.mpf("1e-20"), 30)))


def check_risk(text: str, compositions: list[Any], alpha: str, delta: str) -> int:
    """Advantage, power, Bayes risk at even odds, posterior and odds, as `exactdp risk` prints them."""
    (rows,) = tables(text)
    said = {row["figure"]: number(row["proved"].rpartition(" ")[2]) for row in rows}
    advantage = bounds(compositions, "delta", "0")[1]
    power = 1 - bounds(compositions, "beta", alpha)[0]
    epsilon = bounds(compositions, "epsilon", delta)[1]
    assert said["advantage"] >= advantage
    assert said["Bayes risk"] <= (1 - advantage) / 2
    if len(compositions) == 1:
        assert said["power"] >= power
        assert said["posterior"] >= power / (power + Fraction(alpha))
    with mpmath.workdps(40):
        odds = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        assert mpmath.mpf(said["odds multiplier"].numerator) / said["odds multiplier"].denominator >= odds
    return len(said)
