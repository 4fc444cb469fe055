"""Objects as versioned JSON, and back: mechanisms, compositions, releases and every result.

    {"format": "exactdp object", "version": 1, "kind": "DiscreteGaussian", "value": {"sigma2": "10/3", "sensitivity": "1"}}

Exact numbers (whole, Fraction, Decimal) are texts. A float is the JSON number that reads back as the same double; inf, -inf and
nan are texts. A mapping is a list of pairs, since its order may matter; an array has its shape beside its values. The fields of a
kind are those of its class, their form follows from their annotations. Certificates keep the format of their own.

Reading refuses whatever it does not know, and runs the checks of the constructors. It proves nothing: whoever edits a result can
claim anything. What can be verified is a certificate.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np

from exactdp.accounting.certificates.certificate import FORMAT as CERTIFICATE_FORMAT
from exactdp.accounting.certificates.certificate import Certificate
from exactdp.accounting.certificates.verify import Check, Verification
from exactdp.accounting.composition import Composition
from exactdp.accounting.cross_check import CrossCheck, Opinion
from exactdp.accounting.explanation import Explanation
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.brackets import Bounds
from exactdp.census.releases import Allocation, Release
from exactdp.census.savings import Saving
from exactdp.census.study import Grids, Interval, PairResult, Study
from exactdp.doubles import Floats
from exactdp.engine.effort import Effort
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import Calibration
from exactdp.guarantees.comparison import Comparison
from exactdp.guarantees.risk import Risk
from exactdp.guarantees.tightest_mu import GaussianDP
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.randomized_response import RandomizedResponse
from exactdp.numbers import shown, whole
from exactdp.strict_json import load, read_decimal, read_text, read_whole, writable
from exactdp.theory.gaussian_gap.gap import Gap

FORMAT, VERSION = "exactdp object", 1
_LONGEST_INTEGER = 25  # digits of a bare JSON integer: other writers may spell a double of up to 1e21 so
_MOST_DIMENSIONS = 32
_NOT_FINITE = ("inf", "-inf", "nan")
_DECIMAL_NOT_FINITE = ("Infinity", "-Infinity", "NaN")


def to_json(obj: object) -> str:
    """One line of ASCII; `from_json` gives back an equal object. The same object gives the same text.

    >>> from_json(to_json(3 * DiscreteGaussian("10/3")))
    Composition(3 x DiscreteGaussian(10/3))
    """
    if isinstance(obj, Certificate):
        return obj.to_json()
    return json.dumps({"format": FORMAT, "version": VERSION, **_ANYTHING.write(obj, "The object")}) + "\n"


def from_json(text: str) -> Any:
    """The object that `to_json` wrote; any other text is refused (InvalidInputError) in a sentence that names what is wrong."""
    try:
        record = load(text, "The text is not the JSON of an exactdp object", _LONGEST_INTEGER, doubles=True)
        if isinstance(record, dict) and record.get("format") == CERTIFICATE_FORMAT:
            return Certificate.from_json(text)
        header = _members(record, ("format", "version", "kind", "value"), "An exactdp object")
        if header["format"] != FORMAT:
            raise InvalidInputError(
                f"The format must be {FORMAT} or {CERTIFICATE_FORMAT}. Found {_found(header['format'])}."
            )
        if type(header["version"]) is not int or header["version"] != VERSION:
            raise InvalidInputError(f"Version {VERSION} of the format can be read. Found {_found(header['version'])}.")
        return _ANYTHING.read({name: header[name] for name in ("kind", "value")}, "The object")
    except RecursionError:
        raise InvalidInputError("The text is not the JSON of an exactdp object. Found lists within lists.") from None


def _members(record: object, names: tuple[str, ...], where: str) -> dict[str, Any]:
    """A JSON object that has these names and no others."""
    if not isinstance(record, dict):
        _refuse(where, f"a JSON object with {', '.join(names)}", record)
    for name in names:
        if name not in record:
            raise InvalidInputError(f"{where} must have {', '.join(names)}. Found no {name}.")
    for name in record:
        if name not in names:
            raise InvalidInputError(f"{where} must have only {', '.join(names)}. Found {_found(name)}.")
    return record


def _refuse(where: str, what: str, value: object) -> NoReturn:
    raise InvalidInputError(f"{where} must be {what}. Found {_found(value)}.")


def _found(value: object) -> str:
    return shown(ascii(value)) if isinstance(value, (str, list, dict)) else f"{shown(value)} ({type(value).__name__})"


class _Codec(NamedTuple):
    """How values of one annotation are written and read; the second argument is the place, for refusals."""

    write: Callable[[Any, str], Any]
    read: Callable[[Any, str], Any]


def _same(kind: type, what: str) -> _Codec:
    """A value that is itself in JSON."""

    def either(value: object, where: str) -> object:
        return value if type(value) is kind else _refuse(where, what, value)

    return _Codec(either, either)


def _exact(kinds: tuple[type, ...], what: str, parse: Callable[[Any, str], Any]) -> _Codec:
    """An exact number as its text. Each number has one spelling, and nothing is written that cannot be read."""

    def write(value: Any, where: str) -> str:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, kinds):
            _refuse(where, what, value)
        try:
            text = str(value)
        except ValueError:  # longer than Python prints
            _refuse(where, f"{what} of fewer digits", value)
        read(text, where)
        return text

    def read(text: object, where: str) -> Any:
        value = parse(text, where)
        return value if str(value) == text else _refuse(where, f"{what} in its shortest form, {shown(value)}", text)

    return _Codec(write, read)


def _parse_fraction(text: object, where: str) -> Fraction:
    try:
        return writable(Fraction(read_text({where: text}, where, "fraction")), where)
    except ZeroDivisionError:
        _refuse(where, "a fraction", text)


def _parse_decimal(text: object, where: str) -> Decimal:
    return (
        Decimal(text) if isinstance(text, str) and text in _DECIMAL_NOT_FINITE else read_decimal({where: text}, where)
    )


def _write_float(value: Any, where: str) -> float | str:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (float, int, np.floating)) or not _is_double(value):
        _refuse(where, "a float", value)
    number = float(value)
    return number if math.isfinite(number) else repr(number)


def _read_float(value: object, where: str) -> float:
    if type(value) is float or (type(value) is int and _is_double(value)):
        return float(value)
    return float(value) if isinstance(value, str) and value in _NOT_FINITE else _refuse(where, "a double", value)


def _is_double(value: Any) -> bool:
    """Whether a float or an int is a double: all floats of up to 64 bits are."""
    try:
        return bool(float(value) == value or value != value)
    except OverflowError:
        return False


_WHOLE = _exact((int, np.integer), "a whole number", lambda text, where: read_whole({where: text}, where))
_DECIMAL = _exact((Decimal,), "a decimal", _parse_decimal)
_FLOAT = _Codec(_write_float, _read_float)
_FRACTION = _exact((Fraction,), "a fraction", _parse_fraction)


def _write_number(value: Any, where: str) -> Any:
    return (_DECIMAL if isinstance(value, Decimal) else _FLOAT).write(value, where)


def _read_number(value: object, where: str) -> float | Decimal:
    result: float | Decimal
    result = (_DECIMAL if isinstance(value, str) and value not in _NOT_FINITE else _FLOAT).read(value, where)
    return result


_NUMBER = _Codec(_write_number, _read_number)
"""A float or a decimal: what certified bounds are. No text is both."""


def _array(elements: Mapping[str, _Codec]) -> _Codec:
    """An array of doubles or of decimals: its elements' kind, its shape and its values in C order."""

    def write(array: Any, where: str) -> dict[str, Any]:
        kind = _KIND_OF_ARRAY.get(array.dtype.str.lstrip("<>=|"), "") if isinstance(array, np.ndarray) else ""
        if kind not in elements:
            found = f"{array.dtype} array" if isinstance(array, np.ndarray) else array
            _refuse(where, f"an array of {' or '.join(elements)}", found)
        values = [elements[kind].write(value, where) for value in array.ravel().tolist()]
        return {"array": kind, "shape": list(array.shape), "values": values}

    def read(record: object, where: str) -> Any:
        names = ("array", "shape", "values")
        kind, shape, values = (_members(record, names, where)[name] for name in names)
        if not isinstance(kind, str) or kind not in elements:
            _refuse(where, f"an array of {' or '.join(elements)}", kind)
        if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 1 << 31 for n in shape):
            _refuse(f"The shape of {where}", "a list of whole numbers", shape)
        if not isinstance(values, list) or len(shape) > _MOST_DIMENSIONS or math.prod(shape) != len(values):
            _refuse(where, f"a list of values that fill the shape {shown(shape)}", values)
        result = np.empty(len(values), dtype=float if kind == "float" else object)
        for i, value in enumerate(values):
            result[i] = elements[kind].read(value, f"{where}[{i}]")
        try:
            return result.reshape(shape)
        except ValueError:
            _refuse(f"The shape of {where}", "one that an array can have", shape)

    return _Codec(write, read)


