"""The path by which users know the published method (engine/published)."""

from exactdp.engine.published.method import (
    MOST_VISITS,
    ReferenceGroup,
    ReferencePlan,
    TailEstimate,
    delta,
    estimated_cost,
    make_reference_plan,
    quadrature,
    tail,
    vertex,
)

__all__ = [
    "MOST_VISITS",
    "ReferenceGroup",
    "ReferencePlan",
    "TailEstimate",
    "delta",
    "estimated_cost",
    "make_reference_plan",
    "quadrature",
    "tail",
    "vertex",
]
