"""What an installation holds, in numbers; the same document whether its collector runs or not."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from collector.segments import numbers, segment_path
from cowpath.edge import LAYERS, Provenance, read_layer
from cowpath.errors import BadFile
from cowpath.event import utc_now
from cowpath.home import Home, is_open_to_others
from cowpath.store import Store

QUICK_S = 0.05
"""A count that takes no longer is made for whoever asks."""

SPARING = 20
"""A longer one is made after so many times its length again: whoever asks all the time gets a twentieth of it."""


class Held:
    """What a live store holds, for a collector that is asked again and again: a large store is not counted each time.

    ``counted_s_ago`` tells how old the numbers are.
    """

    def __init__(self, cursor: Callable[[], Store]) -> None:
        self._cursor = cursor
        self._lock = Lock()
        self._numbers: dict[str, Any] = {}
        self._counted_at = self._took_s = 0.0

    def now(self) -> dict[str, Any]:
        with self._lock:
            age_s = time.monotonic() - self._counted_at
            if self._took_s <= QUICK_S or age_s > SPARING * self._took_s:
                self._count()
                age_s = 0.0
            return self._numbers | {"counted_s_ago": round(age_s, 1)}

    def _count(self) -> None:
        began = time.monotonic()
        with self._cursor() as store:
            self._numbers = held(store)
        self._counted_at = time.monotonic()
        self._took_s = self._counted_at - began


def held(store: Store) -> dict[str, Any]:
    """What a live store holds."""
    ((events, sessions, skills),) = store.rows(
        "select count(*), approx_count_distinct(session_id), approx_count_distinct(skill) from events"
    )
    rejected = store.rows("select code, count(*) from rejected group by code order by code")
    return {
        "events": events,
        "about_sessions": sessions,
        "about_skills": skills,
        "rejected": dict(rejected),
    }


def at_rest(home: Home) -> dict[str, Any]:
    """What the files of a home say; creates nothing and needs no lock."""
    return {
        "home": str(home.root),
        "open_to_others": is_open_to_others(home.root),
        "journal_bytes": sum(segment_path(home.journal, n).stat().st_size for n in numbers(home.journal)),
        "published": published(home.usage),
        "edges": {layer: _edges(home, layer) for layer in LAYERS},
    }


def _edges(home: Home, layer: Provenance) -> int | None:
    """How many edges a layer holds; None where its file cannot be read."""
    try:
        return len(read_layer(home.edges, layer))
    except BadFile:
        return None


def published(usage: Path) -> dict[str, Any] | None:
    """When usage.duckdb was written, or None where it never was."""
    if not usage.exists():
        return None
    stat = usage.stat()
    return {"bytes": stat.st_size, "age_s": round(utc_now().timestamp() - stat.st_mtime, 1)}


def of_stopped(home: Home) -> dict[str, Any]:
    """The status of a home whose collector is not running."""
    kept: dict[str, Any] = {"events": 0, "about_sessions": 0, "about_skills": 0, "rejected": {}}
    if home.live.exists():
        with Store.open(home.live, read_only=True) as store:
            kept = held(store)
    return {"running": False, **at_rest(home), **kept}