_KIND_OF_ARRAY = {"f8": "float", "O": "Decimal"}
_ARRAY = _array({"float": _FLOAT, "Decimal": _DECIMAL})


def _write_value(value: Any, where: str) -> Any:
    return (_ARRAY if isinstance(value, np.ndarray) else _NUMBER).write(value, where)


def _read_value(value: object, where: str) -> Any:
    return (_ARRAY if isinstance(value, dict) else _NUMBER).read(value, where)


def _tuple(codecs: tuple[_Codec, ...], length: int | None) -> _Codec:
    """A tuple as a list; with `length` None, of any number of elements of the one codec."""

    def over(values: Any, where: str, kind: type[Any], name: str) -> list[Any]:
        if not isinstance(values, kind) or (length is not None and len(values) != length):
            _refuse(where, f"a {kind.__name__}" + (f" of {length}" if length is not None else ""), values)
        each = codecs if length is not None else codecs * len(values)
        return [getattr(c, name)(v, f"{where}[{i}]") for i, (c, v) in enumerate(zip(each, values, strict=True))]

    return _Codec(
        lambda values, where: over(values, where, tuple, "write"),
        lambda values, where: tuple(over(values, where, list, "read")),
    )


def _mapping(key: _Codec, content: _Codec) -> _Codec:
    """A mapping as a list of pairs."""
    pairs = _tuple((_tuple((key, content), 2),), None)

    def write(value: Any, where: str) -> Any:
        return pairs.write(tuple(value.items()) if isinstance(value, Mapping) else value, where)

    def read(value: object, where: str) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for name, own in pairs.read(value, where):
            if name in result:
                raise InvalidInputError(f"{where} must name everything once. Found {_found(str(name))} twice.")
            result[name] = own
        return result

    return _Codec(write, read)


