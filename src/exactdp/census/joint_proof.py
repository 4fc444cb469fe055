"""Certificates of several products under one change, made and verified: every combination of paths, on two sets of contours.

Made: all combinations in float64 on the contours of the account. Verified: the witness in balls, all combinations in float64 on
contours of other tilts, periods and smoothing, and in balls, one by one, where these do not decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from exactdp.accounting.certificates.certificate import versions
from exactdp.accounting.certificates.verify import Verification, check_hash, concluded, made_checks
from exactdp.accounting.line_pairs import LinePairs
from exactdp.arithmetic_state import steady
from exactdp.brackets import Point
from exactdp.census.built_in import release as built_in
from exactdp.census.built_in import release_names
from exactdp.census.changes import CHANGES
from exactdp.census.design_certificate import DIGITS, before, checked_answer, checked_question, has_digits, rounded_up
from exactdp.census.design_verification import decided
from exactdp.census.joint import FEW, Joint
from exactdp.census.joint_certificate import JointCertificate
from exactdp.census.overall import sides
from exactdp.doubles import Ints
from exactdp.engine.lattice.tilts import Positions
from exactdp.errors import AccuracyError
from exactdp.numbers import Number, rational, whole

USUAL_DIGITS = 10
OTHER = Positions(3.7, 2.2, 0.3)
"""The ladder of verification: other tilts than those of the account."""
OTHER_WIDTHS = ((7e-11, 30_000.0), (7e-11, 400_000.0))
_MOST_ALONE = 2_000  # combinations that are decided one by one


@steady
def certify_joint(joint: Joint, *, delta: Number, digits: int | None = None) -> JointCertificate:
    """A certificate of the least epsilon at `delta` of all combinations of paths, to `digits` digits (10, or as many as can be
    proved, without).

    Guarantee: every combination's delta(epsilon) is at most delta, and that of the witness is not for the number before.

    >>> from exactdp.census import joint
    >>> certify_joint(joint("ddhc-a-pr+s-dhc-pr", "person added or removed"), delta="1e-10").answer
    Decimal('21.04763442')
    """
    asked = checked_question("delta", rational(delta, "delta"))
    wanted = USUAL_DIGITS if digits is None else whole(digits, "digits", *DIGITS)
    upper = Fraction(joint.epsilon_bounds(asked).upper)
    for number in range(wanted, DIGITS[0] - 1 if digits is None else wanted - 1, -1):
        answer = checked_answer("delta", rounded_up(upper, number))
        witness = _witness(joint, Fraction(before(answer, number)), asked)
        left = _undecided(_table(joint, Fraction(answer), is_other=False), asked)
        if witness is not None and left is not None and _all_hold(joint, left, Fraction(answer), asked):
            found = JointCertificate(joint, asked, number, answer, joint.count, witness, versions())
            return replace(found, sha256=found.digest())
    raise AccuracyError(f"{wanted} digits of this account could not be proved. Ask for fewer digits.")


def _table(joint: Joint, epsilon: Fraction, *, is_other: bool) -> Point | None:
    """delta of every combination on shared contours; None where there are none."""
    if joint.count <= FEW:
        return None
    family = joint.family()
    if not family.can_share:
        return None
    if is_other:
        family = replace(family, widths=OTHER_WIDTHS, together=1, positions=OTHER)
        return LinePairs(family).shared_table(range(joint.count), [epsilon])
    return joint.table(epsilon)


def _undecided(table: Point | None, delta: Fraction) -> Ints | None:
    """The combinations that a table does not prove to be at most `delta`, all where there is none; None where one is above."""
    if table is None:
        return np.arange(0)
    found = sides(table, delta)
    return None if (found > 0).any() else np.flatnonzero(found == 0)


def _witness(joint: Joint, epsilon: Fraction, delta: Fraction) -> int | None:
    """A combination that is proved not to satisfy (epsilon, delta)."""
    table = _table(joint, epsilon, is_other=False)
    worst = int(np.argmax(table.delta.log_upper())) if table is not None else None
    for number in range(joint.count) if worst is None else [worst]:
        if decided(joint.composition(number), (number, number), epsilon, delta, ())[1] > 0:
            return number
    return None


def _all_hold(joint: Joint, left: Ints, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether those combinations, or all where there is no table, are proved to be at most `delta`, one by one."""
    numbers = left.tolist() if joint.count > FEW else range(joint.count)
    if len(numbers) > _MOST_ALONE:
        return False
    return all(decided(joint.composition(i), (i, i), epsilon, delta, ())[1] < 0 for i in numbers)


@steady
def verify_joint(
    certificate: JointCertificate, *, done: Callable[[int], None] = lambda combinations: None
) -> Verification:
    """Check a certificate of several products: hash, form, the witness, every combination of paths.

    Guarantee: holds only if every combination's delta(epsilon) was proved again to be at most delta, and the witness's not to be
    for the number before the answer. A claim that cannot be recomputed does not hold, and the reason says why.
    """
    checks = made_checks(
        certificate,
        {"hash": check_hash, "form": _check_form, "witness": _check_witness, "every combination": _check_all},
    )
    done(certificate.combinations)
    return concluded(certificate.claim, checks, "".join(f"; {c.note}" for c in checks[1:]))


def _check_form(record: JointCertificate) -> tuple[bool, str]:
    """The combinations are as many as the record says; and whether designs and moves are those of this version."""
    joint = record.joint
    if joint.count != record.combinations:
        return False, f"the products have {joint.count:,} combinations of paths, not {record.combinations:,}"
    if not record.witness < record.combinations:
        return False, f"the witness {record.witness} is no combination"
    if not has_digits(record.answer, record.digits):
        return False, f"the answer {record.answer} does not have {record.digits} digits"
    others = [
        part.release.name
        for part in joint.parts
        if part.release.name not in release_names() or built_in(part.release.name) != part.release
    ]
    note = "designs as built in" if not others else f"not the built-in designs: {', '.join(others)}"
    known = CHANGES.get(joint.change.name)
    own = known is not None and all(part.follow in known.follows.values() for part in joint.parts)
    return True, f"{note}; moves {'as' if own else 'other than'} this version derives for the change"


def _check_witness(record: JointCertificate) -> tuple[bool, str]:
    composition, number = record.joint.composition(record.witness), record.witness
    small = Fraction(record.too_small)
    _, side, how = decided(composition, (number, number), small, record.delta, ())
    if side <= 0:
        return False, f"combination {number} does not prove that epsilon = {record.too_small} is too small: {how}"
    return True, f"combination {number} proves by {how} that epsilon = {record.too_small} is too small"


def _check_all(record: JointCertificate) -> tuple[bool, str]:
    joint, epsilon, delta = record.joint, record.epsilon, record.delta
    table = _table(joint, epsilon, is_other=True)
    left = _undecided(table, delta)
    if left is None:
        return False, f"a combination of paths has a delta above {record.delta} there"
    if not _all_hold(joint, left, epsilon, delta):
        return False, "not every combination of paths could be proved again to be small enough"
    alone = joint.count if table is None else len(left)
    shared = joint.count - alone
    told = [f"{shared:,} in float64 on other contours"] if shared else []
    told += [f"{alone:,} one by one, in balls where these apply"] if alone else []
    return True, f"all combinations recomputed: {', '.join(told)}"
