"""Promises of looking while the collector writes: another process, two doors, and nothing but looking."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from click.testing import CliRunner

from collector.access.keys import add_key, revoke_key
from collector.analysts.metrics import exposition
from collector.analysts.numbers import Answers
from collector.erase import erase
from collector.service import Collector
from cowpath.cli import main
from cowpath.errors import CowpathError, HomeBusy
from cowpath.event import Event
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.skill import Catalogue, Skill, write_catalogue
from cowpath.store import Store

MakeEvent = Callable[..., Event]
StartServer = Callable[..., Any]

ANALYST = """
import json, sys, time
import httpx
from cowpath.store import Store
url, port, token, *queries = sys.argv[1:]

def endpoint(sql):
    answer = client.post("/v1/sql", json={"sql": sql}).json()
    return answer["rows"] if "rows" in answer else answer["error"]["code"]

def quack(sql):
    try:
        return store.rows("select * from quack_query($uri, $sql, token = $token)",
                          {"uri": f"quack:localhost:{port}", "sql": sql, "token": token})
    except Exception as error:
        return "refused" if "Authorization failed" in str(error) else str(error)

headers = {"Authorization": f"Bearer {token}"}
with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60) as client, Store.open() as store:
    store.load_quack()
    for sql in queries or sys.stdin:
        print(json.dumps([endpoint(sql), quack(sql)]), flush=True)
"""
"""Asks each query, from the arguments or line by line, through both doors."""

LOOK = "select count(*), count(distinct event_id), coalesce(max(seq), 0) from analysts.skill_calls"
BATCH = 100
BATCHES = 30
EVERY_S = 0.1


@pytest.fixture
def doors(quack: None, home: Home, start_server: StartServer) -> tuple[str, str]:
    """A server with both doors open: its address, and the port of quack."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    return start_server(COWPATH_QUACK_PORT=port, COWPATH_SQL_TIMEOUT_S="2").url, port


def analyst(doors: tuple[str, str], token: str, *queries: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ANALYST, *doors, token, *queries],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_another_process_sees_a_thousand_events_a_second_grow_through_both_doors(
    home: Home, doors: tuple[str, str]
) -> None:
    reader, sender = add_key(home, "reader", ["read"]), add_key(home, "agent", ["ingest"])
    looks: list[list[list[int]]] = []
    with analyst(doors, reader) as process:
        questions, answers = process.stdin, process.stdout
        assert questions is not None
        assert answers is not None

        def look() -> None:
            print(LOOK, file=questions, flush=True)
            looks.append([rows[0] for rows in json.loads(answers.readline())])

        look()
        sending = threading.Thread(target=send_at_a_steady_rate, args=(doors[0], sender))
        sending.start()
        while sending.is_alive():
            look()
        deadline = time.monotonic() + 60
        while looks[-1][0][0] < BATCH * BATCHES and time.monotonic() < deadline:
            look()
        questions.close()

    for door, seen in enumerate(zip(*looks, strict=True)):
        counts = [n for n, _, _ in seen]
        assert [n for n, ids, last in seen if not n == ids == last] == [], door
        assert counts == sorted(counts), door
        assert len(set(counts)) > 5, door
        assert counts[-1] == BATCH * BATCHES, door


def send_at_a_steady_rate(url: str, key: str) -> None:
    """A thousand events a second, in the order of their ``seq``."""
    began = time.monotonic()
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, trust_env=False) as client:
        for batch in range(BATCHES):
            time.sleep(max(0.0, began + batch * EVERY_S - time.monotonic()))
            numbers = range(batch * BATCH + 1, (batch + 1) * BATCH + 1)
            events = [{"event_id": f"e{n}", "session_id": "s1", "skill_id": f"k{n % 7}", "seq": n} for n in numbers]
            client.post("/v1/events", json=events).raise_for_status()


