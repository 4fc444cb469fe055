"""Replies: JSON, files, streams of events, and every error as one sentence. When a client leaves, its work is cancelled."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as AnyHTTPError

from exactdp.apps.studio.schema.answers import OverallError, OverallEvent, Place, Problem, as_json
from exactdp.apps.studio.schema.requests import MUST, SENTENCE
from exactdp.apps.studio.server.work_errors import DEFECT, WorkError, place_of
from exactdp.numbers import one_line, shown

_LOG = logging.getLogger("exactdp.studio")
_Result = TypeVar("_Result")


class GoneError(Exception):
    """The client has left."""


async def while_there(request: Request, work: Coroutine[Any, Any, _Result]) -> _Result:
    """The result of the work; when the client leaves, the work is cancelled."""
    task, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(request.receive))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise GoneError
        return task.result()
    finally:
        for one in (task, leaving):
            one.cancel()
        await asyncio.gather(task, leaving, return_exceptions=True)


async def _left(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Events(Response):
    """Events as lines of JSON, as they come; when the client leaves, their source is closed."""

    media_type = "application/x-ndjson"

    def __init__(self, events: AsyncGenerator[OverallEvent, None]) -> None:
        super().__init__()
        self._events = events
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-store"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Write until the events end or the client leaves."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        with suppress(GoneError):
            await while_there(Request(scope, receive), self._write(send))

    async def _write(self, send: Any) -> None:
        async def line(event: OverallEvent) -> None:
            await send({"type": "http.response.body", "body": as_json(event) + b"\n", "more_body": True})

        try:
            async with aclosing(self._events) as events:
                async for event in events:
                    await line(event)
        except WorkError as error:
            await line(OverallError(event="error", error=one_line(str(error))))
        except OSError:
            return
        except Exception as error:  # the status is sent: only an event can still tell
            _LOG.error("a defect: %s", place_of(error))
            await line(OverallError(event="error", error=DEFECT))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def json_reply(content: bytes | Mapping[str, Any], status: int = 200) -> Response:
    """JSON that no cache keeps."""
    body = content if isinstance(content, bytes) else as_json(content)
    return Response(body, status, {"cache-control": "no-store"}, "application/json")


def file_reply(answer: bytes, media_type: str) -> Response:
    """The text in an answer as a file to be saved."""
    found = json.loads(answer)
    headers = {"cache-control": "no-store", "content-disposition": f'attachment; filename="{found["file_name"]}"'}
    return Response(found["text"], 200, headers, media_type)


def add_errors(app: FastAPI) -> None:
    """Every error as one sentence."""

    @app.exception_handler(WorkError)
    async def _work(request: Request, error: WorkError) -> Response:
        problem: Problem = {"error": one_line(str(error))}
        if error.where:
            problem["where"] = error.where
        response = json_reply(problem, error.status)
        if error.status == 429:
            response.headers["retry-after"] = "2"
        return response

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = [place for place in first["loc"] if place != "body"]
        problem: Problem = {"error": one_line(_sentence(first, where)), "where": _place(where, error.body)}
        return json_reply(problem, 422)

    @app.exception_handler(AnyHTTPError)
    async def _http(request: Request, error: AnyHTTPError) -> Response:
        texts = {404: "There is nothing at this address.", 405: "This address does not take such a request."}
        own = isinstance(error, HTTPException)  # and not one of the framework, which says less
        detail = error.detail if own else texts.get(error.status_code, error.detail)
        return json_reply({"error": one_line(str(detail))}, error.status_code)

    @app.exception_handler(Exception)
    async def _defect(request: Request, error: Exception) -> Response:
        return json_reply({"error": DEFECT}, 500)  # the log has the rest

    @app.exception_handler(GoneError)
    async def _gone(request: Request, error: GoneError) -> Response:
        return Response(status_code=499)


_LISTS = {"deltas": "delta", "epsilons": "epsilon", "alphas": "alpha", "factors": "factor"}


def _sentence(error: Any, where: list[str | int]) -> str:
    """The first thing that is wrong with a request, in words."""
    kind, text = error["type"], str(error["msg"])
    if kind == MUST and error.get("input") == "":
        return f"{_spoken(where)} is empty. Type a number such as 73/10000, 0.0073 or 1e-10."
    if kind == "missing":
        return f"{_spoken(where)} is missing; add it."
    if kind == "extra_forbidden":
        return f"{_spoken(where)} is not known here; remove it."
    if kind == SENTENCE:
        return text
    value = error.get("input")
    found = {dict: "an object", list: "a list", type(None): "nothing"}.get(type(value)) or shown(ascii(value))
    if kind == MUST:
        return f"{_spoken(where)} {text}. Found {found}."
    return f"{_spoken(where)}: {text[:1].lower()}{text[1:]}. Found {found}."


def _spoken(where: list[str | int]) -> str:
    """A place in a request as people call it: delta and not deltas.0."""
    if len(where) == 2 and where[0] in _LISTS and isinstance(where[1], int):
        return _LISTS[str(where[0])]
    return shown(ascii(".".join(map(str, where)))[1:-1]) if where else "The body"


def _place(where: list[str | int], body: Any) -> Place:
    """The field, and the names of level and query where it is a budget."""
    field = _spoken(where)
    if where[:2] == ["design", "levels"]:
        with suppress(KeyError, IndexError, TypeError):
            level = body["design"]["levels"][where[2]]
            query = level["queries"][where[4]]
            if isinstance(level["name"], str) and isinstance(query["name"], str):
                return {"field": field, "level": level["name"], "query": query["name"]}
    return {"field": field}
