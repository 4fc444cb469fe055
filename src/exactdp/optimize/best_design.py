"""The best design at a given guarantee: searched freely, rounded to short budgets, proved to meet it, with a proved bound
beside it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactdp.arithmetic_state import steady
from exactdp.census.design_certificate import DesignCertificate
from exactdp.census.design_proof import certify_design
from exactdp.census.overall import sides
from exactdp.census.pair_results import rough_points
from exactdp.census.releases import Release
from exactdp.census.savings import design_side
from exactdp.doubles import Floats
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.guarantees.calibration import MeetsAll, MeetsEpsilonDelta, MeetsMu, Target
from exactdp.notebooks import repr_html
from exactdp.numbers import exact_repr, shown, whole
from exactdp.numerals import UP, about, percent
from exactdp.optimize.cell_changes import CellChange, cell_changes
from exactdp.optimize.cells import cell_name
from exactdp.optimize.guarantee import NEARER, Guarantee, each_target, spread_slopes
from exactdp.optimize.infeasible import refuse_if_infeasible
from exactdp.optimize.least_budgets import refuse_if_least_is_too_much
from exactdp.optimize.objective import Objective
from exactdp.optimize.objective_bound import ObjectiveBound, objective_bound
from exactdp.optimize.prices import Price, requirement_prices
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.requirements import Requirement, read_requirements
from exactdp.optimize.round_budgets import best_multiples
from exactdp.optimize.rounding import group_steps, raised_steps, rounded_down
from exactdp.optimize.search import Aim, Search
from exactdp.optimize.water_filling import SummedErrors
from exactdp.optimize.whole_curve import SIZES, WholeCurve, decides, sees

DIGITS = (2, 12)
USUAL_DIGITS = 6
_ATTEMPTS = 14
_QUICK = 4e-6, 3e-5  # of the budget: what is left to quick proofs of a mu, at first and at most
_SLOW = 4e-5  # the same for slow ones, whose work falls with it
_HALVINGS, _SLOW_HALVINGS = 4, 2
_WORTH_WHILE = 3e-5  # of the budget: what is left over from which on a closer share is looked for


@steady
@dataclass(frozen=True)
class BestDesign:
    """A design that is proved to meet its guarantee and requirements, and how far from the best it can be at most."""

    _repr_html_ = repr_html
    __repr__ = exact_repr

    release: Release
    before: Release
    target: Target
    requirements: tuple[Requirement, ...]
    objectives: tuple[Objective, ...]
    """The first is the most important one."""
    values: tuple[float, ...]
    """Of each objective."""
    values_before: tuple[float, ...]
    bound: ObjectiveBound | None
    """Of the first objective; none where nothing could be proved."""
    prices: tuple[Price, ...]
    """What requirements cost: estimates."""

    @property
    def value(self) -> float:
        """The first objective."""
        return self.values[0]

    @property
    def gap(self) -> float | None:
        """Proved: no admissible design has a first objective that is smaller by more than this share."""
        if self.bound is None or not self.value:
            return None
        return max(1 - self.bound.value / self.value, 0.0) * (1 + 1e-12)

    @property
    def before_after(self) -> tuple[CellChange, ...]:
        """Every cell before and after, on a path that bypasses nothing."""
        return cell_changes(self.before, self.release)

    def certificate(self, digits: int | None = None) -> DesignCertificate:
        """A certificate of the design: of the least epsilon at the delta of its first (epsilon, delta)."""
        delta = next((one.delta for one in each_target(self.target) if isinstance(one, MeetsEpsilonDelta)), None)
        if delta is None:
            raise InvalidInputError(
                "A certificate needs a target of epsilon and delta. Found none; call exactdp.certify."
            )
        return certify_design(self.release, delta=delta, digits=digits)

    def __str__(self) -> str:
        lines = [
            f"{self.release.title}: {one} {about(old)} -> {about(new)}"
            for one, old, new in zip(self.objectives, self.values_before, self.values, strict=True)
        ]
        return "\n".join([*lines, self.statement])

    @property
    def statement(self) -> str:
        """What is proved, in a sentence."""
        gap = self.gap or 0.0
        if self.bound is None or gap >= _SAYS_NOTHING:
            return "The guarantee is proved; how far the design is from the best one is not."
        return f"The guarantee is proved, and so is that {self.bound}: at most {percent(gap, UP, 4)} better."


_SAYS_NOTHING = 0.9  # a bound below a tenth of the objective is none that anyone can use


@steady
def best(
    release: Release,
    objective: Objective | Sequence[Objective] | None = None,
    *,
    target: Target | Sequence[Target],
    requirements: Iterable[str | Requirement] = (),
    digits: int = USUAL_DIGITS,
    slack: float = 0.01,
) -> BestDesign:
    """The design with the least objective that meets the target and the requirements, budgets of `digits` significant digits.

    `objective` is one (by default the sum of all variances) or several in the order of their importance: each later one is made
    small while the earlier ones stay within a share of `slack` of their best. `target` is one or several of `exactdp.target`, all
    of which are met.

    Guarantee: the release returned meets target and requirements, by certified bounds over all pairs; `bound` is proved.

    >>> from exactdp import target
    >>> from exactdp.census import release
    >>> found = best(release("pl94-units-us"), target=target(5, "1e-10"))
    >>> found.value < found.values_before[0]
    True
    """
    wanted = read_target(target)
    objectives = read_objectives(objective)
    share = slack if isinstance(slack, float | int) and 0 <= slack <= 1 else -1.0
    if share < 0:
        raise InvalidInputError(f"slack is a share from 0 to 1. Found {shown(slack)}.")
    problem = BudgetProblem.of(release, read_requirements(release, requirements))
    steps, shown_digits = group_steps(problem), whole(digits, "digits", *DIGITS)
    sums = [SummedErrors(problem, one.measure, one.cell_weights(release)) for one in objectives]
    refuse_idle(problem, sums)
    refuse_if_infeasible(problem, wanted)
    guarantee = Guarantee.of(wanted)
    refuse_if_least_is_too_much(problem, wanted, guarantee)
    first = aim = Aim(sums[0], objectives[0].worst)
    unknowns, reached = problem.start(), math.inf
    for place in range(len(objectives)):
        search, unknowns = _searched(problem, wanted, guarantee, aim, unknowns)
        if place + 1 < len(objectives):
            reached = min(reached, first.at(unknowns))
            aim = _next_aim(aim, aim.at(unknowns) * (1 + share), sums[place + 1], objectives[place + 1].worst)
    design = rounded_and_proved(search, wanted, unknowns, shown_digits, steps)
    if any(steps) and sees(release, wanted):
        design = _with_best_multiples(problem, wanted, aim, design, steps)
    values = tuple(one.value(design) for one in objectives)
    # what the first objective reached before others had their share: a bound cannot come nearer to the design's own value
    bound = objective_bound(problem, wanted, first, design, min(values[0], reached))
    return BestDesign(
        dataclasses.replace(design, title=f"{release.title}, optimized"),
        release,
        wanted,
        problem.requirements,
        objectives,
        values,
        tuple(one.value(release) for one in objectives),
        bound,
        requirement_prices(problem, guarantee, aim, design),
    )


def read_target(target: Target | Sequence[Target]) -> Target:
    """One or several targets as one."""
    if isinstance(target, Target):
        return target
    if (
        not isinstance(target, Sequence)
        or isinstance(target, str)
        or not all(isinstance(one, Target) for one in target)
    ):
        raise InvalidInputError(f"A target is made by exactdp.target(...), or a list of such. Found {shown(target)}.")
    return MeetsAll(tuple(target))


def read_objectives(objective: Objective | Sequence[Objective] | None) -> tuple[Objective, ...]:
    """One or several objectives, the most important one first."""
    given = (
        (Objective(),) if objective is None else (objective,) if isinstance(objective, Objective) else tuple(objective)
    )
    if not given or not all(isinstance(one, Objective) for one in given):
        raise InvalidInputError("Objectives are exactdp.optimize.Objective, at least one of them. Found none.")
    return given


def refuse_idle(problem: BudgetProblem, sums: Sequence[SummedErrors]) -> None:
    """Refuse problems in which nothing can be chosen, or in which a cell would be left without budget."""
    if problem.is_fixed:
        raise InvalidInputError("Every cell is fixed, so that there is nothing to choose. Free some of them.")
    counted = np.zeros(problem.count, dtype=bool)
    for one in sums:
        counted[problem.group[one.weights > 0]] = True
    for i, g in enumerate(problem.group.tolist()):
        asked = any(problem.lower[j].by is not None for j in np.flatnonzero(problem.group == g).tolist())
        if not counted[g] and not asked:
            raise InvalidInputError(
                f"{cell_name(problem.cells[i])} is in no objective and in no requirement, so that it would be left without "
                f"budget. "
                "Give it a weight, a requirement, or say fixed."
            )


def _next_aim(aim: Aim, cap: float, errors: SummedErrors, worst: bool) -> Aim:
    """The aim after one that has been reached: a largest error leaves bounds, a sum leaves a cap."""
    if aim.worst:
        low = aim.errors.level(cap)
        return Aim(errors, worst, aim.before, low if aim.low is None else np.maximum(low, aim.low))
    return Aim(errors, worst, (*aim.before, (aim.errors, cap)), aim.low)


def _searched(
    problem: BudgetProblem, wanted: Target, guarantee: Guarantee, aim: Aim, start: Floats
) -> tuple[Search, Floats]:
    """The best unknowns that a search finds, and the search; where one of several epsilons will do, again with closer ones.

    The epsilons of a mu or a beta are found for every design anew where it is small.
    """
    small = sees(problem.release, wanted)
    if decides(wanted) and small:
        rough, close = curve_searches(problem, wanted, aim)
        return close, close.scaled(rough.beyond(rough.found(start)))
    rounds: tuple[float, ...] = NEARER if any(len(choice) > 1 for choice in guarantee.choices) else ()
    search = Search(problem, guarantee, aim)
    found = search.found(start, thorough=not rounds)
    for apart in rounds:
        search = Search(problem, guarantee.nearer(wanted, search.look(found), apart), aim)
        found = search.improved(found, thorough=apart == rounds[-1])
    if small and search.is_very_coarse(found):
        rough, close = curve_searches(problem, wanted, aim)
        found = search.better(found, close.scaled(rough.beyond(found)))
    return search, found


def curve_searches(problem: BudgetProblem, wanted: Target, aim: Aim) -> tuple[Search, Search]:
    """Searches on estimates of whole curves, rough and close."""
    rough, close = (Search(problem, WholeCurve.of_target(wanted, size), aim) for size in SIZES)
    return rough, close


def is_proved(wanted: Target, design: Release, quick: bool = False) -> bool:
    """Whether the design is proved to meet the target, over all pairs: on rough contours where these decide.

    `quick` leaves out the slow proof of mu for noise that is not close to the Gaussian.
    """
    for one in each_target(wanted):
        if isinstance(one, MeetsEpsilonDelta):
            found = int(sides(rough_points(design, [one.epsilon])[0], one.delta).max())
            if found < 0:
                continue
        if isinstance(one, MeetsMu):
            proved = one.at_once if quick else one.holds
            if not all(proved(pair) for pair in design.compositions):
                return False
        elif design_side(one, design) >= 0:
            return False
    return True


def rounded_and_proved(
    search: Search, wanted: Target, unknowns: Floats, digits: int, steps: tuple[Fraction, ...]
) -> Release:
    """The design of the unknowns, short and proved; where rounding has cost the guarantee, with a little less budget."""
    slow = any(isinstance(one, MeetsMu) for one in each_target(wanted))
    for quick in (True, False) if slow else (False,):
        back, failed = 0.0 if not slow else _QUICK[0] if quick else _SLOW, 0.0
        for attempt in range(_ATTEMPTS):
            found = _proved_less(search, wanted, unknowns, back, digits, steps, attempt, quick)
            if found is not None:
                halvings = 0 if back == 0 else _HALVINGS if quick else _SLOW_HALVINGS
                return _with_more(search, wanted, unknowns, (failed, back), digits, steps, found, quick, halvings)
            if quick and back >= _QUICK[1]:
                break
            if quick:
                back = _QUICK[1] / 4
            back, failed = max(4 * back, 10.0**-digits), back
    raise AccuracyError(
        "No design could be proved to meet the target with these requirements. Loosen a requirement or the guarantee, or "
        "allow more "
        "digits."
    )


def _with_best_multiples(
    problem: BudgetProblem, wanted: Target, aim: Aim, design: Release, steps: tuple[Fraction, ...]
) -> Release:
    """The design with the best multiples of the steps about its own."""
    found = best_multiples(
        curve_searches(problem, wanted, aim),
        problem.unknowns(design),
        steps,
        lambda other: is_proved(wanted, other),
    )
    return problem.design(found)


def _proved_less(
    search: Search,
    wanted: Target,
    unknowns: Floats,
    back: float,
    digits: int,
    steps: tuple[Fraction, ...],
    attempt: int,
    quick: bool,
) -> Release | None:
    """The design with the unknowns less by a share, rounded, if it is proved."""
    problem = search.problem
    short = rounded_down(problem, unknowns * (1 - back), digits, steps)
    if any(steps) and attempt < _ATTEMPTS // 2:
        short = _filled(search, short, steps, share=1 - attempt / 4)
    design = problem.design(short)
    design.check_noise()
    return design if is_proved(wanted, design, quick) else None


def _with_more(
    search: Search,
    wanted: Target,
    unknowns: Floats,
    between: tuple[float, float],
    digits: int,
    steps: tuple[Fraction, ...],
    found: Release,
    quick: bool,
    halvings: int,
) -> Release:
    """A design that is proved, too, with a share between one that failed and one that did not."""
    low, high = between
    for _ in range(halvings if high > _WORTH_WHILE else 0):
        middle = (low + high) / 2
        better = _proved_less(search, wanted, unknowns, middle, digits, steps, _ATTEMPTS, quick)
        found, low, high = (found, middle, high) if better is None else (better, low, middle)
    return found


def _filled(
    search: Search, short: tuple[Fraction, ...], steps: tuple[Fraction, ...], share: float
) -> tuple[Fraction, ...]:
    """Steps more where the guarantee leaves room for them."""
    problem = search.problem
    at = np.array([float(y) for y in short])
    look = search.look(at)
    costs = problem.by_group(spread_slopes(problem.release, problem.cells))
    room = float(costs @ at) * (look.room - 1) * share
    if look.excess > 0 or room <= 0:
        return short
    higher = at + np.array([float(step) for step in steps])
    gains = -search.aim.errors.slopes((at + higher) / 2)
    return raised_steps(short, steps, problem.bounds[1], gains, costs, room)
