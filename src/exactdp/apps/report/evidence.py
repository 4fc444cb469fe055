"""The chapters for whoever checks: how each number was certified, and the certificates themselves."""

from __future__ import annotations

import base64
import platform

import flint
import numpy
import scipy

import exactdp
from exactdp.apps.report.certificates import Claim
from exactdp.apps.report.content import Content
from exactdp.apps.report.markup import Child, Markup, Section, columns, facts, note, paragraph, table, tag, text
from exactdp.apps.report.numerals import data, exact, relative_width, significant, whole
from exactdp.apps.report.plain_words import EPSILON, equation, words
from exactdp.apps.report.sections import pair_text
from exactdp.numerals import UP

_ENGINE, _ANY = "engine.md", "any-composition.md"
_THEOREMS = {
    "sieve on the lattice": ("Theorems 1 to 5 and 8", _ENGINE),
    "direct enumeration": ("Theorem 13", _ANY),
    "sum over coarse mechanisms": ("Theorem 14", _ANY),
    "smoothed Fourier sum": ("Theorems 10 to 12", _ANY),
    "Fourier sum on the line": ("Theorems 10 and 12", _ANY),
    "": ("the theorem named for the method", _ANY),
}
"""The theorem or theorems that a method rests on, and the page of docs/theory where they stand, by how the method begins."""


def certified(content: Content) -> Section:
    """Method, theorem, assumptions and width of every kind of number."""
    name, page = next(t for start, t in _THEOREMS.items() if content.explanation.method.startswith(start))
    of_curve = _cite("Theorems 6 and 9", _ENGINE)
    if page != _ENGINE:
        of_curve = text(_cite("Theorem 15", _ANY), "; ", _cite("Theorem 9", _ENGINE))
    digits = content.study.grids.digits
    arithmetic = "IEEE 754 doubles; libm and NumPy within 4 units in the last place; the code"
    pairs = f"ball arithmetic, {digits} digits; Arb encloses; the code" if digits else arithmetic
    rows: list[list[Child]] = [
        [words("{epsilon} and {delta}"), _cite(name, page), pairs, _width(content, "epsilon")],
        [
            "Worst over all pairs",
            _cite("section 9", _ENGINE),
            f"every {content.neighbours.cases[0]} was accounted for",
            "\u2013",
        ],
        ["\u03b2, power, advantage, Bayes risk", of_curve, arithmetic, _width(content, "beta")],
        ["Savings", _cite("section 9", _ENGINE), text(arithmetic, "; grid of 0.01\u202f%"), "one grid step"],
        ["zCDP", _cite("Theorems 1 to 3", "conversions.md"), "the budget; rounded to the safe side", "\u2013"],
        ["Gaussian formula", "none: an estimate", "continuous noise, which this is not", "no bound"],
        ["Standard errors, margins", "none: computed in doubles", "accurate to more digits than are shown", "\u2013"],
        ["Certificates", _cite("Theorem C1", "certification.md"), "Arb encloses; the code", _digits(content)],
    ]
    heads = columns("llll", "Number", "Guaranteed by", "Assumes", "Relative width at most")
    libraries = {"python-flint": flint, "NumPy": numpy, "SciPy": scipy}
    versions = ", ".join(f"{name} {library.__version__}" for name, library in libraries.items())
    made_with = f" exactdp {exactdp.__version__}, Python {platform.python_version()}, {versions}."
    body = [
        paragraph(
            "Every certified number lies between a lower and an upper bound that are proved. The one shown is on the safe side, "
            "rounded once more in that direction. The theorems are in the files named, in ",
            tag("code", "docs/theory"),
            " of the documentation of exactdp.",
        ),
        table("What each number rests on", heads, rows, "wordy"),
        tag("h3", "The headline in detail"),
        paragraph(
            words(
                "The account of {delta} at {stated} for the pair {pair}: what was summed, and everything that can be "
                "wrong with it, relative to the sum.",
                stated=equation(EPSILON, exact(content.stated)),
                pair=pair_text(content.headline.worst_pair),
            )
        ),
        facts(content.explanation.items(), "facts compact"),
        paragraph(tag("strong", "Made with"), made_with),
    ]
    return Section("certified", "How each number was certified", text(body))


