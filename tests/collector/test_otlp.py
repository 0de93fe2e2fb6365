"""The rules of an OTLP receiver, O1 to O12, against a real server; and what each dialect's signals become."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import zstandard
from fastapi.testclient import TestClient
from google.rpc.status_pb2 import Status
from hypothesis import given
from hypothesis import settings as bounded
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.access.guard import Guard
from collector.access.keys import Keyring, add_key
from collector.app import create_app
from collector.counted import Counted
from collector.hooks.payload import Known
from collector.identity import claude_call, claude_typed
from collector.otlp import genai
from collector.otlp.export import LOGS, METRICS, TRACES, Export, read_body
from collector.otlp.signals import LogRecord, Span
from collector.segments import Lines
from collector.service import Collector
from cowpath.errors import Undecodable
from cowpath.event import Event, Rejected
from cowpath.settings import Settings

KNOWN = Known(now=datetime(2026, 11, 30, 12, tzinfo=UTC))
JSON = "application/json"
PROTOBUF = "application/x-protobuf"
ROUTES = ("/v1/logs", "/v1/traces", "/v1/metrics")


def pair(key: str, value: object) -> dict[str, Any]:
    kind = {bool: "boolValue", int: "intValue", float: "doubleValue"}.get(type(value), "stringValue")
    return {"key": key, "value": {kind: value}}


def log(session: str, n: int = 1, **attributes: object) -> dict[str, Any]:
    """A record of a Skill call by the model, the n-th of its session; keyword ``a__b`` is the attribute ``a.b``."""
    told: dict[str, object] = {
        "event.name": "tool_result",
        "session.id": session,
        "event.sequence": n,
        "tool_name": "Skill",
        "tool_use_id": f"toolu_{session}_{n}",
        "success": "true",
        "duration_ms": "4",
        "tool_input": json.dumps({"skill": "plan"}),
    } | {name.replace("__", "."): value for name, value in attributes.items()}
    return {
        "timeUnixNano": str(1788627197374000000 + n * 10**9),
        "attributes": [pair(k, v) for k, v in told.items() if v is not None],
    }


def logs(*records: dict[str, Any]) -> dict[str, Any]:
    service = {"attributes": [pair("service.name", "claude-code"), pair("service.version", "2.1.248")]}
    return {"resourceLogs": [{"resource": service, "scopeLogs": [{"logRecords": [*records]}]}]}


def span(session: str, n: int = 1, **attributes: object) -> dict[str, Any]:
    told: dict[str, object] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "load_skill",
        "gen_ai.skill.name": "plan",
        "gen_ai.conversation.id": session,
    } | {name.replace("__", "."): value for name, value in attributes.items()}
    return {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": f"{n:016x}",
        "startTimeUnixNano": str(1788627189374000000 + n * 10**9),
        "endTimeUnixNano": str(1788627189374000000 + n * 10**9 + 2_000_000),
        "attributes": [pair(k, v) for k, v in told.items() if v is not None],
    }


def traces(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": [*spans]}]}]}


def protobuf_of(document: dict[str, Any]) -> bytes:
    """A logs request in protobuf; it has no ids, whose JSON differs from protobuf's own."""
    from google.protobuf.json_format import ParseDict

    return ParseDict(document, ExportLogsServiceRequest()).SerializeToString()


def read(export: Export, document: dict[str, Any]) -> list[Any]:
    return read_body(export, json.dumps(document).encode(), KNOWN, protobuf=False).items


