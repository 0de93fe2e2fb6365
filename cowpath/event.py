"""An event: one thing an agent did with a skill, as it is taken in and kept."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

NAMESPACE = uuid.UUID("6f0b7d3e-8d8f-5a37-9c1e-3f9f6b1c7a52")
"""Namespace of the deterministic event ids (uuid5) of sources that have ids of their own."""

Kind = Literal["activated", "exposed", "preloaded", "resource_read", "impression", "outcome"]
Trigger = Literal["user", "agent", "nested", "unknown"]
Outcome = Literal["ok", "error", "denied", "abandoned", "unknown"]

OUTCOME_ALIASES: dict[str, Outcome] = {"success": "ok", "failure": "error", "failed": "error"}
TRIGGER_ALIASES: dict[str, Trigger] = {"model": "agent", "claude-proactive": "agent", "user-slash": "user"}


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One event. Only ``kind == "activated"`` is a call; the other kinds are kept beside.

    ``skill`` is the raw name the agent used; the published copy resolves it to ``skill_id``.
    ``called_at`` is the agent's clock and ``stored_at`` ours, both UTC; neither replaces the other.
    Inside a stream the order is ``seq``, then ``called_at``. Equal keys, or one ``batch_id``, are
    parallel calls and carry no order.

    An ``impression`` says what our ranker showed a session: ``extra.shown`` lists the skill ids, best first, and
    ``skill`` is the first of them, which alone counts where a sender lists none. ``extra.policy`` is ``served`` or
    ``holdout`` (then nothing was shown, and the list is what would have been); ``extra.propensity`` the probability
    of that policy; ``extra.list`` the list's id, which calls that follow it name as ``suggested_by``; ``extra.rank``
    that of the first skill; ``extra.after`` the skill it was asked after; ``extra.run`` the mining run behind it.
    """

    event_id: str
    session_id: str
    skill: str
    stream_id: str = ""
    seq: int | None = None
    called_at: datetime | None = None
    stored_at: datetime | None = None
    kind: Kind = "activated"
    trigger: Trigger = "unknown"
    outcome: Outcome = "unknown"
    duration_ms: float | None = None
    batch_id: str | None = None
    actor: str | None = None
    agent: str | None = None
    agent_version: str | None = None
    source: str = "http"
    confidence: float = 1.0
    suggested_by: str | None = None
    clock: Literal["ok", "none", "future", "ancient"] = "ok"
    extra: dict[str, Any] = {}


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """An item that was refused: counted by ``code`` and kept as a dead letter, never dropped."""

    code: str
    message: str
    field: str | None = None
    event_id: str | None = None
    index: int | None = None
    retryable: bool = False
    source: str = "http"
    stored_at: datetime | None = None
    body: str = ""


def derived_id(*parts: object) -> str:
    """The event id of a call that its source already names: equal parts, equal id, for ever."""
    return str(uuid.uuid5(NAMESPACE, ":".join(str(part) for part in parts)))


def utc_now() -> datetime:
    return datetime.now(UTC)
