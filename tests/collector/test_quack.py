"""Promises of DuckDB's remote protocol: another process reads the live views while events arrive, and only reads."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest

CLIENT = """
import sys
from cowpath.store import Store
port, token, *queries = sys.argv[1:]
with Store.open() as store:
    store.load_quack(gate="quack_nop_authorization")
    for query in queries:
        try:
            ask = "select * from quack_query($uri, $query, token = $token)"
            print(store.rows(ask, {"uri": f"quack:localhost:{port}", "query": query, "token": token}))
        except Exception as error:
            print(str(error).splitlines()[0])
"""

REFUSED = (
    "insert into analysts.skills values (1)",
    "delete from live.main.events",
    "select * from live.main.rejected",
    "select * from events",
    "commit; delete from live.main.events",
    "copy analysts.events to 'stolen.csv'",
    "select * from read_text('/etc/hostname')",
    "attach ':memory:' as other",
    "set threads = 1",
    "select * from quack_stop('quack:localhost')",
)


def ask(port: int, token: str, *queries: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(port), token, *queries], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_another_process_reads_while_events_arrive_and_can_do_nothing_else(start_server: Callable[..., Any]) -> None:
    pytest.importorskip("duckdb_extension_quack")
    pytest.importorskip("duckdb_extension_httpfs", reason="quack speaks through httpfs")
    port = _free_port()
    server = start_server(COWPATH_QUACK_PORT=str(port), COWPATH_KEY="a-read-key-of-the-test")
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        for n in range(3):
            client.post("/v1/events", json={"session_id": "s1", "skill_id": "plan", "event_id": f"e{n}"})
            client.post("/v1/publish")
            count = "select count(*) from analysts.skill_calls"
            assert ask(port, "a-read-key-of-the-test", count) == [f"[({n + 1},)]"]

    answers = ask(port, "a-read-key-of-the-test", *REFUSED)
    assert ["Authorization failed" in answer for answer in answers] == [True] * len(REFUSED), answers
    assert "Authentication failed" in ask(port, "wrong", "select 1")[0]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
