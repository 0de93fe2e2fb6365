"""The hooks over HTTP. An agent waits for the answer and reads it, so it is ``{}`` for all that can be read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from collector.exchange import collector_of, json_answer, plain_body_of, settings_of
from collector.hooks import claude_code, codex, copilot, cursor, gemini, opencode
from collector.hooks.payload import Adapter, Item, Known, Payload, event_name, payloads_of
from collector.schemas import ERRORS
from cowpath.errors import CowpathError
from cowpath.event import Rejected, utc_now
from cowpath.skill import Catalogue, read_catalogue

router = APIRouter()

ACTOR_HEADER = "X-Cowpath-Actor"
"""Who the agent works for; payloads do not say it. Kept as a keyed hash only."""

Advise = Callable[[str, Payload, Sequence[Item]], Awaitable[dict[str, Any]]]
"""Harness, payload and the events it told of -> the body of the answer. The app's state holds one, or none does."""

READERS: dict[str, Adapter] = {
    "claude-code": claude_code.read,
    "codex": codex.read,
    "cursor": cursor.read,
    "gemini": gemini.read,
    "copilot": copilot.read,
    "opencode": opencode.read,
}
"""Harness, as its route names it -> the adapter of its payloads."""

PAYLOAD = {
    "requestBody": {
        "required": True,
        "description": "A payload as the harness makes it, or a list of them; all JSON is taken, whatever its type",
        "content": {"application/json": {"schema": {}}},
    }
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Read; what told of a skill is on disk. Empty, or what the harness may show its agent.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    },
    **ERRORS,
    422: ERRORS[422] | {"description": "Not JSON at all."},
}


@router.post("/v1/hooks/claude-code", openapi_extra=PAYLOAD, responses=ANSWERS)
async def claude_code_hook(request: Request) -> Response:
    """Take in a payload of Claude Code."""
    return await _take_in(request, "claude-code")


@router.post("/v1/hooks/codex", openapi_extra=PAYLOAD, responses=ANSWERS)
async def codex_hook(request: Request) -> Response:
    """Take in a payload of Codex."""
    return await _take_in(request, "codex")


@router.post("/v1/hooks/cursor", openapi_extra=PAYLOAD, responses=ANSWERS)
async def cursor_hook(request: Request) -> Response:
    """Take in a payload of Cursor."""
    return await _take_in(request, "cursor")


@router.post("/v1/hooks/gemini", openapi_extra=PAYLOAD, responses=ANSWERS)
async def gemini_hook(request: Request) -> Response:
    """Take in a payload of Gemini CLI."""
    return await _take_in(request, "gemini")


@router.post("/v1/hooks/copilot", openapi_extra=PAYLOAD, responses=ANSWERS)
async def copilot_hook(request: Request) -> Response:
    """Take in a payload of GitHub Copilot."""
    return await _take_in(request, "copilot")


@router.post("/v1/hooks/opencode", openapi_extra=PAYLOAD, responses=ANSWERS)
async def opencode_hook(request: Request) -> Response:
    """Take in a payload of OpenCode."""
    return await _take_in(request, "opencode")


async def _take_in(request: Request, harness: str) -> Response:
    """Overload is a 503, which no harness stops for: so a command hook beside it knows that it must spool."""
    body = await plain_body_of(request)
    known, collector = _known(request), collector_of(request)
    payloads = payloads_of(body, limit=settings_of(request).max_batch_events)
    items: list[Item] = []
    ignored: list[str] = []
    for payload in payloads:
        told = [payload] if isinstance(payload, Rejected) else READERS[harness](payload, known)
        items += told
        if not told:
            ignored.append(event_name(payload))
    if items:
        await collector.take_in_async(items)
    collector.ignored.add(harness, ignored)
    return json_answer(await _advice(request, harness, payloads, items))


async def _advice(request: Request, harness: str, payloads: Sequence[object], items: Sequence[Item]) -> dict[str, Any]:
    """What the answer says beside "taken": of one payload only, as a list is a back-fill that nobody waits for."""
    advise: Advise | None = getattr(request.app.state, "advise", None)
    if advise is None or not items or len(payloads) != 1 or not isinstance(payloads[0], Mapping):
        return {}
    return await advise(harness, payloads[0], items)


def _known(request: Request) -> Known:
    catalogue = _catalogue(collector_of(request).home.catalogue)
    names = catalogue.alias_of
    return Known(
        now=utc_now(),
        is_skill=names.__contains__,
        has_catalogue=bool(names),
        actor=request.headers.get(ACTOR_HEADER) or None,
    )


def _catalogue(path: Path) -> Catalogue:
    """The catalogue as it is now; read again only when the file has changed."""
    try:
        stat = path.stat()
    except OSError:
        return Catalogue()
    return _read(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _read(path: Path, changed_ns: int, size: int) -> Catalogue:
    try:
        return read_catalogue(path)
    except (CowpathError, OSError):
        # A broken catalogue is the synchronisation's to tell; without one, calls are still taken.
        return Catalogue()
