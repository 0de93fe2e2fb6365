"""OpenCode's plugin hooks: its skill tool after it ran, and typed commands before they do."""

from __future__ import annotations

from typing import Any

from collector.hooks.claude_code import unknown_command
from collector.hooks.payload import Item, Known, Payload, called_at, command_name, facts, inner, text
from collector.identity import tool_call, typed_about
from cowpath.event import Event

AGENT = "opencode"
SOURCE = "opencode-hook"


def read(payload: Payload, known: Known) -> list[Item]:
    """The event one payload tells of."""
    hook, given = text(payload, "hook"), inner(payload, "input")
    if hook == "tool.execute.after" and text(given, "tool") == "skill":
        return [_called(given, _common(payload, given, known))]
    if hook == "command.execute.before":
        return [_typed(given, _common(payload, given, known), known)]
    return []


def _called(given: Payload, common: dict[str, Any]) -> Event:
    call_id, skill = text(given, "callID"), text(inner(given, "args"), "name")
    event_id = tool_call(AGENT, common["session_id"], call_id, skill) if call_id else ""
    return Event(event_id=event_id, skill=skill, trigger="agent", outcome="ok", **common)


def _typed(given: Payload, common: dict[str, Any], known: Known) -> Item:
    """Commands are not all skills, and nothing says which are; with a catalogue, only those it has count."""
    name, session_id = command_name(text(given, "command")), common["session_id"]
    message = text(given, "messageID")
    at = common["called_at"] or known.now
    event_id = (
        tool_call(f"{AGENT}-slash", session_id, message, name) if message else typed_about(AGENT, session_id, name, at)
    )
    if name and known.has_catalogue and not known.is_skill(name):
        return unknown_command(event_id, source=SOURCE)
    return Event(event_id=event_id, skill=name, trigger="user", **common)


def _common(payload: Payload, given: Payload, known: Known) -> dict[str, Any]:
    return {
        "session_id": text(given, "sessionID"),
        "called_at": called_at(payload),
        "actor": known.actor,
        "agent": AGENT,
        "source": SOURCE,
        "extra": facts(payload),
    }
