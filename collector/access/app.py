"""Erasure over HTTP: parse, call, answer."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request, Response

from collector.erase import erase, erase_older
from collector.service import Collector

router = APIRouter()

DryRun = Annotated[bool, Query(description="Only count what would go.")]

WHAT_WENT: dict[int | str, dict[str, Any]] = {
    200: {"description": "What went where; `learned` is `stale` where a mining run must learn anew without it."}
}


@router.delete("/v1/subjects/actor/{actor:path}", responses=WHAT_WENT)
def erase_actor(request: Request, actor: str, dry_run: DryRun = False) -> Response:
    """Erase everything of an actor, as its agents named it, and keep it away."""
    return _json(erase(_collector(request), "actor", actor, dry_run=dry_run))


@router.delete("/v1/subjects/session/{session_id:path}", responses=WHAT_WENT)
def erase_session(request: Request, session_id: str, dry_run: DryRun = False) -> Response:
    """Erase everything of a session, and keep it away."""
    return _json(erase(_collector(request), "session", session_id, dry_run=dry_run))


@router.delete("/v1/events", responses=WHAT_WENT)
def erase_old(
    request: Request, older_than_days: Annotated[float, Query(gt=0, le=36_500)], dry_run: DryRun = False
) -> Response:
    """Remove events and dead letters older than so many days."""
    return _json(erase_older(_collector(request), older_than_days, dry_run=dry_run))


def _collector(request: Request) -> Collector:
    collector: Collector = request.app.state.collector
    return collector


def _json(document: object) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")
