"""A request in, an answer out: what every router of the collector shares."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from collector.body import too_large, unpacked
from collector.service import Collector
from cowpath.settings import Settings

THREAD_BYTES = 256 * 1024
"""A larger body is read on another thread, so that small requests do not wait for it."""


async def body_of(request: Request, *, limit: int) -> bytes:
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


async def plain_body_of(request: Request, *, limit: int | None = None) -> bytes:
    """The body without its content encoding; the limit, by default ``max_body_bytes``, holds before and after."""
    limit = limit or settings_of(request).max_body_bytes
    body, encoding = await body_of(request, limit=limit), request.headers.get("content-encoding", "")
    if not encoding:
        return body
    return await asyncio.to_thread(unpacked, body, encoding, limit=limit)


def settings_of(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


def collector_of(request: Request) -> Collector:
    collector: Collector = request.app.state.collector
    return collector


def json_answer(document: object, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(document), status, headers, media_type="application/json")
