"""What is asked beside the guarantee: conversions at one rho, calibrations, certificates, tables, the report."""

from __future__ import annotations

from contextlib import nullcontext
from fractions import Fraction
from importlib.util import find_spec

from exactdp.accounting.composition import Composition
from exactdp.apps.studio.schema.answers import UNTIMED, CalibrationAnswer, Converted, TextFile
from exactdp.apps.studio.schema.exchange_answers import VerificationAnswer
from exactdp.apps.studio.work import designs
from exactdp.apps.studio.work.designs import Record, about, read_grids
from exactdp.apps.studio.work.pair import alphas_for, delta_curve, noise, other_accounts, quick
from exactdp.census.certification import certify, read_certificate, verify
from exactdp.census.design_certificate import DesignCertificate
from exactdp.census.grids import Grids
from exactdp.census.pair_results import account_pairs
from exactdp.census.releases import Release
from exactdp.census.runners import Serial
from exactdp.census.savings import calibrate_release, is_in_range
from exactdp.census.summary import summarize
from exactdp.census.tables import calibration_text, numeric_csv, pairs_csv
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import Target, calibrate, target
from exactdp.guarantees.gaussian_estimates import gaussian_beta, gaussian_mu
from exactdp.guarantees.zcdp import zcdp_beta
from exactdp.numbers import positive, shown
from exactdp.numerals import whole_text


def convert(question: Record) -> Converted:
    """What zCDP (safe bounds) and the Gaussian formula (estimates) say at one rho."""
    with about("rho"):
        rho = positive(question["rho"], "rho")
        grids = read_grids(question["epsilons"], question["deltas"], question["alphas"])
        curve = alphas_for(question["tradeoff"] or 0)
        alphas = [*grids.alphas, *curve]
        betas = dict(zip(alphas, zcdp_beta(rho, alphas).tolist(), strict=True)) if alphas else {}
        return {
            "rho": str(rho),
            "epsilon": [{"delta": whole_text(at), **other_accounts(rho, "delta", at)} for at in grids.deltas],
            "delta": [{"epsilon": whole_text(at), **other_accounts(rho, "epsilon", at)} for at in grids.epsilons],
            "beta": [
                {"alpha": whole_text(alpha), "zcdp": betas[alpha], "gaussian": gaussian_beta(gaussian_mu(rho), alpha)}
                for alpha in grids.alphas
            ],
            "tradeoff": {"alpha": [float(a) for a in curve], "zcdp": [betas[a] for a in curve]} if curve else None,
            **UNTIMED,
        }


def calibrated(question: Record) -> CalibrationAnswer:
    """The least factor on the noise variances that meets a target, and the design with it."""
    wanted = _target(question)
    release, grid = designs.release_of(question["design"]), question["grid"]
    if question["over"] == "overall":
        if question["pair"] is not None:
            raise InvalidInputError('Give a pair, or "over": "overall" for all pairs. Found both; leave one out.')
        factor, scaled = calibrate_release(release, wanted, question["level"], grid)
        below = is_in_range(release, factor - Fraction(1, grid), question["level"])
    elif question["level"] is not None:
        raise InvalidInputError(
            f'One level is calibrated over all pairs; ask with "over": "overall". Found the level {shown(question["level"])}.'
        )
    else:
        own, numbers = designs.chosen_pair(question["design"], question["pair"])
        found = calibrate(quick(own.pair(*numbers)), wanted, grid=grid)
        factor, below, scaled = found.factor, found.below_exists, release.scaled(found.factor)
    what = f"Every noise variance of {question['level']}" if question["level"] else "Every noise variance"
    return {
        "factor": whole_text(factor),
        "step": whole_text(Fraction(1, grid)),
        **designs.described(scaled),
        "statement": calibration_text(what, factor, Fraction(1, grid), below),
        **UNTIMED,
    }


def _target(question: Record) -> Target:
    """The target of a question. Each number is first read beside others that are fine: so a refusal knows its field."""
    names = ("epsilon", "delta", "alpha", "beta", "advantage")
    given = {name: question[name] for name in names if question[name] is not None}
    fine = dict.fromkeys(given, Fraction(1, 2))
    target(**fine)
    for name, value in given.items():
        with about(name):
            target(**{**fine, name: value})
    return target(**given)


