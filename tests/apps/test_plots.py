"""The figures show what the library says: axes and lines, plotted values, files, and the sentence without matplotlib."""

from __future__ import annotations

import builtins
import io
import math
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactdp import conversions
from exactdp.accounting.composition import Composition
from exactdp.apps.figures import release as plots
from exactdp.apps.figures.captions import captions
from exactdp.apps.figures.panels import Ruler, make_sheet
from exactdp.apps.figures.settled import lay_out, unhinted
from exactdp.apps.figures.style import dress, log_ticks, new_figure
from exactdp.census.built_in import release
from exactdp.census.grids import Grids
from exactdp.census.pair_results import account_pairs
from exactdp.census.releases import Release
from exactdp.census.study import Study
from exactdp.errors import InvalidInputError, MissingExtraError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numerals import UP, with_places

TABLE = {
    "Country": {"total": Fraction(1, 10), "detailed": Fraction(1, 5)},
    "County": {"total": Fraction(1, 5), "detailed": Fraction(1, 2)},
    "Block": {"total": Fraction(1, 10), "detailed": Fraction(1, 4)},
}
BYPASSED: list[tuple[str, ...]] = [("County",), (), ("Block",), ("County", "Block")]

AUTODP = "zCDP, orders from 1/2 on (AutoDP: estimate, no bound)"


def made_up(allocations: int) -> Release:
    """The full path is number 2 where there is one."""
    return Release("made-up", "A made-up release", "nobody", TABLE, dict(enumerate(BYPASSED[:allocations], start=1)))


@pytest.fixture(scope="module")
def study() -> Study:
    return made_up(3).account()


def line(axes: Any, label: str) -> tuple[Any, Any]:
    """The data of the one line with this label."""
    (found,) = [x for x in axes.get_lines() if x.get_label() == label]
    return found.get_xdata(), found.get_ydata()


def small_lines(figure: Any) -> list[Any]:
    """The lines of the small panels of a sheet."""
    return [one for one in figure.artists if hasattr(one, "get_xdata")]


def panels(figure: Any) -> dict[str, list[Any]]:
    """The lines of each panel of a sheet by its name, the large one last."""
    found: dict[str, list[Any]] = {}
    for one in small_lines(figure):
        found.setdefault(one.get_gid(), []).append(one)
    (large,) = figure.axes
    return {**found, large.get_title(): large.get_lines()}


def in_panel(lines: list[Any], label: str) -> tuple[Any, Any]:
    """The data of the one line of a panel with this label."""
    (found,) = [x for x in lines if x.get_label() == label]
    return found.get_xdata(), found.get_ydata()


def test_convolution_shows_the_exact_masses_of_two_dice() -> None:
    """P(S = h t) by enumeration of both noises, against the dots."""
    above, below = plots.figure_convolution().axes
    step, sizes = Fraction(1, 10), range(-40, 41)
    weights = [[math.exp(-x * x / (2 * s)) for x in sizes] for s in (2.5, 10 / 3)]
    masses: dict[int, float] = {}
    for i, x in enumerate(sizes):
        for j, y in enumerate(sizes):
            t = 4 * x + 3 * y
            masses[t] = masses.get(t, 0.0) + weights[0][i] * weights[1][j]
    total = sum(masses.values())
    losses, values = line(above, "Exact")
    wanted = [masses[round((x - 0.35) / float(step))] / total / float(step) for x in losses]
    assert values == pytest.approx(wanted, rel=1e-9)
    density = [math.exp(-((0.1 * t) ** 2) / 1.4) / math.sqrt(1.4 * math.pi) for t in below.get_lines()[-1].get_xdata()]
    relative = [
        masses[int(t)] / total / (0.1 * d) - 1 for t, d in zip(below.get_lines()[-1].get_xdata(), density, strict=True)
    ]
    assert below.get_lines()[-1].get_ydata() == pytest.approx(relative, abs=1e-9)
    assert max(relative) > 0.15  # the oscillation is there to be seen


def test_convolution_of_a_fine_lattice_is_binned_and_windowed() -> None:
    fine = Composition({DiscreteGaussian("10000/73"): 2, DiscreteGaussian("10000/11"): 3})
    figure = plots.figure_convolution({"fine": fine, "coarse": 10 * DiscreteGaussian(1)})
    assert len(figure.axes) == 4
    assert [a.get_title() for a in figure.axes[:2]] == ["fine", "coarse"]
    losses, values = line(figure.axes[0], "Exact")
    assert 100 < len(losses) <= 2 * 160
    assert np.sum(values) * (losses[1] - losses[0]) == pytest.approx(1, abs=1e-3)
    assert len(figure.axes[2].get_lines()[-1].get_xdata()) == 2 * 40 + 1


