"""Codex, Gemini, trajectories, CSV -> events: each call once, what is inferred says so, nothing private stays."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from collector.counted import Item
from collector.doors import LocalDoor
from collector.hooks.codex import read as codex_hook
from collector.hooks.payload import Known
from collector.importers import codex, csv, gemini, terminus
from collector.importers.files import found
from collector.importers.jsonl import read_events
from collector.importers.reads import skills_read
from collector.receipt import Receipt
from collector.service import Collector
from cowpath.cli import main
from cowpath.cli.intake import _import_page
from cowpath.errors import BadFile, InputError
from cowpath.event import Event, Rejected, derived_id, utc_now
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.store import Store


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def send(self, events: Sequence[Item]) -> Receipt:
        self.items += events
        return Receipt(accepted=len(events))


def rollout(path: Path, *payloads: dict[str, Any]) -> Path:
    rows: list[dict[str, Any]] = [
        {"timestamp": "2026-07-20T00:00:00Z", "type": "session_meta", "payload": {"id": "s1"}}
    ]
    rows += [
        {"timestamp": f"2026-07-20T00:00:{n:02}Z", "type": "response_item", "payload": p}
        for n, p in enumerate(payloads)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def shell(call_id: str, command: str) -> dict[str, Any]:
    arguments = json.dumps({"cmd": command})
    return {"type": "function_call", "name": "exec_command", "call_id": call_id, "arguments": arguments}


def result(call_id: str, output: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


@pytest.mark.data
def test_report_9_10_the_codex_sample_gives_a_certain_and_an_inferred_call(samples: Path) -> None:
    session = "019b1a19-ec27-7008-ba4d-2761ae8fc488"
    named, read = codex.read_rollout(samples / "codex" / "rollout_excerpt.jsonl")

    assert (named.skill, named.confidence, named.trigger, named.session_id) == ("code-review", 1.0, "user", session)
    assert (read.skill, read.confidence, read.trigger) == ("pdf", 0.7, "agent")
    assert read.event_id == derived_id("codex", session, "call_1", "pdf")
    assert (named.seq, read.seq) == (0, 1)


def test_a_result_read_later_completes_the_call_under_its_id(tmp_path: Path, home: Home) -> None:
    sink = Kept()
    path = rollout(tmp_path / "rollout-1.jsonl", shell("c1", "cat skills/pdf/SKILL.md"))
    codex.import_codex([tmp_path], sink, home)
    rollout(path, shell("c1", "cat skills/pdf/SKILL.md"), result("c1", "Process exited with code 1\nOutput: no"))
    codex.import_codex([tmp_path], sink, home)

    first, second = [item for item in sink.items if isinstance(item, Event)]
    assert (first.outcome, second.outcome) == ("unknown", "error")
    assert first.event_id == second.event_id
    assert first.seq == second.seq


def test_the_kept_call_has_the_outcome_that_came_later(tmp_path: Path, settings: Settings) -> None:
    with Collector(settings) as collector:
        door = LocalDoor(collector)
        path = rollout(tmp_path / "rollout-1.jsonl", shell("c1", "cat skills/pdf/SKILL.md"))
        codex.import_codex([tmp_path], door, settings.at)
        rollout(path, shell("c1", "cat skills/pdf/SKILL.md"), result("c1", "Process exited with code 0"))
        codex.import_codex([tmp_path], door, settings.at)
        collector.publish()

    with Store.open(settings.at.usage, read_only=True) as store:
        assert store.rows("select skill, outcome from events") == [("pdf", "ok")]


@pytest.mark.data
def test_hook_and_rollout_tell_of_one_call(samples: Path, tmp_path: Path) -> None:
    payload = json.loads((samples / "codex" / "hook_PreToolUse.json").read_text())
    [seen] = codex_hook(payload, Known(now=utc_now()))
    command = payload["tool_input"]["command"]
    path = rollout(tmp_path / "r.jsonl", shell(payload["tool_use_id"], command))
    path.write_text(path.read_text().replace('"s1"', json.dumps(payload["session_id"])))
    [read] = codex.read_rollout(path)

    assert isinstance(seen, Event)
    assert (seen.event_id, seen.session_id, seen.skill) == (read.event_id, read.session_id, read.skill)


def test_an_unchanged_rollout_is_not_read_again(tmp_path: Path, home: Home) -> None:
    rollout(tmp_path / "rollout-1.jsonl", shell("c1", "cat skills/pdf/SKILL.md"))
    codex.import_codex([tmp_path], Kept(), home)
    again = codex.import_codex([tmp_path], Kept(), home)

    assert (again["files"], again["unchanged_files"], again["calls"]) == (1, 1, 0)


def test_reads_without_a_result_between_them_were_made_together(tmp_path: Path) -> None:
    path = rollout(
        tmp_path / "r.jsonl",
        shell("c1", "cat a/SKILL.md"),
        shell("c2", "cat b/SKILL.md"),
        result("c1", "ok"),
        result("c2", "ok"),
        shell("c3", "cat c/SKILL.md"),
    )

    assert [call.batch_id for call in codex.read_rollout(path)] == ["c1", "c1", None]


def test_a_half_written_rollout_gives_what_is_whole(tmp_path: Path) -> None:
    path = rollout(tmp_path / "r.jsonl", shell("c1", "cat a/SKILL.md"), shell("c2", "cat b/SKILL.md"))
    path.write_bytes(path.read_bytes()[:-40])

    assert [call.skill for call in codex.read_rollout(path)] == ["a"]


@pytest.mark.parametrize(
    ("command", "skills"),
    [
        ("cat .agents/skills/pdf/SKILL.md", ["pdf"]),
        ("sed -n 1,200p '/home/dev/my skills/pdf/SKILL.md'", ["pdf"]),
        ("cd x && cat a/SKILL.md b/SKILL.md | head", ["a", "b"]),
        ("cat a/SKILL.md; cat a/SKILL.md", ["a"]),
        ("type skills\\pdf\\SKILL.md", ["pdf"]),
        ("ls skills/pdf/SKILL.md", []),
        ("rm skills/pdf/SKILL.md", []),
        ("cat > skills/pdf/SKILL.md", []),
        ("cat draft >> skills/pdf/SKILL.md", []),
        ("sed -i s/a/b/ skills/pdf/SKILL.md", []),
        ("git add skills/pdf/SKILL.md", []),
        ("cat skills/*/SKILL.md", []),
        ("cat 'unclosed skills/pdf/SKILL.md", ["pdf"]),
        ("cat SKILL.md", []),
    ],
)
def test_only_reading_a_skill_file_counts_as_using_it(command: str, skills: list[str]) -> None:
    assert list(skills_read(command)) == skills


@pytest.mark.data
def test_the_gemini_sample_is_one_call(samples: Path) -> None:
    [call] = gemini_calls(samples / "gemini_cli" / "tool_call_log_attrs.json")

    assert (call.skill, call.session_id, call.outcome, call.duration_ms) == ("pdf", "s-1", "ok", 3.0)


def gemini_calls(path: Path) -> list[Event]:
    return [item for item in gemini.read_file(path) if isinstance(item, Event)]


def test_gemini_telemetry_is_read_through_other_records_and_an_unfinished_one(tmp_path: Path) -> None:
    def record(name: str, **more: Any) -> str:
        attributes = {
            "event.name": "gemini_cli.tool_call",
            "session.id": "s1",
            "prompt_id": name,
            "event.timestamp": "2026-07-20T00:00:00.000Z",
            "function_name": "activate_skill",
            "function_args": json.dumps({"name": name}),
        }
        return json.dumps({"hrTime": [1, 2], "attributes": attributes | more}, indent=2)

    path = tmp_path / "telemetry.log"
    path.write_text(
        record("a", success="false")
        + record("x", function_name="read_file")
        + '{"body": "startup"}\nnot json {\n'
        + record("b", decision="reject", success=False)
        + record("c")[:-20]
    )

    assert [(call.skill, call.outcome) for call in gemini_calls(path)] == [("a", "error"), ("b", "denied")]


def test_a_gemini_chat_gives_its_skill_calls_in_order(tmp_path: Path) -> None:
    def use(call_id: str, name: str, status: str) -> dict[str, Any]:
        return {"id": call_id, "name": "activate_skill", "args": {"name": name}, "status": status}

    messages = [
        {"id": "m1", "type": "user", "content": "secret words"},
        {
            "id": "m2",
            "timestamp": "2026-07-20T00:00:00Z",
            "toolCalls": [use("1", "a", "success"), use("2", "b", "error")],
        },
        {"id": "m3", "toolCalls": [{"id": "3", "name": "shell", "args": {}}, use("4", "c", "cancelled")]},
    ]
    path = tmp_path / "session-1.json"
    path.write_text(json.dumps({"sessionId": "s1", "messages": messages}))

    calls = gemini_calls(path)
    assert [(c.skill, c.outcome, c.batch_id, c.seq) for c in calls] == [
        ("a", "ok", "m2", 0),
        ("b", "error", "m2", 1),
        ("c", "denied", None, 2),
    ]
    assert "secret" not in repr(calls)


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    agent = {"name": "terminus-2", "version": "2.0"}
    return {"schema_version": "ATIF-v1.4", "session_id": "run-1", "agent": agent, "steps": list(steps)} | more


def tool(call_id: str, function: str, **arguments: str) -> dict[str, Any]:
    return {"tool_call_id": call_id, "function_name": function, "arguments": arguments}


def test_a_trajectory_gives_skill_tools_and_inferred_reads(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    failed = {"results": [{"source_call_id": "toolu_1", "content": "secret", "is_error": True}]}
    path.write_text(
        json.dumps(
            trajectory(
                {"step_id": 1, "source": "user", "message": "secret"},
                {"step_id": 2, "tool_calls": [tool("toolu_1", "Skill", skill="plan")], "observation": failed},
                {"step_id": 3, "tool_calls": [tool("c1", "bash_command", keystrokes="cat skills/pdf/SKILL.md\n")]},
                {"step_id": 4, "is_copied_context": True, "tool_calls": [tool("c0", "Skill", skill="old")]},
                {"step_id": 5, "tool_calls": [tool("c2", "bash_command", keystrokes="make\n")]},
            )
        )
    )

    calls = [item for item in terminus.read_trajectory(path) if isinstance(item, Event)]
    assert [(c.skill, c.confidence, c.outcome) for c in calls] == [("plan", 1.0, "error"), ("pdf", 0.7, "unknown")]
    assert calls[0].event_id == derived_id("claude", "toolu_1")
    assert (calls[0].agent, calls[0].agent_version) == ("terminus-2", "2.0")
    assert "secret" not in repr(calls)
    assert len(terminus.read_trajectory(path, tools=True)) == 3


def test_a_subagent_of_a_trajectory_is_a_stream_of_its_own(tmp_path: Path) -> None:
    inner = trajectory({"step_id": 1, "tool_calls": [tool("c1", "Skill", skill="inner")]}, trajectory_id="t2")
    outer = trajectory(
        {"step_id": 1, "tool_calls": [tool("c1", "Skill", skill="outer")]}, subagent_trajectories=[inner]
    )
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(outer))

    calls = [item for item in terminus.read_trajectory(path) if isinstance(item, Event)]
    assert [(c.session_id, c.stream_id, c.skill) for c in calls] == [("run-1", "", "outer"), ("run-1", "t2", "inner")]
    assert len({c.event_id for c in calls}) == 2


@pytest.mark.parametrize("text", ["", "[]", '{"steps": 3}', '{"steps": []}'])
def test_what_is_no_trajectory_is_named_and_kept_as_a_dead_letter(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(text)

    [refused] = terminus.read_trajectory(path)
    assert isinstance(refused, Rejected)
    assert refused.code == "bad_trajectory"


def test_csv_columns_are_mapped_to_fields() -> None:
    lines = ["run;tool;when;outcome\n", "r1;plan;2026-03-01 10:00:00;success\n", 'r1;"a;b";;\n']
    mapped = csv.rows(lines, {"session_id": "run", "skill_id": "tool", "called_at": "when"})

    first, second = read_events(mapped, source="csv")
    assert isinstance(first, Event)
    assert isinstance(second, Event)
    assert (first.session_id, first.skill, first.outcome, first.source) == ("r1", "plan", "ok", "csv")
    assert (second.skill, second.called_at) == ("a;b", None)


def test_a_csv_row_that_is_wrong_costs_only_itself() -> None:
    sink = Kept()
    document = csv.import_csv(["session_id,skill_id\n", "s1,a\n", "s1,b,c\n", "s1,\n", "s1,d\n"], sink, columns={})

    kinds = [item.skill if not isinstance(item, Rejected) else item.code for item in sink.items]
    assert kinds == ["a", "not_an_object", "", "d"]  # the third is refused by the intake: it names no skill
    assert document["calls"] == 3


@pytest.mark.parametrize(
    ("header", "columns", "words"),
    [
        ("session,skill_id", {"session_id": "sesion"}, "no column sesion"),
        ("a,b", {}, "needs session_id"),
        ("", {}, "needs session_id"),
    ],
)
def test_a_csv_header_without_what_is_needed_is_named(header: str, columns: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        list(csv.rows([header], columns))


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="nothing at"):
        found([tmp_path / "absent"], ["*"])


def test_importing_twice_through_the_command_adds_nothing(tmp_path: Path, home: Home) -> None:
    table = tmp_path / "calls.csv"
    table.write_text("\ufeffrun,skill_id,seq\nr1,plan,0\nr1,test,1\n")
    rollout(tmp_path / "rollout-1.jsonl", shell("c1", "cat skills/pdf/SKILL.md"), result("c1", "exit code: 0"))
    runner = CliRunner()
    for accepted in (2, 0):
        ran = runner.invoke(
            main, ["import", "csv", str(table), "--column", "session_id=run", "--home", str(home.root), "--json"]
        )
        assert json.loads(ran.stdout)["accepted"] == accepted, ran.output
    for accepted in (1, 0):
        ran = runner.invoke(main, ["import", "codex", str(tmp_path), "--home", str(home.root), "--json"])
        assert json.loads(ran.stdout)["accepted"] == accepted, ran.output

    with Store.open(home.live, read_only=True) as store:
        rows = store.rows("select skill, source, outcome, confidence from events order by skill")
    assert rows == [
        ("pdf", "codex-rollout", "ok", 0.7),
        ("plan", "csv", "unknown", 1.0),
        ("test", "csv", "unknown", 1.0),
    ]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("jsonl", '{"skill_id": "plan"}\n'),
        ("csv", "session_id,skill_id\n,plan\n"),
        ("claude", '{"no": "transcript"}\n'),
        ("codex", '{"no": "rollout"}\n'),
        ("gemini", "no chat\n"),
        ("terminus", '{"no": "trajectory"}\n'),
    ],
)
def test_a_file_of_which_nothing_can_be_taken_is_exit_code_82_in_every_importer(
    tmp_path: Path, home: Home, kind: str, content: str
) -> None:
    file = tmp_path / "calls"
    file.write_text(content)

    done = subprocess.run(
        [sys.executable, "-m", "cowpath", "import", kind, str(file), "--home", str(home.root), "--json"],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 82, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert document.get("rejected") == 1 or document["error"]["code"] == "bad_file"


def test_a_second_import_says_how_many_calls_are_known_already(tmp_path: Path, home: Home) -> None:
    rollout(tmp_path / "rollout-1.jsonl", shell("c1", "cat skills/pdf/SKILL.md"), result("c1", "exit code: 0"))
    for accepted, known in ((1, 0), (0, 1)):
        ran = CliRunner().invoke(main, ["import", "codex", str(tmp_path), "--home", str(home.root), "--json"])
        document = json.loads(ran.stdout)
        assert (document["accepted"], document["unchanged_calls"]) == (accepted, known)

    page = _import_page(document)
    assert page.startswith("0 new calls, 1 already known, 0 rejected;")
    assert "unchanged since the last import and not read again: 1 files" in page


def test_the_example_of_the_documentation_runs(tmp_path: Path, home: Home) -> None:
    page = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text()
    command = page.partition("cowpath import csv calls.csv")[2].partition("\n")[0].split()
    table = tmp_path / "calls.csv"
    table.write_text("conversation,tool,started\nc1,plan,2026-03-01T10:00:00Z\n")
    ran = CliRunner().invoke(main, ["import", "csv", str(table), *command, "--home", str(home.root), "--json"])

    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["accepted"] == 1
