"""The files of the page. A browser may keep them, but asks each time whether they are still the same.

Their tag is a hash of the content, not time and size, which two versions of the package may share: a page never mixes modules of
an old version with the API of a new one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles

CHECKED = {"cache-control": "no-cache"}
"""Kept by the browser, but used only after the server has said that it is current."""

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""Not asked of the system, which may know others: with `nosniff` a module of another kind would not run."""


class Static(StaticFiles):
    """A folder of such files."""

    def file_response(
        self, full_path: Any, stat_result: os.stat_result, scope: Any, status_code: int = 200
    ) -> Response:
        """One file, or that it has not changed."""
        return static_reply(Path(full_path), Headers(scope=scope), status_code)


def static_reply(path: Path, asked: Mapping[str, str], status: int = 200) -> Response:
    """The file at a path, or that it is still what the browser has."""
    content = path.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()}"'
    known = [one.strip().removeprefix("W/") for one in asked.get("if-none-match", "").split(",")]
    headers = {**CHECKED, "etag": tag}
    if tag in known:
        return NotModifiedResponse(Headers(headers))
    return Response(content, status, headers, _KINDS[path.suffix])
