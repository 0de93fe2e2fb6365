"""The journal: where an event is acknowledged, because here it is on disk.

Group commit: one thread writes; whatever arrived while it was waiting for the disk shares the
next write, the next fsync and one future.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from collector.segments import Batch, Lines, Position, cut_torn_end, numbers, read, segment_path, segment_size
from collector.tail import Tail
from cowpath.errors import Overloaded, TooLarge
from cowpath.home import sync_file

GATHER_S = 0.001
"""Where several came together, more are coming: they share a write, instead of waking three threads for each."""

log = logging.getLogger("cowpath.collector")


class _Group:
    """Lines that share one write, and the future that is done when they are on disk."""

    def __init__(self) -> None:
        self.lines: list[Lines] = []
        self.on_disk: Future[None] = Future()

    @property
    def size(self) -> int:
        return sum(len(lines.data) for lines in self.lines)


class Journal:
    """Appends lines to numbered segments. Opened anew it begins a new segment, never an old one.

    ``first_segment`` lies behind everything the store has already drained, so that a journal whose
    files were lost cannot hand out positions that look drained. ``sync`` is how bytes get to disk.
    """

    def __init__(
        self,
        folder: Path,
        *,
        drained: Position,
        segment_bytes: int,
        max_pending_bytes: int,
        sync: Callable[[int], None] = os.fsync,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.torn_bytes = cut_torn_end(folder, start=drained)
        self.failure = ""
        last = max([drained.segment, *numbers(folder)])
        self._end = Position(last, segment_size(folder, last))
        self._segment_bytes = segment_bytes
        self._max_pending_bytes = max_pending_bytes
        self._sync = sync
        self._file: int | None = None
        self._waiting = _Group()
        self._pending_bytes = 0
        self._tail = Tail()
        self._closing = False
        self._roll = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._write_groups, name="cowpath-journal", daemon=True)
        self._thread.start()

    @property
    def end(self) -> Position:
        """Everything before this is on disk."""
        return self._end

    @property
    def open_segment(self) -> int:
        """The segment being written; 0 where none is."""
        return 0 if self._file is None else self._end.segment

    @property
    def pending_bytes(self) -> int:
        """Bytes that wait for the disk."""
        return self._pending_bytes

    @property
    def full(self) -> bool:
        """Whether nearly all the room for waiting bytes is taken."""
        return self._pending_bytes > 0.9 * self._max_pending_bytes

    def append(self, lines: Lines) -> Future[None]:
        """Queue whole lines; the future is done when they are on disk. Overloaded where the queue is full.

        Whatever waits together shares one future: never cancel it.
        """
        size = len(lines.data)
        with self._changed:
            self._refuse_what_does_not_fit(size)
            group = self._waiting
            group.lines.append(lines)
            self._pending_bytes += size
            if len(group.lines) == 1:
                self._changed.notify_all()
        return group.on_disk

    def roll(self) -> None:
        """Begin a new segment, so that everything before can be deleted once the store holds it."""
        self._roll = True
        self.append(Lines(b"")).result()

    def read(self, position: Position, end: Position, *, limit: int) -> Batch:
        """About ``limit`` records from ``position`` up to ``end``: from memory where they are still there."""
        with self._changed:
            batch = self._tail.take(position, limit=limit)
        return batch or read(self.folder, position, end, limit=limit)

    def wait_beyond(
        self, position: Position, timeout_s: float, *, stopped: Callable[[], bool] = lambda: False
    ) -> Position:
        """The end of the journal, as soon as that lies behind ``position``, the time is over, or it is ``stopped``."""
        with self._changed:
            self._changed.wait_for(lambda: self._end > position or self._closing or stopped(), timeout_s)
            return self._end

    def wake(self) -> None:
        """Let whoever waits look again whether it is stopped."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Write what was queued, then refuse anything new."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _refuse_what_does_not_fit(self, size: int) -> None:
        if self._closing:
            raise Overloaded("the collector is stopping and takes nothing in")
        if size > self._max_pending_bytes:
            raise TooLarge(f"{size} bytes in one request, more than may ever wait; send fewer events at once")
        if self._pending_bytes + size > self._max_pending_bytes:
            raise Overloaded(f"{self._pending_bytes} bytes already wait for the disk; nothing of this was stored")

    def _write_groups(self) -> None:
        while group := self._next_group():
            try:
                self._write(group)
                self.failure = ""
            except OSError as error:
                log.error("the journal cannot be written: %s", error)
                self.failure = str(error)
                self._abandon_segment()
            self._answer(group)
            if len(group.lines) > 1:
                time.sleep(GATHER_S)
        self._close_segment()

    def _next_group(self) -> _Group | None:
        """Everything that waits; None when nothing does and the journal is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting.lines or self._closing)
            group, self._waiting = self._waiting, _Group()
            return group if group.lines else None

    def _answer(self, group: _Group) -> None:
        with self._changed:
            self._pending_bytes -= group.size
            self._changed.notify_all()
        if self.failure:
            group.on_disk.set_exception(_unwritten(self.failure))
        else:
            group.on_disk.set_result(None)

    def _write(self, group: _Group) -> None:
        before, file = self._end, self._file
        if file is None or self._roll or self._end.offset >= self._segment_bytes:
            file = self._begin_segment()
        rest = memoryview(b"".join(lines.data for lines in group.lines))
        size = len(rest)
        while rest:
            rest = rest[os.write(file, rest) :]
        self._sync(file)
        self._remember(group, before)
        self._end = Position(self._end.segment, self._end.offset + size)

    def _remember(self, group: _Group, before: Position) -> None:
        start = self._end
        with self._changed:
            for lines in group.lines:
                self._tail.add(before, start, lines)
                before = start = Position(start.segment, start.offset + len(lines.data))

    def _begin_segment(self) -> int:
        self._close_segment()
        self._roll = False
        number = self._end.segment + 1
        self._file = os.open(segment_path(self.folder, number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._end = Position(number, 0)
        sync_file(self.folder)
        return self._file

    def _abandon_segment(self) -> None:
        """After a failed write nobody knows what is on disk: cut back to what was acknowledged, begin anew."""
        if self._file is None:
            return
        try:
            os.ftruncate(self._file, self._end.offset)
        except OSError:
            # Lines nobody was told about may stay; the sender repeats them and the drain drops the repeat.
            log.warning("segment %d could not be cut back", self._end.segment)
        self._close_segment()

    def _close_segment(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _unwritten(failure: str) -> Overloaded:
    return Overloaded(f"the journal cannot be written: {failure}; nothing of this was stored", retry_after_s=5)
