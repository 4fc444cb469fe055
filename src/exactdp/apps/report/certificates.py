"""The certificates that a report carries, or the sentence that says why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from exactdp.accounting.certificates.certificate import Certificate, certify
from exactdp.accounting.certificates.routes import lattice_of
from exactdp.accounting.composition import Composition
from exactdp.census.design_certificate import DesignCertificate
from exactdp.census.design_proof import certify_design
from exactdp.census.releases import Release
from exactdp.engine.lattice.plan import log_expected, make_plan
from exactdp.engine.lattice.tilts import delta_payoff, rung, rung_index
from exactdp.engine.payoff import delta_threshold
from exactdp.errors import ExactDPError

MOST_NODES = 4_000
"""Terms of a Fourier sum in balls that a report waits for, less than two seconds: the certificate of the whole release holds for
every pair. `exactdp certify` has no such limit."""


@dataclass(frozen=True)
class Claim:
    """One pair at one epsilon: its certificate, or the reason why there is none."""

    pair: tuple[int, int]
    role: str
    file_name: str
    epsilon: Fraction
    certificate: Certificate | None
    reason: str = ""


@dataclass(frozen=True)
class WholeClaim:
    """The whole release at the headline's delta: its certificate, or the reason why there is none."""

    file_name: str
    certificate: DesignCertificate | None
    reason: str = ""


def whole_claim(release: Release, delta: Fraction, stem: str = "") -> WholeClaim:
    """The least epsilon of ten digits, or as many as can be proved, at which every pair satisfies `delta`."""
    name = f"{_safe(stem or release.name)}-certificate.json"
    try:
        return WholeClaim(name, certify_design(release, delta=delta))
    except ExactDPError as error:
        return WholeClaim(name, None, str(error))


def make_claims(release: Release, worst: tuple[int, int], epsilon: Fraction, digits: int) -> tuple[Claim, ...]:
    """delta at `epsilon` of the worst pair and, where that is another one, of the full path with itself."""
    full = release.proxy_pair
    roles = {worst: "The worst pair"}
    roles[full] = "The worst pair, which is the full path with itself" if full == worst else "The full path with itself"
    return tuple(_claim(release, pair, role, epsilon, digits) for pair, role in roles.items())


def _claim(release: Release, pair: tuple[int, int], role: str, epsilon: Fraction, digits: int) -> Claim:
    composition, name = release.pair(*pair), f"{_safe(release.name)}-pair-{pair[0]}-{pair[1]}.json"
    try:
        work = _nodes(composition, epsilon, digits)
        if work > MOST_NODES:
            reason = (
                f"It would need a sum of {work:,} terms in ball arithmetic, more than a report waits for; the certificate of "
                "the whole release in the memo covers this pair."
            )
            return Claim(pair, role, name, epsilon, None, reason)
        return Claim(pair, role, name, epsilon, certify(composition, epsilon=epsilon, digits=digits))
    except ExactDPError as error:
        return Claim(pair, role, name, epsilon, None, str(error))


def _nodes(composition: Composition, epsilon: Fraction, digits: int) -> int:
    """How many terms a certificate's sum has. Heuristic: decides only whether a certificate is made."""
    lattice, size = lattice_of(composition), abs(epsilon)
    payoff = delta_payoff(lattice, size)
    steps = delta_threshold(lattice, size).steps
    where = rung(lattice, payoff, rung_index(lattice, payoff, float(steps * lattice.step)))
    return len(make_plan(lattice, where, log_expected(lattice, where) - digits * math.log(10)).kept)


def _safe(name: str) -> str:
    """A name that is a file name everywhere."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name)[:60].strip("-") or "release"
