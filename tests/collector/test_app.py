"""Promises of the HTTP face and of ``cowpath up``, against a real server process."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from fastapi.testclient import TestClient

from collector.app import create_app
from collector.doors import HttpDoor, open_door
from collector.drain import Drain
from collector.segments import Lines
from collector.service import Collector
from cowpath.event import OUTCOME_ALIASES, TRIGGER_ALIASES, Event, Rejected
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.store import Store

MakeEvent = Callable[..., Event]
GOOD = {"event_id": "e1", "session_id": "s1", "skill_id": "plan"}


@pytest.fixture
def client(start_server: Callable[..., Any]) -> Iterator[httpx.Client]:
    server = start_server(COWPATH_MAX_BODY_BYTES="20000", COWPATH_MAX_BATCH_EVENTS="50")
    with httpx.Client(base_url=server.url, timeout=30) as opened:
        yield opened


def test_b4_a_receipt_counts_what_is_on_disk_and_names_each_bad_item(client: httpx.Client, home: Home) -> None:
    body = [GOOD, {"event_id": "bad", "skill_id": "plan"}, {"session_id": "s1", "skill_id": "code"}, GOOD]

    answer = client.post("/v1/events", json=body)

    assert answer.status_code == 200
    assert answer.json() == {
        "accepted": 2,
        "duplicates": 1,
        "rejected": 1,
        "errors": [
            {
                "index": 1,
                "event_id": "bad",
                "code": "missing_field",
                "field": "session_id",
                "message": "session_id is required",
                "retryable": False,
            }
        ],
        "generated_ids": 1,
    }
    lines = client.post(
        "/v1/events",
        content=gzip.compress(b"\n".join(msgspec.json.encode(GOOD | {"event_id": f"l{n}"}) for n in range(3))),
        headers={"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"},
    )
    assert lines.json()["accepted"] == 3

    assert client.post("/v1/publish").status_code == 200
    with Store.open(home.usage, read_only=True) as usage:
        assert usage.rows("select count(*) from events") == [(5,)]
        assert usage.rows("select code, event_id from rejected") == [("missing_field", "bad")]
    status = client.get("/v1/status").json()
    assert (status["events"], status["rejected"]) == (5, {"missing_field": 1})
    assert status["published"]["bytes"] > 0


def test_b7_errors_are_typed_documents_with_the_right_status(client: httpx.Client) -> None:
    json_type = {"Content-Type": "application/json"}
    packed = gzip.compress(b" " * 30_000)

    def error(answer: httpx.Response) -> tuple[int, str]:
        return answer.status_code, answer.json()["error"]["type"]

    assert error(client.post("/v1/events", content=b"{", headers=json_type)) == (422, "InputError")
    assert error(client.post("/v1/events", content=b" " * 30_000, headers=json_type)) == (413, "TooLarge")
    assert error(client.post("/v1/events", content=iter([b" " * 15_000] * 2), headers=json_type)) == (413, "TooLarge")
    assert error(client.post("/v1/events", content=packed, headers=json_type | {"Content-Encoding": "gzip"})) == (
        413,
        "TooLarge",
    )
    assert error(client.post("/v1/events", json=[GOOD] * 51)) == (413, "TooLarge")
    assert error(client.post("/v1/events", content=b"x", headers={"Content-Type": "text/plain"})) == (
        415, "UnsupportedMedia",
    )  # fmt: skip
    assert error(client.post("/v1/events", content=b"x", headers=json_type | {"Content-Encoding": "br"})) == (
        415, "UnsupportedMedia",
    )  # fmt: skip
    assert error(client.get("/v1/nothing")) == (404, "InputError")
    assert error(client.get("/v1/events")) == (405, "InputError")
    assert client.get("/v1/status").json()["events"] == 0


def test_b12_b16_health_and_readiness_and_the_exact_schema_are_served(client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}

    schema = client.get("/v1/schema").json()
    document = client.get("/openapi.json").json()

    assert schema["required"] == ["session_id"]
    assert schema["anyOf"] == [{"required": ["skill_id"]}, {"required": ["skill"]}]
    assert {"event_id", "seq", "ts", "actor", "outcome", "suggested_by"} <= set(schema["properties"])
    body = document["paths"]["/v1/events"]["post"]["requestBody"]["content"]
    assert {"application/json", "application/x-ndjson", "application/cloudevents+json"} < set(body)
    for name in references(document):
        assert name in document["components"]["schemas"]
    event = document["components"]["schemas"]["NativeEvent"]["properties"]
    for field, aliases in (("trigger", TRIGGER_ALIASES), ("outcome", OUTCOME_ALIASES)):
        assert set(aliases) <= {word for option in event[field]["anyOf"] for word in option.get("enum", [])}


def references(document: object) -> set[str]:
    if isinstance(document, dict):
        own = {document["$ref"].rpartition("/")[2]} if isinstance(document.get("$ref"), str) else set()
        return own.union(*map(references, document.values())) if document else own
    return set().union(*map(references, document)) if isinstance(document, list) else set()


def test_a_door_finds_the_running_collector_and_a_local_one_otherwise(
    start_server: Callable[..., Any], settings: Settings, event: MakeEvent
) -> None:
    sent = [event("e1", actor="ada", extra={"group": "g"}), event("u1", skill="custom_skill"), event("e1")]
    letter = Rejected(code="torn_line", message="half a line", source="claude", event_id="t1")
    server = start_server()

    with open_door(settings) as door:
        assert isinstance(door, HttpDoor)
        receipt = door.send([*sent, letter])
        door.publish()
    assert (receipt.accepted, receipt.duplicates, receipt.rejected) == (1, 1, 2)
    assert server.stop() == 0

    with open_door(settings) as door:
        assert not isinstance(door, HttpDoor)
        assert door.send(sent).duplicates == 2
        door.publish()
    with Store.open(settings.at.usage, read_only=True) as usage:
        assert usage.rows("select code, source from rejected order by code") == [
            ("torn_line", "claude"), ("unnamed_skill", "http"),
        ]  # fmt: skip
        ((actor, extra),) = usage.rows("select actor, extra from events")
    assert actor.startswith("h:")
    assert extra == '{"group":"g"}'


def test_b6_report_24_25_26_27_overload_is_503_with_retry_after_at_once_and_nothing_is_stored(
    settings: Settings, event: MakeEvent
) -> None:
    go = threading.Event()
    body = msgspec.json.encode([GOOD | {"event_id": f"e{n}"} for n in range(10)])
    small = Settings(home=settings.home, publish_every_s=0, max_pending_bytes=3000)
    with (
        Collector(small, sync=lambda handle: wait_for(go)) as collector,
        TestClient(create_app(small, collector)) as web,
    ):
        first = collector.journal.append(Lines(b" " * 2900 + b"\n"))

        answer = web.post("/v1/events", content=body, headers={"Content-Type": "application/json"})
        unready = web.get("/readyz")

        assert not first.done()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "overloaded")
        assert answer.json()["error"]["retryable"] is True
        assert int(answer.headers["Retry-After"]) >= 1
        assert unready.status_code == 503
        assert "journal is full" in unready.json()["error"]["message"]
        go.set()
        first.result(30)
        assert web.get("/readyz").status_code == 200
        assert web.post("/v1/events", json=GOOD).json()["accepted"] == 1
        collector.flush()
        assert collector.counts()["events"] == 1


def test_b6_a_backlog_past_its_bound_is_503_until_the_drain_has_caught_up(settings: Settings) -> None:
    small = Settings(home=settings.home, publish_every_s=0, max_backlog_bytes=500)
    with Collector(small) as collector, TestClient(create_app(small, collector)) as web, held_up(collector.drain) as go:
        accepted = 0
        while (answer := web.post("/v1/events", json=GOOD | {"event_id": f"e{accepted}"})).status_code == 200:
            accepted += 1
            time.sleep(0.11)
        unready = web.get("/readyz")

        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "overloaded")
        assert int(answer.headers["Retry-After"]) >= 1
        assert "wait for live.duckdb" in unready.json()["error"]["message"]
        go.set()
        collector.flush()
        time.sleep(0.11)
        assert web.get("/readyz").status_code == 200
        assert web.post("/v1/events", json=GOOD | {"event_id": "later"}).json()["accepted"] == 1
        collector.flush()
        assert collector.counts()["events"] == accepted + 1


@contextmanager
def held_up(drain: Drain) -> Iterator[threading.Event]:
    """The drain reads nothing until the event is set."""
    go, read = threading.Event(), drain._journal.read
    drain._journal.read = lambda *where, limit: go.wait(30) and read(*where, limit=limit)  # type: ignore[method-assign, assignment]
    try:
        yield go
    finally:
        go.set()


def wait_for(go: threading.Event) -> None:
    go.wait(30)


def cowpath(*arguments: str) -> tuple[int, Any, str]:
    done = subprocess.run([sys.executable, "-m", "cowpath", *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def test_up_refuses_a_taken_home_an_open_host_and_a_taken_port_in_words(
    start_server: Callable[..., Any], home: Home, tmp_path: Path
) -> None:
    server = start_server()
    port = server.url.rpartition(":")[2]

    code, document, words = cowpath("up", "--home", str(home.root), "--port", "0")
    assert (code, document["error"]["code"]) == (91, "home_busy")
    assert f"process {server.process.pid}" in words

    code, document, _ = cowpath("up", "--home", str(tmp_path / "other"), "--host", "0.0.0.0")
    assert (code, document["error"]["code"]) == (80, "bad_input")

    code, document, _ = cowpath("up", "--home", str(tmp_path / "other"), "--port", port)
    assert (code, document["error"]["suggestions"]) == (90, ["--port 0"])


def test_status_and_publish_work_with_a_running_collector_without_one_and_on_nothing(
    start_server: Callable[..., Any], home: Home
) -> None:
    code, document, _ = cowpath("status", "--home", str(home.root))
    assert (code, document["running"], document["events"]) == (0, False, 0)
    assert not home.root.exists()

    server = start_server()
    httpx.post(f"{server.url}/v1/events", json=GOOD)
    assert cowpath("publish", "--home", str(home.root))[1] == {"published": str(home.usage)}
    code, document, _ = cowpath("status", "--home", str(home.root))
    assert (document["running"], document["url"], document["events"]) == (True, server.url, 1)
    server.stop()

    assert cowpath("publish", "--home", str(home.root))[0] == 0
    code, document, _ = cowpath("status", "--home", str(home.root))
    assert (code, document["running"], document["events"]) == (0, False, 1)

    with Store.open(home.live):
        code, document, _ = cowpath("status", "--home", str(home.root))
    assert (code, document["running"], "events" in document) == (0, False, False)


def test_what_changed_is_published_by_the_schedule(start_server: Callable[..., Any], home: Home) -> None:
    server = start_server(COWPATH_PUBLISH_EVERY_S="0.2")
    httpx.post(f"{server.url}/v1/events", json=GOOD)

    deadline = time.monotonic() + 30
    count = 0
    while count == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
        if home.usage.exists():
            with Store.open(home.usage, read_only=True) as usage:
                ((count,),) = usage.rows("select count(*) from events")

    assert count == 1


def test_a_half_sent_request_does_not_keep_the_server_from_stopping(start_server: Callable[..., Any]) -> None:
    server = start_server(COWPATH_DRAIN_GRACE_S="1")
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n[")
        httpx.post(f"{server.url}/v1/events", json=GOOD)

        assert server.stop() == 0


def test_the_command_line_answers_help_without_the_server_libraries() -> None:
    program = "import sys, cowpath.cli; cowpath.cli.main.main(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ, check=True)

    assert not {"fastapi", "uvicorn", "duckdb", "pyarrow"} & set(done.stdout.split())
