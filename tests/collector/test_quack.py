"""Promises of DuckDB's remote protocol: who may connect, what may run, and for how long."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from collector.access.keys import add_key, make_local_key, revoke_key
from collector.analysts.quack import Quack, Readers
from collector.doors import open_door
from collector.erase import erase
from collector.service import Collector
from cowpath.errors import InputError, QueryRefused, RateLimited, Unauthorized
from cowpath.event import Event
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.store import Store

MakeEvent = Callable[..., Event]

COUNT = "select count(*) from analysts.skill_calls"
CLIENT = """
import sys
from cowpath.store import Store
port, token, *queries = sys.argv[1:]
with Store.open() as store:
    store.load_quack()
    for query in queries:
        try:
            ask = "select * from quack_query($uri, $query, token = $token)"
            print(store.rows(ask, {"uri": f"quack:localhost:{port}", "query": query, "token": token}))
        except Exception as error:
            print(str(error).splitlines()[0])
"""


@pytest.fixture
def settings(quack: None, settings: Settings) -> Settings:
    """With quack on a free port, and little time and few rows for a query."""
    return replace(settings, quack_port=_free_port(), sql_timeout_s=1.0, sql_max_rows=1000)


@pytest.fixture
def filled(collector: Collector, event: MakeEvent) -> Collector:
    collector.take_in([event(f"e{n}", session_id=f"s{n % 10}") for n in range(100)])
    collector.flush()
    return collector


def ask(collector: Collector, token: str, *queries: str) -> list[str]:
    """What another process is told, a line a query."""
    port = str(collector.settings.quack_port)
    done = subprocess.run([sys.executable, "-c", CLIENT, port, token, *queries], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


REFUSED = {
    "raw table": "select * from live.main.rejected",
    "raw table by its bare name": "select * from events",
    "raw table behind a name of WITH": "with rejected as (select 1 as n) select n from rejected",
    "raw table under a name of an inner WITH": (
        "select body from rejected union all select n from (with rejected as (select '' as n) select n from rejected)"
    ),
    "stopping the server": "select * from quack_stop('quack:localhost')",
    "who else is connected": "select * from quack_active_connections()",
    "quack's questions to us": "select cowpath_quack_authorization('c', 'select 1') from analysts.events",
    "soon over the first time, perhaps": "select count(*) from analysts.events as a where random() < 0.5",
    "more rows than are answered": "select a.event_id from analysts.events as a, analysts.events as b",
    "longer than it may take": (
        "select sum(hash(a.event_id, b.event_id, c.event_id, d.event_id, e.event_id)) from analysts.events as a, "
        "analysts.events as b, analysts.events as c, analysts.events as d, analysts.events as e"
    ),
}


def test_what_the_endpoint_would_not_answer_does_not_run(filled: Collector) -> None:
    token = add_key(filled.home, "reader", ["read"])
    assert ask(filled, token, COUNT, *REFUSED.values(), COUNT) == [
        "[(100,)]",
        *["Invalid Input Error: Authorization failed"] * len(REFUSED),
        "[(100,)]",
    ]


@pytest.mark.parametrize(
    "function",
    ["cowpath_quack_authorization('c', 'select 1')", "system.main.Cowpath_Quack_authentication('c', 'key', '')"],
)
def test_the_endpoint_too_does_not_let_quacks_questions_be_asked(function: str, filled: Collector) -> None:
    """They run queries themselves, and no timer ends them."""
    with pytest.raises(QueryRefused, match="not open to queries"):
        filled.live.query(f"select list_transform([1], lambda n: {function}) from events", limit=1, timeout_s=1)


def test_a_command_that_opens_the_store_for_a_moment_serves_no_quack(settings: Settings) -> None:
    with open_door(settings) as door, socket.socket() as free:
        door.publish()
        free.bind(("127.0.0.1", settings.quack_port))


def test_a_key_that_may_read_opens_it_and_others_do_not(filled: Collector) -> None:
    add_key(filled.home, "reader", ["read"])
    tokens = {
        "unknown": "cow_nobody-gave-this-out",
        "for ingest": add_key(filled.home, "agent", ["ingest"]),
        "revoked": add_key(filled.home, "gone", ["read"]),
    }
    revoke_key(filled.home, "gone")
    told = {what: ask(filled, token, COUNT) for what, token in tokens.items()}
    assert told == {what: ["Invalid Input Error: Authentication failed"] for what in tokens}
    assert ask(filled, add_key(filled.home, "admin", ["admin"]), COUNT) == ["[(100,)]"]


def test_without_keys_it_opens_to_who_can_read_this_homes_own_key(filled: Collector) -> None:
    make_local_key(filled.home)
    assert ask(filled, filled.home.local_key.read_text(), COUNT) == ["[(100,)]"]
    assert ask(filled, "anybody", COUNT) == ["Invalid Input Error: Authentication failed"]


def test_a_connection_ends_with_its_key_and_keeps_to_its_rate(home: Home) -> None:
    token = add_key(home, "reader", ["read"], rate=2)
    readers = Readers(home)
    assert readers.connect("c1", token)

    readers.check("c1")
    readers.check("c1")
    with pytest.raises(RateLimited):
        readers.check("c1")
    revoke_key(home, "reader")
    with pytest.raises(Unauthorized):
        readers.check("c1")
    with pytest.raises(Unauthorized):
        readers.check("never connected")


def test_an_erasure_replaces_the_store_under_a_client_that_asks_all_the_time(filled: Collector) -> None:
    token = add_key(filled.home, "reader", ["read"])
    answers: list[str] = []
    stop = threading.Event()

    def ask_on() -> None:
        while not stop.is_set():
            answers.extend(ask(filled, token, *[COUNT] * 50))

    asking = threading.Thread(target=ask_on)
    asking.start()
    while not answers:
        stop.wait(0.05)
    for n in range(3):
        erase(filled, "session", f"s{n}")
    stop.set()
    asking.join()

    assert ask(filled, token, COUNT) == ["[(70,)]"]
    counts = [int(found[1]) for answer in answers if (found := re.match(r"\[\((\d+),\)\]", answer))]
    assert set(counts) <= {100, 90, 80, 70}
    assert counts == sorted(counts, reverse=True)


def test_an_erasure_waits_for_the_query_that_quack_runs_and_the_next_one_sees_the_new_store(
    settings: Settings, event: MakeEvent
) -> None:
    events = ", ".join(f"analysts.events as {name}" for name in "abc")
    long = f"select sum(hash(a.event_id, b.event_id, c.event_id)) from {events}"
    with Collector(replace(settings, sql_timeout_s=60.0)) as collector:
        collector.take_in([event(f"e{n}", session_id=f"s{n % 10}") for n in range(300)])
        collector.flush()
        token = add_key(collector.home, "reader", ["read"])
        answers: list[str] = []
        asking = threading.Thread(target=lambda: answers.extend(ask(collector, token, long)))
        asking.start()
        while not _runs_something(collector):
            time.sleep(0.01)
        erase(collector, "session", "s0")
        asking.join()
        assert re.match(r"\[\(\d+,\)\]$", answers[0]), answers
        assert ask(collector, token, COUNT) == ["[(270,)]"]


def _runs_something(collector: Collector) -> bool:
    with collector.cursor() as store:
        return bool(store.rows("select 1 from quack_active_connections() where state = 'active'"))


def test_a_port_that_is_taken_is_a_typed_error(settings: Settings) -> None:
    with socket.socket() as taken, Store.open() as store:
        taken.bind(("127.0.0.1", settings.quack_port))
        taken.listen()
        Quack(settings).load(store)
        with pytest.raises(InputError, match=f"port {settings.quack_port}"):
            store.serve_quack(port=settings.quack_port, token="a-token-of-the-test")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
