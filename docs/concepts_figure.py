"""Draws the picture of docs/concepts.md, from the survey on that page: python docs/concepts_figure.py (needs exactdp[plots])."""

from __future__ import annotations

import re
from pathlib import Path

from exactdp.apps.figures.release import figure_overall
from exactdp.census.budget_files import parse_budget

DOCS = Path(__file__).parent


def main() -> None:
    """Write docs/images/concepts.png."""
    found = re.search(r'```toml title="survey.toml"\n(.*?)```', (DOCS / "concepts.md").read_text(), flags=re.DOTALL)
    if not found:
        raise SystemExit("concepts.md has no block survey.toml any more; this script draws that survey.")
    survey = parse_budget(found[1].encode(), "survey.toml")
    figure_overall(survey.account(deltas=["1e-6"])).savefig(
        DOCS / "images" / "concepts.png", dpi=150, metadata={"Software": None}
    )


if __name__ == "__main__":
    main()
