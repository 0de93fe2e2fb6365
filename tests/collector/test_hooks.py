"""Hook payloads become events: each harness's own words, each call once, nobody's words kept."""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import zstandard
from fastapi.testclient import TestClient

from collector.app import create_app
from collector.doors import LocalDoor
from collector.hooks import claude_code, codex, copilot, cursor, gemini, opencode
from collector.hooks.payload import Known
from collector.identity import claude_call, claude_typed, tool_call
from collector.importers.claude import import_claude
from collector.segments import Lines
from collector.service import Collector
from cowpath.event import Event, Rejected
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.skill import Catalogue, Skill, write_catalogue
from cowpath.store import Store

KNOWN = Known(now=datetime(2026, 11, 30, 12, tzinfo=UTC))
SESSION = "e854d282-1111-4222-8333-444455556666"
PROMPT = "3b0537fa-0000-4000-8000-000000000001"

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"

HARNESSES = ("claude-code", "codex", "cursor", "gemini", "copilot", "opencode")


@pytest.fixture
def client(collector: Collector) -> Iterator[TestClient]:
    with TestClient(create_app(collector.settings, collector)) as opened:
        yield opened


def with_skills(*names: str) -> Known:
    return replace(KNOWN, is_skill=frozenset(names).__contains__, has_catalogue=True)


def sample(samples: Path, name: str) -> dict[str, Any]:
    return msgspec.json.decode((samples / name).read_bytes(), type=dict[str, Any])


def the_event(items: list[Event | Rejected]) -> Event:
    [item] = items
    assert isinstance(item, Event)
    return item


def visible(collector: Collector, columns: str) -> list[tuple[Any, ...]]:
    """The published events, ordered by skill."""
    collector.publish()
    with Store.open(collector.home.usage, read_only=True) as usage:
        return usage.rows(f"select {columns} from events order by skill")


def claude(samples: Path, name: str, known: Known = KNOWN) -> list[Event | Rejected]:
    return claude_code.read(sample(samples, f"claude_code/hook_{name}.json"), known)


@pytest.mark.data
def test_a_skill_called_in_claude_code_keeps_name_ids_and_outcome_only(samples: Path) -> None:
    assert the_event(claude(samples, "PostToolUse_Skill_plugin")) == Event(
        event_id=claude_call("toolu_018dvswJtd46zGbmL6W7KnoM"),
        session_id=SESSION,
        skill="probekit:probe-plugin",
        trigger="agent",
        outcome="ok",
        duration_ms=4,
        agent="claude-code",
        source="claude-hook",
        extra={"prompt_id": PROMPT},
    )


@pytest.mark.data
def test_a_subagent_is_a_stream_of_its_own_and_its_arguments_stay_out(samples: Path) -> None:
    event = the_event(claude(samples, "PostToolUse_Skill_args_subagent"))

    assert (event.stream_id, event.skill, event.extra["agent_type"]) == ("aeb76f0", "triage", "code-reviewer")
    assert b"#123" not in msgspec.json.encode(event)


@pytest.mark.data
def test_failed_denied_and_interrupted_calls_say_so(samples: Path) -> None:
    failed = sample(samples, "claude_code/hook_PostToolUseFailure_Skill.json")

    assert the_event(claude(samples, "PostToolUseFailure_Skill")).outcome == "error"
    assert the_event(claude_code.read(failed | {"is_interrupt": True}, KNOWN)).outcome == "abandoned"
    assert the_event(claude(samples, "PermissionDenied_Skill")).outcome == "denied"


@pytest.mark.data
def test_skills_of_one_parallel_batch_share_a_batch_in_the_order_they_stand(samples: Path) -> None:
    items = claude(samples, "PostToolBatch_Skill")

    assert [(e.skill, e.batch_id, e.event_id) for e in items if isinstance(e, Event)] == [
        ("a", "toolu_01A", claude_call("toolu_01A")),
        ("b", "toolu_01A", claude_call("toolu_01B")),
    ]


