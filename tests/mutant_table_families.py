"""The mutants of families of pairs, on lattices and on the line, and of what is asked of them."""

from __future__ import annotations

TESTS = {
    **{
        file: ["tests/engine/test_family.py"]
        for file in (
            "engine/family/nodes.py",
            "engine/family/contours.py",
            "engine/family/pair_terms.py",
            "accounting/pairs.py",
            "accounting/shared_pairs.py",
        )
    },
    **{
        file: ["tests/engine/test_line_members.py", "tests/engine/test_line_family.py"]
        for file in (
            "engine/family/line_members.py",
            "engine/family/line_nodes.py",
            "engine/family/line_penalties.py",
            "engine/family/line_contours.py",
            "engine/family/line_terms.py",
        )
    },
    "accounting/batched_vertices.py": ["tests/engine/test_family.py", "-k", "beta or trade"],
    "accounting/batched_dual.py": ["tests/accounting/test_batched_dual.py"],
    "accounting/line_pairs.py": ["tests/census/test_any_design.py", "-m", "not soak", "-k", "delta_and or fine"],
}

MUTANTS = [
    (
        "members sieved at less than half the budget",
        "engine/family/nodes.py",
        "tuple(2 * s for s in",
        "tuple(2.3 * s for s in",
    ),
    (
        "partners tested too strictly",
        "engine/family/nodes.py",
        "penalty * (1 - SUM_SLACK) <= room[here]",
        "penalty * 1.3 <= room[here]",
    ),
    (
        "translates on one side only",
        "engine/family/nodes.py",
        "shifts + own, shifts - own",
        "shifts + own, shifts + own",
    ),
    ("dropped nodes of pairs weakened", "engine/family/nodes.py", "corners) + math.log(2)", "corners) - 12"),
    (
        "a member with itself counted once",
        "engine/family/nodes.py",
        "second[own], 2.0, 1.0)",
        "second[own], 1.0, 1.0)",
    ),
    (
        "Theta of another pair",
        "engine/family/contours.py",
        "low = low + (theta[pairs] -",
        "low = low + 0 * (theta[pairs] -",
    ),
    (
        "errors of pairs left out",
        "engine/family/contours.py",
        "error_a, error_b, count)",
        "0 * error_a, 0 * error_b, 0 * count - 1e9)",
    ),
    (
        "what rough sums leave out not charged",
        "engine/family/pair_terms.py",
        "self.totals[2:] + others",
        "self.totals[2:] + 0 * others",
    ),
    (
        "pairs that may be the worst ruled out",
        "accounting/shared_pairs.py",
        "(tops >= known) & open_still",
        "(tops >= known + 1e-3) & open_still",
    ),
    (
        "members on the line searched at less than half the budget",
        "engine/family/line_nodes.py",
        "self._search(2 * strengths[m])",
        "self._search(2.2 * strengths[m])",
    ),
    (
        "partners on the line tested too strictly",
        "engine/family/line_nodes.py",
        "np.nonzero((together <= budgets",
        "np.nonzero((1.01 * together <= budgets",
    ),
    (
        "nodes of both members of a pair left to the other one",
        "engine/family/line_nodes.py",
        "<= others * (1 + _TIE)",
        "<= others * (1 - 1e-3)",
    ),
    (
        "penalties on the line 1% more",
        "engine/family/line_penalties.py",
        "        v *= 1 - SUM_SLACK\n",
        "        v *= 1 + 1e7 * SUM_SLACK\n",
    ),
    (
        "the slack of pairs left out",
        "engine/family/line_nodes.py",
        "self.last, self._log_aim, self._slack)",
        "self.last, self._log_aim, 0.0)",
    ),
    (
        "the strongest peak of several tilts",
        "engine/family/line_nodes.py",
        "min(p.strength for p in peaks)",
        "max(p.strength for p in peaks)",
    ),
    (
        "the least slack of several tilts",
        "engine/family/line_nodes.py",
        "max(p.slack for p in peaks)",
        "min(p.slack for p in peaks)",
    ),
    (
        "peaks shared that differ",
        "engine/family/line_nodes.py",
        "len({(p.unit, p.step) for p in peaks}) > 1",
        "len({p.unit for p in peaks}) > 1",
    ),
    (
        "nodes with all their partners judged 1% too strictly",
        "engine/family/line_nodes.py",
        "within = together <= budgets",
        "within = 1.01 * together <= budgets",
    ),
    (
        "a sharper penalty under tilts that have none",
        "engine/family/line_nodes.py",
        "one.noise if all(p.noise for p in peaks) else 0.0",
        "max(p.noise for p in peaks) or 0.3",
    ),
    (
        "sharper penalties 1% more",
        "engine/family/line_penalties.py",
        "np.maximum(each[known], sharper)",
        "np.maximum(each[known], 1.01 * sharper)",
    ),
    (
        "negligible nodes of a pair judged as if each were the only one",
        "engine/family/line_nodes.py",
        "minlength=pairs))[pair]",
        "minlength=pairs))[pair] * 0",
    ),
    (
        "nodes negligible with the transform only",
        "engine/family/line_nodes.py",
        "        small &= log_sizes + plain + share <= self._frame.log_dropped_density\n",
        "",
    ),
    (
        "nodes negligible without the transform only",
        "engine/family/line_nodes.py",
        "        small = log_sizes + with_transform + share <= self._bands.log_dropped\n        small &= ",
        "        small = ",
    ),
    (
        "negligible sizes without the slack of pairs",
        "engine/family/line_nodes.py",
        "log_sizes = self._bands.slack - together",
        "log_sizes = -together",
    ),
    (
        "nodes counted once, without their mirror images",
        "engine/family/line_nodes.py",
        "plain = math.log(2 / float(self.period))",
        "plain = math.log(1 / float(self.period))",
    ),
    (
        "node 0 left out as negligible",
        "engine/family/line_nodes.py",
        "keep = ~small | (union[column] == 0)",
        "keep = ~small",
    ),
    (
        "bands without the nodes' mirror images",
        "engine/line/plan.py",
        "math.log(2 * (final - first + 1) / self.period)",
        "math.log(1 * (final - first + 1) / self.period)",
    ),
    (
        "a band as large as its last node",
        "engine/line/plan.py",
        "omega = first * 2 * math.pi / self.period",
        "omega = final * 2 * math.pi / self.period",
    ),
    (
        "pairs without a contour proved to be private",
        "engine/family/line_contours.py",
        "np.repeat([[0.0], [0.0], [1.0], [0.0]]",
        "np.repeat([[0.0], [0.0], [0.0], [0.0]]",
    ),
    (
        "contours of other widths",
        "engine/family/line_contours.py",
        "    _contours: Recent[Place, tuple[LineFamilyContour, ...]] = field(\n"
        "        default_factory=lambda: Recent(_CONTOURS_HELD), init=False,",
        "    _contours: Recent[Place, tuple[LineFamilyContour, ...]] = field(\n"
        "        default_factory=lambda: Recent(_CONTOURS_HELD),",
    ),
    (
        "a member made of several compositions without its last one",
        "engine/family/line_members.py",
        "for column in places.T[1:]:",
        "for column in places.T[1:-1]:",
    ),
    (
        "the terms of a sum by bases not counted",
        "engine/family/line_members.py",
        "own[self._base_places[rows]].sum(axis=1)",
        "own[self._base_places[rows]].min(axis=1)",
    ),
    (
        "aliasing relative to the wrong moment",
        "engine/family/line_members.py",
        "np.max(upper - own +",
        "np.max(upper - own.min() +",
    ),
    (
        "aliasing of the first pair only",
        "engine/family/line_members.py",
        "np.max(upper - own + slack * (size + np.abs(own) + 1))",
        "(upper - own + slack * (size + np.abs(own) + 1))[0]",
    ),
    (
        "nodes left out by their sizes not charged",
        "engine/family/line_contours.py",
        "DROPPED = 3\n",
        "DROPPED = 2\n",
    ),
    (
        "nodes of a pair trimmed as if each were the only one",
        "engine/family/line_terms.py",
        "share = np.log(skeleton.counts[pair])",
        "share = 0 * np.log(skeleton.counts[pair])",
    ),
    (
        "smoothing of pairs without its factor",
        "engine/family/line_contours.py",
        "smoothed = (1 + tau) * smoothing",
        "smoothed = smoothing",
    ),
    (
        "the density without what was dropped",
        "engine/family/line_contours.py",
        " + DROPPED * math.exp(skeleton.log_dropped_density)",
        "",
    ),
    (
        "the density without its rounding",
        "engine/family/line_contours.py",
        "np.abs(density) + rounding_density +",
        "np.abs(density) +",
    ),
    (
        "rounding of pairs left out",
        "engine/family/line_contours.py",
        "own = rounding + size * summing",
        "own = size * summing",
    ),
    (
        "phases that depend on the other nodes",
        "engine/family/line_contours.py",
        "phases_of_bits(self.terms.node[place], turns, last)",
        "phases_of_bits(self.terms.node[place], turns)",
    ),
    (
        "the chord extended to the left left out",
        "accounting/batched_dual.py",
        "np.maximum(middle, np.maximum(left, right))",
        "np.maximum(middle, right)",
    ),
    (
        "the chord extended to the right left out",
        "accounting/batched_dual.py",
        "np.maximum(middle, np.maximum(left, right))",
        "np.maximum(middle, left)",
    ),
    (
        "a top outside of the points",
        "accounting/batched_dual.py",
        "np.where(rising & falling & np.isfinite(top)",
        "np.where(np.isfinite(top)",
    ),
    (
        "chords from the wrong ends of bounds",
        "accounting/batched_dual.py",
        "(high[:, 1] - low[:, 0]) * gaps",
        "(low[:, 1] - high[:, 0]) * gaps",
    ),
    (
        "negative epsilons of pairs on the line taken for positive ones",
        "accounting/line_pairs.py",
        "return mirrored_brackets(point, [epsilons[i] for i in index])",
        "return point",
    ),
    (
        "the error of one member's Theta for a pair's",
        "engine/family/contours.py",
        "(first[1] + second[1] + 4 * UNIT * sizes)",
        "(first[1] + 0 * UNIT * sizes)",
    ),
    (
        "the epsilons of other questions",
        "accounting/line_pairs.py",
        "pairs[members], sizes, index[members])",
        "pairs[members], sizes, index[: len(members)])",
    ),
    (
        "an upper end of epsilon that is a little too small",
        "accounting/shared_pairs.py",
        "<= target - error",
        "<= target + 1e-3",
    ),
    (
        "a lower end of epsilon that is a little too large",
        "accounting/shared_pairs.py",
        ">= target + error",
        ">= target - 1e-3",
    ),
    (
        "epsilon proved where its ends are, not where their decimals are",
        "accounting/shared_pairs.py",
        "np.nextafter(ends, ends[:, ::-1])",
        "np.nextafter(ends, [-np.inf, np.inf])",
    ),
    (
        "epsilon proved at one end only",
        "accounting/shared_pairs.py",
        "too_large & small_enough",
        "too_large | small_enough",
    ),
    (
        "ends of an edge taken for each other",
        "accounting/batched_vertices.py",
        "tails = np.where(own.small, [first, second], [second, first])",
        "tails = np.where(own.small, [first, second], [first, second])",
    ),
    (
        "an upper bound of beta by lower lines",
        "accounting/batched_vertices.py",
        "np.minimum(lines[0][1], lines[1][1])",
        "np.minimum(lines[0][0], lines[1][0])",
    ),
    (
        "the slope of another edge",
        "accounting/batched_vertices.py",
        "[log_slope(lattices[i], e) for",
        "[log_slope(lattices[i], e + 1) for",
    ),
]
