"""The rules of a trusted collector, B1 to B22: each has a test named for it, here or beside what keeps it."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from collector.analysts.questions import question
from cowpath.event import utc_now
from cowpath.home import Home
from cowpath.store import Store

TESTS = Path(__file__).parents[1]
RULES = range(1, 23)

StartServer = Callable[..., Any]
KeptIds = Callable[[Path], list[str]]

HOOKS = "/v1/hooks/claude-code"


@pytest.fixture
def client(start_server: StartServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=start_server().url, timeout=30, trust_env=False) as opened:
        yield opened


def call(event_id: str, *, skill: str = "plan", session: str = "s1", **fields: Any) -> dict[str, Any]:
    return {"event_id": event_id, "session_id": session, "skill_id": skill} | fields


def hook(name: str, **fields: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": "s1", "tool_name": "Skill", "tool_use_id": "t1"} | fields


def published(client: httpx.Client, home: Home, sql: str) -> list[tuple[Any, ...]]:
    """What an analyst reads after everything so far was published."""
    client.post("/v1/publish").raise_for_status()
    with Store.open(home.usage, read_only=True) as usage:
        return usage.rows(sql)


def test_every_rule_has_a_test_named_for_it() -> None:
    named = {rule for name in names_of_tests() for rule in rules_of(name)}

    assert [rule for rule in RULES if rule not in named] == []
    assert rules_of("test_b2_b11_report_19_words") == {2, 11}
    assert rules_of("test_words_b2") == set()


def names_of_tests() -> list[str]:
    trees = (ast.parse(path.read_text()) for path in TESTS.rglob("test_*.py"))
    return [node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def rules_of(name: str) -> set[int]:
    """The rules that a test's name begins with."""
    prefix = re.match(r"test_((?:b\d+_)*)", name)
    return {int(rule) for rule in re.findall(r"b(\d+)_", prefix.group(1))} if prefix else set()


def test_b2_report_29_a_repeat_is_answered_200_with_its_count_and_never_fails_the_batch(client: httpx.Client) -> None:
    first = client.post("/v1/events", json=[call("e1"), call("e2")])
    again = client.post("/v1/events", json=[call("e1"), call("e2"), call("e3")])

    assert (first.status_code, again.status_code) == (200, 200)
    assert [(a.json()["accepted"], a.json()["duplicates"]) for a in (first, again)] == [(2, 0), (1, 2)]
    assert again.json()["errors"] == []


def test_b5_what_tells_of_no_call_is_counted_and_what_is_refused_is_kept_with_its_reason(
    client: httpx.Client, home: Home
) -> None:
    client.post(HOOKS, json=[hook("PreToolUse"), hook("PostToolUse", tool_name="Bash"), hook("SomethingNew"), {}])
    client.post("/v1/hooks/codex", json={"hook_event_name": "Stop"})
    client.post(HOOKS, json=[hook("PostToolUse", tool_input={"skill": "plan"}), hook("PostToolUse", tool_input={}), 7])
    client.post("/v1/events", json=call("e1", seq="first"))

    status = client.get("/v1/status").json()["since_start"]
    page = client.get("/metrics").text

    assert status["ignored"] == {"claude-code": 4, "codex": 1}
    assert (status["accepted"], status["rejected"]) == (1, 3)
    for event in ("PreToolUse", "PostToolUse", "SomethingNew", "unnamed"):
        assert f'cowpath_payloads_ignored_total{{door="claude-code",event="{event}"}} 1.0' in page
    letters = published(client, home, "select code, field, n from rejected_by_reason order by code")
    assert letters == [("bad_type", "seq", 1), ("missing_field", "skill_id", 1), ("not_an_object", None, 1)]


def test_b5_names_that_senders_make_up_do_not_fill_the_memory(client: httpx.Client) -> None:
    client.post(HOOKS, json=[hook(f"Event{n}") for n in range(200)] + [hook("what a person wrote\n")])

    counted = re.findall(r'payloads_ignored_total{door="claude-code",event="(\w+)"} (\d+)', client.get("/metrics").text)

    assert len(counted) == 65
    assert dict(counted)["other"] == "137"


def test_b7_depth_and_lengths_are_bounded_item_by_item(client: httpx.Client) -> None:
    deep = '{"event_id":"deep","session_id":"s1","skill_id":"plan","note":' + "[" * 700 + "]" * 700 + "}"
    items = f'[{deep},{{"event_id":"long","session_id":"{"s" * 300}","skill_id":"plan"}},' + (
        '{"event_id":"fine","session_id":"s1","skill_id":"plan","note":[[["a"]]]}]'
    )
    json_type = {"Content-Type": "application/json"}

    answer = client.post("/v1/events", content=items, headers=json_type).json()
    hopeless = client.post("/v1/events", content="[" * 200_000, headers=json_type)

    assert answer["accepted"] == 1
    assert [(e["event_id"], e["code"]) for e in answer["errors"]] == [("deep", "too_deep"), ("long", "too_long")]
    assert (hopeless.status_code, hopeless.json()["error"]["code"]) == (422, "bad_input")


