"""The text of a file that people write by hand or save from a spreadsheet: its encoding and its separator.

Budgets and tables of counts are read through these two functions, so that what one takes the other takes. The content may be
confidential: errors name the line and never show what is there, nor does the exception hold it.
"""

from __future__ import annotations

import codecs

from exactdp.errors import InvalidInputError

SEPARATORS = (",", ";", "\t")
"""What stands between two cells: Excel writes semicolons where the decimal mark is a comma, and tabs as "Unicode text"."""

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SPREADSHEETS = {".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers"}


def decoded(content: bytes, what: str) -> str:
    """The text in UTF-8, with or without a byte order mark, or in UTF-16 with one; `what` names the file in errors.

    Guarantee: nothing is replaced or left out but the mark; a text that is in neither encoding is refused with the line.

    >>> decoded("level;größe".encode("utf-16"), "A budget file")
    'level;größe'
    """
    text, line = _attempt(content, "utf-16" if content.startswith(_WIDE) else "utf-8-sig")
    zero = text.find("\0")  # UTF-16 or UTF-32 without a mark, or no text at all
    if zero >= 0:
        line = _lines(text[:zero])
    if line:
        raise InvalidInputError(
            f"{what} must be encoded in UTF-8. Found other bytes in line {line}; save it as UTF-8 "
            '(in a spreadsheet: "CSV UTF-8").'
        )
    return text


def _attempt(content: bytes, encoding: str) -> tuple[str, int]:
    """The text and 0; or nothing and the line of what is in another encoding. The error, which holds the content, ends here."""
    try:
        return content.decode(encoding), 0
    except UnicodeDecodeError as error:
        return "", _lines(content[: error.start].decode(encoding, "ignore"))


def _lines(text: str) -> int:
    """The number of the line in which the text ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1


def separator(header_line: str) -> str:
    """Comma, semicolon or tab: the first of them in the header outside quotation marks; a comma where there is none.

    >>> separator("level;query;rho"), separator('"a;b",level'), separator("level")
    (';', ',', ',')
    """
    is_quoted = False
    for character in header_line:
        if character == '"':
            is_quoted = not is_quoted
        elif character in SEPARATORS and not is_quoted:
            return character
    return ","


def refuse_spreadsheet(file_name: str, what: str) -> None:
    """Refuse a workbook by the ending of its name, with what to do instead."""
    name = file_name.lower()
    ending = next((known for known in sorted(_SPREADSHEETS) if name.endswith(known)), None)
    if ending is not None:
        raise InvalidInputError(
            f"{what} must be a text file. Found a workbook ({ending}); save the sheet as CSV UTF-8 in the spreadsheet "
            "program and give that file."
        )