@pytest.mark.data
def test_a_typed_skill_is_a_call_by_its_user(samples: Path) -> None:
    """Typed skills fire no tool hook at all."""
    event = the_event(claude(samples, "UserPromptExpansion_slash"))

    assert (event.skill, event.trigger, event.outcome) == ("example-skill", "user", "unknown")
    assert event.event_id == claude_typed(SESSION, PROMPT, "example-skill")
    assert b"arg1" not in msgspec.json.encode(event)


@pytest.mark.data
def test_without_a_prompt_id_a_typed_skill_is_told_apart_by_two_seconds(samples: Path) -> None:
    payload = sample(samples, "claude_code/hook_UserPromptExpansion_slash.json")
    del payload["prompt_id"]

    def id_at(second: int) -> str:
        return the_event(claude_code.read(payload, replace(KNOWN, now=KNOWN.now.replace(second=second)))).event_id

    assert id_at(0) == id_at(1) != id_at(2)


@pytest.mark.data
def test_built_in_commands_are_no_skills_unless_the_catalogue_has_one_of_the_name(samples: Path) -> None:
    payload = sample(samples, "claude_code/hook_UserPromptExpansion_slash.json") | {"command_name": "compact"}
    built_in = payload | {"command_source": "builtin"}
    unsaid = {key: value for key, value in payload.items() if key != "command_source"}

    for known, typed in ((KNOWN, built_in), (with_skills("deploy"), built_in), (with_skills("deploy"), unsaid)):
        [refused] = claude_code.read(typed, known)
        assert isinstance(refused, Rejected)
        assert refused.code == "unknown_command"
        assert "compact" not in str(refused)
    for known, typed in ((with_skills("compact"), built_in), (KNOWN, unsaid)):
        assert the_event(claude_code.read(typed, known)).skill == "compact"


@pytest.mark.data
def test_a_prompt_of_an_mcp_server_is_no_skill(samples: Path) -> None:
    assert claude(samples, "UserPromptExpansion_mcp_prompt") == []


@pytest.mark.data
@pytest.mark.parametrize("name", [
    "PreToolUse_Skill", "PreCompact", "SessionEnd", "SessionStart_resume", "SubagentStart", "SubagentStop",
    "UserPromptSubmit", "unknown_future_event",
])  # fmt: skip
def test_events_that_tell_of_no_finished_call_give_nothing(name: str, samples: Path) -> None:
    assert claude(samples, name) == []


def test_a_skill_file_that_was_read_is_not_a_use() -> None:
    payload = {
        "hook_event_name": "PostToolUse",
        "session_id": "s",
        "tool_name": "Read",
        "tool_input": {"file_path": "/home/dev/.claude/skills/pdf/SKILL.md"},
        "tool_use_id": "t1",
    }

    assert the_event(claude_code.read(payload, KNOWN)).kind == "resource_read"
    assert the_event(claude_code.read(payload, KNOWN)).skill == "pdf"
    assert claude_code.read(payload | {"tool_input": {"file_path": "/home/dev/README.md"}}, KNOWN) == []
    assert claude_code.read(payload | {"tool_name": "Bash"}, KNOWN) == []


@pytest.mark.data
def test_report_10_codex_skills_are_inferred_from_reads_and_say_how_sure_that_is(samples: Path) -> None:
    before = sample(samples, "codex/hook_PreToolUse.json")
    first, second = (
        the_event(codex.read(before | {"hook_event_name": e}, KNOWN)) for e in ("PreToolUse", "PostToolUse")
    )

    assert (first.skill, first.trigger, first.extra) == ("pdf", "agent", {"turn_id": "t-4"})
    assert 0 < first.confidence < 1
    assert first.event_id == second.event_id == tool_call("codex", "019b1a19", "call_1", "pdf")
    assert (first.outcome, second.outcome) == ("unknown", "ok")
    for command in ("ls .agents/skills/pdf/SKILL.md", "echo x > .agents/skills/pdf/SKILL.md", "cat README.md"):
        assert codex.read(before | {"tool_input": {"command": command}}, KNOWN) == []


