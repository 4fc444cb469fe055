"""The HTTP application: the page, and the JSON API under /api/v1."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel
from starlette.staticfiles import StaticFiles

import exactdp
from exactdp import census
from exactdp.apps.studio.limits import AT_MOST
from exactdp.apps.studio.schema import answers, requests
from exactdp.apps.studio.server.api_page import STYLE, api_page
from exactdp.apps.studio.server.responses import Events, add_errors, file_reply, json_reply, while_there
from exactdp.apps.studio.server.scheduler import Scheduler
from exactdp.apps.studio.server.strict_body import StrictRoute
from exactdp.apps.studio.work.designs import described
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError

STATIC = Path(__file__).parent.parent / "static"
PREFIX = "/api/v1"


def make_app(start: Release, scheduler: Scheduler | None = None) -> FastAPI:
    """The application; `start` is the design that the page opens with."""
    the_scheduler = scheduler or Scheduler()
    first = described(start)

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
        description='Exact, certified accounting of a design. Errors are {"error": "one sentence"}.',
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=life,
    )
    add_errors(app)
    app.include_router(_api(the_scheduler, first), prefix=PREFIX)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    @app.get(f"{PREFIX}/docs", include_in_schema=False)
    async def for_people() -> Response:
        return Response(api_page(app.openapi(), f"{PREFIX}/docs.css", f"{PREFIX}/openapi.json"), media_type="text/html")

    @app.get(f"{PREFIX}/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(STYLE, media_type="text/css")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def _api(scheduler: Scheduler, first: answers.DesignAnswer) -> APIRouter:
    api = APIRouter(route_class=StrictRoute)

    async def short(name: str, question: BaseModel, request: Request) -> Response:
        return json_reply(await while_there(request, scheduler.short_answer(name, question.model_dump())))

    @api.get("/health", responses=_ok(answers.Health))
    async def health() -> Response:
        """Whether the server is there."""
        return json_reply(answers.Health(status="ok", version=exactdp.__version__))

    @api.get("/start", responses=_ok(answers.Start))
    async def start() -> Response:
        """The version, the design to begin with and the limits of this server."""
        found: answers.Start = {"version": exactdp.__version__, **first, "limits": AT_MOST._asdict()}
        return json_reply(found)

    @api.get("/releases", responses=_ok(answers.Releases))
    async def releases() -> Response:
        """The built-in releases."""
        return json_reply(answers.Releases(releases=[_listed(census.release(n)) for n in census.release_names()]))

    @api.get("/releases/{name}", responses=_ok(answers.DesignAnswer, 404))
    async def release(name: str) -> Response:
        """One built-in release as an editable design."""
        try:
            return json_reply(described(census.release(name)))
        except InvalidInputError as error:
            raise HTTPException(404, str(error)) from None

    @api.post("/parse", responses=_ok(answers.CheckedDesign, *_REFUSALS))
    async def parse(question: requests.BudgetFile, request: Request) -> Response:
        """The design in the text of a TOML or CSV budget file."""
        return await short("parse", question, request)

    @api.post("/check", responses=_ok(answers.CheckedDesign, *_REFUSALS))
    async def check(question: requests.About, request: Request) -> Response:
        """A design with its numbers as exact fractions and its scale applied, or what is wrong with it."""
        return await short("check", question, request)

    @api.post("/export", responses=_ok(answers.BudgetFiles, *_REFUSALS))
    async def export(question: requests.About, request: Request) -> Response:
        """The texts of TOML and CSV budget files that read back as the same design."""
        return await short("export", question, request)

    @api.post("/pair", responses=_ok(answers.PairAnswer, *_REFUSALS))
    async def pair(question: requests.PairQuestion, request: Request) -> Response:
        """The exact guarantee of one pair of directed paths, beside zCDP and the Gaussian formula; the noise of its queries."""
        return json_reply(await while_there(request, scheduler.pair(question.model_dump())))

    @api.post("/overall", response_class=Response, responses=_text("application/x-ndjson", *_REFUSALS))
    async def overall(question: requests.OverallQuestion) -> Response:
        """The guarantee over all pairs of directed paths, as a stream of events, one JSON object in a line."""
        return Events(scheduler.overall(question.model_dump()))

    @api.post("/convert", responses=_ok(answers.Converted, *_REFUSALS))
    async def convert(question: requests.Conversion, request: Request) -> Response:
        """What zCDP (safe bounds) and the Gaussian formula (estimates) say at one rho."""
        return await short("convert", question, request)

    @api.post("/calibrate", responses=_ok(answers.CalibrationAnswer, *_REFUSALS))
    async def calibrate(question: requests.CalibrationQuestion, request: Request) -> Response:
        """The least factor on the noise variances that meets a target, and the design with it."""
        return json_reply(await while_there(request, scheduler.long_answer("calibrate", question.model_dump())))

    @api.post("/certify", response_class=Response, responses=_text("application/json", *_REFUSALS))
    async def certify(question: requests.CertificateQuestion, request: Request) -> Response:
        """A certificate of one answer about a pair, as a file that `exactdp verify` takes."""
        answer = await while_there(request, scheduler.long_answer("certify", question.model_dump()))
        return file_reply(answer, "application/json")

    @api.post("/table", response_class=Response, responses=_text("text/csv", *_REFUSALS))
    async def table(question: requests.TableQuestion, request: Request) -> Response:
        """A table of the design as CSV."""
        answer = await while_there(request, scheduler.long_answer("table", question.model_dump()))
        return file_reply(answer, "text/csv")

    @api.post("/report", response_class=Response, responses=_text("text/html", *_REFUSALS))
    async def report(question: requests.ReportQuestion, request: Request) -> Response:
        """The HTML report of the design as one self-contained file; takes up to a minute."""
        return file_reply(await while_there(request, scheduler.report(question.model_dump())), "text/html")

    return api


_REFUSALS = (400, 408, 413, 415, 422, 429, 503)


def _problems(statuses: tuple[int, ...]) -> dict[int | str, dict[str, Any]]:
    texts = {
        400: "not JSON",
        403: "another Host or Origin",
        404: "no such release",
        408: "too slow",
        413: "too large",
        415: "not application/json",
        422: "refused, in one sentence",
        429: "too many questions are waiting",
        503: "no answer within the limits",
    }
    return {status: {"model": answers.Problem, "description": texts[status]} for status in (403, *statuses)}


def _ok(model: Any, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that gives JSON."""
    return {200: {"model": model}, **_problems(statuses)}


def _text(kind: str, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that gives a text of another kind."""
    return {
        200: {"content": {kind: {"schema": {"type": "object" if kind == "application/json" else "string"}}}},
        **_problems(statuses),
    }


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
