"""What an agent runs and the file that tells it to: quick, silent, private; a settings file loses nothing."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from collector.hooks import claude_code
from collector.hooks.payload import Known
from cowpath import hook, hooks
from cowpath.cli import main
from cowpath.client import Client
from cowpath.errors import BadFile, HomeBusy
from cowpath.event import Event, Rejected
from cowpath.home import Home
from cowpath.spool import Spool
from cowpath.store import Store

REPOSITORY = Path(__file__).parents[2]
PLUGIN = REPOSITORY / "plugin"
URL = "http://127.0.0.1:8710"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
NOWHERE = "http://127.0.0.1:9"

SKILL = {
    "session_id": "s1",
    "transcript_path": "/home/dev/.claude/secret.jsonl",
    "cwd": "/home/dev/secret",
    "hook_event_name": "PostToolUse",
    "tool_name": "Skill",
    "tool_use_id": "t1",
    "tool_input": {"skill": "plan", "args": "secret"},
    "tool_response": {"success": True, "commandName": "plan", "text": "secret"},
    "duration_ms": 4,
}


@pytest.fixture(autouse=True)
def tracked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may ask not to be tracked; the mining flow asks so for all of its process."""
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)


def run(
    home: Path, given: bytes, *arguments: str, url: str = NOWHERE, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"COWPATH_HOME": str(home), "COWPATH_URL": url} | variables
    return subprocess.run(
        [sys.executable, "-m", "cowpath.hook", *arguments],
        input=given,
        capture_output=True,
        env=environment,
        timeout=30,
    )


def spooled(home: Path) -> list[dict[str, Any]]:
    lines = [line for file in (home / "spool").glob("*.spool") for line in file.read_bytes().splitlines()]
    return [json.loads(line.partition(b" ")[2]) for line in lines]


def test_a_hook_without_a_collector_keeps_the_facts_of_the_call_and_nothing_else(tmp_path: Path) -> None:
    ran = run(tmp_path, json.dumps(SKILL).encode(), "claude-code")

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    [kept] = spooled(tmp_path)
    assert kept.pop("timestamp")
    assert kept == {
        "session_id": "s1",
        "hook_event_name": "PostToolUse",
        "tool_name": "Skill",
        "tool_use_id": "t1",
        "tool_input": {"skill": "plan"},
        "tool_response": {"success": True},
        "duration_ms": 4,
    }


def test_b13_who_asks_not_to_be_tracked_is_not(tmp_path: Path) -> None:
    asked = run(tmp_path, json.dumps(SKILL).encode(), "claude-code", DO_NOT_TRACK="1")
    assert (asked.returncode, spooled(tmp_path)) == (0, [])

    run(tmp_path, json.dumps(SKILL).encode(), "claude-code", DO_NOT_TRACK="0")
    assert len(spooled(tmp_path)) == 1


@pytest.mark.data
def test_every_sample_is_kept_without_words_and_paths_or_not_at_all(samples: Path) -> None:
    kept = {file.stem: hook.facts(json.loads(file.read_text())) for file in samples.glob("claude_code/hook_*.json")}

    assert {name for name, facts in kept.items() if facts} == {
        "hook_PreToolUse_Skill",
        "hook_PostToolUse_Skill_plugin",
        "hook_PostToolUse_Skill_args_subagent",
        "hook_PostToolUseFailure_Skill",
        "hook_PermissionDenied_Skill",
        "hook_PostToolBatch_Skill",
        "hook_UserPromptExpansion_slash",
    }
    text = json.dumps(list(kept.values()))
    assert not [word for word in ("/home", "arg1", "transcript_path", "cwd", "args", '"prompt"') if word in text]


@pytest.mark.parametrize("given", [b"", b"no json", b"[]", b"{}", b"\xff", b'{"hook_event_name": {}}'])
@pytest.mark.parametrize("arguments", [["claude-code"], ["unknown"], []])
def test_a_hook_exits_0_whatever_it_is_given(
    tmp_path: Path,
    given: bytes,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COWPATH_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))

    assert hook.main(arguments) == 0
    assert capsys.readouterr().out == ""


