"""The drain: journal -> live.duckdb, each event_id exactly once, on a thread of its own."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import astuple

from collector.completions import COLUMNS as COMPLETION_COLUMNS
from collector.completions import Original, add_earlier, completions, originals_of
from collector.counted import Counted
from collector.erased import Erased
from collector.journal import Journal
from collector.known_ids import Hashes, KnownIds
from collector.segments import Batch, Position, remove_covered
from cowpath.errors import StoreDamaged
from cowpath.event import Event, Rejected
from cowpath.store import Store, read_sql

log = logging.getLogger("cowpath.collector")

LINGER_S = 0.2
"""How long a batch may grow: a commit costs much the same for one row as for a thousand, and an fsync of the journal
waits for that of a commit."""

LOOK_S = 0.05
"""How often it is looked whether the batch is large already."""

LARGE_BYTES = 2**20
"""A batch of this size waits no longer: answers wait beside a long commit."""

NICENESS = 10
"""Who waits for an answer goes first; the drain has time. A thread has a priority of its own on Linux only."""

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

COUNTED_COLUMNS = pa.schema(
    [
        ("count_id", pa.string()),
        ("series", pa.string()),
        ("skill", pa.string()),
        ("n", pa.int64()),
        ("cumulative", pa.bool_()),
        ("began_at", STAMP),
        ("counted_at", STAMP),
        ("stored_at", STAMP),
        ("trigger", pa.string()),
        ("outcome", pa.string()),
        ("actor", pa.string()),
        ("agent", pa.string()),
        ("agent_version", pa.string()),
        ("source", pa.string()),
        ("arrival", pa.int64()),
    ]
)


Arrived = Sequence[tuple[int, Event]]
"""Events with their places in the journal."""

NO_HASHES: Hashes = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True)
class Kept:
    """What of a batch was new: events, completions of older ones, and the hashes to remember."""

    stored: int = 0
    completed: int = 0
    counted: int = 0
    hashes: Hashes = field(default_factory=lambda: NO_HASHES)


class Drain:
    """Moves the journal into the store until closed. A failure is shown and tried again, never skipped."""

    def __init__(self, store: Store, journal: Journal, *, batch_events: int, erased: Erased | None = None) -> None:
        self.position = drained_position(store)
        self.stored = 0
        self.duplicates = 0
        self.completed = 0
        self.broken = 0
        self.failure = ""
        self._store = store
        self._journal = journal
        self._erased = erased
        self._batch_events = batch_events
        # Before the first request: beside a full load this takes several times as long, and the drain falls behind.
        self._known = kept_ids(store)
        self._checkpointed = Position()
        self._hurry = threading.Event()
        self._deadline: float | None = None
        self._moved = threading.Condition()
        # pyarrow imports more at its first table; a signal in the middle of that import would leave this thread stuck
        event_table(()), rejected_table(()), counted_table(())
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
        self._journal.wake()
        self._thread.join()
        self._fold()
        self._remove_covered()

    def let_go(self) -> None:
        """Close the connection of a closed drain, so that the file can be replaced."""
        self._store.close()

    def count_on(self, before: Drain) -> None:
        """Go on with the numbers of a drain that this one takes the place of."""
        self.stored += before.stored
        self.duplicates += before.duplicates
        self.completed += before.completed
        self.broken += before.broken

    def _run(self) -> None:
        if sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
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
        end = self._journal.wait_beyond(self.position, timeout_s=QUIET_S, stopped=lambda: self._deadline is not None)
        if end <= self.position:
            self._fold()
            return
        self._linger()
        end = self._journal.end
        while self.position < end and not self._finished():
            self._move_one_batch(end)
        if self.position.segment - self._checkpointed.segment >= CHECKPOINT_SEGMENTS:
            self._fold()

    def _linger(self) -> None:
        looks = round(LINGER_S / LOOK_S)
        while looks and not self._large() and not self._hurry.wait(LOOK_S):
            looks -= 1
        self._hurry.clear()

    def _large(self) -> bool:
        end = self._journal.end
        return end.segment > self.position.segment or end.offset - self.position.offset > LARGE_BYTES

    def _move_one_batch(self, end: Position) -> None:
        batch = self._journal.read(self.position, end, limit=self._batch_events)
        if self._erased:
            # Acknowledged before its subject was erased, or journalled in the same moment.
            batch.events = [(arrival, event) for arrival, event in batch.events if not self._erased.of_event(event)]
            batch.counted = [(arrival, count) for arrival, count in batch.counted if not self._erased.of_event(count)]
        if batch.end <= self.position:
            # Segments up to ``end`` are gone; nothing is left to move there.
            batch.end = end
        kept = insert(self._store, batch, self._known)
        self.stored += kept.stored
        self.completed += kept.completed
        self.duplicates += len(batch.events) - kept.stored + len(batch.counted) - kept.counted
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


def insert(store: Store, batch: Batch, known: KnownIds) -> Kept:
    """Insert a batch and its end position in one transaction; what of it was new."""
    kept = Kept()
    with store.transaction():
        if batch.events:
            kept = _keep_events(store, batch.events, known)
        if batch.counted:
            kept = replace(kept, counted=_keep_counts(store, batch.counted))
        if batch.rejected:
            with store.visible("rejected_batch", rejected_table(batch.rejected)):
                store.run("drain/rejected")
        store.run("drain/position", segment=batch.end.segment, offset=batch.end.offset)
    known.add(kept.hashes)
    return kept


def _keep_counts(store: Store, counts: Sequence[tuple[int, Counted]]) -> int:
    """Insert the new ones; how many that were."""
    with store.visible("counted_batch", counted_table(counts)):
        store.run("drain/counted")
    ((new,),) = store.rows("select count(*) from counted where arrival >= $first", {"first": counts[0][0]})
    return int(new)


def _keep_events(store: Store, events: Arrived, known: KnownIds) -> Kept:
    """Insert the new ones; let the others complete what is kept."""
    table = event_table(events)
    with store.visible("fresh_batch", table):
        hashes = _as_hashes(store.arrow("select hash(event_id) as h from fresh_batch"))
        seen = known.seen(hashes)
        if not seen.any():
            store.run("drain/events")
            return Kept(len(events), hashes=hashes)
    _add(store, table.filter(pa.array(~seen)))
    repeats = [events[place] for place in np.flatnonzero(seen).tolist()]
    originals = _originals(store, repeats)
    strangers = list(
        {e.event_id: (arrival, e) for arrival, e in reversed(repeats) if e.event_id not in originals}.values()
    )
    if strangers:
        # Equal hashes, different ids: new after all.
        _add(store, event_table(strangers[::-1]))
        originals |= _originals(store, strangers)
    rows = completions([r for r in repeats if r not in strangers] if strangers else repeats, originals)
    if rows:
        with store.visible("completion_batch", pa.Table.from_pylist(_naively(rows), schema=COMPLETION_COLUMNS)):
            store.run("drain/completions")
    return Kept(len(events) - len(repeats) + len(strangers), len(rows), hashes=hashes[~seen])


def _add(store: Store, fresh: pa.Table) -> None:
    if len(fresh):
        with store.visible("fresh_batch", fresh):
            store.run("drain/events")


def _originals(store: Store, repeats: Arrived) -> dict[str, Original]:
    """The kept events with the ids of these: looked for around their time, and what is not there, everywhere."""
    found: dict[str, Original] = {}
    times = [_naive(e.called_at) for _, e in repeats if e.called_at and e.clock == "ok"]
    if times:
        around: dict[str, object] = {"first_called_at": min(times), "last_called_at": max(times)}
        found = _look(store, "drain/originals_near", {e.event_id for _, e in repeats}, around)
    if missing := {e.event_id for _, e in repeats} - found.keys():
        found |= _look(store, "drain/originals", missing, {})
    if found:
        _note_earlier(store, found)
    return found


def _look(store: Store, name: str, event_ids: set[str], around: dict[str, object]) -> dict[str, Original]:
    with store.visible("repeat_batch", pa.table({"event_id": pa.array(sorted(event_ids), pa.string())})):
        return originals_of(store.rows(read_sql(name), around))


def _note_earlier(store: Store, originals: dict[str, Original]) -> None:
    arrivals = [original.arrival for original in originals.values()]
    with store.visible("original_batch", pa.table({"completes": pa.array(arrivals, pa.int64())})):
        add_earlier(originals, store.rows(read_sql("drain/earlier"), {"first": min(arrivals), "last": max(arrivals)}))


def kept_ids(store: Store) -> KnownIds:
    """The ids a store holds; a second for ten million of them."""
    return KnownIds([_as_hashes(store.arrow("select hash(event_id) as h from events"))])


def _as_hashes(table: pa.Table) -> Hashes:
    hashes: Hashes = table["h"].to_numpy()
    return hashes


def _naively(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"stored_at": _naive(row["stored_at"])} for row in rows]


def drained_position(store: Store) -> Position:
    """How far a store has drained the journal."""
    ((segment, offset),) = store.rows("select segment, position from drained")
    return Position(segment, offset)


def _naive(moment: datetime) -> datetime:
    """UTC without a zone, as the table keeps it; what is taken in is always UTC."""
    return moment.replace(tzinfo=None)


def event_table(events: Sequence[tuple[int, Event]]) -> pa.Table:
    """Events as the table's columns."""
    columns = _columns_of([event for _, event in events], Event)
    columns["extra"] = [msgspec.json.encode(extra).decode() for extra in columns["extra"]]
    return pa.table(columns | {"arrival": [arrival for arrival, _ in events]}, EVENT_COLUMNS)


def rejected_table(rejected: Sequence[tuple[int, Rejected]]) -> pa.Table:
    """Dead letters as the table's columns."""
    columns = _columns_of([letter for _, letter in rejected], Rejected)
    return pa.table(columns | {"arrival": [arrival for arrival, _ in rejected]}, REJECTED_COLUMNS)


def counted_table(counted: Sequence[tuple[int, Counted]]) -> pa.Table:
    """Counts as the table's columns."""
    columns = _columns_of([count for _, count in counted], Counted)
    return pa.table(columns | {"arrival": [arrival for arrival, _ in counted]}, COUNTED_COLUMNS)


def _columns_of(items: Sequence[msgspec.Struct], kind: type[msgspec.Struct]) -> dict[str, Sequence[Any]]:
    """Structs, turned: a column a field."""
    names = kind.__struct_fields__
    return dict(zip(names, zip(*map(astuple, items), strict=True) if items else [()] * len(names), strict=True))