def _optional(codec: _Codec) -> _Codec:
    return _Codec(
        lambda value, where: None if value is None else codec.write(value, where),
        lambda value, where: None if value is None else codec.read(value, where),
    )


def _object(base: type) -> _Codec:
    """An object of any registered kind that is a `base`."""

    def known() -> str:
        return ", ".join(name for name, kind in _KINDS.items() if issubclass(kind.type, base))

    def write(value: Any, where: str) -> dict[str, Any]:
        kind = _KINDS.get(type(value).__name__)
        if kind is None or kind.type is not type(value) or not issubclass(kind.type, base):
            raise InvalidInputError(f"{where} must be one of {known()}. Found {type(value).__name__}.")
        return {"kind": type(value).__name__, "value": kind.write(value)}

    def read(value: object, where: str) -> Any:
        record = _members(value, ("kind", "value"), where)
        kind = _KINDS.get(record["kind"]) if isinstance(record["kind"], str) else None
        if kind is None or not issubclass(kind.type, base):
            raise InvalidInputError(f"The kind of an object must be one of {known()}. Found {_found(record['kind'])}.")
        return kind.read(record["value"])

    return _Codec(write, read)


_ANYTHING = _object(object)
_LEAVES: dict[Any, _Codec] = {
    str: _same(str, "a text"),
    bool: _same(bool, "true or false"),
    int: _WHOLE,
    float: _FLOAT,
    Fraction: _FRACTION,
    Decimal: _DECIMAL,
    Floats: _array({"float": _FLOAT}),
    Interval: _tuple((_NUMBER, _NUMBER), 2),
    Any: _Codec(_write_value, _read_value),
}


