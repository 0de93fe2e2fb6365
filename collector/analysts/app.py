"""The analysts' HTTP face: SQL over the live store, and metrics."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Request, Response
from msgspec import Meta
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from collector.analysts.metrics import exposition
from collector.analysts.numbers import Answers
from collector.analysts.render import MEDIA, rendered
from collector.schemas import ref
from collector.service import Collector
from cowpath.errors import InputError, TooLarge
from cowpath.settings import Settings

MOST_BYTES = 256 * 1024
"""A query is text; a larger one is no query."""

router = APIRouter()


class Query(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One SELECT over the tables and views of the published copy."""

    sql: Annotated[str, Meta(min_length=1)]
    format: Literal["json", "csv", "arrow"] = "json"
    limit: Annotated[int, Meta(ge=1)] | None = None
    parameters: dict[str, str | int | float | bool | None] = {}


@router.post(
    "/v1/sql",
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": ref("Query")}}}},
    responses={
        200: {
            "description": "The rows; the header X-Cowpath-Truncated says whether there were more.",
            "content": {media: {} for media in MEDIA.values()},
        },
        **{
            status: {"description": words, "content": {"application/json": {"schema": ref("ErrorDocument")}}}
            for status, words in {
                413: "The request or the answer is too large.",
                422: "No query, or one that cannot be run, wants to write or took too long.",
                503: "As many queries as may run at once are running, or the store is being replaced; see Retry-After.",
            }.items()
        },
    },
)
async def sql(request: Request) -> Response:
    """Run one SELECT over the live store, to the latest event; nothing can be written."""
    query = _query_of(await _bounded_body(request))
    return await asyncio.to_thread(_answer, request, query)


@router.get("/metrics", responses={200: {"description": "Prometheus' text format.", "content": {"text/plain": {}}}})
def metrics(request: Request) -> Response:
    """What this collector counts, for Prometheus."""
    page = exposition(request.app.state.collector, request.app.state.answers)
    return Response(page, headers={"Content-Type": CONTENT_TYPE_LATEST})


class CountsAnswers:
    """Middleware: counts answered requests by method, route and status."""

    def __init__(self, app: ASGIApp, answers: Answers) -> None:
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Paths nobody serves are one route: their names are the sender's, and endless.
                route = getattr(scope.get("route"), "path", "(none)")
                method = scope["method"] if route != "(none)" else "(any)"
                self._answers[method, route, message["status"]] += 1
            await send(message)

        await self._app(scope, receive, counted if scope["type"] == "http" else send)


async def _bounded_body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise TooLarge(f"a query has at most {MOST_BYTES} bytes")
    return body


def _query_of(body: bytes) -> Query:
    try:
        return msgspec.json.decode(body, type=Query)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"a query is a JSON object with sql: {error}") from None


def _answer(request: Request, query: Query) -> Response:
    settings: Settings = request.app.state.settings
    collector: Collector = request.app.state.collector
    limit = min(query.limit or settings.sql_max_rows, settings.sql_max_rows)
    found = collector.live.query(query.sql, query.parameters, limit=limit + 1, timeout_s=settings.sql_timeout_s)
    body = rendered(found.slice(0, limit), query.format)
    truncated = "true" if found.num_rows > limit else "false"
    return Response(body, headers={"X-Cowpath-Truncated": truncated}, media_type=MEDIA[query.format])


def components() -> dict[str, Any]:
    """The schemas this face refers to."""
    _, found = msgspec.json.schema_components([Query], ref_template="#/components/schemas/{name}")
    return found
