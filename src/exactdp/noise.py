"""The path by which users know noisy releases (interop/opendp.py draws, apps/release states what was drawn)."""

from exactdp.apps.release.counts import CountTable, parse_counts, read_counts
from exactdp.apps.release.noisy_table import NoisyTable, release_table
from exactdp.apps.release.publication import check_outputs, output_paths
from exactdp.interop.opendp import Sampler, add_noise, drawn_sigma2, opendp_noise, opendp_version, scale_for

__all__ = [
    "CountTable",
    "NoisyTable",
    "Sampler",
    "add_noise",
    "check_outputs",
    "drawn_sigma2",
    "opendp_noise",
    "opendp_version",
    "output_paths",
    "parse_counts",
    "read_counts",
    "release_table",
    "scale_for",
]
