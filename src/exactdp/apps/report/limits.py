"""What the numbers of a report do not mean, for whoever quotes them."""

from __future__ import annotations

from exactdp.apps.report.content import Content
from exactdp.apps.report.markup import Section, paragraph, tag, text
from exactdp.apps.report.plain_words import words

_NOT = {
    "Not the probability that somebody is identified.": (
        "Neither {epsilon} nor {delta} says how likely it is that a person is found or a value guessed. They limit how much the "
        "release changes what anybody can conclude; what could be concluded without it is not their matter."
    ),
    "Not an average.": (
        "They hold for every data set, every record and every output, and are reached by the worst of them. What a typical "
        "record loses may be far less; no number here says how much less."
    ),
    "{delta} is not a failure that may be ignored.": (
        "Where the factor is exceeded, nothing limits by how much, and the allowance of {delta} is made for each record anew. It "
        "should be far below one divided by the number of records."
    ),
    "Only what is listed here.": (
        "Other products from the same records, an earlier or later release, and whatever is published afterwards because the "
        "confidential data were looked at again, add their own loss. What is computed from the noisy counts alone costs nothing."
    ),
    "Not what is published without noise.": (
        "Totals that are held exact (invariants), the design itself and anything else that is no noisy count of this budget are "
        "outside of the guarantee."
    ),
    "Only this noise, fixed beforehand.": (
        "The noise must be drawn exactly from the distributions named, with secret randomness: a sampler that rounds is another "
        "mechanism. Which query is asked next may depend on earlier noisy answers; how much noise each gets may not."
    ),
    "One record, not one household.": (
        "{change} Whoever stands behind several records is protected less; and what holds for a whole group of "
        "people can be learned from any release that is good for anything."
    ),
    "An estimate is no guarantee.": (
        "Numbers with a tilde, set like {mark}, are estimates, or exact numbers that were cut. All others are bounds, rounded to "
        "the safe side, or exact."
    ),
}


def limits(content: Content) -> Section:
    """What a reader might take the numbers for."""
    parts = {"change": content.neighbours.change, "mark": tag("span", "~1.23", cls="estimate")}
    items = [tag("li", tag("strong", words(title)), " ", words(sentence, **parts)) for title, sentence in _NOT.items()]
    lead = paragraph("The guarantee is exact, and says no more than it says.")
    return Section("limits", "What these numbers do not mean", text(lead, tag("ul", items, cls="limits")))
