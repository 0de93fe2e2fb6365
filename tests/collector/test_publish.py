"""Promises of the published copy: whole, each event once, names resolved, views that answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.doors import open_door
from collector.service import Collector
from cowpath.edge import Edge, write_layer
from cowpath.event import Event
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.skill import Catalogue, Skill, write_catalogue
from cowpath.store import Store, sql_names

MakeEvent = Callable[..., Event]


def published(home: Home, sql: str) -> list[tuple[Any, ...]]:
    with Store.open(home.usage, read_only=True) as usage:
        return usage.rows(sql)


def test_an_empty_home_publishes_empty_tables_and_views_that_answer(settings: Settings) -> None:
    with open_door(settings) as door:
        door.publish()

    for name in ("events", "rejected", "skills", "skill_alias", "edges", *view_names()):
        assert published(settings.at, f"select count(*) from {name}") == [(0,)]


def view_names() -> list[str]:
    return [name.partition("_")[2] for name in sql_names("views")]


def test_every_documented_view_is_there() -> None:
    assert sorted(view_names()) == [
        "coverage_by_source", "edge_evidence", "edges_current", "rejected_by_reason", "session_clocks", "sessions",
        "skill_calls", "skill_counts", "skill_daily", "transitions", "unnamed_calls",
    ]  # fmt: skip


def test_names_are_resolved_through_the_catalogue_and_unknown_ones_stand_for_themselves(
    home: Home, collector: Collector, event: MakeEvent
) -> None:
    skill = Skill(skill_id="p:plan", name="plan", description="Plan.", aliases=("plan", "old-plan"), tags=("a", "b"))
    write_catalogue(home.catalogue, Catalogue([skill]))
    collector.take_in([event("e1"), event("e2", skill="old-plan"), event("e3", skill="p:plan"), event("e4", skill="?")])

    collector.publish()

    assert published(home, "select event_id, skill, skill_id from events order by event_id") == [
        ("e1", "plan", "p:plan"), ("e2", "old-plan", "p:plan"), ("e3", "p:plan", "p:plan"), ("e4", "?", "?"),
    ]  # fmt: skip
    assert published(home, "select skill_id, description, tags from skills") == [("p:plan", "Plan.", ["a", "b"])]
    assert published(home, "select name from skill_alias order by name") == [("old-plan",), ("p:plan",), ("plan",)]


def test_a_repeat_with_another_time_is_published_once_as_it_came_first(
    home: Home, collector: Collector, event: MakeEvent
) -> None:
    collector.take_in([event("e1", minute=1)])
    collector.flush()
    collector.take_in([event("e1", minute=600)])
    collector.flush()
    assert collector.counts()["events"] == 1

    collector.publish()

    assert published(home, "select event_id, minute(called_at) from events") == [("e1", 1)]


def test_edges_of_every_layer_are_inside_and_only_confirmed_ones_are_current(home: Home, collector: Collector) -> None:
    def edge(target: str, provenance: Any, status: Any) -> Edge:
        return Edge(
            source="a", relation="precedes", target=target, status=status, provenance=provenance, evidence={"n": 3}
        )

    write_layer(home.edges, "curated", [edge("b", "curated", "confirmed")])
    write_layer(home.edges, "learned", [edge("c", "learned", "confirmed"), edge("d", "learned", "candidate")])

    collector.publish()

    assert published(home, "select target, provenance, evidence from edges order by target") == [
        ("b", "curated", '{"n":3}'), ("c", "learned", '{"n":3}'), ("d", "learned", '{"n":3}'),
    ]  # fmt: skip
    assert published(home, "select target from edges_current order by target") == [("b",), ("c",)]


def test_the_evidence_of_an_edge_stands_in_columns_and_what_nobody_counted_is_null(
    home: Home, collector: Collector
) -> None:
    evidence = {
        "sessions": 83,
        "lift": 12.5,
        "drifted": False,
        "witness": "actor",
        "first_seen": "2026-03-02T11:07:11Z",
    }
    known = Edge(
        source="a", relation="precedes", target="b", status="confirmed", provenance="learned", evidence=evidence
    )
    write_layer(home.edges, "learned", [known])
    by_hand = msgspec.structs.replace(known, target="c", provenance="curated", evidence={"sessions": "many"})
    write_layer(home.edges, "curated", [by_hand])

    collector.publish()

    columns = "target, provenance, sessions, lift, q, drifted, witness, first_seen"
    assert published(home, f"select {columns} from edge_evidence order by target") == [
        ("b", "learned", 83, 12.5, None, False, "actor", datetime(2026, 3, 2, 11, 7, 11)),
        ("c", "curated", None, None, None, None, None, None),
    ]


def test_every_number_that_the_miner_writes_into_an_edge_is_a_column(home: Home, collector: Collector) -> None:
    """The two dictionaries of numbers, read from the source: the miner's rooms are not the collector's to import."""
    source = (Path(__file__).parents[2] / "miner" / "edges.py").read_text()
    written = set(re.findall(r'^        "(\w+)": ', source, re.MULTILINE)) - {"capped_forward", "capped_backward"}
    collector.publish()
    columns = {column for column, *_ in published(home, "describe edge_evidence")}
    assert len(written) > 20
    assert written - columns == set()


def test_report_2_a_call_that_two_doors_saw_is_counted_for_the_first_and_seen_by_both(
    home: Home, collector: Collector, event: MakeEvent
) -> None:
    collector.take_in([event("e1", source="hook"), event("e2", source="hook"), event("e3", source="import")])
    collector.flush()
    collector.take_in([event("e2", source="import"), event("e1", source="otel")])

    collector.publish()

    assert published(
        home, "select source, calls, calls_seen, calls_only_here from coverage_by_source order by source"
    ) == [("hook", 2, 2, 0), ("import", 1, 2, 1), ("otel", 0, 1, 0)]


def test_report_33_a_reader_keeps_the_copy_it_opened_while_a_new_one_takes_its_place(
    home: Home, collector: Collector, event: MakeEvent
) -> None:
    collector.take_in([event("e1")])
    collector.publish()

    with Store.open(home.usage, read_only=True) as reader:
        assert reader.rows("select count(*) from events") == [(1,)]
        collector.take_in([event("e2")])
        collector.publish()
        assert reader.rows("select count(*) from events") == [(1,)]

    assert published(home, "select count(*) from events") == [(2,)]
    assert [p.name for p in home.root.glob("*usage*")] == ["usage.duckdb"]


def test_a_publication_that_fails_leaves_the_old_copy_and_no_temporary_file(
    home: Home, collector: Collector, event: MakeEvent
) -> None:
    collector.take_in([event("e1")])
    collector.publish()
    # A folder in the way of the new copy's name: it cannot be put in place.
    home.usage.rename(home.usage.with_name("old.duckdb"))
    home.usage.mkdir()
    collector.take_in([event("e2")])

    with pytest.raises(IsADirectoryError):
        collector.publish()

    assert collector.counts()["since_start"]["publish_failure"]
    home.usage.rmdir()
    home.usage.with_name("old.duckdb").rename(home.usage)
    assert published(home, "select count(*) from events") == [(1,)]
    collector.publish()
    assert published(home, "select count(*) from events") == [(2,)]
    assert [p.name for p in home.root.glob("*usage*")] == ["usage.duckdb"]


def test_broken_files_at_rest_cost_their_own_rows_and_never_the_publication_of_calls(
    home: Home, collector: Collector, event: MakeEvent
) -> None:
    collector.take_in([event("e1")])
    home.catalogue.write_text("this is no catalogue\n")
    home.edges.mkdir()
    (home.edges / "learned.jsonl").write_text("these are no edges\n")

    collector.publish()

    assert published(home, "select count(*) from events") == [(1,)]
    assert published(home, "select count(*) from edges") == [(0,)]
    assert collector.counts()["edges"]["learned"] is None


def test_a_left_over_log_of_a_tool_that_wrote_into_the_copy_does_not_reach_the_next_copy(
    home: Home, collector: Collector, event: MakeEvent
) -> None:
    collector.take_in([event("e1")])
    home.usage.with_name("usage.duckdb.wal").write_bytes(b"left over")

    collector.publish()

    assert published(home, "select count(*) from events") == [(1,)]


def test_transitions_are_directly_follows_counts_inside_a_stream(
    home: Home, collector: Collector, event: MakeEvent
) -> None:
    table = """
        session  stream  seq   minute  batch  skill
        s1       -       0     0       -      plan
        s1       -       1     9       -      code
        s1       -       2     3       b1     test
        s1       -       3     3       b1     lint
        s1       sub     0     1       -      search
        s2       -       -     5       -      code
        s2       -       -     4       -      plan
        s3       -       -     4       -      plan
        s3       -       -     4       -      code
    """
    collector.take_in(list(events_of(table, event)))
    collector.take_in([event("x", session_id="s1", seq=1, skill="noise", kind="exposed")])

    collector.publish()

    assert published(home, "select skill_id, next_skill_id, n, sessions from transitions order by all") == [
        ("code", "test", 1, 1), ("plan", "code", 2, 2),
    ]  # fmt: skip


def events_of(table: str, event: MakeEvent) -> list[Event]:
    rows = [line.split() for line in table.strip().splitlines()[1:]]
    return [
        event(
            f"e{number}",
            session_id=session,
            stream_id="" if stream == "-" else stream,
            seq=None if seq == "-" else int(seq),
            minute=int(minute),
            batch_id=None if batch == "-" else batch,
            skill=skill,
        )
        for number, (session, stream, seq, minute, batch, skill) in enumerate(rows)
    ]


def test_report_7_the_other_views_count_what_they_say(home: Home, collector: Collector, event: MakeEvent) -> None:
    collector.take_in(
        [
            event("e1", outcome="ok", duration_ms=10.0, trigger="user", actor="ada", source="hook"),
            event("e2", outcome="error", duration_ms=30.0, source="hook"),
            event("e3", called_at=None, source="otel", suggested_by="advice-1"),
            event("e4", kind="exposed", source="hook"),
            event("u1", skill="custom_skill", source="otel"),
            event("", skill="custom_skill", source="otel"),
            event("", skill="custom_skill", source="otel"),
            event("bad", kind="danced", source="hook"),
        ]
    )
    collector.take_in([event("u1", skill="custom_skill", source="otel")])

    collector.publish()

    assert published(home, "select calls, skills, failed_calls, suggested_calls from sessions") == [(3, 1, 1, 1)]
    assert published(
        home,
        "select calls, actors, calls_by_users, ok_calls, failed_calls, median_duration_ms from skill_daily "
        "where day = '2026-11-30'",
    ) == [(2, 1, 1, 1, 1, 20.0)]
    assert published(home, "select code, source, n from rejected_by_reason order by code") == [
        ("unknown_kind", "hook", 1), ("unnamed_skill", "otel", 3),
    ]  # fmt: skip
    assert published(home, "select placeholder, session_id from unnamed_calls") == [("custom_skill", "s1")] * 3
    assert published(
        home, "select source, calls, unnamed_calls, other_events, share_timed from coverage_by_source order by source"
    ) == [("hook", 2, 0, 1, 1.0), ("otel", 1, 3, 0, 0.0)]
