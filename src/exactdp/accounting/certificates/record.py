"""What all certificates have in common: a versioned JSON record with a hash, read strictly, written completely or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from exactdp.errors import InvalidInputError
from exactdp.files import write_text
from exactdp.numbers import shown
from exactdp.strict_json import canonical, parse

LARGEST_FILE = 10_000_000


class Record(ABC):
    """A certificate as JSON. The SHA-256 guards against accidents only: whoever edits a record can hash it again."""

    form: ClassVar[tuple[str, int]]
    """The name of the format, and its version."""
    indent: ClassVar[int] = 2
    sha256: str

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """Everything but the hash, as JSON types; every exact number is a text."""

    @classmethod
    @abstractmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """The certificate of a parsed record; KeyError or TypeError where fields are missing or of another type."""

    def digest(self) -> str:
        """SHA-256 of the canonical content: sorted keys, no white space, without the hash itself."""
        return hashlib.sha256(canonical(self.content()).encode()).hexdigest()

    def to_json(self) -> str:
        """The record as indented JSON; `from_json` gives back an equal certificate."""
        return json.dumps({**self.content(), "sha256": self.sha256}, indent=self.indent) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a record, refusing (InvalidInputError) whatever `to_json` could not have written. Verifies nothing."""
        record, (name, version) = parse(text), cls.form
        if record.get("format") != name or type(record.get("version")) is not int:
            raise InvalidInputError(f"The file is not an {name}. Make one with exactdp certify.")
        if record["version"] != version:
            raise InvalidInputError(f"An {name} of version {version} can be read. Found {record['version']}.")
        try:
            result = cls.from_record(record)
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidInputError(
                f"The certificate lacks a field or has one of the wrong type: {shown(error)}."
            ) from None
        if canonical({**result.content(), "sha256": result.sha256}) != canonical(record):
            raise InvalidInputError("The certificate is not in canonical form (fields, order or spelling of a number).")
        return result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the record, all of it or nothing."""
        write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file; at most LARGEST_FILE bytes of it are looked at."""
        try:
            return cls.from_json(record_text(path))
        except InvalidInputError as error:
            raise InvalidInputError(f"{path}: {error}") from None


def record_text(path: str | os.PathLike[str]) -> str:
    """The text of a JSON file, refused where it is too long for a record."""
    with Path(path).open("rb") as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise InvalidInputError(f"A JSON file of exactdp has at most {LARGEST_FILE:,} bytes. Found more; give another.")
    return data.decode("utf-8-sig", errors="replace")
