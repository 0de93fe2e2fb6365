"""Whatever is posted: no answer is a fault of ours, and every item is stored, a repeat, ignored or a dead letter."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.app import create_app
from collector.hooks.app import READERS
from collector.service import Collector

trying = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

CALLS: dict[str, list[dict[str, Any]]] = {
    "claude-code": [
        {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Skill", "tool_use_id": "c",
         "tool_input": {"skill": "pdf"}, "duration_ms": 3, "timestamp": "2026-11-30T12:00:00Z"},
        {"hook_event_name": "UserPromptExpansion", "session_id": "s", "prompt_id": "p", "command_name": "/pdf",
         "expansion_type": "slash_command", "command_source": "userSettings"},
        {"hook_event_name": "PostToolBatch", "session_id": "s", "tool_calls": [
            {"tool_name": "Skill", "tool_input": {"skill": "pdf"}, "tool_use_id": "a"},
            {"tool_name": "Skill", "tool_input": '{"skill": "docx"}', "tool_use_id": "b"}]},
    ],
    "codex": [
        {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "c", "turn_id": "t",
         "tool_input": {"command": ["cat", "skills/pdf/SKILL.md"]}},
        {"hook_event_name": "UserPromptSubmit", "session_id": "s", "turn_id": "t", "prompt": "use $pdf"},
    ],
    "cursor": [
        {"hook_event_name": "postToolUse", "conversation_id": "s", "tool_name": "Read", "tool_use_id": "c",
         "tool_input": {"path": ".cursor/skills/pdf/SKILL.md"}, "duration": 1.5},
    ],
    "gemini": [
        {"hook_event_name": "AfterTool", "session_id": "s", "tool_name": "activate_skill", "prompt_id": "c",
         "tool_input": {"name": "pdf"}, "timestamp": 1796072400},
        {"event.name": "gemini_cli.tool_call", "function_name": "activate_skill", "function_args": '{"name":"pdf"}',
         "session.id": "s", "success": "true", "duration_ms": "4"},
    ],
    "copilot": [
        {"sessionId": "s", "toolName": "skill", "toolArgs": {"skill": "pdf"}, "timestamp": 1796072400000.5},
    ],
    "opencode": [
        {"hook": "tool.execute.after", "input": {"tool": "skill", "sessionID": "s", "callID": "c",
         "args": {"name": "pdf"}}},
        {"hook": "command.execute.before", "input": {"command": "pdf", "sessionID": "s"}},
    ],
}  # fmt: skip
"""What each harness sends, to be bent."""

EVENT: dict[str, Any] = {
    "event_id": "e1", "session_id": "s1", "skill_id": "plan", "seq": 1, "ts": "2026-11-30T12:00:00Z",
    "kind": "activated", "trigger": "user", "outcome": "ok", "duration_ms": 2.5, "batch_id": "b", "actor": "a",
    "agent": "x", "confidence": 0.5, "source": "test", "stream_id": "", "suggested_by": None,
    "extra": {"colour": "green"}, "note": 1,
}  # fmt: skip

odd: st.SearchStrategy[Any] = st.sampled_from(
    ["", " ", "\0", "\ud83d", "\ufffd", "x" * 300, "NaN", "-1", "1e400", "custom_skill", "2026-13-45", "0001-01-01",
     "9999-12-31T23:59:59-14:00", "/home/a/b", "\u202e", None, True, 0, -1, 2**63, -(2**63) - 1, 10**400, 0.1, -0.0,
     float("nan"), float("inf"), 1e300, [], {}, [[]], {"": None}, {"skill": 5}, ["a", "b"]]
)  # fmt: skip
anything = st.recursive(
    odd | st.text(max_size=8) | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def bent(draw: st.DrawFn, templates: list[dict[str, Any]]) -> Any:
    """A payload of which up to three fields, at any depth, say something else, are gone, or are new."""
    payload = copy.deepcopy(draw(st.sampled_from(templates)))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.sampled_from(places(payload)))
        name = draw(st.sampled_from([*place, "more"]))
        if draw(st.integers(0, 4)):
            # A copy: what is bent next may lie inside, and the strategies hand the same lists out again.
            place[name] = copy.deepcopy(draw(odd | anything))
        else:
            place.pop(name, None)
    return payload


def places(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects of a payload, itself first."""
    found = [payload]
    for value in payload.values():
        for inner in value if isinstance(value, list) else [value]:
            found += places(inner) if isinstance(inner, dict) else []
    return found