def test_overall_plots_the_values_of_the_study(study: Study) -> None:
    figure = plots.figure_overall(study)
    left, right = figure.axes[:2]
    alphas, betas = line(left, "Exact")
    assert all(study.beta_bounds(a).upper >= b for a, b in list(zip(alphas, betas, strict=True))[1:-1:40])
    alphas, betas = line(left, "zCDP (bound)")
    assert betas == pytest.approx(conversions.zcdp_beta(study.release.rho, alphas), abs=0)
    alphas, betas = line(left, AUTODP)
    assert betas == pytest.approx(conversions.zcdp_beta_estimate(study.release.rho, alphas), abs=0)
    epsilons, deltas = line(right, "Exact (certified upper bound)")
    assert list(deltas[::20]) == list(study.delta(epsilons[::20]))
    assert right.get_ylim() == (1e-15, 1)
    assert min(deltas) < 1e-15
    assert max(deltas) > 0.02
    curves = {x.get_label(): np.array(x.get_ydata()) for x in right.get_lines() if len(x.get_xdata()) == len(deltas)}
    simple, best, exact, gaussian = curves.values()
    assert np.all(simple > best)
    assert np.all(best > exact)
    assert np.log(exact) == pytest.approx(np.log(gaussian), rel=0.02)
    assert with_places(study.epsilon(1e-10), 2, UP) in [t.get_text() for t in right.texts]


@pytest.mark.parametrize("allocations", [1, 2, 3, 4])
def test_panels_one_for_each_allocation(allocations: int) -> None:
    some = made_up(allocations)
    base = min(allocations, 2)
    for figure in (plots.figure_tradeoff_panels(some), plots.figure_profile_panels(some)):
        others = [k for k in range(1, allocations + 1) if k != base]
        assert list(panels(figure)) == [f"({base}, {k})" for k in (*others, base)]
        for k in others:
            name, note = (t.get_text() for t in figure.texts if t.get_gid() == f"({base}, {k})")
            assert name == f"({base}, {k})"
            assert note.endswith("ppm")
        (large,) = figure.axes
        assert large.get_legend() is not None
        inches = large.get_position().width * figure.get_size_inches()[0]
        assert all(one.get_clip_box().width / figure.dpi < inches / 2 for one in small_lines(figure))


def test_small_panels_have_lines_where_their_axes_say() -> None:
    """Data become places on the figure by the ends of the axes, delta by its logarithm; what is outside is cut."""
    figure = plots.figure_profile_panels(made_up(2))
    (large,) = figure.axes
    (low, high), (left, bottom, right, top) = large.get_xlim(), small_lines(figure)[0].get_clip_box().extents
    x, y = in_panel(small_lines(figure), "Exact (certified upper bound)")
    places = (
        next(x for x in small_lines(figure) if x.get_label().startswith("Exact")).get_transform().transform(np.c_[x, y])
    )
    assert places[:, 0] == pytest.approx(left + (right - left) * (np.array(x) - low) / (high - low))
    assert places[:, 1] == pytest.approx(bottom + (top - bottom) * (1 + np.log10(y) / 15))
    assert places[-1, 1] < bottom
    assert {t.get_text() for t in figure.texts} >= {"10\u207b\u00b9\u2075", "10\u207b\u2075", "1"}


@pytest.mark.parametrize("relation", ["replace", "add/remove"])
def test_every_panel_has_both_curves_of_zcdp(relation: str) -> None:
    some = replace(made_up(3), relation=relation)
    for lines in panels(plots.figure_tradeoff_panels(some)).values():
        alphas, betas = in_panel(lines, "zCDP (bound)")
        assert list(betas) == list(conversions.zcdp_beta(some.rho, alphas))
        assert list(in_panel(lines, AUTODP)[1]) == list(conversions.zcdp_beta_estimate(some.rho, alphas))
        (dashed,) = [x for x in lines if x.get_linestyle() == "--"]
        assert dashed.get_label() == AUTODP
    for lines in panels(plots.figure_profile_panels(some)).values():
        epsilons, deltas = in_panel(lines, "zCDP, simple conversion (bound)")
        assert list(deltas) == list(conversions.zcdp_delta_simple(some.rho, epsilons))
        assert list(in_panel(lines, "zCDP, optimal conversion (bound)")[1]) == list(
            conversions.zcdp_delta(some.rho, epsilons)
        )


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (10.5, 29.48, [10, 15, 20, 25, 30]),
        (-0.3, 0.9, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (3.0, 3.0, None),
        (0.0, 1e-9, None),
    ],
)
def test_ticks_of_epsilon_are_round_and_hold_the_range(low: float, high: float, ticks: list[float] | None) -> None:
    """The first is that of the DHC file, whose figures have the paper's range."""
    points, found = plots._epsilons(low, high, 41)
    assert ticks is None or found == ticks
    assert len(points) == 41
    assert points[0] == found[0] >= 0
    assert points[0] <= max(low, 0)
    assert points[-1] == found[-1] >= high
    assert 2 <= len(found) <= 8


