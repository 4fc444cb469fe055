"""What is asked of an optimisation as texts, on the command line or in a TOML file.

minimize = ["worst margin", "variance"]             # in the order of importance
require = ["County total: margin <= 20", "Block: fixed"]
epsilon = 5                                          # without it: the least epsilon at delta
delta = "1e-10"

[cells]                                              # how many areas a level has, how many counts a query has in each
State = 50
County = 3000
"age * sex" = 36

[weights]                                            # instead: how much cells count
State = 50
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from exactdp.census.budget_design import MOST_BYTES
from exactdp.census.releases import Release
from exactdp.csv_text import decoded
from exactdp.errors import InvalidInputError
from exactdp.numbers import Number, shown
from exactdp.optimize.accuracy import MEASURES, VARIANCE
from exactdp.optimize.objective import Objective, number_of_counts

_KEYS = ("minimize", "require", "epsilon", "delta", "weights", "typical", "cells")


@dataclass(frozen=True)
class Request:
    """What is asked, as texts: objectives, requirements, weights, typical counts, epsilon and delta."""

    minimize: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    weights: Mapping[str, Number] = field(default_factory=dict)
    typical: Mapping[str, Number] = field(default_factory=dict)
    epsilon: Number | None = None
    delta: Number | None = None
    cells: Mapping[str, Number] = field(default_factory=dict)

    def weighted(self, release: Release) -> Request:
        """The same with the weights that the numbers of cells come to, where these are given."""
        if not self.cells:
            return self
        if self.weights:
            raise InvalidInputError("Weights are given, or follow from the number of cells. Found both; leave one out.")
        return replace(self, weights=number_of_counts(release, self.cells), cells={})

    def objectives(self) -> tuple[Objective, ...]:
        """The objectives, the most important one first; typical counts are for those of them that are relative."""
        found = tuple(objective(text, self.weights, self.typical) for text in self.minimize or (VARIANCE,))
        if self.typical and not any(one.typical for one in found):
            raise InvalidInputError(
                f"Typical counts go with the relative error. Found them for the measure {found[0].measure}; leave them out."
            )
        return found


def objective(text: str, weights: Mapping[str, Number], typical: Mapping[str, Number]) -> Objective:
    """The objective that a text states: [worst] MEASURE [of CELLS]; the weights are those of its cells.

    >>> objective("worst margin of County", {}, {})
    Objective(measure='margin', weights={'County': 1}, worst=True, typical={})
    """
    said, _, cells = " ".join(text.split()).partition(" of ")
    words = said.split()
    worst = words[:1] == ["worst"]
    measure = " ".join(words[1:] if worst else words)
    if measure not in MEASURES:
        raise InvalidInputError(
            f"An objective reads [worst] MEASURE [of CELLS] with one of {', '.join(MEASURES)}. Found "
            f"{shown(text) or 'an empty one'}."
        )
    counts = typical if measure == "relative" else {}
    if not cells:
        return Objective(measure, dict(weights), worst, dict(counts))
    if weights:
        raise InvalidInputError(
            f"An objective has either weights or 'of CELLS'. Found both in {shown(text)}; give the weights alone."
        )
    return Objective(measure, {cells: 1}, worst, dict(counts))


def read_request(path: Path | str) -> Request:
    """The request that a TOML file states; what is not understood is refused in one sentence."""
    with Path(path).open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    name = Path(path).name
    if len(content) > MOST_BYTES:
        raise InvalidInputError(f"A request must have at most {MOST_BYTES} bytes. Found more in {shown(name)}.")
    try:
        found = tomllib.loads(decoded(content, f"The request {shown(name)}"), parse_float=str)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"The request {shown(name)} is not valid TOML: {shown(error)}. Put texts in quotation marks."
        ) from None
    unknown = [key for key in found if key not in _KEYS]
    if unknown:
        raise InvalidInputError(f"A key of a request is one of {', '.join(_KEYS)}. Found {shown(unknown[0])}.")
    return Request(
        _texts(found.get("minimize", []), "minimize"),
        _texts(found.get("require", []), "require"),
        _numbers(found.get("weights", {}), "weights"),
        _numbers(found.get("typical", {}), "typical"),
        _number(found.get("epsilon"), "epsilon"),
        _number(found.get("delta"), "delta"),
        _numbers(found.get("cells", {}), "cells"),
    )


def _texts(value: object, key: str) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise InvalidInputError(f"{key} is a text or a list of texts. Found {shown(value)}.")
    return tuple(given)


def _numbers(value: object, key: str) -> dict[str, Number]:
    if not isinstance(value, dict):
        raise InvalidInputError(
            f"{key} is a table such as [{key}] with lines such as County = 3000. Found {shown(value)}."
        )
    found = {name: _number(number, key) for name, number in value.items()}
    return {name: number for name, number in found.items() if number is not None}


def _number(value: object, key: str) -> Number | None:
    if value is None or (isinstance(value, int | str) and not isinstance(value, bool)):
        return value
    raise InvalidInputError(f"{key} holds numbers. Found {shown(value)}.")


def pairs_of_texts(texts: Sequence[str], option: str) -> dict[str, Number]:
    """Texts such as County=3000 as a mapping."""
    result: dict[str, Number] = {}
    for text in texts:
        cells, equals, number = text.rpartition("=")
        if not equals or not cells.strip():
            raise InvalidInputError(f"{option} takes CELLS=NUMBER, such as County=3000. Found {shown(text)}.")
        result[cells.strip()] = number.strip()
    return result
