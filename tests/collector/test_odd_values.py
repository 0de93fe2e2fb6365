"""Values that are none: refused by name where they decide what the event is, kept and flagged where they do not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient

from collector.app import create_app
from collector.cloudevents import read_cloud_events
from collector.intake import admit
from collector.service import Collector
from collector.wire import read_events
from cowpath.event import Event, Rejected

NOW = datetime(2026, 12, 1, tzinfo=UTC)
GOOD = '"event_id":"e1","session_id":"s1","skill_id":"plan"'
FINE = "{" + GOOD.replace("e1", "e2") + "}"


def taken(raw: str, *, as_lines: bool = False) -> list[Any]:
    items = read_events(raw.encode(), as_lines=as_lines, limit=10, now=NOW)
    return [admit(item, secret=b"key", now=NOW) for item in items]


@pytest.fixture
def client(collector: Collector) -> Iterator[TestClient]:
    with TestClient(create_app(collector.settings, collector)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("field", "code", "name"),
    [
        ('"seq":NaN', "bad_value", "seq"),
        ('"seq":Infinity', "bad_value", "seq"),
        ('"seq":1e300', "bad_value", "seq"),
        ('"seq":9223372036854775808', "bad_value", "seq"),
        ('"seq":"' + "9" * 400 + '"', "bad_value", "seq"),
        ('"duration_ms":-0.5', "bad_value", "duration_ms"),
        ('"duration_ms":NaN', "bad_value", "duration_ms"),
        ('"duration_ms":1e999', "bad_value", "duration_ms"),
        ('"confidence":NaN', "bad_value", "confidence"),
        ('"agent":"half \\ud83d"', "bad_text", "agent"),
        ('"event_id":"half \\ud83d"', "bad_text", "event_id"),
        ('"skill_id":"pl\\u0000an"', "bad_text", "skill"),
        ('"session_id":"s\\u001b[31m"', "bad_text", "session_id"),
        ('"batch_id":"two\\nlines"', "bad_text", "batch_id"),
        ('"stream_id":"lost \\ufffd"', "bad_text", "stream_id"),
    ],
)
def test_what_an_event_cannot_do_with_is_refused_by_name_and_costs_only_its_item(
    field: str, code: str, name: str
) -> None:
    raw = "{" + GOOD + "," + field + "}"

    for items in (taken(f"[{raw},{FINE}]"), taken(f"{raw}\n{FINE}\n", as_lines=True)):
        refused, fine = items
        assert isinstance(refused, Rejected)
        assert (refused.code, refused.field) == (code, name)
        assert refused.event_id is None or refused.event_id.startswith(("e1", "half"))
        assert '"session_id":"s' in refused.body
        refused.body.encode()
        assert isinstance(fine, Event)
        assert fine.event_id == "e2"


@pytest.mark.parametrize(
    ("field", "extra", "clock"),
    [
        ('"called_at":NaN', {"called_at": "NaN"}, "none"),
        ('"ts":"nan"', {"ts": "nan"}, "none"),
        ('"called_at":1e300', {}, "future"),
        ('"called_at":-Infinity', {}, "ancient"),
        ('"called_at":1' + "0" * 400, {}, "future"),
        ('"ts":-1' + "0" * 400, {}, "ancient"),
        ('"note":"half \\ud83d"', {"note": "half \ufffd"}, "none"),
        ('"note":"whole \\ud83d\\ude00"', {"note": "whole \U0001f600"}, "none"),
        ('"note":"a\\u0000b"', {"note": "a\0b"}, "none"),
        ('"note":[NaN,{"half \\udc00":1}]', {"note": ["NaN", {"half \ufffd": 1}]}, "none"),
    ],
)
def test_what_an_event_can_do_without_is_kept_and_flagged(field: str, extra: dict[str, Any], clock: str) -> None:
    (event,) = taken("{" + GOOD + "," + field + "}")

    assert isinstance(event, Event)
    assert (event.extra, event.clock, event.seq) == (extra, clock, None)


def test_what_a_sender_refused_is_kept_also_from_a_batch_that_only_other_writers_call_json() -> None:
    letter = {"code": "torn_line", "message": "cut \ud83d"}
    raw = (
        f'{{"events":[{{{GOOD},"seq":NaN}},{FINE}],"rejected":[{json.dumps(letter)}],"sent_at":"2026-11-30T22:00:00Z"}}'
    )

    refused, fine, torn = taken(raw)

    assert (refused.code, torn.code, torn.message) == ("bad_value", "torn_line", "cut \ufffd")
    assert fine.extra["clock_skew_s"] == 7_200


def test_a_field_named_as_the_counts_of_a_batch_is_one_more_field_of_an_event(
    client: TestClient, collector: Collector
) -> None:
    def post(body: str) -> Any:
        return client.post("/v1/events", content=body, headers={"Content-Type": "application/json"})

    count = '{"count_id":"c1","series":"x","skill":"plan","n":3,"counted_at":"2026-11-30T12:00:00Z"}'
    assert post("{" + GOOD + ',"counted":5}').json()["accepted"] == 1
    mixed = post('{"events":[{' + GOOD.replace("e1", "e3") + ',"seq":NaN},' + FINE + f'],"counted":[{count}]}}').json()
    wrong = post('{"events":[' + FINE + '],"counted":5}')
    collector.flush()

    assert (mixed["accepted"], mixed["rejected"], wrong.status_code) == (2, 1, 422)
    assert collector.cursor().rows("select event_id, extra from events order by event_id") == [
        ("e1", '{"counted":5}'), ("e2", "{}"),
    ]  # fmt: skip
    assert collector.cursor().rows("select skill, n from counted") == [("plan", 3)]


def test_a_cloud_event_with_a_value_that_is_none_costs_only_itself() -> None:
    envelope = '"specversion":"1.0","source":"s","type":"t","subject":"plan"'
    raw = "[" + ",".join(
        f'{{{envelope},"id":"{n}","data":{{"session_id":"s1",{field}}}}}'
        for n, field in enumerate(['"seq":1', '"seq":NaN', '"agent":"\\ud83d"', '"x":' + "[" * 700 + "]" * 700])
    )  # fmt: skip

    items = read_cloud_events((raw + "]").encode(), as_batch=True, limit=10)

    assert [i.code if isinstance(i, Rejected) else i.seq for i in items] == [1, "bad_value", "bad_text", "too_deep"]


def test_a_hook_with_values_that_are_none_is_a_call_and_says_which_they_were(
    client: TestClient, collector: Collector
) -> None:
    body = (
        '{"hook_event_name":"PostToolUse","session_id":"s1","tool_name":"Skill","tool_use_id":"t1",'
        '"tool_input":{"skill":"plan"},"duration_ms":-4,"timestamp":NaN,"tool_response":"half \\ud83d"}'
    )

    assert client.post("/v1/hooks/claude-code", content=body).json() == {}
    collector.flush()

    stored = collector.cursor().rows("select skill, duration_ms, called_at, extra from events")
    assert stored == [("plan", None, None, '{"unreadable":["timestamp","duration_ms"]}')]


@pytest.mark.parametrize("session", ['"s\\ud83d"', '"s\\u0000"', '"\\u001b]0;s"'])
def test_a_hook_whose_ids_are_broken_is_a_dead_letter_and_not_another_session(
    client: TestClient, collector: Collector, session: str
) -> None:
    tool = '"tool_name":"Skill","tool_input":{"skill":"plan"}'
    body = f'{{"hook_event_name":"PostToolUse","session_id":{session},{tool}}}'

    assert client.post("/v1/hooks/claude-code", content=body).json() == {}
    collector.flush()

    assert collector.cursor().rows("select count(*) from events") == [(0,)]
    assert collector.cursor().rows("select code, field from rejected") == [("bad_text", "session_id")]
