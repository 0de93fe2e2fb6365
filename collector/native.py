"""The native event as senders write it: the structs behind ``GET /v1/schema`` and the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from collector.counted import Counted
from cowpath.event import Kind, Outcome, Rejected, Trigger

MAX_TEXT = 256
"""Longest id, name or version."""

Text = Annotated[str, Meta(max_length=MAX_TEXT)]
Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Moment = Annotated[
    datetime | int | float | None,
    Meta(description="The agent's clock: ISO 8601 (UTC where no zone is given) or seconds or milliseconds since 1970."),
]
TriggerWord = Trigger | Literal["model", "claude-proactive", "user-slash"]
OutcomeWord = Outcome | Literal["success", "failure", "failed"]


class NativeEvent(msgspec.Struct, kw_only=True):
    """One thing an agent did with a skill. Unknown fields are kept in ``extra``; people's words are not kept."""

    session_id: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT, description="The run the call belongs to.")]
    skill_id: Annotated[
        Text | None, Meta(description="The skill as the agent named it; required, here or in skill.")
    ] = None
    skill: Text | None = None
    event_id: Annotated[Text | None, Meta(description="Makes repeats harmless; generated where it is missing.")] = None
    seq: Annotated[Whole | None, Meta(description="Order inside the stream.")] = None
    ts: Moment = None
    called_at: Moment = None
    stream_id: Annotated[Text, Meta(description="A subagent is a stream of its own; empty is the main one.")] = ""
    kind: Annotated[Kind, Meta(description="Only 'activated' is a call.")] = "activated"
    trigger: TriggerWord | None = None
    outcome: OutcomeWord | None = None
    duration_ms: Annotated[float, Meta(ge=0)] | None = None
    batch_id: Annotated[Text | None, Meta(description="Calls made in parallel share one.")] = None
    actor: Annotated[Text | None, Meta(description="Who the agent worked for; kept only as a keyed hash.")] = None
    agent: Text | None = None
    agent_version: Text | None = None
    source: Text | None = None
    confidence: Annotated[Share | None, Meta(description="How sure the source is.")] = None
    suggested_by: Annotated[Text | None, Meta(description="The advice this call followed.")] = None
    group: Annotated[Text | None, Meta(description="Related sessions, kept together when data are split.")] = None
    extra: dict[str, Any] | None = None


class ExactEvent(NativeEvent, forbid_unknown_fields=True):
    """A native event without a field we do not know."""


class NativeBatch(msgspec.Struct, kw_only=True):
    """Many events in one request. ``rejected`` are items the sender refused itself: kept as dead letters.
    ``counted`` are uses by agents that count them and know no session."""

    events: list[NativeEvent]
    schema_version: int | None = None
    sent_at: Moment = None
    rejected: list[Rejected] = []
    counted: list[Counted] = []


class UnreadBatch(msgspec.Struct):
    """A batch of which only the frame was read."""

    events: list[msgspec.Raw] = []
    rejected: list[Rejected] = []
    sent_at: msgspec.Raw = msgspec.Raw(b"null")


class ExactBatch(msgspec.Struct, forbid_unknown_fields=True):
    events: list[ExactEvent]
    schema_version: int | None = None
    sent_at: datetime | int | float | None = None