def bodies(templates: list[dict[str, Any]]) -> st.SearchStrategy[bytes]:
    """Random bytes, random JSON, near misses, and near misses that were cut or changed in one byte."""
    near = st.lists(bent(templates) | anything, max_size=4) | bent(templates)
    written = (near | anything).map(lambda document: json.dumps(document).encode())
    return written | st.binary(max_size=60) | st.builds(spoiled, written, st.integers(0, 2**16), st.binary(max_size=1))


def spoiled(body: bytes, place: int, byte: bytes) -> bytes:
    place %= len(body) + 1
    return body[:place] + byte + (body[place + 1 :] if byte else b"")


@pytest.fixture
def client(collector: Collector) -> Iterator[TestClient]:
    with TestClient(create_app(collector.settings, collector), raise_server_exceptions=False) as opened:
        yield opened


def sums(collector: Collector) -> tuple[int, int]:
    """Items that were stored, repeated or refused; and payloads that were ignored."""
    return sum(collector.taken.values()), sum(collector.ignored.counts().values())


def assert_nothing_is_missing(collector: Collector) -> None:
    """What receipts counted is what the drain found, and every refusal is a dead letter, one a reason and id."""
    collector.flush()
    drain, taken = collector.drain, collector.taken
    assert drain.failure == ""
    assert drain.broken == 0
    assert drain.stored + drain.duplicates == taken["accepted"] + taken["duplicates"]
    assert sum(collector.refused.values()) == taken["rejected"]
    kept = dict(collector.cursor().rows("select code, count(*) from rejected group by code"))
    assert set(kept) == set(collector.refused)
    assert all(kept[code] <= n for code, n in collector.refused.items())


def length_of(body: bytes) -> int | None:
    """How many payloads a body holds; None where it is no JSON to anybody."""
    try:
        document = json.loads(body.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return len(document) if isinstance(document, list) else 1


@pytest.mark.parametrize("harness", READERS)
def test_any_hook_body_is_answered_and_accounted_for(client: TestClient, collector: Collector, harness: str) -> None:
    @given(body=bodies(CALLS[harness]))
    @trying
    def post(body: bytes) -> None:
        items, ignored = sums(collector)

        answer = client.post(f"/v1/hooks/{harness}", content=body)

        more, unused = sums(collector)[0] - items, sums(collector)[1] - ignored
        if answer.status_code == 422:
            assert (more, unused, answer.json()["error"]["code"]) == (0, 0, "bad_input")
            return
        payloads = length_of(body)
        assert (answer.status_code, answer.json()) == (200, {}), answer.text
        assert payloads is not None
        assert unused <= payloads <= more + unused
        assert more > 0 or unused == payloads

    post()
    assert collector.taken["accepted"] > 0
    assert collector.ignored.counts()
    assert_nothing_is_missing(collector)


@pytest.mark.parametrize(
    "media",
    [
        "application/json",
        "application/x-ndjson",
        "application/cloudevents+json",
        "application/cloudevents-batch+json",
    ],
)
def test_any_body_of_events_is_answered_and_accounted_for(client: TestClient, collector: Collector, media: str) -> None:
    templates = [EVENT]
    if "cloudevents" in media:
        envelope = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "time": "2026-11-30T12:00:00Z"}
        templates = [envelope | {"data": EVENT}, envelope | {"subject": "plan", "data": {"session_id": "s"}}]

    @given(body=bodies(templates))
    @trying
    def post(body: bytes) -> None:
        items, _ = sums(collector)

        answer = client.post("/v1/events", content=body, headers={"Content-Type": media})

        more = sums(collector)[0] - items
        document = answer.json()
        if answer.status_code != 200:
            assert (answer.status_code, document["error"]["code"], more) == (422, "bad_input", 0)
            return
        assert document["accepted"] + document["duplicates"] + document["rejected"] == more
        assert len(document["errors"]) == document["rejected"]
        if media == "application/json" and b'"events"' not in body and b'"rejected"' not in body:
            assert more == length_of(body)
        elif media == "application/cloudevents+json":
            assert more == 1
        elif media == "application/x-ndjson":
            assert more == len([line for line in body.splitlines() if line.strip()])

    post()
    assert collector.taken["accepted"] > 0
    assert collector.taken["rejected"] > 0
    assert_nothing_is_missing(collector)
