"""The built-in releases: the products of the 2020 Census, each written as a JSON design in products/."""

from __future__ import annotations

from functools import cache
from importlib import resources

from exactdp.arithmetic_state import steady
from exactdp.census.budget_files import parse_budget
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.numbers import shown

_NAMES = (
    *("dhc-persons-us", "dhc-persons-pr", "dhc-units-us", "dhc-units-pr", "pl94-persons-us", "pl94-persons-pr"),
    *("pl94-units-us", "pl94-units-pr", "ddhc-a-us", "ddhc-a-pr", "ddhc-b-us", "ddhc-b-pr", "s-dhc-us", "s-dhc-pr"),
    *("s-dhc-formal-us", "s-dhc-formal-pr", "s-dhc-household-us", "s-dhc-household-pr"),
    *("dhc-persons-pr-no-prim", "dhc-units-pr-no-prim", "pl94-persons-us-patterns", "pl94-persons-pr-patterns"),
    *("pl94-units-us-patterns", "pl94-units-pr-patterns", "dhc-2022-08"),
)


@steady
def release_names() -> tuple[str, ...]:
    """The names that `release` takes."""
    return _NAMES


@steady
def release(name: str) -> Release:
    """A release of the 2020 Census by name.

    >>> release("dhc-persons-us").allocations[13].bypassed
    ()
    """
    if not isinstance(name, str) or name not in _NAMES:
        raise InvalidInputError(f"A release is one of {', '.join(_NAMES)}. Found {shown(name)}.")
    return _read(name)


@cache
def _read(name: str) -> Release:
    file = f"{name}.json"
    return parse_budget(resources.files("exactdp.census").joinpath("products", file).read_bytes(), file)
