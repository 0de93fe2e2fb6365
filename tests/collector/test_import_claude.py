"""A person's agent history becomes events: each call once, where it was first made, and no words of anybody."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from collector.counted import Item
from collector.importers.claude import EVERYTHING, import_claude, owned
from collector.importers.transcript import read_transcript
from collector.receipt import Receipt
from cowpath.cli import main
from cowpath.errors import BadFile
from cowpath.event import Event, derived_id
from cowpath.home import Home
from cowpath.store import Store


class Door:
    """A collector in a dictionary: keeps each event id once."""

    def __init__(self) -> None:
        self.events: dict[str, Event] = {}

    def send(self, events: Sequence[Item]) -> Receipt:
        new = {e.event_id: e for e in events if isinstance(e, Event) and e.event_id not in self.events}
        self.events |= new
        return Receipt(accepted=len(new), duplicates=len(events) - len(new))

    @property
    def calls(self) -> list[tuple[str, str, int | None, str]]:
        """(session, stream, seq, skill), sorted."""
        return sorted((e.session_id, e.stream_id, e.seq or 0, e.skill) for e in self.events.values())


@pytest.fixture
def door() -> Door:
    return Door()


def skill(call_id: str, name: str, *, at: str = "2026-03-01T10:00:00Z", uuid: str = "", **row: Any) -> dict[str, Any]:
    """An assistant row in which a skill is called."""
    return tool(call_id, "Skill", {"skill": name}, at=at, uuid=uuid, **row)


def tool(
    call_id: str, name: str, given: dict[str, Any], *, at: str = "2026-03-01T10:00:00Z", uuid: str = "", **row: Any
) -> dict[str, Any]:
    """An assistant row with one tool_use block."""
    message = {"id": row.pop("message_id", f"msg-{call_id}"), "content": [
        {"type": "tool_use", "id": call_id, "name": name, "input": given}
    ]}  # fmt: skip
    return {"type": "assistant", "uuid": uuid or f"row-{call_id}", "timestamp": at, "message": message, **row}


def result(call_id: str, content: str = "", **row: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": row.pop("is_error", False)}
    return {"type": "user", "uuid": f"result-{call_id}", "message": {"role": "user", "content": [block]}, **row}


def text(words: str, **row: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": "row-of-text", "message": {"role": "user", "content": words}, **row}


def typed(name: str, **row: Any) -> dict[str, Any]:
    return text(f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>", **row)


def write(path: Path, session: str, *rows: dict[str, Any], tail: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"sessionId": session, "version": "2.1.0", **row}) + "\n" for row in rows]
    path.write_text("".join(lines) + tail)
    return path


MAIN = "e854d282-1111-4222-8333-444455556666"
FORK = "88817c33-aaaa-4bbb-8ccc-ddddeeeeffff"


@pytest.mark.data
def test_the_sample_history_gives_exactly_its_calls(samples: Path, door: Door, home: Home) -> None:
    document = import_claude(samples / "claude_code", door, home)

    calls = sorted(
        (e.session_id, e.stream_id, e.seq, e.skill, e.trigger, e.outcome, e.batch_id) for e in door.events.values()
    )
    assert calls == [
        (FORK, "", 1, "report-writer", "agent", "unknown", None),
        (MAIN, "", 0, "grilling", "nested", "ok", None),
        (MAIN, "", 1, "checkin-romeo", "user", "unknown", None),
        (MAIN, "", 2, "unknown-skill", "agent", "error", None),
        (MAIN, "", 3, "log-parser", "agent", "unknown", "msg_3"),
        (MAIN, "", 4, "probekit:pdf", "agent", "unknown", "msg_3"),
        (MAIN, "aeb76f0", 0, "triage", "agent", "unknown", None),
    ]
    assert document == {
        "files": 3,
        "unchanged_files": 0,
        "unchanged_calls": 0,
        "other_files": 0,
        "calls": 7,
        "accepted": 7,
        "duplicates": 0,
        "rejected": 0,
        "reasons": {},
        "skills": 7,
        "sessions": 2,
        "streams": 3,
        "copied": 1,
        "built_in_commands": 1,
        "unreadable_lines": 0,
        "left_out": {},
    }


@pytest.mark.data
def test_the_sample_calls_carry_the_ids_every_source_derives_and_no_words(
    samples: Path, door: Door, home: Home
) -> None:
    import_claude(samples / "claude_code", door, home)
    by_skill = {event.skill: event for event in door.events.values()}

    assert by_skill["grilling"].event_id == derived_id("claude", "toolu_01EAt7jnkYt1D63phjpVUBqL")
    assert by_skill["checkin-romeo"].event_id == derived_id("claude-slash", MAIN, "u3", "checkin-romeo")
    assert by_skill["grilling"].extra == {"caller": "wayfinder"}
    assert {(e.agent, e.agent_version, e.source, e.actor, e.kind) for e in door.events.values()} == {
        ("claude-code", "2.1.248", "claude-transcript", None, "activated")
    }
    kept = msgspec.json.encode([list(door.events.values())]).decode()
    assert not any(word in kept for word in ("/home/dev", "pick up", "plan the feature", "main", "Launching"))


@pytest.mark.data
def test_the_order_in_which_files_are_read_does_not_matter(samples: Path, tmp_path: Path) -> None:
    files = sorted((samples / "claude_code").rglob("*.jsonl"))
    transcripts = [read_transcript(file) for file in files]
    first = owned(transcripts)

    for seed in range(10):
        random.Random(seed).shuffle(transcripts)
        assert owned(transcripts) == first


def test_importing_twice_is_importing_once(tmp_path: Path, door: Door, home: Home) -> None:
    write(tmp_path / "p/s1.jsonl", "s1", skill("a", "plan"), typed("commit"))

    import_claude(tmp_path / "p", door, home)
    again = import_claude(tmp_path / "p", door, home)
    (home.root / "imports.json").unlink()
    forgotten = import_claude(tmp_path / "p", door, home)

    assert door.calls == [("s1", "", 0, "plan"), ("s1", "", 1, "commit")]
    assert (again["unchanged_files"], again["calls"]) == (1, 0)
    assert (forgotten["accepted"], forgotten["duplicates"]) == (0, 2)


def test_a_half_written_last_line_is_left_and_read_when_it_is_whole(tmp_path: Path, door: Door, home: Home) -> None:
    whole = json.dumps({"sessionId": "s1", **skill("b", "commit")})
    path = write(tmp_path / "s1.jsonl", "s1", skill("a", "plan"), tail=whole[:40])
    torn = import_claude(path, door, home)
    before = door.calls

    write(path, "s1", skill("a", "plan"), tail=whole)
    import_claude(path, door, home)

    assert before == [("s1", "", 0, "plan")]
    assert torn["unreadable_lines"] == 0
    assert door.calls == [("s1", "", 0, "plan"), ("s1", "", 1, "commit")]


def test_an_unreadable_line_inside_is_counted_and_the_rest_read(tmp_path: Path, door: Door, home: Home) -> None:
    path = write(tmp_path / "s1.jsonl", "s1", skill("a", "plan"), tail="{broken\n")
    path.write_text(path.read_text() + json.dumps({"sessionId": "s1", **skill("b", "commit")}) + "\n")

    document = import_claude(path, door, home)

    assert (document["unreadable_lines"], document["calls"]) == (1, 2)


def test_a_torn_last_line_that_was_closed_by_a_line_end_is_no_error_either(
    tmp_path: Path, door: Door, home: Home
) -> None:
    document = import_claude(write(tmp_path / "s1.jsonl", "s1", skill("a", "plan"), tail="{torn\n\n"), door, home)

    assert (document["unreadable_lines"], document["calls"]) == (0, 1)


def test_half_a_surrogate_does_not_hide_a_call(tmp_path: Path, door: Door, home: Home) -> None:
    write(tmp_path / "s1.jsonl", "s1", {**skill("a", "plan"), "note": "cut \ud83d"})

    import_claude(tmp_path, door, home)

    assert door.calls == [("s1", "", 0, "plan")]


def test_report_13_a_message_over_many_rows_and_a_row_written_twice_count_once(
    tmp_path: Path, door: Door, home: Home
) -> None:
    partial = tool("a", "Skill", {}, uuid="a1")
    write(tmp_path / "s1.jsonl", "s1", partial, skill("a", "plan", uuid="a2"), skill("a", "plan", uuid="a2"))

    import_claude(tmp_path, door, home)

    assert door.calls == [("s1", "", 0, "plan")]


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_report_11_the_file_whose_own_rows_begin_first_owns_what_a_fork_copied(
    names: tuple[str, str], tmp_path: Path, door: Door, home: Home
) -> None:
    first, second = names
    shared = [skill("x", "plan", at="2026-03-01T10:00:00Z"), typed("review", timestamp="2026-03-01T10:01:00Z")]
    write(tmp_path / f"{first}.jsonl", "first", *shared, skill("y", "commit", at="2026-03-01T10:02:00Z"))
    write(tmp_path / f"{second}.jsonl", "second", *shared, skill("z", "deploy", at="2026-03-02T09:00:00Z"))

    document = import_claude(tmp_path, door, home)

    assert door.calls == [
        ("first", "", 0, "plan"),
        ("first", "", 1, "review"),
        ("first", "", 2, "commit"),
        ("second", "", 2, "deploy"),
    ]
    assert document["copied"] == 2


def test_a_session_that_ended_where_the_fork_began_owns_the_copies(tmp_path: Path, door: Door, home: Home) -> None:
    shared = [skill("x", "plan", at="2026-03-01T10:00:00Z")]
    write(tmp_path / "a.jsonl", "fork", *shared, skill("z", "deploy", at="2026-03-02T09:00:00Z"))
    write(tmp_path / "b.jsonl", "ended", *shared)

    import_claude(tmp_path, door, home)

    assert door.calls == [("ended", "", 0, "plan"), ("fork", "", 1, "deploy")]


def test_a_row_marked_as_forked_is_never_the_owner(tmp_path: Path, door: Door, home: Home) -> None:
    copied = skill("x", "plan", forkedFrom={"sessionId": "first"})
    write(tmp_path / "a.jsonl", "fork", copied)
    write(tmp_path / "b.jsonl", "first", skill("x", "plan"), skill("y", "commit", at="2026-03-05T10:00:00Z"))

    import_claude(tmp_path, door, home)

    assert door.calls == [("first", "", 0, "plan"), ("first", "", 1, "commit")]


def test_a_fork_imported_later_adds_only_what_is_new(tmp_path: Path, door: Door, home: Home) -> None:
    shared = [skill("x", "plan"), typed("review", timestamp="2026-03-01T10:01:00Z")]
    write(tmp_path / "a.jsonl", "first", *shared)
    import_claude(tmp_path, door, home)

    write(tmp_path / "b.jsonl", "fork", *shared, skill("z", "deploy", at="2026-03-02T09:00:00Z"))
    later = import_claude(tmp_path, door, home)

    assert door.calls == [("first", "", 0, "plan"), ("first", "", 1, "review"), ("fork", "", 2, "deploy")]
    assert (later["accepted"], later["duplicates"]) == (1, 2)


def test_report_15_a_subagent_is_a_stream_of_its_own_also_where_it_replays_its_parent(
    tmp_path: Path, door: Door, home: Home
) -> None:
    write(tmp_path / "s1.jsonl", "s1", skill("a", "plan", at="2026-03-01T11:00:00Z"), skill("b", "commit"))
    write(
        tmp_path / "s1/subagents/agent-77.jsonl",
        "s1",
        skill("a", "plan", isSidechain=True, at="2026-03-01T09:00:00Z"),
        skill("c", "triage", isSidechain=True),
    )

    import_claude(tmp_path, door, home)

    assert door.calls == [("s1", "", 0, "plan"), ("s1", "", 1, "commit"), ("s1", "77", 1, "triage")]


def test_sidechains_inside_the_main_file_are_told_apart_also_under_phantom_parents(
    tmp_path: Path, door: Door, home: Home
) -> None:
    side: dict[str, Any] = {"isSidechain": True}
    write(
        tmp_path / "s1.jsonl",
        "s1",
        skill("a", "plan", parentUuid="never-written"),
        skill("b", "triage", uuid="one", parentUuid=None, **side),
        skill("c", "search", uuid="two", parentUuid=None, **side),
        skill("d", "report", uuid="three", parentUuid="one", **side),
        skill("e", "close", uuid="four", parentUuid="never-written", **side),
    )

    import_claude(tmp_path, door, home)

    assert door.calls == [
        ("s1", "", 0, "plan"),
        ("s1", "one", 0, "triage"),
        ("s1", "one", 1, "report"),
        ("s1", "one", 2, "close"),
        ("s1", "two", 0, "search"),
    ]


def test_only_what_a_person_typed_as_a_skill_is_a_typed_call(tmp_path: Path, door: Door, home: Home) -> None:
    built_in = "<command-name>/clear</command-name>\n<command-message>clear</command-message>"
    quoted = "why does <command-message>x</command-message>\n<command-name>/x</command-name> not work?"
    document = import_claude(
        write(
            tmp_path / "s1.jsonl",
            "s1",
            {**typed("release"), "uuid": "1"},
            {**text(built_in), "uuid": "2"},
            {**text(quoted), "uuid": "3"},
            {**typed("hidden"), "uuid": "4", "isMeta": True},
            {**typed("summary"), "uuid": "5", "isCompactSummary": True},
            {**typed("mcp__github__review"), "uuid": "6"},
            {
                **text(""),
                "uuid": "7",
                "message": {"content": [{"type": "text", "text": typed("blog")["message"]["content"]}]},
            },
        ),
        door,
        home,
    )

    assert door.calls == [("s1", "", 0, "release"), ("s1", "", 1, "blog")]
    assert {event.trigger for event in door.events.values()} == {"user"}
    assert document["built_in_commands"] == 1


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (result("a"), "ok"),
        (result("a", "failed", is_error=True), "error"),
        (result("a", toolUseResult={"success": False}), "error"),
        (result("a", "The user doesn't want to proceed with this tool use.", is_error=True), "denied"),
        (result("a", "x", is_error=True, toolUseResult="User rejected tool use"), "denied"),
        (result("a", "[Request interrupted by user for tool use]", is_error=True), "abandoned"),
        (result("other"), "unknown"),
    ],
)
def test_the_result_row_says_how_a_call_ended(
    answer: dict[str, Any], outcome: str, tmp_path: Path, door: Door, home: Home
) -> None:
    write(tmp_path / "s1.jsonl", "s1", skill("a", "plan"), answer)

    import_claude(tmp_path, door, home)

    assert [event.outcome for event in door.events.values()] == [outcome]


def test_parallel_calls_share_a_batch_and_reused_message_ids_do_not_make_one(
    tmp_path: Path, door: Door, home: Home
) -> None:
    write(
        tmp_path / "s1.jsonl",
        "s1",
        skill("a", "plan", message_id="m1", requestId="r1"),
        tool("b", "Bash", {"command": "ls"}, message_id="m1", requestId="r1"),
        skill("c", "commit", message_id="m1", requestId="r2"),
    )

    import_claude(tmp_path, door, home, sorts=EVERYTHING)

    assert {e.skill: e.batch_id for e in door.events.values()} == {"plan": "m1", "tool:Bash": "m1", "commit": None}


def test_tools_servers_and_subagents_come_only_when_asked_for_and_fit_in_later(
    tmp_path: Path, door: Door, home: Home
) -> None:
    write(
        tmp_path / "s1.jsonl",
        "s1",
        tool("a", "Bash", {"command": "cat /etc/passwd"}),
        skill("b", "plan"),
        tool("c", "mcp__git_hub__open_pr", {"title": "secret"}),
        tool("d", "Task", {"subagent_type": "Explore", "prompt": "secret"}),
        tool("e", "Agent", {"prompt": "secret"}),
        tool("f", "SlashCommand", {"command": "/ship now"}),
    )

    skills_only = import_claude(tmp_path, door, home)
    before = door.calls
    import_claude(tmp_path, door, home, sorts=EVERYTHING)

    assert before == [("s1", "", 1, "plan"), ("s1", "", 5, "ship")]
    assert skills_only["left_out"] == {"agent": 2, "mcp": 1, "tool": 1}
    assert door.calls == [
        ("s1", "", 0, "tool:Bash"),
        ("s1", "", 1, "plan"),
        ("s1", "", 2, "mcp:git_hub/open_pr"),
        ("s1", "", 3, "agent:Explore"),
        ("s1", "", 4, "agent:general-purpose"),
        ("s1", "", 5, "ship"),
    ]
    assert "secret" not in str(door.events)


def test_files_that_are_no_transcripts_are_counted_and_do_not_disturb(tmp_path: Path, door: Door, home: Home) -> None:
    write(tmp_path / "s1.jsonl", "s1", skill("a", "plan"))
    (tmp_path / "notes.jsonl").write_text('{"a": 1}\n[1]\nnot json\n')
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00\n\x01\n")
    (tmp_path / "config.json").write_text("{}")

    document = import_claude(tmp_path, door, home)

    assert (document["files"], document["other_files"], document["calls"]) == (4, 3, 1)


def test_a_moved_clock_or_a_missing_time_keeps_the_order_of_the_file(tmp_path: Path, door: Door, home: Home) -> None:
    write(
        tmp_path / "s1.jsonl",
        "s1",
        skill("a", "plan", at="2026-03-01T12:00:00+02:00"),
        skill("b", "commit", at="2026-03-01T09:00:00Z"),
        skill("c", "push", at="not a time"),
    )

    import_claude(tmp_path, door, home)

    assert door.calls == [("s1", "", 0, "plan"), ("s1", "", 1, "commit"), ("s1", "", 2, "push")]
    assert [str(e.called_at) for e in door.events.values()] == [
        "2026-03-01 10:00:00+00:00",
        "2026-03-01 09:00:00+00:00",
        "None",
    ]


def test_a_session_over_two_files_is_numbered_in_the_order_of_their_beginnings(
    tmp_path: Path, door: Door, home: Home
) -> None:
    write(tmp_path / "b/s1.jsonl", "s1", skill("a", "plan", at="2026-03-01T10:00:00Z"))
    write(tmp_path / "a/s1.jsonl", "s1", skill("b", "commit", at="2026-03-02T10:00:00Z"))

    import_claude(tmp_path, door, home)

    assert door.calls == [("s1", "", 0, "plan"), ("s1", "", 1, "commit")]


def test_a_history_that_is_not_there_says_so(tmp_path: Path, door: Door, home: Home) -> None:
    with pytest.raises(BadFile, match="no agent history"):
        import_claude(tmp_path / "nowhere", door, home)


def test_the_record_of_read_files_names_no_path(tmp_path: Path, door: Door, home: Home) -> None:
    write(tmp_path / "private-project/s1.jsonl", "s1", skill("a", "plan"))

    import_claude(tmp_path, door, home)

    assert b"private-project" not in (home.root / "imports.json").read_bytes()


def test_a_file_that_changed_without_growing_is_read_again(tmp_path: Path, door: Door, home: Home) -> None:
    path = write(tmp_path / "s1.jsonl", "s1", skill("a", "plan"))
    stamp = path.stat()
    import_claude(path, door, home)

    write(path, "s1", skill("b", "ship"))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    import_claude(path, door, home)

    assert [call[3] for call in door.calls] == ["plan", "ship"]


@pytest.mark.data
def test_a_copy_of_the_sample_elsewhere_adds_nothing(samples: Path, tmp_path: Path, door: Door, home: Home) -> None:
    import_claude(samples / "claude_code", door, home)
    shutil.copytree(samples / "claude_code", tmp_path / "backup")

    again = import_claude(tmp_path / "backup", door, home)

    assert (again["accepted"], again["duplicates"]) == (0, 7)


@pytest.mark.data
def test_the_command_brings_the_sample_into_the_store_once(samples: Path, home: Home) -> None:
    arguments = ["import", "claude", str(samples / "claude_code"), "--home", str(home.root), "--json"]

    first = msgspec.json.decode(CliRunner().invoke(main, arguments, catch_exceptions=False).stdout)
    (home.root / "imports.json").unlink()
    second = msgspec.json.decode(CliRunner().invoke(main, arguments, catch_exceptions=False).stdout)

    assert [(d["accepted"], d["duplicates"], d["rejected"]) for d in (first, second)] == [(7, 0, 0), (0, 7, 0)]
    with Store.open(home.live, read_only=True) as store:
        rows = store.rows("select skill from events where session_id = $session and stream_id = '' order by seq",
                          {"session": MAIN})  # fmt: skip
    assert [skill for (skill,) in rows] == [
        "grilling",
        "checkin-romeo",
        "unknown-skill",
        "log-parser",
        "probekit:pdf",
    ]