def the_event(items: list[Any]) -> Event:
    (item,) = items
    assert isinstance(item, Event)
    return item


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server."""
    home = tmp_path_factory.mktemp("otlp") / "home"
    server = subprocess.Popen(
        [sys.executable, "-m", "cowpath", "up", "--home", str(home), "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"COWPATH_PUBLISH_EVERY_S": "0", "COWPATH_MAX_OTLP_BYTES": "100000"},
    )
    assert server.stdout is not None
    yield json.loads(server.stdout.readline())["url"]
    server.terminate()
    server.wait(timeout=30)
    server.stdout.close()


def post(url: str, path: str, document: object, kind: str = JSON, **headers: str) -> httpx.Response:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(url + path, content=body, headers={"Content-Type": kind, **named}, trust_env=False)


def kept(url: str, session: str, columns: str = "skill") -> list[Any]:
    """What analysts see of a session, in order."""
    query = {
        "sql": f"select {columns} from events where session_id = $session order by seq, called_at",
        "parameters": {"session": session},
    }
    for _ in range(100):
        rows: list[Any] = httpx.post(url + "/v1/sql", json=query, trust_env=False).json()["rows"]
        if rows:
            break
    return [row[0] if len(row) == 1 else tuple(row) for row in rows]


def status_of(answer: Any) -> dict[str, Any]:  # the responses of httpx and of the test client have no common type
    """A google.rpc.Status in whichever encoding it came."""
    if answer.headers["content-type"] == PROTOBUF:
        found = Status.FromString(answer.content)
        return {"code": found.code, "message": found.message}
    return dict(answer.json())


def wait_for(go: threading.Event) -> None:
    assert go.wait(30)


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("kind", [JSON, PROTOBUF, "application/json; charset=utf-8"])
def test_o1_one_port_takes_both_encodings_of_all_three_signals(url: str, path: str, kind: str) -> None:
    assert post(url, path, b"", kind).status_code == 200


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("kind", ["text/plain", "application/x-ndjson", ""])
def test_o1_another_content_type_is_415(url: str, path: str, kind: str) -> None:
    answer = post(url, path, b"{}", kind)

    assert answer.status_code == 415
    assert "is not OTLP" in status_of(answer)["message"]


def test_o2_the_response_has_the_type_of_the_request_and_its_status_is_200(url: str) -> None:
    document = logs(log("o2"))

    in_json, in_protobuf = post(url, "/v1/logs", document), post(url, "/v1/logs", protobuf_of(document), PROTOBUF)

    assert (in_json.status_code, in_json.headers["content-type"]) == (200, JSON)
    assert (in_protobuf.status_code, in_protobuf.headers["content-type"]) == (200, PROTOBUF)
    assert kept(url, "o2") == ["plan"]


@pytest.mark.parametrize("document", [{}, {"resourceLogs": []}, logs(), logs(log("o3"))])
def test_o3_full_success_leaves_partial_success_unset(url: str, document: dict[str, Any]) -> None:
    assert post(url, "/v1/logs", document).content == b"{}"
    assert post(url, "/v1/logs", protobuf_of(document), PROTOBUF).content == b""


def test_o4_partial_success_counts_what_was_refused_and_keeps_the_rest(url: str) -> None:
    hidden = log("o4", 2, event__name="skill_activated", skill__name="custom_skill")
    nameless = log("", 3)
    document = logs(log("o4", 1), hidden, nameless, log("o4", 4, event__name="api_request"))

    answer = post(url, "/v1/logs", document)

    told = answer.json()["partialSuccess"]
    assert (answer.status_code, told["rejectedLogRecords"]) == (200, "2")
    assert told["errorMessage"].startswith("2 of 4 log records rejected.")
    assert "OTEL_LOG_TOOL_DETAILS=1" in told["errorMessage"]
    response = ExportLogsServiceResponse.FromString(post(url, "/v1/logs", protobuf_of(document), PROTOBUF).content)
    assert response.partial_success.rejected_log_records == 2
    assert kept(url, "o4") == ["plan"]


def test_o4_each_signal_names_what_it_refused(url: str, samples: Path) -> None:
    counter = json.loads((samples / "otlp" / "codex_skill_injected_metrics.otlp.json").read_text())
    point = counter["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["sum"]["dataPoints"][0]
    point["attributes"] = [pair("skill", "third-party")]

    spans = post(url, "/v1/traces", traces(span("o4-spans", gen_ai__skill__name="custom_skill"))).json()
    points = post(url, "/v1/metrics", counter).json()

    assert spans["partialSuccess"]["rejectedSpans"] == "1"
    assert points["partialSuccess"]["rejectedDataPoints"] == "1"
    assert "unnamed_skill" in points["partialSuccess"]["errorMessage"]


@pytest.mark.parametrize("path", ROUTES)
def test_o5_what_cannot_be_decoded_is_400_with_a_status_in_the_requests_type(url: str, path: str) -> None:
    for body, kind in ((b"{", JSON), (b"[]", JSON), (b"\xff\xff\xff", PROTOBUF)):
        answer = post(url, path, body, kind)
        assert (answer.status_code, answer.headers["content-type"]) == (400, kind)
        assert status_of(answer)["code"] == 3
        assert "is not OTLP" in status_of(answer)["message"]
    broken = post(url, path, b"no gzip", PROTOBUF, Content_Encoding="gzip")
    assert (broken.status_code, broken.headers["content-type"]) == (400, PROTOBUF)


def test_o5_errors_before_the_handler_are_a_status_too(settings: Settings) -> None:
    collector_key = add_key(settings.at, "agents", ["ingest"], rate=1)
    reader_key = add_key(settings.at, "readers", ["read"])
    with Collector(settings) as collector:
        guarded = Guard(create_app(settings, collector), Keyring(settings.at), loopback=True)
        with TestClient(guarded) as web:

            def asked(key: str = "", method: str = "POST", kind: str = PROTOBUF) -> tuple[int, int, str]:
                headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {key}"} if key else {})
                answer = web.request(method, "/v1/logs", content=b"", headers=headers)
                assert answer.status_code != 429 or int(answer.headers["Retry-After"]) >= 1
                return answer.status_code, status_of(answer)["code"], answer.headers["content-type"]

            assert asked() == (401, 16, PROTOBUF)
            assert asked("cow_wrong", kind=JSON) == (401, 16, JSON)
            assert asked(reader_key) == (403, 7, PROTOBUF)
            assert web.post(
                "/v1/logs", headers={"Content-Type": PROTOBUF, "Authorization": f"Bearer {collector_key}"}
            ).status_code == 200  # fmt: skip
            assert asked(collector_key) == (429, 8, PROTOBUF)


def test_o5_another_method_is_405_and_says_which_is_taken(url: str) -> None:
    answer = httpx.get(url + "/v1/logs", trust_env=False)

    assert (answer.status_code, answer.headers["allow"], status_of(answer)["code"]) == (405, "POST", 12)


def test_o6_overload_is_503_with_retry_after_and_nothing_is_stored(settings: Settings) -> None:
    """Reports 25 and 26: never a 500, never a 200 that hides it."""
    go = threading.Event()
    small = replace(settings, max_pending_bytes=3000)
    with (
        Collector(small, sync=lambda handle: wait_for(go)) as collector,
        TestClient(create_app(small, collector)) as web,
    ):
        first = collector.journal.append(Lines(b" " * 2900 + b"\n"))
        answers = [
            web.post("/v1/logs", content=json.dumps(logs(log("o6"))), headers={"Content-Type": JSON}),
            web.post("/v1/logs", content=protobuf_of(logs(log("o6"))), headers={"Content-Type": PROTOBUF}),
        ]
        other = web.post("/v1/logs", json=logs(log("o6", event__name="api_request")))

        for answer in answers:
            assert answer.status_code == 503
            assert int(answer.headers["Retry-After"]) >= 1
            assert status_of(answer)["code"] == 14
        assert other.status_code == 200, "what holds no call needs no room"
        go.set()
        first.result(30)
        assert web.post("/v1/logs", json=logs(log("o6"))).content == b"{}"
        collector.flush()
        assert collector.counts()["events"] == 1


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("zstd", zstandard.ZstdCompressor().compress), ("deflate", zlib.compress)],
)
def test_o7_packed_bodies_are_taken_up_to_a_limit_that_holds_after_unpacking(
    url: str, encoding: str, pack: Any
) -> None:
    body, bomb = protobuf_of(logs(log(f"o7-{encoding}"))), b"\x00" * 200_000

    assert post(url, "/v1/logs", pack(body), PROTOBUF, Content_Encoding=encoding).status_code == 200
    assert kept(url, f"o7-{encoding}") == ["plan"]
    answer = post(url, "/v1/logs", pack(bomb), PROTOBUF, Content_Encoding=encoding)
    assert len(pack(bomb)) < 2_000
    assert (answer.status_code, answer.headers["content-type"]) == (413, PROTOBUF)
    assert post(url, "/v1/logs", bomb, PROTOBUF).status_code == 413
    assert post(url, "/v1/logs", body, PROTOBUF, Content_Encoding="br").status_code == 415


def test_o7_the_limit_is_64_mib_and_a_response_stays_small(url: str) -> None:
    assert Settings().max_otlp_bytes == 64 * 2**20
    hidden = [log("o7", n, event__name="skill_activated", skill__name="custom_skill") for n in range(100)]

    assert len(post(url, "/v1/logs", logs(*hidden)).content) < 2_000


def test_o8_ids_are_hex_in_any_case_and_unknown_fields_are_passed_over(url: str, samples: Path) -> None:
    upper = json.loads((samples / "otlp" / "traces_unknown_fields_and_upper_hex.otlp.json").read_text())
    lower = json.loads(json.dumps(upper).replace("5B8EFFF798038103D269B633813FC60C", "5b8efff798038103d269b633813fc60c")
                       .replace("EEE19B7EC3C1B174", "eee19b7ec3c1b174"))  # fmt: skip

    assert post(url, "/v1/traces", upper).content == b"{}"
    assert post(url, "/v1/traces", lower).content == b"{}"

    assert kept(url, "c1") == ["code-review"]


def test_o8_numbers_may_be_text_enumerations_are_numbers_and_keys_are_lower_camel() -> None:
    span_ = span("o8")
    as_text, as_number = (
        the_event(read(TRACES, traces(span_))),
        the_event(read(TRACES, traces(span_ | {"startTimeUnixNano": int(span_["startTimeUnixNano"])}))),
    )
    failed = the_event(read(TRACES, traces(span_ | {"status": {"code": 2}})))
    by_name = the_event(read(TRACES, traces(span_ | {"status": {"code": "STATUS_CODE_ERROR"}})))

    assert as_text == as_number
    assert (failed.outcome, by_name.outcome) == ("error", "ok")
    assert read(TRACES, {"resource_spans": traces(span_)["resourceSpans"]}) == []
    sequence = log("o8")
    for value in (7, "7", 7.0):
        sequence["attributes"][2] = {"key": "event.sequence", "value": {"intValue": value}}
        assert the_event(read(LOGS, logs(sequence))).seq == 7


def test_o8_base64_ids_are_none_and_a_span_without_any_id_is_refused() -> None:
    (item,) = read(TRACES, traces(span("o8") | {"spanId": "7uGbfsPBsXQ=", "traceId": "W47/95gDgQPSabYzgT/GDA=="}))

    assert isinstance(item, Rejected)
    assert (item.code, item.field) == ("missing_field", "spanId")


def test_o9_delivery_again_stores_nothing_twice(url: str) -> None:
    seen = log("o9", 3, event__name="skill_activated", skill__name="lone", invocation_trigger="nested-skill")
    for _ in range(3):
        assert post(url, "/v1/logs", logs(log("o9", 1), log("o9", 1), seen, seen)).content == b"{}"
        assert post(url, "/v1/traces", traces(span("o9-spans", 1), span("o9-spans", 1))).content == b"{}"

    assert kept(url, "o9") == ["plan", "lone"]
    assert kept(url, "o9-spans") == ["plan"]


def test_o9_a_sequence_that_begins_again_in_a_resumed_session_is_no_repeat() -> None:
    first = log("o9", 1, event__name="skill_activated", skill__name="a", prompt__id="p1")
    resumed = log("o9", 1, event__name="skill_activated", skill__name="b", prompt__id="p2")

    assert len({item.event_id for item in read(LOGS, logs(first, resumed))}) == 2


@pytest.mark.parametrize("path", ROUTES)
def test_o10_what_tells_of_no_skill_is_accepted_and_counted_as_ignored(url: str, path: str, samples: Path) -> None:
    name = {"/v1/logs": "logs", "/v1/traces": "trace", "/v1/metrics": "metrics"}[path]
    example = (samples / "otlp" / f"otlp_proto_example_{name}.json").read_bytes()
    before = ignored(url)

    answer = post(url, path, example)

    assert (answer.status_code, answer.content) == (200, b"{}")
    assert ignored(url) > before


def ignored(url: str) -> int:
    counts: dict[str, int] = httpx.get(url + "/v1/status", trust_env=False).json()["since_start"]["ignored"]
    return counts.get("otlp", 0)


def test_o11_chunked_bodies_kept_alive_connections_and_many_at_once(url: str) -> None:
    def send(n: int) -> int:
        place = urlsplit(url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
        for m in range(5):
            body = json.dumps(logs(log("o11", 5 * n + m))).encode()
            connection.putrequest("POST", "/v1/logs")
            connection.putheader("Content-Type", JSON)
            connection.putheader("Transfer-Encoding", "chunked")
            connection.endheaders()
            for piece in (body[:50], body[50:], b""):
                connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            answer = connection.getresponse()
            assert answer.read() == b"{}"
            assert answer.getheader("connection") != "close"
        connection.close()
        return 5

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(send, range(8))) == 40
    for _ in range(100):
        if len(found := kept(url, "o11", "event_id")) == 40:
            break
    assert len(set(found)) == 40


@pytest.mark.parametrize("success", ["true", "True", True])
@pytest.mark.parametrize("duration", ["4", 4, 4.0])
@pytest.mark.parametrize("sequence", ["7", 7])
def test_o12_attributes_are_cast_leniently(success: object, duration: object, sequence: object) -> None:
    event = the_event(read(LOGS, logs(log("o12", success=success, duration_ms=duration, event__sequence=sequence))))

    assert (event.outcome, event.duration_ms, event.seq) == ("ok", 4.0, 7)


def test_o12_an_attribute_of_a_wrong_type_costs_only_itself() -> None:
    odd = log("o12", success=3.5, duration_ms="soon", event__sequence="first", prompt__id=True)
    event = the_event(read(LOGS, logs(odd)))

    assert (event.skill, event.outcome, event.duration_ms, event.seq) == ("plan", "unknown", None, None)


@pytest.mark.data
@pytest.mark.parametrize(("name", "export"), [("python_sdk_logs", LOGS), ("python_sdk_traces", TRACES)])
def test_the_same_bytes_in_protobuf_gzip_and_json_are_the_same_items(samples: Path, name: str, export: Export) -> None:
    plain = (samples / "otlp" / f"{name}.pb").read_bytes()
    assert gzip.decompress((samples / "otlp" / f"{name}.pb.gz").read_bytes()) == plain

    from_protobuf = read_body(export, plain, KNOWN, protobuf=True)
    from_json = read_body(export, (samples / "otlp" / f"{name}.otlp.json").read_bytes(), KNOWN, protobuf=False)

    assert from_protobuf == from_json
    assert len(from_protobuf.items) == {"python_sdk_logs": 4, "python_sdk_traces": 3}[name]


@pytest.mark.data
def test_the_sdks_spans_are_calls_in_the_order_they_began(samples: Path) -> None:
    items = read_body(TRACES, (samples / "otlp" / "python_sdk_traces.pb").read_bytes(), KNOWN, protobuf=True).items
    events = [item for item in items if isinstance(item, Event)]

    assert [(e.session_id, e.skill, e.outcome, e.agent, e.agent_version) for e in events] == [
        ("conv-0001", "log-parser", "ok", "coder", "1.0.0"),
        ("conv-0001", "pdf-processing", "ok", "coder", "1.0.0"),
        ("conv-0001", "report-writer", "error", "coder", "1.0.0"),
    ]
    assert [e.called_at for e in events] == sorted(e.called_at for e in events if e.called_at)
    assert events[0].called_at == datetime(2026, 11, 30, 21, 13, 28, 733718, tzinfo=UTC)


@pytest.mark.data
def test_one_call_of_claude_code_is_two_records_and_one_published_call(samples: Path, collector: Collector) -> None:
    unredacted = (samples / "otlp" / "claude_code_logs_unredacted.otlp.json").read_bytes()
    collector.take_in(read_body(LOGS, unredacted, KNOWN, protobuf=False).items)
    collector.flush()

    rows = collector.live.query(
        "select event_id, skill, trigger, outcome from events order by seq", limit=9, timeout_s=9
    )

    assert rows.to_pylist()[0]["event_id"] == claude_call("toolu_0177MY213CpRRgevFDEhttcf")
    assert [(r["skill"], r["trigger"], r["outcome"]) for r in rows.to_pylist()] == [
        ("probe-local", "agent", "ok"), ("probekit:probe-plugin", "nested", "unknown"),
    ]  # fmt: skip


@pytest.mark.data
def test_report_4_hidden_names_are_counted_as_unnamed_and_never_become_skills(
    samples: Path, collector: Collector
) -> None:
    """And 5: custom_skill on skill_activated, third-party on api_request."""
    redacted = (samples / "otlp" / "claude_code_logs_redacted.otlp.json").read_bytes()

    receipt = collector.take_in(read_body(LOGS, redacted, KNOWN, protobuf=False).items)
    collector.flush()

    assert (receipt.accepted, receipt.rejected, receipt.errors[0].code) == (0, 1, "unnamed_skill")
    rows = collector.live.query("select placeholder, source, agent from unnamed_calls", limit=9, timeout_s=9)
    assert rows.to_pylist() == [{"placeholder": "custom_skill", "source": "claude-otel", "agent": "claude-code"}]


def test_report_5_a_plugin_hidden_from_telemetry_keeps_its_hash_and_its_hook_names_the_call(
    collector: Collector,
) -> None:
    """``third-party`` has no switch; the tool's own id joins what the hook saw, the hash says which plugin it was."""
    cost = log("s", event__name="api_request", skill__name="third-party")
    hidden = log("s", 2, event__name="skill_activated", skill__name="third-party", plugin_id_hash="0123456789abcdef")

    assert read(LOGS, logs(cost)) == []
    collector.take_in(read(LOGS, logs(hidden)))
    collector.flush()

    letters = collector.live.query("select code, body from rejected", limit=9, timeout_s=30).to_pylist()
    assert [letter["code"] for letter in letters] == ["unnamed_skill"]
    assert json.loads(letters[0]["body"])["extra"]["plugin_id_hash"] == "0123456789abcdef"
    assert claude_call("toolu_s_1") == the_event(read(LOGS, logs(log("s")))).event_id


