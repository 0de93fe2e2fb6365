"""The client's promises: what was recorded arrives once, whatever dies, and the agent never notices."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cowpath.client import MAX_LINE_BYTES, Client
from cowpath.home import Home
from cowpath.shipper import NotNow, Shipper
from cowpath.spool import Spool, notice
from cowpath.store import Store

NOWHERE = "http://127.0.0.1:9"
"""Nothing listens on the discard port."""


ENDLESS: dict[str, Any] = {}
ENDLESS["self"] = ENDLESS


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


class Told:
    """A collector that answers as it was told, and remembers what it was sent."""

    def __init__(self, *answers: tuple[int, dict[str, str]]) -> None:
        self.answers = list(answers)
        self.paths: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers = told.answers.pop(0) if told.answers else (200, {})
                told.paths.append(self.path)
                told.keys.append(self.headers["Authorization"])
                if status == 200:
                    told.bodies.append(json.loads(body))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def skills(self) -> list[str]:
        return [event["skill_id"] for body in self.bodies for event in body.get("events", ())]


@pytest.fixture
def tell() -> Iterator[Callable[..., Told]]:
    told: list[Told] = []

    def start(*answers: tuple[int, dict[str, str]]) -> Told:
        told.append(Told(*answers))
        return told[-1]

    yield start
    for one in told:
        one.server.shutdown()
        one.server.server_close()


def stored(home: Home, sql: str) -> list[tuple[object, ...]]:
    with Store.open(home.live, read_only=True) as store:
        return store.rows(sql)


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


def test_what_was_recorded_reaches_the_collector_with_its_fields(
    start_server: Callable[..., Any], home: Home, spool: Path
) -> None:
    server = start_server()
    with Client(server.url, spool) as client:
        event_id = client.record("plan", "s1", seq=3, outcome="ok", stream_id="sub", actor="ann", agent="mine")
        assert client.flush(20)
    server.stop()

    kept = stored(home, "select event_id, session_id, skill, seq, outcome, stream_id, agent from events")
    assert kept == [(event_id, "s1", "plan", 3, "ok", "sub", "mine")]
    assert list(spool.iterdir()) == []


def test_b18_what_was_recorded_before_a_kill_is_delivered_once_when_the_collector_comes(
    start_server: Callable[..., Any], home: Home, spool: Path
) -> None:
    """SIGKILL in the middle of recording, the collector down: every id that was returned is there once."""
    code = """
import sys
from cowpath.client import Client
client = Client(sys.argv[1], sys.argv[2])
while True:
    print(client.record("plan", "s1"), flush=True)
"""
    process = python(code, NOWHERE, str(spool))
    assert process.stdout is not None
    returned = [process.stdout.readline().strip() for _ in range(500)]
    process.send_signal(signal.SIGKILL)
    returned += [line.strip() for line in process.stdout if line.endswith("\n")]
    process.wait()

    server = start_server()
    with Client(server.url, spool) as client:
        assert client.flush(30)
    server.stop()

    kept = [event_id for (event_id,) in stored(home, "select event_id from events")]
    assert len(kept) == len(set(kept))
    assert set(returned) <= set(kept)


def test_b18_an_idle_client_sends_what_an_earlier_one_left(tell: Callable[..., Told], spool: Path) -> None:
    """Nothing has to be recorded first."""
    with Client(NOWHERE, spool) as before:
        before.record("plan", "s1")
        before.close(0)
    told = tell()
    with Client(told.url, spool) as client:
        assert client.flush(20)

    assert told.skills == ["plan"]


def test_the_order_stays_over_processes_and_files(tell: Callable[..., Told], spool: Path) -> None:
    for names in (["a", "b"], ["c", "d"]):
        with Client(NOWHERE, spool) as client:
            for name in names:
                client.record(name, "s1")
            client.close(0)
        for thread in threading.enumerate():
            if thread.name == "cowpath":
                thread.join(20)
    told = tell()
    with Client(told.url, spool) as client:
        client.record("e", "s1")
        assert client.flush(20)

    assert told.skills == ["a", "b", "c", "d", "e"]


def test_several_processes_on_one_spool_lose_nothing_and_send_nothing_twice(
    start_server: Callable[..., Any], home: Home, spool: Path
) -> None:
    code = """
