"""Trajectories of benchmark runs (ATIF, as Harbor and Terminal-Bench write them) -> events.

A step's ``tool_calls`` name skills either by a skill tool or by reading a SKILL.md; the second is inferred.
Format: the Agent Trajectory Interchange Format, Harbor's RFC 0001, versions 1.0 to 1.7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from collector.identity import claude_call
from collector.importers.files import Progress, import_files
from collector.importers.reads import CONFIDENCE, skills_read
from collector.importers.shipment import Sink
from collector.importers.transcript import moment
from cowpath.event import Event, Outcome, Rejected, derived_id
from cowpath.home import Home

SOURCE = "atif"
PATTERNS = ("trajectory*.json", "*.trajectory.json")

SKILL_TOOLS = frozenset({"Skill", "skill", "load_skill", "activate_skill", "use_skill"})
COMMANDS = ("keystrokes", "command", "cmd", "script")


def import_terminus(
    paths: Sequence[Path], sink: Sink, home: Home, *, tools: bool = False, progress: Progress = iter
) -> dict[str, Any]:
    """Send the calls of every trajectory that changed since the last import; ``tools``: ordinary tools too."""

    def read(path: Path) -> list[Event | Rejected]:
        return read_trajectory(path, tools=tools)

    variant = "terminus+tools" if tools else "terminus"
    return import_files(paths, PATTERNS, read, sink, home, variant=variant, progress=progress)


def read_trajectory(path: Path, *, tools: bool = False) -> list[Event | Rejected]:
    """The calls of one file, or one rejection that says why it is no trajectory."""
    try:
        document = msgspec.json.decode(path.read_bytes())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return [_not_one(f"the file is not JSON: {error}")]
    if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
        return [_not_one("the file has no steps")]
    session_id = document.get("session_id") or document.get("trajectory_id")
    if not isinstance(session_id, str):
        return [_not_one("the trajectory has no session_id")]
    return list(events(document, session_id, "", tools=tools))


def events(trajectory: dict[str, Any], session_id: str, stream_id: str, *, tools: bool) -> Iterator[Event]:
    """The calls of a trajectory in their order; a subagent's trajectory is a stream of its own."""
    held = trajectory.get("agent")
    agent: dict[str, Any] = held if isinstance(held, dict) else {}
    seq = 0
    for step in _objects(trajectory.get("steps")):
        # A trajectory that continues another one repeats its steps.
        calls = [] if step.get("is_copied_context") else _objects(step.get("tool_calls"))
        named = [(call, name, sure) for call in calls for name, sure in names(call, tools=tools)]
        for call, name, sure in named:
            call_id = str(call.get("tool_call_id") or f"{step.get('step_id')}.{calls.index(call)}")
            yield Event(
                event_id=_id(session_id, stream_id, call_id, name),
                session_id=session_id,
                stream_id=stream_id,
                seq=seq,
                skill=name,
                called_at=moment(step.get("timestamp")),
                trigger="agent",
                outcome=outcome_of(step, call_id),
                batch_id=f"{stream_id}step-{step.get('step_id')}" if len(named) > 1 else None,
                agent=_text(agent.get("name")) or None,
                agent_version=_text(agent.get("version")) or None,
                source=SOURCE,
                confidence=sure,
            )
            seq += 1
    for place, inner in enumerate(_objects(trajectory.get("subagent_trajectories"))):
        inner_id = _text(inner.get("trajectory_id")) or _text(inner.get("session_id")) or str(place)
        yield from events(inner, session_id, inner_id, tools=tools)


def names(call: dict[str, Any], *, tools: bool) -> list[tuple[str, float]]:
    """(skill, confidence) of what a call uses; several where one command reads several skills."""
    function, given = _text(call.get("function_name")), call.get("arguments")
    values = given if isinstance(given, dict) else {}
    if function in SKILL_TOOLS:
        name = next(
            (_text(values.get(key)) for key in ("skill", "name", "skill_name", "command") if values.get(key)), ""
        )
        return [(name, 1.0)] if name else []
    command = next((_text(values.get(key)) for key in COMMANDS if values.get(key)), "")
    read = [(name, CONFIDENCE) for name in skills_read(command)]
    return read or ([(f"tool:{function}", 1.0)] if tools and function else [])


def outcome_of(step: dict[str, Any], call_id: str) -> Outcome:
    """``error`` where the result says so; the format has no word for success, so everything else is unknown."""
    observation = step.get("observation")
    results = _objects(observation.get("results")) if isinstance(observation, dict) else []
    for result in results:
        extra = result.get("extra")
        told = result | (extra if isinstance(extra, dict) else {})
        if result.get("source_call_id") == call_id and isinstance(told.get("is_error"), bool):
            return "error" if told["is_error"] else "ok"
    return "unknown"


def _id(session_id: str, stream_id: str, call_id: str, name: str) -> str:
    """A Claude Code call keeps the id that its transcript and its hooks derive too."""
    if call_id.startswith("toolu_"):
        return claude_call(call_id)
    return derived_id(SOURCE, session_id, stream_id, call_id, name)


def _not_one(message: str) -> Rejected:
    return Rejected(code="bad_trajectory", message=message, source=SOURCE)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
