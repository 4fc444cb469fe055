"""The 2020 Census: budget tables of the production runs, the spine's bypass rule, releases and their pairs.

>>> import exactdp.census
>>> exactdp.census.release("dhc-persons-us").pair(13, 13).rho
Fraction(24811, 5000)
"""

from exactdp.census.overall import PairEpsilon, pair_epsilons
from exactdp.census.releases import Allocation, Release, release, release_names
from exactdp.census.spine import bypass

__all__ = ["Allocation", "PairEpsilon", "Release", "bypass", "pair_epsilons", "release", "release_names"]
