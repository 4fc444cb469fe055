"""Weights and requirements of an optimisation that cannot be meant."""

from __future__ import annotations

import pytest

from exactdp import census
from exactdp.errors import InvalidInputError
from exactdp.optimize.objective import Objective
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.requirements import read_requirements

_RELEASE = census.release("pl94-persons-us")


@pytest.mark.parametrize("weight", ["1e300", "1e400", "1e-101"])
def test_weights_beyond_the_range_of_doubles_are_refused(weight: str) -> None:
    with pytest.raises(InvalidInputError, match=r"between 1e-100 and 1e100\. Found"):
        Objective("variance", {"State": weight}).cell_weights(_RELEASE)
    assert Objective("variance", {"State": "1e100"}).cell_weights(_RELEASE).max() == 1e100


def test_a_contradiction_between_tied_cells_ends_in_a_sentence() -> None:
    texts = read_requirements(_RELEASE, ["State: equal", "State: fixed"])
    with pytest.raises(InvalidInputError, match=r", with which it is tied\. Loosen one of them\.$"):
        BudgetProblem.of(_RELEASE, texts)
