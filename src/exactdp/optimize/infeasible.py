"""Requirements that no guarantee of the wanted size allows: which of them, and the epsilon that they need at least, proved."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from exactdp.census.cell_noise import DISCRETE_GAUSSIAN
from exactdp.doubles import FORMULA_SLACK
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import MeetsEpsilonDelta, Target
from exactdp.numbers import log_rational, rational
from exactdp.numerals import about, at_least, exact
from exactdp.optimize.dual_bound import coarsest_cells, spread_row
from exactdp.optimize.guarantee import each_target, gaussian_spread
from exactdp.optimize.least_delta import coarsest_alone, fails_from
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.requirements import Requirement

_HALVINGS = 26
_MOST_NAMED = 4
_COARSE = Fraction(1, 20)  # D^2 / sigma2 below which a cell is not asked by itself


def refuse_if_infeasible(problem: BudgetProblem, wanted: Target) -> None:
    """Refuse requirements whose least budgets are proved to be too much for the target, naming those that are, and what
    they need."""
    needed = float(spread_row(problem) @ problem.low) * (1 - FORMULA_SLACK)
    for one in each_target(wanted):
        if isinstance(one, MeetsEpsilonDelta):
            if one.epsilon < 0:
                raise InvalidInputError(f"epsilon of a target must not be negative. Found {exact(one.epsilon)}.")
            _refuse_if_one_cell_is(problem, one)
        if not isinstance(one, MeetsEpsilonDelta) or needed <= _gaussian_limit(one):
            continue
        coarsest = _coarsest(problem)
        if is_infeasible(problem, one, coarsest, needed):
            named = _culprits(problem, one, coarsest)
            part = BudgetProblem.of(problem.release, named)
            needed = float(spread_row(part) @ part.low) * (1 - FORMULA_SLACK)
            least = least_epsilon(part, one, coarsest, needed)
            raise InvalidInputError(_sentence(named, least, one, coarsest))


def _refuse_if_one_cell_is(problem: BudgetProblem, one: MeetsEpsilonDelta) -> None:
    """One cell whose noise must be so coarse that it fails alone, whatever the others have (Lemma 5)."""
    for i, kind in enumerate(problem.kinds):
        least = problem.lower[i]
        if least.by is None or kind.kind != DISCRETE_GAUSSIAN or least.value * kind.sensitivity**2 < _COARSE:
            continue
        low, high = one.epsilon, 2 * max(one.epsilon, Fraction(1))
        if not _fails_alone(low, one.delta, kind.sensitivity, 1 / least.value):
            continue
        while _fails_alone(high, one.delta, kind.sensitivity, 1 / least.value):
            low, high = high, 2 * high
        while high - low > low / 50:
            middle = ((low + high) / 2).limit_denominator(1000)
            low, high = (
                (middle, high) if _fails_alone(middle, one.delta, kind.sensitivity, 1 / least.value) else (low, middle)
            )
        raise InvalidInputError(_sentence((least.by,), float(low), one, None))


def _fails_alone(epsilon: Fraction, delta: Fraction, sensitivity: int, sigma2: Fraction) -> bool:
    found = coarsest_alone(epsilon, delta, sensitivity)
    return found is not None and sigma2 < found


def _gaussian_limit(one: MeetsEpsilonDelta) -> float:
    return gaussian_spread(log_rational(one.delta), float(one.epsilon))


def _coarsest(problem: BudgetProblem) -> Fraction:
    """Half of the least sigma2 among those that the requirements ask for."""
    return 1 / (2 * max(Fraction(x) * r for x, r in _least_budgets(problem)))


def _least_budgets(problem: BudgetProblem) -> list[tuple[Fraction, Fraction]]:
    low = problem.bounds[0]
    return [(low[g], r) for g, r in zip(problem.group.tolist(), problem.ratios, strict=True)]


def is_infeasible(problem: BudgetProblem, one: MeetsEpsilonDelta, coarsest: Fraction, needed: float) -> bool:
    """Proved of all designs without noise of a smaller sigma2."""
    found = coarsest_cells(problem, one, coarsest) if () in problem.release.bypassed.values() else None
    return found is not None and fails_from(found[1], Fraction(needed), one)


def _culprits(problem: BudgetProblem, one: MeetsEpsilonDelta, coarsest: Fraction) -> tuple[Requirement, ...]:
    """As few of the requirements as are still too much together: one after the other is left out where that changes nothing."""
    kept = list(problem.requirements)
    for candidate in problem.requirements:
        rest = tuple(other for other in kept if other is not candidate)
        if not rest:
            break
        part = BudgetProblem.of(problem.release, rest)
        if is_infeasible(part, one, coarsest, float(spread_row(part) @ part.low) * (1 - FORMULA_SLACK)):
            kept = list(rest)
    return tuple(kept)


def least_epsilon(problem: BudgetProblem, one: MeetsEpsilonDelta, coarsest: Fraction, needed: float) -> float:
    """An epsilon from that of `one` on that is proved to be too small where R is at least `needed`, next to the largest such."""
    low, high = float(one.epsilon), float(one.epsilon) + 1.0

    def too_small(epsilon: float) -> bool:
        return is_infeasible(problem, MeetsEpsilonDelta(rational(epsilon, "epsilon"), one.delta), coarsest, needed)

    while too_small(high):
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        if high - low <= 1e-4 * high:
            break
        middle = float(np.float64((low + high) / 2))
        low, high = (middle, high) if too_small(middle) else (low, middle)
    return low


def _sentence(named: tuple[Requirement, ...], least: float, one: MeetsEpsilonDelta, coarsest: Fraction | None) -> str:
    texts = [f"'{requirement.text}'" for requirement in named[:_MOST_NAMED]]
    who = " and ".join(texts) + (f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else "")
    together = f"{who} together need" if len(named) > 1 else f"{who} needs"
    among = "" if coarsest is None else f" (with no sigma2 below {about(coarsest, 3)})"
    return (
        f"{together} an epsilon of at least {at_least(least, 4)} at delta = {exact(one.delta)}{among}. "
        f"Found the target {exact(one.epsilon)}; loosen a requirement or the guarantee."
    )