def _cite(name: str, page: str) -> Markup:
    return text(f"{name}, ", tag("code", page))


def _width(content: Content, quantity: str) -> Markup:
    rows = content.summary.epsilons if quantity == "epsilon" else content.summary.powers
    widths = [relative_width(*getattr(row, quantity)) for row in rows]
    return significant(max(widths), 2, UP) if widths else text("\u2013")


def _digits(content: Content) -> Markup:
    made = [claim.certificate.digits for claim in content.claims if claim.certificate is not None]
    return text("10", tag("sup", f"\u2212{min(made)}")) if made else text("\u2013")


def certificates(content: Content) -> Section:
    """The certificates with their downloads, the design itself, and the commands that check them."""
    body: list[Child] = [
        paragraph(
            "A certificate is a small file: the mechanisms of one pair as exact fractions, the claim, and how it was proved. ",
            tag("code", "exactdp verify FILE"),
            " proves the claim again, on another contour and at a higher precision. The files are inside this page; "
            "saving one needs no network.",
        ),
        [_claim(content, claim) for claim in content.claims],
    ]
    if len(content.release.pairs) > 1:
        body.append(
            paragraph(
                "These certificates cover one pair each, in ball arithmetic. That of the whole release, in the memo, covers all ",
                whole(len(content.release.pairs)),
                " pairs.",
            )
        )
    body.append(_design(content))
    return Section("certificates", "Certificates and files", text(body))


def _claim(content: Content, claim: Claim) -> Markup:
    head = tag("h3", f"{claim.role}, ", pair_text(claim.pair))
    if claim.certificate is None:
        reason = paragraph("No certificate was made. ", claim.reason)
        kept = paragraph("The bounds in this report hold without it.")
        return tag("article", head, note("calm", "No certificate", reason, kept), cls="claim")
    record = claim.certificate
    written = record.to_json()
    rows: list[tuple[Child, Child]] = [
        ("Claim", words("{delta} at {stated}", stated=equation(EPSILON, exact(claim.epsilon)))),
        ("At least", tag("code", str(record.lower))),
        (
            "At most",
            tag("code", data(record.upper, str(record.upper), f"certificate-{claim.pair[0]}-{claim.pair[1]}", UP)),
        ),
        ("SHA-256", tag("code", record.sha256, cls="hash")),
        ("Check with", tag("code", f"exactdp verify {claim.file_name}")),
    ]
    below = None
    if record.upper <= content.headline.delta:
        below = paragraph("This is at most ", exact(content.headline.delta), ", as the headline says for this pair.")
    # JSON that cannot end the element it stands in; it reads back as the same record
    inert = Markup(written.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
    block = tag("script", inert, type="application/json", id=f"json-{claim.pair[0]}-{claim.pair[1]}")
    link = download(written, "application/json", claim.file_name)
    return tag("article", head, facts(rows, "facts compact"), below, paragraph(link), block, cls="claim")


def _design(content: Content) -> Markup | None:
    if content.budget is None:
        return None
    name = f"{content.claims[0].file_name.partition('-pair-')[0]}.toml"
    return tag(
        "article",
        tag("h3", "The design"),
        paragraph(
            "The budget file from which all of this follows. With it, ",
            tag("code", f"exactdp report {name}"),
            " makes the numbers of this report again.",
        ),
        paragraph(download(content.budget, "application/toml", name)),
        cls="claim",
    )


def download(content: str, kind: str, name: str) -> Markup:
    """A link that saves a text without any network: the file is the address."""
    encoded = base64.b64encode(content.encode()).decode()
    return tag("a", f"Save {name}", href=f"data:{kind};base64,{encoded}", download=name, cls="download")
