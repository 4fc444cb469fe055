"""The path by which users know the report (apps/report)."""

from exactdp.apps.report import build

__all__ = ["build"]
