"""The chapters with the numbers: the guarantee, the release, its noise, what could be saved, the proxy."""

from __future__ import annotations

from fractions import Fraction

from exactdp.apps.report.charts import noise_chart, profile_chart, savings_chart, tradeoff_chart
from exactdp.apps.report.content import Content, QueryNoise
from exactdp.apps.report.markup import Child, Markup, Section, columns, facts, figure, paragraph, table, tag, text
from exactdp.apps.report.numerals import data, equals, exact, fine, is_cut, percent, significant, whole
from exactdp.apps.report.plain_words import DELTA, bound, equation, saved, share, words
from exactdp.census.proxy import understated
from exactdp.census.releases import Release
from exactdp.census.summary import EpsilonRow
from exactdp.guarantees.comparison import Grade
from exactdp.guarantees.neighbours import REPLACE, relation_of
from exactdp.numbers import exact_text, shown
from exactdp.numerals import DOWN, NEAREST, UP

_MOVES = "A record that is replaced by one on another directed path is protected by both. "
MOST_PATHS = 200
"""Directed paths that are listed; the budget file has them all."""


def guarantee(content: Content, charts: bool) -> Section:
    """epsilon at every delta beside the others, the curves, the worst pair, the best test."""
    numbers = DELTA, words("Exact {epsilon}, at most"), "zCDP, optimal", "zCDP, simple", "Gaussian formula"
    heads = columns("rrrrrll", *numbers, "The formula is", "Worst pair")
    caption = words(
        "{epsilon} over all {cases}. Exact and zCDP are bounds, rounded up; the formula, marked with a tilde, "
        "is an estimate and no bound.",
        cases=content.neighbours.cases[1],
    )
    rows = [_epsilon_row(content, row) for row in content.summary.epsilons]
    body: list[Child] = [table(caption, heads, rows, "wide")]
    if charts:
        pair = [
            figure(
                profile_chart(content),
                words(
                    "{delta} as a function of {epsilon}. The dot is the headline; the exact curve is drawn by its "
                    "upper bound."
                ),
            ),
            figure(
                tradeoff_chart(content),
                "What the best test misses at each rate of false alarms (logarithmic); higher is better protection. "
                "The dot is at 5\u202f% false alarms.",
            ),
        ]
        body.append(tag("div", pair, cls="figures"))
    body += [_worst_pair(content), _power_table(content)]
    return Section("guarantee", "The guarantee, beside the usual ones", text(body))


def _epsilon_row(content: Content, row: EpsilonRow) -> list[Child]:
    comparison, at = content.comparison(row), exact_text(row.delta)
    verdict = text("equal to 10", tag("sup", "\u22129"))
    if comparison.grade is Grade.ALARM:
        verdict = tag("strong", "\u25bc too low", cls="unsafe")
    elif comparison.grade is Grade.REMARK:
        verdict = text("\u25bc lower, below quoted digits")
    elif comparison.shortcut_overstates:
        verdict = text("\u25b2 too high")
    return [
        exact(row.delta),
        data(row.epsilon[1], fine(row.epsilon[1], 8, UP), f"epsilon-{at}", UP),
        bound(row.zcdp_optimal, fine(row.zcdp_optimal, 4, UP), f"zcdp-optimal-{at}"),
        bound(row.zcdp_simple, fine(row.zcdp_simple, 4, UP), f"zcdp-simple-{at}"),
        data(row.gaussian, fine(row.gaussian, 8, NEAREST), f"gaussian-{at}"),
        verdict,
        pair_text(row.worst_pair) if row.tied == 1 else text(f"{row.tied} tied, such as ", pair_text(row.worst_pair)),
    ]


def pair_text(pair: tuple[int, int]) -> Markup:
    """A pair of directed paths by their numbers."""
    return tag("span", f"({pair[0]},\u202f{pair[1]})", cls="nobreak")