def test_a_hook_whose_home_cannot_be_written_exits_0(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = run(tmp_path / "file", json.dumps(SKILL).encode(), "claude-code")

    assert (ran.returncode, ran.stdout) == (0, b"")


def test_many_hooks_at_once_keep_every_call(tmp_path: Path) -> None:
    environment = os.environ | {"COWPATH_HOME": str(tmp_path), "COWPATH_URL": NOWHERE}
    command = [sys.executable, "-m", "cowpath.hook", "claude-code"]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) for _ in range(20)]
    for number, process in enumerate(started):
        process.communicate(json.dumps(SKILL | {"tool_use_id": f"t{number}"}).encode(), timeout=30)

    assert sorted(kept["tool_use_id"] for kept in spooled(tmp_path)) == sorted(f"t{n}" for n in range(20))


def test_a_hook_loads_neither_click_nor_msgspec_nor_an_http_library() -> None:
    code = "import sys, cowpath.hook; print(sorted({'click', 'msgspec', 'http.client', 'ssl'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_report_57_what_a_hook_has_no_time_for_is_left_in_the_spool(tmp_path: Path) -> None:
    environment = {"COWPATH_HOME": str(tmp_path), "COWPATH_URL": NOWHERE}
    hook.take("claude-code", json.dumps(SKILL).encode(), environment, deadline=time.monotonic() - 1)

    assert len(spooled(tmp_path)) == 1


def test_progress_is_kept_where_a_shipment_stops_half_way(tmp_path: Path) -> None:
    spool = Spool(tmp_path, brief=True)
    for name in b"abc":
        spool.append(b'event {"skill_id":"%c"}\n' % name)
    spool.close()
    sent: list[bytes] = []

    def two(lines: list[bytes]) -> None:
        if len(sent) == 2:
            raise OSError("out of time")
        sent.extend(lines)

    with pytest.raises(OSError, match="out of time"):
        spool.ship(two, most_lines=1)
    spool.ship(sent.extend, most_lines=1)

    assert sent == [b'event {"skill_id":"%c"}' % name for name in b"abc"]
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_has_the_same_hook(tmp_path: Path) -> None:
    ran = CliRunner().invoke(
        main,
        ["hook", "claude-code"],
        input=json.dumps(SKILL),
        env={"COWPATH_HOME": str(tmp_path), "COWPATH_URL": NOWHERE},
    )

    assert (ran.exit_code, ran.stdout) == (0, "")
    assert len(spooled(tmp_path)) == 1


FOREIGN = """{
    "model": "opus",
    "hooks": {
        "PostToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo \\u00e9 ü"}]}
        ]
    },
    "permissions": {"allow": []}
}"""


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    return tmp_path / ".claude" / "settings.json"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("text", [FOREIGN, FOREIGN + "\n", "{}", "", '{"hooks": {}}\n', FOREIGN.replace("\n", "\r\n")])
def test_uninstall_gives_back_what_was_there_byte_by_byte(settings: Path, text: str) -> None:
    write(settings, text).chmod(0o640)

    assert hooks.install(settings, URL)["changed"]
    assert hooks.status(settings)["installed"]
    assert hooks.uninstall(settings)["changed"]

    assert settings.read_bytes() == text.encode()
    assert settings.stat().st_mode & 0o777 == 0o640
    assert [file.name for file in settings.parent.iterdir()] == ["settings.json"]


def test_a_file_that_was_not_there_goes_again(settings: Path) -> None:
    hooks.install(settings, URL)
    assert settings.exists()
    hooks.uninstall(settings)
    assert not settings.exists()


def test_install_keeps_what_else_is_in_the_file_and_a_backup(settings: Path) -> None:
    write(settings, FOREIGN)
    hooks.install(settings, URL)

    text = settings.read_text()
    document, before = json.loads(text), json.loads(FOREIGN)
    assert document["hooks"]["PostToolUse"][0] == before["hooks"]["PostToolUse"][0]
    assert list(document) == list(before)
    assert document["permissions"] == before["permissions"]
    assert '\n    "model"' in text
    assert settings.with_name("settings.json.before-cowpath").read_text() == FOREIGN