NO_READ = {
    "INSERT": "insert into live.main.events (event_id) values ('mine')",
    "INSERT into a view": "insert into analysts.skills values (1)",
    "UPDATE": "update live.main.events set skill = 'mine'",
    "DELETE": "delete from live.main.events",
    "CREATE": "create table live.main.mine as select 1",
    "DROP": "drop table live.main.events",
    "data-modifying CTE": "with gone as (delete from live.main.events returning *) select * from gone",
    "EXPLAIN ANALYZE DELETE": "explain analyze delete from live.main.events",
    "smuggled insert": "commit; insert into live.main.events (event_id) values ('mine')",
    "smuggled behind a query": "select 1; delete from live.main.events",
    "COPY TO": "copy analysts.events to '{home}/stolen.csv'",
    "COPY of a query": "copy (select 1) to '{home}/stolen.csv'",
    "EXPORT": "export database '{home}/stolen.csv'",
    "read_text": "select * from read_text('{home}/secret')",
    "read_text deep inside": "select (select content from read_text('{home}/secret')) from analysts.events",
    "file as a table": "select * from '{home}/catalogue.jsonl'",
    "ATTACH": "attach '{home}/usage.duckdb' as other",
    "ATTACH in memory": "attach ':memory:' as other",
    "SET": "set threads = 1",
    "RESET": "reset lock_configuration",
    "PRAGMA": "pragma database_list",
    "CALL": "call quack_stop('quack:localhost:{port}')",
    "LOAD": "load json",
    "settings": "select * from duckdb_settings()",
    "raw table": "select * from live.main.rejected",
}
ENDLESS = {
    "endless": "select sum(a.range * b.range) from range(100000000000) as a, range(100000) as b",
    "endless recursion": "with recursive r as (select 1 as n union all select n + 1 from r) select max(n) from r",
}


def test_what_is_no_read_or_has_no_end_is_refused_at_both_doors(home: Home, doors: tuple[str, str]) -> None:
    reader = add_key(home, "reader", ["read"])
    add_key(home, "agent", ["ingest"])
    httpx.post(
        f"{doors[0]}/v1/events",
        json={"session_id": "s1", "skill_id": "plan", "event_id": "e1"},
        headers={"Authorization": f"Bearer {home.local_key.read_text()}"},
    ).raise_for_status()
    queries = {what: sql.format(home=home.root, port=doors[1]) for what, sql in (NO_READ | ENDLESS).items()}

    with analyst(doors, reader, *queries.values(), LOOK) as process:
        assert process.stdout is not None
        *answers, look = [json.loads(line) for line in process.stdout]

    assert dict(zip(queries, answers, strict=True)) == (
        {what: ["query_refused", "refused"] for what in NO_READ}
        | {what: ["query_stopped", "refused"] for what in ENDLESS}
    )
    assert look == [[[1, 1, 0]]] * 2
    assert not (home.root / "stolen.csv").exists()


def test_a_wrong_key_and_one_of_another_scope_read_nothing_at_the_endpoint(home: Home, start_server: Any) -> None:
    """Over quack the same is promised in test_quack."""
    server = start_server()
    ingest, gone = add_key(home, "agent", ["ingest"]), add_key(home, "gone", ["read"])
    revoke_key(home, "gone")
    tokens = {"cow_nobody-gave-this-out": 401, gone: 401, ingest: 403, add_key(home, "reader", ["read"]): 200}
    assert {
        token: httpx.post(
            f"{server.url}/v1/sql", json={"sql": "select 1"}, headers={"Authorization": f"Bearer {token}"}
        ).status_code
        for token in tokens
    } == tokens


def test_the_command_asks_live_with_the_key_of_this_machines_own_commands(home: Home, start_server: Any) -> None:
    add_key(home, "agents", ["ingest"])
    start_server()
    asked = CliRunner().invoke(main, ["sql", "select 1 as one", "--live", "--home", str(home.root)])
    assert json.loads(asked.stdout)["rows"] == [[1]]


def test_a_query_that_an_erasure_meets_is_told_to_come_again(start_server: StartServer) -> None:
    server = start_server(COWPATH_SQL_QUERIES="1")
    endless = "select sum(a.range * b.range) from range(100000000000) as a, range(100000) as b"
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
        client.post("/v1/events", json={"session_id": "s1", "skill_id": "plan"}).raise_for_status()
        answers: list[httpx.Response] = []

        def ask() -> None:
            while not answers or answers[-1].json()["error"]["code"] == "overloaded":
                answers.append(client.post("/v1/sql", json={"sql": endless}))

        asking = threading.Thread(target=ask)
        asking.start()
        # Until the only place is taken for good: each of these holds it for a moment itself.
        while client.post("/v1/sql", json={"sql": "select 1"}).status_code == 200:
            time.sleep(0.1)
        client.delete("/v1/subjects/session/s1").raise_for_status()
        asking.join()
        after = client.post("/v1/sql", json={"sql": "select count(*) from events"})

    assert (answers[-1].status_code, answers[-1].json()["error"]["code"]) == (503, "home_busy")
    assert int(answers[-1].headers["Retry-After"]) > 0
    assert after.json()["rows"] == [[0]]


