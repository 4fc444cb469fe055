"""The HTTP application: the page, and the JSON API under /api/v1."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

import exactdp
from exactdp import census
from exactdp.apps.studio.limits import AT_MOST
from exactdp.apps.studio.schema import answers, exchange_answers, requests
from exactdp.apps.studio.server.api_page import STYLE, api_page
from exactdp.apps.studio.server.responses import Events, add_errors, file_reply, json_reply, while_there
from exactdp.apps.studio.server.scheduler import Scheduler
from exactdp.apps.studio.server.static_files import CHECKED, Static, static_reply
from exactdp.apps.studio.server.strict_body import StrictRoute
from exactdp.apps.studio.work.designs import described, opened
from exactdp.apps.studio.work.dispatch import QUESTIONS
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError

STATIC = Path(__file__).parent.parent / "static"
PREFIX = "/api/v1"


def make_app(start: Release, scheduler: Scheduler | None = None) -> FastAPI:
    """The application; `start` is the design that the page opens with."""
    the_scheduler = scheduler or Scheduler()
    first = opened(start)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        question = requests.PairQuestion(design=requests.EditableDesign(**first["design"]))
        await the_scheduler.start(("pair", question.model_dump()))
        try:
            yield
        finally:
            await the_scheduler.close()

    app = FastAPI(
        title="exactdp studio",
        version=exactdp.__version__,
        description='Exact, certified accounting of a design. Errors are {"error": "one sentence"}. A studio started with '
        "--allow-remote asks every request for its token: send the header Authorization: Bearer TOKEN.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=life,
    )
    add_errors(app)
    app.include_router(_api(the_scheduler, first), prefix=PREFIX)

    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return static_reply(STATIC / "index.html", request.headers)

    @app.get(f"{PREFIX}/docs", include_in_schema=False)
    async def for_people() -> Response:
        text = api_page(app.openapi(), f"{PREFIX}/docs.css", f"{PREFIX}/openapi.json")
        return Response(text, headers=CHECKED, media_type="text/html")

    @app.get(f"{PREFIX}/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(STYLE, headers=CHECKED, media_type="text/css")

    app.mount("/static", Static(directory=STATIC), name="static")
    return app


_REFUSALS = (400, 408, 413, 415, 422, 429, 503)
_ASKED: tuple[tuple[str, type[BaseModel], Any], ...] = (
    ("parse", requests.BudgetFile, answers.CheckedDesign),
    ("check", requests.About, answers.CheckedDesign),
    ("export", requests.About, answers.BudgetFiles),
    ("pair", requests.PairQuestion, answers.PairAnswer),
    ("convert", requests.Conversion, answers.Converted),
    ("calibrate", requests.CalibrationQuestion, answers.CalibrationAnswer),
    ("exchange", requests.ExchangeQuestion, exchange_answers.ExchangeAnswer),
    ("hold", requests.HoldQuestion, exchange_answers.HeldAnswer),
    ("optimize", requests.OptimizeQuestion, exchange_answers.OptimizedAnswer),
    ("trade", requests.TradeQuestion, exchange_answers.TradeAnswer),
    ("frontier", requests.FrontierQuestion, exchange_answers.FrontierAnswer),
    ("certify", requests.CertificateQuestion, "application/json"),
    ("verify", requests.CertificateText, exchange_answers.VerificationAnswer),
    ("table", requests.TableQuestion, "text/csv"),
    ("report", requests.ReportQuestion, "text/html"),
)
"""The questions that workers answer: name, body, and the JSON of a model or a file of a kind."""


def _api(scheduler: Scheduler, first: answers.OpenedDesign) -> APIRouter:
    api = APIRouter(route_class=StrictRoute)

    @api.get("/health", responses=_responses(answers.Health))
    async def health() -> Response:
        """Whether the server is there."""
        return json_reply(answers.Health(status="ok", version=exactdp.__version__))

    @api.get("/start", responses=_responses(answers.Start))
    async def start() -> Response:
        """The version, the design to begin with and the limits of this server."""
        return json_reply(answers.Start(version=exactdp.__version__, limits=AT_MOST._asdict(), **first))

    @api.get("/releases", responses=_responses(answers.Releases))
    async def releases() -> Response:
        """The built-in releases that a page can show: one record replaced, discrete Gaussian noise."""
        built_in = map(census.release, census.release_names())
        return json_reply(answers.Releases(releases=[_listed(release) for release in built_in if release.is_usual]))

    @api.get("/releases/{name}", responses=_responses(answers.OpenedDesign, 404))
    async def release(name: str) -> Response:
        """One built-in release as an editable design."""
        try:
            return json_reply(opened(census.release(name)))
        except InvalidInputError as error:
            raise HTTPException(404, str(error)) from None

    for name, takes, gives in _ASKED:
        _add_question(api, scheduler, name, takes, gives)
    lines = _responses(Events.media_type, *_REFUSALS)

    # the model is there for its schema: what is answered is a stream of such events
    @api.post("/overall", response_class=Response, response_model=answers.OverallEvent, responses=lines)
    async def overall(question: requests.OverallQuestion) -> Response:
        """The guarantee over all pairs of directed paths, as a stream of events, one JSON object in a line."""
        return Events(scheduler.overall(question.model_dump()))

    return api


def _add_question(api: APIRouter, scheduler: Scheduler, name: str, takes: type[BaseModel], gives: Any) -> None:
    """A route that hands its body to a worker."""
    is_file = isinstance(gives, str)

    # FastAPI needs the type itself here, so that this module does not import `annotations` from the future
    async def route(question: takes, request: Request) -> Response:  # type: ignore[valid-type]
        answer = await while_there(request, scheduler.answer(name, question.model_dump()))  # type: ignore[attr-defined]
        return file_reply(answer, gives) if is_file else json_reply(answer)

    api.add_api_route(
        f"/{name}",
        route,
        methods=["POST"],
        name=name,
        description=QUESTIONS[name].answer.__doc__,
        response_class=Response if is_file else JSONResponse,
        responses=_responses(gives, *_REFUSALS),
    )


_PROBLEMS = {
    400: "not JSON",
    401: "without the token that a studio with --allow-remote asks for",
    403: "another Host or Origin",
    404: "no such release",
    408: "too slow",
    413: "too large",
    415: "not application/json",
    422: "refused, in one sentence",
    429: "too many questions are waiting",
    503: "no answer within the limits",
}


def _responses(gives: Any, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that gives the JSON of a model, a text of a kind, or events in lines."""
    found = {"model": gives}
    if isinstance(gives, str):
        found = {"content": {gives: {"schema": {"type": "object" if gives == "application/json" else "string"}}}}
    if gives == Events.media_type:
        events = [event.__name__ for event in get_args(answers.OverallEvent)]
        found["content"][gives]["itemSchema"] = {"oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in events]}
    refused = (401, 403, *statuses)
    return {200: found, **{status: {"model": answers.Problem, "description": _PROBLEMS[status]} for status in refused}}


def _listed(release: Release) -> answers.ListedRelease:
    found = described(release)
    return {
        "name": release.name,
        "title": release.title,
        "levels": len(release.table),
        "cells": sum(map(len, release.table.values())),
        "paths": len(release.bypassed),
        "pairs": found["pairs"],
        "rho": found["rho"],
    }
