"""The report on several products together: each change in words, its limits beside zCDP's and the announced sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from exactdp.apps.report.joint_chart import joint_chart
from exactdp.apps.report.markup import Child, Markup, Section, columns, facts, figure, note, paragraph, table, tag, text
from exactdp.apps.report.numerals import as_markup
from exactdp.apps.report.page import document
from exactdp.census.joint import ADAPTIVE, POST_PROCESSING, Joint
from exactdp.guarantees.zcdp import zcdp_epsilon
from exactdp.numbers import exact_text
from exactdp.numerals import UP, at_most, exact, percent

DELTAS = ("1e-5", "1e-10", "1e-15")
ALPHAS = ("0.001", "0.05")
LEADING = 1  # delta of the headline, by its place
_WORDS = (
    "Every number is a limit, rounded up. It says: whoever knows everything else, all other answers of all other people, learns "
    "at most this much about the one change from everything that these products published together. It does not say that "
    "anybody learned it, and it names nobody.",
    "There is no single number. What a release costs depends on what is to be hidden: each change below is one sentence, and "
    "has its own limit. Limits of different changes are not added.",
    "Smaller is more private; epsilon = 0 would mean that the change cannot be noticed at all. delta is a small allowance for "
    "rare events; epsilon depends on it, so both are told together.",
)
_UNCERTAIN = (
    (
        "Which paths occur",
        "The levels that were bypassed are not published for P.L. 94-171 and for DHC units. \u201cFull paths\u201d has none "
        "bypassed; \u201cany path\u201d combines every path that one release has with every path of another, which can only be "
        "too many. Releases whose names end in -patterns have every path that the rule allows.",
    ),
    (
        "What a change moves",
        "The changes and what they move were derived for this software, not by the Census Bureau. Where a query can move in "
        "several ways the account is an upper bound for all of them (Theorem A2).",
    ),
    (
        "The settings",
        "Budgets come from the Bureau's published code and certificates. Those of DHC are in files that call themselves "
        "development or testing; folder, date and readme say that they are those of production. Samplers are taken to be exact.",
    ),
    (
        "What is not covered",
        "A whole household with its people, and a person who moves from one household to another. What is published exactly "
        "(state populations, housing units and group quarters of each block) is hidden by nothing.",
    ),
)


@dataclass(frozen=True)
class JointRow:
    """What the report says of one change."""

    joint: Joint
    full: tuple[float, ...]
    """Epsilon of the full paths at each delta, rounded up."""
    every: float
    """Epsilon of any path at the headline's delta."""
    zcdp: tuple[float, float]
    power: tuple[Fraction, ...]
    shares: tuple[tuple[str, Fraction], ...]
    """Of each product in zCDP's rho of the full paths, the largest first."""
    nominal: Fraction
    """The announced budgets, added up whatever their neighbours are."""

    @classmethod
    def of(cls, joint: Joint) -> JointRow:
        """Everything that is told of a change."""
        full, delta = joint.full, DELTAS[LEADING]
        rho = Fraction(full.rho)
        shares = {
            part.release.name: sum((Fraction(m.rho) * n for m, n in part.full.mechanisms.items()), Fraction(0)) / rho
            for part in joint.moved
        }
        return cls(
            joint,
            tuple(full.epsilon(d) for d in DELTAS),
            joint.epsilon(delta),
            (joint.zcdp_epsilon(delta), joint.zcdp_epsilon(delta, is_simple=True)),
            tuple(1 - Fraction(full.beta(alpha)) for alpha in ALPHAS),
            tuple(sorted(shares.items(), key=lambda item: -item[1])),
            sum((Fraction(part.release.rho) for part in joint.moved), Fraction(0)),
        )


def build_joint(joints: Sequence[Joint], left_out: Sequence[str] = (), charts: bool = True) -> str:
    """The document; `left_out` are sentences about changes that a product is not followed through."""
    rows = [JointRow.of(joint) for joint in joints]
    products = list(dict.fromkeys(part.release.name for joint in joints for part in joint.parts))
    title = "Products of the 2020 Census together"
    meta = [f"{len(products)} products", f"{len(rows)} changes" if len(rows) > 1 else rows[0].joint.change.name]
    head = tag("p", "Privacy accounting report", cls="eyebrow"), tag("h1", title)
    masthead = tag(
        "header",
        tag("div", head, tag("ul", [tag("li", item) for item in meta], cls="meta"), cls="inner"),
        cls="masthead",
    )
    sections = [_in_words(rows), _limits(rows, charts), _weights(rows), _changes(rows, left_out), _doubts(rows)]
    return document(f"{title}: privacy accounting report", masthead, sections)


