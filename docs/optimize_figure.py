"""Draws docs/images/frontier.svg from the survey and the request of docs/optimize.md: `make figures`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))

import examples  # noqa: E402
from exactdp import optimize  # noqa: E402
from exactdp.apps.figures.frontier import save_frontier  # noqa: E402
from exactdp.census import read_budget  # noqa: E402
from exactdp.optimize.request_files import read_request  # noqa: E402

TARGET = DOCS / "images" / "frontier.svg"

if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        examples.write_files(DOCS / "optimize.md", Path(folder))
        survey, request = read_budget(Path(folder) / "survey.toml"), read_request(Path(folder) / "request.toml")
    epsilons = ("1.5", 2, "2.5", 3, "3.5", 4, "4.5", 5, "5.5", 6, 7, 8)
    found = optimize.frontier(
        survey, request.objectives(), delta=str(request.delta), epsilons=epsilons, requirements=request.require[1:]
    )
    save_frontier(found, TARGET)
    print(TARGET)
