"""The frontier: the best objective at each epsilon, each point a design that is proved to meet it, with its proved bound."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from exactdp.arithmetic_state import steady
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import epsilon_delta_target
from exactdp.notebooks import repr_html
from exactdp.numbers import Number, exact_repr, positive, read_share
from exactdp.optimize.best_design import USUAL_DIGITS, BestDesign, best
from exactdp.optimize.objective import Objective
from exactdp.optimize.requirements import Requirement
from exactdp.optimize.rough_epsilon import epsilon_between

MOST_POINTS = 200


@steady
@dataclass(frozen=True)
class Frontier:
    """The best designs at several epsilons, and where the given design stands."""

    _repr_html_ = repr_html
    __repr__ = exact_repr

    delta: Fraction
    epsilons: tuple[Fraction, ...]
    designs: tuple[BestDesign | None, ...]
    """None where the requirements need more than that epsilon."""
    refusals: tuple[str, ...]
    """Why, for those."""
    given: tuple[float, float]
    """epsilon (at most) and objective of the given design."""

    @property
    def points(self) -> list[tuple[Fraction, BestDesign]]:
        """The epsilons that there is a design for, each with it."""
        return [(e, one) for e, one in zip(self.epsilons, self.designs, strict=True) if one is not None]


@steady
def frontier(
    release: Release,
    objective: Objective | Sequence[Objective] | None = None,
    *,
    delta: Number,
    epsilons: Iterable[Number],
    requirements: Iterable[str | Requirement] = (),
    digits: int = USUAL_DIGITS,
) -> Frontier:
    """The best design at each epsilon, at one delta; where the requirements need more, what they need."""
    share = read_share(delta, "delta")
    asked = tuple(sorted({positive(e, "epsilon") for e in epsilons}))
    if not 1 <= len(asked) <= MOST_POINTS:
        raise InvalidInputError(f"A frontier has 1 to {MOST_POINTS} epsilons. Found {len(asked)} of them.")
    kept = tuple(requirements)
    designs: list[BestDesign | None] = []
    refusals = []
    for epsilon in asked:
        try:
            found = best(
                release, objective, target=epsilon_delta_target(epsilon, share), requirements=kept, digits=digits
            )
        except InvalidInputError as error:
            if epsilon == asked[-1]:
                raise
            designs.append(None)
            refusals.append(str(error))
        else:
            designs.append(found)
    last = next(one for one in reversed(designs) if one is not None)
    given = epsilon_between(release, share)[1], last.values_before[0]
    return Frontier(share, asked, tuple(designs), tuple(refusals), given)
