"""Section 6 of the paper and beyond: moments, the Edgeworth expansion and its errors, the gap to the Gaussian formula."""

from exactdp.theory.edgeworth_bound import BoundParts, EdgeworthBound
from exactdp.theory.gaussian_gap.gap import Gap, GaussianGap
from exactdp.theory.local_error import LocalErrors, local_errors
from exactdp.theory.moments import absolute_moment, cumulant, standardized_cumulant, standardized_moment

__all__ = [
    "BoundParts",
    "EdgeworthBound",
    "Gap",
    "GaussianGap",
    "LocalErrors",
    "absolute_moment",
    "cumulant",
    "local_errors",
    "standardized_cumulant",
    "standardized_moment",
]
