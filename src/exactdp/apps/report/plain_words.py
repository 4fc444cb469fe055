"""The first page of a report: the numbers that matter, and what they mean to someone who has to decide."""

from __future__ import annotations

from fractions import Fraction

from exactdp.apps.report.content import Content
from exactdp.apps.report.markup import Child, Markup, Section, columns, note, paragraph, table, tag, text
from exactdp.apps.report.numerals import as_markup, data, exact, factor, fine, percent, significant
from exactdp.census.savings import Saving
from exactdp.guarantees.comparison import QUOTED_DIGITS, Grade
from exactdp.numerals import DOWN, UP, Real, whole_text

EPSILON, DELTA = tag("i", "\u03b5"), tag("i", "\u03b4")
_RISKS = {
    "Advantage": "how far true and false alarms of any test lie apart",
    "Power": "how often any test with {alpha} false alarms {found}",
    "Bayes risk": "how often an attacker with a prior of {prior} is wrong",
    "Posterior": "what a prior of {prior} becomes after the best test with {alpha} false alarms says yes",
    "Odds multiplier": "how much likelier an event is {likelier}, but for a probability of {given}",
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


def saved(saving: Saving, key: str) -> Markup:
    """The share of the noise variance that could be saved."""
    return share(saving.saved, key)


def share(value: Fraction | None, key: str) -> Markup:
    """A share of at least so much; a dash where there is none."""
    return text("\u2013") if value is None else data(value, percent(value, 2, DOWN), key, DOWN)


def bound(value: Real, shown: Child, key: str) -> Markup:
    """An upper bound that is shown."""
    return data(value, shown, key, UP)


def headline_strip(content: Content) -> Markup:
    """Four numbers, each with what it would have been without the exact accounting."""
    row, risk = content.headline, content.risk
    given = equation(DELTA, exact(row.delta))
    cards = [
        _card(
            words("Exact {epsilon} at {given}, at most", given=given),
            data(row.epsilon[1], _stated(content), "headline-epsilon", UP),
            words(
                "zCDP states {optimal} (optimal) or {simple} (simple)",
                optimal=bound(row.zcdp_optimal, fine(row.zcdp_optimal, 4, UP), "headline-zcdp-optimal"),
                simple=bound(row.zcdp_simple, fine(row.zcdp_simple, 4, UP), "headline-zcdp-simple"),
            ),
        ),
        _card(
            "Power of the best test at 5\u202f% false alarms",
            bound(risk.power[1], percent(risk.power[1], 1, UP), "headline-power"),
            text("zCDP would allow ", _zcdp_power(content)),
        ),
        _card(
            "Least error of an attacker who starts from even odds",
            data(risk.bayes_risk[0], percent(risk.bayes_risk[0], 1, DOWN), "headline-bayes-risk", DOWN),
            "guessing would err in 50\u202f% of cases",
        ),
        _card(
            words(
                "Noise variance that could be saved, if zCDP\u2019s simple conversion at {given} is the promise",
                given=given,
            ),
            saved(row.saved_simple, "headline-saved-simple"),
            text(
                "all variances scaled by one factor; ",
                saved(row.saved_optimal, "headline-saved-optimal"),
                " if the optimal conversion is",
            ),
        ),
    ]
    return tag("div", cards, cls="strip", role="group", aria_label="The numbers that matter")


def plain_words(content: Content) -> Section:
    """What the guarantee says, in sentences."""
    row, risk, neighbours = content.headline, content.risk, content.neighbours
    body = [
        _promise(content),
        paragraph(
            tag("strong", "What an attacker can do."),
            words(
                " Think of someone who knows everything except {truth}, and who runs the best test there is. If a false "
                "alarm is accepted in 5\u202f% of cases, the test {found} in at most {power} of cases; a release that "
                "reveals nothing would leave 5\u202f%, one without protection 100\u202f%. Someone for whom both were equally "
                "likely beforehand still decides wrongly in at least {error} of cases.",
                truth=neighbours.truth,
                found=neighbours.found,
                power=tag("b", bound(risk.power[1], percent(risk.power[1], 1, UP), "words-power")),
                error=tag(
                    "b", data(risk.bayes_risk[0], percent(risk.bayes_risk[0], 1, DOWN), "words-bayes-risk", DOWN)
                ),
            ),
        ),
        paragraph(
            tag("strong", "Against the usual accounting."),
            words(
                " From the same budget, zCDP states {stated} by the optimal conversion and {simple} by the simple "
                "one. Both hold, and both claim a greater loss than there is. If the statement by the simple "
                "conversion is what was promised, every noise variance could be {saved} smaller, all by one factor, and "
                "the promise would still hold; if it is the one by the optimal conversion, {saved_optimal}.",
                stated=equation(EPSILON, bound(row.zcdp_optimal, fine(row.zcdp_optimal, 4, UP), "words-zcdp-optimal")),
                simple=bound(row.zcdp_simple, fine(row.zcdp_simple, 4, UP), "words-zcdp-simple"),
                saved=tag("b", saved(row.saved_simple, "words-saved-simple")),
                saved_optimal=saved(row.saved_optimal, "words-saved-optimal"),
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
        stated=equation(EPSILON, tag("b", bound(content.headline.epsilon[1], _stated(content), "words-epsilon"))),
        factor=bound(content.risk.odds[1], factor(content.risk.odds[1]), "words-odds"),
        given=equation(DELTA, exact(content.headline.delta)),
    )
    return paragraph(tag("strong", "What is promised."), f" {content.neighbours.change} ", told)


def _stated(content: Content) -> Markup:
    """The epsilon of the headline, all of it: that is what the certificates are about."""
    return as_markup(whole_text(content.stated))


def _zcdp_power(content: Content) -> Markup:
    return data(content.zcdp_power, percent(content.zcdp_power, 1, UP), "headline-zcdp-power", UP)


def gaussian_note(content: Content) -> Markup:
    """Whether the Gaussian formula errs on the unsafe side anywhere in the table: an alarm, a remark, or neither."""
    told = {
        Grade.ALARM: "Alarm: the Gaussian formula understates the loss",
        Grade.REMARK: "Remark: the Gaussian formula is lower, by less than any digit people quote",
    }
    for grade, title in told.items():
        rows = content.graded(grade)
        if not rows:
            continue
        worst = max(rows, key=lambda row: content.comparison(row).off)
        off = content.comparison(worst).off
        sentence = words(
            "At {count} of {all} values of {delta} the formula for continuous noise of the same budget is proved to be "
            "below the exact {epsilon}, at {worst} by at least {share} of it. {graded} The formula is an estimate, not a "
            "bound: do not quote it as a guarantee.",
            count=len(rows),
            all=len(content.summary.epsilons),
            share=data(off, significant(off, 2, DOWN), f"gaussian-{grade.value}", DOWN),
            worst=equation(DELTA, exact(worst.delta)),
            graded=_GRADED[grade],
        )
        return note("alarm" if grade is Grade.ALARM else "calm", title, paragraph(sentence))
    calm = words(
        "The formula for continuous noise of the same budget is not below the exact value at any {delta} of this "
        "report. It is still an estimate without a proof: quote the exact value."
    )
    return note("calm", "The Gaussian formula", paragraph(calm))


_GRADED = {
    Grade.ALARM: f"That is seen in the {QUOTED_DIGITS} digits that people quote.",
    Grade.REMARK: f"That is less than half a unit of the {QUOTED_DIGITS}th digit, and changes no number that people quote.",
}


def _risk_table(content: Content) -> Markup:
    """Every figure of the risk on its safe side, with what it means."""
    risk = content.risk
    values = risk.advantage[1], risk.power[1], risk.bayes_risk[0], risk.posterior[1], risk.odds[1]
    rows: list[list[Child]] = []
    for (name, meaning), value in zip(_RISKS.items(), values, strict=True):
        side, rounding = ("at least", DOWN) if name == "Bayes risk" else ("at most", UP)
        shown = factor(value) if name == "Odds multiplier" else significant(value, 4, rounding)
        figure = text(tag("span", side, cls="aside"), data(value, shown, f"risk-{name}", rounding))
        given = {"alpha": percent(risk.alpha, 0, UP), "prior": exact(risk.prior), "given": exact(risk.delta)}
        neighbours = content.neighbours
        rows.append([name, figure, words(meaning, found=neighbours.found, likelier=neighbours.likelier, **given)])
    heads = columns("lrl", "Figure", "Value", "Meaning")
    return table("The same guarantee as risk, over all pairs", heads, rows, "risks")


def _card(label: Child, value: Child, below: Child) -> Markup:
    lines = {"label": label, "value": value, "below": below}
    return tag("div", [tag("p", line, cls=cls) for cls, line in lines.items()], cls="card")
