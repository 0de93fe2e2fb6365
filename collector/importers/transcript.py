"""One Claude Code transcript -> the calls in it, in file order. Only names, ids, times and outcomes leave here.

A transcript has a row for every content block, so a message repeats over rows: calls are told apart by
the id of their ``tool_use`` block. ``parentUuid`` may name rows that were never written and is a hint at most.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from cowpath.event import Outcome

Sort = Literal["skill", "tool", "mcp", "agent"]

TYPED = re.compile(r"\s*<command-message>.*?</command-message>\s*<command-name>/?([^<]+)</command-name>", re.DOTALL)
"""A skill that was typed. Built-in commands have the name first and are no skills."""

DENIED = re.compile(r"user (rejected|doesn't want to)|permission to use \S+ (has been |was )?denied", re.IGNORECASE)
INTERRUPTED = re.compile(r"interrupted by user", re.IGNORECASE)


@dataclass
class Call:
    """One call as a transcript tells it. ``position`` counts every call of the file, of whatever sort."""

    call_id: str
    name: str
    sort: Sort
    session_id: str
    stream_id: str
    position: int
    called_at: datetime | None
    typed: bool = False
    copied: bool = False
    caller: str = ""
    message: str = ""
    version: str | None = None
    outcome: Outcome = "unknown"
    duration_ms: float | None = None


@dataclass
class Transcript:
    """What one file holds. ``rows`` is 0 where the file is no transcript."""

    path: Path
    rows: int = 0
    bad_lines: int = 0
    built_in: int = 0
    first_at: datetime | None = None
    calls: dict[str, Call] = field(default_factory=dict)


def read_transcript(path: Path) -> Transcript:
    """Read a file whole. A last line that was not finished is left for the next time, without a word."""
    reader = _Reader(Transcript(path))
    for row in rows(path, reader.transcript):
        reader.take(row)
    return reader.transcript


def rows(path: Path, counted: Transcript | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a session in a file. Unreadable lines are counted, but not the last one: it is being written."""
    unreadable = 0
    with path.open("rb") as file:
        for line in file:
            if not line.strip():
                continue
            if counted is not None:
                counted.bad_lines = unreadable
            row = _object(line)
            if row is None:
                unreadable += 1
            elif isinstance(row.get("sessionId"), str) and isinstance(row.get("type"), str):
                yield row


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        row = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Texts cut in the middle of an emoji leave half a surrogate, which only json lets pass.
        try:
            row = json.loads(line.decode("utf-8", errors="replace"))
        except (ValueError, RecursionError):
            return None
    return row if isinstance(row, dict) else None