def test_installing_twice_changes_nothing_and_another_address_replaces_ours(settings: Path) -> None:
    hooks.install(settings, URL)
    once = settings.read_bytes()
    assert not hooks.install(settings, URL)["changed"]
    assert settings.read_bytes() == once

    hooks.install(settings, "http://127.0.0.1:9999")
    assert b":8710" not in settings.read_bytes()
    assert settings.read_bytes().count(b":9999") == once.count(b":8710")
    hooks.uninstall(settings)
    assert not settings.exists()


def test_what_was_added_after_the_install_stays(settings: Path) -> None:
    write(settings, FOREIGN)
    hooks.install(settings, URL)
    document = json.loads(settings.read_text())
    document["theme"] = "dark"
    document["hooks"]["PostToolUse"][1]["hooks"].append({"type": "command", "command": "mine"})
    write(settings, json.dumps(document))
    hooks.uninstall(settings)

    left = json.loads(settings.read_text())
    assert left["theme"] == "dark"
    assert left["hooks"] == {
        "PostToolUse": [
            json.loads(FOREIGN)["hooks"]["PostToolUse"][0],
            {"matcher": "Skill", "hooks": [{"type": "command", "command": "mine"}]},
        ]
    }
    assert not hooks.uninstall(settings)["changed"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "// a comment\n{}",
        "[]",
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        '{"hooks": {"Stop": [{}]}}',
        '{"a":1,"a":2}',
    ],
)
@pytest.mark.parametrize("change", [lambda path: hooks.install(path, URL), hooks.uninstall])
def test_a_file_we_could_not_give_back_is_not_touched(settings: Path, text: str, change: Callable[[Path], Any]) -> None:
    write(settings, text)
    with pytest.raises(BadFile, match="nothing was changed"):
        change(settings)

    assert settings.read_text() == text
    assert [file.name for file in settings.parent.iterdir()] == ["settings.json"]


def test_a_file_that_changes_meanwhile_is_left_alone(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(settings, "{}")
    texts = iter(["{}", '{"theme": "dark"}'])
    monkeypatch.setattr(hooks, "_read", lambda path: next(texts))
    with pytest.raises(HomeBusy, match="changed meanwhile"):
        hooks.install(settings, URL)

    assert settings.read_text() == "{}"


def test_a_linked_settings_file_stays_a_link(settings: Path, tmp_path: Path) -> None:
    real = write(tmp_path / "dotfiles" / "settings.json", "{}")
    settings.parent.mkdir()
    settings.symlink_to(real)
    hooks.install(hooks.settings_file("user", settings), URL)

    assert settings.is_symlink()
    assert "PostToolUse" in real.read_text()


def test_a_dry_run_shows_the_difference_and_writes_nothing(settings: Path) -> None:
    write(settings, FOREIGN)
    ran = CliRunner().invoke(
        main, ["hooks", "install", "--settings", str(settings), "--url", "http://h:1", "--dry-run", "--json"]
    )
    document = json.loads(ran.stdout)

    assert document["changed"]
    assert '"url": "http://h:1/v1/hooks/claude-code"' in document["diff"]
    assert settings.read_text() == FOREIGN
    assert len(list(settings.parent.iterdir())) == 1


def test_the_project_scope_is_the_folder_one_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(
        main, ["hooks", "install", "--scope", "project", "--home", str(tmp_path / "home"), "--json"]
    )

    assert ran.exit_code == 0, ran.output
    shown = CliRunner().invoke(
        main, ["hooks", "status", "--scope", "project", "--home", str(tmp_path / "home"), "--json"]
    )
    assert json.loads(shown.stdout)["installed"]
    assert (tmp_path / ".claude" / "settings.json").exists()


def test_a_key_is_named_but_never_written(settings: Path) -> None:
    ran = CliRunner().invoke(main, ["hooks", "install", "--settings", str(settings)], env={"COWPATH_KEY": "k-secret"})

    assert ran.exit_code == 0, ran.output
    assert "k-secret" not in settings.read_text()
    assert "Bearer $COWPATH_KEY" in settings.read_text()


def plugin_hooks() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())
    return document


