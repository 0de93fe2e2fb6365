"""The collector's HTTP face: parse, call, answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from collector.access.app import router as access_router
from collector.analysts.app import CountsAnswers, components
from collector.analysts.app import router as analysts_router
from collector.analysts.numbers import Answers
from collector.body import EVENT_TYPES, bare_type, holds_lines
from collector.cloudevents import read_cloud_events
from collector.counted import Item
from collector.exchange import THREAD_BYTES, collector_of, json_answer, plain_body_of, settings_of
from collector.hooks.app import router as hooks_router
from collector.lock import refuse_one_of_many
from collector.otlp.answer import error_body
from collector.otlp.app import router as otlp_router
from collector.schemas import ERRORS, ONE_OR_MANY, component_schemas, native_schema, ref
from collector.service import Collector
from collector.wire import read_counts, read_events
from cowpath import __version__
from cowpath.errors import CowpathError, InputError, Overloaded, RateLimited
from cowpath.event import utc_now
from cowpath.settings import Settings

router = APIRouter()

EVENTS = "/v1/events"


def create_app(settings: Settings, collector: Collector | None = None) -> FastAPI:
    """The collector over HTTP. Without a collector given, the app opens the home's own and closes it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if collector is None:
            refuse_one_of_many(settings.at)
        opened = None if collector else await asyncio.to_thread(Collector, settings)
        app.state.collector = collector or opened
        yield
        if opened:
            await asyncio.to_thread(opened.close)

    app = App(title="cowpath", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.settings = settings
    app.state.answers = Answers()
    app.include_router(router)
    app.include_router(hooks_router)
    app.include_router(otlp_router)
    app.include_router(analysts_router)
    app.include_router(access_router)
    app.add_middleware(CountsAnswers, answers=app.state.answers)
    app.add_exception_handler(CowpathError, _show_error)
    app.add_exception_handler(Exception, _show_error)
    app.add_exception_handler(RequestValidationError, _show_invalid)
    app.add_exception_handler(HTTPException, _show_http)
    app.openapi = _openapi_of(app)  # type: ignore[method-assign]  # the documented way to complete the document
    return app


class App(FastAPI):
    """FastAPI with a shortcut: what agents post all day goes to its endpoint straight; the way through the middleware
    and the router costs more than the work itself. Same endpoint, same errors, counted alike."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != EVENTS or scope["method"] != "POST":
            await super().__call__(scope, receive, send)
            return
        scope["app"] = self
        request = Request(scope, receive)
        try:
            response = await post_events(request)
        except Exception as error:
            response = await _show_error(request, error)
        self.state.answers["POST", EVENTS, response.status_code] += 1
        await response(scope, receive, send)


@router.post(
    EVENTS,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": ONE_OR_MANY}}
            | {"application/x-ndjson": {"schema": ref("NativeEvent")}}
            | {"application/cloudevents+json": {"schema": ref("CloudEvent")}}
            | {"application/cloudevents-batch+json": {"schema": {"type": "array", "items": ref("CloudEvent")}}},
        }
    },
    responses={
        200: {
            "description": "Everything counted in the receipt is on disk.",
            "content": {"application/json": {"schema": ref("Receipt")}},
        },
        **ERRORS,
    },
)
async def post_events(request: Request) -> Response:
    """Take in one event, a batch, a list, NDJSON or CloudEvents; plain, gzip or zstd."""
    body = await plain_body_of(request)
    read = partial(
        _items_of, request.headers.get("content-type", ""), body, limit=settings_of(request).max_batch_events
    )
    items = await asyncio.to_thread(read) if len(body) > THREAD_BYTES else read()
    return json_answer(await collector_of(request).take_in_async(items))


@router.post("/v1/publish", responses={200: {"description": "usage.duckdb holds everything acknowledged so far."}})
def publish(request: Request) -> Response:
    """Write usage.duckdb anew, now."""
    collector = collector_of(request)
    collector.publish()
    return json_answer({"published": str(collector.home.usage)})


@router.get("/healthz")
async def healthz() -> Response:
    """The process answers."""
    return json_answer({"status": "ok"})


@router.get("/readyz", responses={503: {"description": "Nothing should be sent now; the reason is in the document."}})
async def readyz(request: Request) -> Response:
    """Events can be taken in."""
    reason = collector_of(request).why_not_ready()
    if reason:
        raise Overloaded(reason)
    return json_answer({"status": "ready"})


@router.get("/v1/status")
def status(request: Request) -> Response:
    """Counts, queue, last publication."""
    return json_answer(collector_of(request).counts())


@router.get("/v1/schema")
async def schema() -> Response:
    """JSON Schema of the native event."""
    return json_answer(native_schema())


def _items_of(content_type: str, body: bytes, *, limit: int) -> Sequence[Item]:
    as_batch = EVENT_TYPES.get(bare_type(content_type))
    if as_batch is not None:
        return read_cloud_events(body, as_batch=as_batch, limit=limit)
    as_lines = holds_lines(content_type)
    events = read_events(body, as_lines=as_lines, limit=limit, now=utc_now())
    counts = [] if as_lines else read_counts(body)
    return [*events, *counts] if counts else events


async def _show_error(request: Request, error: Exception) -> Response:
    """Our errors as their documents; what may be tried again says when."""
    if not isinstance(error, CowpathError):
        error = CowpathError(f"{type(error).__name__}: {error}")
    wait_s = error.retry_after_s if isinstance(error, Overloaded | RateLimited) else 1
    retry = {"Retry-After": str(wait_s)} if error.http_status in (429, 503) else {}
    return _as_document(request, error, status=error.http_status, headers=retry)


def _as_document(request: Request, error: CowpathError, *, status: int, headers: dict[str, str]) -> Response:
    """The error in the words of whoever asks: exporters read google.rpc.Status."""
    body, media_type = error_body(error, request.url.path, status, request.headers.get("content-type", ""))
    return Response(body, status, headers, media_type=media_type)


async def _show_invalid(request: Request, error: Exception) -> Response:
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    words = "; ".join(f"{'.'.join(str(part) for part in p['loc'])}: {p['msg']}" for p in problems)
    return await _show_error(request, InputError(words or str(error)))


async def _show_http(request: Request, error: Exception) -> Response:
    """No such path or method, in the same form as every other error."""
    if not isinstance(error, HTTPException):
        raise error
    problem = InputError(f"{request.method} {request.url.path}: {error.detail}", suggestions=["GET /openapi.json"])
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_methods_of(request))
    return _as_document(request, problem, status=error.status_code, headers=headers)


def _methods_of(request: Request) -> list[str]:
    """What a path takes, over all its routes; the framework would name those of the first only."""
    routes = [route for route in _single(request.app.routes) if route.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in routes for method in getattr(route, "methods", None) or ()})


def _single(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """The routes themselves, also those of routers that the framework keeps whole."""
    for route in routes:
        router: APIRouter | None = getattr(route, "original_router", None)
        if router is None:
            yield route
        else:
            yield from _single(router.routes)


def _openapi_of(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """FastAPI's document, completed by the schemas of what msgspec decodes and encodes."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(title=app.title, version=app.version, routes=app.routes)
            schemas = document.setdefault("components", {}).setdefault("schemas", {})
            schemas.update(component_schemas() | components())
            app.openapi_schema = document
        return app.openapi_schema

    return openapi