class _Reader:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.sidechains: dict[str, str] = {}
        self.last_sidechain = ""

    def take(self, row: dict[str, Any]) -> None:
        transcript = self.transcript
        transcript.rows += 1
        at = moment(row.get("timestamp"))
        if at is not None and (transcript.first_at is None or at < transcript.first_at):
            transcript.first_at = at
        stream_id = self._stream(row)
        if row["type"] == "assistant":
            for block in blocks(row, "tool_use"):
                self._used(row, block, stream_id, at)
        elif row["type"] == "user" and not row.get("isCompactSummary"):
            for block in blocks(row, "tool_result"):
                self._returned(row, block)
            if not row.get("isMeta"):
                self._typed(row, stream_id, at)

    def _stream(self, row: dict[str, Any]) -> str:
        """'' for the main conversation; a subagent's id, or the first row of a sidechain without one."""
        if not row.get("isSidechain"):
            return ""
        if isinstance(row.get("agentId"), str):
            return str(row["agentId"])
        if self.transcript.path.stem.startswith("agent-"):
            return self.transcript.path.stem.removeprefix("agent-")
        uuid, parent = str(row.get("uuid")), row.get("parentUuid")
        known = self.sidechains.get(str(parent), self.last_sidechain if parent else "")
        self.last_sidechain = self.sidechains[uuid] = known or uuid
        return self.last_sidechain

    def _used(self, row: dict[str, Any], block: dict[str, Any], stream_id: str, at: datetime | None) -> None:
        call_id, named = block.get("id"), capability(block)
        if not isinstance(call_id, str) or named is None:
            return
        known = self.transcript.calls.get(call_id)
        if known is not None:
            # A row written again may complete a partial one; its place stays.
            known.name = known.name or named[1]
            return
        self._add(row, Call(
            call_id=call_id,
            name=named[1],
            sort=named[0],
            session_id=row["sessionId"],
            stream_id=stream_id,
            position=len(self.transcript.calls),
            called_at=at,
            message=_message_of(row),
        ))  # fmt: skip

    def _add(self, row: dict[str, Any], call: Call) -> None:
        caller, version = row.get("attributionSkill"), row.get("version")
        call.caller = caller if isinstance(caller, str) and caller != call.name else ""
        call.version = version if isinstance(version, str) else None
        call.copied = "forkedFrom" in row
        self.transcript.calls[call.call_id] = call

    def _returned(self, row: dict[str, Any], block: dict[str, Any]) -> None:
        call = self.transcript.calls.get(str(block.get("tool_use_id")))
        if call is not None:
            call.outcome = outcome_of(block, row.get("toolUseResult"))
            call.duration_ms = _duration(row.get("toolUseResult"))

    def _typed(self, row: dict[str, Any], stream_id: str, at: datetime | None) -> None:
        text = _text(row)
        if text.lstrip().startswith("<command-name>"):
            self.transcript.built_in += 1
        match = TYPED.match(text)
        name = match.group(1).strip() if match else ""
        # What an MCP server offers as a prompt is typed the same way and is no skill.
        if not name or name.startswith("mcp__") or name.endswith("(MCP)"):
            return
        prompt = row.get("promptId") or row.get("prompt_id") or row.get("uuid")
        call_id = f"typed:{prompt}:{name}"
        if call_id in self.transcript.calls:
            return
        call = Call(
            call_id=call_id,
            name=name,
            sort="skill",
            session_id=row["sessionId"],
            stream_id=stream_id,
            position=len(self.transcript.calls),
            called_at=at,
            typed=True,
        )
        self._add(row, call)


def blocks(row: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """The content blocks of one kind in a row's message."""
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == kind:
            yield block


def capability(block: dict[str, Any]) -> tuple[Sort, str] | None:
    """(sort, name) of what a ``tool_use`` block calls; the name of a skill may be '' in a partial block."""
    name = block.get("name")
    given = block.get("input")
    values = given if isinstance(given, dict) else {}
    if not isinstance(name, str) or not name:
        return None
    if name in {"Skill", "SlashCommand"}:
        called = values.get("skill") or values.get("command")
        words = called.split() if isinstance(called, str) else []
        return "skill", words[0].lstrip("/") if words else ""
    if name in {"Task", "Agent"}:
        kind = values.get("subagent_type")
        return "agent", f"agent:{kind if isinstance(kind, str) and kind else 'general-purpose'}"
    if name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        return "mcp", f"mcp:{server}/{tool}" if tool else f"mcp:{server}"
    return "tool", f"tool:{name}"


def outcome_of(block: dict[str, Any], result: Any) -> Outcome:
    """How a call ended, from its ``tool_result``; the text is looked at and not kept."""
    failed = block.get("is_error") is True or (isinstance(result, dict) and result.get("success") is False)
    if not failed:
        return "ok"
    text = f"{block.get('content')} {result if isinstance(result, str) else ''}"
    if DENIED.search(text):
        return "denied"
    return "abandoned" if INTERRUPTED.search(text) else "error"


def _duration(result: Any) -> float | None:
    values = result if isinstance(result, dict) else {}
    given = values.get("durationMs", values.get("totalDurationMs"))
    return float(given) if isinstance(given, int | float) and not isinstance(given, bool) and given >= 0 else None


def _message_of(row: dict[str, Any]) -> str:
    """What the blocks of one answer share. Gateways reuse message ids, so the request's id is part of it."""
    message = row.get("message")
    message_id = message.get("id") if isinstance(message, dict) else None
    return "/".join(part for part in (message_id, row.get("requestId")) if isinstance(part, str))


def _text(row: dict[str, Any]) -> str:
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content
    return next((str(block.get("text", "")) for block in blocks(row, "text")), "")


def moment(value: Any) -> datetime | None:
    """A row's time in UTC, or None where it has none that can be read."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if time is None:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