def test_b8_a_clock_that_is_off_moves_the_day_of_a_call_and_nothing_else(client: httpx.Client, home: Home) -> None:
    # Two hours fast, a day ends two hours early by it. The second batch was held up for ten minutes besides.
    night = utc_now().replace(hour=0, minute=30, second=0, microsecond=0) - timedelta(days=1)
    for name, ahead_s in (("e1", 7_200), ("e2", 7_200 - 600)):
        event = call(name, skill=name, ts=night.isoformat())
        sent_at = utc_now() + timedelta(seconds=ahead_s)
        client.post("/v1/events", json={"events": [event], "sent_at": sent_at.isoformat()})

    rows = published(client, home, "select called_at, extra ->> '$.clock_skew_s', extra ->> '$.sent_at' from events")
    days = published(client, home, "select day, sum(calls) from skill_daily group by day")
    clocks = published(client, home, "select * from session_clocks")
    with Store.open(home.usage, read_only=True) as usage:
        that_day = usage.rows(question("sessions_of_day").sql, {"day": str((night - timedelta(hours=2)).date())})

    assert [row[:2] for row in rows] == [(night.replace(tzinfo=None), "-7200"), (night.replace(tzinfo=None), "-6600")]
    assert all(abs(datetime.fromisoformat(sent_at) - utc_now()) > timedelta(hours=1) for _, _, sent_at in rows)
    assert clocks == [("s1", -7200)]
    assert days == [((night - timedelta(hours=2)).date(), 2)]
    assert [session_id for session_id, *_ in that_day] == ["s1"]


def test_b8_report_16_a_batch_that_was_held_up_keeps_the_order_of_its_session(client: httpx.Client, home: Home) -> None:
    begin = utc_now() - timedelta(minutes=30)
    calls = [
        call(f"e{n}", skill=skill, ts=(begin + timedelta(seconds=n)).isoformat())
        for n, skill in enumerate(["plan", "write", "test", "ship"])
    ]
    # Sent at once, and arrived after half an hour on the way, behind the batch that followed it.
    client.post("/v1/events", json={"events": calls[2:], "sent_at": utc_now().isoformat()})
    client.post("/v1/events", json={"events": calls[:2], "sent_at": (begin + timedelta(seconds=2)).isoformat()})

    steps = published(client, home, "select skill_id, next_skill_id from transitions order by all")

    assert steps == [("plan", "write"), ("test", "ship"), ("write", "test")]


def test_b9_report_18_impossible_times_are_kept_flagged_and_counted_on_the_day_they_came(
    client: httpx.Client, home: Home
) -> None:
    times = {"future": "2099-01-01T00:00:00Z", "epoch": 0, "negative": -5e9, "huge": 1e300}
    client.post("/v1/events", json=[call(name, ts=ts) for name, ts in times.items()])
    client.post(
        "/v1/events",
        content=b'{"event_id":"nan","session_id":"s1","skill_id":"plan","ts":NaN}',
        headers={"Content-Type": "application/json"},
    )

    clocks = dict(published(client, home, "select event_id, clock from events"))
    nan = published(client, home, "select called_at, extra from events where event_id = 'nan'")
    days = published(client, home, "select day, calls from skill_daily")

    assert clocks == {"future": "future", "epoch": "ancient", "negative": "ancient", "huge": "future", "nan": "none"}
    assert nan == [(None, '{"ts":"NaN"}')]
    assert sum(calls for _, calls in days) == 5
    assert all(abs((day - utc_now().date()).days) <= 1 for day, _ in days)


def test_b10_ties_are_broken_the_same_way_in_every_home_and_after_every_repeat(
    client: httpx.Client, home: Home
) -> None:
    at = "2026-11-30T12:00:00Z"
    tied = [call(f"e{n}", skill=skill, ts=at) for n, skill in enumerate(["plan", "write", "test"])]
    numbered = [call(f"n{n}", session="s2", skill=skill, seq=n, ts=at) for n, skill in enumerate(["a", "b", "c"])]
    last = call("e9", skill="ship", ts="2026-11-30T12:00:01Z")
    steps = "select skill_id, next_skill_id, n from transitions order by all"

    client.post("/v1/events", json=[*tied, last, *reversed(numbered)])
    first = published(client, home, steps)
    client.post("/v1/events", json=[*numbered, *reversed(tied), last])

    # Of calls at one moment, their place in the source decides which was last; a number of the sender's decides all.
    assert first == [("a", "b", 1), ("b", "c", 1), ("test", "ship", 1)]
    assert published(client, home, steps) == first


def test_b11_a_call_that_comes_months_late_changes_what_follows_what_as_if_it_had_been_on_time(
    client: httpx.Client, home: Home
) -> None:
    at = utc_now() - timedelta(days=200)
    plan, write, ship = (
        call(f"e{n}", skill=skill, ts=(at + timedelta(minutes=n)).isoformat())
        for n, skill in enumerate(["plan", "write", "ship"])
    )
    client.post("/v1/events", json=[plan, ship])
    before = published(client, home, "select max(changed) from events")
    answer = client.post("/v1/events", json=write)

    assert answer.json()["accepted"] == 1
    steps = published(client, home, "select skill_id, next_skill_id from transitions order by all")
    assert steps == [("plan", "write"), ("write", "ship")]
    changed = published(client, home, f"select session_id from events where changed > {before[0][0]}")
    assert changed == [("s1",)]


