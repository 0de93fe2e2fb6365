"""Promises of ``cowpath import otlp``: files of requests, read once each, one call with what came over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from collector.doors import LocalDoor
from collector.hooks.payload import Known
from collector.importers.otlp import import_otlp, read_file
from collector.otlp.export import LOGS, read_body
from collector.service import Collector
from cowpath.event import Event, Rejected, utc_now
from cowpath.home import Home
from cowpath.store import Store


@pytest.fixture
def lines(samples: Path) -> list[str]:
    """What the file exporter of an OpenTelemetry Collector writes: a request a line, here of all three signals."""
    names = ("python_sdk_logs", "python_sdk_traces", "codex_skill_injected_metrics")
    return [json.dumps(json.loads((samples / "otlp" / f"{name}.otlp.json").read_text())) for name in names]


def imported(kind: str, path: Path, home: Home) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "cowpath", "import", kind, str(path), "--home", str(home.root), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.data
def test_a_file_of_the_collectors_exporter_is_imported_once(
    lines: list[str], tmp_path: Path, home: Home, collector: Collector
) -> None:
    file = tmp_path / "out" / "telemetry.jsonl"
    file.parent.mkdir()
    file.write_text("\n".join(lines[:2]) + "\n")
    door = LocalDoor(collector)

    first = import_otlp([file.parent], door, home)
    unchanged = import_otlp([file.parent], door, home)
    with file.open("a") as more:
        more.write(lines[2] + "\n")
    grown = import_otlp([file.parent], door, home)

    assert (first["files"], first["calls"], first["accepted"], first["reasons"]) == (1, 7, 6, {"unnamed_skill": 1})
    assert (unchanged["unchanged_files"], unchanged["calls"], unchanged["accepted"]) == (1, 0, 0)
    assert (grown["calls"], grown["counts"], grown["accepted"], grown["duplicates"]) == (7, 1, 1, 6)
    counts = collector.live.query("select skill_id, uses from skill_counts", limit=9, timeout_s=30)
    assert counts.to_pylist() == [{"skill_id": "code-review", "uses": 2}]


@pytest.mark.data
def test_the_command_brings_a_file_into_a_running_collector_beside_what_it_got_over_http(
    lines: list[str], tmp_path: Path, home: Home, start_server: Callable[..., Any]
) -> None:
    server = start_server()
    file = tmp_path / "telemetry.json"
    file.write_text("\n".join(lines))
    httpx.post(
        f"{server.url}/v1/traces", content=lines[1], headers={"Content-Type": "application/json"}, trust_env=False
    )

    code, document = imported("otlp", file, home)

    assert (code, document["calls"], document["counts"], document["sessions"]) == (0, 7, 1, 2)
    assert (document["accepted"], document["duplicates"], document["rejected"]) == (4, 3, 1)
    assert server.stop() == 0
    with Store.open(home.live, read_only=True) as live:
        assert live.rows("select count(*), count(distinct event_id) from events") == [(6, 6)]
        assert live.rows("select skill, n, source from counted") == [("code-review", 2, "codex-otel")]


@pytest.mark.data
def test_one_document_over_many_lines_is_read_too(samples: Path) -> None:
    pretty = samples / "otlp" / "claude_code_logs_unredacted.otlp.json"
    over_http = read_body(LOGS, pretty.read_bytes(), Known(now=utc_now()), protobuf=False).items

    assert pretty.read_text().startswith("{\n")
    assert [*read_file(pretty)] == over_http


@pytest.mark.data
def test_a_line_that_is_no_request_is_a_dead_letter_and_a_half_written_one_waits(
    lines: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "telemetry.jsonl"
    broken = ["no json", '{"a": 1}', '{"resourceLogs": 5}']
    file.write_text("\n".join([lines[1], *broken, "", lines[0][:100]]))

    items = [*read_file(file)]

    refused = [item for item in items if isinstance(item, Rejected)]
    assert sum(isinstance(item, Event) for item in items) == 3
    assert [(r.code, r.index, r.message.partition(":")[0]) for r in refused] == [
        ("bad_json", 1, "line 2"), ("bad_json", 2, "line 3"), ("bad_json", 3, "line 4"),
    ]  # fmt: skip
    file.write_text("\n".join([lines[1], lines[0]]) + "\n")
    assert sum(isinstance(item, Event) for item in read_file(file)) == 7


def test_a_file_of_which_nothing_can_be_taken_is_exit_code_82(tmp_path: Path, home: Home) -> None:
    file = tmp_path / "telemetry.jsonl"
    file.write_text('{"no": "telemetry"}\n')

    code, document = imported("otlp", file, home)

    assert (code, document["rejected"], document["reasons"]) == (82, 1, {"bad_json": 1})
