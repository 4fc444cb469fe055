"""The page: one file, no request to anywhere, readable without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

import exactdp
from exactdp.apps.report.content import Content
from exactdp.apps.report.evidence import certificates, certified
from exactdp.apps.report.limits import limits
from exactdp.apps.report.markup import Markup, Section, tag, text
from exactdp.apps.report.memo import memo
from exactdp.apps.report.numerals import equals, whole
from exactdp.apps.report.plain_words import headline_strip, plain_words
from exactdp.apps.report.sections import guarantee, noise, proxy, release_facts, savings

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""Nothing may be loaded and no script may run; styles stand in the page."""

_LAST_WORDS = "The file holds everything it shows and asks nothing of any network; the same design gives the same file."


def render(content: Content, charts: bool = True) -> str:
    """The whole document."""
    sections = [
        memo(content),
        plain_words(content),
        limits(content),
        guarantee(content, charts),
        release_facts(content),
        noise(content, charts),
        savings(content, charts),
        proxy(content),
        certified(content),
        certificates(content),
    ]
    return document(f"Privacy accounting report: {content.release.title}", _masthead(content), sections)


def document(title: str, masthead: Markup, sections: Sequence[Section]) -> str:
    """A page of a masthead and numbered sections, with a table of contents."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"exactdp {exactdp.__version__}"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        Markup(f"<style>\n{stylesheet()}</style>"),
    )
    numbered = list(enumerate(sections, start=1))
    entries = [tag("li", tag("a", tag("span", n, cls="number"), s.title, href=f"#{s.key}")) for n, s in numbered]
    contents = tag("nav", tag("p", "Contents", cls="nav-title"), tag("ol", entries), aria_label="Contents")
    body = tag(
        "body",
        tag("a", "Skip to the report", href="#memo", cls="skip"),
        masthead,
        tag("div", contents, tag("main", [s.render(n) for n, s in numbered]), cls="frame"),
        tag("footer", tag("p", f"Made by exactdp {exactdp.__version__}. {_LAST_WORDS}")),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def stylesheet() -> str:
    """The style of the page, a file of the package."""
    return resources.files("exactdp.apps.report").joinpath("style.css").read_text(encoding="utf-8")


def _masthead(content: Content) -> Markup:
    release = content.release
    cases = content.neighbours.cases[len(release.pairs) > 1]
    line = [
        text("Total budget \u03c1\u202f", equals(release.rho)),
        text(whole(len(release.pairs)), f" {cases}"),
        text(whole(len(content.noise)), " levels" if len(content.noise) > 1 else " level"),
        content.date,
    ]
    titles = tag("p", "Privacy accounting report", cls="eyebrow"), tag("h1", release.title)
    meta = tag("ul", [tag("li", item) for item in line if item], cls="meta")
    return tag("header", tag("div", titles, meta, headline_strip(content), cls="inner"), cls="masthead")
