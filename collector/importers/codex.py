"""Codex rollouts -> events: skills that a person named, and skills whose file the agent read.

Codex has no skill tool. A skill named with ``$name`` is put into the conversation as a ``<skill>`` block: that is
certain. Any other use is a shell command that reads a SKILL.md: that is inferred, and its ``confidence`` says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from collector.identity import tool_call
from collector.importers.files import Progress, import_files
from collector.importers.reads import CONFIDENCE, skills_read
from collector.importers.shipment import Sink
from collector.importers.transcript import moment
from cowpath.event import Event, Outcome, Rejected, derived_id
from cowpath.home import Home

SOURCE = "codex-rollout"
AGENT = "codex"
DEFAULT_FOLDER = "~/.codex/sessions"
PATTERNS = ("rollout-*.jsonl",)

BLOCK = re.compile(r"\s*<skill>\s*<name>([^<]+)</name>")
EXIT_CODE = re.compile(r"(?:exited with code|[Ee]xit code:?)\s+(-?\d+)")
SHELLS = frozenset({"exec_command", "shell", "shell_command", "local_shell", "container.exec", "Bash"})


def import_codex(paths: Sequence[Path], sink: Sink, home: Home, *, progress: Progress = iter) -> dict[str, Any]:
    """Send the skill calls of every rollout that changed since the last import; returns the counts."""
    return import_files(paths, PATTERNS, read_file, sink, home, variant="codex", progress=progress)


def read_file(path: Path) -> Sequence[Event | Rejected]:
    """The calls of one rollout, or one rejection where a file is none."""
    reader = _read(path)
    if reader.whole_lines and not reader.session_id:
        return [Rejected(code="bad_rollout", message="the file names no session of Codex", source=SOURCE)]
    return reader.events()


def read_rollout(path: Path) -> list[Event]:
    """The calls of one rollout, in file order. Lines that are no JSON are passed over, as a half-written last one."""
    return _read(path).events()


def _read(path: Path) -> _Reader:
    reader = _Reader()
    with path.open("rb") as file:
        for line in file:
            reader.whole_lines += line.endswith(b"\n")
            row = _object(line)
            payload = row.get("payload")
            if isinstance(payload, dict):
                reader.take(row, payload)
    return reader


@dataclass
class _Call:
    """One use of a skill. ``call_id`` is empty where a person named it."""

    event_id: str
    skill: str
    at: Any
    call_id: str = ""
    batch: str = ""
    outcome: Outcome = "unknown"


@dataclass
class _Reader:
    session_id: str = ""
    version: str | None = None
    batch: str = ""
    whole_lines: int = 0
    calls: list[_Call] = field(default_factory=list)
    named: Counter[tuple[str, str]] = field(default_factory=Counter)

    def take(self, row: dict[str, Any], payload: dict[str, Any]) -> None:
        kind, at = payload.get("type"), row.get("timestamp")
        if row.get("type") == "session_meta" and not self.session_id:
            self.session_id = _text(payload.get("id"))
            self.version = _text(payload.get("cli_version")) or None
        elif row.get("type") != "response_item" or not self.session_id:
            return
        elif kind == "message":
            self.batch = ""
            if payload.get("role") == "user":
                self._named(payload, at)
        elif kind in {"function_call", "local_shell_call", "custom_tool_call"}:
            self._called(payload, at)
        elif kind in {"function_call_output", "custom_tool_call_output"}:
            self.batch = ""
            self._returned(payload)

    def _named(self, payload: dict[str, Any], at: Any) -> None:
        content = payload.get("content")
        for part in content if isinstance(content, list) else ():
            match = BLOCK.match(_text(part.get("text"))) if isinstance(part, dict) else None
            if match:
                name, time = match.group(1).strip(), _text(at)
                self.named[name, time] += 1
                event_id = derived_id("codex-named", self.session_id, time, name, self.named[name, time])
                self.calls.append(_Call(event_id, name, at, outcome="ok"))

    def _called(self, payload: dict[str, Any], at: Any) -> None:
        """Calls without a result between them were made together: their order means nothing."""
        call_id = _text(payload.get("call_id")) or _text(payload.get("id"))
        self.batch = self.batch or call_id
        for name in skills_read(command_of(payload)) if call_id else ():
            event_id = tool_call(AGENT, self.session_id, call_id, name)
            self.calls.append(_Call(event_id, name, at, call_id, self.batch))

    def _returned(self, payload: dict[str, Any]) -> None:
        outcome = outcome_of(payload.get("output"))
        for call in self.calls:
            if call.call_id and call.call_id == payload.get("call_id"):
                call.outcome = outcome

    def events(self) -> list[Event]:
        sizes = Counter(call.batch for call in self.calls if call.batch)
        return [
            Event(
                event_id=call.event_id,
                session_id=self.session_id,
                seq=place,
                skill=call.skill,
                called_at=moment(call.at),
                trigger="agent" if call.call_id else "user",
                outcome=call.outcome,
                batch_id=call.batch if sizes[call.batch] > 1 else None,
                agent=AGENT,
                agent_version=self.version,
                source=SOURCE,
                confidence=CONFIDENCE if call.call_id else 1.0,
            )
            for place, call in enumerate(self.calls)
        ]


def command_of(payload: dict[str, Any]) -> str:
    """The shell command of a call, '' where it is another tool."""
    if payload.get("type") == "local_shell_call":
        given: Any = payload.get("action")
    elif payload.get("name") in SHELLS:
        given = _object(_text(payload.get("arguments") or payload.get("input")).encode())
    else:
        return ""
    values = given if isinstance(given, dict) else {}
    command = values.get("cmd") or values.get("command")
    if isinstance(command, list):
        words = [word for word in command if isinstance(word, str)]
        # ["bash", "-lc", "cat x"] holds the command as one word, ["cat", "x"] as many.
        return words[-1] if len(words) == 3 and words[1].startswith("-") and words[1].endswith("c") else " ".join(words)
    return _text(command)


def outcome_of(output: Any) -> Outcome:
    """How a command ended, by its exit code; the text is looked at and not kept."""
    document = _object(output.encode("utf-8", "replace")) if isinstance(output, str) else output
    values = document if isinstance(document, dict) else {}
    metadata = values.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else values.get("exit_code")
    if not isinstance(code, int):
        match = EXIT_CODE.search(output[:500]) if isinstance(output, str) else None
        code = int(match.group(1)) if match else None
    if code is None and isinstance(values.get("success"), bool):
        code = 0 if values["success"] else 1
    return "unknown" if code is None else "ok" if code == 0 else "error"


def _object(line: bytes) -> dict[str, Any]:
    try:
        row = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
