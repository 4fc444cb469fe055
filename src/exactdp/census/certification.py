"""One door for all kinds of certificates: of one composition, of a whole design, of several products together."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import overload

from exactdp.accounting.certificates import certificate as compositions
from exactdp.accounting.certificates.certificate import Certificate
from exactdp.accounting.certificates.record import record_text
from exactdp.accounting.certificates.verify import Verification
from exactdp.accounting.certificates.verify import verify as verify_composition
from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.census import design_certificate as designs
from exactdp.census import joint_certificate as joints
from exactdp.census.design_certificate import DesignCertificate
from exactdp.census.design_proof import certify_design
from exactdp.census.design_verification import verify_design
from exactdp.census.joint import Joint
from exactdp.census.joint_certificate import JointCertificate
from exactdp.census.joint_proof import certify_joint, verify_joint
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.numbers import Number
from exactdp.strict_json import parse

_USUAL_DIGITS = 30  # of a certificate of one composition


@overload
def certify(
    subject: Release,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    alpha: Number | None = None,
    digits: int | None = None,
    path: str | os.PathLike[str] | None = None,
) -> DesignCertificate: ...


@overload
def certify(
    subject: Joint,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    alpha: Number | None = None,
    digits: int | None = None,
    path: str | os.PathLike[str] | None = None,
) -> JointCertificate: ...


@overload
def certify(
    subject: Composition,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    alpha: Number | None = None,
    digits: int | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Certificate: ...


@steady
def certify(
    subject: Composition | Release | Joint,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    alpha: Number | None = None,
    digits: int | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Certificate | DesignCertificate | JointCertificate:
    """A certificate of delta at `epsilon`, of epsilon at `delta`, or of beta at `alpha`: exactly one of them.

    Of a composition: an enclosure of the answer to `digits` digits (30 unless told). Of a release: the least epsilon or delta for
    which every pair's delta is proved to be small enough (10 digits unless told, or as many as can be proved), with a pair that
    proves that less will not do. With `path` it is also written to that file, all of it or nothing.

    >>> from exactdp import DiscreteGaussian, census
    >>> certificate = certify(10 * DiscreteGaussian(1), epsilon=30, digits=12)
    >>> certificate.claim, f"{certificate.lower:.12E}"
    ('delta at epsilon = 30', '1.842766666664E-16')
    >>> certify(census.release("dhc-units-us"), delta="1e-10").answer
    Decimal('32.07198497')
    """
    if isinstance(subject, Joint):
        if delta is None or epsilon is not None or alpha is not None:
            raise InvalidInputError("A certificate of several products is about epsilon: give delta, and nothing else.")
        joint = certify_joint(subject, delta=delta, digits=digits)
        if path is not None:
            joint.save(path)
        return joint
    if not isinstance(subject, Release):
        chosen = _USUAL_DIGITS if digits is None else digits
        return compositions.certify(subject, epsilon=epsilon, delta=delta, alpha=alpha, digits=chosen, path=path)
    if alpha is not None:
        raise InvalidInputError(
            f"A certificate of a whole design is about delta and epsilon. Found alpha = {alpha}; certify a pair of it, "
            "release.pair(k, l) or --pair K,L, for beta."
        )
    return certify_design(subject, epsilon=epsilon, delta=delta, digits=digits, path=path)


def read_certificate(text: str) -> Certificate | DesignCertificate | JointCertificate:
    """A certificate of any kind, told apart by its format; refuses (InvalidInputError) any other text."""
    found = parse(text).get("format")
    if found == joints.FORMAT:
        return JointCertificate.from_json(text)
    kind = DesignCertificate if found == designs.FORMAT else Certificate
    return kind.from_json(text)


def load_certificate(path: str | os.PathLike[str]) -> Certificate | DesignCertificate | JointCertificate:
    """A certificate of any kind from a file."""
    text = record_text(path)
    try:
        return read_certificate(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None


@steady
def verify(
    certificate: Certificate | DesignCertificate | JointCertificate | str | os.PathLike[str],
    *,
    jobs: int = 1,
    done: Callable[[int], None] = lambda compositions: None,
) -> Verification:
    """Check a certificate of a composition or of a whole design, or the file that holds one, by other routes than it was made by.

    Guarantee: holds only if the claim was proved again. A malformed file raises InvalidInputError; a claim that cannot be
    recomputed does not hold, and the reason says why. For a design, `jobs` processes share the work, and `done` hears how many
    compositions were checked.

    >>> from exactdp import DiscreteGaussian, certify
    >>> verify(certify(10 * DiscreteGaussian(1), epsilon=30, digits=12)).holds
    True
    """
    known = (Certificate, DesignCertificate, JointCertificate)
    record = certificate if isinstance(certificate, known) else load_certificate(certificate)
    if isinstance(record, JointCertificate):
        return verify_joint(record, done=done)
    return (
        verify_design(record, jobs=jobs, done=done)
        if isinstance(record, DesignCertificate)
        else verify_composition(record)
    )
