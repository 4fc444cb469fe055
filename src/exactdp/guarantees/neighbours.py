"""Who the neighbours are, in words: what a guarantee compares, said for the relation that it was computed for.

Under replacement nobody is told "with the record than without it": both data sets have a record there. A composition alone does
not know what its neighbours are, and gets words that are true for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from exactdp.numerals import counted

REPLACE, ADD_REMOVE = "replace", "add/remove"


@dataclass(frozen=True)
class Neighbours:
    """One neighbouring relation in phrases that sentences are made of."""

    change: str
    """What makes a neighbour, as a sentence."""
    briefly: str
    """The same as an entry of a table."""
    likelier: str
    """Between what an event is likelier: it is likelier ... ."""
    found: str
    """What a test that is right has done: it ... ."""
    truth: str
    """What an attacker does not know: they know everything except ... ."""
    cases: tuple[str, str] = ("pair of directed paths", "pairs of directed paths")
    """What is accounted for one by one, for one of them and for several."""

    def counted(self, number: int) -> str:
        """So many cases."""
        return counted(number, *self.cases)


UNKNOWN = Neighbours(
    "Take any two neighbouring data sets.",
    "any two neighbouring data sets",
    "under one data set than under the neighbouring one",
    "recognises the neighbouring data set",
    "which of two neighbouring data sets was used",
)
_BY_RELATION = {
    REPLACE: Neighbours(
        "Replace one record by any other.",
        "one record replaced by any other",
        "with one record than with another in its place",
        "recognises the record that was used",
        "which of two records was used",
    ),
    ADD_REMOVE: Neighbours(
        "Add or remove one record.",
        "one record added or removed",
        "with the record than without it, or without it than with it",
        "finds the record",
        "whether one record was used",
        ("directed path", "directed paths"),
    ),
}


def relation_of(source: object) -> str | None:
    """The relation of a release, or of a study of one; None for a composition, which does not know."""
    release = getattr(source, "release", source)
    return getattr(release, "relation", None)


def neighbours(relation: str | None) -> Neighbours:
    """The phrases for a relation; neutral ones where it is not known.

    >>> neighbours("replace").change, neighbours(None).truth
    ('Replace one record by any other.', 'which of two neighbouring data sets was used')
    """
    return _BY_RELATION.get(relation or "", UNKNOWN)