def _worst_pair(content: Content) -> Markup:
    row, release = content.headline, content.release
    if len(release.pairs) == 1:
        only = words(
            "This release has one directed path, so there is one pair: {of_what}, {pair}. It has {mechanisms}.",
            of_what="the path with itself" if relation_of(release) == REPLACE else "a record on the path, and none",
            pair=pair_text(release.proxy_pair),
            mechanisms=_mechanisms(content),
        )
        return text(tag("h3", "The worst pair"), paragraph(only))
    told = "is worst" if row.tied == 1 else f"is one of {row.tied} pairs that were not told apart"
    paths = [
        (f"Path {number}", _bypassed(release.allocations[number].bypassed))
        for number in dict.fromkeys(row.worst_pair)
        if number in release.allocations
    ]
    all_pairs = words(
        "{moves}The release promises what the worst of all {count} pairs promises. At {given} the pair {pair} {told}. It has "
        "{mechanisms}. Which pair is worst depends on {delta}, as the table shows.",
        moves=_MOVES if relation_of(release) == REPLACE else "",
        count=whole(len(release.pairs)),
        given=equation(DELTA, exact(row.delta)),
        pair=pair_text(row.worst_pair),
        told=told,
        mechanisms=_mechanisms(content),
    )
    return text(tag("h3", "The worst pair"), paragraph(all_pairs), facts(paths))


def _mechanisms(content: Content) -> str:
    found = content.explanation
    noises = "one amount of noise" if found.groups == 1 else f"{whole(found.groups)} different amounts of noise"
    return f"{whole(found.mechanisms)} noisy counts with {noises}"


def _bypassed(levels: tuple[str, ...]) -> str:
    return f"bypasses {', '.join(levels)}" if levels else "bypasses nothing: the full path"


def _power_table(content: Content) -> Markup | None:
    if not content.summary.powers:
        return None
    power = "Power, at most", "zCDP would allow, at most"
    heads = columns("rrrr", "False alarms (\u03b1)", "Missed (\u03b2), at least", *power)
    rows: list[list[Child]] = []
    for row in content.summary.quoted_powers:
        own, implied, at = 1 - Fraction(row.beta[0]), 1 - Fraction(row.zcdp_beta), exact_text(row.alpha)
        rows.append(
            [
                exact(row.alpha),
                data(row.beta[0], fine(row.beta[0], 8, DOWN), f"beta-{at}", DOWN),
                data(own, fine(own, 6, UP), f"power-{at}", UP),
                data(implied, fine(implied, 6, UP), f"zcdp-power-{at}", UP),
            ]
        )
    return table(f"The best test of {content.neighbours.truth}, over all pairs", heads, rows, "slim")


_USUAL_NOISE = "discrete Gaussian, \u03c3\u00b2\u202f=\u202f1/\u03c1 for a query of budget \u03c1"
_OTHER_NOISE = f"{_USUAL_NOISE}, but where the budget file names another kind, a sensitivity or several cells"


def release_facts(content: Content) -> Section:
    """What was released: levels, budgets, paths."""
    release = content.release
    queries = sum(len(level.queries) for level in content.noise)
    paths, pairs = len(release.allocations), len(release.pairs)
    moves = relation_of(release) == REPLACE
    hence: list[Child] = [data(paths, whole(paths), "paths")]
    if moves:
        hence += [", hence ", data(pairs, whole(pairs), "pairs"), " pairs" if pairs > 1 else " pair"]
    rows: list[tuple[Child, Child]] = [
        ("Release", release.name),
        ("Source", release.source),
        ("Levels and queries", f"{whole(len(content.noise))} levels, {whole(queries)} budgets"),
        ("Total budget", _total(release)),
        ("Directed paths", text(hence)),
        ("Noise", text(_USUAL_NOISE if not release.noise else _OTHER_NOISE)),
        (
            "Neighbours",
            content.neighbours.briefly + (", possibly on another directed path" if moves and paths > 1 else ""),
        ),
        *([("Record", text(release.unit_of_privacy))] if release.unit_of_privacy else []),
        ("Fingerprint", tag("code", release.fingerprint, cls="hash")),
    ]
    heads = columns("lrrr", "Level", "Queries", "Budget \u03c1", "Share of the budget")
    levels = [
        [
            level.level,
            whole(len(level.queries)),
            data(level.rho, exact(level.rho), f"level-{i}-rho"),
            _share(level.rho / release.budget, f"level-{i}-share"),
        ]
        for i, level in enumerate(content.noise)
    ]
    body = [facts(rows), table("The budget by level of the full path", heads, levels, "slim"), _paths(content)]
    return Section("release", "What was released", text(body))


