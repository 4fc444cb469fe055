"""Values as JSON types, and back: numbers, texts, arrays, tuples and mappings.

Each codec has a JSON Schema of what it writes; everything it reads satisfies it, too.

Exact numbers (whole, Fraction, Decimal) are texts. A float is the JSON number that reads back as the same double; inf, -inf and
nan are texts. A mapping is a list of pairs, since its order may matter; an array has its shape beside its values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

import numpy as np

from exactdp.errors import InvalidInputError
from exactdp.numbers import shown
from exactdp.strict_json import pattern, read_decimal, read_text, read_whole, writable

_MOST_DIMENSIONS = 32
_NOT_FINITE = ("inf", "-inf", "nan")
_DECIMAL_NOT_FINITE = ("Infinity", "-Infinity", "NaN")


Schema = dict[str, Any]
"""A JSON Schema, or a part of one."""


class Codec(NamedTuple):
    """How values of one kind are written and read, the second argument being the place, for refusals; and their schema."""

    write: Callable[[Any, str], Any]
    read: Callable[[Any, str], Any]
    schema: Schema


def record_schema(properties: Mapping[str, Schema], optional: Collection[str] = ()) -> Schema:
    """The schema of a JSON object that has these members and no others; the optional ones may be missing."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def text_schema(kind: str) -> Schema:
    """The schema of a text of one of the kinds of strict_json."""
    return {"type": "string", "pattern": pattern(kind)}


def refuse(where: str, what: str, value: object) -> NoReturn:
    """Refuse a value: the place, what must stand there, and what was found."""
    raise InvalidInputError(f"{where} must be {what}. Found {found(value)}.")


def found(value: object) -> str:
    """A value as a refusal names it: texts as they were written, others with their type."""
    return shown(ascii(value)) if isinstance(value, (str, list, dict)) else f"{shown(value)} ({type(value).__name__})"


def members(record: object, names: tuple[str, ...], where: str, optional: Collection[str] = ()) -> dict[str, Any]:
    """A JSON object that has these names and no others; the optional ones may be missing."""
    if not isinstance(record, dict):
        refuse(where, f"a JSON object with {', '.join(names)}", record)
    for name in names:
        if name not in record and name not in optional:
            raise InvalidInputError(f"{where} must have {', '.join(names)}. Found no {name}.")
    for name in record:
        if name not in names:
            raise InvalidInputError(f"{where} must have only {', '.join(names)}. Found {found(name)}.")
    return record


def _itself(kind: type, what: str, name: str) -> Codec:
    """A value that is itself in JSON."""

    def either_way(value: object, where: str) -> object:
        return value if type(value) is kind else refuse(where, what, value)

    return Codec(either_way, either_way, {"type": name})


def _exact(kinds: tuple[type, ...], what: str, parse: Callable[[Any, str], Any], schema: Schema) -> Codec:
    """An exact number as its text. Each number has one spelling, and nothing is written that cannot be read."""

    def write(value: Any, where: str) -> str:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, kinds):
            refuse(where, what, value)
        try:
            text = str(value)
        except ValueError:  # longer than Python prints
            refuse(where, f"{what} of fewer digits", value)
        read(text, where)
        return text

    def read(text: object, where: str) -> Any:
        value = parse(text, where)
        return value if str(value) == text else refuse(where, f"{what} in its shortest form, {shown(value)}", text)

    return Codec(write, read, schema)


def _parse_fraction(text: object, where: str) -> Fraction:
    try:
        return writable(Fraction(read_text({where: text}, where, "fraction")), where)
    except ZeroDivisionError:
        refuse(where, "a fraction", text)


def _parse_decimal(text: Any, where: str) -> Decimal:
    return Decimal(text) if _is_one_of(text, _DECIMAL_NOT_FINITE) else read_decimal({where: text}, where)


def _is_one_of(value: object, texts: tuple[str, ...]) -> bool:
    return isinstance(value, str) and value in texts


def _write_float(value: Any, where: str) -> float | str:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (float, int, np.floating)) or not _is_double(value):
        refuse(where, "a float", value)
    number = float(value)
    return number if math.isfinite(number) else repr(number)


def _read_float(value: Any, where: str) -> float:
    if type(value) is float or (type(value) is int and _is_double(value)) or _is_one_of(value, _NOT_FINITE):
        return float(value)
    refuse(where, "a double", value)


def _is_double(value: Any) -> bool:
    """Whether a float or an int is a double: all floats of up to 64 bits are."""
    try:
        return bool(float(value) == value or value != value)
    except OverflowError:
        return False


def _either(one: Codec, is_one: Callable[[Any], bool], is_one_in_json: Callable[[Any], bool], other: Codec) -> Codec:
    """Values of two kinds that can be told apart, as they are and in JSON."""
    return Codec(
        lambda value, where: (one if is_one(value) else other).write(value, where),
        lambda value, where: (one if is_one_in_json(value) else other).read(value, where),
        _any_of(one.schema, other.schema),
    )


