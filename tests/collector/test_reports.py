"""Public reports of what other collectors got wrong, as tests: each row that concerns intake has one named for it.

Rows on OpenTelemetry (3, 5, 8) belong to its door, rows on learning and answering to the miner and the ranker.
"""

from __future__ import annotations

import ast
import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cowpath.home import Home
from cowpath.store import Store

TESTS = Path(__file__).parent

ROWS = frozenset(
    {1, 2, 4, 6, 7, 9, 10, 11, 13, 14, 15, 16, 18, 19, 22, 23, 24, 25, 26, 27, 29, 30, 31, 32, 33, 35, 36, 37}
    | {43, 44, 45, 47, 49, 56, 57, 58}
)
"""The rows of the list of reports that concern what comes in and how it is kept."""

StartServer = Callable[..., Any]

USES: dict[str, list[dict[str, Any]]] = {
    "claude-code": [
        {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Skill", "tool_use_id": "c1",
         "tool_input": {"skill": "pdf"}},
        {"hook_event_name": "UserPromptExpansion", "session_id": "s", "prompt_id": "p1",
         "expansion_type": "slash_command", "command_name": "/docx", "command_source": "userSettings"},
    ],
    "codex": [
        {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "c1",
         "tool_input": {"command": "cat skills/pdf/SKILL.md"}},
    ],
    "cursor": [
        {"hook_event_name": "postToolUse", "conversation_id": "s", "tool_name": "Read", "tool_use_id": "c1",
         "tool_input": {"path": ".cursor/skills/pdf/SKILL.md"}},
    ],
    "gemini": [
        {"hook_event_name": "AfterTool", "session_id": "s", "tool_name": "activate_skill", "prompt_id": "c1",
         "tool_input": {"name": "pdf"}},
    ],
    "copilot": [
        {"sessionId": "s", "toolName": "skill", "toolArgs": {"skill": "pdf"}, "timestamp": 1796072400000.5},
    ],
    "opencode": [
        {"hook": "tool.execute.after", "input": {"tool": "skill", "sessionID": "s", "callID": "c1",
         "args": {"name": "pdf"}}},
        {"hook": "command.execute.before", "input": {"command": "docx", "sessionID": "s", "messageID": "m1"}},
    ],
}  # fmt: skip
"""Harness -> a skill that its agent called, then one that a person typed, where it tells of those."""


@pytest.fixture
def client(start_server: StartServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=start_server().url, timeout=30, trust_env=False) as opened:
        yield opened


def published(client: httpx.Client, home: Home, sql: str) -> list[tuple[Any, ...]]:
    """What an analyst reads after everything so far was published."""
    client.post("/v1/publish").raise_for_status()
    with Store.open(home.usage, read_only=True) as usage:
        return usage.rows(sql)


def test_every_row_that_concerns_intake_has_a_test_named_for_it() -> None:
    trees = (ast.parse(path.read_text()) for path in TESTS.glob("test_*.py"))
    names = [node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]

    named = {row for name in names for row in rows_of(name)}

    assert sorted(ROWS - named) == []
    assert rows_of("test_b11_report_18_19_words_7") == {18, 19}


def rows_of(name: str) -> set[int]:
    """The rows that a test's name begins with."""
    found = re.match(r"test_(?:b\d+_)*report_((?:\d+_)+)", name)
    return {int(row) for row in found.group(1).strip("_").split("_")} if found else set()


def test_report_1_a_called_and_a_typed_skill_are_one_event_each_however_many_hooks_fire(
    client: httpx.Client, home: Home
) -> None:
    called, typed = USES["claude-code"]
    before = {"hook_event_name": "PreToolUse", "tool_input": {"skill": "pdf"}}
    batch = {"hook_event_name": "PostToolBatch", "session_id": "s", "tool_calls": [called]}
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt_id": "p1", "prompt": "/docx"}
    for payload in (called | before, called, batch, prompt, typed, typed):
        assert client.post("/v1/hooks/claude-code", json=payload).json() == {}

    events = published(client, home, "select skill, trigger from events order by skill")

    assert events == [("docx", "user"), ("pdf", "agent")]


@pytest.mark.parametrize("harness", USES)
def test_report_58_every_harness_tells_of_called_and_typed_skills_once(
    client: httpx.Client, home: Home, harness: str
) -> None:
    for payload in USES[harness] * 2:
        assert client.post(f"/v1/hooks/{harness}", json=payload).json() == {}

    events = published(client, home, "select skill, trigger, session_id from events order by skill desc")

    assert events == [("pdf", "agent", "s"), ("docx", "user", "s")][: len(USES[harness])]


def test_report_15_equal_call_ids_of_two_harnesses_are_two_calls(client: httpx.Client, home: Home) -> None:
    for harness in ("codex", "cursor", "gemini", "opencode"):
        client.post(f"/v1/hooks/{harness}", json=USES[harness][0])

    assert published(client, home, "select count(*), count(distinct event_id), any_value(skill) from events") == [
        (4, 4, "pdf")
    ]


def test_report_22_an_item_without_an_id_gets_one_is_stored_and_the_answer_says_so(
    client: httpx.Client, home: Home
) -> None:
    answer = client.post("/v1/events", json=[{"session_id": "s", "skill_id": "pdf"}] * 2).json()

    assert (answer["accepted"], answer["generated_ids"], answer["rejected"]) == (2, 2, 0)
    assert published(client, home, "select count(distinct event_id) from events") == [(2,)]


def test_report_30_a_sender_whose_answer_was_lost_in_a_kill_sends_again_and_counts_once(
    start_server: StartServer, home: Home
) -> None:
    event = {"event_id": "e1", "session_id": "s", "skill_id": "pdf"}
    server = start_server()
    body = json.dumps(event).encode()
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        head = f"POST /v1/events HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        connection.sendall(head.encode() + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        # The first byte of the answer is on its way: it is on disk. The rest is never read.
        assert connection.recv(1)
    server.kill()

    with httpx.Client(base_url=start_server().url, timeout=30, trust_env=False) as client:
        answer = client.post("/v1/events", json=event)
        assert answer.status_code == 200
        assert published(client, home, "select event_id from events") == [("e1",)]
