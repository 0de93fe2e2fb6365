"""A real OpenTelemetry SDK delivers to a real collector, over a socket, also while that is overloaded."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
import uvicorn
from google.protobuf import json_format
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

from collector.access.guard import Guard
from collector.access.keys import Keyring, add_key
from collector.app import create_app
from collector.segments import Lines
from collector.service import Collector
from cowpath.settings import Settings

RESOURCE = Resource.create({"service.name": "demo-agent", "service.version": "1.0.0"})
CLAUDE = Resource.create({"service.name": "claude-code", "service.version": "2.1.248"})


@dataclass
class Running:
    url: str
    collector: Collector
    answers: dict[tuple[str, str, int], int]

    def calls(self, columns: str = "session_id, skill_id") -> list[tuple[Any, ...]]:
        self.collector.flush()
        rows = self.collector.live.query(
            f"select {columns} from skill_calls order by called_at", limit=99, timeout_s=30
        )
        return [tuple(row.values()) for row in rows.to_pylist()]


@contextmanager
def running(settings: Settings, **options: Any) -> Iterator[Running]:
    """A collector behind its guard on a port of this machine; ``options`` are the collector's."""
    with Collector(settings, **options) as collector, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        app = create_app(settings, collector)
        guarded = Guard(app, Keyring(settings.at), loopback=True)
        server = uvicorn.Server(uvicorn.Config(guarded, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Running(f"http://127.0.0.1:{listener.getsockname()[1]}", collector, app.state.answers)
        finally:
            server.should_exit = True
            thread.join(30)


def run_agent(provider: TracerProvider, session: str) -> None:
    """An agent that loads two skills, one of which fails; children end, and are exported, before their parent."""
    tracer = provider.get_tracer("demo.instrumentation")
    with tracer.start_as_current_span("invoke_agent coder", attributes={"gen_ai.operation.name": "invoke_agent"}):
        for skill in ("log-parser", "report-writer"):
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "load_skill",
                          "gen_ai.skill.name": skill, "gen_ai.conversation.id": session}  # fmt: skip
            with tracer.start_as_current_span(f"execute_tool load_skill {skill}", attributes=attributes) as span:
                if skill == "report-writer":
                    span.set_status(Status(StatusCode.ERROR, "skill not found"))


def log_call(provider: LoggerProvider, session: str) -> None:
    """The two records of one call of Claude Code, and one of something else."""
    logger = provider.get_logger("com.anthropic.claude_code.events")
    common: dict[str, Any] = {"session.id": session, "prompt.id": "p1"}
    events: list[dict[str, Any]] = [
        {"event.name": "skill_activated", "event.sequence": 1, "skill.name": "plan",
         "invocation_trigger": "claude-proactive"},
        {"event.name": "tool_result", "event.sequence": 2, "tool_name": "Skill", "tool_use_id": f"toolu_{session}",
         "success": "true", "duration_ms": "4", "tool_input": '{"skill":"plan"}'},
        {"event.name": "api_request", "event.sequence": 3, "model": "m"},
    ]  # fmt: skip
    for event in events:
        logger.emit(
            LogRecord(
                timestamp=time.time_ns(),
                severity_number=SeverityNumber.INFO,
                body=f"claude_code.{event['event.name']}",
                attributes=common | event,
            )
        )


@pytest.mark.parametrize("compression", [Compression.Gzip, Compression.Deflate, Compression.NoCompression])
def test_spans_of_the_sdk_arrive(settings: Settings, compression: Compression) -> None:
    with running(settings) as at:
        provider = TracerProvider(resource=RESOURCE)
        exporter = OTLPSpanExporter(endpoint=f"{at.url}/v1/traces", compression=compression)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        run_agent(provider, "conv-1")
        provider.shutdown()

        assert at.calls("session_id, skill_id, outcome, agent, agent_version") == [
            ("conv-1", "log-parser", "ok", "demo-agent", "1.0.0"),
            ("conv-1", "report-writer", "error", "demo-agent", "1.0.0"),
        ]
        assert at.answers == {("POST", "/v1/traces", 200): 1}


@pytest.mark.parametrize("compression", [Compression.Gzip, Compression.NoCompression])
def test_log_records_of_the_sdk_arrive(settings: Settings, compression: Compression) -> None:
    with running(settings) as at:
        provider = LoggerProvider(resource=CLAUDE)
        exporter = OTLPLogExporter(endpoint=f"{at.url}/v1/logs", compression=compression)
        provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
        log_call(provider, "s1")
        provider.shutdown()

        assert at.calls("session_id, skill_id, outcome, duration_ms, agent_version") == [
            ("s1", "plan", "ok", 4.0, "2.1.248")
        ]


def test_counters_of_the_sdk_are_counts_however_often_they_are_exported(settings: Settings) -> None:
    with running(settings) as at:
        exporter = OTLPMetricExporter(endpoint=f"{at.url}/v1/metrics", compression=Compression.Gzip)
        provider = MeterProvider([PeriodicExportingMetricReader(exporter)], resource=RESOURCE)
        counter = provider.get_meter("codex_otel").create_counter("codex.skill.injected")
        for _ in range(3):
            counter.add(1, {"skill": "code-review", "invoke_type": "explicit", "status": "ok"})
            provider.force_flush()
        provider.shutdown()

        at.collector.flush()
        uses = at.collector.live.query("select skill_id, uses from skill_counts", limit=9, timeout_s=30)
        assert uses.to_pylist() == [{"skill_id": "code-review", "uses": 3}]
        assert at.calls() == []


def test_the_sdks_signals_in_json_are_the_same_calls(settings: Settings) -> None:
    """The SDK exports protobuf; its own encoding, in the JSON that the specification maps it to."""
    spans, records = InMemorySpanExporter(), InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # the SDK forgot to
    tracers, loggers = TracerProvider(resource=RESOURCE), LoggerProvider(resource=CLAUDE)
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
    run_agent(tracers, "conv-1")
    log_call(loggers, "s1")
    traces, logs = encode_spans(spans.get_finished_spans()), encode_logs(records.get_finished_logs())

    with running(settings) as at:
        for _ in range(2):
            for path, request in (("/v1/traces", traces), ("/v1/logs", logs)):
                in_json = post(at.url + path, json_of(request), "application/json")
                assert (in_json.status_code, in_json.content) == (200, b"{}")
        in_json_only = at.calls("event_id, session_id, skill_id, outcome, called_at, duration_ms")
        for path, request in (("/v1/traces", traces), ("/v1/logs", logs)):
            post(at.url + path, request.SerializeToString(), "application/x-protobuf")

        assert len(in_json_only) == 3
        assert at.calls("event_id, session_id, skill_id, outcome, called_at, duration_ms") == in_json_only


def post(url: str, body: bytes, kind: str) -> httpx.Response:
    return httpx.post(url, content=body, headers={"Content-Type": kind}, trust_env=False)


def json_of(request: Any) -> bytes:
    """OTLP's JSON: protobuf's mapping, but ids in hex and enumerations as numbers."""
    document = json_format.MessageToDict(request, use_integers_for_enums=True)
    return json.dumps(_in_hex(document)).encode()


def _in_hex(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_hex(item) for item in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {k: base64.b64decode(v).hex() if k in ids else _in_hex(v) for k, v in value.items()}


@pytest.mark.parametrize("signal", ["traces", "logs"])
def test_report_25_an_overloaded_collector_answers_503_and_the_sdks_retry_delivers_once(
    settings: Settings, signal: str
) -> None:
    """And 26, 27: the disk is slow, the queue full; nothing of the request is stored, and the retry brings it."""
    go = threading.Event()
    small = replace(settings, max_pending_bytes=4000)
    with running(small, sync=lambda handle: wait_for(go)) as at:
        filling = at.collector.journal.append(Lines(b" " * 3900 + b"\n"))
        path = f"/v1/{signal}"
        threading.Thread(target=release_after_a_refusal, args=(at, path, go)).start()

        if signal == "traces":
            tracers = TracerProvider(resource=RESOURCE)
            tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=at.url + path)))
            run_agent(tracers, "conv-1")
            tracers.force_flush()
            tracers.shutdown()
        else:
            loggers = LoggerProvider(resource=CLAUDE)
            loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint=at.url + path)))
            log_call(loggers, "s1")
            loggers.force_flush()
            loggers.shutdown()

        filling.result(30)
        assert at.answers["POST", path, 503] >= 1
        assert at.answers["POST", path, 200] == 1
        assert {code for _, _, code in at.answers} == {200, 503}
        expected = [("conv-1", "log-parser"), ("conv-1", "report-writer")] if signal == "traces" else [("s1", "plan")]
        assert at.calls() == expected


