"""What is not kept: names of people, prompts, arguments, results, paths, mail addresses."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from cowpath.errors import StoreDamaged
from cowpath.home import write_whole

# fmt: off
PRIVATE_KEYS = frozenset({
    "args", "arguments", "body", "command_args", "content", "cwd", "email", "file", "file_path", "input",
    "last_assistant_message", "mail", "message", "messages", "output", "parameters", "path", "prompt", "prompts",
    "query", "response", "result", "results", "stderr", "stdout", "text", "tool_args", "tool_input", "tool_output",
    "tool_parameters", "tool_response", "transcript", "transcript_path", "user", "user_email", "user_id", "user_name",
    "username",
})
# fmt: on
"""Field names that carry what people wrote or who they are, in the sources we know."""

PRIVATE_TEXT = re.compile(
    r"""
    [\w.+-]+@[\w-]+\.[\w.]+           # a mail address
    | (?<![\w/.:-])~?/[\w.@-]+/[\w.@-]  # a path from the root or a home
    | [A-Za-z]:\\\\?\w                # a path with a drive
    """,
    re.VERBOSE,
)

MAX_KEYS = 32
MAX_BYTES = 4096
MAX_VALUE = 512
"""A longer value is somebody's text, not a fact about a call."""

_HASHED = re.compile(r"h:[0-9a-f]{16,64}")


SECRET_BYTES = 16


def read_secret(path: Path, *, has_events: bool = False) -> bytes:
    """The installation's key; made at the first call, readable by its owner only.

    A home with events and without its key is refused: under a new one every actor would become two.
    """
    if has_events and (not path.exists() or path.stat().st_size < SECRET_BYTES):
        raise StoreDamaged(
            f"{path}, the key that actors are hashed with, is missing or cut, and the home holds events",
            suggestions=[
                f"restore {path} from a copy of this home",
                f"or begin anew, every actor then counting as a new one: head -c 32 /dev/urandom > {path}",
            ],
        )
    if not path.exists() or path.stat().st_size < SECRET_BYTES:
        write_whole(path, secrets.token_hex(32).encode(), mode=0o600)
    return path.read_bytes()


@lru_cache(maxsize=65_536)
def hashed_actor(actor: str, secret: bytes) -> str:
    """The actor under the installation's key: equal actors stay equal, nobody can look them up."""
    if _HASHED.fullmatch(actor):
        return actor
    return "h:" + hmac.new(secret, actor.encode(), hashlib.sha256).hexdigest()[:32]


def without_private(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that may be kept, at most 32 and 4 KB; ``dropped`` names those that may not."""
    kept: dict[str, Any] = {}
    dropped: list[str] = []
    room = MAX_BYTES - 512
    for key, value in extra.items():
        text = msgspec.json.encode({key: value}).decode()
        if len(kept) < MAX_KEYS - 1 and len(text) <= min(room, MAX_VALUE) and not _is_private(key, value, text):
            kept[key] = value
            room -= len(text)
        else:
            dropped.append(key[:32])
    return kept | {"dropped": dropped[:8]} if dropped else kept


def _is_private(key: str, value: object, text: str) -> bool:
    return any(k.lower() in PRIVATE_KEYS for k in _keys({key: value})) or PRIVATE_TEXT.search(text) is not None


def _keys(value: object) -> Iterator[str]:
    """Every field name at any depth."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)
