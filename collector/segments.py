"""Journal segments at rest: numbered files of checksummed lines, readable from any position.

A line is ``crc32hex SP json LF``. What cannot be read is never thrown away: it is copied to
``<segment>.<offset>.torn`` beside its segment, counted, and reading goes on behind it.
"""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from collector.counted import Counted, Item
from cowpath.event import Event, Rejected

log = logging.getLogger("cowpath.collector")


class Position(NamedTuple):
    """A place between two lines of the journal; later places compare greater."""

    segment: int = 0
    offset: int = 0

    @property
    def arrival(self) -> int:
        """The place as one number that rises for ever."""
        return self.segment << 32 | self.offset


class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One line: an event that was taken in, a count, or a dead letter."""

    event: Event | None = None
    rejected: Rejected | None = None
    counted: Counted | None = None


class Lines(NamedTuple):
    """Whole lines to be written, and what they say: the items with the length of each one's line."""

    data: bytes
    items: Sequence[Item] = ()
    lengths: Sequence[int] = ()


@dataclass
class Batch:
    """What a stretch of the journal held, each with its arrival, and the place behind it."""

    events: list[tuple[int, Event]] = field(default_factory=list)
    rejected: list[tuple[int, Rejected]] = field(default_factory=list)
    counted: list[tuple[int, Counted]] = field(default_factory=list)
    broken: int = 0
    end: Position = field(default_factory=Position)

    def __len__(self) -> int:
        return len(self.events) + len(self.rejected) + len(self.counted)

    def add(self, arrival: int, item: Item) -> None:
        if isinstance(item, Event):
            self.events.append((arrival, item))
        elif isinstance(item, Counted):
            self.counted.append((arrival, item))
        else:
            self.rejected.append((arrival, item))


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


def encode(items: Sequence[Item]) -> Lines:
    """The lines of these items."""
    lines = [b"%08x %b\n" % (zlib.crc32(body), body) for body in map(_encoder.encode, map(_record, items))]
    return Lines(b"".join(lines), items, [len(line) for line in lines])


def _record(item: Item) -> Record:
    if isinstance(item, Event):
        return Record(event=item)
    return Record(counted=item) if isinstance(item, Counted) else Record(rejected=item)


def read(folder: Path, start: Position, end: Position, *, limit: int) -> Batch:
    """At most ``limit`` records from ``start`` up to ``end``."""
    batch = Batch(end=start)
    for number in numbers(folder):
        if start.segment <= number <= end.segment and len(batch) < limit:
            offset = start.offset if number == start.segment else 0
            stop = end.offset if number == end.segment else segment_path(folder, number).stat().st_size
            _read_segment(folder, Position(number, offset), stop, limit, batch)
    return batch


def _read_segment(folder: Path, start: Position, stop: int, limit: int, batch: Batch) -> None:
    number, offset = start
    with segment_path(folder, number).open("rb") as file:
        file.seek(offset)
        for line in islice(file, limit - len(batch)):
            if offset >= stop:
                break
            record = _record_of(line)
            if record is None:
                batch.broken += 1
                keep_aside(folder, Position(number, offset), line)
            elif item := record.event or record.rejected or record.counted:
                batch.add(number << 32 | offset, item)
            offset += len(line)
    batch.end = Position(number, offset)


def _record_of(line: bytes) -> Record | None:
    """The record of a line, or None where the line is torn, altered or not ours."""
    if not _is_whole(line):
        return None
    try:
        return _decoder.decode(memoryview(line)[9:])
    except msgspec.DecodeError:
        return None


def _is_whole(line: bytes) -> bool:
    return line.endswith(b"\n") and line[:9] == b"%08x " % zlib.crc32(memoryview(line)[9:-1])


def cut_torn_end(folder: Path, *, start: Position) -> int:
    """Cut what a crash left half-written at the end of the last segment; how many bytes that were.

    Lines before ``start`` are known to be good and are not read again.
    """
    last = max(numbers(folder), default=0)
    if not last:
        return 0
    path = segment_path(folder, last)
    good = _end_of_whole_lines(path, start.offset if start.segment == last else 0)
    torn = path.stat().st_size - good
    if torn > 0:
        with path.open("r+b") as file:
            file.seek(good)
            keep_aside(folder, Position(last, good), file.read())
            file.truncate(good)
            os.fsync(file.fileno())
    return max(torn, 0)


def _end_of_whole_lines(path: Path, offset: int) -> int:
    """Where the last whole line ends; a broken line with whole ones behind it is left for the reader."""
    good = offset
    with path.open("rb") as file:
        file.seek(offset)
        for line in file:
            offset += len(line)
            if _is_whole(line):
                good = offset
    return good


def bytes_between(folder: Path, start: Position, end: Position) -> int:
    """How many bytes of the journal lie from ``start`` to ``end``."""
    before = sum(segment_size(folder, number) for number in range(start.segment, end.segment))
    return max(0, before - start.offset + end.offset)


def keep_aside(folder: Path, position: Position, data: bytes) -> None:
    """Keep unreadable bytes for a person to look at; the same bytes twice are one file."""
    path = folder / f"{position.segment:010d}.{position.offset}.torn"
    log.warning("unreadable bytes in the journal, %d of them kept in %s", len(data), path)
    path.write_bytes(data)


def remove_covered(folder: Path, position: Position, *, keep: int) -> None:
    """Delete the segments that end at or before ``position``, except segment ``keep``."""
    for number in numbers(folder):
        path = segment_path(folder, number)
        if number != keep and Position(number, path.stat().st_size) <= position:
            path.unlink()


def segment_path(folder: Path, number: int) -> Path:
    return folder / f"{number:010d}.log"


def segment_size(folder: Path, number: int) -> int:
    """Its bytes; 0 where it is gone or never was."""
    path = segment_path(folder, number)
    return path.stat().st_size if path.exists() else 0


def numbers(folder: Path) -> list[int]:
    """The numbers of the segments that are there, in order."""
    return sorted(int(path.stem) for path in folder.glob("*.log") if path.stem.isdigit())
