"""The three exports: which message each takes and answers, and what its signals become."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.body import JSON_TYPES, bare_type
from collector.counted import Item
from collector.hooks import gemini
from collector.hooks.payload import Known, text
from collector.otlp import claude_code, codex, from_json, from_protobuf, genai
from collector.otlp.signals import LogRecord, Point, Span
from cowpath.errors import UnsupportedMedia

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
PROTOBUF_TYPES = frozenset({PROTOBUF, "application/protobuf"})


@dataclass(frozen=True)
class Export:
    """``rejected`` is the response's field that counts what was refused, ``things`` what people call its signals,
    ``name`` what each of them reports."""

    from_json: Callable[[from_json.Json], Iterable[Any]]
    from_protobuf: Callable[[bytes], Iterable[Any]]
    items: Callable[[Any, Known], Iterable[Item]]
    name: Callable[[Any], str]
    response: Callable[[], Any]
    rejected: str
    things: str


@dataclass(frozen=True)
class Read:
    """What a request held: its items, how many signals it had, and what those reported that told of no skill."""

    items: list[Item]
    signals: int
    ignored: list[str]


def items_of_log(record: LogRecord, known: Known) -> Iterable[Item]:
    """The dialect of a log record is told by its event's name."""
    if claude_code.is_ours(record):
        return claude_code.read(record, known)
    if gemini.LOG in (text(record.attributes, "event.name"), record.event_name, record.body):
        return gemini.read_log({"timestamp": record.at and record.at.isoformat(), **record.facts}, known)
    return genai.read(record, known)


def items_of_span(span: Span, known: Known) -> Iterable[Item]:
    return genai.read(span, known)


def items_of_point(point: Point, known: Known) -> Iterable[Item]:
    return codex.read(point, known)


def name_of_log(record: LogRecord) -> str:
    """The name of its event; a body is text of people as often as not."""
    return text(record.attributes, "event.name") or record.event_name


def name_of_span(span: Span) -> str:
    return text(span.attributes, "gen_ai.operation.name", "openinference.span.kind")


def name_of_point(point: Point) -> str:
    return point.metric


LOGS = Export(
    from_json.log_records,
    from_protobuf.log_records,
    items_of_log,
    name_of_log,
    ExportLogsServiceResponse,
    "rejected_log_records",
    "log records",
)
TRACES = Export(
    from_json.spans,
    from_protobuf.spans,
    items_of_span,
    name_of_span,
    ExportTraceServiceResponse,
    "rejected_spans",
    "spans",
)
METRICS = Export(
    from_json.points,
    from_protobuf.points,
    items_of_point,
    name_of_point,
    ExportMetricsServiceResponse,
    "rejected_data_points",
    "data points",
)

EXPORTS: dict[str, Export] = {"/v1/logs": LOGS, "/v1/traces": TRACES, "/v1/metrics": METRICS}
"""Route -> export."""

KEYS: dict[str, Export] = {"resourceLogs": LOGS, "resourceSpans": TRACES, "resourceMetrics": METRICS}
"""The one key of a request in JSON -> export."""


def is_protobuf(content_type: str) -> bool:
    """Whether a content type is protobuf. UnsupportedMedia where it is neither that nor JSON."""
    kind = bare_type(content_type)
    if kind in PROTOBUF_TYPES:
        return True
    if kind in JSON_TYPES:
        return False
    raise UnsupportedMedia(f"content type {kind or '(none)'!r} is not OTLP", suggestions=[PROTOBUF, JSON])


def read_body(export: Export, body: bytes, known: Known, *, protobuf: bool) -> Read:
    """What a body holds, in its order. Undecodable where it is not such a request."""
    return _read(export, export.from_protobuf(body) if protobuf else _from_json(export, body), known)


def read_document(document: from_json.Json, known: Known) -> Iterator[Item]:
    """What a decoded request in JSON holds, whichever of the three it is."""
    for key, export in KEYS.items():
        if key in document:
            yield from _read(export, export.from_json(document), known).items


def _from_json(export: Export, body: bytes) -> Iterable[Any]:
    return export.from_json(from_json.document_of(body))


def _read(export: Export, signals: Iterable[Any], known: Known) -> Read:
    items: list[Item] = []
    ignored: list[str] = []
    count = 0
    for signal in signals:
        found = [*export.items(signal, known)]
        items += found
        count += 1
        if not found:
            ignored.append(export.name(signal))
    return Read(items, count, ignored)