@pytest.mark.data
def test_records_out_of_order_are_ordered_by_their_sequence(samples: Path, collector: Collector) -> None:
    late = (samples / "otlp" / "claude_code_logs_out_of_order.otlp.json").read_bytes()
    collector.take_in(read_body(LOGS, late, KNOWN, protobuf=False).items)
    collector.flush()

    rows = collector.live.query("select skill_id, next_skill_id, n from transitions", limit=9, timeout_s=9)

    assert rows.to_pylist() == [{"skill_id": "a", "next_skill_id": "b", "n": 1}]


def test_report_3_a_typed_skill_has_the_id_that_its_hook_derives() -> None:
    """Typed skills have no tool_result."""
    typed = log("s", event__name="claude_code.skill_activated", invocation_trigger="user-slash", skill__name="deploy",
                prompt__id="p1")  # fmt: skip

    event = the_event(read(LOGS, logs(typed)))

    assert (event.event_id, event.trigger, event.kind) == (claude_typed("s", "p1", "deploy"), "user", "activated")


def test_a_preloaded_skill_is_no_call() -> None:
    loaded = log("s", event__name="skill_activated", invocation_trigger="agent-preload", skill__name="deploy")

    assert the_event(read(LOGS, logs(loaded))).kind == "preloaded"


def test_a_rejected_call_is_denied() -> None:
    decision = log("s", event__name="tool_decision", decision="reject", success=None)

    event = the_event(read(LOGS, logs(decision)))

    assert (event.outcome, event.event_id) == ("denied", claude_call("toolu_s_1"))
    assert read(LOGS, logs(log("s", event__name="tool_decision", decision="accept"))) == []


