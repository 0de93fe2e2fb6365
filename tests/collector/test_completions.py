"""Promises about repeats: one visible row an id for ever, completed by later copies and changed by none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as trying
from hypothesis import strategies as st

from collector.completions import FIELDS, completions, is_known, originals_of
from collector.known_ids import KnownIds
from collector.service import Collector
from cowpath.event import Event
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.store import Store

MakeEvent = Callable[..., Event]

FULL: dict[str, Any] = {
    "trigger": "user", "outcome": "ok", "duration_ms": 12.0, "actor": "ada", "agent": "a", "agent_version": "1",
    "suggested_by": "run-1", "batch_id": "b",
}  # fmt: skip


def visible(home: Home, columns: str) -> list[tuple[Any, ...]]:
    with Store.open(home.usage, read_only=True) as usage:
        return usage.rows(f"select {columns} from events order by event_id")


def test_report_14_a_later_copy_completes_what_is_unknown_and_changes_nothing_else(
    collector: Collector, home: Home, event: MakeEvent
) -> None:
    collector.take_in([event("e1", seq=1, source="claude-hooks")])
    collector.flush()
    collector.take_in(
        [event("e1", minute=3, seq=9, skill="other", session_id="s9", source="otlp", outcome="error", duration_ms=7.0)]
    )
    collector.take_in([event("e1", source="otlp", outcome="ok", duration_ms=8.0, trigger="user")])
    collector.publish()

    seen = visible(home, "session_id, seq, skill, source, outcome, duration_ms, trigger, sources")
    assert seen == [("s1", 1, "plan", "claude-hooks", "error", 7.0, "user", "claude-hooks, otlp")]
    assert collector.drain.completed == 2


def test_a_batch_that_becomes_known_late_makes_calls_parallel_after_all(
    collector: Collector, home: Home, event: MakeEvent
) -> None:
    # Each call's own hook comes first and knows no batch; then the hook of the parallel batch names both.
    collector.take_in([event("e1", skill="lint"), event("e2", skill="test")])
    collector.flush()
    collector.take_in([event("e1", skill="lint", batch_id="b1"), event("e2", skill="test", batch_id="b1")])
    collector.publish()

    assert visible(home, "event_id, batch_id") == [("e1", "b1"), ("e2", "b1")]


def test_a_repeat_that_knows_nothing_new_leaves_no_row(collector: Collector, event: MakeEvent) -> None:
    for _ in range(3):
        collector.take_in([event("e1", outcome="ok"), event("e1", outcome="ok")])
        collector.flush()

    assert collector.drain.completed == 0
    assert collector.counts()["since_start"]["repeats_dropped"] == 5


def test_live_reading_shows_the_completed_event_at_once(collector: Collector, event: MakeEvent) -> None:
    collector.take_in([event("e1"), event("e1", outcome="denied", source="otlp")])
    collector.flush()

    store = collector._store.cursor()
    assert store.rows("select outcome, sources from completed_events") == [("denied", "http, otlp")]


@pytest.mark.parametrize(
    "later",
    [{}, {"minute": 60 * 24 * 90}, {"called_at": None}, {"minute": -(10**8) // 2}, {"minute": 10**6}],
    ids=["same time", "months later", "no time", "ancient", "future"],
)
@pytest.mark.parametrize("first", [{}, {"called_at": None}, {"minute": 10**6}], ids=["timed", "untimed", "future"])
def test_b2_an_id_is_one_row_for_ever_whatever_time_its_copies_carry(
    settings: Settings, event: MakeEvent, kept_ids: Callable[[Path], list[str]], first: Any, later: Any
) -> None:
    with Collector(settings) as collector:
        collector.take_in([event("e1", **first), event("e2")])
    with Collector(settings) as collector:
        collector.take_in([event("e1", **later), event("e3", **later)])
        collector.flush()
        collector.take_in([event("e1", **later)])

    assert kept_ids(settings.at.live) == ["e1", "e2", "e3"]


@st.composite
def two_views_of_a_call(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two copies that do not contradict each other: each knows some fields of the same truth."""
    names = sorted(FULL)
    return tuple({n: FULL[n] for n in draw(st.sets(st.sampled_from(names)))} for _ in range(2))  # type: ignore[return-value]


