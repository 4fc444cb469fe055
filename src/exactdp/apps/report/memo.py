"""The decision memo, the first chapter: question, options, recommendation, meaning, unusable cells, certificate, sign-off."""

from __future__ import annotations

from exactdp.apps.report.certificates import WholeClaim
from exactdp.apps.report.content import Content, budget_file
from exactdp.apps.report.decision import Decision, Option
from exactdp.apps.report.evidence import download
from exactdp.apps.report.markup import Child, Markup, Section, columns, note, paragraph, table, tag, text
from exactdp.apps.report.numerals import data, exact, fine, whole
from exactdp.apps.report.plain_words import DELTA, EPSILON, bound, equation, words
from exactdp.numerals import UP

_MOST_LISTED = 6
_SIGNED_BY = ("For the programme", "For disclosure avoidance", "For the data users")


def memo(content: Content) -> Section:
    """What is to be decided, on one page."""
    decision = content.decision
    body = [
        _question(content, decision),
        _options(decision),
        _margins(decision),
        _recommendation(decision),
        _meaning(content),
        _usable(content, decision),
        _certificate(content),
        _signatures(content),
    ]
    return Section("memo", "Decision memo", text(body))


def _objective(decision: Decision) -> Markup:
    if decision.within is None:
        return words("the least {epsilon} at {given}", given=equation(DELTA, exact(decision.delta)))
    return words(
        "the smallest 95\u202f% margin at {level} with {epsilon} of at most {within} at {given}",
        level=decision.level,
        within=data(decision.within, exact(decision.within), "memo-within"),
        given=equation(DELTA, exact(decision.delta)),
    )


def _question(content: Content, decision: Decision) -> Markup:
    count = len(decision.options)
    asked = "Should the release be made with the noise of this design?"
    if count > 1:
        asked = f"With the noise of which of these {count} designs should the release be made?"
    return paragraph(
        tag("strong", "Question. "),
        asked,
        " ",
        words("The objective, as stated: {objective}.", objective=_objective(decision)),
    )


def _options(decision: Decision) -> Markup:
    heads = columns("lrrrl", "Option", words("{epsilon}, at most"), "zCDP would say", "Total \u03c1", "What it is")
    rows: list[list[Child]] = [
        [
            text(option.name, tag("span", " recommended", cls="chosen") if option is decision.chosen else None),
            bound(option.epsilon, fine(option.epsilon, 4, UP), f"memo-epsilon-{i}"),
            bound(option.zcdp, fine(option.zcdp, 2, UP), f"memo-zcdp-{i}"),
            data(option.release.rho, exact(option.release.rho), f"memo-rho-{i}"),
            _what(decision, option),
        ]
        for i, option in enumerate(decision.options)
    ]
    caption = words("The options at {given}, each over all its pairs", given=equation(DELTA, exact(decision.delta)))
    return table(caption, heads, rows, "wordy")


def _what(decision: Decision, option: Option) -> Markup:
    differs = decision.differs(option)
    return text(option.what, f" {differs}" if differs else None)


def _margins(decision: Decision) -> Markup:
    levels = list(decision.options[0].release.table)
    heads = columns("l" + "r" * len(decision.options), "Level", *(option.name for option in decision.options))
    rows: list[list[Child]] = []
    for j, level in enumerate(levels):
        cells: list[Child] = [level]
        for i, option in enumerate(decision.options):
            margin = option.margins.get(level)
            shown = text("\u2013")
            if margin is not None:
                shown = text("\u00b1\u202f", data(margin, whole(margin), f"memo-margin-{i}-{j}"))
            cells.append(shown)
        rows.append(cells)
    return table("What is left for users: the largest 95\u202f% margin of a count at each level", heads, rows, "slim")


def _recommendation(decision: Decision) -> Markup:
    chosen = decision.chosen
    if chosen is None:
        sentence = words(
            "None of the options has an {epsilon} that is proved to be within the objective. Add noise, or allow more."
        )
        return note("alarm", "No option meets the objective", paragraph(sentence))
    why = "It has the least certified {epsilon} of the options."
    if decision.within is not None:
        why = "Of the options that are proved to be within it, this one has the smallest margin at {level}."
    return note(
        "calm",
        f"Recommendation: {chosen.name}",
        paragraph(
            words(why, level=decision.level),
            " The objective is the committee\u2019s; with another one, read the table.",
        ),
    )


def _meaning(content: Content) -> Markup:
    means = tag(
        "div", tag("h3", "What the guarantee means"), paragraph(content.neighbours.change, " ", _MEANS), cls="means"
    )
    chapters = text(
        "It is not the probability that somebody is identified, not an average, and says nothing of what is published without "
        "noise or elsewhere. See ",
        tag("a", "what these numbers do not mean", href="#limits"),
        ".",
    )
    lacks = tag("div", tag("h3", "What it does not mean"), paragraph(chapters), cls="means")
    return tag("div", means, lacks, cls="figures")