def test_report_8_a_tool_result_without_a_name_is_passed_over_but_counted_where_nothing_else_says_it() -> None:
    """Cowork cannot say which skill ran."""
    hidden = log("s", tool_input=None)
    cowork = logs(hidden)
    cowork["resourceLogs"][0]["resource"]["attributes"] = [pair("service.name", "cowork")]

    assert read(LOGS, logs(hidden)) == []
    assert (the_event(read(LOGS, cowork)).skill, the_event(read(LOGS, cowork)).agent) == ("custom_skill", "cowork")


def test_people_stay_out_and_the_actor_is_the_header_or_the_user_id() -> None:
    record = log("s", user__id="u-1", user__email="dev@example.com", organization__id="org-1", tool_input=json.dumps(
        {"skill": "plan", "args": "my secret"}))  # fmt: skip

    event = the_event(read(LOGS, logs(record)))
    named = read_body(LOGS, json.dumps(logs(record)).encode(), replace(KNOWN, actor="ada"), protobuf=False).items

    assert event.actor == "u-1"
    assert the_event(named).actor == "ada"
    assert not any(word in repr(event) for word in ("dev@example.com", "org-1", "my secret"))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "kind", "outcome"),
    [("genai_read_skill_resource_span_attrs", "resource_read", "ok"), ("genai_command_span_attrs", "outcome", "error")],
)
def test_only_loading_a_skill_is_a_call(samples: Path, name: str, kind: str, outcome: str) -> None:
    told = json.loads((samples / "otlp" / f"{name}.json").read_text())
    span_ = Span(attributes=told["attributes"], name=told["name"], time_ns=1, end_ns=2, trace_id="t", span_id="s")

    event = the_event(genai.read(span_, KNOWN))

    assert (event.skill, event.kind, event.outcome) == ("code-review", kind, outcome)
    assert "file:///" not in repr(event)


