"""The captions of the five figures of a release: what is drawn, what of it is certified, and what is an estimate."""

from __future__ import annotations

from collections.abc import Sequence

from exactdp.census.releases import Release
from exactdp.guarantees.neighbours import REPLACE
from exactdp.numerals import exact

_ZCDP_BETA = (
    "Solid red-orange: the trade-off curve that zCDP implies, by Renyi orders from 1 on, a proved bound. Dashed: the same with "
    "orders from 1/2 on, as AutoDP draws it: an estimate, which is no bound for discrete noise, because zCDP says nothing about "
    "orders below 1 and the inequality that is used there is false for discrete Gaussians."
)
_ZCDP_DELTA = (
    "Orange and red-orange: what zCDP implies by the simple conversion, exp(-(epsilon - rho)^2 / (4 rho)), and by the optimal "
    "one (Canonne, Kamath and Steinke 2020), both proved bounds. Thin and dashed, where it is drawn: the formula of the "
    "continuous Gaussian with the same rho, an estimate and no bound."
)
_DIFFERENCE = (
    "The number in a panel is its largest difference from the large one on the grid, relative to it, in parts per million: an "
    "estimate."
)


def captions(release: Release, base: int, pair: tuple[int, int]) -> list[str]:
    """One caption for each of the five figures, in their order; `base` is the path of Figures 3 to 5, `pair` it with itself."""
    of = f"{release.title} (rho = {exact(release.rho)})"
    path = f"allocation {base}" + (", the full path," if base == release.full_path else "")
    every = f"{path} paired with each allocation" if release.relation == REPLACE else "each allocation on its own"
    return [
        "Distribution of the privacy loss against the continuous Gaussian density with the same rho: two mechanisms, as in the "
        f"paper's Figure 1, and pairs of paths of {of}. Above: probability per unit of loss. Below: probability relative to the "
        "continuous Gaussian, less 1, at neighbouring points of the lattice; the band is certified, the dots are its middle. The "
        "Gaussian density is drawn for comparison and bounds nothing.",
        f"Overall guarantee of {of}, over all pairs of paths. Left: trade-off curve; blue is certified, on or below the exact "
        f"lower convex envelope of all pairs. {_ZCDP_BETA} Right: delta as a function of epsilon; blue joins certified "
        f"upper bounds. {_ZCDP_DELTA} The dots are at delta = 1e-10, their epsilons rounded up.",
        f"Trade-off curves of {of}: {every}; the large panel is the pair {pair}. Blue: certified lower bounds of beta at "
        f"the points of a grid. {_ZCDP_BETA} {_DIFFERENCE}",
        f"delta as a function of epsilon of {of}: {every}; the large panel is the pair {pair}. Blue: certified upper "
        f"bounds at the points of a grid. {_ZCDP_DELTA} {_DIFFERENCE}",
        f"The pair {pair} as a proxy of the overall guarantee of {of}: the difference between the two relative to the pair, in "
        "percent, of beta (left), of delta (middle) and of epsilon (right). The lines are middles of certified bounds; each "
        "title says how far these are from the line at most.",
    ]


def captions_page(release: Release, texts: Sequence[str]) -> str:
    """The captions as a page in Markdown."""
    parts = [f"# Figures of {release.title}"]
    parts += [f"**Figure {n}** (`figure{n}.png`, `figure{n}.pdf`). {text}" for n, text in enumerate(texts, start=1)]
    return "\n\n".join(parts) + "\n"
