"""Promises of the doctor: every path is tried, and nothing it sends is ever a call."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from collector.access.keys import add_key
from cowpath.home import Home
from cowpath.store import Store


def doctor(home: Home) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "cowpath", "doctor", "--home", str(home.root)], capture_output=True, text=True
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, document


def test_a_running_collector_is_healthy_and_learns_nothing_from_the_test(
    start_server: Callable[..., Any], home: Home
) -> None:
    server = start_server()

    code, document = doctor(home)

    levels = {finding["check"]: finding["level"] for finding in document["findings"]}
    assert code == 0, document
    assert {levels["native JSON"], levels["Claude Code hook"], levels["spool client"]} == {"pass"}
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


def test_without_a_collector_the_paths_are_a_warning(home: Home) -> None:
    code, document = doctor(home)

    assert code == 0
    assert [f["level"] for f in document["findings"] if f["check"] == "collector"] == ["warn"]
    assert not home.root.exists()
