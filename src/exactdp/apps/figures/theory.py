"""The figures of the paper's Section 6, for any composition: the exact distribution of the loss against the continuous Gaussian,
and the errors of the Edgeworth expansion against the number of mechanisms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from exactdp.accounting.composition import Composition
from exactdp.accounting.loss_distribution import smoothed_density
from exactdp.apps.figures.style import EXACT, INK, LEGEND, RHO, SIGMA2, SIMPLE, SOFT, ZCDP, dress, new_figure, titled
from exactdp.arithmetic_state import steady
from exactdp.doubles import Floats
from exactdp.guarantees.gaussian_estimates import gaussian_delta
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numbers import Number, shown
from exactdp.numerals import exact as exact_numeral
from exactdp.theory.edgeworth_bound import EdgeworthBound
from exactdp.theory.local_error import local_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TWO_MECHANISMS = Composition([DiscreteGaussian("5/2"), DiscreteGaussian("10/3")])
"""Budgets of 0.4 and 0.3, near the largest two of the Census; their sum visibly oscillates, as in the paper's Figure 1."""

FOLDS = (1, 2, 3, 4, 6, 8, 12, 16, 25, 40, 64, 100, 160, 250, 400)
NOISES = ("0.1", "0.4", "1", "4")

_REACH = 3.5  # standard deviations to either side
_BINS = 120
_WINDOW = (40, 1050)  # lattice points to either side: enough for the shortest period of the noise, within a few seconds
_SLOPE_FROM = 40
_PIECES = 150


@steady
def figure_convolution(compositions: Composition | Mapping[str, Composition] = TWO_MECHANISMS) -> Figure:
    """The exact distribution of the privacy loss against the density of the continuous Gaussian with the same rho.

    One column for each composition (a mapping gives them titles). Above: probability per unit of loss, lattice point by
    lattice point or, where there are more than a few hundred, in bins of equal width; where the loss has no usable lattice, its
    density averaged over tents. Below: the same relative to the continuous Gaussian, neighbouring lattice points where there
    are such, which is where the oscillation is.
    """
    columns = {_name(compositions): compositions} if isinstance(compositions, Composition) else dict(compositions)
    figure = new_figure(3.4 * len(columns) + 0.8, 5.2)
    axes = figure.subplots(2, len(columns), squeeze=False)
    for i, (title, composition) in enumerate(columns.items()):
        above, below = axes[0][i], axes[1][i]
        if composition.step is None:
            _draw_smoothed(above, below, composition)
        else:
            _draw_distribution(above, composition, composition.step)
            _draw_oscillation(below, composition, composition.step)
        above.set_title(title, fontsize=9, color=INK)
        above.set_xlabel("Privacy loss")
    axes[0][0].set_ylabel("Probability per unit of loss")
    axes[1][0].set_ylabel("Probability relative to the\ncontinuous Gaussian, less 1")
    handles, labels = axes[0][0].get_legend_handles_labels()
    handles += axes[1][0].collections[:1]
    figure.legend(handles, [*labels, "Certified bounds"], loc="outside upper center", ncols=3, **LEGEND)
    return figure


@steady
def figure_edgeworth(noises: Sequence[Number] = NOISES, folds: Sequence[int] = FOLDS) -> Figure:
    """The largest local errors against the number of mechanisms: normal density, Edgeworth expansion, and the bounds.

    One panel for each noise parameter; slopes are fitted from m = 40 on.
    """
    across = min(len(noises), 2)
    figure = new_figure(4.3 * across, 3.5 * math.ceil(len(noises) / across) + 0.5)
    panels = figure.subplots(math.ceil(len(noises) / across), across, squeeze=False).ravel()
    for axes, noise in zip(panels, noises, strict=False):
        _draw_errors(axes, noise, folds)
    for axes in panels[len(noises) :]:
        axes.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    names = [label.split(" (")[0] for label in labels]
    figure.legend(handles, names, loc="outside lower center", ncols=2, **LEGEND)
    return titled(figure, "Largest error of P(X1 + ... + Xm = n) over all n")


def _draw_errors(axes: Axes, noise: Number, folds: Sequence[int]) -> None:
    """One panel: four curves with their fitted slopes."""
    rows = []
    for m in folds:
        bound, errors = EdgeworthBound(noise, m), local_errors(noise, m)
        bounds = bound.sharp(pieces=_PIECES), bound.best().total
        rows.append([float(b.mid()) for b in (errors.normal, errors.edgeworth, *bounds)])
    styles = (
        ("Normal density", SOFT, "--", "s"),
        ("Edgeworth expansion", EXACT, "-", "o"),
        ("Sharper bound (Theorem 19)", SIMPLE, "-", None),
        ("Published bound, corrected (Theorem 18)", ZCDP, "-.", None),
    )
    for values, (label, colour, line, marker) in zip(np.array(rows).T, styles, strict=True):
        slope = fitted_slope(folds, values)
        text = label if math.isnan(slope) else f"{label} (slope {slope:.2f})"
        axes.loglog(folds, values, line, color=colour, lw=1.3, marker=marker, ms=2.6, label=text)
        if not math.isnan(slope) and not label.startswith("Sharper"):
            axes.annotate(
                f"{slope:.2f}", (folds[-1], values[-1]), (3, 0), textcoords="offset points", fontsize=7, color=colour
            )
    axes.set(xlabel="Number of mechanisms m", ylabel="Largest error")
    axes.set_title(f"{SIGMA2} = {shown(noise)}", fontsize=9, color=INK)
    axes.margins(x=0.12)
    dress(axes)