@pytest.mark.data
def test_openinference_names_the_skill_in_its_tools_parameters(samples: Path) -> None:
    told = json.loads((samples / "otlp" / "openinference_tool_span_attrs.json").read_text())

    event = the_event(genai.read(Span(attributes=told, time_ns=1, end_ns=2, trace_id="t", span_id="s"), KNOWN))

    assert (event.skill, event.session_id, event.actor, event.kind) == ("code-review", "s-1", "u-1", "activated")
    assert genai.read(Span(attributes=told | {"openinference.span.kind": "LLM"}, span_id="s"), KNOWN) == []


@pytest.mark.parametrize("name", ["agento11y.skill.name", "skill.name", "gen_ai.skill.id"])
def test_other_names_of_the_attribute_are_taken(name: str) -> None:
    aliased = span("s", gen_ai__skill__name=None)
    aliased["attributes"].append(pair(name, "plan"))

    assert the_event(read(TRACES, traces(aliased))).skill == "plan"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("load_skill", {"skill_name": "plan"}),
        ("skills", {"name": "plan"}),
        ("get_skill_instructions", {"skill": "plan"}),
    ],
)
def test_tools_that_load_skills_name_them_in_their_arguments(tool: str, given: dict[str, str]) -> None:
    loading = span("s", gen_ai__skill__name=None, gen_ai__tool__name=tool,
                   gen_ai__tool__call__arguments=json.dumps(given))  # fmt: skip

    assert the_event(read(TRACES, traces(loading))).skill == "plan"
    assert read(TRACES, traces(span("s", gen_ai__skill__name=None, gen_ai__tool__name="bash"))) == []


