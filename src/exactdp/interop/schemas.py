"""JSON Schemas (draft 2020-12) of the files that others write and read: certificates of both kinds, designs, objects.

They are made of what the readers themselves use: names, limits, the spelling of numbers. Whatever a reader takes satisfies the
schema. The converse fails where a rule is beyond a schema: sums of budgets, canonical spelling, the proof of a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any, get_type_hints

from exactdp.accounting.certificates import certificate
from exactdp.accounting.certificates.routes import QUANTITY, Evaluation
from exactdp.arithmetic_state import steady
from exactdp.census import budget_record, design_certificate, joint_certificate
from exactdp.census.budget_cells import NUMBERS
from exactdp.census.budget_design import BYPASS_NUMBER, MOST_BYPASSED, MOST_CELLS, RESERVED, UNITS
from exactdp.census.budget_numbers import NUMBER
from exactdp.census.cell_noise import KINDS
from exactdp.census.joint import MOST
from exactdp.census.releases import RELATIONS
from exactdp.elementwise import DIGITS
from exactdp.errors import InvalidInputError
from exactdp.interop.json_objects import VERSION as OBJECT_VERSION
from exactdp.interop.json_objects import object_schema
from exactdp.interop.json_values import Schema, record_schema, text_schema
from exactdp.numbers import shown

DESIGN_VERSION = budget_record.VERSION
"""JSON designs carry it, other budget files need not: unknown keys are refused, and the ones there are keep their meaning."""

_SPELLING = {str: "short text", int: "whole number", Fraction: "fraction"}


@steady
def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a `certificate`, `design-certificate`, `joint-certificate`, `design` (a budget file) or `object`.

    >>> json_schema("certificate")["properties"]["format"]
    {'const': 'exactdp certificate'}
    """
    if name not in SCHEMAS:
        raise InvalidInputError(f"A schema is one of {', '.join(SCHEMAS)}. Found {shown(name)}.")
    title, version, make = SCHEMAS[name]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:exactdp:schema:{name}:{version}",
        "title": title,
        **make(),
    }


def _certificate() -> Schema:
    mechanism = {
        "sigma2": text_schema("fraction"),
        "sensitivity": text_schema("whole number"),
        "count": text_schema("whole number"),
    }
    hints = get_type_hints(Evaluation)
    evaluation = {field.name: text_schema(_SPELLING.get(hints[field.name], "decimal")) for field in fields(Evaluation)}
    question = record_schema(
        {
            "quantity": {"enum": list(QUANTITY.values())},
            "given": {"enum": list(QUANTITY)},
            "value": text_schema("fraction"),
        }
    )
    asked = [{"properties": {"quantity": {"const": q}, "given": {"const": g}}} for g, q in QUANTITY.items()]
    fewest, most = DIGITS
    return record_schema(
        {
            "format": {"const": certificate.FORMAT},
            "version": {"const": certificate.VERSION},
            "composition": {"type": "array", "items": record_schema(mechanism), "maxItems": certificate.MOST_GROUPS},
            "question": {**question, "anyOf": asked},
            "digits": {"type": "integer", "minimum": fewest, "maximum": most},
            "enclosure": record_schema({"lower": text_schema("decimal"), "upper": text_schema("decimal")}),
            "plan": {"type": "array", "items": record_schema(evaluation)},
            "libraries": record_schema(dict.fromkeys(certificate.versions(), text_schema("short text"))),
            "sha256": text_schema("SHA-256"),
        }
    )


def _texts_and_numbers() -> tuple[Schema, Schema, Schema]:
    """A text, a number and a count of a certificate."""
    text: Schema = {"type": "string", "maxLength": design_certificate.LONGEST_TEXT}
    number: Schema = {
        "type": "integer",
        "minimum": -design_certificate.LARGEST_NUMBER,
        "maximum": design_certificate.LARGEST_NUMBER,
    }
    count: Schema = {**number, "minimum": 1}
    return text, number, count


