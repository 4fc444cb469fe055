"""Security before the API: who may ask, how much may be sent, and which headers every answer carries.

Only pages of this server may ask (Host and Origin are checked on every request), only JSON is taken, bodies are counted as they
arrive, and no answer may be framed, sniffed or combined with code or data from elsewhere. Where other machines can reach the
server, every request must carry its token as well: a program in a header, a browser in a cookie that the printed address sets.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

from fastapi import HTTPException

from exactdp.apps.studio.limits import AT_MOST
from exactdp.apps.studio.schema.answers import as_json
from exactdp.apps.studio.server.work_errors import DEFECT, place_of

_LOG = logging.getLogger("exactdp.studio")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_TOO_LARGE = f"A request must have at most {AT_MOST.body_bytes:,} bytes. Found {{}}; send a smaller design."
_OTHER_PAGE = "Only the studio's own page may ask this server. Open the address that it printed when it started."
_NO_TOKEN = (
    "This studio asks for its token. Open the address that it printed when it started, or send the header "
    '"Authorization: Bearer TOKEN".'
)
_CLOSING = "The studio is closing. Start it again, and ask again."
_ADMITTED = (
    b'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>exactdp studio</title><link rel="icon" href="data:,">'
    b'<meta http-equiv="refresh" content="0; url=/"></head><body><p><a href="/">Open the studio</a></p></body></html>'
)
Headers = dict[bytes, list[bytes]]
_METHODS = ("GET", "HEAD", "POST")
_RAW = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


def addresses(hosts: Iterable[str], port: int) -> frozenset[str]:
    """What the Host header may say: these names with the port, and without it where it is the usual one."""
    names = [f"[{host}]" if ":" in host else host.lower() for host in hosts]
    return frozenset([f"{name}:{port}" for name in names] + (names if port == 80 else []))


class Token:
    """What a request must carry; an empty one is none, which every request carries."""

    def __init__(self, text: str = "") -> None:
        self._secret = text.encode()
        # a name of its own, as browsers do not tell the ports of a host apart
        self._cookie = b"exactdp-studio-" + hashlib.sha256(self._secret).hexdigest()[:8].encode()

    def in_headers(self, headers: Headers) -> bool:
        """Whether the header of a program or the cookie of a browser has it."""
        if not self._secret:
            return True
        sent = [value[7:].strip() for value in headers.get(b"authorization", []) if value[:7].lower() == b"bearer "]
        for cookie in b";".join(headers.get(b"cookie", [])).split(b";"):
            name, _, value = cookie.strip().partition(b"=")
            sent += [value] if name == self._cookie else []
        return any(secrets.compare_digest(self._secret, value) for value in sent)

    def in_address(self, scope: Any) -> bool:
        """Whether this is the address that was printed."""
        query: bytes = scope["query_string"]
        own = bool(self._secret) and scope["path"] == "/" and query.startswith(b"token=")
        return own and secrets.compare_digest(self._secret, query[6:])

    @property
    def as_cookie(self) -> bytes:
        """For the browser: out of reach of scripts, and sent with requests of the studio's own pages only."""
        return self._cookie + b"=" + self._secret + b"; Path=/; HttpOnly; SameSite=Strict"


