"""The spool: lines on this machine's disk until a collector has them. Any number of processes share its folder."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Self

MAX_BYTES = 64 * 2**20
SEGMENT_BYTES = 2**20
BATCH_LINES = 500
BATCH_BYTES = 2**20
PATTERN = "*.spool"

EVENTS = "/v1/events"
DROPPED = "dropped"
"""Stands for a path: these lines go to ``EVENTS`` too, as what their sender refused."""

Send = Callable[[list[bytes]], None]
"""Hands lines to a collector; returns when it has them, raises where it has not."""


class Spool:
    """Appends lines to a file of this process, and ships that and what processes that ended left behind.

    A line is in the operating system's hands when ``append`` returns, so it survives a kill of the process;
    with ``fsync`` it survives a power failure too. Lines may be sent twice, never lost: they carry ids.
    Past ``max_bytes`` the oldest file goes, and a line that says how many lines went takes its place.
    A ``brief`` process goes on with a file that another left, so that many of them do not leave many files.
    """

    def __init__(self, folder: Path, *, max_bytes: int = MAX_BYTES, fsync: bool = False, brief: bool = False) -> None:
        self.folder = folder
        self.dropped = 0
        self._max_bytes = max_bytes
        self._segment_bytes = max(1, min(SEGMENT_BYTES, max_bytes // 4))
        self._fsync = fsync
        self._brief = brief
        self._lock = Lock()
        self._own: _File | None = None
        self._sent = 0

    def append(self, line: bytes) -> None:
        """Keep one line; OSError where the disk does not take it."""
        with self._lock:
            if self._own is not None and self._own.size() + len(line) > self._segment_bytes:
                self._let_go()
            if self._own is None:
                dropped = self._trim()
                self._own, self._sent = self._unfinished() or _File.begin(self.folder), 0
                if dropped:
                    self._own.append(notice(dropped))
            self._own.append(line)
            if self._fsync:
                os.fsync(self._own.fd)

    def ship(self, send: Send, *, most_lines: int = BATCH_LINES) -> None:
        """Send everything that waits: what others left, oldest first, then our own. Stops at the first failure."""
        for file in self.left_behind():
            with file:
                sent = 0
                try:
                    for lines, sent_then in file.batches(0, most_lines):
                        send(lines)
                        sent = sent_then
                except BaseException:
                    file.shorten(sent)
                    raise
                file.remove()
        while self._ship_own(send, most_lines):
            pass

    def left_behind(self) -> Iterator[_File]:
        """The files whose writers have ended, each locked for us until it is closed."""
        for path in sorted(self.folder.glob(PATTERN)):
            file = _File.take(path)
            if file is not None:
                yield file

    def waiting(self) -> tuple[int, int]:
        """(files, bytes) in the folder, whoever writes them."""
        sizes = [size for path in self.folder.glob(PATTERN) if (size := _size_of(path)) > 0]
        return len(sizes), sum(sizes)

    def close(self) -> None:
        """Leave what waits to whoever ships next."""
        with self._lock:
            self._let_go()

    def forked(self) -> None:
        """In a child process: its parent's file is not ours. The lock may be held by a thread that is not here."""
        self._lock = Lock()
        if self._own is not None:
            os.close(self._own.fd)
            self._own = None

    def _ship_own(self, send: Send, most_lines: int) -> bool:
        """Send the next batch of our own file; whether there may be more."""
        with self._lock:
            own = self._own
            batch = next(own.batches(self._sent, most_lines), None) if own else None
        if own is None or batch is None:
            return False
        lines, end = batch
        send(lines)
        with self._lock:
            if self._own is own:
                self._sent = end
                if end >= own.size():
                    os.ftruncate(own.fd, 0)
                    self._sent = 0
        return True

    def _unfinished(self) -> _File | None:
        """A file that was left with room in it, for a brief process."""
        for file in self.left_behind() if self._brief else ():
            if file.size() < self._segment_bytes // 2:
                file.mend()
                return file
            os.close(file.fd)
        return None

    def _let_go(self) -> None:
        if self._own is None:
            return
        if self._own.size() == 0:
            self._own.remove()
        else:
            self._own.shorten(self._sent)
        os.close(self._own.fd)
        self._own = None

    def _trim(self) -> int:
        """Make room for a segment; how many lines that cost."""
        dropped = 0
        excess = self.waiting()[1] + self._segment_bytes - self._max_bytes
        for file in self.left_behind() if excess > 0 else ():
            with file:
                excess -= file.size()
                dropped += sum(_count(line) for lines, _ in file.batches(0, BATCH_LINES) for line in lines)
                file.remove()
            if excess <= 0:
                break
        self.dropped += dropped
        return dropped


