"""The path by which users know the figures of the theory (apps/figures/theory.py)."""

from exactdp.apps.figures.theory import figure_convolution, figure_edgeworth, fitted_slope

__all__ = ["figure_convolution", "figure_edgeworth", "fitted_slope"]
