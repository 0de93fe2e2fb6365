"""OTLP over HTTP: what agents export anyway. 200 means on disk; all that is no skill call is taken and passed over."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from collector.exchange import THREAD_BYTES, collector_of, plain_body_of, settings_of
from collector.hooks.app import ACTOR_HEADER
from collector.hooks.payload import Known
from collector.otlp.answer import response_to
from collector.otlp.export import JSON, LOGS, METRICS, PROTOBUF, TRACES, Export, is_protobuf, read_body
from collector.receipt import Receipt
from cowpath.errors import InputError, TooLarge, Undecodable, UnsupportedMedia
from cowpath.event import utc_now

router = APIRouter()

DOOR = "otlp"
"""Where what tells of no skill is counted."""

LARGE = ThreadPoolExecutor(max_workers=2, thread_name_prefix="cowpath-otlp")
"""Reads larger bodies, two at a time: a body takes ten times its size while it is read."""

BINARY = {"type": "string", "format": "binary"}


def _described(rejected: str) -> dict[str, Any]:
    """What the OpenAPI document says of an export."""
    partial_success = {
        "type": "object",
        "properties": {rejected: {"type": "string"}, "errorMessage": {"type": "string"}},
    }
    answer = {"type": "object", "properties": {"partialSuccess": partial_success}, "additionalProperties": False}
    status = {
        "type": "object",
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
        "required": ["code", "message"],
    }
    errors = {
        400: "Not the message that this route takes; do not send it again.",
        413: "The body, before or after decompression, is over its limit.",
        415: "Neither protobuf nor JSON, or an encoding that is not taken.",
        429: "Too many requests; Retry-After says when to try again.",
        503: "Nothing of it was stored, try again; see Retry-After.",
    }
    return {
        "openapi_extra": {
            "requestBody": {
                "required": True,
                "content": {JSON: {"schema": {"type": "object"}}, PROTOBUF: {"schema": BINARY}},
            }
        },
        "responses": {
            200: {
                "description": "On disk. partialSuccess, unset otherwise, says what was refused for good.",
                "content": {JSON: {"schema": answer}, PROTOBUF: {"schema": BINARY}},
            }
        }
        | {
            code: {
                "description": f"google.rpc.Status. {words}",
                "content": {JSON: {"schema": status}, PROTOBUF: {"schema": BINARY}},
            }
            for code, words in errors.items()
        },
    }


@router.post("/v1/logs", **_described("rejectedLogRecords"))
async def export_logs(request: Request) -> Response:
    """Take in an ExportLogsServiceRequest."""
    return await _export(LOGS, request)


@router.post("/v1/traces", **_described("rejectedSpans"))
async def export_traces(request: Request) -> Response:
    """Take in an ExportTraceServiceRequest."""
    return await _export(TRACES, request)


@router.post("/v1/metrics", **_described("rejectedDataPoints"))
async def export_metrics(request: Request) -> Response:
    """Take in an ExportMetricsServiceRequest."""
    return await _export(METRICS, request)


async def _export(export: Export, request: Request) -> Response:
    protobuf = is_protobuf(request.headers.get("content-type", ""))
    body = await _body_of(request)
    known = Known(now=utc_now(), actor=request.headers.get(ACTOR_HEADER) or None)
    read = partial(read_body, export, body, known, protobuf=protobuf)
    found = await asyncio.get_running_loop().run_in_executor(LARGE, read) if len(body) > THREAD_BYTES else read()
    collector = collector_of(request)
    receipt = await collector.take_in_async(found.items) if found.items else Receipt()
    collector.ignored.add(DOOR, found.ignored)
    return response_to(export, found, receipt, protobuf=protobuf)


async def _body_of(request: Request) -> bytes:
    try:
        return await plain_body_of(request, limit=settings_of(request).max_otlp_bytes)
    except (TooLarge, UnsupportedMedia):
        raise
    except InputError as error:
        raise Undecodable(error.message) from error