def _number(value: float) -> Markup:
    return as_markup(at_most(value))


def _in_words(rows: Sequence[JointRow]) -> Section:
    delta = DELTAS[LEADING]
    said: list[Child] = []
    for row in rows:
        name, share = row.shares[0]
        said.append(
            tag(
                "li",
                tag("strong", row.joint.change.words),
                text(
                    " At most \u03b5 = ", _number(row.full[LEADING]), " at \u03b4 = ", as_markup(exact(Fraction(delta)))
                ),
                f" if no level is bypassed, at most {at_most(row.every)} on any path that these releases "
                "have. With one false alarm in a thousand the "
                f"best conceivable test finds the change in at most {percent(row.power[0], UP, 2)} of all cases. "
                f"The product that weighs most is {name}, with about {percent(share, UP, 0)} of the loss.",
            )
        )
    return Section("plain", "In plain words", text([paragraph(line) for line in _WORDS], tag("ul", said)))


def _limits(rows: Sequence[JointRow], charts: bool) -> Section:
    heads = columns(
        "l" + "r" * 8,
        "Change",
        *(f"\u03b5 at {d}" for d in DELTAS),
        "any path",
        "zCDP, optimal",
        "zCDP, simple",
        "best test, 1 in 1,000",
        "1 in 20",
    )
    cells = [
        [
            row.joint.change.name,
            *map(_number, row.full),
            _number(row.every),
            *map(_number, row.zcdp),
            *(percent(p, UP, 2) for p in row.power),
        ]
        for row in rows
    ]
    caption = (
        "Limits, each rounded up: epsilon of the full paths at three deltas; at 1e-10 over any paths, and by zCDP's conversions; "
        "how often the best test finds the change with so many false alarms"
    )
    drawn = (
        joint_chart([(row.joint.change.name, row.full[LEADING], row.zcdp, row.shares) for row in rows])
        if charts
        else None
    )
    about = (
        "Left: epsilon at delta = 1e-10, exact (bar) and by zCDP (ticks). Right: the share of each product in the loss."
    )
    return Section(
        "limits", "Limits of what can be learned", text(figure(drawn, about), table(caption, heads, cells, "wide"))
    )


def _weights(rows: Sequence[JointRow]) -> Section:
    heads = columns("lllr", "Change", "weighs most", "all others", "announced budgets, added")
    cells = []
    for row in rows:
        (name, share), *others = row.shares
        told = ", ".join(f"{n} {percent(s, UP, 1)}" for n, s in others) or "none"
        nominal = float(zcdp_epsilon(row.nominal, DELTAS[LEADING]))
        cells.append(
            [
                row.joint.change.name,
                f"{name} {percent(share, UP, 1)}",
                told,
                f"\u03c1 {exact(row.nominal)}, \u03b5 {at_most(nominal)}",
            ]
        )
    warning = note(
        "alarm",
        "The last column is no guarantee",
        paragraph(
            "The announced budgets speak of different neighbours: some products replace a record, others add or remove one. "
            "Their sum, and the epsilon that zCDP makes of it, stand here only because they are quoted. Shares are of zCDP's rho."
        ),
    )
    return Section(
        "weights", "Which product weighs most", text(table("Shares of the loss", heads, cells, "wide"), warning)
    )


def _changes(rows: Sequence[JointRow], left_out: Sequence[str]) -> Section:
    body: list[Child] = []
    for row in rows:
        budget = (
            "budget",
            text(
                "\u03c1 = ",
                exact_text(Fraction(row.joint.rho))
                if len(exact_text(Fraction(row.joint.rho))) < 20
                else exact(row.joint.rho),
                " (zCDP)",
            ),
        )
        body += [tag("h3", row.joint.change.name), facts([*row.joint.words(), budget], "facts compact")]
    if left_out:
        body.append(note("calm", "Not followed is not free", tag("ul", [tag("li", line) for line in left_out])))
    return Section(
        "changes", "What changes, and what moves", text(body, paragraph(POST_PROCESSING), paragraph(ADAPTIVE))
    )


def _doubts(rows: Sequence[JointRow]) -> Section:
    return Section(
        "doubts",
        "What is uncertain, and how to check",
        text(
            facts(_UNCERTAIN),
            paragraph(
                "Anyone can certify and recompute these numbers: ",
                tag(
                    "code",
                    f'exactdp certify {rows[0].joint.name} --change "{rows[0].joint.change.name}" --delta 1e-10 -o FILE',
                ),
                ", then ",
                tag("code", "exactdp verify FILE"),
                ". The derivations are on the page \u201cThe whole 2020 Census\u201d of the documentation.",
            ),
        ),
    )
