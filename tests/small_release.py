"""A release that is small enough for brute force, with fine and with coarse noise."""

from __future__ import annotations

from fractions import Fraction

from exactdp import census


def small(*, coarse: bool = False) -> census.Release:
    """Three levels, four directed paths; coarse noise cannot share contours."""
    unit = Fraction(3) if coarse else Fraction(1, 2)
    table = {
        "Nation": {"age": unit, "sex": unit / 2},
        "State": {"age": unit / 3, "sex": unit},
        "Block": {"age": unit / 2},
    }
    return census.Release(
        "small", "A small survey", "made up", table, {1: (), 2: ("State",), 3: ("Block",), 7: ("State", "Block")}
    )


SMALL, COARSE = small(), small(coarse=True)

SURVEY = """
title = "A small survey"
[levels.Nation]
"age * sex" = "1/2"
sex = 0.25
[levels.Region]
"age * sex" = 0.5
[bypassed]
1 = []
2 = ["Region"]
"""

FINE_SURVEY = """
title = "A survey with much noise"
[levels.Nation]
"age * sex" = "1/40"
sex = "1/80"
[levels.Region]
"age * sex" = "1/40"
[bypassed]
1 = []
2 = ["Region"]
"""
"""Of fine noise, which optimisers look at hundreds of times in a second or two."""
