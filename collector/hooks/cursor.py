"""Cursor's hooks: a Read of a SKILL.md is how a skill shows. The user's mail address in them stays out."""

from __future__ import annotations

from collector.hooks.payload import (
    Item,
    Known,
    Payload,
    called_at,
    duration_ms,
    facts,
    inner,
    text,
)
from collector.identity import tool_call
from collector.importers.reads import CONFIDENCE, skill_of
from cowpath.event import Event, Outcome

AGENT = "cursor"
SOURCE = "cursor-hook"

READERS = frozenset({"Read", "read_file"})


def read(payload: Payload, known: Known) -> list[Item]:
    """The events one payload tells of: inferred ones, with a confidence below one."""
    event = text(payload, "hook_event_name")
    if event not in ("postToolUse", "postToolUseFailure") or text(payload, "tool_name") not in READERS:
        return []
    skill = skill_of(text(inner(payload, "tool_input"), "path", "file_path", "target_file"))
    if skill is None:
        return []
    session_id, call_id = text(payload, "conversation_id", "session_id"), text(payload, "tool_use_id")
    return [
        Event(
            event_id=tool_call(AGENT, session_id, call_id, skill) if call_id else "",
            session_id=session_id,
            skill=skill,
            called_at=called_at(payload),
            trigger="agent",
            outcome=_outcome(event, payload),
            duration_ms=duration_ms(payload, "duration", "duration_ms"),
            actor=known.actor,
            agent=AGENT,
            agent_version=text(payload, "cursor_version") or None,
            source=SOURCE,
            confidence=CONFIDENCE,
            extra=facts(payload, "generation_id"),
        )
    ]


def _outcome(event: str, payload: Payload) -> Outcome:
    if event == "postToolUse":
        return "ok"
    return "denied" if text(payload, "failure_type") == "permission_denied" else "error"
