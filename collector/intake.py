"""The intake: a tuple of checks that every event passes, whatever door it came through."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import get_args

import msgspec

from collector.counted import Counted, Item
from collector.native import MAX_TEXT
from collector.private import hashed_actor, without_private
from cowpath.event import Event, Kind, Rejected

KINDS = frozenset(get_args(Kind))

UNNAMED = frozenset({"custom_skill", "third-party"})
"""What agents write instead of a skill's name when they are set to hide it."""

TEST_SKILL = "cowpath-doctor"
"""A reserved name: it never becomes a skill."""

AHEAD = timedelta(hours=24)
ANCIENT = datetime(2000, 1, 1, tzinfo=UTC)
"""A clock that says so was never set. Logs of people's tools reach back this far; epochs and zeros lie before."""

MAX_MESSAGE = 500
MAX_DEAD_LETTER = 8_192

TEXTS = ("event_id", "session_id", "skill", "stream_id", "kind", "batch_id", "agent", "agent_version", "source",
         "suggested_by")  # fmt: skip

texts_of: Callable[[Event], tuple[str | None, ...]] = attrgetter(*TEXTS)

BAD_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffd]")
"""Control characters, and the mark that decoding leaves where it found no character: two ids may differ just there."""

Check = Callable[[Event], "Event | Rejected"]


def admit(item: Item, *, secret: bytes, now: datetime) -> Item:
    """The item as it is kept: stamped with our clock, its actor hashed, checked, with an id."""
    if isinstance(item, Rejected):
        return _bounded(item, now)
    actor = hashed_actor(item.actor, secret) if item.actor else None
    if isinstance(item, Counted):
        return countable(msgspec.structs.replace(item, stored_at=now, actor=actor))
    checked = take_in(msgspec.structs.replace(item, stored_at=now, actor=actor))
    if isinstance(checked, Event) and not checked.event_id:
        return msgspec.structs.replace(checked, event_id=str(uuid.uuid4()))
    return checked


def take_in(event: Event) -> Event | Rejected:
    """The event after all checks, or the first refusal."""
    for check in CHECKS:
        checked = check(event)
        if checked is event:
            continue
        if isinstance(checked, Rejected):
            return checked
        event = checked
    return event


def without_people(event: Event) -> Event | Rejected:
    """Only facts about calls stay in ``extra``; the names of the fields that went stay too."""
    return msgspec.structs.replace(event, extra=without_private(event.extra)) if event.extra else event


def complete(event: Event) -> Event | Rejected:
    """A session and a skill are what makes a call."""
    if not event.session_id.strip():
        return refuse(event, "missing_field", "session_id", "session_id is required")
    if not event.skill.strip():
        return refuse(event, "missing_field", "skill_id", "skill_id is required")
    return event


def within_size(event: Event) -> Event | Rejected:
    """Ids and names are short and of one line; others are something else, and would be printed to people and agents."""
    texts = texts_of(event)
    # Most events are short and plain as a whole, and need no look at each of their texts.
    whole = "".join(filter(None, texts))
    if len(whole) <= MAX_TEXT and whole.isascii() and whole.isprintable():
        return event
    for name, value in zip(TEXTS, texts, strict=True):
        if value is None:
            continue
        if len(value) > MAX_TEXT:
            return refuse(event, "too_long", name, f"{name} has {len(value)} characters; at most {MAX_TEXT} are taken")
        if BAD_TEXT.search(value):
            return refuse(event, "bad_text", name, f"{name} holds a control character, or one that was lost on the way")
    return event


def known_kind(event: Event) -> Event | Rejected:
    """Only kinds we can count are kept as events."""
    if event.kind in KINDS:
        return event
    return refuse(event, "unknown_kind", "kind", f"no kind {event.kind!r}; known are {', '.join(sorted(KINDS))}")


def named_skill(event: Event) -> Event | Rejected:
    """A placeholder stands for many skills; as one skill it would be the hub of everything."""
    if event.skill not in UNNAMED:
        return event
    return refuse(
        event,
        "unnamed_skill",
        "skill_id",
        f"{event.skill!r} is a placeholder, not a skill; let the agent send names (OTEL_LOG_TOOL_DETAILS=1)",
    )


def kept_apart(event: Event) -> Event | Rejected:
    """What ``cowpath doctor`` sends is kept, to be read back, but never a call."""
    return msgspec.structs.replace(event, kind="outcome") if event.skill == TEST_SKILL else event


def countable(count: Counted) -> Counted | Rejected:
    """A count of a skill that has a name, by a source whose words are short."""
    words = (count.skill, count.count_id, count.series, count.agent, count.agent_version, count.source)
    if not count.skill.strip():
        return refuse(count, "missing_field", "skill_id", "a count needs the skill that it counts")
    if count.skill in UNNAMED:
        return refuse(count, "unnamed_skill", "skill_id", f"{count.skill!r} is a placeholder, not a skill")
    if any(word and len(word) > MAX_TEXT for word in words):
        return refuse(count, "too_long", "count", f"a name or id of a count is longer than {MAX_TEXT} characters")
    return count


def plausible_clock(event: Event) -> Event | Rejected:
    """A wrong clock loses no event: it is flagged, and calendars use our clock instead."""
    if event.called_at is None:
        return msgspec.structs.replace(event, clock="none")
    if event.called_at < ANCIENT:
        return msgspec.structs.replace(event, clock="ancient")
    if event.stored_at and event.called_at > event.stored_at + AHEAD:
        return msgspec.structs.replace(event, clock="future")
    return event if event.clock == "ok" else msgspec.structs.replace(event, clock="ok")


CHECKS: tuple[Check, ...] = (
    without_people,
    complete,
    within_size,
    known_kind,
    named_skill,
    kept_apart,
    plausible_clock,
)
"""Every check in its order; what people wrote goes first, so that no dead letter keeps it either."""


def refuse(item: Event | Counted, code: str, field: str, message: str) -> Rejected:
    """The item as a dead letter."""
    own_id = item.event_id if isinstance(item, Event) else item.count_id
    return Rejected(
        code=code,
        field=field,
        message=message,
        event_id=own_id[:MAX_TEXT] or None,
        source=item.source[:MAX_TEXT],
        stored_at=item.stored_at,
        body=msgspec.json.encode(item).decode()[:MAX_DEAD_LETTER],
    )


def _bounded(item: Rejected, now: datetime) -> Rejected:
    """A refusal from elsewhere, cut to the sizes we keep."""
    return msgspec.structs.replace(
        item,
        code=item.code[:64],
        field=item.field and item.field[:64],
        message=item.message[:MAX_MESSAGE],
        event_id=item.event_id and item.event_id[:MAX_TEXT],
        source=item.source[:MAX_TEXT],
        stored_at=now,
        body=item.body[:MAX_DEAD_LETTER],
    )
