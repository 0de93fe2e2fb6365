"""Promises of the journal: acknowledged means on disk, and nothing unreadable stops it or is thrown away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from collector.journal import Journal
from collector.segments import Position, encode, numbers, read, remove_covered, segment_path
from cowpath.errors import Overloaded, TooLarge
from cowpath.event import Event, Rejected

MakeEvent = Callable[..., Event]
Open = Callable[..., Journal]


@pytest.fixture
def open_journal(tmp_path: Path) -> Iterator[Open]:
    """Journals on one folder; all are closed at the end."""
    opened: list[Journal] = []

    def open_(**options: Any) -> Journal:
        defaults: dict[str, Any] = {"drained": Position(), "segment_bytes": 10_000, "max_pending_bytes": 100_000}
        opened.append(Journal(tmp_path / "journal", **(defaults | options)))
        return opened[-1]

    yield open_
    for journal in opened:
        journal.close()


def ids(journal: Journal, start: Position = Position()) -> list[str]:  # noqa: B008  # a tuple
    return [e.event_id for _, e in read(journal.folder, start, journal.end, limit=10_000).events]


def write(journal: Journal, *events: Event) -> None:
    journal.append(encode(events)).result()


def test_what_is_written_is_read_in_its_order_with_rising_arrivals(open_journal: Open, event: MakeEvent) -> None:
    journal = open_journal()
    events = [event(f"e{n}", seq=n, extra={"n": n}) for n in range(5)]
    letter = Rejected(code="bad_json", message="no")

    write(journal, *events)
    journal.append(encode([letter])).result()

    batch = read(journal.folder, Position(), journal.end, limit=100)
    assert [e for _, e in batch.events] == events
    assert [r for _, r in batch.rejected] == [letter]
    arrivals = [a for a, _ in batch.events] + [a for a, _ in batch.rejected]
    assert arrivals == sorted(set(arrivals))


def test_reading_goes_on_where_it_stopped_across_segments(open_journal: Open, event: MakeEvent) -> None:
    journal = open_journal(segment_bytes=300)
    for n in range(20):
        write(journal, event(f"e{n:02d}"))

    position, found = Position(), list[str]()
    while position < journal.end:
        batch = read(journal.folder, position, journal.end, limit=3)
        found += [e.event_id for _, e in batch.events]
        position = batch.end

    assert found == [f"e{n:02d}" for n in range(20)]
    assert len(numbers(journal.folder)) > 3


def test_requests_that_arrive_during_a_sync_share_the_next_one(open_journal: Open, event: MakeEvent) -> None:
    syncing, go = threading.Event(), threading.Event()
    syncs: list[int] = []

    def sync(handle: int) -> None:
        syncs.append(handle)
        syncing.set()
        go.wait(10)

    journal = open_journal(sync=sync)
    first = journal.append(encode([event("e0")]))
    syncing.wait(10)
    others = [journal.append(encode([event(f"e{n}")])) for n in range(1, 50)]

    assert not first.done()
    go.set()
    for future in [first, *others]:
        future.result(10)
    assert len(syncs) == 2
    assert len(ids(journal)) == 50


def test_a_full_queue_refuses_and_takes_again_when_it_is_empty(open_journal: Open, event: MakeEvent) -> None:
    go = threading.Event()
    line = encode([event("e0")])
    journal = open_journal(sync=lambda handle: go.wait(10), max_pending_bytes=len(line.data) * 2)

    waiting = [journal.append(line), journal.append(line)]
    with pytest.raises(Overloaded):
        journal.append(line)
    assert journal.full
    with pytest.raises(TooLarge):
        journal.append(encode([event("e0")] * 3))

    go.set()
    for future in waiting:
        future.result(10)
    journal.append(line).result(10)
    assert not journal.full


def test_a_failed_write_is_told_and_the_next_one_is_kept(open_journal: Open, event: MakeEvent) -> None:
    outcomes = iter([None, OSError(28, "No space left on device"), None])

    def sync(handle: int) -> None:
        if error := next(outcomes):
            raise error

    journal = open_journal(sync=sync)
    write(journal, event("kept"))
    with pytest.raises(Overloaded, match="No space left"):
        write(journal, event("lost"))
    assert journal.failure

    write(journal, event("kept too"))
    assert not journal.failure
    assert ids(journal) == ["kept", "kept too"]


@pytest.mark.parametrize("cut", [1, 5, 20, 60])
def test_a_torn_last_line_is_cut_kept_aside_and_counted(open_journal: Open, event: MakeEvent, cut: int) -> None:
    journal = open_journal()
    write(journal, event("whole"), event("torn"))
    journal.close()
    path = segment_path(journal.folder, 1)
    path.write_bytes(path.read_bytes()[:-cut])
    length = path.stat().st_size

    again = open_journal()
    write(again, event("later"))

    assert ids(again) == ["whole", "later"]
    assert again.torn_bytes > 0
    (aside,) = again.folder.glob("*.torn")
    assert aside.stat().st_size == again.torn_bytes
    assert path.stat().st_size == length - again.torn_bytes


def test_a_broken_line_in_the_middle_is_kept_aside_and_reading_goes_on(open_journal: Open, event: MakeEvent) -> None:
    journal = open_journal()
    write(journal, event("e0"), event("e1"), event("e2"))
    path = segment_path(journal.folder, 1)
    path.write_bytes(path.read_bytes().replace(b'"e1"', b'"eX"'))

    batch = read(journal.folder, Position(), journal.end, limit=10)

    assert [e.event_id for _, e in batch.events] == ["e0", "e2"]
    assert batch.broken == 1
    assert b'"eX"' in next(journal.folder.glob("*.torn")).read_bytes()


def test_positions_rise_even_when_every_segment_is_gone(open_journal: Open, event: MakeEvent) -> None:
    journal = open_journal(drained=Position(7, 1234))

    write(journal, event("e0"))

    assert journal.end > Position(7, 1234)
    assert ids(journal, Position(7, 1234)) == ["e0"]


def test_only_covered_segments_are_removed_and_never_the_open_one(open_journal: Open, event: MakeEvent) -> None:
    journal = open_journal(segment_bytes=1)
    for n in range(4):
        write(journal, event(f"e{n}"))
    size = segment_path(journal.folder, 2).stat().st_size

    remove_covered(journal.folder, Position(2, size - 1), keep=4)
    assert numbers(journal.folder) == [2, 3, 4]

    remove_covered(journal.folder, journal.end, keep=4)
    assert numbers(journal.folder) == [4]


def test_a_closed_journal_has_written_what_was_queued_and_takes_no_more(open_journal: Open, event: MakeEvent) -> None:
    journal = open_journal()
    queued = [journal.append(encode([event(f"e{n}")])) for n in range(100)]

    journal.close()

    assert all(future.done() for future in queued)
    assert len(ids(journal)) == 100
    with pytest.raises(Overloaded):
        journal.append(encode([event("late")]))