def _any_of(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _array(elements: Mapping[str, Codec]) -> Codec:
    """An array of doubles or of decimals: its elements' kind, its shape and its values in C order."""
    what = f"an array of {' or '.join(elements)}"

    def write(array: Any, where: str) -> dict[str, Any]:
        if not isinstance(array, np.ndarray):
            refuse(where, what, array)
        kind = {"f8": "float", "O": "Decimal"}.get(array.dtype.str.lstrip("<>=|"), "")
        if kind not in elements:
            refuse(where, what, f"{array.dtype} array")
        values = [elements[kind].write(value, where) for value in array.ravel().tolist()]
        return {"array": kind, "shape": list(array.shape), "values": values}

    def read(record: object, where: str) -> Any:
        names = ("array", "shape", "values")
        kind, shape, values = (members(record, names, where)[name] for name in names)
        if not isinstance(kind, str) or kind not in elements:
            refuse(where, what, kind)
        if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 1 << 31 for n in shape):
            refuse(f"The shape of {where}", "a list of whole numbers", shape)
        if not isinstance(values, list) or len(shape) > _MOST_DIMENSIONS or math.prod(shape) != len(values):
            refuse(where, f"a list of values that fill the shape {shown(shape)}", values)
        result = np.empty(len(values), dtype=float if kind == "float" else object)
        for i, value in enumerate(values):
            result[i] = elements[kind].read(value, f"{where}[{i}]")
        try:
            return result.reshape(shape)
        except ValueError:
            refuse(f"The shape of {where}", "one that an array can have", shape)

    extent = {"type": "integer", "minimum": 0, "exclusiveMaximum": 1 << 31}
    shape_schema = {"type": "array", "items": extent, "maxItems": _MOST_DIMENSIONS}
    schemas = [
        record_schema(
            {"array": {"const": kind}, "shape": shape_schema, "values": {"type": "array", "items": codec.schema}}
        )
        for kind, codec in elements.items()
    ]
    return Codec(write, read, _any_of(*schemas))


def tuple_of(codecs: Sequence[Codec], endless: bool = False) -> Codec:
    """A tuple as a list: one element for each codec or, if it is endless, any number of elements of the only codec."""

    def over(values: Any, where: str, kind: type[Any]) -> list[tuple[Codec, Any, str]]:
        if not isinstance(values, kind) or not (endless or len(values) == len(codecs)):
            refuse(where, f"a {kind.__name__}" + ("" if endless else f" of {len(codecs)}"), values)
        each = [*codecs] * len(values) if endless else codecs
        return [(c, v, f"{where}[{i}]") for i, (c, v) in enumerate(zip(each, values, strict=True))]

    schema: Schema = {"type": "array", "items": codecs[0].schema}
    if not endless:
        schema = {"type": "array", "prefixItems": [c.schema for c in codecs], "items": False, "minItems": len(codecs)}
    return Codec(
        lambda values, where: [c.write(value, place) for c, value, place in over(values, where, tuple)],
        lambda values, where: tuple(c.read(value, place) for c, value, place in over(values, where, list)),
        schema,
    )


def sequence_of(codec: Codec) -> Codec:
    """A sequence as a list, read as a tuple."""
    own = tuple_of([codec], endless=True)

    def write(value: Any, where: str) -> Any:
        return own.write(tuple(value) if isinstance(value, Sequence) else value, where)

    return Codec(write, own.read, own.schema)


def mapping_of(key: Codec, content: Codec) -> Codec:
    """A mapping as a list of pairs."""
    pairs = tuple_of([tuple_of([key, content])], endless=True)

    def write(value: Any, where: str) -> Any:
        return pairs.write(tuple(value.items()) if isinstance(value, Mapping) else value, where)

    def read(value: object, where: str) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for name, own in pairs.read(value, where):
            if name in result:
                raise InvalidInputError(f"{where} must name everything once. Found {found(str(name))} twice.")
            result[name] = own
        return result

    return Codec(write, read, pairs.schema)


def optional(codec: Codec) -> Codec:
    """A value or None."""
    return Codec(
        lambda value, where: None if value is None else codec.write(value, where),
        lambda value, where: None if value is None else codec.read(value, where),
        _any_of(codec.schema, {"type": "null"}),
    )


TEXT, TRUTH = _itself(str, "a text", "string"), _itself(bool, "true or false", "boolean")
WHOLE = _exact(
    (int, np.integer),
    "a whole number",
    lambda text, where: read_whole({where: text}, where),
    text_schema("whole number"),
)
FRACTION = _exact((Fraction,), "a fraction", _parse_fraction, text_schema("fraction"))
DECIMAL = _exact(
    (Decimal,), "a decimal", _parse_decimal, _any_of(text_schema("decimal"), {"enum": list(_DECIMAL_NOT_FINITE)})
)
FLOAT = Codec(_write_float, _read_float, _any_of({"type": "number"}, {"enum": list(_NOT_FINITE)}))
NUMBER = _either(
    DECIMAL,
    lambda value: isinstance(value, Decimal),
    lambda value: isinstance(value, str) and value not in _NOT_FINITE,
    FLOAT,
)
"""A float or a decimal: what certified bounds are. No text is both."""

FLOATS = _array({"float": FLOAT})
NUMBERS = _either(
    _array({"float": FLOAT, "Decimal": DECIMAL}),
    lambda value: isinstance(value, np.ndarray),
    lambda value: isinstance(value, dict),
    NUMBER,
)
"""A number or an array of them."""
