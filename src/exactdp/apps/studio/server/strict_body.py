"""Routes that read their bodies strictly: no NaN, no numbers beyond doubles, no name twice, no endless nesting."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from exactdp.errors import InvalidInputError
from exactdp.strict_json import load


class StrictRequest(Request):
    """A request whose JSON has no NaN, no numbers beyond doubles and no name twice."""

    async def json(self) -> Any:
        """The body, or one sentence about it with the status 400."""
        if not hasattr(self, "_json"):
            try:
                text = (await self.body()).decode()
            except UnicodeDecodeError:
                raise HTTPException(400, "The body must be encoded in UTF-8. Found other bytes.") from None
            try:
                self._json = load(text, "The body is not JSON that can be used", digits=16, doubles=True)
            except InvalidInputError as error:
                raise HTTPException(400, str(error)) from None
        return self._json


class StrictRoute(APIRoute):
    """A route that reads its body so."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of FastAPI with such a request."""
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(StrictRequest(request.scope, request.receive))

        return strict
