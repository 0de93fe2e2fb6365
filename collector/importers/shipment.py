"""A shipment: the events of one import on their way through the door, in batches, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from collector.counted import Counted, Item
from collector.receipt import Receipt
from cowpath.event import Event

BATCH_EVENTS = 5_000


class Sink(Protocol):
    """Where events go: the running collector's door, or a collector opened for this."""

    def send(self, events: Sequence[Item], /) -> Receipt: ...


class Shipment:
    """Collects events and sends them in batches; ``document`` says what became of them."""

    def __init__(self, sink: Sink, *, batch_events: int = BATCH_EVENTS) -> None:
        self._sink = sink
        self._batch_events = batch_events
        self._waiting: list[Item] = []
        self.calls = self._counted = 0
        self._counts: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._sessions: set[str] = set()
        self._streams: set[tuple[str, str]] = set()
        self._skills: set[str] = set()

    def add(self, item: Item) -> None:
        if isinstance(item, Event):
            self.calls += 1
            self._sessions.add(item.session_id)
            self._streams.add((item.session_id, item.stream_id))
            self._skills.add(item.skill)
        elif isinstance(item, Counted):
            self._counted += 1
        self._waiting.append(item)
        if len(self._waiting) >= self._batch_events:
            self.send()

    def send(self) -> None:
        """Send what waits; when this returns it is on disk."""
        if not self._waiting:
            return
        receipt = self._sink.send(self._waiting)
        self._counts.update(accepted=receipt.accepted, duplicates=receipt.duplicates, rejected=receipt.rejected)
        self._reasons.update(error.code for error in receipt.errors)
        # A receipt lists a bounded number of refusals and counts them all.
        self._reasons["not_listed"] += receipt.rejected - len(receipt.errors)
        self._waiting = []

    def document(self) -> dict[str, Any]:
        """The counts: of the ``calls`` read, each was accepted, known already, or rejected for a reason."""
        return {
            "calls": self.calls,
            "accepted": self._counts["accepted"],
            "duplicates": self._counts["duplicates"],
            "rejected": self._counts["rejected"],
            "reasons": {code: n for code, n in sorted(self._reasons.items()) if n},
            "skills": len(self._skills),
            "sessions": len(self._sessions),
            "streams": len(self._streams),
            **({"counts": self._counted} if self._counted else {}),
        }