def _design_in_certificate() -> Schema:
    """The design inside a certificate."""
    text, number, count = _texts_and_numbers()
    query = {"query": text, "rho": text_schema("fraction")}
    noise = {"noise": {"enum": list(KINDS)}, "sensitivity": count, "cells": count}
    level = {
        "level": text,
        "queries": {
            "type": "array",
            "items": {
                "anyOf": [record_schema(query), record_schema({**query, **noise})]
            },  # the latter where it is unusual
            "minItems": 1,
        },
    }
    path = {"number": number, "levels": {"type": "array", "items": text}}
    design = {
        **dict.fromkeys(("name", "title", "source", "unit_of_privacy"), text),
        "relation": {"enum": list(RELATIONS[1:])},
        "levels": {"type": "array", "items": record_schema(level), "minItems": 1, "maxItems": MOST_CELLS},
        "bypassed": {"type": "array", "items": record_schema(path), "minItems": 1, "maxItems": MOST_BYPASSED},
        "fingerprint": text_schema("SHA-256"),
    }
    return record_schema(design, ("unit_of_privacy", "relation"))


def _design_certificate() -> Schema:
    _, number, count = _texts_and_numbers()
    asked = [{"quantity": {"const": QUANTITY[g]}, "given": {"const": g}} for g in design_certificate.GIVEN]
    question = {"quantity": {"type": "string"}, "given": {"type": "string"}, "value": text_schema("fraction")}
    exact = {"anyOf": [text_schema("fraction"), text_schema("decimal")]}
    method = {"method": {"enum": list(design_certificate.METHODS)}, "compositions": count}
    contour = {"tilt": text_schema("fraction"), "nodes": text_schema("whole number")}
    evidence = {
        "compositions": count,
        "methods": {"type": "array", "items": record_schema(method)},
        "contours": {
            "type": "array",
            "items": record_schema(contour),
            "maxItems": design_certificate.MOST_CONTOURS,
        },
    }
    fewest, most = design_certificate.DIGITS
    return record_schema(
        {
            "format": {"const": design_certificate.FORMAT},
            "version": {"const": design_certificate.VERSION},
            "design": _design_in_certificate(),
            "question": {**record_schema(question), "anyOf": [{"properties": each} for each in asked]},
            "digits": {"type": "integer", "minimum": fewest, "maximum": most},
            "claim": record_schema({"epsilon": exact, "delta": exact, "too_small": text_schema("decimal")}),
            "pairs": count,
            "witness": {"type": "array", "items": number, "minItems": 2, "maxItems": 2},
            "evidence": record_schema(evidence),
            "libraries": record_schema(dict.fromkeys(certificate.versions(), text_schema("short text"))),
            "sha256": text_schema("SHA-256"),
        }
    )


def _word(words: Sequence[str], blank: str = "", pattern: str = "") -> Schema:
    """One of the words, of which the first is the default, in any case; `blank` in them stands for the pattern."""
    spelled = "|".join(map(_any_case, words))
    spelled = spelled.replace(blank, pattern) if blank else spelled
    return {
        "default": words[0],
        "anyOf": [{"enum": list(words)}, {"type": "string", "pattern": rf"^\s*(?:{spelled})\s*$"}],
    }


def _any_case(text: str) -> str:
    return "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in text)


def _query() -> Schema:
    """A query of a budget file: its number, or a table."""
    counted: Schema = {
        "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": r"^\s*[0-9]{1,10}\s*$"}]
    }
    return {
        "description": "The number of a query, or a table with it and with what one record changes.",
        "anyOf": [
            {"$ref": "#/$defs/budget"},
            {
                "type": "object",
                "properties": {
                    **{name: {"$ref": "#/$defs/budget"} for name in NUMBERS},
                    "sensitivity": counted,
                    "cells": counted,
                    "noise": _word(KINDS, " ", r"[\s_-]+"),
                },
                "additionalProperties": False,
                "oneOf": [{"required": [name]} for name in NUMBERS],
            },
        ],
    }