def test_panels_plot_the_values_of_the_pairs() -> None:
    some = made_up(3)
    tradeoffs, profiles = plots.figure_tradeoff_panels(some, 3), plots.figure_profile_panels(some, 3)
    pairs, exact = [(1, 3), (2, 3), (3, 3)], "Exact (certified upper bound)"
    alphas = in_panel(panels(tradeoffs)["(3, 3)"], "Exact")[0][1:-1]
    epsilons = in_panel(panels(profiles)["(3, 3)"], exact)[0]
    results = account_pairs(some, pairs, Grids.read(epsilons=list(epsilons), alphas=list(alphas)))
    for result, one, other in zip(results, panels(tradeoffs).values(), panels(profiles).values(), strict=True):
        assert list(in_panel(one, "Exact")[1]) == [1.0, *(low for low, _ in result.beta), 0.0]
        assert list(in_panel(other, exact)[1]) == [high for _, high in result.delta]


def test_forty_three_panels_fill_six_by_eight() -> None:
    sheet = make_sheet([str(k) for k in range(43)], Ruler((0.0, 1.0)), Ruler((0.0, 1.0)))
    corners = [panel.box[:2] for panel in sheet.small]
    assert len(set(corners)) == 42
    assert len({x for x, _ in corners}) == 6
    assert len({y for _, y in corners}) == 8
    width, height = sheet.figure.get_size_inches()
    left, _, _, top = sheet.large.get_position().extents * [width, height, width, height]
    beside = [(x + w <= left) or (y >= top) for x, y, w, h in (panel.box for panel in sheet.small)]
    assert all(beside)
    assert all(x > 0 and x + w < width and y > 0 and y + h < height for x, y, w, h in (p.box for p in sheet.small))


def test_an_allocation_that_is_not_there() -> None:
    with pytest.raises(InvalidInputError, match="Found 9"):
        plots.figure_profile_panels(made_up(3), 9)


def test_proxy_is_the_certified_difference(study: Study) -> None:
    left, middle, right = plots.figure_proxy(study).axes
    own = study.release.pair(2, 2)
    alphas, values = (x[::9] for x in left.get_lines()[-1].get_data())
    assert values == pytest.approx(100 * (1 - study.beta(alphas) / own.beta(alphas)), abs=1e-8)
    assert np.min(values) > -1e-8
    epsilons, values = (x[::16] for x in middle.get_lines()[-1].get_data())
    assert values == pytest.approx(100 * (1 - study.delta(epsilons) / own.delta(epsilons)), abs=1e-8)
    assert np.max(values) < 1e-8
    deltas, values = (x[::9] for x in right.get_lines()[-1].get_data())
    assert values == pytest.approx(100 * (1 - study.epsilon(deltas) / own.epsilon(deltas)), abs=1e-8)
    assert np.max(values) < 1e-8
    assert "Pair (2, 2) (*)" in left.figure.get_suptitle()
    assert all("*" in axes.get_ylabel() for axes in (left, middle, right))
    assert all("(percent)" in axes.get_ylabel() for axes in (left, middle, right))


def test_proxy_of_a_single_allocation_looks_like_zero() -> None:
    for axes in plots.figure_proxy(made_up(1).account()).axes:
        assert axes.get_ylim() == (-1e-6, 1e-6)


def test_relative_difference_brackets_the_quotient() -> None:
    own, overall = (np.array([1.0, 0.0]), np.array([2.0, 1.0])), (np.array([0.5, 0.5]), np.array([0.75, 0.75]))
    low, high = plots._relative_difference(own, overall)
    assert (low[0], high[0]) == (25, 75)
    assert np.isnan([low[1], high[1]]).all()


