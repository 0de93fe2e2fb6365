"""Claude Code's hooks: calls of the Skill tool, and skills a person typed. All other events give nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collector.hooks.payload import (
    Item,
    Known,
    Payload,
    called_at,
    command_name,
    duration_ms,
    facts,
    inner,
    text,
)
from collector.identity import claude_call, claude_typed, typed_about
from collector.importers.reads import skill_of
from cowpath.event import Event, Kind, Outcome, Rejected

AGENT = "claude-code"
SOURCE = "claude-hook"

SKILL_TOOLS = frozenset({"Skill", "SlashCommand"})
TOOL_EVENTS = frozenset({"PostToolUse", "PostToolUseFailure", "PermissionDenied"})

BUILT_IN = frozenset({"builtin", "built-in"})
"""Sources of commands that belong to the harness itself, as /clear."""


def read(payload: Payload, known: Known) -> list[Item]:
    """The events one payload tells of."""
    event = text(payload, "hook_event_name")
    if event == "PostToolBatch":
        return _batch(payload, known)
    if event == "UserPromptExpansion":
        return _typed(payload, known)
    if event in TOOL_EVENTS:
        return _tool(payload, payload, known, outcome=_outcome(event, payload))
    return []


def _tool(
    payload: Payload, call: Payload, known: Known, *, outcome: Outcome, batch_id: str | None = None
) -> list[Item]:
    """One tool call: of a skill, or the reading of a skill's file, which is no use of it."""
    tool, given = text(call, "tool_name"), inner(call, "tool_input")
    call_id = text(call, "tool_use_id")
    kind: Kind = "activated"
    if tool in SKILL_TOOLS:
        name = command_name(text(given, "skill", "command") or text(inner(call, "tool_response"), "commandName"))
    elif tool == "Read" and outcome == "ok":
        kind, name = "resource_read", skill_of(text(given, "file_path", "path")) or ""
    else:
        return []
    if not name and kind == "resource_read":
        return []
    return [
        Event(
            event_id=claude_call(call_id) if call_id else "",
            skill=name,
            kind=kind,
            trigger="agent" if kind == "activated" else "unknown",
            outcome=outcome,
            duration_ms=duration_ms(call, "duration_ms"),
            batch_id=batch_id,
            **_common(payload, known),
        )
    ]


def _batch(payload: Payload, known: Known) -> list[Item]:
    """The calls of one answer in their order; where several skills were called, they were called in parallel."""
    given = payload.get("tool_calls")
    calls = [call for call in given if isinstance(call, Mapping)] if isinstance(given, list) else []
    skills = [call for call in calls if text(call, "tool_name") in SKILL_TOOLS]
    batch_id = text(skills[0], "tool_use_id") or None if len(skills) > 1 else None
    # Results are written as text here, and failures too; so how a call ended is left to the hook of the call itself.
    return [item for call in skills for item in _tool(payload, call, known, outcome="unknown", batch_id=batch_id)]


def _typed(payload: Payload, known: Known) -> list[Item]:
    """A typed command, if it is a skill: the catalogue knows it, or the harness says whose it is.

    A prompt of an MCP server is typed alike and is none. What nobody knows is a dead letter, not a call.
    """
    if text(payload, "expansion_type") not in ("", "slash_command"):
        return []
    common = _common(payload, known)
    name = command_name(text(payload, "command_name"))
    session_id, prompt_id = text(payload, "session_id"), text(payload, "prompt_id")
    at = common["called_at"] or known.now
    event_id = claude_typed(session_id, prompt_id, name) if prompt_id else typed_about("claude", session_id, name, at)
    if name and not _is_skill(name, text(payload, "command_source"), known):
        return [unknown_command(event_id, source=SOURCE)]
    return [Event(event_id=event_id, skill=name, trigger="user", **common)]


def _is_skill(name: str, source: str, known: Known) -> bool:
    if known.is_skill(name):
        return True
    if source:
        return source not in BUILT_IN
    return not known.has_catalogue


def unknown_command(event_id: str, *, source: str) -> Rejected:
    """A typed command that is no skill we know; its name is what a person wrote and is not kept."""
    return Rejected(
        code="unknown_command",
        field="command_name",
        message="a typed command that is neither in the catalogue nor of a known source; 'cowpath catalogue sync'",
        event_id=event_id,
        source=source,
    )


def _outcome(event: str, payload: Payload) -> Outcome:
    if event == "PermissionDenied":
        return "denied"
    if event == "PostToolUseFailure":
        return "abandoned" if payload.get("is_interrupt") is True else "error"
    return "error" if inner(payload, "tool_response").get("success") is False else "ok"


def _common(payload: Payload, known: Known) -> dict[str, Any]:
    """What every event of a payload shares. A subagent is a stream of its own."""
    return {
        "session_id": text(payload, "session_id"),
        "stream_id": text(payload, "agent_id").removeprefix("agent-"),
        "called_at": called_at(payload),
        "actor": known.actor,
        "agent": AGENT,
        "source": SOURCE,
        "extra": facts(payload, "prompt_id", "agent_type", "command_source"),
    }
