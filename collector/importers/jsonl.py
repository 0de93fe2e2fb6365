"""JSON lines -> events: one call a line, ``session_id, seq, skill_id, ts?, actor?, outcome?, group?, ...``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from cowpath.event import OUTCOME_ALIASES, TRIGGER_ALIASES, Event, Rejected, derived_id

SOURCE = "jsonl"
MOST_BODY = 2_000
"""Characters of a refused line that are kept."""

NAMES = {"skill_id": "skill", "ts": "called_at"}
"""Keys of the format that have another name in an event."""

FIELDS = frozenset(Event.__struct_fields__) - {"stored_at", "clock", "extra", "source"}
ALIASES: dict[str, dict[str, Any]] = {"outcome": OUTCOME_ALIASES, "trigger": TRIGGER_ALIASES}
TEXTS = frozenset({"event_id", "session_id", "skill", "stream_id", "batch_id", "actor", "suggested_by"})


class BadLine(Exception):
    """A line that is no event."""

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field


def read_events(lines: Iterable[bytes]) -> Iterator[Event | Rejected]:
    """An event or a rejection for every line that is not blank, in order.

    A line without an id of its own gets one derived from its session, stream, seq and skill, so the same
    file read again gives the same ids; a line without ``seq`` is told apart by its time and its place
    among equal lines.
    """
    equals: Counter[tuple[str, ...]] = Counter()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _event(_object(line), equals)
        except BadLine as error:
            yield Rejected(
                code=error.code,
                message=f"line {number}: {error.message}",
                field=error.field,
                index=number - 1,
                source=SOURCE,
                body=line.decode("utf-8", errors="replace").strip()[:MOST_BODY],
            )


def _object(line: bytes) -> dict[str, Any]:
    try:
        row = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadLine("bad_json", f"not JSON: {error}") from None
    if not isinstance(row, dict):
        raise BadLine("not_an_object", f"a {type(row).__name__} where an object was expected")
    return row


def _event(row: dict[str, Any], equals: Counter[tuple[str, ...]]) -> Event:
    values: dict[str, Any] = {}
    given = row.get("extra")
    extra: dict[str, Any] = dict(given) if isinstance(given, dict) else {}
    for key, value in row.items():
        name = NAMES.get(key, key)
        if name in FIELDS:
            if value is not None:
                values[name] = _value(name, value)
        elif key != "extra":
            extra[key] = value
    for required in ("session_id", "skill"):
        if not values.get(required):
            raise BadLine("missing_field", f"no {required}", required)
    values.setdefault("event_id", "")
    try:
        event = msgspec.convert({**values, "source": SOURCE, "extra": extra}, Event, strict=False)
    except msgspec.ValidationError as error:
        raise BadLine("bad_field", str(error), _field(str(error))) from None
    return event if event.event_id else msgspec.structs.replace(event, event_id=_id(event, equals))


def _value(name: str, value: Any) -> Any:
    if name == "called_at":
        return moment(value)
    if name in ALIASES and isinstance(value, str):
        return ALIASES[name].get(value, value)
    if name in TEXTS and isinstance(value, int):
        return str(value)
    return value


def moment(value: Any) -> datetime:
    """A time in UTC from ISO 8601 (without an offset it is UTC) or from epoch seconds or milliseconds."""
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            time = datetime.fromtimestamp(value / 1000 if abs(value) >= 1e11 else value, UTC)
        else:
            raise BadLine("bad_time", f"the time is a {type(value).__name__}", "ts")
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise BadLine("bad_time", f"{str(value)[:40]!r} is not a time", "ts") from None


def _field(message: str) -> str | None:
    """The field's name in a message that ends in ``... - at `$.seq```."""
    _, found, tail = message.rpartition("`$.")
    return tail.rstrip("`") if found else None


def _id(event: Event, equals: Counter[tuple[str, ...]]) -> str:
    if event.seq is not None:
        return derived_id(SOURCE, event.session_id, event.stream_id, event.seq, event.skill)
    time = event.called_at.isoformat() if event.called_at else ""
    key = (event.session_id, event.stream_id, time, event.skill)
    equals[key] += 1
    return derived_id(SOURCE, *key, equals[key])