def _share(share: Fraction, key: str) -> Markup:
    """A number, and a bar for the eye."""
    width = f"width:{max(0.0, min(1.0, float(share))) * 100:.2f}%"
    bar = tag("span", tag("span", style=width), cls="bar", aria_hidden="true")
    return text(bar, tag("span", data(share, percent(share, 2, NEAREST), key), cls="share"))


def _total(release: Release) -> Markup:
    """zCDP's rho, and what the budgets of the queries add up to where that is another number."""
    rho, budget = release.rho, release.budget
    more = tag("span", f", exactly {shown(rho)}", cls="quiet") if is_cut(rho) else None
    queries = text("; the \u03c1 of the queries add up to ", exact(budget)) if budget != rho else None
    return text("\u03c1\u202f", data(rho, equals(rho), "rho"), more, queries)


def _paths(content: Content) -> Markup | None:
    release = content.release
    if len(release.allocations) == 1:
        return None
    numbers = sorted(release.allocations)
    items = [
        tag("li", tag("b", number), " ", ", ".join(release.allocations[number].bypassed) or "nothing (the full path)")
        for number in numbers[:MOST_PATHS]
    ]
    left = len(numbers) - len(items)
    more = f" The first {MOST_PATHS} are listed; the budget file has the other {whole(left)}." if left > 0 else ""
    return text(
        tag("h3", "Directed paths and the levels they bypass"),
        paragraph(
            "Where a path bypasses a level, the budget of that level goes to the nearest level above that is not bypassed. "
            f"The total stays the same.{more}"
        ),
        tag("ul", items, cls="paths"),
    )


def noise(content: Content, charts: bool) -> Section:
    """sigma2, standard error and margin of every query, by level."""
    heads = columns("lrrrr", "Query", "Budget \u03c1", "\u03c3\u00b2", "Standard error", "95\u202f% margin")
    groups = {
        text(level.level, tag("span", "\u03c1\u202f", equals(level.rho), cls="aside")): [
            _noise_row(query, f"noise-{i}-{j}") for j, query in enumerate(level.queries)
        ]
        for i, level in enumerate(content.noise)
    }
    chart = noise_chart(content) if charts else None
    body = [
        paragraph(
            "The noise that each query of the full path adds to one count, before any post-processing. The standard error "
            "is that of the discrete Gaussian; the margin is the least whole number that the noise exceeds in size in at most "
            "5\u202f% of cases. Numbers with a tilde are rounded to the nearest. Where a path bypasses levels, the level above "
            "has more budget and less noise than shown here."
        ),
        figure(chart, "Standard error of one count by level; each ring is one query or several with equal noise."),
        table("Budget and noise of every query", heads, groups, "dense"),
    ]
    return Section("noise", "Noise and accuracy, by level", text(body))


def _noise_row(noise: QueryNoise, key: str) -> list[Child]:
    """One query; its name may be broken after an underscore."""
    first, *rest = noise.query.split("_")
    return [
        text(first, [("_", tag("wbr"), part) for part in rest]),
        data(noise.rho, exact(noise.rho), f"{key}-rho"),
        data(noise.sigma2, exact(noise.sigma2), f"{key}-sigma2"),
        data(noise.standard_error, significant(noise.standard_error, 4, NEAREST), f"{key}-error"),
        text("\u00b1\u202f", data(noise.margin, whole(noise.margin), f"{key}-margin")),
    ]


