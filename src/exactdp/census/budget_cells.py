"""What a budget file says of one query: a number, or a table with the number, the sensitivity, the cells and the noise.

age = { rho = "1/3", sensitivity = 2, cells = 3, noise = "discrete laplace" }
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from exactdp.census.budget_numbers import number
from exactdp.census.cell_noise import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, KINDS, USUAL, CellNoise
from exactdp.errors import InvalidInputError
from exactdp.numbers import shown

NUMBERS = ("rho", "sigma2", "sigma", "scale", "share")
"""Under which name a query's table may have its number."""
TRAITS = ("sensitivity", "cells", "noise")


class WrittenQuery(NamedTuple):
    """A query as it was understood: its budget rho, or its share of the total, and its noise."""

    amount: Fraction
    noise: CellNoise


def read_query(value: object, unit: str, place: str) -> WrittenQuery:
    """The query that a number in the unit of the file, or a table, describes; `place` says where it stands."""
    if not isinstance(value, Mapping):
        return WrittenQuery(_amount(value, unit, place), USUAL)
    unknown = [name for name in value if name not in (*NUMBERS, *TRAITS)]
    if unknown:
        raise InvalidInputError(
            f"A query must have one number, or a table with some of {', '.join((*NUMBERS, *TRAITS))}. "
            f"Found {shown(unknown[0]) or 'an empty name'}{place}; put a name with a dot in quotation marks."
        )
    named = [name for name in NUMBERS if name in value]
    if len(named) != 1:
        raise InvalidInputError(
            f"A query must have one of {', '.join(NUMBERS)}. Found {' and '.join(named) or 'none of them'}{place}."
        )
    name = named[0]
    if (name == "share") != (unit == "share"):
        raise InvalidInputError(
            f'Shares are of all queries or of none. Found {name} with unit = "{unit}"{place}; write all of them alike.'
        )
    return WrittenQuery(_amount(value[name], name, place), _noise(value, name, place))


def _amount(value: object, unit: str, place: str) -> Fraction:
    """rho, or the share."""
    given = number(value, unit, unit, place)
    if unit in ("rho", "share"):
        return given
    return 1 / given if unit == "sigma2" else 1 / given**2


def _noise(value: Mapping[str, object], name: str, place: str) -> CellNoise:
    kind = _kind(value.get("noise", DISCRETE_LAPLACE if name == "scale" else DISCRETE_GAUSSIAN), place)
    if name == "scale" and kind != DISCRETE_LAPLACE:
        raise InvalidInputError(f"scale is of Laplace noise. Found the noise {kind}{place}; give sigma2, sigma or rho.")
    if name in ("sigma2", "sigma") and kind == DISCRETE_LAPLACE:
        raise InvalidInputError(f"{name} is of Gaussian noise. Found the noise {kind}{place}; give scale or rho.")
    counts = {trait: _whole(value[trait], trait, place) for trait in ("sensitivity", "cells") if trait in value}
    try:
        return CellNoise(kind, **counts)
    except InvalidInputError as error:
        raise InvalidInputError(f"{str(error).removesuffix('.')}{place}.") from None


def _kind(written: object, place: str) -> str:
    kind = " ".join(str(written).lower().replace("_", " ").replace("-", " ").split())
    if not isinstance(written, str) or kind not in KINDS:
        raise InvalidInputError(f"noise must be one of {', '.join(KINDS)}. Found {shown(written) or 'nothing'}{place}.")
    return kind


def _whole(written: object, name: str, place: str) -> int:
    text = written.strip() if isinstance(written, str) else written
    if type(text) is int or (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 10):
        return int(text)
    raise InvalidInputError(f"{name} must be a whole number such as 2. Found {shown(written) or 'nothing'}{place}.")


def touched(noise: CellNoise) -> list[tuple[str, int]]:
    """The whole numbers of a query's table that are not 1."""
    return [(name, n) for name, n in (("sensitivity", noise.sensitivity), ("cells", noise.cells)) if n != 1]
