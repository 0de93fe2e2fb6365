"""The native format: bytes -> events, each still to be checked by the intake.

Well-formed bodies take the fast path, one typed decode. Anything else is read item by item, so that
a bad item costs only itself, unknown fields are kept, and near misses (a number as text) still count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar, cast, get_args

import msgspec

from collector.counted import Counted
from collector.loose import Unusable, moment_of, number_of, text_of, utc_of, whole_of, whole_text
from collector.native import MAX_TEXT, ExactBatch, ExactEvent, NativeEvent, UnreadBatch
from collector.private import without_private
from collector.skew import with_skew
from cowpath.errors import InputError, TooLarge
from cowpath.event import OUTCOME_ALIASES, TRIGGER_ALIASES, Event, Kind, Outcome, Rejected, Trigger

T = TypeVar("T")

TRIGGER_WORDS = frozenset([*get_args(Trigger), *TRIGGER_ALIASES])
OUTCOME_WORDS = frozenset([*get_args(Outcome), *OUTCOME_ALIASES])

OURS = frozenset({"clock", "stored_at", "arrival"})
"""Decided by the collector, whatever a sender says."""

PLACES = (frozenset(NativeEvent.__struct_fields__) | OURS) - {"group"}
"""Fields that have a place of their own; all others are kept in ``extra``."""

FRAME = frozenset({"events", "rejected"})
"""What makes an object a batch."""

Item = Event | Rejected
Unread = Any
"""The bytes of an item, or what is left of one that only other writers call JSON."""

Sent = datetime | int | float | None

_exact = msgspec.json.Decoder(ExactEvent)
_exact_list = msgspec.json.Decoder(list[ExactEvent])
_exact_batch = msgspec.json.Decoder(ExactBatch)


def read_events(body: bytes, *, as_lines: bool, limit: int, now: datetime | None = None) -> list[Item]:
    """The items of a body in their order. InputError where it is not JSON at all, TooLarge past ``limit`` items.

    ``now`` is when it arrived: told against the batch's ``sent_at`` it gives the sender's clock skew.
    """
    if as_lines:
        return [_read_item(line) for line in _within(limit, [line for line in body.splitlines() if line.strip()])]
    exact = _read_exactly(body)
    if exact is not None:
        events, sent_at = exact
        return with_skew([_event(native) for native in _within(limit, events)], sent_at, now=now)
    unread, refused, sent_at = _split(body)
    items = [*map(_read_item, _within(limit, unread)), *_within(limit, refused)]
    return with_skew(items, sent_at, now=now)


def read_counts(body: bytes) -> list[Counted]:
    """The counts of a batch that was read for its events before. InputError where they are none."""
    if b'"counted"' not in body or body.lstrip()[:1] != b"{":
        return []
    try:
        document = loosely(body)
        if not FRAME & document.keys():
            # One event with a field of that name.
            return []
        return msgspec.convert(whole_text(document.get("counted", [])), list[Counted])
    except (ValueError, RecursionError) as error:
        raise InputError(f"counted is a list of counts: {error}; see GET /openapi.json") from None


def _within(limit: int, items: list[T]) -> list[T]:
    if len(items) > limit:
        raise TooLarge(f"{len(items)} events in one request; send at most {limit} at once")
    return items


def _read_exactly(body: bytes) -> tuple[list[ExactEvent], Sent] | None:
    """The fast path: a list, a batch or one event, all well formed; else None."""
    with suppress(msgspec.DecodeError, RecursionError):
        if body.lstrip()[:1] == b"[":
            return _exact_list.decode(body), None
        if b'"events"' in body:
            with suppress(msgspec.ValidationError):
                batch = _exact_batch.decode(body)
                return batch.events, batch.sent_at
        return [_exact.decode(body)], None
    return None


def _split(body: bytes) -> tuple[list[Unread], list[Rejected], Sent]:
    """The items of a body, unread, what its sender refused, and when it was sent."""
    try:
        document = msgspec.json.decode(body, type=list[msgspec.Raw] | dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _split_loosely(body)
    if isinstance(document, list):
        return [*document], [], None
    if not FRAME & document.keys():
        return [body], [], None
    try:
        batch = msgspec.json.decode(body, type=UnreadBatch)
        return [*batch.events], batch.rejected, _moment_or_none(batch.sent_at)
    except msgspec.ValidationError as error:
        raise InputError(f"a batch is an object with a list of events: {error}") from None


def _split_loosely(body: bytes) -> tuple[list[Unread], list[Rejected], Sent]:
    """The same for what is JSON to other writers only."""
    try:
        document = loosely(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is not JSON: {error}; see GET /v1/schema") from None
    if isinstance(document, dict) and isinstance(document.get("events"), list):
        refused = _convert_refused(document.get("rejected", []))
        with suppress(Unusable):
            return document["events"], refused, moment_of("sent_at", document.get("sent_at"))
        return document["events"], refused, None
    return (document if isinstance(document, list) else [document]), [], None


def _convert_refused(found: object) -> list[Rejected]:
    try:
        return msgspec.convert(whole_text(found), list[Rejected])
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputError(f"the rejected items of a batch are not a list of refusals: {error}") from None


def loosely(text: bytes) -> Any:
    """JSON as most writers understand it: halves of characters are let through, and numbers that are none are words
    (``"NaN"``), so that no field takes them for nothing said."""
    return json.loads(text, parse_constant=str)


def _moment_or_none(sent_at: msgspec.Raw) -> Sent:
    """An unreadable time of sending costs no event."""
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(sent_at, type=Sent)
    return None


def _read_item(unread: Unread) -> Item:
    if not isinstance(unread, msgspec.Raw | bytes):
        return read_object(unread)
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _event(_exact.decode(unread))
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return read_object(msgspec.json.decode(unread))
    try:
        return read_object(loosely(bytes(unread)))
    except ValueError as error:
        return Rejected(code="bad_json", message=f"the item is not JSON: {str(error)[:200]}")
    except RecursionError:
        return too_deep()


def read_object(found: object) -> Item:
    """The event in a decoded item that is nearly a native one, or what is wrong with it."""
    if not isinstance(found, dict):
        return Rejected(code="not_an_object", message=f"an event is a JSON object, not {type(found).__name__}")
    try:
        return _event_of_near_miss(found)
    except Unusable as problem:
        return Rejected(
            code=problem.code,
            field=problem.field,
            message=problem.message,
            event_id=_id_of(found),
            body=dead_letter(found),
        )
    except RecursionError:
        return too_deep(_id_of(found))


def too_deep(event_id: str | None = None) -> Rejected:
    """The refusal of an item that nothing can look through to its ground."""
    return Rejected(
        code="too_deep", message="the item holds lists or objects too deep in each other", event_id=event_id
    )


def _event(native: NativeEvent) -> Event:
    """A well-formed native event as ours."""
    extra = dict(native.extra or {})
    if native.group is not None:
        extra["group"] = native.group
    moment = native.ts if native.called_at is None else native.called_at
    return Event(
        event_id=native.event_id or "",
        session_id=native.session_id,
        skill=native.skill_id or native.skill or "",
        stream_id=native.stream_id,
        seq=native.seq,
        called_at=None if moment is None else utc_of(moment),
        kind=native.kind,
        trigger=_trigger(native.trigger),
        outcome=_outcome(native.outcome),
        duration_ms=native.duration_ms,
        batch_id=native.batch_id,
        actor=native.actor,
        agent=native.agent,
        agent_version=native.agent_version,
        source=native.source or "http",
        confidence=1.0 if native.confidence is None else native.confidence,
        suggested_by=native.suggested_by,
        extra=extra,
    )


def _event_of_near_miss(found: Mapping[str, Any]) -> Event:
    """An event from an object that is nearly one; what has no place of its own goes into ``extra``."""
    confidence = number_of("confidence", found.get("confidence"), most=1.0)
    called_at = moment_of("called_at", found.get("called_at")) or moment_of("ts", found.get("ts"))
    return Event(
        event_id=text_of("event_id", found.get("event_id")) or "",
        session_id=text_of("session_id", found.get("session_id")) or "",
        skill=text_of("skill_id", found.get("skill_id")) or text_of("skill", found.get("skill")) or "",
        stream_id=text_of("stream_id", found.get("stream_id")) or "",
        seq=whole_of("seq", found.get("seq")),
        called_at=called_at,
        kind=cast(Kind, text_of("kind", found.get("kind")) or "activated"),
        trigger=_trigger(_known(found, "trigger", TRIGGER_WORDS)),
        outcome=_outcome(_known(found, "outcome", OUTCOME_WORDS)),
        duration_ms=number_of("duration_ms", found.get("duration_ms")),
        batch_id=text_of("batch_id", found.get("batch_id")),
        actor=text_of("actor", found.get("actor")),
        agent=text_of("agent", found.get("agent")),
        agent_version=text_of("agent_version", found.get("agent_version")),
        source=text_of("source", found.get("source")) or "http",
        confidence=1.0 if confidence is None else confidence,
        suggested_by=text_of("suggested_by", found.get("suggested_by")),
        extra=_extra(found, timed=called_at is not None),
    )


def _extra(found: Mapping[str, Any], *, timed: bool) -> dict[str, Any]:
    """Fields without a place of their own; words for trigger and outcome that we do not know; times that are none."""
    inner = found.get("extra")
    unknown = {key: value for key, value in found.items() if key not in PLACES}
    odd = {
        name: found[name]
        for name, words in (("trigger", TRIGGER_WORDS), ("outcome", OUTCOME_WORDS))
        if found.get(name) and _known(found, name, words) is None
    }
    timeless = {} if timed else {name: found[name] for name in ("called_at", "ts") if found.get(name) is not None}
    return whole_text((inner if isinstance(inner, dict) else {}) | unknown | odd | timeless)


def _known(found: Mapping[str, Any], name: str, words: frozenset[str]) -> str | None:
    word = found.get(name)
    return word if isinstance(word, str) and word in words else None


def dead_letter(found: Mapping[str, Any]) -> str:
    """A refused object as it may be kept: without people's words and without its actor."""
    try:
        kept = without_private(whole_text({key: value for key, value in found.items() if key != "actor"}))
        return msgspec.json.encode(kept).decode()
    except RecursionError:
        return ""


def _id_of(found: Mapping[str, Any]) -> str | None:
    event_id = found.get("event_id")
    return whole_text(event_id[:MAX_TEXT]) if isinstance(event_id, str) else None


def _trigger(word: str | None) -> Trigger:
    return cast(Trigger, TRIGGER_ALIASES.get(word, word)) if word else "unknown"


def _outcome(word: str | None) -> Outcome:
    return cast(Outcome, OUTCOME_ALIASES.get(word, word)) if word else "unknown"
