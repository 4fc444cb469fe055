"""Numbers of the page: written as Python writes them, rounded outward, estimates and cut numbers marked."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from studio_page import DHC, cell, shows, with_budget

from exactdp import numerals
from exactdp.conversions import zcdp_beta, zcdp_epsilon, zcdp_epsilon_simple

if TYPE_CHECKING:
    from playwright.sync_api import Page


def _python(value: float, digits: int) -> list[str]:
    texts = [f(value, digits) for f in (numerals.at_most, numerals.at_least, numerals.about)]
    return [text.replace("inf", "\u221e") for text in texts]


def test_numbers_are_written_as_python_writes_them(page: Page) -> None:
    draw = random.Random(16)
    values = [draw.uniform(-1, 1) * 10 ** draw.uniform(-30, 30) for _ in range(1500)]
    values += [
        5e-324,
        2.2250738585072014e-308,
        1.7976931348623157e308,
        0.1,
        1e-8,
        0.5,
        9.9999995,
        999999.5,
        1e7,
        0.0,
        1e-5,
        1e-4,
    ]
    cases = [(value, draw.choice([1, 2, 3, 6, 8, 12, 17])) for value in values]
    found = page.evaluate(
        """async (cases) => {
          const { about, atLeast, atMost } = await import("/static/state/numerals.js");
          return cases.map(([value, digits]) => [atMost(value, digits), atLeast(value, digits), about(value, digits)]);
        }""",
        cases,
    )
    for (value, digits), texts in zip(cases, found, strict=True):
        assert texts == _python(value, digits), (value, digits)
        assert Decimal(texts[1]) <= Decimal(value) <= Decimal(texts[0])


def test_exact_numbers_are_whole_or_marked(page: Page) -> None:
    draw = random.Random(17)
    texts = [f"{draw.randrange(1, 10**6)}/{draw.randrange(1, 10**6)}" for _ in range(300)]
    texts += [f"{draw.randrange(1, 10**9)}e-{draw.randrange(0, 14)}" for _ in range(300)]
    texts += ["1/3", "1e-8", "24811/5000", "1e-18", "0.1", "1000", "12345678.9", "0.00001", "10000000"]
    found = page.evaluate(
        """async (texts) => {
          const { exactText } = await import("/static/state/numerals.js");
          const { inCell } = await import("/static/state/format.js");
          const { Rational } = await import("/static/state/rational.js");
          return texts.map((text) => [exactText(Rational.parse(text)), inCell(text, "decimal"), inCell(text, "fraction")]);
        }""",
        texts,
    )
    for text, (whole, *cells) in zip(texts, found, strict=True):
        assert whole == numerals.exact(Fraction(text)), text
        for shown in (whole, *cells):
            if not shown.startswith("~"):
                assert Fraction(shown) == Fraction(text)
            else:
                assert abs(Fraction(shown[1:]) / Fraction(text) - 1) < Fraction(1, 1000)
        assert "/" not in cells[0] or Fraction(text).denominator < 100, "a long fraction among decimals"


def test_every_number_of_the_tiles_holds(page: Page) -> None:
    for budget in ("0.3", "1/7"):
        cell(page, "detailed", "PRIM").fill(budget)
        edited = with_budget(DHC, "PRIM", "detailed", budget)
        pair, rho = edited.proxy, edited.rho
        shows(page, "epsilon-value", pair.epsilon("1e-10"))
        assert pair.delta_bounds(_read(page, "#epsilon-value")).upper <= Fraction("1e-10")
        assert _read(page, "#power-value") >= 1 - Fraction(pair.beta_bounds("0.05").lower)
        total = page.locator("#rho-value").inner_text()
        assert total == numerals.exact(rho)
        notes = dict(
            zip(*(page.locator(f"#epsilon-notes {tag}").all_inner_texts() for tag in ("dt", "dd")), strict=True)
        )
        assert Decimal(notes["zCDP optimal"]) >= Decimal(zcdp_epsilon(rho, "1e-10"))
        assert Decimal(notes["zCDP simple"]) >= Decimal(zcdp_epsilon_simple(rho, "1e-10"))
        assert re.fullmatch(r"~[\d.]+, (no bound|lower, below quoted digits)", notes["Gaussian"])
        power = dict(zip(*(page.locator(f"#power-notes {tag}").all_inner_texts() for tag in ("dt", "dd")), strict=True))
        assert Fraction(power["misses (\u03b2)"]) <= Fraction(pair.beta_bounds("0.05").lower)
        page.wait_for_function("() => !document.querySelector('#power-notes').innerText.includes('\u2026')")
        power = dict(zip(*(page.locator(f"#power-notes {tag}").all_inner_texts() for tag in ("dt", "dd")), strict=True))
        assert Fraction(power["zCDP"]) >= 1 - Fraction(zcdp_beta(rho, "0.05"))
        assert power["Gaussian"].startswith("~")
    cell(page, "detailed", "PRIM").fill("20")  # hardly any noise: the formula is far too low or too high, and says so
    shows(page, "epsilon-value", with_budget(DHC, "PRIM", "detailed", "20").proxy.epsilon("1e-10"))
    assert "~" in page.locator("#epsilon-notes dd").nth(2).inner_text()


def _read(page: Page, place: str) -> Fraction:
    text = page.locator(place).inner_text()
    mantissa, _, power = text.replace("\u2212", "-").replace("\n", "").partition("\u00d7 10")
    return Fraction(mantissa.strip()) * Fraction(10) ** int(power or 0)