def test_a_skill_named_in_a_codex_prompt_counts_only_where_the_catalogue_has_it() -> None:
    prompt = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "s",
        "turn_id": "t-1",
        "prompt": "use $pdf on my $HOME for $100, dana@example.com",
    }

    event = the_event(codex.read(prompt, with_skills("pdf")))

    assert (event.skill, event.trigger) == ("pdf", "user")
    assert event.confidence < 1
    assert b"dana" not in msgspec.json.encode(event)
    assert codex.read(prompt, KNOWN) == []


@pytest.mark.data
def test_cursor_reads_of_a_skill_file_are_calls_without_the_users_mail(samples: Path) -> None:
    payload = sample(samples, "cursor/hook_postToolUse.json")
    event = the_event(cursor.read(payload, KNOWN))
    denied = payload | {"hook_event_name": "postToolUseFailure", "failure_type": "permission_denied"}

    assert (event.skill, event.session_id, event.duration_ms, event.agent_version) == (
        "pdf", "668320d2-2fd8-4888-b33c-2a466fec86e7", 12, "2.4",
    )  # fmt: skip
    assert event.confidence < 1
    assert event.actor is None
    assert b"example.com" not in msgspec.json.encode(event)
    assert the_event(cursor.read(denied, KNOWN)).outcome == "denied"
    assert cursor.read(payload | {"tool_input": {"path": "/home/dev/p/main.py"}}, KNOWN) == []


@pytest.mark.data
def test_gemini_says_the_skill_in_its_hook_and_in_its_log(samples: Path) -> None:
    logged = the_event(gemini.read(sample(samples, "gemini_cli/tool_call_log_attrs.json"), KNOWN))
    hook = {
        "hook_event_name": "AfterTool",
        "session_id": "s-1",
        "timestamp": "2026-11-30T12:00:00Z",
        "tool_name": "activate_skill",
        "tool_input": {"name": "pdf"},
        "tool_response": {"llmContent": "..."},
    }

    assert (logged.skill, logged.session_id, logged.outcome, logged.duration_ms) == ("pdf", "s-1", "ok", 3)
    assert the_event(gemini.read(hook, KNOWN)).called_at == datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert gemini.read(hook | {"tool_name": "read_file"}, KNOWN) == []


@pytest.mark.data
def test_copilot_times_are_milliseconds_and_its_arguments_may_be_text(samples: Path) -> None:
    payload = sample(samples, "copilot/preToolUse.json")
    event = the_event(copilot.read(payload, KNOWN))

    assert (event.skill, event.session_id) == ("pdf", "s-1")
    assert event.called_at == datetime(2026, 9, 5, 16, 53, 9, 374000, UTC)
    assert copilot.read(payload | {"toolArgs": json.dumps(payload["toolArgs"])}, KNOWN) == [event]
    # Without a call id, before and after a call could not be known as one.
    assert copilot.read(payload | {"toolResult": {"resultType": "success"}}, KNOWN) == []


@pytest.mark.data
def test_opencode_calls_skills_by_tool_and_by_typing(samples: Path) -> None:
    called = the_event(opencode.read(sample(samples, "opencode/tool_execute_after.json"), KNOWN))
    typed = sample(samples, "opencode/command_execute_before.json")

    assert (called.skill, called.trigger, called.outcome) == ("pdf", "agent", "ok")
    assert called.event_id == tool_call("opencode", "ses_1", "call_1", "pdf")
    assert the_event(opencode.read(typed, with_skills("pdf"))).trigger == "user"
    assert isinstance(opencode.read(typed, with_skills("other"))[0], Rejected)


