"""Completions: what a later copy of an event knows that the kept one does not.

One call is often seen twice, by a hook when it begins and by a trace when it ended. The first copy
decides what happened where in the order; a later one may only fill what is still unknown. The first
known value of a field stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cowpath.event import Event

FIELDS = ("trigger", "outcome", "duration_ms", "actor", "agent", "agent_version", "suggested_by", "batch_id")
"""What a later copy may complete. Never the order, the skill or the session; a batch that becomes known late
takes an order away that was never there (a call's own hook comes before the hook of its parallel batch)."""

COLUMNS = pa.schema(
    [
        ("event_id", pa.string()),
        ("completes", pa.int64()),
        ("trigger", pa.string()),
        ("outcome", pa.string()),
        ("duration_ms", pa.float64()),
        ("actor", pa.string()),
        ("agent", pa.string()),
        ("agent_version", pa.string()),
        ("suggested_by", pa.string()),
        ("batch_id", pa.string()),
        ("source", pa.string()),
        ("stored_at", pa.timestamp("us")),
        ("arrival", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Original:
    """A kept event as far as it can be completed: what is known by now, and who saw it."""

    arrival: int
    known: dict[str, Any]
    sources: set[str]


def completions(repeats: Iterable[tuple[int, Event]], originals: dict[str, Original]) -> list[dict[str, Any]]:
    """A row for each repeat that carries something new, in the order of arrival."""
    rows = []
    for arrival, event in repeats:
        original = originals[event.event_id]
        news = {
            name: value for name in FIELDS if name not in original.known and is_known(value := getattr(event, name))
        }
        if news or event.source not in original.sources:
            original.known.update(news)
            original.sources.add(event.source)
            rows.append(_row(event, original, arrival) | news)
    return rows


def originals_of(kept: Iterable[Sequence[Any]]) -> dict[str, Original]:
    """Rows of drain/originals, by event id; of doubles the first."""
    found: dict[str, Original] = {}
    for event_id, arrival, *values, source in sorted(kept, key=lambda row: row[1]):
        found.setdefault(event_id, Original(arrival, _known(values), {source}))
    return found


def add_earlier(originals: dict[str, Original], rows: Iterable[Sequence[Any]]) -> None:
    """Note in the originals what earlier copies completed: rows of drain/earlier."""
    by_arrival = {original.arrival: original for original in originals.values()}
    for completes, *values, source in rows:
        original = by_arrival[completes]
        original.known.update(_known(values))
        original.sources.add(source)


def is_known(value: object) -> bool:
    return value is not None and value != "unknown"


def _known(values: Sequence[Any]) -> dict[str, Any]:
    return {name: value for name, value in zip(FIELDS, values, strict=True) if is_known(value)}


def _row(event: Event, original: Original, arrival: int) -> dict[str, Any]:
    return {
        "event_id": event.event_id,
        "completes": original.arrival,
        "source": event.source,
        "stored_at": event.stored_at,
        "arrival": arrival,
    }
