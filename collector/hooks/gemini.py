"""Gemini CLI: its AfterTool hook and its ``gemini_cli.tool_call`` log record; both name activate_skill's skill."""

from __future__ import annotations

from collector.hooks.payload import Item, Known, Payload, called_at, duration_ms, facts, inner, text
from collector.identity import tool_call
from cowpath.event import Event, Outcome

AGENT = "gemini-cli"
TOOL = "activate_skill"
LOG = "gemini_cli.tool_call"


def read(payload: Payload, known: Known) -> list[Item]:
    """The event one payload tells of."""
    if text(payload, "event.name") == LOG:
        return read_log(payload, known)
    if text(payload, "hook_event_name") != "AfterTool" or text(payload, "tool_name") != TOOL:
        return []
    response = inner(payload, "tool_response")
    return [
        _event(
            payload,
            known,
            session_id=text(payload, "session_id"),
            skill=text(inner(payload, "tool_input"), "name", "skill"),
            occasion=text(payload, "prompt_id", "timestamp"),
            outcome="error" if response.get("error") else "ok",
            source="gemini-hook",
        )
    ]


def read_log(attributes: Payload, known: Known) -> list[Item]:
    """The event in the attributes of one log record. Values may be text."""
    if text(attributes, "function_name") != TOOL:
        return []
    return [
        _event(
            attributes,
            known,
            session_id=text(attributes, "session.id"),
            skill=text(inner(attributes, "function_args"), "name", "skill"),
            occasion=text(attributes, "prompt_id", "event.timestamp"),
            outcome=_outcome(attributes),
            source="gemini-log",
        )
    ]


def _event(
    payload: Payload, known: Known, *, session_id: str, skill: str, occasion: str, outcome: Outcome, source: str
) -> Event:
    return Event(
        event_id=tool_call("gemini", session_id, occasion, skill) if occasion else "",
        session_id=session_id,
        skill=skill,
        called_at=called_at({"timestamp": payload.get("timestamp", payload.get("event.timestamp"))}),
        trigger="agent",
        outcome=outcome,
        duration_ms=duration_ms(payload, "duration_ms"),
        actor=known.actor,
        agent=AGENT,
        source=source,
        extra=facts(payload, "prompt_id"),
    )


def _outcome(attributes: Payload) -> Outcome:
    if text(attributes, "decision") == "reject":
        return "denied"
    success = attributes.get("success")
    return "ok" if success in (True, "true") else "error" if success in (False, "false") else "unknown"
