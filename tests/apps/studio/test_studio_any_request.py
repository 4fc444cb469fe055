"""Whatever is asked of the studio is answered, as the API's description says, or refused in a sentence."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from exactdp.accounting.composition import Composition
from exactdp.apps.studio.server.app import make_app
from exactdp.census.budget_files import parse_budget
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from studio_server import TEXT, Studio, refused

NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)
BUDGETS = st.one_of(
    st.builds(lambda a, b: f"{a}/{b}", st.integers(1, 20), st.sampled_from([20, 21, 50, 100, 1000])),
    st.integers(1, 100).map(lambda k: f"{k / 100:g}"),
    st.sampled_from([1, 0.1, "1/3", "1e-2", "1e-5"]),
)


@st.composite
def drawn_designs(draw: Any) -> dict[str, Any]:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    levels = [
        {"name": name, "queries": [{"name": f"q{i}", "rho": draw(BUDGETS)} for i in range(draw(st.integers(1, 4)))]}
        for name in names
    ]
    bypassed = draw(st.lists(st.lists(st.sampled_from(names[1:] or ["-"]), unique=True, max_size=3), max_size=4))
    paths = [{"number": i + 1, "bypassed": levels if len(names) > 1 else []} for i, levels in enumerate(bypassed)]
    return {"name": "drawn", "levels": levels, "paths": paths, "scale": draw(st.sampled_from(["1", "3/2", 0.5, 10]))}


@settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)
@given(design=drawn_designs(), delta=st.integers(-30, -1), alpha=st.sampled_from(["1e-9", "0.05", "1/2", "0.999"]))
def test_any_design_is_answered_or_refused_in_a_sentence(studio: Studio, design: Any, delta: int, alpha: str) -> None:
    asked = {"design": design, "deltas": [f"1e{delta}"], "epsilons": ["1", "40"], "alphas": [alpha]}
    response = studio.post("/pair", asked)
    if response.status_code != 200:
        refused(response)
        return
    found = response.json()
    for quantity in ("epsilon", "delta", "beta"):
        assert all(row["lower"] <= row["upper"] for row in found[quantity])
    curve = found["delta_curve"]
    for low, high, simple in zip(curve["lower"], curve["upper"], curve["zcdp_simple"], strict=True):
        assert low <= high
        assert low <= simple
    exported = studio.post("/export", {"design": design}).json()
    assert studio.post("/parse", {"file_name": "x.toml", "text": exported["toml"]}).json()["rho"] == found["rho"]


@pytest.mark.parametrize("rho", ["1e-18", "1e-9", "1000", "999.999", "1/7919", "0.1234567890123456789", "0.3333"])
def test_extreme_budgets(studio: Studio, rho: str) -> None:
    design = {"levels": [{"name": "US", "queries": [{"name": "q", "rho": rho}]}]}
    found = studio.post("/pair", {"design": design, "epsilons": [1]})
    assert found.status_code == 200, found.text
    pair = Composition({DiscreteGaussian(1 / Fraction(rho)): 2})
    row = found.json()["delta"][0]
    assert row["lower"] <= pair.delta_bounds(1).upper
    assert pair.delta_bounds(1).lower <= row["upper"]


def operations() -> list[Any]:
    description = make_app(parse_budget(TEXT, "small.toml")).openapi()
    return [found.ok() for found in schemathesis.openapi.from_dict(description).get_all_operations()]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.name.lower())
@pytest.mark.parametrize("operation", operations(), ids=lambda operation: operation.label)
def test_whatever_is_asked_is_answered_as_described(studio: Studio, operation: Any, mode: GenerationMode) -> None:
    checks = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)

    @settings(
        max_examples=12,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def answered_as_described(case: Any) -> None:
        response = case.call(base_url=f"http://{studio.host}", timeout=60)
        case.validate_response(response, checks=checks)

    with suppress(Unsatisfiable):  # requests without parameters have nothing that could be wrong
        answered_as_described()
