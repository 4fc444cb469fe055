"""Objects as versioned JSON, and back: mechanisms, compositions, releases and every result.

    {"format": "exactdp object", "version": 1, "kind": "DiscreteGaussian", "value": {"sigma2": "10/3", "sensitivity": "1"}}

The fields of a kind are those of its class, their form (json_values.py) follows from their annotations. Certificates keep the
format of their own.

Reading refuses whatever it does not know, and runs the checks of the constructors. It proves nothing: whoever edits a result can
claim anything. What can be verified is a certificate.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any, Union, get_args, get_origin, get_type_hints

from exactdp.accounting.budget_cost import BudgetChange, BudgetCosts
from exactdp.accounting.certificates.certificate import FORMAT as CERTIFICATE_FORMAT
from exactdp.accounting.certificates.certificate import Certificate
from exactdp.accounting.certificates.verify import Check, Verification
from exactdp.accounting.composition import Composition
from exactdp.accounting.cross_check import CrossCheck, Opinion
from exactdp.accounting.explanation import Explanation
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds
from exactdp.census.budget_costs import CellCosts
from exactdp.census.cell_noise import USUAL, CellNoise
from exactdp.census.certification import read_certificate
from exactdp.census.design_certificate import FORMAT as DESIGN_FORMAT
from exactdp.census.design_certificate import DesignCertificate
from exactdp.census.grids import Grids
from exactdp.census.pair_results import Interval, PairResult
from exactdp.census.releases import NO_RECORD, Allocation, Release
from exactdp.census.savings import Saving
from exactdp.census.study import Study
from exactdp.doubles import Floats
from exactdp.engine.effort import Effort
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import Calibration
from exactdp.guarantees.comparison import Comparison
from exactdp.guarantees.neighbours import ADD_REMOVE, REPLACE
from exactdp.guarantees.risk import Risk
from exactdp.guarantees.tightest_mu import GaussianDP
from exactdp.interop import json_values as values
from exactdp.interop.json_values import Codec, Schema, found, members, record_schema, refuse
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.gaussian_mixture import GaussianMixture
from exactdp.mechanisms.integer_noise import IntegerNoise
from exactdp.mechanisms.laplace import Laplace
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.poisson_sampled import PoissonSampled
from exactdp.mechanisms.randomized_response import RandomizedResponse
from exactdp.mechanisms.skellam import Skellam
from exactdp.numbers import shown, whole
from exactdp.strict_json import load
from exactdp.theory.gaussian_gap.gap import Gap

FORMAT, VERSION = "exactdp object", 1
_LONGEST_INTEGER = 25  # digits of a bare JSON integer: other writers may spell a double of up to 1e21 so


@steady
def to_json(obj: object) -> str:
    """One line of ASCII; `from_json` gives back an equal object. The same object gives the same text.

    >>> from_json(to_json(3 * DiscreteGaussian("10/3")))
    Composition(3 x DiscreteGaussian(10/3))
    """
    if isinstance(obj, (Certificate, DesignCertificate)):
        return obj.to_json()
    return json.dumps({"format": FORMAT, "version": VERSION, **_ANYTHING.write(obj, "The object")}) + "\n"


@steady
def from_json(text: str) -> Any:
    """The object that `to_json` wrote; any other text is refused (InvalidInputError) in a sentence that names what is wrong."""
    try:
        record = load(text, "The text is not the JSON of an exactdp object", _LONGEST_INTEGER, doubles=True)
        if isinstance(record, dict) and record.get("format") in (CERTIFICATE_FORMAT, DESIGN_FORMAT):
            return read_certificate(text)
        header = members(record, ("format", "version", "kind", "value"), "An exactdp object")
        if header["format"] != FORMAT:
            raise InvalidInputError(
                f"The format must be {FORMAT}, {CERTIFICATE_FORMAT} or {DESIGN_FORMAT}. Found {found(header['format'])}."
            )
        if type(header["version"]) is not int or header["version"] != VERSION:
            raise InvalidInputError(f"Version {VERSION} of the format can be read. Found {found(header['version'])}.")
        return _ANYTHING.read({name: header[name] for name in ("kind", "value")}, "The object")
    except RecursionError:
        raise InvalidInputError("The text is not the JSON of an exactdp object. Found lists within lists.") from None


_BASES: dict[type, str] = {}
"""The classes of which an object may hold any, and what the schema calls that."""


def _object(base: type) -> Codec:
    """An object of any registered kind that is a `base`."""

    def known() -> str:
        return ", ".join(name for name, kind in _KINDS.items() if issubclass(kind.type, base))

    def write(value: Any, where: str) -> dict[str, Any]:
        name = type(value).__name__
        kind = _KINDS.get(name)
        if kind is None or kind.type is not type(value) or not issubclass(kind.type, base):
            raise InvalidInputError(f"{where} must be one of {known()}. Found {name}.")
        given = {f: getattr(value, f) for f in kind.codecs}
        told = {f: x for f, x in given.items() if f not in kind.optional or x != kind.optional[f]}
        return {"kind": name, "value": {f: kind.codecs[f].write(x, f"{name}.{f}") for f, x in told.items()}}

    def read(value: object, where: str) -> Any:
        record = members(value, ("kind", "value"), where)
        name = record["kind"]
        kind = _KINDS.get(name) if isinstance(name, str) else None
        if kind is None or not issubclass(kind.type, base):
            raise InvalidInputError(f"The kind of an object must be one of {known()}. Found {found(name)}.")
        content = members(record["value"], tuple(kind.codecs), name, kind.optional)
        parts = {f: codec.read(content[f], f"{name}.{f}") for f, codec in kind.codecs.items() if f in content}
        result = kind.make(**parts)
        kind.check(result)
        return result

    _BASES[base] = f"any-{base.__name__}"
    return Codec(write, read, {"$ref": f"#/$defs/{_BASES[base]}"})


_ANYTHING = _object(object)
_LEAVES: dict[Any, Codec] = {
    str: values.TEXT,
    bool: values.TRUTH,
    int: values.WHOLE,
    float: values.FLOAT,
    Fraction: values.FRACTION,
    Decimal: values.DECIMAL,
    Floats: values.FLOATS,
    Interval: values.tuple_of([values.NUMBER, values.NUMBER]),
    Any: values.NUMBERS,
}


def _codec(annotation: Any) -> Codec:
    """The codec of an annotation of a field."""
    if annotation in _LEAVES:
        return _LEAVES[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        return values.tuple_of([_codec(a) for a in inner if a is not Ellipsis], endless=inner[-1] is Ellipsis)
    if origin is Sequence:
        return values.sequence_of(_codec(inner[0]))
    if origin in (Union, types.UnionType) and len(inner) == 2 and inner[1] is type(None):
        return values.optional(_codec(inner[0]))
    if origin is not None and issubclass(origin, Mapping):
        return values.mapping_of(_codec(inner[0]), _codec(inner[1]))
    return _object(annotation)


def _annotations(kind: type) -> dict[str, Any]:
    """The annotations of the fields of a class: of its dataclass or named tuple, or of the parts of a composition."""
    if kind is Composition:
        return {"mechanisms": Mapping[Mechanism, int], "effort": Effort}
    names = kind._fields if issubclass(kind, tuple) else [f.name for f in fields(kind) if f.init]  # type: ignore[attr-defined, arg-type]
    hints = get_type_hints(kind)
    return {name: hints[name] for name in names}


def _make_composition(mechanisms: dict[Mechanism, int], effort: Effort) -> Composition:
    for count in mechanisms.values():
        whole(count, "count", 1)
    return Composition(mechanisms, effort)


def _check_effort(effort: Effort) -> None:
    whole(effort.terms, "terms", 1)
    whole(effort.looks, "looks", 1)


def _check_curve(curve: TradeOffCurve) -> None:
    alpha, beta = curve.alpha.shape, curve.beta.shape
    if len(alpha) != 1 or alpha != beta:
        raise InvalidInputError(
            f"alpha and beta must be lists of the same length. Found the shapes {alpha} and {beta}."
        )


def _check_comparison(comparison: Comparison | BudgetCosts | BudgetChange | CellCosts) -> None:
    if comparison.given not in ("delta", "epsilon"):
        refuse("given", "delta or epsilon", comparison.given)


def _check_budgets(design: Release | Allocation) -> None:
    """Every level has queries, and every budget gives noise that there is."""
    for level, queries in design.table.items():
        if not queries:
            raise InvalidInputError(f"A level must have at least one query. Found none in {found(level)}.")
        for query, rho in queries.items():
            if rho <= 0:
                raise InvalidInputError(f"A budget must be positive. Found {shown(rho)} for {found(query)}.")
            design.noise.get((level, query), USUAL).mechanism(rho)
    for level, query in design.noise:
        if level not in design.table or query not in design.table[level]:
            raise InvalidInputError(
                f"Noise must belong to a query of the table. Found {found(query)} in {found(level)}."
            )


def _check_release(release: Release) -> None:
    """Refused where the release could not be accounted for."""
    _check_budgets(release)
    if not release.table or not release.bypassed:
        raise InvalidInputError(
            f"A release must have levels and sets of bypassed levels. Found none in {found(release.name)}."
        )
    for number, levels in release.bypassed.items():
        for level in levels:
            if level not in list(release.table)[1:]:
                raise InvalidInputError(
                    f"A bypassed level must be one below the top. Found {found(level)} in set {shown(number)}."
                )
    release.check_noise()


def _check_study(study: Study) -> None:
    second = {NO_RECORD} if study.release.relation == ADD_REMOVE else {*study.release.bypassed}
    for result in study.results:
        if result.pair[0] not in study.release.bypassed or result.pair[1] not in second:
            what = "an allocation of the release and 0" if second == {NO_RECORD} else "two allocations of the release"
            raise InvalidInputError(f"A pair must name {what}. Found {shown(result.pair)}.")
        for quantity, grid in study.grids.by_quantity.items():
            count = len(getattr(result, quantity))
            if count != len(grid):
                raise InvalidInputError(
                    f"A pair must have {len(grid)} values of {quantity}, as the grid has. Found {count} for {shown(result.pair)}."
                )


_MAKERS: dict[type, Callable[..., Any]] = {Composition: _make_composition, Grids: Grids.read}
"""What makes an object of its fields, where that is not the class itself."""

_CHECKS: dict[type, Callable[[Any], None]] = {
    Effort: _check_effort,
    TradeOffCurve: _check_curve,
    Comparison: _check_comparison,
    BudgetCosts: _check_comparison,
    BudgetChange: _check_comparison,
    CellCosts: _check_comparison,
    Release: _check_release,
    Allocation: _check_budgets,
    Study: _check_study,
}
"""What an object must satisfy where its class checks nothing."""

_OPTIONAL: dict[type, Mapping[str, Any]] = {
    Release: {"relation": REPLACE, "noise": {}, "unit_of_privacy": ""},
    Allocation: {"noise": {}},
}
"""Fields that came after the first texts were written: left out where they have these values, so that old texts stay valid."""


@dataclass(frozen=True)
class _Kind:
    """A class, the codecs of its fields, what makes an object of them, what checks it, and the defaults that are left out."""

    type: type
    codecs: Mapping[str, Codec]
    make: Callable[..., Any]
    check: Callable[[Any], None]
    optional: Mapping[str, Any]


def _kind(kind: type) -> _Kind:
    codecs = {name: _codec(annotation) for name, annotation in _annotations(kind).items()}
    return _Kind(kind, codecs, _MAKERS.get(kind, kind), _CHECKS.get(kind, lambda _: None), _OPTIONAL.get(kind, {}))


_MECHANISMS = (
    *(DiscreteGaussian, Gaussian, DiscreteLaplace, RandomizedResponse, ApproximateDP, Outcomes),
    *(IntegerNoise, GaussianMixture, Laplace, PoissonSampled, Skellam),
)
_RESULTS = (
    *(Composition, Effort, Bounds, Explanation, TradeOffCurve, CrossCheck, Opinion, Comparison, Gap, Risk),
    *(Calibration, GaussianDP, Verification, Check, Release, Allocation, CellNoise, Saving, Study, Grids, PairResult),
    *(BudgetCosts, BudgetChange, CellCosts),
)
_KINDS: dict[str, _Kind] = {kind.__name__: _kind(kind) for kind in (*_MECHANISMS, *_RESULTS)}
"""Everything that can be written, by the name of its class."""


def object_schema() -> Schema:
    """The JSON Schema of what `to_json` writes, certificates left out; `$defs` has the value of every kind."""

    def tagged(base: type, **header: Schema) -> Schema:
        names = [name for name, kind in _KINDS.items() if issubclass(kind.type, base)]
        kinds = [{"properties": {"kind": {"const": n}, "value": {"$ref": f"#/$defs/{n}"}}} for n in names]
        return {**record_schema({**header, "kind": {"enum": names}, "value": {"type": "object"}}), "anyOf": kinds}

    contents = {
        name: record_schema({field: codec.schema for field, codec in kind.codecs.items()}, kind.optional)
        for name, kind in _KINDS.items()
    }
    return {
        **tagged(object, format={"const": FORMAT}, version={"const": VERSION}),
        "$defs": {**contents, **{name: tagged(base) for base, name in _BASES.items() if base is not object}},
    }
