"""Promises of the doctor: every path is tried, and nothing it sends is ever a call."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.access.keys import add_key
from collector.lock import HomeLock
from collector.status import of_stopped
from cowpath.home import Home, write_whole
from cowpath.spool import Spool
from cowpath.store import Store


def doctor(home: Home) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "cowpath", "doctor", "--home", str(home.root)], capture_output=True, text=True
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, document


def test_report_56_a_running_collector_is_healthy_and_learns_nothing_from_the_test(
    start_server: Callable[..., Any], home: Home
) -> None:
    server = start_server()

    code, document = doctor(home)

    levels = {finding["check"]: finding["level"] for finding in document["findings"]}
    assert code == 0, document
    paths = ("native JSON", "Claude Code hook", "OTLP logs", "OTLP traces", "spool client")
    assert [levels[path] for path in paths] == ["pass"] * len(paths)
    assert document["failed"] == 0
    assert server.stop() == 0
    with Store.open(home.live, read_only=True) as live:
        assert {kind for (kind,) in live.rows("select distinct kind from events")} == {"outcome"}


def test_with_keys_it_goes_by_the_key_of_this_machines_own_commands(
    start_server: Callable[..., Any], home: Home
) -> None:
    add_key(home, "agents", ["ingest"])
    start_server()

    code, document = doctor(home)

    assert (code, document["failed"]) == (0, 0), document


def test_a_home_is_made_for_its_owner_and_one_that_is_open_to_others_is_told(
    start_server: Callable[..., Any], home: Home
) -> None:
    start_server().stop()
    before = permissions(doctor(home)[1]), home.root.stat().st_mode & 0o777

    home.root.chmod(0o755)
    write_whole(home.edges / "curated.jsonl", b"")

    assert before == ("pass", 0o700)
    assert permissions(doctor(home)[1]) == "warn"
    assert of_stopped(home)["open_to_others"] is True
    assert home.root.stat().st_mode & 0o777 == 0o755
    assert home.edges.stat().st_mode & 0o777 == 0o700


def permissions(document: dict[str, Any]) -> str:
    ((level),) = [finding["level"] for finding in document["findings"] if finding["check"] == "permissions"]
    return str(level)


@pytest.mark.parametrize("first", ["catalogue", "spool", "lock"])
def test_whoever_writes_first_makes_the_home_for_its_owner_only(tmp_path: Path, first: str) -> None:
    home = Home(tmp_path / "share" / "cowpath")
    if first == "catalogue":
        write_whole(home.embeddings / "cache.npz", b"")
    elif first == "spool":
        Spool(home.spool).append(b"{}\n")
    else:
        HomeLock.take(home).release()

    assert [path.stat().st_mode & 0o777 for path in (home.root, home.root.parent)] == [0o700, 0o700]


def test_without_a_collector_the_paths_are_a_warning(home: Home) -> None:
    code, document = doctor(home)

    assert code == 0
    assert [f["level"] for f in document["findings"] if f["check"] == "collector"] == ["warn"]
    assert not home.root.exists()