@given(two_views_of_a_call())
@trying(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_which_of_two_copies_comes_first_decides_order_and_skill_only(
    event: MakeEvent, views: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    hook, trace = (event("e1", source=source, **known) for source, known in zip(("hook", "otlp"), views, strict=True))

    assert completed(hook, trace) == completed(trace, hook) == views[0] | views[1]


def completed(first: Event, later: Event) -> dict[str, Any]:
    """What is known after both came, by the rows that would be kept."""
    later = msgspec.structs.replace(later, stored_at=later.called_at)
    originals = originals_of([("e1", 1, *(getattr(first, name) for name in FIELDS), first.source)])
    known = dict(originals["e1"].known)
    for row in completions([(2, later)], originals):
        known |= {name: row[name] for name in FIELDS if is_known(row.get(name))}
    return known


def test_the_two_orders_of_arrival_give_the_same_published_fields(tmp_path: Path, event: MakeEvent) -> None:
    hook = event("e1", seq=4, source="hook", trigger="user", actor="ada")
    trace = event("e1", seq=4, source="otlp", outcome="ok", duration_ms=5.0, agent_version="2", actor="ada")
    seen = []
    for name, copies in (("ab", [hook, trace]), ("ba", [trace, hook])):
        home = Home(tmp_path / name)
        home.root.mkdir()
        home.secret.write_bytes(b"0" * 64)
        with Collector(Settings(home=str(home.root), publish_every_s=0)) as collector:
            for copy in copies:
                collector.take_in([copy])
                collector.flush()
            collector.publish()
        seen.append(visible(home, "* exclude (stored_at, arrival, source, changed)"))

    assert seen[0] == seen[1]


def test_equal_hashes_of_different_ids_are_two_events(
    settings: Settings, event: MakeEvent, kept_ids: Callable[[Path], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    same = np.zeros(3, dtype=np.uint64)
    monkeypatch.setattr("collector.drain._as_hashes", lambda table: same[: len(table)])

    with Collector(settings) as collector:
        collector.take_in([event("e1"), event("e2"), event("e1", outcome="ok")])
        collector.flush()
        collector.take_in([event("e3"), event("e2")])

    assert kept_ids(settings.at.live) == ["e1", "e2", "e3"]


@given(st.lists(st.lists(st.integers(0, 40), max_size=12), max_size=12))
def test_known_ids_are_a_set(batches: list[list[int]]) -> None:
    known, expected = KnownIds(), set[int]()
    for batch in batches:
        hashes = np.array(batch, dtype=np.uint64)
        seen = known.seen(hashes)
        assert [*seen] == [h in expected or h in batch[:n] for n, h in enumerate(batch)]
        known.add(hashes[~seen])
        expected |= set(batch)
    assert len(known) == len(expected)


def test_b8_skew_is_noted_in_steps_of_five_minutes_and_never_moves_an_event(event: MakeEvent) -> None:
    from collector.skew import with_skew

    sent = event("e1")
    at = sent.called_at
    assert at
    for off_s, noted in ((20, 0), (-140, 0), (161, 300), (-7_190, -7_200)):
        (kept,) = with_skew([sent], at - timedelta(seconds=off_s), now=at)
        assert isinstance(kept, Event)
        assert (kept.extra.get("clock_skew_s"), kept.called_at) == (noted, at)


def test_b11_report_19_an_event_that_comes_months_late_keeps_its_own_time(
    collector: Collector, home: Home, event: MakeEvent
) -> None:
    late = event("e1", minute=-60 * 24 * 200)
    collector.take_in([event("e0"), late])
    collector.publish()

    assert visible(home, "called_at, clock")[1] == (late.called_at.replace(tzinfo=None), "ok")  # type: ignore[union-attr]
