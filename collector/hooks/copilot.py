"""GitHub Copilot's hooks: camelCase, times in milliseconds as floats, no event name and often no call id."""

from __future__ import annotations

from collector.hooks.payload import Item, Known, Payload, called_at, command_name, facts, inner, text
from collector.identity import tool_call
from cowpath.event import Event, Outcome

AGENT = "copilot"
SOURCE = "copilot-hook"

OUTCOMES: dict[str, Outcome] = {"success": "ok", "failure": "error", "rejected": "denied", "denied": "denied"}


def read(payload: Payload, known: Known) -> list[Item]:
    """The call before it runs; after it ran only where a call id says that both are one."""
    if text(payload, "toolName") != "skill":
        return []
    result, call_id = inner(payload, "toolResult"), text(payload, "toolCallId")
    if result and not call_id:
        return []
    session_id = text(payload, "sessionId")
    skill = command_name(text(inner(payload, "toolArgs"), "skill", "name"))
    at = called_at(payload)
    occasion = call_id or (str(round(at.timestamp() * 1000)) if at else "")
    return [
        Event(
            event_id=tool_call(AGENT, session_id, occasion, skill) if occasion else "",
            session_id=session_id,
            skill=skill,
            called_at=at,
            trigger="agent",
            outcome=OUTCOMES.get(text(result, "resultType"), "unknown"),
            actor=known.actor,
            agent=AGENT,
            source=SOURCE,
            extra=facts(payload),
        )
    ]
