"""OTLP in JSON: lower-camel keys, ids in hex, whole numbers as numbers or text, unknown fields passed over."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from collector.hooks.payload import text
from collector.otlp.signals import Attributes, LogRecord, Point, Span
from cowpath.errors import Undecodable

DEEPEST = 8
"""Values inside of values are read down to here; nothing we look for lies deeper."""

FAILED = 2
CUMULATIVE = 2
"""STATUS_CODE_ERROR and AGGREGATION_TEMPORALITY_CUMULATIVE: in JSON too, enumerations are numbers only."""

Json = Mapping[str, Any]


def document_of(body: bytes) -> Json:
    """The object of a body; an empty body is an empty request. Undecodable where it holds none."""
    if not body.strip():
        return {}
    try:
        document = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            # Texts cut in the middle of an emoji leave half a surrogate, which only json lets pass.
            document = json.loads(body.decode(errors="replace"))
        except (ValueError, RecursionError) as error:
            raise Undecodable(f"the body is not OTLP in JSON: {error}") from None
    if not isinstance(document, dict):
        raise Undecodable(f"the body is not OTLP in JSON: it holds no object but {type(document).__name__}")
    return document


def log_records(document: Json) -> Iterator[LogRecord]:
    """Every log record of an ExportLogsServiceRequest."""
    for resource, scope, record in _walk(document, "resourceLogs", "scopeLogs", "logRecords"):
        yield LogRecord(
            attributes=_attributes(record),
            resource=resource,
            scope=scope,
            time_ns=_whole(record, "timeUnixNano"),
            observed_ns=_whole(record, "observedTimeUnixNano"),
            event_name=text(record, "eventName"),
            body=text({"body": _value(record.get("body"))}, "body"),
            trace_id=_hex(record, "traceId", 32),
            span_id=_hex(record, "spanId", 16),
        )


def spans(document: Json) -> Iterator[Span]:
    """Every span of an ExportTraceServiceRequest."""
    for resource, scope, span in _walk(document, "resourceSpans", "scopeSpans", "spans"):
        status = span.get("status")
        yield Span(
            attributes=_attributes(span),
            resource=resource,
            scope=scope,
            name=text(span, "name"),
            time_ns=_whole(span, "startTimeUnixNano"),
            end_ns=_whole(span, "endTimeUnixNano"),
            trace_id=_hex(span, "traceId", 32),
            span_id=_hex(span, "spanId", 16),
            failed=isinstance(status, dict) and _whole(status, "code") == FAILED,
        )


def points(document: Json) -> Iterator[Point]:
    """Every data point of the monotonic sums of an ExportMetricsServiceRequest."""
    for resource, scope, metric in _walk(document, "resourceMetrics", "scopeMetrics", "metrics"):
        total = metric.get("sum")
        if not isinstance(total, dict) or total.get("isMonotonic") is not True:
            continue
        for point in _objects(total, "dataPoints"):
            yield Point(
                metric=text(metric, "name"),
                attributes=_attributes(point),
                resource=resource,
                scope=scope,
                time_ns=_whole(point, "timeUnixNano"),
                start_ns=_whole(point, "startTimeUnixNano"),
                value=_number(point.get("asDouble")) if "asDouble" in point else float(_whole(point, "asInt")),
                cumulative=_whole(total, "aggregationTemporality") == CUMULATIVE,
            )


def _walk(document: Json, *names: str) -> Iterator[tuple[Attributes, str, Json]]:
    """Each innermost object with its resource's attributes and its scope's name."""
    by_resource, by_scope, inner = names
    for outer in _objects(document, by_resource):
        held = outer.get("resource")
        resource = _attributes(held) if isinstance(held, dict) else {}
        for group in _objects(outer, by_scope):
            scope = text(group.get("scope"), "name")
            for found in _objects(group, inner):
                yield resource, scope, found


def _objects(document: Json, name: str) -> list[Json]:
    """A list of objects; an absent one is empty."""
    found = document.get(name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise Undecodable(f"the body is not OTLP in JSON: {name} is not a list of objects")
    return found


def _attributes(holder: Json) -> dict[str, Any]:
    pairs = holder.get("attributes")
    return _pairs(pairs, 0) if isinstance(pairs, list) else {}


def _pairs(pairs: list[Any], depth: int) -> dict[str, Any]:
    return {
        pair["key"]: _value(pair.get("value"), depth)
        for pair in pairs
        if isinstance(pair, dict) and isinstance(pair.get("key"), str)
    }


def _value(value: Any, depth: int = 0) -> Any:
    """An AnyValue as a plain one; None for what is none, for bytes, and below ``DEEPEST``."""
    if not isinstance(value, dict) or depth > DEEPEST:
        return None
    for name, found in value.items():
        if name in ("stringValue", "boolValue"):
            return found if isinstance(found, str | bool) else None
        if name == "intValue":
            return _whole(value, "intValue")
        if name == "doubleValue":
            return _number(found)
        if name in ("arrayValue", "kvlistValue") and isinstance(found, dict):
            inner = found.get("values")
            inner = inner if isinstance(inner, list) else []
            return _pairs(inner, depth + 1) if name == "kvlistValue" else [_value(item, depth + 1) for item in inner]
    return None


def _whole(holder: Json, name: str) -> int:
    """A 64-bit number, as a number or as text; 0 where there is none."""
    value = holder.get(name)
    with suppress(ValueError):
        if isinstance(value, int | str):
            return int(value)
        if isinstance(value, float) and value.is_integer():
            return int(value)
    return 0


def _number(value: Any) -> float:
    """A double, also as text ("NaN", "Infinity")."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _hex(holder: Json, name: str, length: int) -> str:
    """An id of so many hex digits in lower case; '' for anything else, and for the id of zeros, which means none."""
    value = holder.get(name)
    good = isinstance(value, str) and len(value) == length and set(value) <= set(string.hexdigits)
    return value.lower() if good and isinstance(value, str) and set(value) != {"0"} else ""
