"""Requirements whose least budgets miss the guarantee already: which of them, and the epsilon that these budgets have.

That no design meets the guarantee is proved in `infeasible.py` where that can be; here a search is refused that would begin
outside. The epsilon named is certified, of the cells that have least budgets, which is at most that of any release that has them
among others (a part of what is published tells no more than all of it); the sentence claims nothing of larger budgets.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from exactdp.accounting.composition import Composition
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import MeetsEpsilonDelta, Target
from exactdp.guarantees.zcdp import zcdp_log_delta
from exactdp.numbers import log_rational
from exactdp.numerals import at_least, exact
from exactdp.optimize.guarantee import Guarantee, each_target
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.requirements import Requirement
from exactdp.optimize.rounding import group_steps

_RIPPLE = 0.5  # of log delta: more budget does not lower it by more
_MOST_TRIED, _MOST_NAMED = 20, 4
_NEXT_TO_NONE = Fraction(1, 10**12)  # of the largest rho: any share is valid, a smaller one only takes longer


def refuse_if_least_is_too_much(problem: BudgetProblem, wanted: Target, guarantee: Guarantee) -> None:
    """Refuse a search that begins outside: the least budgets miss the guarantee, and by more than a ripple."""
    steps = group_steps(problem)
    if not any(limit.by is not None for limit in problem.lower) and not any(steps):
        return
    for one in each_target(wanted):
        if isinstance(one, MeetsEpsilonDelta) and _is_missed(problem, one):
            named = _culprits(problem, one)
            part = BudgetProblem.of(problem.release, named)
            epsilon = _asked_alone(part).epsilon_bounds(one.delta).lower
            raise InvalidInputError(
                f"No design was found: with the least budgets that {_allowed(named)}, epsilon is at least "
                f"{at_least(epsilon, 4)} at delta = {exact(one.delta)}. Found the target {exact(one.epsilon)}; loosen a "
                "requirement or the guarantee."
            )
    design = problem.design(_least_unknowns(problem))
    if not guarantee.is_met_by_zcdp(design) and guarantee.look(design).excess > _RIPPLE:
        raise InvalidInputError(
            f"No design was found: the least budgets that {_allowed(problem.requirements)} miss the guarantee already. Loosen a "
            "requirement or the guarantee."
        )


def _least_unknowns(problem: BudgetProblem) -> tuple[Fraction, ...]:
    steps = group_steps(problem)
    return tuple(max(low, step) for low, step in zip(problem.bounds[0], steps, strict=True))


def _asked_alone(problem: BudgetProblem) -> Composition:
    """The cells with least budgets on the full path; of the others there is next to nothing."""
    found = problem.design(_least_unknowns(problem)).proxy.mechanisms
    most = max(mechanism.rho for mechanism in found)
    return Composition({mechanism: n for mechanism, n in found.items() if mechanism.rho > most * _NEXT_TO_NONE})


def _is_missed(problem: BudgetProblem, one: MeetsEpsilonDelta) -> bool:
    alone, limit = _asked_alone(problem), log_rational(one.delta) + _RIPPLE
    if (
        zcdp_log_delta(Fraction(alone.rho), one.epsilon) <= limit
    ):  # at once, where bounds of a delta far below take long
        return False
    return float(alone.log_delta_bounds(one.epsilon).lower) > limit


def _culprits(problem: BudgetProblem, one: MeetsEpsilonDelta) -> tuple[Requirement, ...]:
    """As few of the requirements as still miss it together: one after the other is left out where that changes nothing."""
    kept = list(problem.requirements)
    for candidate in problem.requirements[:_MOST_TRIED]:
        rest = tuple(other for other in kept if other is not candidate)
        if rest and _is_missed(BudgetProblem.of(problem.release, rest), one):
            kept = list(rest)
    return tuple(kept)


def _allowed(named: tuple[Requirement, ...]) -> str:
    return " and ".join(_texts(named)) + (" allows" if len(named) == 1 else " allow")


def _texts(named: tuple[Requirement, ...]) -> Iterator[str]:
    yield from (f"'{one.text}'" for one in named[:_MOST_NAMED])
    if len(named) > _MOST_NAMED:
        yield f"{len(named) - _MOST_NAMED} more"
