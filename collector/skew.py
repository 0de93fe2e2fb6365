"""How far a sender's clock is off, told by when it sent a batch: noted beside its events, never applied.

Time on the way counts as skew too, so it is rounded: moving events by a slow network once turned
their order around (PostHog/posthog#98250). Order inside a session is the sender's own.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from collector.loose import utc_of
from cowpath.event import Event, Rejected

STEP_S = 300
FIELD = "clock_skew_s"


def with_skew(
    items: list[Event | Rejected], sent_at: datetime | float | None, *, now: datetime | None
) -> list[Event | Rejected]:
    """The items, each event with the skew of its batch in ``extra`` where there is one."""
    skew = skew_s(sent_at, now=now)
    return [_noted(item, skew) for item in items] if skew else items


def skew_s(sent_at: datetime | float | None, *, now: datetime | None) -> int:
    """What to add to the sender's clock to get ours, in steps of five minutes; 0 where that is not known."""
    sent = None if sent_at is None else utc_of(sent_at)
    if sent is None or now is None:
        return 0
    return round((now - sent).total_seconds() / STEP_S) * STEP_S


def _noted(item: Event | Rejected, skew: int) -> Event | Rejected:
    if isinstance(item, Rejected):
        return item
    return msgspec.structs.replace(item, extra=item.extra | {FIELD: skew})
