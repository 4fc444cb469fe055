"""OpenDP's measurements as compositions: noise on integers, from live objects or from what `opendp.mod.serialize` wrote.

The scale of a measurement is a double and means exactly that double. What OpenDP does to real numbers (it rounds them to a fine
grid and adds discrete noise) is no mechanism of exactdp and is refused, as is whatever is not known by name.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import Number, exact_double, rational, shown, whole

_INTEGERS = {f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64, 128)} | {"usize", "int"}
_UNIT_SHIFTS = 3  # the largest squared distance of integer vectors that allows no shift but units
_DEEPEST = 64


@steady
def from_opendp(measurements: Any, distance: Number = 1) -> Composition:
    """The composition of one measurement or of several, for data whose exact answers differ by `distance` in their metric.

    A measurement is an object of OpenDP or its JSON (`opendp.mod.serialize`): `make_gaussian`, `make_laplace` and
    `make_geometric` on integers, alone or on vectors, and `make_composition` of these.
    """
    far = rational(distance, "distance")
    counts: Counter[Mechanism] = Counter()
    alone = isinstance(measurements, (str, Mapping)) or hasattr(measurements, "__opendp_dict__")
    for one in [measurements] if alone or not isinstance(measurements, Iterable) else measurements:
        counts.update(_mechanisms(_record(one), far, 0))
    return Composition(counts)


def _record(measurement: Any) -> Any:
    """The dictionary that OpenDP keeps of how an object was made."""
    if isinstance(measurement, str):
        try:
            return json.loads(measurement)
        except (ValueError, RecursionError):
            raise InvalidInputError(
                f"A measurement of OpenDP must be an object of its or its JSON. Found {shown(measurement)}."
            ) from None
    if isinstance(measurement, Mapping):
        return measurement
    record = getattr(measurement, "__opendp_dict__", None)
    if record is None:
        raise InvalidInputError(
            "A measurement of OpenDP must say how it was made (OpenDP 0.13 or newer). "
            f"Found {shown(type(measurement).__name__)}."
        )
    return record


def _mechanisms(record: Any, distance: Fraction, depth: int) -> Counter[Mechanism]:
    if not isinstance(record, Mapping) or not isinstance(record.get("__kwargs__"), Mapping) or depth > _DEEPEST:
        raise InvalidInputError(f"A measurement of OpenDP must name its function and arguments. Found {shown(record)}.")
    name, arguments = record.get("__function__"), record["__kwargs__"]
    if name == "make_composition":
        result: Counter[Mechanism] = Counter()
        for one in arguments.get("measurements", ()):
            result.update(_mechanisms(_record(one), distance, depth + 1))
        return result
    if name not in ("make_gaussian", "make_laplace", "make_geometric"):
        raise InvalidInputError(
            "Of OpenDP's measurements make_gaussian, make_laplace, make_geometric and make_composition of them are known. "
            f"Found {shown(name)}."
        )
    kind, is_vector = _data(arguments.get("input_domain"))
    if kind not in _INTEGERS:
        raise InvalidInputError(
            f"OpenDP's noise is exactly known on integers only (real numbers are rounded first). Found {shown(kind)}."
        )
    scale = exact_double(arguments.get("scale"), "scale")
    if name != "make_gaussian":
        return Counter([DiscreteLaplace(scale, whole(distance, "distance", 1))])
    if not is_vector:
        return Counter([DiscreteGaussian(scale**2, whole(distance, "distance", 1))])
    square = distance**2
    if square.denominator != 1 or not 1 <= square <= _UNIT_SHIFTS:
        raise InvalidInputError(
            f"On vectors the square of distance must be 1, 2 or 3: so many cells change by 1. Found distance {shown(distance)}."
        )
    return Counter({DiscreteGaussian(scale**2): int(square)})


def _data(domain: Any) -> tuple[str, bool]:
    """The type of the numbers of a domain, and whether it is one of vectors."""
    record = domain if isinstance(domain, (str, Mapping)) else _record(domain)
    arguments = record.get("__kwargs__", {}) if isinstance(record, Mapping) else {}
    if "atom_domain" in arguments:
        return _data(arguments["atom_domain"])[0], True
    return str(arguments.get("T")), False
