"""The collector's HTTP face: parse, call, answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException

from collector.analysts.app import CountsAnswers, components
from collector.analysts.app import router as analysts_router
from collector.analysts.numbers import Answers
from collector.body import holds_lines, too_large, unpacked
from collector.schemas import ONE_OR_MANY, component_schemas, native_schema, ref
from collector.service import Collector
from collector.wire import Item, read_events
from cowpath import __version__
from cowpath.errors import CowpathError, InputError, Overloaded, RateLimited
from cowpath.settings import Settings

THREAD_BYTES = 256 * 1024
"""A larger body is read on another thread, so that small requests do not wait for it."""

router = APIRouter()


def create_app(settings: Settings, collector: Collector | None = None) -> FastAPI:
    """The collector over HTTP. Without a collector given, the app opens the home's own and closes it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        opened = None if collector else await asyncio.to_thread(Collector, settings)
        app.state.collector = collector or opened
        yield
        if opened:
            await asyncio.to_thread(opened.close)

    app = FastAPI(title="cowpath", version=__version__, lifespan=lifespan)
    app.state.settings = settings
    app.state.answers = Answers()
    app.include_router(router)
    app.include_router(analysts_router)
    app.add_middleware(CountsAnswers, answers=app.state.answers)
    app.add_exception_handler(CowpathError, _show_error)
    app.add_exception_handler(Exception, _show_error)
    app.add_exception_handler(RequestValidationError, _show_invalid)
    app.add_exception_handler(HTTPException, _show_http)
    app.openapi = _openapi_of(app)  # type: ignore[method-assign]  # the documented way to complete the document
    return app


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": words,
        "content": {"application/json": {"schema": ref("ErrorDocument")}},
    }
    for status, words in {
        413: "The body, before or after decompression, or the batch is over its limit.",
        415: "A content type or encoding that is not taken.",
        422: "Not JSON at all. A bad item among good ones is no error: the receipt names it.",
        429: "Too many requests; Retry-After says when to try again.",
        503: "Too much waits for the disk, or the collector is stopping; nothing was stored; see Retry-After.",
    }.items()
}


@router.post(
    "/v1/events",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": ONE_OR_MANY}}
            | {"application/x-ndjson": {"schema": ref("NativeEvent")}},
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
    """Take in one event, a batch, a list, or NDJSON; plain or gzip."""
    settings: Settings = request.app.state.settings
    body = await _body_of(request, limit=settings.max_body_bytes)
    in_thread = len(body) > THREAD_BYTES or "content-encoding" in request.headers
    items = await asyncio.to_thread(_items_of, request, body) if in_thread else _items_of(request, body)
    return _json(await _collector(request).take_in_async(items))


@router.post("/v1/publish", responses={200: {"description": "usage.duckdb holds everything acknowledged so far."}})
def publish(request: Request) -> Response:
    """Write usage.duckdb anew, now."""
    collector = _collector(request)
    collector.publish()
    return _json({"published": str(collector.home.usage)})


@router.get("/healthz")
async def healthz() -> Response:
    """The process answers."""
    return _json({"status": "ok"})


@router.get("/readyz", responses={503: {"description": "Nothing should be sent now; the reason is in the document."}})
async def readyz(request: Request) -> Response:
    """Events can be taken in."""
    reason = _collector(request).why_not_ready()
    if reason:
        raise Overloaded(reason)
    return _json({"status": "ready"})


@router.get("/v1/status")
def status(request: Request) -> Response:
    """Counts, queue, last publication."""
    return _json(_collector(request).counts())


@router.get("/v1/schema")
async def schema() -> Response:
    """JSON Schema of the native event."""
    return _json(native_schema())


async def _body_of(request: Request, *, limit: int) -> bytes:
    """The raw body; refused as soon as it is known to be too large."""
    if int(request.headers.get("content-length") or 0) > limit:
        raise too_large(limit)
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


def _items_of(request: Request, body: bytes) -> list[Item]:
    settings: Settings = request.app.state.settings
    as_lines = holds_lines(request.headers.get("content-type", ""))
    plain = unpacked(body, request.headers.get("content-encoding", ""), limit=settings.max_body_bytes)
    return read_events(plain, as_lines=as_lines, limit=settings.max_batch_events)


def _collector(request: Request) -> Collector:
    collector: Collector = request.app.state.collector
    return collector


def _json(document: object, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(document), status, headers, media_type="application/json")


async def _show_error(request: Request, error: Exception) -> Response:
    """Our errors as their documents; what may be tried again says when."""
    if not isinstance(error, CowpathError):
        error = CowpathError(f"{type(error).__name__}: {error}")
    wait_s = error.retry_after_s if isinstance(error, Overloaded | RateLimited) else 1
    retry = {"Retry-After": str(wait_s)} if error.http_status in (429, 503) else {}
    return _json(error.document(), status=error.http_status, headers=retry)


async def _show_invalid(request: Request, error: Exception) -> Response:
    problems = error.errors() if isinstance(error, RequestValidationError) else []
    words = "; ".join(f"{'.'.join(str(part) for part in p['loc'])}: {p['msg']}" for p in problems)
    return await _show_error(request, InputError(words or str(error)))


async def _show_http(request: Request, error: Exception) -> Response:
    """No such path or method, in the same form as every other error."""
    if not isinstance(error, HTTPException):
        raise error
    document = InputError(f"{request.method} {request.url.path}: {error.detail}", suggestions=["GET /docs"]).document()
    return _json(document, status=error.status_code, headers=dict(error.headers or {}))


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
