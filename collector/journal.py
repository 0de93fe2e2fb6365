"""The journal: where an event is acknowledged, because here it is on disk.

Group commit: one thread writes; whatever arrived while it was waiting for the disk shares the
next write and the next fsync.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from collector.segments import Position, cut_torn_end, numbers, segment_path
from cowpath.errors import Overloaded, TooLarge
from cowpath.home import sync_file

log = logging.getLogger("cowpath.collector")

Waiting = tuple[bytes, "Future[None]"]


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
        self._end = Position(last, _size(segment_path(folder, last)))
        self._segment_bytes = segment_bytes
        self._max_pending_bytes = max_pending_bytes
        self._sync = sync
        self._file: int | None = None
        self._waiting: list[Waiting] = []
        self._pending_bytes = 0
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

    def append(self, lines: bytes) -> Future[None]:
        """Queue whole lines; the future is done when they are on disk. Overloaded where the queue is full."""
        done: Future[None] = Future()
        with self._changed:
            self._refuse_what_does_not_fit(len(lines))
            self._waiting.append((lines, done))
            self._pending_bytes += len(lines)
            self._changed.notify_all()
        return done

    def roll(self) -> None:
        """Begin a new segment, so that everything before can be deleted once the store holds it."""
        self._roll = True
        self.append(b"").result()

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
                self._write(b"".join(lines for lines, _ in group))
                self.failure = ""
            except OSError as error:
                log.error("the journal cannot be written: %s", error)
                self.failure = str(error)
                self._abandon_segment()
            self._answer(group)
        self._close_segment()

    def _next_group(self) -> list[Waiting]:
        """Everything that waits, at least one; empty when the journal is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            group, self._waiting = self._waiting, []
            return group

    def _answer(self, group: list[Waiting]) -> None:
        with self._changed:
            self._pending_bytes -= sum(len(lines) for lines, _ in group)
            self._changed.notify_all()
        for _, done in group:
            if not done.set_running_or_notify_cancel():
                continue
            if self.failure:
                done.set_exception(_unwritten(self.failure))
            else:
                done.set_result(None)

    def _write(self, data: bytes) -> None:
        file = self._file
        if file is None or self._roll or self._end.offset >= self._segment_bytes:
            file = self._begin_segment()
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        self._sync(file)
        self._end = Position(self._end.segment, self._end.offset + len(data))

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


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
