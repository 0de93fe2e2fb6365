"""What the payloads of all harnesses have in common: reading them, and their values, with good will."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from collector.loose import Unusable, moment_of, number_of, text_of, whole_text
from cowpath.errors import InputError, TooLarge
from cowpath.event import Event, Rejected

Item = Event | Rejected
Payload = Mapping[str, Any]


@dataclass(frozen=True)
class Known:
    """What an adapter may know beside the payload: our clock, and which names the catalogue has."""

    now: datetime
    is_skill: Callable[[str], bool] = lambda name: False
    has_catalogue: bool = False
    actor: str | None = None


Adapter = Callable[[Payload, Known], list[Item]]


def payloads_of(body: bytes, *, limit: int) -> list[Payload | Rejected]:
    """The objects of a body: one, or a list of them. InputError where it is not JSON at all."""
    document = _document(body)
    found = document if isinstance(document, list) else [document]
    if len(found) > limit:
        raise TooLarge(f"{len(found)} payloads in one request; send at most {limit} at once")
    return [payload if isinstance(payload, dict) else _no_object(payload) for payload in found]


def _document(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        # Tool results cut in the middle of an emoji leave half a surrogate, which only json lets pass.
        return json.loads(body.decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is not JSON: {error}") from None


def _no_object(value: object) -> Rejected:
    return Rejected(code="not_an_object", message=f"a payload is a JSON object, not {type(value).__name__}")


def text(payload: object, *names: str) -> str:
    """The first of these fields that holds text or a whole number, else ''."""
    for name in names:
        value = payload.get(name) if isinstance(payload, Mapping) else None
        try:
            found = text_of(name, whole_text(value) if isinstance(value, str) else value)
        except Unusable:
            continue
        if found:
            return found
    return ""


def event_name(payload: object) -> str:
    """What a payload says it is about, under the names that harnesses have for that; '' where it says nothing."""
    return text(payload, "hook_event_name", "event.name", "hook")


def inner(payload: object, *names: str) -> Payload:
    """The first of these fields that holds an object, also one written as text; else an empty one."""
    for name in names:
        value = payload.get(name) if isinstance(payload, Mapping) else None
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                value = msgspec.json.decode(value)
            except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
                continue
        if isinstance(value, Mapping):
            return value
    return {}


def duration_ms(payload: Payload, *names: str) -> float | None:
    """The first of these fields that holds a length of time."""
    for name in names:
        try:
            found = number_of(name, payload.get(name))
        except Unusable:
            continue
        if found is not None:
            return found
    return None


def called_at(payload: Payload) -> datetime | None:
    """The agent's clock, where it is told."""
    try:
        return moment_of("timestamp", payload.get("timestamp"))
    except Unusable:
        return None


def facts(payload: Payload, *names: str) -> dict[str, Any]:
    """The named fields that hold text, for ``extra``; ``unreadable`` names times and durations that are none."""
    unreadable = [name for name, read in READ_AS.items() if not _readable(payload, name, read)]
    found = {name: words for name in names if (words := text(payload, name))}
    return found | {"unreadable": unreadable} if unreadable else found


READ_AS: dict[str, Callable[[str, object], object]] = {
    "timestamp": moment_of,
    "event.timestamp": moment_of,
    "duration": number_of,
    "duration_ms": number_of,
}
"""Fields whose value costs no call when it cannot be read, and how they are read."""


def _readable(payload: Payload, name: str, read: Callable[[str, object], object]) -> bool:
    value = payload.get(name)
    try:
        return value in (None, "") or read(name, value) is not None
    except Unusable:
        return False


def command_name(words: str) -> str:
    """'/deploy now' -> 'deploy'."""
    first = words.split(maxsplit=1)
    return first[0].lstrip("/") if first else ""
