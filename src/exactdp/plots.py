"""The path by which users know the figures of a release (apps/figures/release.py)."""

from exactdp.apps.figures.release import (
    figure_overall,
    figure_profile_panels,
    figure_proxy,
    figure_tradeoff_panels,
    save_figures,
)
from exactdp.apps.figures.theory import figure_convolution

__all__ = [
    "figure_convolution",
    "figure_overall",
    "figure_profile_panels",
    "figure_proxy",
    "figure_tradeoff_panels",
    "save_figures",
]