class SecurityMiddleware:
    """An ASGI application around another."""

    def __init__(self, app: Any, allowed: Collection[str], body_seconds: float = 20.0, token: str = "") -> None:
        self._app, self._allowed, self._body_seconds = app, frozenset(allowed), body_seconds
        self._token = Token(token)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or refuse it in one sentence."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket: there are none
            await send({"type": "websocket.close", "code": 1008})
            return
        start = time.perf_counter()
        answer = _Outgoing(send, start)
        body = _Body(receive, self._body_seconds)
        headers: Headers = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        refusal = self._refusal(scope, headers)
        try:
            if refusal is not None:
                await answer.refuse(*refusal)
            elif scope["method"] == "GET" and self._token.in_address(scope):
                await answer.admit(self._token)
            else:
                await self._app(scope, body.receive, answer.send)
        except asyncio.CancelledError:  # the server is closing: a sentence, or the end of what was begun
            with suppress(Exception):
                await (answer.end() if answer.status else answer.refuse(503, _CLOSING))
        except Exception as error:
            _LOG.error("a defect: %s", place_of(error))
            await answer.refuse(500, DEFECT)
        route = getattr(scope.get("route"), "path", "-")
        _LOG.info("%s %s %s %.0f ms", scope["method"], route, answer.status, 1000 * (time.perf_counter() - start))

    def _refusal(self, scope: Any, headers: Headers) -> tuple[int, str] | None:
        """The status and the sentence, if the request is not for us or not in order."""
        hosts = [value.decode("latin-1").lower() for value in headers.get(b"host", [])]
        if len(hosts) != 1 or hosts[0] not in self._allowed:
            return 403, "This server answers only at the address that it printed when it started. Open that address."
        origins = [value.decode("latin-1").lower() for value in headers.get(b"origin", [])]
        site = headers.get(b"sec-fetch-site", [b"none"])[0] if scope["path"].startswith("/api/") else b"none"
        if any(origin != f"http://{hosts[0]}" for origin in origins) or site not in (b"same-origin", b"none"):
            return 403, _OTHER_PAGE
        if scope["method"] not in _METHODS:
            return 405, "The studio takes GET and POST requests only."
        if not (self._token.in_headers(headers) or self._token.in_address(scope)):
            return 401, _NO_TOKEN
        return _body_refusal(headers) if scope["method"] == "POST" else None


def _body_refusal(headers: Headers) -> tuple[int, str] | None:
    kinds = headers.get(b"content-type", [])
    if len(kinds) != 1 or kinds[0].split(b";")[0].strip().lower() != b"application/json":
        return 415, "A request must have the content type application/json."
    if b"content-encoding" in headers:
        return 415, "A request must not be compressed."
    length = headers.get(b"content-length", [b"0"])[0]
    if not length.isdigit() or len(length) > 15:
        return 400, "The content length must be a whole number."
    if int(length) > AT_MOST.body_bytes:
        return 413, _TOO_LARGE.format(f"{int(length):,}")
    return None


class _Body:
    """Counts what arrives, and does not wait for ever."""

    def __init__(self, receive: Any, seconds: float) -> None:
        self._receive, self._bytes, self._complete = receive, 0, False
        self._seconds, self._until = seconds, asyncio.get_running_loop().time() + seconds

    async def receive(self) -> Any:
        if self._complete:
            return await self._receive()  # only a disconnection can come now
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(
                408, f"The request did not arrive within {self._seconds:g} seconds. Send it again."
            ) from None
        self._complete = message["type"] != "http.request" or not message.get("more_body", False)
        self._bytes += len(message.get("body", b""))
        if self._bytes > AT_MOST.body_bytes:
            raise HTTPException(413, _TOO_LARGE.format("more"))
        return message


class _Outgoing:
    """Puts the headers on every answer, and refuses where none was begun."""

    def __init__(self, send: Any, start: float) -> None:
        self._send, self._start, self.status = send, start, 0

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            timing = f"total;dur={1000 * (time.perf_counter() - self._start):.1f}".encode()
            message = {**message, "headers": [*message["headers"], *_RAW, (b"server-timing", timing)]}
        await self._send(message)

    async def end(self) -> None:
        """Nothing more comes."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def refuse(self, status: int, sentence: str) -> None:
        if self.status:  # it is too late for a sentence
            return
        more = [(b"connection", b"close")]  # what is left of a body is not read
        if status == 401:
            more.append((b"www-authenticate", b"Bearer"))
        await self._whole(status, b"application/json", as_json({"error": sentence}), more)

    async def admit(self, token: Token) -> None:
        """Exchange the token in the address for a cookie.

        A page that leads on, and no redirection: after a redirection browsers would still count the link, perhaps in a letter,
        as where the request comes from, and keep a strict cookie back.
        """
        await self._whole(200, b"text/html; charset=utf-8", _ADMITTED, [(b"set-cookie", token.as_cookie)])

    async def _whole(self, status: int, kind: bytes, body: bytes, more: list[tuple[bytes, bytes]]) -> None:
        length = str(len(body)).encode()
        headers = [(b"content-type", kind), (b"content-length", length), (b"cache-control", b"no-store"), *more]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})
