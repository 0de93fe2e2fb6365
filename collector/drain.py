"""The drain: journal -> live.duckdb, each event_id exactly once, on a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from datetime import datetime

import msgspec
import pyarrow as pa

from collector.journal import Journal
from collector.segments import Batch, Position, read, remove_covered
from cowpath.errors import StoreDamaged
from cowpath.event import Event, Rejected
from cowpath.store import Store, read_sql

log = logging.getLogger("cowpath.collector")

LINGER_S = 0.1
"""How long a batch may grow: a commit costs the same for one row as for a thousand."""

QUIET_S = 2.0
"""After so long without news the write-ahead log is folded into the file."""

CHECKPOINT_SEGMENTS = 4
"""Without a quiet moment, fold after this many journal segments."""

STAMP = pa.timestamp("us")

EVENT_COLUMNS = pa.schema(
    [
        ("event_id", pa.string()),
        ("session_id", pa.string()),
        ("stream_id", pa.string()),
        ("seq", pa.int64()),
        ("skill", pa.string()),
        ("called_at", STAMP),
        ("stored_at", STAMP),
        ("kind", pa.string()),
        ("trigger", pa.string()),
        ("outcome", pa.string()),
        ("duration_ms", pa.float64()),
        ("batch_id", pa.string()),
        ("actor", pa.string()),
        ("agent", pa.string()),
        ("agent_version", pa.string()),
        ("source", pa.string()),
        ("confidence", pa.float64()),
        ("suggested_by", pa.string()),
        ("clock", pa.string()),
        ("extra", pa.string()),
        ("arrival", pa.int64()),
    ]
)

REJECTED_COLUMNS = pa.schema(
    [
        ("code", pa.string()),
        ("field", pa.string()),
        ("message", pa.string()),
        ("event_id", pa.string()),
        ("source", pa.string()),
        ("stored_at", STAMP),
        ("body", pa.string()),
        ("arrival", pa.int64()),
    ]
)


class Drain:
    """Moves the journal into the store until closed. A failure is shown and tried again, never skipped."""

    def __init__(self, store: Store, journal: Journal, *, batch_events: int) -> None:
        self.position = drained_position(store)
        self.stored = 0
        self.duplicates = 0
        self.broken = 0
        self.failure = ""
        self._store = store
        self._journal = journal
        self._batch_events = batch_events
        self._checkpointed = Position()
        self._hurry = threading.Event()
        self._deadline: float | None = None
        self._moved = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="cowpath-drain", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive() and not self.failure

    def flush(self) -> None:
        """Return when everything acknowledged before the call is in the store."""
        end = self._journal.end
        self._hurry.set()
        with self._moved:
            while self.position < end:
                if not self.alive:
                    raise StoreDamaged(f"the journal cannot be moved into live.duckdb: {self.failure or 'stopped'}")
                self._moved.wait(timeout=1.0)

    def close(self, *, grace_s: float) -> None:
        """Move what the closed journal still holds, for at most ``grace_s``; the rest is replayed next time."""
        self._deadline = time.monotonic() + grace_s
        self._hurry.set()
        self._thread.join()
        self._fold()
        self._remove_covered()

    def _run(self) -> None:
        pause_s = 0.0
        while not self._finished():
            try:
                self._step()
                self.failure, pause_s = "", 0.0
            # Whatever it is (a full disk, a lost file): say so, keep the position, try again.
            except Exception as error:
                log.exception("the drain failed and will try again")
                self.failure, pause_s = str(error), min(30.0, 2 * pause_s + 0.5)
                self._wait(pause_s)

    def _finished(self) -> bool:
        if self._deadline is None:
            return False
        return self.position >= self._journal.end or time.monotonic() > self._deadline

    def _wait(self, seconds: float) -> None:
        with self._moved:
            self._moved.notify_all()
            self._moved.wait_for(lambda: self._deadline is not None, timeout=seconds)

    def _step(self) -> None:
        end = self._journal.wait_beyond(self.position, timeout_s=QUIET_S)
        if end <= self.position:
            self._fold()
            return
        self._hurry.wait(LINGER_S)
        self._hurry.clear()
        while self.position < self._journal.end and not self._finished():
            self._move_one_batch(self._journal.end)
        if self.position.segment - self._checkpointed.segment >= CHECKPOINT_SEGMENTS:
            self._fold()

    def _move_one_batch(self, end: Position) -> None:
        batch = read(self._journal.folder, self.position, end, limit=self._batch_events)
        if batch.end <= self.position:
            # Segments up to ``end`` are gone; nothing is left to move there.
            batch.end = end
        stored = insert(self._store, batch)
        self.stored += stored
        self.duplicates += len(batch.events) - stored
        self.broken += batch.broken
        with self._moved:
            self.position = batch.end
            self._moved.notify_all()

    def _fold(self) -> None:
        """Checkpoint where there is something to fold, then delete the segments it covers."""
        if self.position > self._checkpointed and self._store.checkpoint():
            self._checkpointed = self.position
            self._remove_covered()

    def _remove_covered(self) -> None:
        remove_covered(self._journal.folder, self._checkpointed, keep=self._journal.open_segment)


def insert(store: Store, batch: Batch) -> int:
    """Insert a batch and its end position in one transaction; how many events were new."""
    events, rejected = event_table(batch.events), rejected_table(batch.rejected)
    stored = 0
    with store.transaction():
        if batch.events:
            with store.visible("event_batch", events):
                stored = store.rows(read_sql("drain/events"), _times(batch.events))[0][0]
        if batch.rejected:
            with store.visible("rejected_batch", rejected):
                store.run("drain/rejected")
        store.run("drain/position", segment=batch.end.segment, offset=batch.end.offset)
    return int(stored)


def drained_position(store: Store) -> Position:
    """How far a store has drained the journal."""
    ((segment, offset),) = store.rows("select segment, position from drained")
    return Position(segment, offset)


def _times(events: Sequence[tuple[int, Event]]) -> dict[str, object]:
    """The stretches of time in which a repeat of these events can lie; flagged clocks apart, or one would span all."""
    known = [_naive(e.called_at) for _, e in events if e.called_at and e.clock == "ok"]
    ancient = [_naive(e.called_at) for _, e in events if e.called_at and e.clock == "ancient"]
    future = [_naive(e.called_at) for _, e in events if e.called_at and e.clock == "future"]
    return {
        "first_called_at": min(known, default=None),
        "last_called_at": max(known, default=None),
        "last_ancient": max(ancient, default=None),
        "first_future": min(future, default=None),
        "some_untimed": any(e.called_at is None for _, e in events),
    }


def _naive(moment: datetime) -> datetime:
    """UTC without a zone, as the table keeps it; what is taken in is always UTC."""
    return moment.replace(tzinfo=None)


def event_table(events: Sequence[tuple[int, Event]]) -> pa.Table:
    """Events as the table's columns."""
    columns = {name: [getattr(e, name) for _, e in events] for name in EVENT_COLUMNS.names if name != "arrival"}
    columns["extra"] = [msgspec.json.encode(extra).decode() for extra in columns["extra"]]
    return _table(columns | {"arrival": [arrival for arrival, _ in events]}, EVENT_COLUMNS)


def rejected_table(rejected: Sequence[tuple[int, Rejected]]) -> pa.Table:
    """Dead letters as the table's columns."""
    columns = {name: [getattr(r, name) for _, r in rejected] for name in REJECTED_COLUMNS.names if name != "arrival"}
    return _table(columns | {"arrival": [arrival for arrival, _ in rejected]}, REJECTED_COLUMNS)


def _table(columns: dict[str, list[object]], schema: pa.Schema) -> pa.Table:
    return pa.table(columns, schema=schema)