def release_after_a_refusal(at: Running, path: str, go: threading.Event) -> None:
    deadline = time.monotonic() + 20
    while not at.answers.get(("POST", path, 503)) and time.monotonic() < deadline:
        time.sleep(0.02)
    go.set()


def wait_for(go: threading.Event) -> None:
    assert go.wait(30)


def test_the_sdk_brings_its_key_and_its_actor_as_headers(settings: Settings) -> None:
    key = add_key(settings.at, "agents", ["ingest"])
    with running(settings) as at:
        headers = {"Authorization": f"Bearer {key}", "X-Cowpath-Actor": "ada"}
        provider = TracerProvider(resource=RESOURCE)
        provider.add_span_processor(
            BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{at.url}/v1/traces", headers=headers))
        )
        run_agent(provider, "conv-1")
        provider.shutdown()

        actors = {actor for (actor,) in at.calls("actor")}
        assert [actor[:2] for actor in actors] == ["h:"]


def test_a_key_that_is_wrong_loses_no_time_with_retries(settings: Settings) -> None:
    add_key(settings.at, "agents", ["ingest"])
    with running(settings) as at:
        provider = TracerProvider(resource=RESOURCE)
        exporter = OTLPSpanExporter(endpoint=f"{at.url}/v1/traces", headers={"Authorization": "Bearer cow_no"})
        provider.add_span_processor(BatchSpanProcessor(exporter))
        run_agent(provider, "conv-1")
        began = time.monotonic()
        provider.shutdown()

        assert time.monotonic() - began < 5
        assert at.calls() == []