def certificate(question: Record) -> TextFile:
    """A certificate of the whole design or of one answer about a pair, as a file that `exactdp verify` takes."""
    asked = {name: question[name] for name in ("epsilon", "delta", "alpha") if question[name] is not None}
    subject: Composition | Release
    if question["over"] == "overall":
        if question["pair"] is not None:
            raise InvalidInputError('Give a pair, or "over": "overall" for all pairs. Found both; leave one out.')
        subject = release = designs.release_of(question["design"])
    else:
        release, numbers = designs.chosen_pair(question["design"], question["pair"])
        subject = release.pair(*numbers)
    with about(*asked) if len(asked) == 1 else nullcontext():
        found = certify(subject, **asked, digits=question["digits"])
    return {"text": found.to_json(), "file_name": f"{designs.file_stem(release.name)}-certificate.json"}


def verified(question: Record) -> VerificationAnswer:
    """Whether a certificate holds, proved again by other routes; a text that is no certificate is refused."""
    record = read_certificate(question["text"])
    found = verify(record)
    return {
        "holds": found.holds,
        "reason": found.reason,
        "of_design": isinstance(record, DesignCertificate),
        "checks": [{"name": check.name, "passed": check.passed, "note": check.note} for check in found.checks],
        **UNTIMED,
    }


def table(question: Record) -> TextFile:
    """A table of the design as CSV."""
    release, numbers = designs.chosen_pair(question["design"], question["pair"])
    stem = designs.file_stem(release.name)
    if question["what"] == "pairs":
        every = designs.release_of(question["design"])
        grids = read_grids(question["epsilons"], question["deltas"], question["alphas"])
        text = pairs_csv(grids, account_pairs(every, list(every.pairs), grids))
        return {"text": text, "file_name": f"{stem}-pairs.csv"}
    if question["what"] == "noise":
        rows = [
            (
                number,
                level["level"],
                row["query"],
                Fraction(row["rho"]),
                Fraction(row["sigma2"]),
                *list(row.values())[3:],
            )
            for number in dict.fromkeys(numbers)
            for level in noise(release.allocations[number])["levels"]
            for row in level["queries"]
        ]
        header = ("path", "level", "query", "rho", "sigma2", "variance", "standard_error", "margin95")
        return {"text": numeric_csv(header, rows), "file_name": f"{stem}-noise.csv"}
    return {"text": _curve_csv(release.pair(*numbers), question), "file_name": f"{stem}-curves.csv"}


def _curve_csv(composition: Composition, question: Record) -> str:
    found = delta_curve(composition, {"epsilons": question["epsilons"] or None, "num": 101, "least": "1e-20"})
    columns = (found["epsilon"], found["lower"], found["upper"], found["zcdp_optimal"], found["gaussian"])
    rows: list[tuple[object, ...]] = [("delta", "epsilon", *row) for row in zip(*columns, strict=True)]
    curve = composition.tradeoff(201)
    alphas = curve.alpha.tolist()
    gaussian = gaussian_beta(composition.mu, alphas).tolist()
    rows += [
        ("beta", "alpha", alpha, beta, None, None, estimate)
        for alpha, beta, estimate in zip(alphas, curve.beta.tolist(), gaussian, strict=True)
    ]
    return numeric_csv(("quantity", "argument", "at", "lower", "upper", "zcdp_optimal", "gaussian_estimate"), rows)


def report(question: Record) -> TextFile:
    """The HTML report of the design as one self-contained file; takes up to a minute."""
    from exactdp.apps.report import build, study_for_report
    from exactdp.apps.report.decision import MemoQuestion

    release = designs.release_of(question["design"])
    with about("delta"):
        grids, headline = Grids.of_report(question["delta"], question["deltas"])
    others = {
        f"Scenario {one['name']}": designs.release_of(one["design"]) for one in question["against"]
    }  # "A" is the design
    memo = MemoQuestion(others, question["within"], question["typical"])
    memo.checked(release)
    study = study_for_report(release, grids, Serial())
    summary = summarize(study, Serial(), headline)
    text = build(study, summary, delta=headline, charts=find_spec("matplotlib") is not None, **memo._asdict())
    return {"text": text, "file_name": f"{designs.file_stem(release.name)}-report.html"}