import sys
from cowpath.client import Client
client = Client(sys.argv[1], sys.argv[2])
for n in range(200):
    client.record("plan", sys.argv[3], seq=n)
client.close(20)
"""
    server = start_server()
    processes = [python(code, server.url, str(spool), f"s{n}") for n in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    for process in processes:
        process.communicate()
    with Client(server.url, spool) as client:
        assert client.flush(20)
    server.stop()

    assert stored(home, "select count(*), count(distinct (session_id, seq)) from events") == [(800, 800)]


def test_a_live_process_keeps_its_file_to_itself(tell: Callable[..., Told], spool: Path) -> None:
    told = tell()
    with Client(NOWHERE, spool) as living, Client(told.url, spool) as other:
        living.record("plan", "s1")
        assert other.flush(20)

    assert told.skills == []


def test_a_forked_child_records_in_a_file_of_its_own(tell: Callable[..., Told], spool: Path) -> None:
    code = """
import os, sys
from cowpath.client import Client
client = Client(sys.argv[1], sys.argv[2])
client.record("before", "s1")
child = os.fork()
client.record("child" if child == 0 else "parent", "s1")
assert client.flush(20)
client.close()
if child:
    os.waitpid(child, 0)
os._exit(0)
"""
    told = tell()
    process = python(code, told.url, str(spool))
    assert process.wait(60) == 0
    process.communicate()

    assert sorted(set(told.skills)) == ["before", "child", "parent"]
    assert told.skills.count("child") == told.skills.count("parent") == 1


@pytest.mark.parametrize("answer", [(503, {"Retry-After": "0"}), (429, {}), (500, {}), (401, {}), (404, {})])
def test_what_the_collector_does_not_take_now_is_sent_again(
    tell: Callable[..., Told], spool: Path, answer: tuple[int, dict[str, str]]
) -> None:
    told = tell(answer)
    with Client(told.url, spool) as client:
        client.record("plan", "s1")
        while not client.flush(20):
            pass

    assert told.skills == ["plan"]
    assert len(told.paths) == 2


def test_one_event_that_is_never_taken_does_not_hold_up_the_others(tell: Callable[..., Told], spool: Path) -> None:
    """The batch is refused, then each event is sent for itself; the second one of them is refused again."""
    told = tell((422, {}), (200, {}), (422, {}), (200, {}))
    lines = [b'event {"skill_id":"%s"}' % name for name in (b"a", b"b", b"c")]

    shipper = Shipper(told.url)
    shipper.send(lines)
    shipper.close()

    assert told.skills == ["a", "c"]
    assert shipper.refused == 1


def test_the_key_is_sent_along(tell: Callable[..., Told], spool: Path) -> None:
    told = tell()
    with Client(told.url, spool, key="k1") as client:
        client.record("plan", "s1")
        assert client.flush(20)

    assert told.keys == ["Bearer k1"]


@pytest.mark.parametrize(
    ("skill", "fields"),
    [
        ("x" * MAX_LINE_BYTES, {}),
        ("plan", {"outcome": "\ud800"}),
        ("plan", {"extra": ENDLESS}),
    ],
)
def test_nothing_that_is_recorded_raises_into_the_agent(spool: Path, skill: str, fields: dict[str, Any]) -> None:
    with Client(NOWHERE, spool) as client:
        assert client.record(skill, "s1", **fields) is None
        assert client.stats()["failed"] == 1


def test_a_spool_that_cannot_be_written_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with Client(NOWHERE, tmp_path / "file" / "spool") as client:
        assert client.record("plan", "s1") is None
        assert client.stats()["failed"] == 1


def test_wrong_settings_stop_no_agent(monkeypatch: pytest.MonkeyPatch, spool: Path) -> None:
    monkeypatch.setenv("COWPATH_PORT", "many")
    with Client(spool=spool) as client:
        assert client.record("plan", "s1")
        client.close(0)


def test_b18_a_full_spool_drops_the_oldest_and_says_how_many(tell: Callable[..., Told], spool: Path) -> None:
    with Client(NOWHERE, spool, max_bytes=40_000) as client:
        for n in range(1000):
            client.record(f"skill-{n}", "s1")
        dropped = client.stats()["dropped"]
        assert sum(file.stat().st_size for file in spool.iterdir()) <= 40_000
        client.close(0)
    told = tell()
    with Client(told.url, spool) as client:
        assert client.flush(20)

    notices = [item for body in told.bodies for item in body.get("rejected", ())]
    assert dropped > 0
    assert told.skills == [f"skill-{n}" for n in range(1000 - len(told.skills), 1000)]
    assert sum(int(item["message"].split()[0]) for item in notices) == 1000 - len(told.skills)


def test_the_collector_keeps_the_notice_of_dropped_events(
    start_server: Callable[..., Any], home: Home, spool: Path
) -> None:
    spooled = Spool(spool)
    spooled.append(notice(7))
    server = start_server()
    spooled.ship(Shipper(server.url).send)
    spooled.close()
    server.stop()

    [(code, message)] = stored(home, "select code, message from rejected")
    assert (code, message) == ("spool_full", "7 events were dropped: the spool was full")


def test_a_torn_line_costs_only_itself(tell: Callable[..., Told], spool: Path) -> None:
    spool.mkdir()
    (spool / "00000000000000000001-1.spool").write_bytes(b'event {"skill_id":"a"}\nevent {"skill_')
    short = Spool(spool, brief=True)
    short.append(b'event {"skill_id":"b"}\n')
    told = tell()
    shipper = Shipper(told.url)
    short.ship(shipper.send)
    short.close()
    shipper.close()

    assert told.skills == ["a", "b"]
    assert shipper.refused == 1
    assert list(spool.iterdir()) == []


def test_brief_processes_share_files_instead_of_leaving_many(spool: Path) -> None:
    for _ in range(20):
        short = Spool(spool, brief=True)
        short.append(b"event {}\n")
        short.close()

    assert len(list(spool.iterdir())) == 1


def test_a_collector_that_hangs_holds_up_no_record(spool: Path) -> None:
    """The listener takes the connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        client = Client(f"http://127.0.0.1:{deaf.getsockname()[1]}", spool)
        assert all(client.record("plan", "s1") for _ in range(100))
        assert not client.flush(0.2)
        client.close(0)


