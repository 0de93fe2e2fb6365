"""Gemini CLI -> events: its telemetry written to a file, and its recorded chats. One skill tool: ``activate_skill``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from collector.importers.files import Progress, import_files
from collector.importers.shipment import Sink
from collector.importers.transcript import moment
from cowpath.event import Event, Outcome, derived_id
from cowpath.home import Home

AGENT = "gemini-cli"
DEFAULT_FOLDER = "~/.gemini/tmp"
PATTERNS = ("session-*.json", "session-*.jsonl", "telemetry*.log", "telemetry*.json")

SKILL_TOOL = "activate_skill"
TOOL_CALL = "gemini_cli.tool_call"

CHAT_OUTCOMES: dict[str, Outcome] = {"success": "ok", "error": "error", "cancelled": "denied"}


def import_gemini(paths: Sequence[Path], sink: Sink, home: Home, *, progress: Progress = iter) -> dict[str, Any]:
    """Send the skill calls of every file that changed since the last import; returns the counts."""
    return import_files(paths, PATTERNS, read_file, sink, home, variant="gemini", progress=progress)


def read_file(path: Path) -> list[Event]:
    """The calls of one file, whichever of the two kinds it is."""
    events: list[Event] = []
    for document in documents(path.read_text(encoding="utf-8", errors="replace")):
        if isinstance(document.get("messages"), list):
            events += chat_events(document)
        else:
            event = telemetry_event(document)
            events += [event] if event else []
    return events


def documents(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a text, one after the other, with anything between them; an unfinished last one is left."""
    decoder, place = json.JSONDecoder(), text.find("{")
    while place >= 0:
        try:
            found, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = text.find("\n", place)
            found = None
        if isinstance(found, dict):
            yield found
        place = text.find("{", end) if end >= 0 else -1


def telemetry_event(record: dict[str, Any]) -> Event | None:
    """The skill call of a log record, or of its attributes alone; None for every other record."""
    held = record.get("attributes")
    attributes = held if isinstance(held, dict) else record
    if attributes.get("event.name") != TOOL_CALL or attributes.get("function_name") != SKILL_TOOL:
        return None
    skill, session_id = skill_of(attributes.get("function_args")), attributes.get("session.id")
    if not skill or not isinstance(session_id, str):
        return None
    prompt_id, time = attributes.get("prompt_id"), attributes.get("event.timestamp")
    return Event(
        event_id=derived_id("gemini", session_id, prompt_id or time or "", skill),
        session_id=session_id,
        skill=skill,
        called_at=moment(time) or _moment_of_parts(record.get("hrTime")),
        trigger="agent",
        outcome=outcome_of(attributes),
        duration_ms=_number(attributes.get("duration_ms")),
        agent=AGENT,
        source="gemini-telemetry",
    )


def chat_events(chat: dict[str, Any]) -> Iterator[Event]:
    """The skill calls of a recorded chat, in its order. Calls of one message were made together."""
    session_id = chat.get("sessionId")
    seq = 0
    for message in chat["messages"] if isinstance(session_id, str) else ():
        calls = message.get("toolCalls") if isinstance(message, dict) else None
        skills = [c for c in calls or () if isinstance(c, dict) and c.get("name") == SKILL_TOOL and c.get("id")]
        for call in skills:
            skill = skill_of(call.get("args"))
            if skill:
                yield Event(
                    event_id=derived_id("gemini-chat", session_id, call["id"]),
                    session_id=str(session_id),
                    seq=seq,
                    skill=skill,
                    called_at=moment(call.get("timestamp")) or moment(message.get("timestamp")),
                    trigger="agent",
                    outcome=CHAT_OUTCOMES.get(str(call.get("status")), "unknown"),
                    batch_id=str(message.get("id") or skills[0]["id"]) if len(skills) > 1 else None,
                    agent=AGENT,
                    source="gemini-chat",
                )
                seq += 1


def skill_of(arguments: Any) -> str:
    """The skill's name in a call's arguments, an object or its JSON text."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return ""
    name = arguments.get("name") if isinstance(arguments, dict) else None
    return name if isinstance(name, str) else ""


def outcome_of(attributes: dict[str, Any]) -> Outcome:
    """How a call ended; booleans come as text too."""
    if attributes.get("decision") == "reject":
        return "denied"
    return {"true": "ok", "false": "error"}.get(str(attributes.get("success")).lower(), "unknown")  # type: ignore[return-value]  # the values are outcomes


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if number >= 0 else None


def _moment_of_parts(parts: Any) -> datetime | None:
    """OpenTelemetry's JavaScript clock: [seconds, nanoseconds]."""
    if isinstance(parts, list) and len(parts) == 2 and all(isinstance(part, int) for part in parts):
        return datetime.fromtimestamp(parts[0] + parts[1] / 1e9, UTC)
    return None
