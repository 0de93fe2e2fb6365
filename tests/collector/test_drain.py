"""Promises of the drain and of the store behind it: each id once, whatever order, whatever broke."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from collector.doors import open_door
from collector.segments import numbers, segment_path
from collector.service import Collector
from cowpath.errors import HomeBusy, Overloaded, StoreDamaged
from cowpath.event import Event, Rejected
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.store import Store

MakeEvent = Callable[..., Event]
KeptIds = Callable[[Path], list[str]]


def stop_dead(collector: Collector) -> None:
    """Let go of the home as a killed process does: nothing folded, nothing flushed."""
    collector.journal.close()
    collector.drain._remove_covered = lambda: None  # type: ignore[method-assign]  # a dead process removes nothing
    collector.drain.close(grace_s=0)
    collector._store.close()
    collector.lock.release()


def test_b3_an_id_is_kept_once_inside_a_batch_across_batches_and_after_a_restart(
    settings: Settings, event: MakeEvent, kept_ids: KeptIds
) -> None:
    events = [event("e1"), event("e2", minute=5), event("e1"), event("none", called_at=None)]
    flagged = [event("old", minute=-(10**8) // 2), event("new", minute=10**6)]

    with Collector(settings) as collector:
        first = collector.take_in(events + flagged)
        collector.flush()
        second = collector.take_in(events + flagged)
    with Collector(settings) as collector:
        third = collector.take_in(events + flagged)

    assert kept_ids(settings.at.live) == ["e1", "e2", "new", "none", "old"]
    assert [(r.accepted, r.duplicates) for r in (first, second, third)] == [(5, 1), (0, 6), (0, 6)]


def test_b2_an_old_repeat_that_no_receipt_remembers_is_still_dropped(
    settings: Settings, event: MakeEvent, kept_ids: KeptIds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.service.RECENT_IDS", 1)
    with Collector(settings) as collector:
        for n in range(20):
            collector.take_in([event(f"e{n}", minute=n)])
        late = collector.take_in([event("e3", minute=3)])
        collector.flush()
        assert (late.duplicates, collector.drain.duplicates) == (0, 1)

    assert len(kept_ids(settings.at.live)) == 20


def test_a_local_door_counts_repeats_exactly(
    settings: Settings, event: MakeEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.service.RECENT_IDS", 1)
    events = [event(f"e{n}", minute=n) for n in range(20)]

    with open_door(settings) as door:
        first, second = door.send(events), door.send([*events[:5], event("e99")])

    assert (first.accepted, first.duplicates) == (20, 0)
    assert (second.accepted, second.duplicates) == (1, 5)


def test_the_order_of_arrival_does_not_change_what_is_stored(tmp_path: Path, event: MakeEvent) -> None:
    events = [event(f"e{n:03d}", minute=n % 7, seq=n, session_id=f"s{n % 3}", outcome="ok") for n in range(200)]
    stored = []
    for seed in range(3):
        shuffled = random.Random(seed).sample(events + events[:50], 250)
        settings = Settings(home=str(tmp_path / str(seed)), publish_every_s=0, drain_batch_events=17)
        with Collector(settings) as collector:
            for start in range(0, 250, 40):
                collector.take_in(shuffled[start : start + 40])
        with Store.open(settings.at.live, read_only=True) as store:
            stored.append(store.rows("select * exclude (stored_at, arrival) from events order by event_id"))

    assert stored[0] == stored[1] == stored[2]
    assert len(stored[0]) == 200


def test_dead_letters_are_kept_once_an_id_and_reason(settings: Settings, event: MakeEvent) -> None:
    letters = [Rejected(code="bad_json", message="no"), Rejected(code="bad_json", message="no")]
    named = [event("u1", skill="custom_skill")]

    with Collector(settings) as collector:
        receipts = [collector.take_in(letters), collector.take_in(named), collector.take_in(named + named)]
        collector.flush()
        assert collector.counts()["rejected"] == {"bad_json": 2, "unnamed_skill": 1}

    assert [r.rejected for r in receipts] == [2, 1, 2]
    assert receipts[1].errors[0].event_id == "u1"


def test_what_was_acknowledged_but_not_drained_is_replayed(
    settings: Settings, event: MakeEvent, kept_ids: KeptIds
) -> None:
    collector = Collector(settings)
    collector.take_in([event("drained")])
    collector.flush()
    collector.take_in([event(f"e{n}") for n in range(5)])
    stop_dead(collector)

    with Collector(settings) as collector:
        collector.flush()

    assert kept_ids(settings.at.live) == ["drained", "e0", "e1", "e2", "e3", "e4"]


def test_report_37_a_write_ahead_log_that_cannot_be_replayed_is_set_aside_and_the_journal_read_again(
    settings: Settings, event: MakeEvent, kept_ids: KeptIds, tmp_path: Path
) -> None:
    crashed = replace(settings, home=str(tmp_path / "crashed"))
    with Collector(settings) as collector:
        collector.take_in([event("before"), event("custom", skill="third-party")])
        collector.flush()
        collector.drain._store.checkpoint()
        collector.take_in([event(f"e{n}") for n in range(300)])
        collector.flush()
        copy_as_a_crash_would(settings.at, crashed.at)
    wal = crashed.at.live.with_name("live.duckdb.wal")
    data = bytearray(wal.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 400] = b"\xff" * 400
    wal.write_bytes(data)

    with Collector(crashed) as collector:
        collector.flush()
        counts = collector.counts()

    assert counts["since_start"]["write_ahead_logs_set_aside"] == 1
    assert counts["rejected"] == {"unnamed_skill": 1}
    assert len(kept_ids(crashed.at.live)) == 301
    assert list(crashed.at.root.glob("live.duckdb.wal.unreadable-1"))


def copy_as_a_crash_would(home: Home, to: Home) -> None:
    """The files as they are on disk at this moment, for another home to start from."""
    to.journal.mkdir(parents=True)
    for path in (home.live, home.live.with_name("live.duckdb.wal"), home.secret):
        to.root.joinpath(path.name).write_bytes(path.read_bytes())
    for number in numbers(home.journal):
        segment_path(to.journal, number).write_bytes(segment_path(home.journal, number).read_bytes())


def test_segments_go_when_a_checkpoint_covers_them_and_numbers_are_never_used_again(
    settings: Settings, event: MakeEvent, kept_ids: KeptIds
) -> None:
    with Collector(settings) as collector:
        collector.take_in([event("e1")])
        first = collector.journal.end
    assert numbers(settings.at.journal) == []

    with Collector(settings) as collector:
        collector.take_in([event("e2")])
        assert collector.journal.end > first
    assert kept_ids(settings.at.live) == ["e1", "e2"]


def test_a_second_collector_is_refused_in_one_sentence_with_the_process_that_holds_the_home(
    settings: Settings, collector: Collector
) -> None:
    collector.lock.announce("http://127.0.0.1:1")

    with pytest.raises(HomeBusy, match=r"process \d+ holds it and listens on http://127.0.0.1:1") as refusal:
        Collector(settings)

    assert "\n" not in refusal.value.message


def test_a_home_that_cannot_be_written_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")

    with pytest.raises(StoreDamaged, match="choose another folder"):
        Collector(Settings(home=str(tmp_path / "file" / "home")))


def test_a_closed_collector_takes_nothing_in(settings: Settings, event: MakeEvent) -> None:
    with Collector(settings) as collector:
        pass

    with pytest.raises(Overloaded):
        collector.take_in([event("late")])


def test_the_secret_is_made_once_and_is_the_owners_alone(settings: Settings) -> None:
    secrets = []
    for _ in range(2):
        with Collector(settings):
            secrets.append(settings.at.secret.read_bytes())

    assert secrets[0] == secrets[1]
    assert len(secrets[0]) == 64
    assert settings.at.secret.stat().st_mode & 0o777 == 0o600
