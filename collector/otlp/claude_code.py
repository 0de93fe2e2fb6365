"""Claude Code's log records. One call by the model is two of them, and a hook and a transcript may have seen it too.

- ``tool_result`` of the Skill tool names its call (``tool_use_id``): its event has the id that hook and transcript
  derive too.
- ``skill_activated`` of a typed ``/skill`` names session, prompt and skill, as the hook of a typed command does: one
  id again.
- ``skill_activated`` of any other call names no call. It is kept as an event of its own, marked ``seen_as``, and
  what decides is everything that is stored: each call of the same session and skill stands for one such record, that
  of the same prompt and nearest in ``event.sequence``. Only records that no call stands for are published as calls
  (``seen_again`` in sql/schema). So it does not matter which of them arrives first, or ever.

With names hidden, ``skill_activated`` says ``custom_skill`` and is counted as unnamed; its ``tool_result`` names
nothing then and is passed over, so that one hidden call counts once. Cowork sends no ``skill_activated``; there the
``tool_result`` counts as unnamed.
"""

from __future__ import annotations

from typing import Any

from collector.hooks.claude_code import AGENT, SKILL_TOOLS
from collector.hooks.payload import Item, Known, command_name, duration_ms, facts, inner, text
from collector.identity import claude_call, claude_seen, claude_typed, typed_about
from collector.otlp.signals import LogRecord, whole
from cowpath.event import Event, Outcome, Trigger

SOURCE = "claude-otel"

PREFIX = "claude_code."
SCOPE = "com.anthropic.claude_code"
COWORK = "cowork"
SERVICES = frozenset({AGENT, COWORK})

HIDDEN = "custom_skill"
"""What Claude Code writes where names are hidden."""

TRIGGERS: dict[str, Trigger] = {"claude-proactive": "agent", "user-slash": "user", "nested-skill": "nested"}
PRELOAD = "agent-preload"


def is_ours(record: LogRecord) -> bool:
    """Whether a record is one of Claude Code's own events."""
    return (
        record.scope.startswith(SCOPE)
        or record.service in SERVICES
        or any(name.startswith(PREFIX) for name in (record.body, record.event_name, _name(record)))
    )


def read(record: LogRecord, known: Known) -> list[Item]:
    """The skill call a record tells of; nothing for every other event."""
    event = (_name(record) or record.event_name or record.body).removeprefix(PREFIX)
    if event == "skill_activated":
        return [_activated(record, known)]
    if event == "tool_result":
        return _tool(record, known, outcome=_outcome(record))
    if event == "tool_decision" and text(record.attributes, "decision") == "reject":
        return _tool(record, known, outcome="denied")
    return []


def _activated(record: LogRecord, known: Known) -> Event:
    skill, said = text(record.attributes, "skill.name"), text(record.attributes, "invocation_trigger")
    trigger = TRIGGERS.get(said, "unknown")
    common = _common(record, known)
    session_id, prompt_id = common["session_id"], text(record.facts, "prompt.id")
    if trigger == "user":
        at = common["called_at"] or known.now
        typed = (
            claude_typed(session_id, prompt_id, skill) if prompt_id else typed_about("claude", session_id, skill, at)
        )
        return Event(event_id=typed, skill=skill, trigger=trigger, **common)
    occasion = common["seq"] if common["seq"] is not None else record.time_ns or record.observed_ns
    return Event(
        event_id=claude_seen(session_id, prompt_id, occasion, skill),
        skill=skill,
        kind="preloaded" if said == PRELOAD else "activated",
        trigger=trigger,
        **common | {"extra": common["extra"] | {"seen_as": "skill_activated"}},
    )


def _tool(record: LogRecord, known: Known, *, outcome: Outcome) -> list[Item]:
    """A use of the skill tool. Without a name nothing is told that ``skill_activated`` does not tell too."""
    if text(record.attributes, "tool_name") not in SKILL_TOOLS:
        return []
    called, given = inner(record.attributes, "tool_parameters"), inner(record.attributes, "tool_input")
    skill = text(called, "skill_name") or command_name(text(given, "skill", "command"))
    skill = skill or text(record.attributes, "skill.name") or (HIDDEN if record.service == COWORK else "")
    call_id = text(record.attributes, "tool_use_id")
    if not skill or not (call_id or outcome != "denied"):
        return []
    common = _common(record, known)
    occasion = common["seq"] if common["seq"] is not None else record.time_ns
    seen = claude_seen(common["session_id"], text(record.facts, "prompt.id"), f"result {occasion}", skill)
    return [
        Event(
            event_id=claude_call(call_id) if call_id else seen,
            skill=skill,
            trigger="agent",
            outcome=outcome,
            duration_ms=duration_ms(record.attributes, "duration_ms"),
            **common,
        )
    ]


def _outcome(record: LogRecord) -> Outcome:
    """Whether it succeeded, told as a boolean or as a word."""
    success = record.attributes.get("success")
    word = success.lower() if isinstance(success, str) else success
    if text(record.attributes, "decision", "decision_type") == "reject":
        return "denied"
    return "ok" if word in (True, "true") else "error" if word in (False, "false") else "unknown"


def _common(record: LogRecord, known: Known) -> dict[str, Any]:
    """What every event of a record shares. The address and the organisation of its user stay out."""
    attributes = record.facts
    told = facts(attributes, "skill.source", "plugin.name", "marketplace.name", "plugin_id_hash")
    return {
        "session_id": text(attributes, "session.id"),
        "stream_id": text(attributes, "agent.id", "agent_id").removeprefix("agent-"),
        "seq": whole(record.attributes, "event.sequence"),
        "called_at": record.at,
        "actor": known.actor or text(attributes, "user.id") or None,
        "agent": COWORK if record.service == COWORK else AGENT,
        "agent_version": record.version,
        "source": SOURCE,
        "extra": {"prompt_id": prompt} | told if (prompt := text(attributes, "prompt.id")) else told,
    }


def _name(record: LogRecord) -> str:
    return text(record.attributes, "event.name")