def test_whoever_looks_while_the_store_is_replaced_gets_an_answer_or_is_told_to_come_again(
    collector: Collector, home: Home, event: MakeEvent
) -> None:
    """DuckDB hung here for ever: a connection was closed while another thread was inside a query on its cursor."""
    collector.take_in([event(f"e{n}", session_id=f"s{n % 30}") for n in range(300)])
    collector.flush()
    looking = (
        lambda: collector.live.query("select count(*) from sessions", limit=1, timeout_s=30),
        lambda: collector.live.query("select count(*) from information_schema.tables", limit=1, timeout_s=30),
        lambda: exposition(collector, Answers()),
        collector.counts,
    )
    came: Counter[str] = Counter()
    stop = threading.Event()

    def look(ask: Callable[[], object]) -> None:
        while not stop.is_set():
            try:
                ask()
                came["answer"] += 1
            except CowpathError as error:
                came[f"{error.http_status} {error.code}"] += 1

    def rename() -> None:
        for n in range(1_000_000):
            write_catalogue(home.catalogue, Catalogue([Skill(skill_id=f"p:{n}", name="plan")]))
            if stop.wait(0.002):
                return

    threads = [threading.Thread(target=look, args=(ask,)) for ask in looking] + [threading.Thread(target=rename)]
    for thread in threads:
        thread.start()
    for n in range(4):
        erase(collector, "session", f"s{n}")
    stop.set()
    for thread in threads:
        thread.join()

    assert set(came) == {"answer", "503 home_busy"}
    with collector.cursor() as store:
        assert store.rows("select count(*) from events") == [(260,)]


def test_the_new_store_is_whole_before_it_takes_the_old_ones_place(settings: Settings, event: MakeEvent) -> None:
    """Also where a query that looks into every database keeps DuckDB from closing the copy."""
    logs: list[list[Path]] = []
    held, swapping = threading.Event(), threading.Event()

    class Watched(Collector):
        def _swap(self, fresh: Path, *, erasures: int) -> None:
            assert held.wait(30)
            logs.append(list(self.home.root.glob(f"{fresh.name}.wal")))
            swapping.set()
            super()._swap(fresh, erasures=erasures)

    with Watched(settings) as collector:
        collector.take_in([event(f"e{n}", session_id=f"s{n % 3}") for n in range(3000)])
        collector.flush()

        def hold_the_copy() -> None:
            with suppress(HomeBusy), collector.cursor() as store:
                while not held.is_set():
                    with store.transaction():
                        if store.rows("select 1 from information_schema.tables where table_catalog = 'fresh'"):
                            held.set()
                            swapping.wait(30)

        holding = threading.Thread(target=hold_the_copy)
        holding.start()
        erase(collector, "session", "s1")
        holding.join()
    assert logs == [[]]


def test_a_store_that_is_closed_lets_calls_on_its_cursors_come_back_and_refuses_the_next() -> None:
    """DuckDB hung here for ever: it closes the cursors too, also one that another thread is inside of."""
    for _ in range(50):
        store = Store.open()
        cursors = [store.cursor() for _ in range(2)]
        came: list[str] = []
        threads = [threading.Thread(target=_register_until_closed, args=(cursor, came)) for cursor in cursors]
        for thread in threads:
            thread.start()
        time.sleep(0.002)
        store.close()
        for thread in threads:
            thread.join()
        assert came == ["home_busy"] * 2


def _register_until_closed(cursor: Store, came: list[str]) -> None:
    table = pa.table({"n": [1]})
    try:
        while True:
            with cursor.visible("numbers", table):
                cursor.rows("select n from numbers")
    except HomeBusy as error:
        came.append(error.code)
