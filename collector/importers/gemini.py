"""Gemini CLI -> events: its telemetry written to a file, and its recorded chats. One skill tool: ``activate_skill``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from collector.hooks.gemini import AGENT, LOG, TOOL, read_log
from collector.hooks.payload import Known
from collector.identity import tool_call
from collector.importers.files import Progress, import_files
from collector.importers.shipment import Sink
from collector.importers.transcript import moment
from cowpath.event import Event, Outcome, Rejected, utc_now
from cowpath.home import Home

DEFAULT_FOLDER = "~/.gemini/tmp"
PATTERNS = ("session-*.json", "session-*.jsonl", "telemetry*.log", "telemetry*.json")

CHAT_OUTCOMES: dict[str, Outcome] = {"success": "ok", "error": "error", "cancelled": "denied"}


def import_gemini(paths: Sequence[Path], sink: Sink, home: Home, *, progress: Progress = iter) -> dict[str, Any]:
    """Send the skill calls of every file that changed since the last import; returns the counts."""
    return import_files(paths, PATTERNS, read_file, sink, home, variant="gemini", progress=progress)


def read_file(path: Path) -> list[Event | Rejected]:
    """The calls of one file, whichever of the two kinds it is."""
    events: list[Event | Rejected] = []
    text = path.read_text(encoding="utf-8", errors="replace")
    if text.strip() and "{" not in text:
        return [Rejected(code="bad_history", message="the file has no JSON object", source="gemini-chat")]
    for document in documents(text):
        if isinstance(document.get("messages"), list):
            events += chat_events(document)
        else:
            events += telemetry_events(document)
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


def telemetry_events(record: dict[str, Any]) -> list[Event | Rejected]:
    """The skill call of a log record, or of its attributes alone; nothing for every other record."""
    held = record.get("attributes")
    attributes = held if isinstance(held, dict) else record
    if attributes.get("event.name") != LOG:
        return []
    time = {"timestamp": attributes.get("event.timestamp") or _time_of_parts(record.get("hrTime"))}
    return read_log(time | attributes, Known(now=utc_now()))


def chat_events(chat: dict[str, Any]) -> Iterator[Event]:
    """The skill calls of a recorded chat, in its order. Calls of one message were made together."""
    session_id = chat.get("sessionId")
    seq = 0
    for message in chat["messages"] if isinstance(session_id, str) else ():
        calls = message.get("toolCalls") if isinstance(message, dict) else None
        skills = [c for c in calls or () if isinstance(c, dict) and c.get("name") == TOOL and c.get("id")]
        for call in skills:
            skill = skill_of(call.get("args"))
            if skill:
                yield Event(
                    event_id=tool_call("gemini-chat", str(session_id), str(call["id"]), skill),
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


def _time_of_parts(parts: Any) -> float | None:
    """OpenTelemetry's JavaScript clock: [seconds, nanoseconds]."""
    if isinstance(parts, list) and len(parts) == 2 and all(isinstance(part, int) for part in parts):
        return float(parts[0] + parts[1] / 1e9)
    return None