def test_the_full_path_is_the_base() -> None:
    assert plots.chosen_base(release("dhc-persons-us"), None) == 13
    assert plots.chosen_base(made_up(1), None) == 1


def test_single_paths_have_panels_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a record is added or removed a panel is about one path, and says so."""
    monkeypatch.setattr(plots, "_PROXY_ALPHAS", (Fraction(1, 20), Fraction(1, 2)))
    design = replace(made_up(3), relation="add/remove")
    found = panels(plots.figure_profile_panels(design))
    assert list(found) == ["(1, 0)", "(3, 0)", "(2, 0)"]
    epsilon, delta = (x[20] for x in in_panel(found["(1, 0)"], "Exact (certified upper bound)"))
    assert delta == pytest.approx(design.pair(1, 0).delta(epsilon), rel=1e-9)
    assert "Pair (2, 0)" in plots.figure_proxy(design.account()).get_suptitle()


def test_every_axis_is_labelled(study: Study) -> None:
    for figure in (plots.figure_convolution(), plots.figure_overall(study), plots.figure_proxy(study)):
        assert all(axes.get_xlabel() for axes in figure.axes)
        assert all(axes.get_ylabel() for axes in figure.axes)
    sheet = plots.figure_tradeoff_panels(study.release)
    assert sheet.get_supxlabel()
    assert sheet.get_supylabel()


def test_save_figures_writes_five_figures_twice(study: Study, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    paths = plots.save_figures(study, folder)
    names = [f"figure{i}.{ending}" for i in range(1, 6) for ending in ("png", "pdf")]
    assert [p.name for p in paths] == [*names, "captions.md"]
    assert sorted(folder.iterdir()) == sorted(paths)
    for path in paths[:-1]:
        assert path.read_bytes().startswith(b"\x89PNG" if path.suffix == ".png" else b"%PDF")
        assert path.stat().st_size > 10_000


def test_the_same_study_gives_the_same_bytes(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "all_figures", lambda s, base: iter([plots.figure_profile_panels(s.release, base)]))
    first, second = ([p.read_bytes() for p in plots.save_figures(study, tmp_path)] for _ in range(2))
    assert first == second
    assert [p.read_bytes() for p in plots.save_figures(study, tmp_path, 3)] != first


def test_captions_are_beside_the_figures_and_in_them(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "all_figures", lambda s, base: iter([plots.figure_proxy(s, base)]))
    png, pdf, page = plots.save_figures(study, tmp_path, 3)
    said = page.read_text()
    assert said.startswith("# Figures of A made-up release\n")
    texts = captions(study.release, 3, (3, 3))
    assert len(texts) == 5
    for number, text in enumerate(texts, start=1):
        assert f"**Figure {number}** (`figure{number}.png`, `figure{number}.pdf`). {text}\n" in said
        assert "certified" in text
        assert study.release.title in text
    assert texts[0].encode() in png.read_bytes()
    assert b"/Subject (Distribution of the privacy loss" in pdf.read_bytes()
    assert "no bound for discrete noise" in texts[1]
    assert "the full path" in captions(study.release, 2, (2, 2))[2]
    assert "the full path" not in texts[2]


def test_without_matplotlib(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    usual = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"Figures needs .* pip install 'exactdp\[plots\]'"):
        plots.save_figures(study, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(MissingExtraError):
        plots.figure_overall(study)


def test_axes_that_are_settled_once_look_as_those_that_draw_themselves() -> None:
    drawn = []
    for settles in (False, True):
        figure = new_figure(5, 2.5)
        left, right = figure.subplots(1, 2)
        left.plot([0.0, 3.0], [-2e-9, 5e-9])
        right.semilogy([0.0, 30.0], [1.0, 1e-15])
        log_ticks(right, y=(1e-15, 1e-5, 1.0))
        for axes in (left, left.inset_axes((0.6, 0.2, 0.3, 0.3)), right):
            dress(axes)
            axes.set(xlabel="x", ylabel="y", title="t")
        if settles:
            lay_out(figure, 100)
            assert not any(axis.get_visible() for axes in figure.axes for axis in (axes.xaxis, axes.yaxis))
        with unhinted():
            figure.savefig(file := io.BytesIO(), format="rgba", dpi=100)
        drawn.append(np.frombuffer(file.getvalue(), np.uint8).astype(int))
    assert np.abs(drawn[0] - drawn[1]).max() < 40
