"""The collector of a home: its one writer, from the journal to the published copy."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from collector import status
from collector.analysts.live import LiveViews
from collector.analysts.numbers import Durations
from collector.analysts.quack import Quack
from collector.counted import Counted, Item
from collector.drain import Drain, drained_position
from collector.erase import erase_older, finish
from collector.erased import Erased
from collector.ignored import Ignored
from collector.intake import admit
from collector.journal import Journal
from collector.lock import HomeLock
from collector.private import read_secret
from collector.publish import publish, temporary_of
from collector.receipt import Receipt, RecentIds, errors_of
from collector.schedule import Every
from collector.segments import bytes_between, encode
from cowpath.errors import Overloaded, StoreDamaged
from cowpath.event import Event, Rejected, utc_now
from cowpath.home import Home, set_aside, sync_file
from cowpath.settings import Settings
from cowpath.store import Store, sql_names

log = logging.getLogger("cowpath.collector")

DAY_S = 86_400.0
LOOK_S = 0.1
RECENT_IDS = 200_000
WAL_LIMIT = "4GB"
"""Never reached: the drain checkpoints at quiet moments, so that no commit has to wait for one."""


class Collector:
    """Takes events in, keeps each once, publishes. Holds its home from construction to ``close``.

    A receipt means: on disk. Its ``duplicates`` count repeats of the last 200,000 ids and is best
    effort; what is kept is decided by the drain, which is exact.
    """

    def __init__(self, settings: Settings, *, sync: Callable[[int], None] = os.fsync) -> None:
        self.settings = settings
        self.home = settings.at
        self._started = time.monotonic()
        self._publishing = threading.Lock()
        self.taken = {"accepted": 0, "duplicates": 0, "rejected": 0}
        self.refused: Counter[str] = Counter()
        self.ignored = Ignored()
        self.sync_times = Durations()
        self._quack = Quack(settings) if settings.quack_port else None
        self._held = status.Held(self.cursor)
        self._bridge: tuple[asyncio.AbstractEventLoop, Future[None], asyncio.Future[None]] | None = None
        self._looked, self._backlog = 0.0, 0
        self._published_state: object = None
        self._publish_failure = ""
        with ExitStack() as undo:
            self.lock = HomeLock.take(self.home)
            undo.callback(self.lock.release)
            self._secret = read_secret(self.home.secret, has_events=self.home.live.exists())
            self.erased = Erased(self.home, self._secret)
            self._open_store()
            undo.callback(self._close_store)
            self._recent = recent_ids(self._store)
            self.journal = Journal(
                self.home.journal,
                drained=drained_position(self._store),
                segment_bytes=settings.segment_bytes,
                max_pending_bytes=settings.max_pending_bytes,
                sync=self.sync_times.timing(sync),
            )
            self.drain = self._begin_drain()
            undo.pop_all()
        if self.erased.pending:
            finish(self)
        self._schedule = self._begin_schedule()
        self._retention = self._begin_retention()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def take_in(self, items: Sequence[Item]) -> Receipt:
        """Check and store; returns when everything the receipt counts is on disk."""
        receipt, on_disk = self._append(items)
        on_disk.result()
        return receipt

    async def take_in_async(self, items: Sequence[Item]) -> Receipt:
        """The same for an event loop, which goes on while the disk is busy."""
        receipt, on_disk = self._append(items)
        await self._awaitable(on_disk)
        return receipt

    def backlog(self) -> int:
        """Acknowledged bytes that are not yet in live.duckdb."""
        return bytes_between(self.home.journal, self.drain.position, self.journal.end)

    def flush(self) -> None:
        """Return when everything acknowledged so far is in live.duckdb."""
        self.drain.flush()

    def publish(self) -> None:
        """Write usage.duckdb anew, with everything acknowledged so far."""
        with self.alone():
            self.publish_alone()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nothing is published or erased meanwhile by another thread."""
        with self._publishing:
            yield

    def publish_alone(self) -> None:
        """The same, for whoever is ``alone`` already."""
        state = self._state()
        self.flush()
        try:
            publish(self._store.cursor(), self.home)
        except Exception as error:
            self._publish_failure = str(error)
            raise
        self._published_state, self._publish_failure = state, ""

    def replace_store(self, copy: Callable[[Store, Path], None]) -> None:
        """Put a copy in the place of live.duckdb by one rename; events are taken in meanwhile and drained afterwards.

        ``copy`` makes the file from everything acknowledged so far, with one more row in ``erasures`` than before.
        """
        fresh = fresh_of(self.home)
        for left_over in self.home.root.glob(f"{fresh.name}*"):
            left_over.unlink()
        self.journal.roll()
        self.flush()
        # What arrives from here on is for the next drain; under load this one would never be done with it.
        self.drain.close(grace_s=0)
        try:
            with self.cursor() as store:
                copy(store, fresh)
                ((rows,),) = store.rows("select count(*) from erasures")
            sync_file(fresh)
            self._store.checkpoint()
            self._swap(fresh, erasures=rows + 1)
        finally:
            self.drain = self._begin_drain(self.drain)

    def _swap(self, fresh: Path, *, erasures: int) -> None:
        """DuckDB gives a second opener in one process the database the first one still uses: wait until it is gone."""
        self.drain.let_go()
        self._close_store()
        fresh.replace(self.home.live)
        sync_file(self.home.root)
        # What quack runs at this moment took its time once already, before it was let through.
        deadline = time.monotonic() + 2 * self.settings.sql_timeout_s + 10
        while True:
            store = open_live(self.home)[0]
            ((rows,),) = store.rows("select count(*) from erasures")
            if rows == erasures:
                break
            store.close()
            if time.monotonic() > deadline:
                raise StoreDamaged("the old live.duckdb is still in use; stop and start the collector")
            time.sleep(0.05)
        self._use(store)

    def _open_store(self) -> None:
        store, self.wal_set_aside = open_live(self.home)
        self._use(store)

    def _use(self, store: Store) -> None:
        self._store = store
        self.live = LiveViews(store, self.home, queries=self.settings.sql_queries)
        if self._quack:
            self._quack.load(store)
        store.lock_down([self.home.live, temporary_of(self.home), fresh_of(self.home)])
        if self._quack:
            self._quack.serve(store, self.live)

    def _close_store(self) -> None:
        """Analysts' queries end first; the store waits for them."""
        if self._quack:
            self._quack.stop()
        self.live.stop()
        self._store.close()

    def _begin_drain(self, before: Drain | None = None) -> Drain:
        drain = Drain(
            self._store.cursor(), self.journal, batch_events=self.settings.drain_batch_events, erased=self.erased
        )
        if before:
            drain.count_on(before)
        return drain

    def counts(self) -> dict[str, Any]:
        """The status document of a running collector."""
        return {
            "running": True,
            "pid": os.getpid(),
            "ready": self.why_not_ready() or "yes",
            **status.at_rest(self.home),
            **self._held.now(),
            "since_start": {
                "seconds": round(time.monotonic() - self._started, 1),
                **self.taken,
                "ignored": self.ignored.by_door(),
                "stored": self.drain.stored,
                "repeats_dropped": self.drain.duplicates,
                "completed": self.drain.completed,
                "unreadable_lines": self.drain.broken,
                "torn_bytes_cut": self.journal.torn_bytes,
                "write_ahead_logs_set_aside": self.wal_set_aside,
                "publish_failure": self._publish_failure,
            },
            "queue": {
                "waiting_bytes": self.journal.pending_bytes,
                "backlog_bytes": self.backlog(),
                "acknowledged": self.journal.end,
                "drained": self.drain.position,
            },
        }

    def cursor(self) -> Store:
        """The live store for reading numbers, on a connection of its own."""
        return self._store.cursor()

    def why_not_ready(self) -> str:
        """Why nothing should be sent here now; empty where all is well."""
        if self.journal.failure:
            return f"the journal cannot be written: {self.journal.failure}"
        if self.journal.full:
            return f"the journal is full: {self.journal.pending_bytes} bytes wait for the disk"
        if self._recent_backlog() > self.settings.max_backlog_bytes:
            return _too_far_behind(self._backlog)
        if not self.drain.alive:
            return f"the drain does not run: {self.drain.failure or 'stopped'}"
        return ""

    def close(self) -> None:
        """Take nothing more, finish what was acknowledged within the grace time, let go of the home."""
        for schedule in (self._schedule, self._retention):
            if schedule:
                schedule.stop()
        self.journal.close()
        self.drain.close(grace_s=self.settings.drain_grace_s)
        self._close_store()
        self.lock.release()

    def _append(self, items: Sequence[Item]) -> tuple[Receipt, Future[None]]:
        if self._recent_backlog() > self.settings.max_backlog_bytes:
            raise Overloaded(f"{_too_far_behind(self._backlog)}; nothing of this was stored")
        now = utc_now()
        admitted = [self.erased.checked(admit(item, secret=self._secret, now=now)) for item in items]
        on_disk = self.journal.append(encode(admitted))
        event_ids = [_id_of(item) for item in admitted if not isinstance(item, Rejected)]
        duplicates = self._recent.add(event_ids)
        receipt = Receipt(
            accepted=len(event_ids) - duplicates,
            duplicates=duplicates,
            rejected=len(items) - len(event_ids),
            errors=errors_of(admitted),
            generated_ids=sum(_got_an_id(item, kept) for item, kept in zip(items, admitted, strict=True)),
        )
        self._count(receipt)
        self.refused.update(item.code for item in admitted if isinstance(item, Rejected))
        return receipt, on_disk

    def _awaitable(self, on_disk: Future[None]) -> asyncio.Future[None]:
        """The future for an event loop. Who shares a write shares one bridge: each would wake the loop."""
        loop = asyncio.get_running_loop()
        if self._bridge is None or self._bridge[:2] != (loop, on_disk):
            self._bridge = loop, on_disk, asyncio.wrap_future(on_disk, loop=loop)
        return asyncio.shield(self._bridge[2])

    def _recent_backlog(self) -> int:
        """The backlog, at most a tenth of a second old: it is asked for by every request."""
        now = time.monotonic()
        if now - self._looked > LOOK_S:
            self._looked, self._backlog = now, self.backlog()
        return self._backlog

    def _count(self, receipt: Receipt) -> None:
        self.taken["accepted"] += receipt.accepted
        self.taken["duplicates"] += receipt.duplicates
        self.taken["rejected"] += receipt.rejected

    def _begin_schedule(self) -> Every | None:
        seconds = self.settings.publish_every_s
        return Every(seconds, self._publish_news, name="publish") if seconds > 0 else None

    def _begin_retention(self) -> Every | None:
        """By age, once a day; the first time a day after the start, when whoever started it has seen it run."""
        days = self.settings.retain_days
        return Every(DAY_S, lambda: self._retain(days), name="retain") if days > 0 else None

    def _retain(self, days: float) -> None:
        if erase_older(self, days, dry_run=True)["removed"]:
            erase_older(self, days)

    def _publish_news(self) -> None:
        if self._state() != self._published_state or not self.home.usage.exists():
            self.publish()

    def _state(self) -> object:
        """Everything a publication is made of, as far as it can change."""
        files = [self.home.catalogue, *sorted(self.home.edges.glob("*.jsonl"))]
        return self.journal.end, [(f.name, f.stat().st_mtime_ns) for f in files if f.exists()]


