"""Codex's hooks. It has no skill tool: reading a SKILL.md, or ``$name`` in a prompt, is how a skill shows."""

from __future__ import annotations

import re
from typing import Any

from collector.hooks.payload import Item, Known, Payload, called_at, facts, inner, text
from collector.identity import tool_call
from collector.importers.reads import CONFIDENCE, skills_read
from cowpath.event import Event, Outcome

AGENT = "codex"
SOURCE = "codex-hook"

SHELLS = frozenset({"Bash", "bash", "shell", "shell_command", "local_shell", "exec_command"})

NAMED = re.compile(r"(?<![\w$\\])\$([A-Za-z][\w:-]{0,127})")


def read(payload: Payload, known: Known) -> list[Item]:
    """The events one payload tells of: inferred ones, with a confidence below one."""
    event = text(payload, "hook_event_name")
    if event in ("PreToolUse", "PostToolUse") and text(payload, "tool_name") in SHELLS:
        return _read_files(payload, known, outcome="ok" if event == "PostToolUse" else "unknown")
    if event == "UserPromptSubmit":
        return _named_in_prompt(payload, known)
    return []


def _read_files(payload: Payload, known: Known, *, outcome: Outcome) -> list[Item]:
    """Before and after a command are one call: both derive the same id."""
    session_id, call_id = text(payload, "session_id"), text(payload, "tool_use_id")
    return [
        Event(
            event_id=tool_call(AGENT, session_id, call_id, skill) if call_id else "",
            skill=skill,
            trigger="agent",
            outcome=outcome,
            batch_id=call_id or None,
            confidence=CONFIDENCE,
            **_common(payload, known),
        )
        for skill in skills_read(_command(inner(payload, "tool_input")))
    ]


def _command(given: Payload) -> str:
    """A command is text, or a list of words."""
    words = given.get("command", given.get("cmd"))
    return " ".join(str(word) for word in words) if isinstance(words, list) else text(given, "command", "cmd")


def _named_in_prompt(payload: Payload, known: Known) -> list[Item]:
    """Only names the catalogue has: any other ``$word`` is what a person wrote, and stays unread."""
    session_id, turn_id = text(payload, "session_id"), text(payload, "turn_id")
    names = dict.fromkeys(name for name in NAMED.findall(text(payload, "prompt")) if known.is_skill(name))
    return [
        Event(
            event_id=tool_call(f"{AGENT}-named", session_id, turn_id, name) if turn_id else "",
            skill=name,
            trigger="user",
            confidence=CONFIDENCE,
            **_common(payload, known),
        )
        for name in names
    ]


def _common(payload: Payload, known: Known) -> dict[str, Any]:
    return {
        "session_id": text(payload, "session_id"),
        "stream_id": text(payload, "agent_id"),
        "called_at": called_at(payload),
        "actor": known.actor,
        "agent": AGENT,
        "source": SOURCE,
        "extra": facts(payload, "turn_id"),
    }
