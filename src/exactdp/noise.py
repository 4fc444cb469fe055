"""The path by which users know noisy releases (interop/opendp.py draws, apps/release states what was drawn)."""

from exactdp.apps.release.counts import CountTable, parse_counts, read_counts
from exactdp.apps.release.noisy_table import NoisyTable, release_table
from exactdp.interop.opendp import add_noise, drawn_sigma2, opendp_noise, opendp_version, scale_for

__all__ = [
    "CountTable",
    "NoisyTable",
    "add_noise",
    "drawn_sigma2",
    "opendp_noise",
    "opendp_version",
    "parse_counts",
    "read_counts",
    "release_table",
    "scale_for",
]
