"""The house rules: the public names, the direction of imports, the README's commands."""

from __future__ import annotations

import ast
from pathlib import Path

import exactdp
import examples

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "exactdp"

FLOORS = [
    ["errors"],
    ["numbers", "files"],
    ["mechanisms.theta", "mechanisms.theta_ball"],
    ["mechanisms.loss"],
    [
        "mechanisms.discrete_gaussian",
        "mechanisms.discrete_laplace",
        "mechanisms.gaussian",
        "mechanisms.randomized_response",
        "mechanisms.black_box",
        "mechanisms.outcomes",
        "gaussian",
    ],
    ["reference"],
    ["engine.lattice", "engine.total", "engine.turns", "engine.reduction"],
    ["engine.payoff", "engine.sieve", "engine.tilt", "engine.moments", "engine.plan"],
    ["engine.bracket", "engine.float64", "engine.ball", "engine.mixture", "engine.contours"],
    [
        "engine.ladder",
        "engine.line",
        "engine.line_float64",
        "engine.direct",
        "engine.dense",
        "engine.hybrid",
        "engine.answering",
    ],
    ["engine.members", "engine.skeleton", "engine.family"],
    ["profile", "tradeoff", "certified", "explain"],
    ["distribution", "dual", "cross_check", "answers", "direction", "anyhow", "planner"],
    ["families"],
    ["composition"],
    ["interop.dp_accounting", "interop.pld", "interop"],
    ["coins"],
    ["conversions"],
    ["theory.moments", "theory.local_error", "theory.central_zone", "theory.far_peaks"],
    ["theory.edgeworth_bound", "theory.gaussian_gap"],
    ["theory.claims", "theory"],
    ["comparison", "risk"],
    ["gdp"],
    ["guarantees", "calibration"],
    ["interop.names"],
    ["census.spine", "census.releases", "census.budget_design", "census.budget_files"],
    ["census.overall", "census.screening"],
    ["census.workers", "census.study", "census.journal"],
    ["census.savings", "census.sweeps", "census.summary", "census.tables", "census"],
    ["strict_json"],
    ["routes"],
    ["records"],
    ["exchange", "frames"],
    ["noise", "audit"],
    ["drawing"],
    ["theory_plots"],
    ["plots"],
    ["report.markup"],
    ["report.numerals", "report.layout", "report.svg", "report.certificates"],
    ["report.content"],
    ["report.charts", "report.plain_words"],
    ["report.sections"],
    ["report.evidence"],
    ["report.page"],
    ["report"],
    ["studio.limits", "studio"],
    ["studio.wire", "studio.wire_answers", "studio.api_page", "studio.strict_routes", "studio.designs"],
    ["studio.noise_table", "studio.questions", "studio.overall", "studio.reports", "studio.workers"],
    ["studio.answers", "studio.desk", "studio.replies", "studio.gate"],
    ["studio.app"],
    ["studio.server"],
    [
        "cli.shell",
        "cli.claims",
        "cli.designs",
        "cli.studies",
        "cli.guarantees",
        "cli.noise",
        "cli.report",
        "cli.studio",
        "cli",
    ],
]
"""A module imports only from its own floor and from those above it in this list."""


def _module(path: Path) -> str:
    name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    return name.removesuffix(".__init__")


def _imports(path: Path) -> set[str]:
    """Modules of the package that are imported when the file is, type-checking blocks and functions left out."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("exactdp"):
            base = node.module.removeprefix("exactdp").removeprefix(".")
            for alias in node.names:
                deeper = f"{base}.{alias.name}".removeprefix(".")
                is_module = (PACKAGE / (deeper.replace(".", "/") + ".py")).exists() or (
                    PACKAGE / deeper.replace(".", "/")
                ).is_dir()
                found.add(deeper if is_module else base)
    return found


def test_imports_go_one_way() -> None:
    floor = {name: level for level, names in enumerate(FLOORS) for name in names}
    for path in PACKAGE.rglob("*.py"):
        module = _module(path)
        if module in ("__init__", "mechanisms", "engine"):
            continue
        assert module in floor, f"{module} has no floor in FLOORS"
        for imported in _imports(path):
            assert floor[imported] <= floor[module], f"{module} imports {imported}, which is below it"


def test_public_names() -> None:
    assert sorted(exactdp.__all__) == [
        "AccuracyError",
        "AccuracyWarning",
        "ApproximateDP",
        "Bounds",
        "Calibration",
        "Certificate",
        "Comparison",
        "Composition",
        "CrossCheck",
        "DiscreteGaussian",
        "DiscreteLaplace",
        "ExactDPError",
        "Explanation",
        "Gaussian",
        "GaussianDP",
        "InvalidInputError",
        "LatticeTooFineError",
        "Outcomes",
        "RandomizedResponse",
        "Risk",
        "TradeOffCurve",
        "Verification",
        "__version__",
        "calibrate",
        "calibrate_sigma2",
        "census",
        "certify",
        "conversions",
        "from_json",
        "guarantees",
        "reference",
        "target",
        "theory",
        "tightest_mu",
        "to_frame",
        "to_json",
        "verify",
        "write_table",
    ]
    for name in exactdp.__all__:
        assert hasattr(exactdp, name)


def test_the_two_arithmetics_share_the_plan_and_nothing_else() -> None:
    assert not {m for m in _imports(PACKAGE / "engine" / "ball.py") if m in ("engine.float64", "engine.moments")}
    assert not {m for m in _imports(PACKAGE / "engine" / "float64.py") if m.endswith("ball")}
    assert not {
        m for m in _imports(PACKAGE / "reference.py") if m.startswith(("engine", "profile", "tradeoff", "certified"))
    }


def test_the_readme_runs_and_prints_what_it_says() -> None:
    assert examples.run_python(ROOT / "README.md") > 20
