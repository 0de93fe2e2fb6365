"""How far a sender's clock is off, told by when it sent a batch: noted beside its events, for calendars only.

Time on the way counts as skew too, so it is rounded: moving events by a slow network once turned
their order around (PostHog/posthog#98250). Order inside a session is the sender's own. A calendar takes the
least of a session (``session_clocks``): a batch that was held up says more than its clock is off, never less.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from collector.loose import utc_of
from cowpath.event import Event, Rejected

STEP_S = 300
SKEW = "clock_skew_s"
SENT = "sent_at"


def with_skew(
    items: list[Event | Rejected], sent_at: datetime | float | None, *, now: datetime | None
) -> list[Event | Rejected]:
    """The items, each event with when its batch was sent and the skew that shows in ``extra``, where that is known."""
    sent = None if sent_at is None else utc_of(sent_at)
    if sent is None or now is None:
        return items
    note = {SKEW: skew_s(sent, now=now), SENT: sent.isoformat(timespec="milliseconds")}
    return [item if isinstance(item, Rejected) else _noted(item, note) for item in items]


def skew_s(sent: datetime, *, now: datetime) -> int:
    """What to add to the sender's clock to get ours, in steps of five minutes."""
    return round((now - sent).total_seconds() / STEP_S) * STEP_S


def _noted(event: Event, note: dict[str, Any]) -> Event:
    return msgspec.structs.replace(event, extra=event.extra | note)
