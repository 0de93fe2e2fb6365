"""Tool spans of any agent: OpenTelemetry's GenAI conventions, OpenInference, and names that were in use before.

Attributes decide, not span names. Only the loading of a skill is a call; reading one of its files is
``resource_read``, running one of its scripts is evidence of its ``outcome``. The call's own id makes the event's,
else trace and span do. A span without a conversation belongs to the session that its trace is: what only its parent
knows comes in another request as often as not.

Conventions: open-telemetry/semantic-conventions-genai (gen_ai.skill.*), Arize's OpenInference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from collector import identity
from collector.hooks.claude_code import SKILL_TOOLS
from collector.hooks.payload import Item, Known, command_name, facts, inner, text
from collector.importers.terminus import SKILL_TOOLS as LOADERS
from collector.otlp.signals import Attributes, LogRecord, Span, whole
from cowpath.event import Event, Kind, Outcome, Rejected, derived_id

SOURCE = "otel"

NAMES = ("gen_ai.skill.name", "agento11y.skill.name", "skill.name", "gen_ai.skill.id")
TOOL_NAMES = ("gen_ai.tool.name", "tool.name", "tool_name")
CALL_IDS = ("gen_ai.tool.call.id", "tool_call.id", "tool_use_id")
GIVEN = ("gen_ai.tool.call.arguments", "tool.parameters", "input.value", "tool_input", "tool_parameters")
SESSIONS = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")
ACTORS = ("user.id", "enduser.id", "langfuse.user.id")

LOADING = SKILL_TOOLS | LOADERS | {"skills", "get_skill_instructions"}
"""Tools that load a skill, for spans without an attribute that names it: then their arguments do."""

READING = frozenset({"read_skill_resource", "load_skill_resource"})
RUNNING = frozenset({"run_skill_script"})

AVAILABLE = "langfuse.observation.skills_available"
MOST_AVAILABLE = 1_000


def read(signal: Span | LogRecord, known: Known) -> list[Item]:
    """The events in a span, or in a log record that says the same."""
    items: list[Item] = _exposed(signal, known) if AVAILABLE in signal.attributes else []
    if _is_tool(signal):
        items += _used(signal, known)
    return items


def _is_tool(signal: Span | LogRecord) -> bool:
    """Whether it is the use of a tool: other spans may name a skill that is merely active."""
    operation = text(signal.attributes, "gen_ai.operation.name")
    if operation:
        return operation == "execute_tool"
    kind = text(signal.attributes, "openinference.span.kind")
    return kind.upper() == "TOOL" if kind else bool(text(signal.attributes, *TOOL_NAMES))


def _used(signal: Span | LogRecord, known: Known) -> list[Item]:
    tool = text(signal.attributes, *TOOL_NAMES)
    skill = text(signal.attributes, *NAMES)
    kind = _kind(signal.attributes, tool)
    if not skill and tool in LOADING:
        skill = command_name(text(_given(signal.attributes), "skill", "skill_name", "name", "command"))
    if not skill:
        return []
    call_id = text(signal.attributes, *CALL_IDS)
    if not call_id and not signal.span_id:
        return [_nameless(signal)]
    return [
        Event(
            event_id=_id(signal, call_id, kind, skill),
            skill=skill,
            kind=kind,
            trigger="agent" if kind == "activated" else "unknown",
            outcome=_outcome(signal),
            duration_ms=signal.duration_ms if isinstance(signal, Span) else None,
            **_common(signal, known),
        )
    ]


def _kind(attributes: Attributes, tool: str) -> Kind:
    if tool in RUNNING or "process.exit.code" in attributes or "process.executable.name" in attributes:
        return "outcome"
    return "resource_read" if tool in READING or "gen_ai.skill.resource.name" in attributes else "activated"


def _given(attributes: Attributes) -> Mapping[str, Any]:
    """The tool's arguments, looked at for the skill's name and not kept."""
    return next((found for name in GIVEN if (found := inner(attributes, name))), {})


def _id(signal: Span | LogRecord, call_id: str, kind: Kind, skill: str) -> str:
    if kind != "activated":
        return identity.span(signal.trace_id, signal.span_id or call_id, f"{kind} {skill}")
    if call_id.startswith("toolu_"):
        return identity.claude_call(call_id)
    if call_id:
        return identity.tool_call("genai", session_of(signal), call_id, skill)
    return identity.span(signal.trace_id, signal.span_id, skill)


def _outcome(signal: Span | LogRecord) -> Outcome:
    """Whether it failed: its status, its error, or the exit code of what it ran."""
    code = whole(signal.attributes, "process.exit.code")
    failed = (isinstance(signal, Span) and signal.failed) or bool(text(signal.attributes, "error.type")) or bool(code)
    if failed:
        return "error"
    return "ok" if code == 0 or (isinstance(signal, Span) and signal.end_ns) else "unknown"


def session_of(signal: Span | LogRecord) -> str:
    return text(signal.facts, *SESSIONS) or signal.trace_id


def _common(signal: Span | LogRecord, known: Known) -> dict[str, Any]:
    attributes = signal.facts
    return {
        "session_id": session_of(signal),
        "stream_id": _stream(attributes),
        "called_at": signal.at,
        "actor": known.actor or text(attributes, *ACTORS) or None,
        "agent": text(attributes, "gen_ai.agent.name") or signal.service or None,
        "agent_version": text(attributes, "gen_ai.agent.version") or signal.version,
        "source": SOURCE,
        "extra": facts(attributes, "gen_ai.skill.version", "gen_ai.workflow.name"),
    }


def _stream(attributes: Attributes) -> str:
    """'' for the main agent and where nothing says which one that is; any other agent is a stream of its own."""
    for field in ("id", "name"):
        main, ours = text(attributes, f"gen_ai.main_agent.{field}"), text(attributes, f"gen_ai.agent.{field}")
        if main and ours:
            return "" if main == ours else ours
    return ""


def _exposed(signal: Span | LogRecord, known: Known) -> list[Item]:
    """The skills an agent could have used: once a session, however often it says so."""
    common = _common(signal, known)
    return [
        Event(
            event_id=derived_id("exposed", common["session_id"], common["stream_id"], skill),
            skill=skill,
            kind="exposed",
            **common,
        )
        for skill in _listed(signal.attributes[AVAILABLE])[:MOST_AVAILABLE]
    ]


def _listed(value: object) -> list[str]:
    """The names in a list of names or of objects that have one; the list may be text."""
    found = inner({"found": f'{{"listed": {value}}}'}, "found").get("listed") if isinstance(value, str) else value
    listed = found if isinstance(found, Sequence) and not isinstance(found, str) else []
    names = [
        text(entry, "name", "skill") if isinstance(entry, Mapping) else text({"name": entry}, "name")
        for entry in listed
    ]
    return [name for name in dict.fromkeys(names) if name]


def _nameless(signal: Span | LogRecord) -> Rejected:
    return Rejected(
        code="missing_field",
        field="spanId",
        message="a skill call needs gen_ai.tool.call.id, or the trace and span it was",
        source=SOURCE,
    )