def savings(content: Content, charts: bool) -> Section:
    """What could be saved: overall at every delta, and by level at one."""
    overall = [
        [
            exact(row.delta),
            saved(row.saved_simple, f"saved-simple-{exact_text(row.delta)}"),
            saved(row.saved_optimal, f"saved-optimal-{exact_text(row.delta)}"),
            share(row.unused_simple, f"unused-simple-{exact_text(row.delta)}"),
            share(row.unused_optimal, f"unused-optimal-{exact_text(row.delta)}"),
        ]
        for row in content.summary.epsilons
    ]
    levels = [
        [
            row.level,
            exact(row.rho),
            saved(row.saved_simple, f"level-{i}-saved-simple"),
            saved(row.saved_optimal, f"level-{i}-saved-optimal"),
            share(row.unused_simple, f"level-{i}-unused-simple"),
            share(row.unused_optimal, f"level-{i}-unused-optimal"),
        ]
        for i, row in enumerate(content.summary.levels)
    ]
    against = columns("rrrr", "saved, simple", "saved, optimal", "unused, simple", "unused, optimal")
    chart = savings_chart(content) if charts else None
    body = [
        paragraph(
            "The share of every noise variance that could be left out, all variances scaled by one factor, while the release "
            "still satisfies what zCDP states for the full noise: if that statement, by the conversion named, is the promise. It "
            "is certified over all pairs on a grid of 0.01\u202f%, and one step more is proved to be too much, or is outside the "
            "range of allowed noise. Unused is the share by which the exact epsilon is smaller than the stated one."
        ),
        table("The whole release", [*columns("r", DELTA), *against], overall, "slim"),
        paragraph(
            words(
                "Each level of the full path accounted for on its own, at {given}. These figures do not add up to the "
                "one of the whole, which is the one that counts for the release.",
                given=equation(DELTA, exact(content.summary.levels[0].delta)),
            )
        ),
        figure(chart, "Noise variance that each level on its own could save."),
        table("Each level on its own", [*columns("lr", "Level", "Budget \u03c1"), *against], levels, "slim"),
    ]
    return Section("savings", "Noise that could be saved", text(body))


def proxy(content: Content) -> Section:
    """The full path with itself instead of all pairs, and how far it is off."""
    pair = pair_text(content.release.proxy_pair)
    own = "paired with itself" if relation_of(content.release) == REPLACE else "alone"
    compared = words("{epsilon} of {pair}", pair=pair), words("Overall {epsilon}")
    heads = columns("rrrr", DELTA, *compared, "Understated by at most")
    differences = [understated(row.proxy, row.epsilon) for row in content.summary.epsilons]
    rows = [
        [
            exact(row.delta),
            data(row.proxy[1], fine(row.proxy[1], 10, UP), f"proxy-{exact_text(row.delta)}", UP),
            data(row.epsilon[1], fine(row.epsilon[1], 10, UP), f"overall-{exact_text(row.delta)}", UP),
            data(off, significant(off, 2, UP), f"understated-{exact_text(row.delta)}", UP),
        ]
        for row, off in zip(content.summary.epsilons, differences, strict=True)
    ]
    worst = max(differences)
    lead = words(
        "The full path {own}, {pair}, is quick to account for, and some tune with it in place of all "
        "pairs. For this design and these {delta} the overall {epsilon} exceeds that of the pair by at most {worst} of the "
        "latter; other designs differ, and with coarse noise by a percent and more. What is published should come from all "
        "pairs, as above.",
        own=own,
        pair=pair,
        worst=tag("b", data(worst, significant(worst, 2, UP), "proxy-worst", UP)),
    )
    if len(content.release.pairs) == 1:
        lead = words(
            "This release has one directed path, so the proxy is the release itself; what is left is the width of the bounds."
        )
    caption = "The proxy and the whole; the last column is relative to the proxy"
    return Section("proxy", "One pair as a proxy", text(paragraph(lead), table(caption, heads, rows, "slim")))