def _design() -> Schema:
    text: Schema = {"type": "string"}
    budget: Schema = {
        "description": "An exact number: 0.0073, or as a text 73/10000. A fraction needs quotation marks.",
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "string", "pattern": rf"^\s*(?:{NUMBER.pattern})\s*$", "not": {"pattern": r"^\s*-"}},
        ],
    }
    named = {"pattern": r"\S"}
    queries = {
        "type": "object",
        "propertyNames": {**named, "not": {"enum": sorted(RESERVED)}},
        "additionalProperties": {"$ref": "#/$defs/query"},
        "minProperties": 1,
    }
    properties: dict[str, Schema] = {
        "format": {"const": budget_record.FORMAT},
        "version": {"const": DESIGN_VERSION},
        **dict.fromkeys(("title", "source", "unit_of_privacy"), text),
        "relation": _word(RELATIONS),
        "unit": _word(UNITS),
        **{key: {"$ref": "#/$defs/budget"} for key in ("total_rho", "zcdp_rho")},
        "full_path": {
            "anyOf": [{"type": "boolean"}, {"type": "string", "pattern": rf"^\s*(?:{_any_case('true|false')})\s*$"}]
        },
        "levels": {
            "type": "object",
            "propertyNames": named,
            "additionalProperties": {"$ref": "#/$defs/queries"},
            "minProperties": 1,
        },
        "level_shares": {
            "type": "object",
            "propertyNames": named,
            "additionalProperties": {"$ref": "#/$defs/budget"},
            "minProperties": 1,
        },
        "bypassed": {
            "type": "object",
            "propertyNames": {"pattern": rf"^\s*(?:{BYPASS_NUMBER.pattern})\s*$"},
            "additionalProperties": {"type": "array", "items": text, "uniqueItems": True},
            "maxProperties": MOST_BYPASSED,
        },
    }
    return {
        **record_schema(properties),
        "required": ["levels"],
        "dependentRequired": {"level_shares": ["unit", "total_rho"]},
        "if": {"required": ["unit"], "properties": {"unit": {"const": "share"}}},
        "then": {"required": ["total_rho"]},
        "$defs": {"budget": budget, "query": _query(), "queries": queries},
    }


def _joint_certificate() -> Schema:
    text, _, count = _texts_and_numbers()
    moved = record_schema({"query": text, "shift": count, "cells": count})
    vector = {"anyOf": [{"type": "null"}, {"type": "array", "items": moved}]}
    half = record_schema({"still": {"type": "array", "items": text}, "vector": vector})
    moves = {"said": text, "in_place": {"type": "boolean"}, "halves": {"type": "array", "items": half, "maxItems": 2}}
    product = record_schema({"design": _design_in_certificate(), "moves": record_schema(moves)})
    question = {"quantity": {"const": "epsilon"}, "given": {"const": "delta"}, "value": text_schema("fraction")}
    claim = {"delta": text_schema("fraction"), **dict.fromkeys(("epsilon", "too_small"), text_schema("decimal"))}
    fewest, most = design_certificate.DIGITS
    return record_schema(
        {
            "format": {"const": joint_certificate.FORMAT},
            "version": {"const": joint_certificate.VERSION},
            "change": record_schema(dict.fromkeys(("name", "words", "invariants"), text)),
            "products": {"type": "array", "items": product, "minItems": 1, "maxItems": joint_certificate.MOST_PRODUCTS},
            "question": record_schema(question),
            "digits": {"type": "integer", "minimum": fewest, "maximum": most},
            "claim": record_schema(claim),
            "combinations": {"type": "integer", "minimum": 1, "maximum": MOST},
            "witness": {"type": "integer", "minimum": 0, "maximum": MOST},
            "libraries": record_schema(dict.fromkeys(certificate.versions(), text_schema("short text"))),
            "sha256": text_schema("SHA-256"),
        }
    )


SCHEMAS: dict[str, tuple[str, int, Callable[[], Schema]]] = {
    "certificate": ("A certificate of exactdp", certificate.VERSION, _certificate),
    "design-certificate": (
        "A certificate of a whole design of exactdp",
        design_certificate.VERSION,
        _design_certificate,
    ),
    "joint-certificate": (
        "A certificate of several products together, made by exactdp certify --change",
        joint_certificate.VERSION,
        _joint_certificate,
    ),
    "design": ("A budget file of exactdp (JSON, or as TOML reads)", DESIGN_VERSION, _design),
    "object": ("An object written by exactdp.to_json", OBJECT_VERSION, object_schema),
}
"""Title, version and maker of each."""
