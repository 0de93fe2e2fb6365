"""Promises of the way in: what is taken, what is refused, what is never kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from collector.body import holds_lines, unpacked
from collector.intake import CHECKS, admit
from collector.wire import read_events
from cowpath.errors import InputError, TooLarge, UnsupportedMedia
from cowpath.event import Event, Rejected

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def taken(body: object, *, as_lines: bool = False, limit: int = 100) -> list[Event | Rejected]:
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    items = [admit(item, secret=b"key", now=NOW) for item in read_events(raw, as_lines=as_lines, limit=limit)]
    assert all(isinstance(item, Event | Rejected) for item in items)
    return cast(list[Event | Rejected], items)


def one(**fields: Any) -> Event:
    (item,) = taken({"event_id": "e1", "session_id": "s1", "skill_id": "plan"} | fields)
    assert isinstance(item, Event), item
    return item


def refused(body: object, **options: bool) -> Rejected:
    (item,) = taken(body, **options)
    assert isinstance(item, Rejected), item
    return item


def test_one_event_a_list_a_batch_and_lines_are_the_same_events() -> None:
    raw = [{"event_id": f"e{n}", "session_id": "s1", "skill_id": "plan", "seq": n} for n in range(3)]
    batch = {"schema_version": 1, "sent_at": "2026-11-30T21:00:05.120Z", "events": raw}

    expected = taken(raw)

    assert [e.event_id for e in expected] == ["e0", "e1", "e2"]
    assert taken(batch) == expected
    assert taken(b"\n\n".join(map(msgspec.json.encode, raw)), as_lines=True) == expected
    assert [item for event in raw for item in taken(event)] == expected


def test_the_sample_batch_is_read_field_by_field(samples: Path) -> None:
    first, second = taken((samples / "generic" / "native_batch.json").read_bytes())

    assert isinstance(first, Event)
    assert isinstance(second, Event)
    assert (first.skill, first.seq, first.trigger, first.outcome, first.source) == (
        "log-parser", 1, "agent", "ok", "agent-sdk",
    )  # fmt: skip
    assert first.called_at == datetime(2026, 11, 30, 21, tzinfo=UTC)
    assert (second.outcome, second.trigger, second.extra) == ("error", "unknown", {"error_type": "ENOENT"})


@pytest.mark.parametrize(
    "written",
    [
        "2026-11-30T21:00:00Z",
        "2026-11-30T22:00:00+01:00",
        "2026-11-30 21:00:00",
        1796072400,
        1796072400.0,
        1796072400000,
        "1796072400",
        1796072400000000,
    ],
)
def test_every_notation_of_a_moment_is_the_same_moment_in_utc(written: object) -> None:
    assert one(ts=written).called_at == datetime(2026, 11, 30, 21, tzinfo=UTC)
    assert one(called_at=written).called_at == datetime(2026, 11, 30, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "clock"),
    [
        (None, "none"),
        ("2026-11-30T21:00:00Z", "ok"),
        ("2026-12-01T20:00:00Z", "ok"),
        ("2026-12-02T00:00:01Z", "future"),
        ("9999-12-31T23:59:59-12:00", "future"),
        (1e30, "future"),
        (0, "ancient"),
        (-5, "ancient"),
        ("0001-01-01T00:00:00+14:00", "ancient"),
    ],
)
def test_b9_report_18_a_wrong_clock_is_flagged_and_its_event_kept(written: object, clock: str) -> None:
    assert one(ts=written).clock == clock


def test_b9_not_a_number_as_a_time_costs_the_time_not_the_event() -> None:
    (item,) = taken(b'[{"event_id":"e1","session_id":"s1","skill_id":"plan","ts":NaN}]')

    assert isinstance(item, Event)
    assert (item.called_at, item.clock) == (None, "none")


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"session_id": None}, "missing_field", "session_id"),
        ({"session_id": " "}, "missing_field", "session_id"),
        ({"skill_id": None}, "missing_field", "skill_id"),
        ({"skill_id": ["plan"]}, "bad_type", "skill_id"),
        ({"skill_id": True}, "bad_type", "skill_id"),
        ({"skill_id": "x" * 257}, "too_long", "skill"),
        ({"kind": "danced"}, "unknown_kind", "kind"),
        ({"skill_id": "custom_skill"}, "unnamed_skill", "skill_id"),
        ({"skill_id": "third-party"}, "unnamed_skill", "skill_id"),
        ({"seq": 2**70}, "bad_value", "seq"),
        ({"seq": 1.5}, "bad_value", "seq"),
        ({"duration_ms": -1}, "bad_value", "duration_ms"),
        ({"duration_ms": "long"}, "bad_type", "duration_ms"),
        ({"confidence": 2}, "bad_value", "confidence"),
        ({"ts": "yesterday"}, "bad_time", "ts"),
        ({"ts": {}}, "bad_type", "ts"),
    ],
)
def test_b4_a_bad_item_is_refused_by_a_stable_code_and_its_field(fields: dict[str, Any], code: str, field: str) -> None:
    item = refused({"event_id": "e1", "session_id": "s1", "skill_id": "plan"} | fields)

    assert (item.code, item.field, item.event_id) == (code, field, "e1")


def test_bad_items_cost_only_themselves() -> None:
    good = b'{"event_id":"e1","session_id":"s1","skill_id":"plan"}'

    items = taken(b"[" + good + b',7,{"session_id":"s1"},{"skill_id":"\\ud800","session_id":"s1"},' + good + b"]")

    assert [i.event_id if isinstance(i, Event) else i.code for i in items] == [
        "e1", "not_an_object", "missing_field", "bad_text", "e1",
    ]  # fmt: skip


def test_near_misses_still_count() -> None:
    event = one(event_id=17, session_id=4, seq="3", duration_ms="12.5", outcome="success", trigger="user-slash")

    assert (event.event_id, event.session_id, event.seq, event.duration_ms) == ("17", "4", 3, 12.5)
    assert (event.outcome, event.trigger) == ("ok", "user")


def test_words_we_do_not_know_become_unknown_and_stay_readable() -> None:
    event = one(outcome="meh", trigger="cron", colour="green", group="g1")

    assert (event.outcome, event.trigger) == ("unknown", "unknown")
    assert event.extra == {"outcome": "meh", "trigger": "cron", "colour": "green", "group": "g1"}


def test_what_the_collector_decides_cannot_be_sent() -> None:
    event = one(stored_at="2001-01-01T00:00:00Z", clock="future", arrival=5)

    assert (event.stored_at, event.clock, event.extra) == (NOW, "none", {})


def test_a_missing_id_is_made_up_and_differs_each_time() -> None:
    first, second = taken([{"session_id": "s1", "skill_id": "plan"}] * 2)

    assert isinstance(first, Event)
    assert isinstance(second, Event)
    assert first.event_id != second.event_id
    assert first.event_id


def test_b13_an_actor_is_kept_only_as_a_keyed_hash() -> None:
    event = one(actor="ada@example.org")
    again = admit(event, secret=b"key", now=NOW)
    elsewhere = admit(Event(event_id="e", session_id="s", skill="k", actor="ada@example.org"), secret=b"2", now=NOW)

    assert event.actor is not None
    assert event.actor.startswith("h:")
    assert again.actor == event.actor  # type: ignore[union-attr]  # an event again
    assert elsewhere.actor != event.actor  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "extra",
    [
        {"prompt": "please fix my taxes"},
        {"cwd": "work"},
        {"note": "ask ada@example.org"},
        {"where": "/home/ada/secret"},
        {"where": "~/secret/plan"},
        {"where": "C:\\Users\\ada"},
        {"deep": {"tool_input": "rm"}},
        {"deep": [{"x": "see /etc/passwd"}]},
        {"long": "word " * 200},
    ],
)
def test_b13_what_people_wrote_is_never_kept_not_even_in_a_dead_letter(extra: dict[str, Any]) -> None:
    kept = one(**extra)
    dead = refused({"session_id": "s1", "skill_id": "custom_skill", "actor": "ada"} | extra)
    unread = refused({"session_id": "s1", "skill_id": ["plan"], "actor": "ada"} | extra)

    assert kept.extra == {"dropped": list(extra)}
    for text in json.dumps(next(iter(extra.values()))), '"ada"':
        assert text not in dead.body
        assert text not in unread.body


def test_b7_b12_extra_is_bounded_and_names_what_it_lost() -> None:
    many = one(**{f"k{n:02d}": n for n in range(50)})
    big = one(**{f"k{n}": "x" * 400 for n in range(20)})

    assert len(many.extra) == 32
    assert many.extra["dropped"][0] == "k31"
    assert len(msgspec.json.encode(big.extra)) <= 4096
    assert big.extra["k0"] == "x" * 400


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"events": 3}', b"\xff\xfe"])
def test_what_is_not_json_is_an_error_of_the_request(body: bytes) -> None:
    with pytest.raises(InputError):
        taken(body)


def test_too_many_events_are_too_large() -> None:
    events = [{"session_id": "s1", "skill_id": "plan"}] * 4
    for body, as_lines in ((events, False), (b"{}\n" * 4, True), ([*events, {"odd": 1}], False)):
        with pytest.raises(TooLarge):
            taken(body, as_lines=as_lines, limit=3)


def test_b7_gzip_is_bounded_after_decompression() -> None:
    import gzip

    bomb = gzip.compress(b" " * 1_000_000)

    assert unpacked(gzip.compress(b"[]") + gzip.compress(b" "), "gzip", limit=10) == b"[] "
    with pytest.raises(TooLarge):
        unpacked(bomb, "gzip", limit=1000)
    for broken in (b"not gzip", bomb[:-20]):
        with pytest.raises(InputError):
            unpacked(broken, "gzip", limit=2_000_000)


def test_other_types_and_encodings_are_named_in_the_refusal() -> None:
    assert holds_lines("application/x-ndjson; charset=utf-8")
    assert not holds_lines("application/json")
    for refuse in (lambda: holds_lines("text/plain"), lambda: unpacked(b"", "br", limit=1)):
        with pytest.raises(UnsupportedMedia):
            refuse()


def test_every_check_lets_a_good_event_pass_and_none_changes_its_order_keys() -> None:
    event = one(seq=4, ts="2026-11-30T21:00:00Z", stream_id="a1", batch_id="b1")

    keys: Callable[[Any], tuple[Any, ...]] = lambda e: (e.session_id, e.stream_id, e.seq, e.called_at, e.batch_id)  # noqa: E731
    assert [keys(check(event)) for check in CHECKS] == [keys(event)] * len(CHECKS)


def test_a_call_in_the_last_day_ahead_is_not_flagged() -> None:
    assert one(ts=(NOW + timedelta(hours=23)).isoformat()).clock == "ok"
