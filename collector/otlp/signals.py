"""The nouns of OTLP as far as we read them: one log record, span or data point with what stands around it."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from collector.hooks.payload import text
from collector.loose import EPOCH, LAST, Unusable, moment_of, whole_of

Attributes = Mapping[str, Any]
"""Names to plain values: text, numbers, bool, lists and mappings of them."""


@dataclass(frozen=True, kw_only=True)
class Signal:
    """What all three have. Times are nanoseconds since 1970, 0 where they are not told; ids are lower-case hex."""

    attributes: Attributes
    resource: Attributes = field(default_factory=dict)
    scope: str = ""
    time_ns: int = 0

    @property
    def facts(self) -> Attributes:
        """The attributes, and behind them those of the resource."""
        return ChainMap(dict(self.attributes), dict(self.resource))

    @property
    def service(self) -> str:
        return text(self.resource, "service.name")

    @property
    def version(self) -> str | None:
        return text(self.facts, "service.version", "app.version") or None


@dataclass(frozen=True, kw_only=True)
class LogRecord(Signal):
    event_name: str = ""
    body: str = ""
    observed_ns: int = 0
    trace_id: str = ""
    span_id: str = ""

    @property
    def at(self) -> datetime | None:
        """The agent's clock: the record's time, else what its event says, else when it was observed."""
        return moment_of_ns(self.time_ns) or _moment(self.attributes) or moment_of_ns(self.observed_ns)


@dataclass(frozen=True, kw_only=True)
class Span(Signal):
    """``time_ns`` is its begin."""

    name: str = ""
    end_ns: int = 0
    trace_id: str = ""
    span_id: str = ""
    failed: bool = False

    @property
    def at(self) -> datetime | None:
        return moment_of_ns(self.time_ns)

    @property
    def duration_ms(self) -> float | None:
        return (self.end_ns - self.time_ns) / 1e6 if 0 < self.time_ns <= self.end_ns else None


@dataclass(frozen=True, kw_only=True)
class Point(Signal):
    """A data point of a monotonic sum: how many since ``start_ns``, or since the point before."""

    metric: str
    value: float
    cumulative: bool
    start_ns: int = 0


def moment_of_ns(nanoseconds: int) -> datetime | None:
    """A moment to the microsecond, exactly; a float would lose some. What no calendar holds is its last moment."""
    if nanoseconds <= 0:
        return None
    try:
        return EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return LAST


def whole(attributes: Attributes, name: str) -> int | None:
    """A whole number, also one written as text; None where there is none."""
    try:
        return whole_of(name, attributes.get(name))
    except Unusable:
        return None


def _moment(attributes: Attributes) -> datetime | None:
    try:
        return moment_of("event.timestamp", attributes.get("event.timestamp"))
    except Unusable:
        return None
