"""Promises of the tail: what memory says is what the segments say, and where it says nothing the segments do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.journal import Journal
from collector.segments import Batch, Lines, Position, encode, read
from collector.tail import Tail
from cowpath.event import Event, Rejected

MakeEvent = Callable[..., Event]


def said(batch: Batch) -> tuple[object, object, Position]:
    return batch.events, batch.rejected, batch.end


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=12),
    segment_bytes=st.sampled_from([200, 1_000, 100_000]),
    limit=st.integers(1, 12),
)
def test_memory_and_disk_say_the_same_whatever_the_writes_and_the_limit(
    tmp_path_factory: pytest.TempPathFactory, event: MakeEvent, sizes: list[int], segment_bytes: int, limit: int
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    journal = Journal(folder, drained=Position(), segment_bytes=segment_bytes, max_pending_bytes=10**6)
    letter = Rejected(code="bad_json", message="no")
    for n, size in enumerate(sizes):
        journal.append(encode([*(event(f"{n}-{m}", extra={"n": n}) for m in range(size)), letter])).result()
    journal.close()

    position, remembered = Position(), Batch()
    while position < journal.end:
        batch = journal._tail.take(position, limit=limit)
        assert batch is not None
        remembered.events += batch.events
        remembered.rejected += batch.rejected
        position = remembered.end = batch.end

    assert said(remembered) == said(read(folder, Position(), journal.end, limit=10_000))


def test_what_memory_let_go_is_read_from_the_disk_and_memory_takes_over_again(tmp_path: Path, event: MakeEvent) -> None:
    journal = Journal(tmp_path, drained=Position(), segment_bytes=10**6, max_pending_bytes=10**6)
    one = encode([event("e0")])
    journal._tail = Tail(max_bytes=3 * len(one.data))
    for n in range(10):
        journal.append(encode([event(f"e{n}")])).result()
    assert journal._tail.take(Position(), limit=100) is None

    first = journal.read(Position(), journal.end, limit=7)
    rest = journal._tail.take(first.end, limit=100)

    assert rest is not None
    assert [e.event_id for _, e in [*first.events, *rest.events]] == [f"e{n}" for n in range(10)]
    journal.close()


def test_a_position_inside_a_write_is_read_from_the_disk(tmp_path: Path, event: MakeEvent) -> None:
    journal = Journal(tmp_path, drained=Position(), segment_bytes=10**6, max_pending_bytes=10**6)
    lines = encode([event("e0"), event("e1")])
    journal.append(lines).result()
    inside = Position(journal.end.segment, lines.lengths[0])

    assert journal._tail.take(inside, limit=10) is None
    assert [e.event_id for _, e in journal.read(inside, journal.end, limit=10).events] == ["e1"]
    journal.close()


def test_nothing_is_remembered_of_a_write_that_failed(tmp_path: Path, event: MakeEvent) -> None:
    def sync(handle: int) -> None:
        raise OSError("the disk is gone")

    journal = Journal(tmp_path, drained=Position(), segment_bytes=10**6, max_pending_bytes=10**6, sync=sync)
    with pytest.raises(Exception, match="the disk is gone"):
        journal.append(encode([event("e0")])).result(10)

    assert journal._tail.take(Position(), limit=10) is None
    journal.close()


def test_bytes_without_items_do_not_break_the_count(tmp_path: Path, event: MakeEvent) -> None:
    tail, start = Tail(), Position(1, 0)
    lines = encode([event("e0")])
    tail.add(Position(), start, Lines(b""))
    tail.add(start, start, lines)

    batch = tail.take(Position(), limit=10)

    assert batch is not None
    assert (len(batch), batch.end) == (1, Position(1, len(lines.data)))