@pytest.mark.parametrize("harness", HARNESSES)
@pytest.mark.parametrize("payload", [
    {}, [], [[]], None, 3, "text", {"hook_event_name": "PreModelSwitch"}, {"hook_event_name": 7, "tool_name": {}},
    {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": None},
    {"hook_event_name": "PostToolUse", "tool_name": "Skill", "tool_input": []},
    {"hook_event_name": "PostToolBatch", "tool_calls": [None, {}, {"tool_name": "Skill"}]},
    {"toolName": "skill", "toolArgs": "{"}, {"hook": "tool.execute.after", "input": {"tool": "skill"}},
])  # fmt: skip
def test_whatever_can_be_parsed_is_answered_with_an_empty_object(
    client: TestClient, harness: str, payload: object
) -> None:
    """Anything else would show up before the user as an error of the hook."""
    answer = client.post(f"/v1/hooks/{harness}", content=json.dumps(payload))

    assert (answer.status_code, answer.text) == (200, "{}")
    assert answer.headers["content-type"] == "application/json"


def test_half_a_character_in_a_tool_result_costs_no_call(client: TestClient, collector: Collector) -> None:
    body = (
        '{"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Skill", "tool_use_id": "t",'
        ' "tool_input": {"skill": "pdf"}, "tool_response": {"text": "\\ud83d"}}'
    )

    assert client.post("/v1/hooks/claude-code", content=body).text == "{}"
    assert visible(collector, "skill, outcome") == [("pdf", "ok")]


def test_what_is_no_json_and_what_is_too_large_are_errors(client: TestClient, settings: Settings) -> None:
    large = b" " * (settings.max_body_bytes + 1)

    assert client.post("/v1/hooks/claude-code", content=b"{").status_code == 422
    assert client.post("/v1/hooks/claude-code", content=gzip.compress(large), headers=packed("gzip")).status_code == 413


def test_overload_is_a_503_so_that_the_hook_beside_it_spools(settings: Settings) -> None:
    """And nothing but overload: what has nothing to store is answered as ever."""
    go = threading.Event()
    small = replace(settings, max_pending_bytes=2000)
    payload = {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Skill", "tool_use_id": "t"}
    with (
        Collector(small, sync=lambda handle: wait_for(go)) as collector,
        TestClient(create_app(small, collector)) as web,
    ):
        collector.journal.append(Lines(b" " * 1900 + b"\n"))

        answer = web.post("/v1/hooks/claude-code", json=payload | {"tool_input": {"skill": "pdf"}})

        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "overloaded")
        assert int(answer.headers["Retry-After"]) >= 1
        assert web.post("/v1/hooks/claude-code", json={"hook_event_name": "Stop"}).status_code == 200
        go.set()


def wait_for(go: threading.Event) -> None:
    assert go.wait(30)


def test_the_catalogue_decides_over_http_too(client: TestClient, collector: Collector) -> None:
    typed = {"hook_event_name": "UserPromptExpansion", "session_id": "s", "prompt_id": "p"}
    write_catalogue(
        collector.home.catalogue, Catalogue([Skill(skill_id="kit:deploy", name="deploy", aliases=("deploy",))])
    )

    client.post("/v1/hooks/claude-code", json=[typed | {"command_name": n} for n in ("deploy", "clear")])

    assert visible(collector, "skill, skill_id") == [("deploy", "kit:deploy")]
    assert collector.counts()["rejected"] == {"unknown_command": 1}


def test_report_4_a_hidden_name_never_becomes_a_skill(client: TestClient, collector: Collector) -> None:
    payload = {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Skill", "tool_use_id": "t"}

    client.post("/v1/hooks/claude-code", json=payload | {"tool_input": {"skill": "custom_skill"}})

    assert visible(collector, "skill") == []
    assert collector.counts()["rejected"] == {"unnamed_skill": 1}


def test_the_actor_comes_in_a_header_and_stays_as_a_hash(client: TestClient, collector: Collector) -> None:
    payload = {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Skill", "tool_use_id": "t"}

    client.post(
        "/v1/hooks/claude-code", json=payload | {"tool_input": {"skill": "pdf"}}, headers={"X-Cowpath-Actor": "dana"}
    )

    [(actor,)] = visible(collector, "actor")
    assert actor.startswith("h:")


@pytest.mark.data
def test_report_13_a_call_seen_by_hook_batch_hook_and_transcript_is_one_event(
    client: TestClient, collector: Collector, samples: Path, home: Home
) -> None:
    ids = {"grilling": "toolu_01EAt7jnkYt1D63phjpVUBqL", "log-parser": "toolu_01PAR_A", "probekit:pdf": "toolu_01PAR_B"}
    calls = [{"tool_name": "Skill", "tool_input": {"skill": name}, "tool_use_id": i} for name, i in ids.items()]
    for call in calls:
        client.post("/v1/hooks/claude-code", json={"hook_event_name": "PostToolUse", "session_id": SESSION} | call)
    batch = {"hook_event_name": "PostToolBatch", "session_id": SESSION, "tool_calls": calls[1:]}
    assert client.post("/v1/hooks/claude-code", json=batch).text == "{}"

    import_claude(samples / "claude_code" / "transcript_main.jsonl", LocalDoor(collector), home)
    client.post("/v1/hooks/claude-code", json=batch)

    seen = visible(collector, "skill, session_id")
    assert [row for row in seen if row[0] in ids] == [(name, SESSION) for name in sorted(ids)]
    assert len({skill for skill, _ in seen}) == len(seen)


def test_a_later_hook_completes_what_the_first_did_not_know(client: TestClient, collector: Collector) -> None:
    call = {"tool_name": "Skill", "tool_use_id": "t", "tool_input": {"skill": "pdf"}}
    batch = {"hook_event_name": "PostToolBatch", "session_id": "s", "tool_calls": [call]}

    client.post("/v1/hooks/claude-code", json=batch)
    client.post(
        "/v1/hooks/claude-code", json=call | {"hook_event_name": "PostToolUse", "session_id": "s", "duration_ms": 4}
    )

    assert visible(collector, "skill, outcome, duration_ms") == [("pdf", "ok", 4)]


@pytest.mark.data
def test_report_1_a_skill_typed_is_one_event_in_hook_and_transcript(
    client: TestClient, collector: Collector, tmp_path: Path, home: Home
) -> None:
    text = (
        "<command-message>deploy</command-message>\n<command-name>/deploy</command-name>\n<command-args></command-args>"
    )
    row = {"type": "user", "uuid": "u1", "promptId": "p-1", "sessionId": "s", "timestamp": "2026-11-30T12:00:00Z"}
    (tmp_path / "s.jsonl").write_text(json.dumps(row | {"message": {"role": "user", "content": text}}) + "\n")
    typed = {"hook_event_name": "UserPromptExpansion", "expansion_type": "slash_command", "command_name": "deploy"}

    client.post("/v1/hooks/claude-code", json=typed | {"session_id": "s", "prompt_id": "p-1"})
    import_claude(tmp_path / "s.jsonl", LocalDoor(collector), home)

    assert visible(collector, "skill, trigger") == [("deploy", "user")]


@pytest.mark.data
def test_cloud_events_are_known_by_source_and_id(client: TestClient, collector: Collector, samples: Path) -> None:
    single = (samples / "generic/cloudevents_structured.json").read_bytes()
    batch = (samples / "generic/cloudevents_batch.json").read_bytes()
    as_batch = {"Content-Type": "application/cloudevents-batch+json; charset=utf-8"}

    def post(body: bytes, headers: dict[str, str]) -> dict[str, Any]:
        answer: dict[str, Any] = client.post("/v1/events", content=body, headers=headers).json()
        return {key: answer[key] for key in ("accepted", "duplicates", "rejected")}

    as_single = {"Content-Type": "application/cloudevents+json"}
    other = msgspec.json.encode(msgspec.json.decode(single) | {"source": "/agents/other"})
    assert post(single, as_single) == {"accepted": 1, "duplicates": 0, "rejected": 0}
    assert post(single, as_single) == {"accepted": 0, "duplicates": 1, "rejected": 0}
    assert post(other, as_single) == {"accepted": 1, "duplicates": 0, "rejected": 0}
    assert post(batch, as_batch) == {"accepted": 2, "duplicates": 0, "rejected": 0}
    assert post(b"[]", as_batch) == {"accepted": 0, "duplicates": 0, "rejected": 0}

    assert visible(collector, "skill, session_id, seq, outcome, source") == [
        ("a", "s-1", 1, "unknown", "cloudevents"),
        ("b", "s-1", 2, "unknown", "cloudevents"),
        ("pdf-processing", "s-1", 2, "ok", "cloudevents"),
        ("pdf-processing", "s-1", 2, "ok", "cloudevents"),
    ]


def test_a_bad_cloud_event_costs_only_itself(client: TestClient) -> None:
    good = {"specversion": "1.0", "id": "1", "source": "a", "type": "t", "subject": "plan", "data": {"session_id": "s"}}
    bad = [{**good, "specversion": "0.3"}, {**good, "id": ""}, {**good, "data": 3}, {**good, "data_base64": "!"}, 7]

    answer = client.post(
        "/v1/events", json=[*bad, good], headers={"Content-Type": "application/cloudevents-batch+json"}
    ).json()

    assert [error["code"] for error in answer["errors"]] == [
        "unknown_version", "missing_field", "bad_type", "bad_value", "not_an_object",
    ]  # fmt: skip
    assert answer["accepted"] == 1


def packed(encoding: str) -> dict[str, str]:
    return {"Content-Type": "application/json", "Content-Encoding": encoding}


def test_zstd_is_unpacked_up_to_the_limit_and_no_further(client: TestClient, settings: Settings) -> None:
    event = msgspec.json.encode({"event_id": "e1", "session_id": "s1", "skill_id": "plan"})
    bomb = zstandard.compress(b" " * (settings.max_body_bytes * 8))

    def status(body: bytes, encoding: str) -> int:
        return client.post("/v1/events", content=body, headers=packed(encoding)).status_code

    assert len(bomb) < settings.max_body_bytes
    assert status(zstandard.compress(event), "zstd") == 200
    assert status(zstandard.compress(event[:10]) + zstandard.compress(event[10:]), "zstd") == 200
    assert status(bomb, "zstd") == 413
    assert status(zstandard.compress(event)[:-3], "zstd") == 422
    assert status(b"not packed", "zstd") == 422
    assert status(event, "br") == 415


def test_every_json_example_of_the_integrations_page_is_json_and_names_our_routes() -> None:
    text = PAGE.read_text()
    documents = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]

    assert len(documents) >= len(HARNESSES)
    for harness in HARNESSES:
        assert f"/v1/hooks/{harness}" in text
    assert {event for document in documents for event in document.get("hooks", {})} >= {
        "PostToolUse", "PostToolUseFailure", "PermissionDenied", "PostToolBatch", "UserPromptExpansion",
    }  # fmt: skip


def test_a_hook_is_on_disk_when_it_is_answered(start_server: Any, home: Home) -> None:
    server = start_server()
    payload = {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Skill", "tool_use_id": "t"}
    with httpx.Client(base_url=server.url) as http:
        assert http.post("/v1/hooks/claude-code", json=payload | {"tool_input": {"skill": "pdf"}}).json() == {}
    server.kill()

    with Collector(Settings(home=str(home.root), publish_every_s=0)) as again:
        assert visible(again, "skill") == [("pdf",)]
