"""The first page of a report: the numbers that matter, and what they mean to someone who has to decide."""

from __future__ import annotations

import math

from exactdp.apps.report.content import Content
from exactdp.apps.report.markup import Child, Markup, Section, columns, note, paragraph, table, tag, text
from exactdp.apps.report.numerals import DOWN, UP, data, exact, factor, fine, percent, significant
from exactdp.census.savings import Saving
from exactdp.census.summary import EpsilonRow

EPSILON, DELTA = tag("i", "\u03b5"), tag("i", "\u03b4")
_RISKS = {
    "Advantage": "how far true and false alarms of any test lie apart",
    "Power": "how often any test with {alpha} false alarms finds the record",
    "Bayes risk": "how often an attacker with a prior of {prior} is wrong",
    "Posterior": "what a prior of {prior} becomes after the best test with {alpha} false alarms says yes",
    "Odds multiplier": "how much likelier an event is with the record than without, but for a probability of {given}",
}
"""The figures of the risk, and what they mean."""


def words(template: str, **parts: Child) -> Markup:
    """A text with its {parts} set in, {epsilon} and {delta} being the symbols; whatever is no markup is escaped.

    >>> words("{epsilon} < {name}", name="{<}")
    '<i>\u03b5</i> &lt; {&lt;}'
    """
    known: dict[str, Child] = {"epsilon": EPSILON, "delta": DELTA, **parts}
    return Markup(text(template).format(**{name: text(part) for name, part in known.items()}))


def equation(symbol: Markup, value: Child) -> Markup:
    """A symbol and its value."""
    return text(symbol, "\u202f=\u202f", value)


def saved(saving: Saving, key: str | None = None) -> Markup:
    """The share of the noise variance that could be saved."""
    return data(saving.saved, percent(saving.saved, 2, DOWN), key)


def headline_strip(content: Content) -> Markup:
    """Four numbers, each with what it would have been without the exact accounting."""
    row, risk = content.headline, content.risk
    cards = [
        _card(
            words("Exact {epsilon} at {given}", given=equation(DELTA, exact(row.delta))),
            data(row.epsilon[1], exact(content.stated), "headline-epsilon"),
            words(
                "zCDP states {optimal} (optimal) or {simple} (simple)",
                optimal=data(row.zcdp_optimal, fine(row.zcdp_optimal, 4, UP), "headline-zcdp-optimal"),
                simple=data(row.zcdp_simple, fine(row.zcdp_simple, 4, UP), "headline-zcdp-simple"),
            ),
        ),
        _card(
            "Power of the best test at 5\u202f% false alarms",
            data(risk.power[1], percent(risk.power[1], 1, UP), "headline-power"),
            text("zCDP would allow ", data(content.zcdp_power, percent(content.zcdp_power, 1, UP))),
        ),
        _card(
            "Least error of an attacker who starts from even odds",
            data(risk.bayes_risk[0], percent(risk.bayes_risk[0], 1, DOWN), "headline-bayes-risk"),
            "guessing would err in 50\u202f% of cases",
        ),
        _card(
            "Noise variance that could be saved",
            saved(row.saved_simple, "headline-saved-simple"),
            text("against zCDP, simple; ", saved(row.saved_optimal, "headline-saved-optimal"), " against optimal"),
        ),
    ]
    return tag("div", cards, cls="strip", role="group", aria_label="The numbers that matter")


def plain_words(content: Content) -> Section:
    """What the guarantee says, in sentences."""
    row, risk = content.headline, content.risk
    body = [
        _promise(content),
        paragraph(
            tag("strong", "What an attacker can do."),
            words(
                " Think of someone who knows everything except which of two records was used, and who runs the best "
                "test there is. If a false alarm is accepted in 5\u202f% of cases, the test finds the record in at "
                "most {power} of cases; a release that reveals nothing would leave 5\u202f%, one without protection "
                "100\u202f%. Someone for whom both records were equally likely beforehand still decides wrongly in at "
                "least {error} of cases.",
                power=tag("b", percent(risk.power[1], 1, UP)),
                error=tag("b", percent(risk.bayes_risk[0], 1, DOWN)),
            ),
        ),
        paragraph(
            tag("strong", "Against the usual accounting."),
            words(
                " From the same budget, zCDP states {stated} by the optimal conversion and {simple} by the simple "
                "one. Both hold, and both claim a greater loss than there is. If the statement by the simple "
                "conversion is what was promised, every noise variance could be {saved} smaller and the promise would "
                "still hold; against the optimal conversion it is {saved_optimal}.",
                stated=equation(EPSILON, fine(row.zcdp_optimal, 4, UP)),
                simple=fine(row.zcdp_simple, 4, UP),
                saved=tag("b", percent(row.saved_simple.saved, 2, DOWN)),
                saved_optimal=percent(row.saved_optimal.saved, 2, DOWN),
            ),
        ),
        gaussian_note(content),
        _risk_table(content),
    ]
    return Section("words", "In plain words", text(body))