_MEANS = (
    "Whatever anybody concludes from the release could have been concluded nearly as well, in the sense of the numbers above: "
    "for every record, every attacker and every piece of other knowledge. The numbers are proved, not estimated."
)


def _usable(content: Content, decision: Decision) -> Markup:
    head = tag("h3", "Cells that are unusable at their margin")
    if not decision.typical:
        told = (
            "No typical counts were given, so the report does not judge this. With one, such as "
            f"{decision.level} = 23, cells whose 95\u202f% margin is as large as that count are listed here.",
        )
        return text(head, paragraph(*told))
    judged = ", ".join(f"{level} ({count:,})" for level, count in decision.typical.items())
    lead = f"Judged against typical counts: {judged}. Unusable: the 95\u202f% margin is at least as large as the count."
    lead += f" {decision.source} Other counts can be given." if decision.source else ""
    lists = [_unusable(decision, option, i) for i, option in enumerate(decision.judged)]
    return text(head, paragraph(lead), *lists)


def _unusable(decision: Decision, option: Option, number: int) -> Markup:
    """The cells of one option, those together that have the same margin."""
    found = decision.unusable(option)
    if not found:
        return paragraph(f"{option.name}: no cell is unusable.")
    together: dict[tuple[str, int, int], list[str]] = {}
    for level, query, margin, count in found:
        together.setdefault((level, margin, count), []).append(query)
    items = [
        tag(
            "li",
            tag("strong", f"{level}: "),
            f"{len(queries)} of {len(option.release.table[level])} queries, \u00b1\u202f",
            data(margin, whole(margin), f"memo-unusable-{number}-{i}"),
            f" at a count of {count:,}: {', '.join(queries[:_MOST_LISTED])}",
            f" and {len(queries) - _MOST_LISTED} more" if len(queries) > _MOST_LISTED else None,
        )
        for i, ((level, margin, count), queries) in enumerate(together.items())
    ]
    return text(paragraph(f"{option.name}:"), tag("ul", items, cls="limits"))


def _certificate(content: Content) -> Markup:
    """That of the design, and of the option that is recommended, where that is another one."""
    head = tag("h3", "Certificate of the whole release")
    several = len(content.wholes) > 1
    return text(head, *(_certified(content, found, i, several) for i, found in enumerate(content.wholes)))


def _certified(content: Content, found: WholeClaim, number: int, named: bool) -> Markup:
    name = f"{content.decision.judged[number].name}. " if named else ""
    if found.certificate is None:
        return note("calm", "No certificate", paragraph(f"{name}No certificate was made. ", found.reason))
    record = found.certificate
    sentence = words(
        "{name}At {stated} each of the {pairs} {cases} has a {delta} of at most {given}, and one proves that less will not do. "
        "SHA-256 {digest}. Check it with {command}.",
        name=tag("strong", name),
        stated=equation(EPSILON, data(record.epsilon, exact(record.epsilon), f"memo-certificate-{number}", UP)),
        pairs=whole(record.pairs),
        cases=content.neighbours.cases[record.pairs > 1],
        given=exact(record.delta),
        digest=tag("code", record.sha256, cls="hash"),
        command=tag("code", f"exactdp verify {found.file_name}"),
    )
    saved = paragraph(download(record.to_json(), "application/json", found.file_name))
    budget = (
        budget_file(content.decision.judged[number].release) if number else None
    )  # that of A is at the end of the report
    if budget is not None:
        name = found.file_name.replace("-certificate.json", ".toml")
        saved = text(saved, paragraph(download(budget, "application/toml", name)))
    return text(paragraph(sentence), saved)


def _signatures(content: Content) -> Markup:
    roles = [(tag("span", role), tag("span", "name, date, signature", cls="quiet")) for role in _SIGNED_BY]
    lines = [tag("p", *line, cls="sign") for line in roles]
    adopted = tag("p", tag("span", "Option adopted"), tag("span", "name of the option", cls="quiet"), cls="sign")
    options = content.decision.options
    prints = [
        tag("li", f"{option.name}: " if len(options) > 1 else None, tag("code", option.release.fingerprint, cls="hash"))
        for option in options
    ]
    about = "For the design with the fingerprint" if len(options) == 1 else "Fingerprints of the options"
    return tag(
        "div",
        tag("h3", "Sign-off"),
        paragraph(about),
        tag("ul", prints, cls="limits"),
        adopted,
        lines,
        cls="signatures",
    )