@steady
def fitted_slope(folds: Sequence[int], values: Floats) -> float:
    """Least squares slope of log value against log m from m = 40 on; nan with fewer than three such points."""
    pairs = np.array([(m, v) for m, v in zip(folds, values, strict=True) if m >= _SLOPE_FROM and v > 0]).reshape(-1, 2)
    return float(np.polyfit(np.log(pairs[:, 0]), np.log(pairs[:, 1]), 1)[0]) if len(pairs) >= 3 else math.nan


def _name(composition: Composition) -> str:
    count, rho = sum(composition.mechanisms.values()), composition.rho
    budget = "" if rho == math.inf else f", {RHO} = {exact_numeral(Fraction(rho))}"
    return f"{count} mechanism{'s' * (count > 1)}{budget}"


def _density(spread: float, centred_loss: Floats) -> Floats:
    """The density of the continuous Gaussian with the same rho."""
    result: Floats = np.exp(-(centred_loss**2) / (2 * spread)) / math.sqrt(2 * math.pi * spread)
    return result


def _draw_distribution(axes: Axes, composition: Composition, step: Fraction) -> None:
    """Probability per unit of loss in equal bins of lattice points, one point each where there are few."""
    h, spread = float(step), 2 * float(composition.rho)
    half = math.ceil(_REACH * math.sqrt(spread) / h)
    size = math.ceil((2 * half + 1) / _BINS) | 1  # odd, so that bins lie symmetrically around 0, as S does
    right = range(math.ceil(half / size) + 1)
    low, high = composition.masses([i * size - size // 2 for i in [*right, len(right)]])
    low, high = (np.concatenate([m[:0:-1], m]) for m in (low, high))
    where = h * size * np.arange(1 - len(right), len(right))
    line, rho = np.linspace(where[0], where[-1], 400), spread / 2
    axes.plot(line + rho, _density(spread, line), color=ZCDP, lw=1.2, label="Continuous Gaussian")
    axes.plot(where + rho, (low + high) / (2 * size * h), "o", ms=2.2, color=EXACT, label="Exact")
    axes.set_ylim(0, None)
    dress(axes)


def _draw_oscillation(axes: Axes, composition: Composition, step: Fraction) -> None:
    """Neighbouring lattice points relative to the density: all of them, or a window in the middle where there are many."""
    h, spread = float(step), 2 * float(composition.rho)
    half = math.ceil(_REACH * math.sqrt(spread) / h)
    if half > _BINS:
        stride = min(m.sensitivity / m.sigma2 for m in composition.discrete_gaussians) / step
        half = min(max(round(1.1 * stride), _WINDOW[0]), _WINDOW[1])
    right = np.arange(half + 1)
    points = np.concatenate([-right[:0:-1], right])
    expected = h * _density(spread, h * points)
    # S is symmetric
    low, high = (np.concatenate([m[:0:-1], m]) / expected - 1 for m in composition.masses([*range(half + 2)]))
    axes.axhline(0.0, color=ZCDP, lw=1.2)
    axes.fill_between(points, low, high, color=EXACT, alpha=0.25, lw=0)
    axes.plot(points, (low + high) / 2, "o-" if half <= 80 else "-", ms=2.2, lw=0.6, color=EXACT)
    text = exact_numeral(step)
    axes.set_xlabel(f"Lattice point t (loss {RHO} + h t, h = {text})")
    dress(axes)


def _draw_smoothed(above: Axes, below: Axes, composition: Composition) -> None:
    """The density of the loss averaged over tents, and its quotient by the continuous Gaussian's where there is one."""
    rho = composition.rho
    if rho == math.inf:
        lost = Fraction(composition.delta(math.inf))  # of the rest, all but a share of 1e-5 and 1e-4
        left, right = (Fraction(composition.epsilon(lost + (1 - lost) * Fraction(d))) for d in ("0.9999", "0.00001"))
        centre, half = (left + right) / 2, max((right - left) / 2, Fraction(1, 100))
    else:
        centre, half = Fraction(rho), Fraction(composition.mu * _REACH)
    half = half.limit_denominator(10**4)
    width = half / (_BINS // 4)
    losses = [centre + half * k / (_BINS // 2) for k in range(-(_BINS // 2), _BINS // 2 + 1)]
    low, high = smoothed_density(lambda e: composition.delta_bounds(e), losses, width)
    where = [float(x) for x in losses]
    above.plot(where, (low + high) / 2, "o", ms=2.2, color=EXACT, label="Exact")
    above.set_ylim(0, None)
    below.set_xlabel(f"Privacy loss (tents of half-width {exact_numeral(width)})")
    if rho == math.inf:
        below.fill_between(where, low, high, color=EXACT, alpha=0.25, lw=0)
        below.plot(where, (low + high) / 2, "-", lw=0.6, color=EXACT)
        below.set_yscale("log")
        below.set_title("no continuous Gaussian has its moments; the density again", fontsize=8, color=INK)
    else:
        plain = smoothed_density(lambda e: (gaussian_delta(composition.mu, e),) * 2, losses, width)
        expected = (plain[0] + plain[1]) / 2
        above.plot(where, expected, color=ZCDP, lw=1.2, label="Continuous Gaussian")
        below.axhline(0.0, color=ZCDP, lw=1.2)
        below.fill_between(where, low / expected - 1, high / expected - 1, color=EXACT, alpha=0.25, lw=0)
        below.plot(where, (low + high) / (2 * expected) - 1, "-", lw=0.6, color=EXACT)
    for axes in (above, below):
        dress(axes)
