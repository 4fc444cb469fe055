"""The 2020 Census: budget tables of the production runs, the spine's bypass rule, releases and their pairs.

>>> import exactdp.census
>>> exactdp.census.release("dhc-persons-us").pair(13, 13).rho
Fraction(24811, 5000)
"""

from exactdp.census.budget_costs import CellCosts
from exactdp.census.budget_files import budget_toml, read_budget
from exactdp.census.budget_json import budget_json
from exactdp.census.built_in import release, release_names
from exactdp.census.cell_noise import CellNoise
from exactdp.census.design_proof import certify_design
from exactdp.census.joint import Joint, change_names, joint
from exactdp.census.pair_results import PairResult
from exactdp.census.releases import Allocation, Release
from exactdp.census.savings import Saving, level_saving, overall_saving
from exactdp.census.spine import bypass
from exactdp.census.study import Study

__all__ = [
    "Allocation",
    "CellCosts",
    "CellNoise",
    "Joint",
    "PairResult",
    "Release",
    "Saving",
    "Study",
    "budget_json",
    "budget_toml",
    "bypass",
    "certify_design",
    "change_names",
    "joint",
    "level_saving",
    "overall_saving",
    "read_budget",
    "release",
    "release_names",
]