def _codec(annotation: Any) -> _Codec:
    """The codec of an annotation of a field."""
    if annotation in _LEAVES:
        return _LEAVES[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        endless = inner[-1] is Ellipsis
        return _tuple(tuple(_codec(a) for a in inner if a is not Ellipsis), None if endless else len(inner))
    if origin in (Union, types.UnionType) and len(inner) == 2 and inner[1] is type(None):
        return _optional(_codec(inner[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(_codec(inner[0]), _codec(inner[1]))
    return _object(annotation)


@dataclass(frozen=True)
class _Kind:
    """A class, the codecs of its fields, and what makes an object of them."""

    type: type
    codecs: Mapping[str, _Codec]
    make: Callable[..., Any]

    def write(self, value: object) -> dict[str, Any]:
        """The fields as JSON types."""
        where = self.type.__name__
        return {name: codec.write(getattr(value, name), f"{where}.{name}") for name, codec in self.codecs.items()}

    def read(self, record: object) -> Any:
        """The object of JSON types."""
        where = self.type.__name__
        record = _members(record, tuple(self.codecs), where)
        return self.make(**{name: codec.read(record[name], f"{where}.{name}") for name, codec in self.codecs.items()})


def _fields(kind: type) -> dict[str, Any]:
    """The annotations of the fields of a class: of its dataclass or named tuple, or of the parts of a composition."""
    if kind is Composition:
        return {"mechanisms": Mapping[Mechanism, int], "effort": Effort}
    names = kind._fields if issubclass(kind, tuple) else [f.name for f in fields(kind)]  # type: ignore[attr-defined, arg-type]
    hints = get_type_hints(kind)
    return {name: hints[name] for name in names}


def _make_composition(mechanisms: dict[Mechanism, int], effort: Effort) -> Composition:
    for count in mechanisms.values():
        whole(count, "count", 1)
    return Composition(mechanisms, effort)


def _make_effort(terms: int, looks: int) -> Effort:
    return Effort(whole(terms, "terms", 1), whole(looks, "looks", 1))


def _make_curve(alpha: Floats, beta: Floats) -> TradeOffCurve:
    if alpha.ndim != 1 or alpha.shape != beta.shape:
        raise InvalidInputError(
            f"alpha and beta must be lists of the same length. Found the shapes {alpha.shape} and {beta.shape}."
        )
    return TradeOffCurve(alpha, beta)


def _make_comparison(given: str, **others: Any) -> Comparison:
    return Comparison(given if given in ("delta", "epsilon") else _refuse("given", "delta or epsilon", given), **others)


def _check_budgets(table: dict[str, dict[str, Fraction]]) -> None:
    """Every level has queries, and every budget gives noise that there is."""
    for level, queries in table.items():
        if not queries:
            raise InvalidInputError(f"A level must have at least one query. Found none in {_found(level)}.")
        for query, rho in queries.items():
            if rho <= 0:
                raise InvalidInputError(f"A budget must be positive. Found {shown(rho)} for {_found(query)}.")
            DiscreteGaussian(1 / rho)


def _make_allocation(number: int, bypassed: tuple[str, ...], table: dict[str, dict[str, Fraction]]) -> Allocation:
    _check_budgets(table)
    return Allocation(number, bypassed, table)


def _make_release(
    name: str,
    title: str,
    source: str,
    table: dict[str, dict[str, Fraction]],
    bypassed: dict[int, tuple[str, ...]],
) -> Release:
    """Refused where the release could not be accounted for."""
    _check_budgets(table)
    if not table or not bypassed:
        raise InvalidInputError(
            f"A release must have levels and sets of bypassed levels. Found none in {_found(name)}."
        )
    for number, levels in bypassed.items():
        for level in levels:
            if level not in list(table)[1:]:
                raise InvalidInputError(
                    f"A bypassed level must be one below the top. Found {_found(level)} in set {shown(number)}."
                )
    return Release(name, title, source, table, bypassed)


def _make_study(release: Release, grids: Grids, results: tuple[PairResult, ...]) -> Study:
    for result in results:
        if not all(number in release.bypassed for number in result.pair):
            raise InvalidInputError(f"A pair must name two allocations of the release. Found {shown(result.pair)}.")
        for quantity, grid in grids.by_quantity.items():
            found = len(getattr(result, quantity))
            if found != len(grid):
                raise InvalidInputError(
                    f"A pair must have {len(grid)} values of {quantity}, as the grid has. Found {found} for {shown(result.pair)}."
                )
    return Study(release, grids, results)


_MAKERS: dict[type, Callable[..., Any]] = {
    Composition: _make_composition,
    Effort: _make_effort,
    TradeOffCurve: _make_curve,
    Comparison: _make_comparison,
    Release: _make_release,
    Allocation: _make_allocation,
    Grids: Grids.read,
    Study: _make_study,
}
"""What makes an object of its fields, where the class itself checks nothing."""

_KINDS: dict[str, _Kind] = {
    kind.__name__: _Kind(kind, {n: _codec(a) for n, a in _fields(kind).items()}, _MAKERS.get(kind, kind))
    for kind in (
        DiscreteGaussian,
        Gaussian,
        DiscreteLaplace,
        RandomizedResponse,
        ApproximateDP,
        Outcomes,
        Composition,
        Effort,
        Bounds,
        Explanation,
        TradeOffCurve,
        CrossCheck,
        Opinion,
        Comparison,
        Gap,
        Risk,
        Calibration,
        GaussianDP,
        Verification,
        Check,
        Release,
        Allocation,
        Saving,
        Study,
        Grids,
        PairResult,
    )
}
"""Everything that can be written, by the name of its class."""
