"""The collector tests' world: events in a line, a collector on a home of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import pytest

from collector.service import Collector
from cowpath.errors import InputError
from cowpath.event import Event
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.store import Store

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class MakeEvent(Protocol):
    def __call__(self, event_id: str, **fields: Any) -> Event: ...


@pytest.fixture(scope="session")
def event() -> MakeEvent:
    """An event with defaults for all but its id; ``minute`` sets its time after noon."""

    def make(event_id: str, *, minute: int = 0, **fields: Any) -> Event:
        defaults: dict[str, Any] = {
            "session_id": "s1",
            "skill": "plan",
            "called_at": NOON + timedelta(minutes=minute),
        }
        return Event(event_id=event_id, **(defaults | fields))

    return make


@pytest.fixture
def settings(home: Home) -> Settings:
    """Settings of the test's own home, without a publish schedule."""
    return Settings(home=str(home.root), publish_every_s=0)


@pytest.fixture
def collector(settings: Settings) -> Iterator[Collector]:
    with Collector(settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def kept_ids() -> Callable[[Path], list[str]]:
    """The event ids in a closed database file, doubles included, in id order."""

    def read(path: Path) -> list[str]:
        with Store.open(path, read_only=True) as store:
            return [event_id for (event_id,) in store.rows("select event_id from events order by event_id")]

    return read


@pytest.fixture(scope="session")
def quack() -> None:
    """Skip loudly where DuckDB's remote protocol cannot be loaded: its packages are made for one version of DuckDB."""
    with Store.open() as store:
        try:
            store.load_quack()
        except InputError as error:
            if "CI" in os.environ and version("duckdb") == version("duckdb-extension-quack"):
                pytest.fail(f"{error.message}, and CI forbids skipping")
            pytest.skip(error.message)


class Server:
    """A real ``cowpath up`` in a process of its own."""

    def __init__(self, home: Home, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cowpath", "up", "--home", str(home.root), "--port", "0", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"COWPATH_PUBLISH_EVERY_S": "0"} | environment,
        )
        assert self.process.stdout is not None
        self.document: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.url: str = self.document["url"]

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def stop(self) -> int:
        self.process.terminate()
        self._end()
        return self.process.returncode

    def _end(self) -> None:
        self.process.wait(timeout=30)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def start_server(home: Home) -> Iterator[Callable[..., Server]]:
    """Start servers on the test's home; what still runs at the end is killed."""
    servers: list[Server] = []

    def start(**environment: str) -> Server:
        servers.append(Server(home, **environment))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.kill()
