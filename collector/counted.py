"""Counts: how often a skill was used, from sources that tell nothing else. Popularity, never a sequence."""

from __future__ import annotations

from datetime import datetime

import msgspec

from cowpath.event import Event, Outcome, Rejected, Trigger


class Counted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One data point of a counter.

    ``n`` is what happened between ``began_at`` and ``counted_at``. Where it is ``cumulative``, later points of its
    ``series`` with the same begin hold the earlier ones. Equal points have equal ``count_id``.
    """

    count_id: str
    series: str
    skill: str
    n: int
    cumulative: bool = False
    began_at: datetime | None = None
    counted_at: datetime | None = None
    stored_at: datetime | None = None
    trigger: Trigger = "unknown"
    outcome: Outcome = "unknown"
    actor: str | None = None
    agent: str | None = None
    agent_version: str | None = None
    source: str = "otel"


Item = Event | Counted | Rejected
"""What a journal holds, one a line."""
