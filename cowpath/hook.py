"""``python -m cowpath.hook DIALECT``: an agent's command hook, for when its http hook finds no collector.

Reads the hook's JSON on stdin, keeps what names the call in the spool, ships what waits if that can be done at once,
says nothing and exits 0, whatever happens. It is started at every call, so it loads neither click nor msgspec.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cowpath.spool import DROPPED, EVENTS, Spool, addressed, documents

BUDGET_S = 0.02
"""From here to the exit; starting Python takes as long again, and an agent should not wait 50 ms.
What is not shipped by then is left to the next one."""

MAX_INPUT_BYTES = 8 * 2**20

FACTS = (
    "session_id", "prompt_id", "hook_event_name", "agent_id", "agent_type", "tool_name", "tool_use_id", "duration_ms",
    "is_interrupt", "expansion_type", "command_name", "command_source", "timestamp",
)  # fmt: skip
"""What is kept of a payload: names, ids, times. Prompts, arguments, results and paths are not."""

TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionDenied"})
OTHER_EVENTS = frozenset({"PostToolBatch", "UserPromptExpansion"})

DIALECTS = frozenset({"claude-code"})


def main(arguments: list[str] | None = None) -> int:
    """Spool, try to ship, exit 0."""
    deadline = time.monotonic() + BUDGET_S
    try:
        [dialect] = sys.argv[1:] if arguments is None else arguments
        if dialect in DIALECTS:
            take(dialect, sys.stdin.buffer.read(MAX_INPUT_BYTES), os.environ, deadline)
    except Exception as error:
        # Best effort by design: an observer must never stop what it observes.
        sys.stderr.write(f"cowpath: {error}\n")
    return 0


def take(dialect: str, given: bytes, environment: Mapping[str, str], deadline: float) -> None:
    """Keep the facts of one payload, if it tells of a skill, and ship what waits until the deadline.

    Whoever asks not to be tracked (consoledonottrack.com) is not.
    """
    if environment.get("DO_NOT_TRACK", "").strip().lower() in ("1", "true", "yes"):
        return
    folder = Path(environment.get("COWPATH_HOME") or "~/.local/share/cowpath").expanduser() / "spool"
    spool = Spool(folder, brief=True)
    kept = facts(json.loads(given))
    if kept:
        kept.setdefault("timestamp", datetime.now(UTC).isoformat())
        spool.append(f"hook/{dialect} ".encode() + json.dumps(kept, separators=(",", ":")).encode() + b"\n")
    with suppress(OSError):
        spool.ship(_Post(environment, deadline).send, most_lines=1)
    spool.close()


def facts(payload: dict[str, Any]) -> dict[str, Any]:
    """The part of a payload that may be kept; empty where it tells of no skill."""
    event = payload.get("hook_event_name")
    if event in TOOL_EVENTS and payload.get("tool_name") != "Skill":
        return {}
    if event not in TOOL_EVENTS | OTHER_EVENTS:
        return {}
    if event == "UserPromptExpansion" and payload.get("expansion_type") != "slash_command":
        return {}
    kept = {name: payload[name] for name in FACTS if isinstance(payload.get(name), str | int | float)}
    kept |= _skill_of(payload)
    if event == "PostToolBatch":
        calls = payload.get("tool_calls")
        skills = [call for call in calls if _is_skill(call)] if isinstance(calls, list) else []
        if not skills:
            return {}
        kept["tool_calls"] = [{"tool_name": "Skill", **_id_of(call), **_skill_of(call)} for call in skills]
    return kept


def _is_skill(call: object) -> bool:
    return isinstance(call, dict) and call.get("tool_name") == "Skill"


def _id_of(call: dict[str, Any]) -> dict[str, Any]:
    return {"tool_use_id": call["tool_use_id"]} if isinstance(call.get("tool_use_id"), str) else {}


def _skill_of(call: dict[str, Any]) -> dict[str, Any]:
    given, response = call.get("tool_input"), call.get("tool_response")
    kept: dict[str, Any] = {}
    if isinstance(given, dict) and isinstance(given.get("skill"), str):
        kept["tool_input"] = {"skill": given["skill"]}
    if isinstance(response, dict) and isinstance(response.get("success"), bool):
        kept["tool_response"] = {"success": response["success"]}
    return kept


class _Post:
    """The smallest HTTP there is: loading a client library would take longer than the budget."""

    def __init__(self, environment: Mapping[str, str], deadline: float) -> None:
        host, port = environment.get("COWPATH_HOST") or "127.0.0.1", environment.get("COWPATH_PORT") or "8710"
        self._place = urlsplit(environment.get("COWPATH_URL") or f"http://{host}:{port}")
        self._key = environment.get("COWPATH_KEY", "")
        self._deadline = deadline

    def send(self, lines: list[bytes]) -> None:
        """Send lines; OSError where the collector does not take them all in time."""
        if self._place.scheme != "http":
            raise OSError("a hook speaks without TLS only; a client ships what waits")
        for line in lines:
            path, body = addressed(line)
            for document in documents(path, [body]) if path else ():
                self._post(EVENTS if path == DROPPED else path, document)

    def _post(self, path: str, body: bytes) -> None:
        host = self._place.hostname or "127.0.0.1"
        key = f"Authorization: Bearer {self._key}\r\n" if self._key else ""
        head = (
            f"POST {self._place.path.rstrip('/')}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\n{key}Content-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection((host, self._place.port or 80), timeout=self._left()) as connection:
            connection.sendall(head.encode() + body)
            connection.settimeout(self._left())
            status = connection.recv(64).split(b" ", 2)[1:2]
        if not status or not status[0].startswith(b"2"):
            raise OSError(f"the collector answered {status}")

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("out of time; the next one ships what waits")
        return left


if __name__ == "__main__":
    sys.exit(main())
