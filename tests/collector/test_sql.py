"""Promises of SQL beside the writer: the views of the published copy to the latest event, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from collector.service import Collector
from cowpath.errors import InputError, Overloaded, QueryRefused, QueryStopped
from cowpath.event import Event
from cowpath.home import Home
from cowpath.skill import Catalogue, Skill, write_catalogue
from cowpath.store import Store, sql_names

MakeEvent = Callable[..., Event]


def asked(collector: Collector, sql: str, *, limit: int = 100, timeout_s: float = 30.0) -> list[tuple[object, ...]]:
    collector.flush()
    table = collector.live.query(sql, limit=limit, timeout_s=timeout_s)
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.fixture
def filled(collector: Collector, event: MakeEvent) -> Iterator[Collector]:
    collector.take_in([event("e1"), event("e2", skill="test", minute=1)])
    collector.flush()
    yield collector
    assert asked(collector, "select count(*) from events") == [(2,)]


REFUSED = {
    "INSERT": "insert into live.main.drained values (1, 1)",
    "UPDATE": "update live.main.events set skill = 'x'",
    "DDL": "create table live.main.mine as select 1",
    "temporary table": "create temp table mine as select 1",
    "data-modifying CTE": "with gone as (delete from events returning *) select * from gone",
    "EXPLAIN ANALYZE DELETE": "explain analyze delete from live.main.events",
    "smuggled insert": "commit; insert into live.main.drained values (1, 1)",
    "second statement": "select 1; drop table live.main.events",
    "closed bracket": "select 1) limit 1; delete from live.main.events; select * from (select 1",
    "COPY TO": "copy events to '{home}/stolen.csv'",
    "read_text": "select * from read_text('{home}/secret')",
    "read_text in a subquery": "select (select content from read_text('{home}/secret'))",
    "read_csv": "select * from read_csv('{home}/secret')",
    "read_blob of the journal": "select * from read_blob('{home}/journal/*')",
    "file as a table": "select * from '{home}/catalogue.jsonl'",
    "glob": "select * from glob('{home}/*')",
    "ATTACH": "attach '{home}/usage.duckdb' as other",
    "ATTACH in memory": "attach ':memory:' as other",
    "SET": "set threads = 1",
    "PRAGMA": "pragma database_list",
    "CALL": "call pragma_version()",
    "CHECKPOINT": "checkpoint",
    "LOAD": "load httpfs",
    "PREPARE": "prepare later as delete from events",
    "raw tables": "select * from live.main.rejected",
    "query in a query": "select * from query('select 1')",
    "table by name": "select * from query_table('live.main.rejected')",
    "settings": "select * from duckdb_settings()",
    "not SQL": "se lect",
    "nothing": "",
    "unknown table": "select * from nowhere",
    "unknown parameter": "select $who",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_query_over_the_published_tables_is_refused(what: str, filled: Collector) -> None:
    with pytest.raises(QueryRefused):
        asked(filled, REFUSED[what].format(home=filled.home.root))

    assert not (filled.home.root / "stolen.csv").exists()


@pytest.mark.parametrize(
    "sql",
    [
        "copy (select 1) to '{home}/stolen.csv'",
        "select * from read_text('{home}/secret')",
        "attach '{home}/other.duckdb' as other",
        "set threads = 1",
        "set enable_external_access = true",
    ],
)
def test_the_store_itself_is_locked_from_files_and_settings_while_it_publishes(sql: str, filled: Collector) -> None:
    filled.publish()
    with filled.cursor() as cursor, pytest.raises(Exception, match=r"disabled by config|has been locked"):
        cursor.execute(sql.format(home=filled.home.root))


@pytest.mark.parametrize("sql", ["delete from events", "create table mine as select 1"])
def test_a_read_only_query_cannot_write_even_where_no_parser_stopped_it(sql: str, tmp_path: object) -> None:
    with Store.open() as store:
        store.execute("create table events as select 1 as n")
        with pytest.raises(QueryRefused):
            store.cursor().read_only(sql, limit=1, timeout_s=30)
        assert store.rows("select n from events") == [(1,)]


def test_an_endless_query_is_stopped(filled: Collector) -> None:
    with pytest.raises(QueryStopped, match=r"after 0\.3 s"):
        asked(filled, "select count(*) from range(100000000000) as a, range(100000) as b", timeout_s=0.3)


def test_a_giant_result_is_cut_at_the_limit(filled: Collector) -> None:
    assert asked(filled, "select range as n from range(10000000000)", limit=3) == [(0,), (1,), (2,)]


def test_more_queries_at_once_than_there_are_places_are_told_to_wait(filled: Collector) -> None:
    endless = "select count(*) from range(100000000000) as a, range(100000) as b"
    busy = [threading.Thread(target=_stopped, args=(filled, endless)) for _ in range(filled.settings.sql_queries)]
    for thread in busy:
        thread.start()
    with pytest.raises(Overloaded):  # noqa: PT012  # when the others hold their places cannot be known
        while True:
            filled.live.query("select 1", limit=1, timeout_s=1)
    for thread in busy:
        thread.join()


def _stopped(collector: Collector, sql: str) -> None:
    with pytest.raises((QueryStopped, Overloaded)):
        collector.live.query(sql, limit=1, timeout_s=2)


def test_the_live_views_say_what_the_published_copy_says(home: Home, collector: Collector, event: MakeEvent) -> None:
    write_catalogue(home.catalogue, Catalogue([Skill(skill_id="p:plan", name="plan", aliases=("plan",))]))
    collector.take_in(
        [event(f"e{n}", seq=n, skill=("plan", "test", "ship")[n % 3], minute=n, outcome="ok") for n in range(9)]
        + [event("", skill="custom_skill"), event("bad", kind="danced")]
    )
    collector.publish()

    names = [name.partition("_")[2] for name in sql_names("views")]
    with Store.open(home.usage, read_only=True) as usage:
        for name in ["events", "rejected", "skills", "skill_alias", "edges", *names]:
            described = [row[:2] for row in usage.rows(f"describe {name}")]
            assert [row[:2] for row in asked(collector, f"describe {name}")] == described, name
            assert asked(collector, f"select * from {name} order by all") == usage.rows(
                f"select * from {name} order by all"
            ), name


def test_a_query_sees_the_event_that_was_just_drained_and_the_name_that_was_just_given(
    home: Home, filled: Collector
) -> None:
    assert asked(filled, "select distinct skill_id from skill_calls where skill_as_named = 'plan'") == [("plan",)]

    write_catalogue(home.catalogue, Catalogue([Skill(skill_id="p:plan", name="plan", aliases=("plan",))]))

    assert asked(filled, "select distinct skill_id from skill_calls where skill_as_named = 'plan'") == [("p:plan",)]


def test_queries_publish_and_intake_go_on_side_by_side(collector: Collector, event: MakeEvent) -> None:
    stop = threading.Event()
    failures: list[BaseException] = []

    def ask() -> None:
        while not stop.is_set():
            try:
                # Who lists tables looks into every database, also into the copy that is being made.
                for sql in (
                    "select count(*) from skill_calls",
                    "select sum(range % 7) from information_schema.tables, range(300000)",
                ):
                    collector.live.query(sql, limit=1, timeout_s=30)
            except InputError as error:
                failures.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    for n in range(5):
        collector.take_in([event(f"e{n}-{i}") for i in range(200)])
        collector.publish()
    stop.set()
    asking.join()

    assert failures == []
    assert asked(collector, "select count(*) from skill_calls") == [(1000,)]


def test_parameters_are_values_and_never_sql(filled: Collector) -> None:
    found = filled.live.query(
        "select skill from events where skill = $skill", {"skill": "test' or true --"}, limit=9, timeout_s=30
    )
    assert isinstance(found, pa.Table)
    assert found.num_rows == 0