def test_a_skill_that_is_merely_active_in_another_span_is_no_call() -> None:
    assert read(TRACES, traces(span("s", gen_ai__operation__name="chat"))) == []
    assert read(TRACES, traces(span("s", gen_ai__operation__name="invoke_agent"))) == []


def test_a_span_is_known_by_its_call_id_else_by_trace_and_span() -> None:
    def id_of(**changes: Any) -> str:
        attributes = {k: v for k, v in changes.items() if "__" in k}
        return the_event(read(TRACES, traces(span("s", changes.get("n", 1), **attributes)))).event_id

    assert id_of(n=1) != id_of(n=2)
    assert id_of(n=1, gen_ai__tool__call__id="call_1") == id_of(n=2, gen_ai__tool__call__id="call_1")
    assert id_of(gen_ai__tool__call__id="toolu_1") == claude_call("toolu_1")


def test_a_span_without_a_conversation_belongs_to_its_trace_and_a_subagent_to_its_own_stream() -> None:
    alone = the_event(read(TRACES, traces(span("s", gen_ai__conversation__id=None))))
    helper = the_event(
        read(TRACES, traces(span("s", gen_ai__main_agent__name="coder", gen_ai__agent__name="reviewer")))
    )

    assert alone.session_id == "5b8efff798038103d269b633813fc60c"
    assert (helper.stream_id, helper.agent) == ("reviewer", "reviewer")