def test_only_the_owner_can_read_the_spool(spool: Path) -> None:
    """It holds names as the agent gave them, before they are hashed."""
    short = Spool(spool)
    short.append(b"event {}\n")
    modes = [oct(path.stat().st_mode & 0o777) for path in (spool, *spool.iterdir())]
    short.close()

    assert modes == ["0o700", "0o600"]


def test_an_unreachable_collector_leaves_the_lines_where_they_are(spool: Path) -> None:
    short = Spool(spool)
    short.append(b'event {"skill_id":"a"}\n')
    with pytest.raises(NotNow):
        short.ship(Shipper(NOWHERE).send)
    assert short.waiting() == (1, len(b'event {"skill_id":"a"}\n'))
    short.close()


def test_importing_the_client_loads_no_web_and_no_store() -> None:
    code = "import sys, cowpath.client; print(sorted({'fastapi', 'duckdb', 'click'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert shown.stdout.strip() == "[]"


def test_the_example_of_the_documentation_runs(tell: Callable[..., Told], tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text()
    code = page.partition("## Client")[2].partition("```python\n")[2].partition("```")[0]
    told = tell()
    environment = os.environ | {"COWPATH_HOME": str(tmp_path), "COWPATH_URL": told.url}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)

    assert told.skills == ["plan-change", "write-tests"]
    assert "'recorded': 2, 'failed': 0, 'dropped': 0, 'refused': 0, 'waiting_files': 0" in shown.stdout


def test_report_30_a_lost_answer_counts_no_call_twice(
    start_server: Callable[..., Any], home: Home, spool: Path
) -> None:
    """The collector stores, the connection breaks before its answer comes back, the client sends again."""
    server = start_server()
    arrived: list[bytes] = []

    class Forgetful(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            arrived.append(body)
            request = urllib.request.Request(server.url + self.path, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as response:
                answer = response.read()
            self.close_connection = True
            if len(arrived) > 1:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    between = ThreadingHTTPServer(("127.0.0.1", 0), Forgetful)
    threading.Thread(target=between.serve_forever, daemon=True).start()
    with Client(f"http://127.0.0.1:{between.server_port}", spool) as client:
        client.record("plan", "s1")
        while not client.flush(20):
            pass
    between.shutdown()
    between.server_close()
    server.stop()

    assert len(arrived) == 2
    assert stored(home, "select count(*) from events") == [(1,)]
