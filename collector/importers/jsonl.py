"""JSON lines -> events: one call a line, ``session_id, seq, skill_id, ts?, actor?, outcome?, group?, ...``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from collector import wire
from collector.importers.shipment import Shipment, Sink
from cowpath.event import Event, Rejected, derived_id

SOURCE = "jsonl"
UNSAID = "http"
"""The source of an event that names none."""

MOST_ITEMS = 1_000
"""Most items in one line: more than one only where the line ends are of a kind that file reading does not know."""


def import_jsonl(lines: Iterable[bytes], sink: Sink) -> dict[str, Any]:
    """Send every line as an event, or as a dead letter that says what is wrong with it; returns the counts."""
    shipment = Shipment(sink)
    for item in read_events(lines):
        shipment.add(item)
    shipment.send()
    return {"files": 1, **shipment.document()}


def read_events(lines: Iterable[bytes], *, source: str = SOURCE) -> Iterator[Event | Rejected]:
    """An event or a rejection for every line that is not blank, in order, read as the collector reads its posts.

    A line without an id of its own gets one derived from its session, stream, seq and skill, so the same
    file read again gives the same ids. Without ``seq`` it is told apart by its time and its place among
    equal lines.
    """
    equals: Counter[tuple[str, ...]] = Counter()
    for number, line in enumerate(lines, start=1):
        for item in wire.read_events(line, as_lines=True, limit=MOST_ITEMS):
            if isinstance(item, Rejected):
                message = f"line {number}: {item.message}"
                yield msgspec.structs.replace(item, message=message, index=number - 1, source=source)
            else:
                yield _ours(item, equals, source)


def _ours(event: Event, equals: Counter[tuple[str, ...]], source: str) -> Event:
    """The event with an id for ever, and this source where it names none."""
    source = source if event.source == UNSAID else event.source
    return msgspec.structs.replace(event, event_id=event.event_id or _id(event, equals), source=source)


def _id(event: Event, equals: Counter[tuple[str, ...]]) -> str:
    if event.seq is not None:
        return derived_id(SOURCE, event.session_id, event.stream_id, event.seq, event.skill)
    time = event.called_at.isoformat() if event.called_at else ""
    key = (event.session_id, event.stream_id, time, event.skill)
    equals[key] += 1
    return derived_id(SOURCE, *key, equals[key])