def _make_folder(folder: Path) -> None:
    """The folder and what is missing above it, for their owner only, as ``cowpath.home`` makes them: a hook that is
    the first to write in a home has no time to load that module."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


class _File:
    """One file of a spool, locked as long as it is open."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path, self.fd = path, fd

    @classmethod
    def begin(cls, folder: Path) -> Self:
        """A new file. Names begin with the time, so that sorting them gives their age."""
        _make_folder(folder)
        while True:
            file = cls._open(folder / f"{time.time_ns():020}-{os.getpid()}.spool", os.O_CREAT | os.O_EXCL)
            if file is not None:
                return file

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """The file of a process that has ended; None while its writer lives or where another took it."""
        return cls._open(path, 0)

    @classmethod
    def _open(cls, path: Path, flags: int) -> Self | None:
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND | flags, 0o600)
        except (FileNotFoundError, FileExistsError):
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between opening and locking another process may have shipped and removed it.
            if os.path.samestat(os.fstat(fd), path.stat()):
                return cls(path, fd)
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(fd)
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self.fd)

    def append(self, line: bytes) -> None:
        """The whole line or nothing of it."""
        size = self.size()
        written = os.write(self.fd, line)
        if written != len(line):
            os.ftruncate(self.fd, size)
            raise OSError(f"no room for a line of {len(line)} bytes in {self.path}")

    def batches(self, start: int, most_lines: int) -> Iterator[tuple[list[bytes], int]]:
        """Whole lines from ``start`` on, with the place where each batch ends; a torn last line is left out."""
        while chunk := os.pread(self.fd, BATCH_BYTES, start):
            lines = chunk.splitlines(keepends=True)[:most_lines]
            whole = [line for line in lines if line.endswith(b"\n")]
            if not whole:
                return
            start += sum(map(len, whole))
            yield [line.rstrip(b"\n") for line in whole], start

    def mend(self) -> None:
        """End a line that a power failure tore; whoever ships will see that it is none."""
        size = self.size()
        if size and os.pread(self.fd, 1, size - 1) != b"\n":
            self.append(b"\n")

    def shorten(self, sent: int) -> None:
        """Leave out what was sent. A kill in between leaves both files: repeats, no loss."""
        rest = os.pread(self.fd, self.size() - sent, sent) if sent else b""
        if rest:
            fd = os.open(self.path.with_name(f"{self.path.stem}+.spool"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                if os.write(fd, rest) == len(rest):
                    self.remove()
            finally:
                os.close(fd)

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def addressed(line: bytes) -> tuple[str, bytes]:
    """(path, body) of a line ``event {...}``, ``hook/DIALECT {...}`` or ``dropped/N {...}``; '' where it is none."""
    kind, _, body = line.partition(b" ")
    name, _, rest = kind.decode("ascii", "replace").partition("/")
    path = {"event": EVENTS, "hook": f"/v1/hooks/{rest}", "dropped": DROPPED}.get(name, "")
    return (path, body) if path and _is_object(body) else ("", body)


def documents(path: str, bodies: list[bytes]) -> Iterator[bytes]:
    """The bodies to post: events share one request, a hook's payloads are one request each."""
    if path == EVENTS:
        yield b'{"schema_version":1,"events":[' + b",".join(bodies) + b"]}"
    elif path == DROPPED:
        yield b'{"schema_version":1,"events":[],"rejected":[' + b",".join(bodies) + b"]}"
    else:
        yield from bodies


def notice(dropped: int) -> bytes:
    """The line that stands for lines that were dropped; the collector keeps it as a dead letter."""
    message = f"{dropped} events were dropped: the spool was full"
    return f'dropped/{dropped} {{"code":"spool_full","message":"{message}","source":"spool"}}\n'.encode()


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False


def _count(line: bytes) -> int:
    """How many lines a line stands for: a notice for as many as it says."""
    kind = line.split(b" ", 1)[0]
    return int(kind[8:]) if kind.startswith(b"dropped/") and kind[8:].isdigit() else 1


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
