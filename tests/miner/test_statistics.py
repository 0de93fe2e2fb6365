"""Kept sums: in whatever order a log comes, however it is cut up, whatever is taken back, the counts are the same."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.worlds import live, plant
from cowpath.errors import InputError
from cowpath.event import Event
from cowpath.settings import Settings
from cowpath.store import Store
from miner.edge_eval import event_rows
from miner.parameters import Parameters
from miner.stages import Mining, build, count_pairs
from miner.stages import test_pairs as judge_pairs
from miner.statistics import MOST_SEGMENTS, Update, keep_in, merge, update

WORLD = plant(3, skills=60, templates=10, actors=5)
EVENTS = live(WORLD, sessions=150, seed=3)


@contextmanager
def log_of(path: Path | None = None) -> Iterator[Store]:
    """An empty log and empty statistics."""
    with Store.open() as store:
        store.run("schema/001_formulas")
        with store.visible("given", event_rows([])):
            store.execute("create table events as select * from given")
        keep_in(store, path) if path else keep_in(store)
        yield store


def arrive(store: Store, events: Sequence[Event]) -> Update:
    """The events come, each later than everything before; what is new is counted."""
    ((last,),) = store.rows("select coalesce(max(changed), 0) from events")
    rows = event_rows(events)
    places = pa.array(range(last + 1, last + 1 + len(events)), pa.int64())
    for name in ("arrival", "changed"):
        rows = rows.set_column(rows.schema.get_field_index(name), name, places)
    with store.visible("given", rows):
        store.execute("insert into events select * from given")
    return update(store, Parameters())


def counts(store: Store, counted: Update) -> tuple[pl.DataFrame, list[Any]]:
    """Everything that is read out of the sums, and the edges that follow."""
    mining = Mining(
        settings=Settings(home="/nonexistent"),
        parameters=Parameters(),
        store=store,
        profile=counted.profile,
        witness=counted.witness,
    )
    mining = build(judge_pairs(count_pairs(mining)))
    return mining.pairs, [msgspec.structs.asdict(edge) for edge in mining.edges]


@pytest.fixture(scope="module")
def at_once() -> tuple[pl.DataFrame, list[Any]]:
    with log_of() as store:
        return counts(store, arrive(store, EVENTS))


def same(found: tuple[pl.DataFrame, list[Any]], expected: tuple[pl.DataFrame, list[Any]]) -> bool:
    return found[0].equals(expected[0]) and found[1] == expected[1]


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32), parts=st.integers(1, MOST_SEGMENTS + 6), by_session=st.booleans())
def test_a_log_in_parts_late_events_and_all_counts_as_at_once(
    at_once: tuple[pl.DataFrame, list[Any]], seed: int, parts: int, by_session: bool
) -> None:
    chance = random.Random(seed)
    events = list(EVENTS)
    if by_session:
        sessions = sorted({e.session_id for e in events}, key=lambda _: chance.random())
        order = {session: place for place, session in enumerate(sessions)}
        events.sort(key=lambda e: order[e.session_id])
    else:
        chance.shuffle(events)
    cuts = sorted(chance.sample(range(len(events)), parts - 1))
    with log_of() as store:
        for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
            counted = arrive(store, events[start:end])

        assert same(counts(store, counted), at_once)


def test_only_sessions_with_news_are_read(at_once: tuple[pl.DataFrame, list[Any]]) -> None:
    sessions = sorted({e.session_id for e in EVENTS})
    with log_of() as store:
        first = arrive(store, [e for e in EVENTS if e.session_id in sessions[:100]])
        nothing = update(store, Parameters())
        late = arrive(store, [e for e in EVENTS if e.session_id in sessions[100:103]])

    assert (first.sessions, first.anew) == (100, True)
    assert (nothing.sessions, nothing.anew) == (0, False)
    assert (late.sessions, late.anew) == (3, False)


def test_a_completed_event_counts_as_what_it_is_now() -> None:
    denied = EVENTS[7].event_id
    with log_of() as store:
        arrive(store, EVENTS)
        store.execute(
            "update events set outcome = 'denied', changed = (select max(changed) + 1 from events) "
            "where event_id = $id",
            {"id": denied},
        )
        counted = update(store, Parameters())
        completed = counts(store, counted)
    with log_of() as store:
        changed = [msgspec.structs.replace(e, outcome="denied") if e.event_id == denied else e for e in EVENTS]
        fresh = counts(store, arrive(store, changed))

    assert (counted.sessions, counted.anew) == (1, False)
    assert same(completed, fresh)


def test_erasing_an_actor_equals_never_having_seen_it() -> None:
    gone = EVENTS[0].actor
    with log_of() as store:
        arrive(store, EVENTS)
        store.execute("delete from events where actor = $gone", {"gone": gone})
        counted = update(store, Parameters())
        erased = counts(store, counted)
    with log_of() as store:
        never_seen = counts(store, arrive(store, [e for e in EVENTS if e.actor != gone]))

    assert counted.anew
    assert same(erased, never_seen)


def test_a_second_actor_changes_who_vouches_and_everything_is_counted_anew() -> None:
    one = [msgspec.structs.replace(e, actor="ann") for e in EVENTS[:400]]
    with log_of() as store:
        first = arrive(store, one)
        second = arrive(store, EVENTS[400:])
        grown = counts(store, second)
    with log_of() as store:
        fresh = counts(store, arrive(store, [*one, *EVENTS[400:]]))

    assert (first.witness, second.witness, second.anew) == ("day", "actor", True)
    assert same(grown, fresh)


def test_shards_merge_into_what_one_log_gives(tmp_path: Path, at_once: tuple[pl.DataFrame, list[Any]]) -> None:
    paths = [tmp_path / f"{n}.duckdb" for n in range(4)]
    for n, path in enumerate(paths):
        with log_of(path) as store:
            mine = [e for e in EVENTS if int(e.session_id[1:]) % 4 == n]
            arrive(store, mine[::-1])
    with log_of() as store:
        counted = merge(store, paths)
        assert same(counts(store, counted), at_once)


def test_a_session_counts_once_however_often_it_is_brought(tmp_path: Path) -> None:
    path = tmp_path / "0.duckdb"
    with log_of(path) as store:
        arrive(store, EVENTS)
    with log_of() as store, pytest.raises(InputError, match="a session counts once"):
        merge(store, [path, path])


def test_statistics_that_were_counted_differently_are_refused(tmp_path: Path) -> None:
    for name, actor in (("one", None), ("other", "ann")):
        with log_of(tmp_path / name) as store:
            own = [msgspec.structs.replace(e, session_id=name + e.session_id) for e in EVENTS[:300]]
            arrive(store, own if actor is None else [msgspec.structs.replace(e, actor=actor) for e in own])
    with log_of() as store, pytest.raises(InputError, match="counted differently"):
        merge(store, [tmp_path / "one", tmp_path / "other"])


def test_a_file_that_holds_no_statistics_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path / "usage.duckdb") as other:
        other.execute("create table events (event_id text)")
    with log_of() as store, pytest.raises(InputError, match="holds no statistics"):
        merge(store, [tmp_path / "usage.duckdb"])
    with log_of() as store, pytest.raises(InputError, match="is no file"):
        merge(store, [tmp_path / "nothing"])


def test_a_broken_file_costs_a_recount_and_nothing_else(
    tmp_path: Path, at_once: tuple[pl.DataFrame, list[Any]]
) -> None:
    path = tmp_path / "statistics.duckdb"
    path.write_bytes(b"this is no database" * 1000)
    with log_of(path) as store:
        counted = arrive(store, EVENTS)
        assert counted.anew
        assert same(counts(store, counted), at_once)


def test_counting_goes_on_where_the_last_process_ended(tmp_path: Path, at_once: tuple[pl.DataFrame, list[Any]]) -> None:
    path, half = tmp_path / "statistics.duckdb", EVENTS[: len(EVENTS) // 2]
    with log_of(path) as store:
        arrive(store, half)
    with Store.open() as store:
        store.run("schema/001_formulas")
        with store.visible("given", event_rows(half)):
            store.execute(
                "create table events as select * replace (arrival + 1 as arrival, changed + 1 as changed) from given"
            )
        keep_in(store, path)
        again = update(store, Parameters())
        counted = arrive(store, EVENTS[len(half) :])

        assert (again.sessions, counted.anew) == (0, False)
        assert same(counts(store, counted), at_once)