def test_the_plugin_reports_the_events_that_install_does() -> None:
    """Two ways to the same hooks: only the command differs."""
    ours = hooks.groups(URL)
    packed = plugin_hooks()["hooks"]

    assert set(packed) == set(ours)
    for event, [group] in packed.items():
        assert group.get("matcher") == ours[event].get("matcher")
        kinds = [(h["type"], h.get("url"), h["timeout"], h.get("async")) for h in group["hooks"]]
        assert kinds == [(h["type"], h.get("url"), h["timeout"], h.get("async")) for h in ours[event]["hooks"]]


def test_the_plugin_keeps_the_rules_of_its_format() -> None:
    """Names and owner given, commands in exec form inside the plugin, http hooks only where they may stand."""
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    market = json.loads((PLUGIN / ".claude-plugin" / "marketplace.json").read_text())
    assert manifest["name"] == "cowpath"
    assert market["name"]
    assert market["owner"]["name"]
    assert [(p["name"], (PLUGIN / p["source"]).is_dir()) for p in market["plugins"]] == [("cowpath", True)]
    assert set(plugin_hooks()) == {"description", "hooks"}
    for event, groups in plugin_hooks()["hooks"].items():
        for entry in (entry for group in groups for entry in group["hooks"]):
            assert entry["type"] in ({"command"} if event == "SessionStart" else {"command", "http"})
            assert entry["timeout"] == 2
            for argument in entry.get("args", ()):
                assert (PLUGIN / argument.replace("${CLAUDE_PLUGIN_ROOT}/", "")).is_file()
            assert "user_config" not in json.dumps(entry)


@pytest.mark.data
def test_every_event_the_plugin_reports_is_kept_by_the_hook_and_read_by_the_collector(samples: Path) -> None:
    """What the hook leaves out changes nothing but the words: the same call, with the same id, comes out."""
    read: set[str] = set()
    for file in samples.glob("claude_code/hook_*.json"):
        payload = json.loads(file.read_text())
        kept = hook.facts(payload)
        whole, short = (claude_code.read(given, Known(now=NOON)) for given in (payload, kept))
        if payload["hook_event_name"] != "PreToolUse" and payload.get("tool_name", "Skill") == "Skill":
            assert [identity(item) for item in whole] == [identity(item) for item in short], file.name
        read |= {payload["hook_event_name"]} if short else set()

    assert read == set(hooks.EVENTS)


def identity(item: Event | Rejected) -> tuple[object, ...]:
    return (item.event_id, item.skill, item.outcome, item.stream_id) if isinstance(item, Event) else (item.code,)


def test_what_hooks_spooled_reaches_the_collector_once_with_the_time_of_the_call(
    tmp_path: Path, start_server: Callable[..., Any], home: Home
) -> None:
    for _ in range(2):
        run(tmp_path, json.dumps(SKILL).encode(), "claude-code")
    times = [kept["timestamp"] for kept in spooled(tmp_path)]
    server = start_server()
    with Client(server.url, tmp_path / "spool") as client:
        assert client.flush(20)
    server.stop()

    with Store.open(home.live, read_only=True) as store:
        rows = store.rows("select skill, outcome, source, called_at from events")
    assert [row[:3] for row in rows] == [("plan", "ok", "claude-hook")]
    assert f"{rows[0][3].isoformat()}+00:00" in times


def test_the_plugins_command_spools_and_is_silent_without_cowpath(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "COWPATH_HOME": str(tmp_path), "COWPATH_URL": NOWHERE}
    for more, kept in (
        ({"COWPATH_PYTHON": sys.executable, "PYTHONPATH": str(REPOSITORY)}, 1),
        ({"PATH": "/nowhere"}, 0),
    ):
        for file in (tmp_path / "spool").glob("*"):
            file.unlink()
        ran = subprocess.run(
            ["/bin/sh", str(PLUGIN / "hooks" / "spool.sh")],
            input=json.dumps(SKILL).encode(),
            capture_output=True,
            env=environment | more,
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
        assert len(spooled(tmp_path)) == kept
