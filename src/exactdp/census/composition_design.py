"""A composition as a design of one level, so that whatever takes a design takes noise that was only listed, too."""

from __future__ import annotations

from fractions import Fraction

from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.census.cell_noise import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, GAUSSIAN, CellNoise
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.guarantees.neighbours import ADD_REMOVE
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import exact_text, shown

LEVEL = "all"


@steady
def composition_design(composition: Composition, name: str = "composition") -> Release:
    """The design whose one path has the mechanisms of the composition, and whose neighbours have one record more or less.

    Each kind of noise becomes a query, its number of copies the number of cells that one record touches.
    Guarantee: the one pair of the design is the composition; continuous noise keeps its ratio of sensitivity and sigma.

    >>> from exactdp import DiscreteGaussian
    >>> composition_design(3 * DiscreteGaussian(2)).proxy
    Composition(3 x DiscreteGaussian(2))
    """
    table: dict[str, Fraction] = {}
    noise: dict[tuple[str, str], CellNoise] = {}
    for number, (mechanism, count) in enumerate(composition.mechanisms.items(), 1):
        kind, rho, sensitivity = _cell(mechanism)
        query = f"query {number}" if count == 1 else f"query {number}, {count} cells"
        table[query] = rho
        noise[LEVEL, query] = CellNoise(kind, sensitivity, count)
    budget = {LEVEL: table}
    title = f"Noise given as a composition, rho {exact_text(Fraction(composition.rho))}"
    return Release(name, title, "listed mechanism by mechanism", budget, {1: ()}, ADD_REMOVE, noise)


def _cell(mechanism: Mechanism) -> tuple[str, Fraction, int]:
    """The kind of noise, the budget that has it, and the sensitivity."""
    if isinstance(mechanism, DiscreteGaussian):
        return DISCRETE_GAUSSIAN, 1 / mechanism.sigma2, mechanism.sensitivity
    if isinstance(mechanism, Gaussian):
        return GAUSSIAN, mechanism.sensitivity**2 / mechanism.sigma2, 1
    if isinstance(mechanism, DiscreteLaplace):
        return DISCRETE_LAPLACE, 1 / mechanism.scale**2, mechanism.sensitivity
    raise InvalidInputError(
        f"The noise of a design is Gaussian or discrete Laplace. Found {shown(mechanism)}; account, compare, calibrate, risk, mu "
        "and certify take it."
    )