def test_the_skills_an_agent_could_have_used_are_exposed_once_a_session() -> None:
    listing = json.dumps(["plan", {"name": "review"}, "plan"])
    chat = [
        span("s", n, gen_ai__operation__name="chat", langfuse__observation__skills_available=listing) for n in (1, 2)
    ]

    items = [item for item in read(TRACES, traces(*chat)) if isinstance(item, Event)]

    assert [(e.skill, e.kind) for e in items] == [("plan", "exposed"), ("review", "exposed")] * 2
    assert len({e.event_id for e in items}) == 2


@pytest.mark.data
def test_geminis_log_is_one_call_with_its_hook(samples: Path) -> None:
    told = json.loads((samples / "gemini_cli" / "tool_call_log_attrs.json").read_text())
    record = {"timeUnixNano": "1788627197374000000", "attributes": [pair(k, v) for k, v in told.items()]}

    event = the_event(read(LOGS, {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}))

    assert (event.skill, event.session_id, event.outcome, event.source) == ("pdf", "s-1", "ok", "gemini-log")
    assert event.called_at == datetime(2026, 9, 5, 16, 53, 17, 374000, tzinfo=UTC)


@pytest.mark.data
def test_report_9_codex_counts_are_popularity_once_and_no_call(samples: Path, collector: Collector) -> None:
    """A counter names no session."""
    body = (samples / "otlp" / "codex_skill_injected_metrics.otlp.json").read_bytes()
    for _ in range(2):
        collector.take_in(read_body(METRICS, body, KNOWN, protobuf=False).items)
    later = json.loads(body)
    point = later["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["sum"]["dataPoints"][0]
    point |= {"timeUnixNano": "1788627259000000000", "asInt": 3}
    collector.take_in(read(METRICS, later))
    collector.flush()

    counts = collector.live.query("select skill_id, agent, uses, uses_by_users from skill_counts", limit=9, timeout_s=9)
    calls = collector.live.query("select count(*) as n from events", limit=9, timeout_s=9)

    assert counts.to_pylist() == [{"skill_id": "code-review", "agent": "codex", "uses": 5, "uses_by_users": 5}]
    assert calls.to_pylist() == [{"n": 0}]


def test_later_points_of_a_cumulative_counter_hold_the_earlier_ones(collector: Collector) -> None:
    def counted(n: int, *, began: int = 1, series: str = "a") -> Counted:
        return Counted(count_id=f"{series}{began}{n}", series=series, skill="plan", n=n, cumulative=True,
                       began_at=datetime(2026, 11, began, tzinfo=UTC), agent="codex")  # fmt: skip

    # One process counts to 5 and begins anew with 2, another counts to 4.
    collector.take_in([counted(5), counted(3), counted(2, began=2), counted(4, series="b")])
    collector.flush()

    uses = collector.live.query("select uses from skill_counts", limit=9, timeout_s=9)
    assert uses.to_pylist() == [{"uses": 11}]


def test_counts_survive_a_restart_and_an_erased_actor_takes_its_own_along(settings: Settings) -> None:
    from collector.erase import erase

    ours = Counted(count_id="1", series="a", skill="plan", n=2, actor="ada")
    theirs = Counted(count_id="2", series="b", skill="plan", n=3, actor="bob")
    with Collector(settings) as collector:
        collector.take_in([ours, theirs])
    with Collector(settings) as collector:
        assert erase(collector, "actor", "ada")["removed"] == {"counted": 1}
        assert collector.take_in([ours]).errors[0].code == "erased"
        assert collector.cursor().rows("select count_id, n from counted") == [("2", 3)]


def test_a_metric_that_is_no_monotonic_sum_or_counts_nothing_is_ignored() -> None:
    gauge = {"name": "codex.skill.injected", "gauge": {"dataPoints": [{"asInt": 3}]}}
    empty = {"name": "codex.skill.injected", "sum": {"isMonotonic": True, "dataPoints": [{"asInt": 0}]}}

    assert read(METRICS, {"resourceMetrics": [{"scopeMetrics": [{"metrics": [gauge, empty]}]}]}) == []
    assert ExportMetricsServiceResponse().SerializeToString() == b""


def test_half_a_character_costs_no_batch() -> None:
    body = json.dumps(logs(log("s", prompt__id="p\ud83d"), log("s", 2))).encode()

    assert len(read_body(LOGS, body, KNOWN, protobuf=False).items) == 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["attributes", "key", "value", "stringValue", "intValue", "kvlistValue", "arrayValue", "values", "status",
             "traceId", "timeUnixNano", "event.name", "sum", "dataPoints", "isMonotonic", "asInt", "name"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@bounded(max_examples=150, deadline=None)
@given(found=json_values, body=st.binary(max_size=60))
def test_whatever_is_sent_is_read_or_undecodable(found: Any, body: bytes) -> None:
    frames = [("resourceLogs", "scopeLogs", "logRecords"), ("resourceSpans", "scopeSpans", "spans"),
              ("resourceMetrics", "scopeMetrics", "metrics")]  # fmt: skip
    for export, (outer, middle, inner) in zip((LOGS, TRACES, METRICS), frames, strict=True):
        near = {outer: [{"resource": found, middle: [{"scope": found, inner: found}]}]}
        for protobuf, content in ((False, json.dumps(near).encode()), (False, body), (True, body)):
            try:
                result = read_body(export, content, KNOWN, protobuf=protobuf)
            except Undecodable:
                continue
            assert len(result.ignored) <= result.signals


@bounded(max_examples=100, deadline=None)
@given(values=st.dictionaries(st.sampled_from(sorted({*genai.NAMES, *genai.TOOL_NAMES, *genai.CALL_IDS, *genai.GIVEN,
    genai.AVAILABLE, "event.name", "success", "event.sequence", "duration_ms", "session.id", "prompt.id"})),
    json_values))  # fmt: skip
def test_attributes_of_any_kind_never_break_a_reader(values: dict[str, Any]) -> None:
    genai.read(Span(attributes=values, trace_id="t", span_id="s"), KNOWN)
    for name in ("skill_activated", "tool_result", "tool_decision"):
        for skill in ({}, {"tool_name": "Skill", "skill.name": "plan"}):
            told = values | skill | {"event.name": name}
            LOGS.items(LogRecord(attributes=told, resource={"service.name": "claude-code"}), KNOWN)


def test_an_empty_request_in_protobuf_is_read() -> None:
    assert read_body(TRACES, ExportTraceServiceRequest().SerializeToString(), KNOWN, protobuf=True).signals == 0