def _id_of(item: Event | Counted) -> str:
    return item.event_id if isinstance(item, Event) else item.count_id


def _got_an_id(item: Item, kept: Item) -> bool:
    return isinstance(item, Event) and isinstance(kept, Event) and not item.event_id


def _too_far_behind(backlog: int) -> str:
    return f"{backlog} acknowledged bytes wait for live.duckdb, more than max_backlog_bytes"


def fresh_of(home: Home) -> Path:
    """Where the copy is made that takes the place of live.duckdb."""
    return home.root / ".live.duckdb.fresh"


def open_live(home: Home) -> tuple[Store, int]:
    """The live store, and how many write-ahead logs had to be set aside for it (0 or 1).

    A log that cannot be replayed is kept under another name; what it held is read again from the
    journal, whose segments stay until a checkpoint covers them.
    """
    wal = home.live.with_name(home.live.name + ".wal")
    logs_set_aside = 0
    try:
        store = Store.open(home.live)
    except StoreDamaged as error:
        if not wal.exists():
            raise
        kept = set_aside(wal)
        log.warning("%s; it was set aside as %s and the journal is read again instead", error.message, kept.name)
        store, logs_set_aside = Store.open(home.live), 1
    store.execute(f"set wal_autocheckpoint = '{WAL_LIMIT}'")
    for name in [*sql_names("schema"), "drain/begin"]:
        store.run(name)
    # A log that holds changes of tables is the kind that could not be replayed in the past.
    store.checkpoint()
    return store, logs_set_aside


def recent_ids(store: Store) -> RecentIds:
    """The ids that were stored last, as after a restart."""
    recent = RecentIds(RECENT_IDS)
    rows = store.rows("select event_id from events order by arrival desc limit $n", {"n": RECENT_IDS})
    recent.add([event_id for (event_id,) in reversed(rows)])
    return recent
