"""Who a call is: the ids that every source of one call derives alike, so that hook, telemetry and history meet."""

from __future__ import annotations

from datetime import datetime

from cowpath.event import derived_id

BUCKET_S = 2
"""Typed commands of sources that do not name the prompt: the same command within so many seconds is one."""


def claude_call(tool_use_id: str) -> str:
    """A call by the model in Claude Code; hook, OpenTelemetry and transcript share the id of its tool use."""
    return derived_id("claude", tool_use_id)


def claude_typed(session_id: str, prompt_id: str, command: str) -> str:
    """A skill a person typed in Claude Code; it has no id, but its prompt has."""
    return derived_id("claude-slash", session_id, prompt_id, command)


def typed_about(agent: str, session_id: str, command: str, at: datetime) -> str:
    """A skill a person typed, where no prompt is named: session, command and the time to two seconds."""
    return derived_id(f"{agent}-slash", session_id, command, int(at.timestamp()) // BUCKET_S)


def claude_seen(session_id: str, prompt_id: str, occasion: object, skill: str) -> str:
    """A skill_activated record of Claude Code, which does not say which call it saw.

    ``occasion`` is its event.sequence, else its time. The sequence alone is not enough: it begins again with each
    process, and a resumed session keeps its id.
    """
    return derived_id("claude-seen", session_id, prompt_id, occasion, skill)


def span(trace_id: str, span_id: str, skill: str) -> str:
    """A call that only its span names."""
    return derived_id("span", trace_id, span_id, skill)


def tool_call(agent: str, session_id: str, call_id: str, skill: str) -> str:
    """A call in an agent whose call ids are its session's own; one command may read several skills."""
    return derived_id(agent, session_id, call_id, skill)


def cloud_event(source: str, identity: str) -> str:
    """A CloudEvent: ``source`` and ``id`` together are its identity."""
    return derived_id("cloudevent", len(source), source, identity)