@pytest.mark.parametrize("version", [{}, {"schema_version": 0}, {"schema_version": 1}, {"schema_version": 99}])
def test_b12_any_schema_version_is_taken_and_fields_of_other_versions_are_kept(
    client: httpx.Client, home: Home, version: dict[str, int]
) -> None:
    answer = client.post("/v1/events", json=version | {"events": [call("e1", colour="green")]})

    assert answer.json()["accepted"] == 1
    assert published(client, home, "select extra from events") == [('{"colour":"green"}',)]


def test_b13_what_people_wrote_is_in_no_file_of_the_home(client: httpx.Client, home: Home) -> None:
    secrets = ["fix-my-taxes", "ada@example.org", "/home/ada/taxes", "rm-the-lot", "ada-the-actor"]
    words, mail, path, given, actor = secrets
    client.post("/v1/events", json=call("e1", prompt=words, actor=actor, note=mail, where=path, args=given))
    client.post("/v1/events", json=call("e2", prompt=words, actor=actor, note=mail, where=path, seq="x"))
    client.post(
        HOOKS,
        json=hook("PostToolUse", tool_input={"skill": "plan", "args": given}, cwd=path, prompt=words, user_email=mail),
        headers={"X-Cowpath-Actor": actor},
    )
    client.post(HOOKS, json=hook("PostToolUse", tool_input={"args": given}, cwd=path, prompt=words))

    rows = published(client, home, "select * from events") + published(client, home, "select * from rejected")

    held = [repr(rows).encode()] + [path.read_bytes() for path in home.root.rglob("*") if path.is_file()]
    assert len(rows) == 4
    assert [secret for secret in secrets if any(secret.encode() in data for data in held)] == []


def test_b17_a_hook_is_answered_in_less_than_50_ms(client: httpx.Client) -> None:
    # The best of three rounds: what else this machine does meanwhile is not the collector's.
    assert min(slow_answer_s(client, round_) for round_ in range(3)) < 0.05


def slow_answer_s(client: httpx.Client, round_: int) -> float:
    """How long 5 of 100 hooks take at least."""
    times = []
    for n in range(100):
        body = hook("PostToolUse", tool_use_id=f"t{round_}-{n}", tool_input={"skill": "plan"})
        began = time.perf_counter()
        assert client.post(HOOKS, json=body).json() == {}
        times.append(time.perf_counter() - began)
    return sorted(times)[94]


def test_b19_a_stop_finishes_what_was_acknowledged_and_then_exits(
    start_server: StartServer, home: Home, kept_ids: KeptIds
) -> None:
    server = start_server(COWPATH_DRAIN_BATCH_EVENTS="500")
    ids = [f"e{n:04}" for n in range(5_000)]
    answer = httpx.post(f"{server.url}/v1/events", json=[call(name) for name in ids], timeout=30, trust_env=False)

    code = server.stop()

    assert (answer.json()["accepted"], code) == (5_000, 0)
    assert kept_ids(home.live) == ids


def test_b21_only_an_explicit_activation_is_a_use(client: httpx.Client, home: Home) -> None:
    kinds = ["activated", "exposed", "preloaded", "resource_read", "impression", "outcome"]
    client.post("/v1/events", json=[call(kind, kind=kind) for kind in kinds])
    read = {"file_path": "skills/plan/SKILL.md"}
    client.post(HOOKS, json=hook("PostToolUse", tool_name="Read", tool_input=read))

    assert published(client, home, "select event_id from skill_calls") == [("activated",)]
    assert published(client, home, "select calls, sessions from skill_daily") == [(1, 1)]
    assert published(client, home, "select count(*) from transitions") == [(0,)]
    assert published(client, home, "select kind, count(*) from events group by kind order by kind") == [
        (kind, 2 if kind == "resource_read" else 1) for kind in sorted(kinds)
    ]


def test_b22_what_was_shown_is_kept_and_a_call_that_followed_it_is_told_apart(client: httpx.Client, home: Home) -> None:
    shown: dict[str, Any] = {"shown": ["test", "ship"], "rank": 1, "model": "run-7", "accepted": True}
    client.post(
        "/v1/events",
        json=[
            call("e1", seq=0),
            call("i1", skill="test", kind="impression", seq=1, **shown),
            call("e2", skill="test", seq=2, suggested_by="run-7"),
        ],
    )

    assert published(client, home, "select extra from events where kind = 'impression'") == [
        ('{"shown":["test","ship"],"rank":1,"model":"run-7","accepted":true}',)
    ]
    calls = published(client, home, "select skill_id, spontaneous from skill_calls order by seq")
    assert calls == [("plan", True), ("test", False)]
    assert published(client, home, "select n, spontaneous_n from transitions") == [(1, 0)]