def _promise(content: Content) -> Markup:
    promise = (
        "Whatever is read from the release afterwards becomes at most {power} times as likely, with {stated} (a factor of "
        "{factor}), but for a probability of {given}. That factor is a limit for the most telling output there is, not for "
        "a typical one; the power of the best test, below, says what can be done with the release as a whole."
    )
    if content.stated <= 0:
        promise = (
            "Whatever is read from the release afterwards, its probability changes by at most {given}. The exact {epsilon} "
            "at this {delta} is not above zero, so no factor is needed. A smaller {delta} says more about this release."
        )
    told = words(
        promise,
        power=tag("i", "e", tag("sup", "\u03b5")),
        stated=equation(EPSILON, tag("b", exact(content.stated))),
        factor=factor(content.risk.odds[1]),
        given=equation(DELTA, exact(content.headline.delta)),
    )
    return paragraph(tag("strong", "What is promised."), " Replace one record by any other. ", told)


def gaussian_note(content: Content) -> Markup:
    """Whether the Gaussian formula errs on the unsafe side anywhere in the table."""
    alarms = content.alarms
    if not alarms:
        calm = words(
            "The formula for continuous noise of the same budget is not below the exact value at any {delta} of this "
            "report. It is still an estimate without a proof: quote the exact value."
        )
        return note("calm", "The Gaussian formula", paragraph(calm))
    worst = max(alarms, key=_shortfall)
    alarm = words(
        "At {count} of {all} values of {delta} the formula for continuous noise of the same budget is proved to be "
        "below the exact {epsilon}, by up to a share of {share} of it (at {worst}). It is an estimate, not a bound: "
        "do not quote it as a guarantee.",
        count=len(alarms),
        all=len(content.summary.epsilons),
        share=significant(_shortfall(worst), 2, UP),
        worst=equation(DELTA, exact(worst.delta)),
    )
    return note("alarm", "Alarm: the Gaussian formula understates the loss", paragraph(alarm))


def _shortfall(row: EpsilonRow) -> float:
    """How far the Gaussian formula is below the certified lower bound, relative to it."""
    lower = float(row.epsilon[0])
    return (lower - row.gaussian) / abs(lower) if lower else math.inf


def _risk_table(content: Content) -> Markup:
    """Every figure of the risk on its safe side, with what it means."""
    risk = content.risk
    values = risk.advantage[1], risk.power[1], risk.bayes_risk[0], risk.posterior[1], risk.odds[1]
    rows: list[list[Child]] = []
    for (name, meaning), value in zip(_RISKS.items(), values, strict=True):
        side, rounding = ("at least", DOWN) if name == "Bayes risk" else ("at most", UP)
        shown = factor(value) if name == "Odds multiplier" else significant(value, 4, rounding)
        figure = text(tag("span", side, cls="aside"), data(value, shown, f"risk-{name}"))
        given = {"alpha": percent(risk.alpha, 0, UP), "prior": exact(risk.prior), "given": exact(risk.delta)}
        rows.append([name, figure, words(meaning, **given)])
    heads = columns("lrl", "Figure", "Value", "Meaning")
    return table("The same guarantee as risk, over all pairs", heads, rows, "risks")


def _card(label: Child, value: Child, below: Child) -> Markup:
    lines = {"label": label, "value": value, "below": below}
    return tag("div", [tag("p", line, cls=cls) for cls, line in lines.items()], cls="card")
