"""One call seen by hook, telemetry and transcript is one published call, whatever arrives first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as bounded
from hypothesis import strategies as st

from collector.hooks import claude_code as hooks
from collector.hooks.payload import Known
from collector.identity import claude_call
from collector.otlp import claude_code
from collector.otlp.signals import LogRecord
from collector.service import Collector
from cowpath.event import Event
from cowpath.home import Home
from cowpath.settings import Settings

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
KNOWN = Known(now=NOON)


def record(name: str, second: float, sequence: int | None, prompt: str = "p1", **attributes: Any) -> LogRecord:
    told = {"event.name": name, "session.id": "s1", "event.sequence": sequence, "prompt.id": prompt} | attributes
    at = NOON + timedelta(seconds=second)
    return LogRecord(
        attributes={k: v for k, v in told.items() if v is not None},
        resource={"service.name": "claude-code"},
        time_ns=round(at.timestamp() * 1e9),
    )


def seen(skill: str, second: float = 0, sequence: int | None = 1, prompt: str = "p1", **more: Any) -> Event:
    """A skill_activated record; a keyword ``trigger`` is its invocation_trigger."""
    trigger = more.get("trigger", "claude-proactive")
    told = {"skill.name": skill, "invocation_trigger": trigger}
    return only(claude_code.read(record("skill_activated", second, sequence, prompt, **told), KNOWN))


def result(call_id: str, skill: str, second: float = 1, sequence: int | None = 2, prompt: str = "p1") -> Event:
    """A tool_result record of the Skill tool."""
    told = {"tool_name": "Skill", "tool_use_id": call_id, "success": "true", "duration_ms": "4",
            "tool_parameters": f'{{"skill_name": "{skill}"}}'}  # fmt: skip
    return only(claude_code.read(record("tool_result", second, sequence, prompt, **told), KNOWN))


def hook(call_id: str, skill: str, prompt: str | None = "p1", **fields: Any) -> Event:
    payload = {"session_id": "s1", "hook_event_name": "PostToolUse", "tool_name": "Skill", "tool_use_id": call_id,
               "tool_input": {"skill": skill}, "prompt_id": prompt} | fields  # fmt: skip
    return only(hooks.read(payload, KNOWN))


def typed(skill: str, prompt: str = "p1") -> Event:
    payload = {"session_id": "s1", "hook_event_name": "UserPromptExpansion", "expansion_type": "slash_command",
               "command_name": skill, "command_source": "userSettings", "prompt_id": prompt}  # fmt: skip
    return only(hooks.read(payload, KNOWN))


def transcript(call_id: str, skill: str, second: float = 0, seq: int = 0) -> Event:
    """What the importer of transcripts makes of a call; it knows no prompt."""
    return Event(
        event_id=claude_call(call_id),
        session_id="s1",
        skill=skill,
        seq=seq,
        called_at=NOON + timedelta(seconds=second),
        trigger="agent",
        agent="claude-code",
        source="claude-transcript",
    )


def only(items: Sequence[Any]) -> Event:
    (item,) = items
    assert isinstance(item, Event)
    return item


class Worlds:
    """Collectors on fresh homes, one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._n = 0

    def published(self, *arrivals: Sequence[Event], columns: str = "event_id") -> list[Any]:
        """What is visible, sorted, after these requests; each is drained before the next one comes."""
        self._n += 1
        home = Home(self._folder / f"home-{self._n}")
        with Collector(Settings(home=str(home.root), publish_every_s=0)) as collector:
            for arrival in arrivals:
                collector.take_in(arrival)
                collector.flush()
            rows = collector.live.query(f"select {columns} from skill_calls order by all", limit=99, timeout_s=30)
        return [tuple(row.values()) if len(row) > 1 else next(iter(row.values())) for row in rows.to_pylist()]


@pytest.fixture
def worlds(tmp_path: Path) -> Worlds:
    return Worlds(tmp_path)


COPIES = {
    "hook": lambda: hook("toolu_1", "plan"),
    "tool_result": lambda: result("toolu_1", "plan"),
    "skill_activated": lambda: seen("plan"),
    "transcript": lambda: transcript("toolu_1", "plan"),
}


@pytest.mark.parametrize("order", list(permutations(COPIES)), ids="-".join)
def test_one_call_seen_by_hook_both_records_and_transcript_is_one_in_every_order(
    worlds: Worlds, order: tuple[str, ...]
) -> None:
    assert worlds.published(*([COPIES[name]()] for name in order), columns="event_id, skill_id, duration_ms") == [
        (claude_call("toolu_1"), "plan", 4.0)
    ]


@pytest.mark.parametrize("among", ["hook", "tool_result", "transcript"])
def test_a_record_without_a_call_id_is_taken_up_by_any_one_source_of_its_call(worlds: Worlds, among: str) -> None:
    call, record_ = COPIES[among](), seen("plan")

    assert worlds.published([call], [record_]) == [claude_call("toolu_1")]
    assert worlds.published([record_], [call]) == [claude_call("toolu_1")]
    assert worlds.published([record_, call]) == [claude_call("toolu_1")]


def test_a_record_that_no_call_stands_for_is_a_call(worlds: Worlds) -> None:
    lone = seen("plan", trigger="nested-skill")

    rows = worlds.published([lone], columns="event_id, trigger, seq")

    assert rows == [(lone.event_id, "nested", 1)]


def test_another_prompt_another_skill_and_a_typed_call_are_other_calls(worlds: Worlds) -> None:
    records = [seen("plan", prompt="p2"), seen("review", sequence=5), seen("deploy", sequence=6)]

    found = worlds.published([hook("toolu_1", "plan"), typed("deploy")], records)

    assert set(found) == {hook("toolu_1", "plan").event_id, typed("deploy").event_id, *(r.event_id for r in records)}


def test_a_typed_skill_is_one_with_its_hook_in_both_orders(worlds: Worlds) -> None:
    by_hook, by_record = typed("deploy"), seen("deploy", trigger="user-slash")

    assert worlds.published([by_hook], [by_record]) == [by_hook.event_id]
    assert worlds.published([by_record], [by_hook]) == [by_hook.event_id]


def test_of_several_calls_in_one_prompt_each_stands_for_its_nearest_record(worlds: Worlds) -> None:
    """The second of three tool_results was lost: its record, and no other, is the call."""
    records = [seen("plan", n, 10 * n) for n in (1, 2, 3)]
    results = [result(f"toolu_{n}", "plan", n + 0.1, 10 * n + 1) for n in (1, 3)]

    for order in permutations([records, results[:1], results[1:]]):
        assert set(worlds.published(*order)) == {*(r.event_id for r in results), records[1].event_id}


def test_a_session_that_only_its_transcript_and_its_records_tell_is_matched_by_time(worlds: Worlds) -> None:
    calls = [transcript("toolu_1", "plan", 0, 0), transcript("toolu_2", "plan", 600, 1)]
    records = [seen("plan", 1, 4, "p1"), seen("plan", 601, 9, "p2"), seen("plan", 300, 7, "p3")]

    for order in permutations([calls, *([r] for r in records)]):
        assert set(worlds.published(*order)) == {*(c.event_id for c in calls), records[2].event_id}


def test_retries_and_doubles_change_nothing(worlds: Worlds) -> None:
    batch = [seen("plan"), result("toolu_1", "plan"), seen("review", 2, 3)]

    assert worlds.published(batch, batch, batch[::-1]) == worlds.published(batch)


def test_numbers_order_a_stream_of_telemetry_alone(worlds: Worlds) -> None:
    """Two calls in one millisecond: the sequence tells which was first."""
    first, second = seen("b", 1, 3), seen("a", 1, 4)

    assert worlds.published([second], [first], columns="seq, skill_id") == [(3, "b"), (4, "a")]


def test_numbers_of_a_resumed_session_or_beside_a_transcript_order_nothing(worlds: Worlds) -> None:
    before, resumed = seen("a", 0, 50, "p1"), seen("b", 3600, 1, "p2")
    elsewhere = transcript("toolu_9", "c", 10, 2)

    assert worlds.published([before, resumed], columns="seq, skill_id") == [(None, "a"), (None, "b")]
    assert worlds.published([before, elsewhere], columns="seq, skill_id") == [(None, "a"), (None, "c")]


def test_a_hook_that_tells_no_time_stands_where_it_arrived_among_timed_records(settings: Settings, home: Home) -> None:
    from cowpath.store import Store, read_sql

    now = datetime.now(UTC)
    with Collector(settings) as collector:
        collector.take_in([seen("before", (now - NOON).total_seconds() - 60, 1)])
        collector.take_in([hook("toolu_1", "between")])
        collector.take_in([seen("after", (now - NOON).total_seconds() + 60, 2)])
        collector.publish()
    with Store.open(home.usage, read_only=True) as usage:
        steps = usage.rows("select skill_id, next_skill_id from transitions order by all")
        calls = usage.rows(read_sql("answer/session_calls"), {"session": "s1"})

    assert steps == [("before", "between"), ("between", "after")]
    assert calls == [("before",), ("between",), ("after",)]


def test_a_call_that_arrives_late_dirties_the_sessions_published_copy(settings: Settings, home: Home) -> None:
    """The published file, not only the live views: the record goes when its call comes."""
    from cowpath.store import Store

    def visible() -> list[str]:
        with Store.open(home.usage, read_only=True) as usage:
            return [event_id for (event_id,) in usage.rows("select event_id from skill_calls")]

    with Collector(settings) as collector:
        collector.take_in([seen("plan")])
        collector.publish()
        assert visible() == [seen("plan").event_id]
        collector.take_in([hook("toolu_1", "plan")])
        collector.publish()
        assert visible() == [claude_call("toolu_1")]


@st.composite
def sessions(draw: st.DrawFn) -> list[Event]:
    """Calls of few skills over few prompts, each seen by some of its sources at least by one that names it."""
    copies: list[Event] = []
    for n in range(draw(st.integers(1, 4))):
        skill, prompt = draw(st.sampled_from("ab")), draw(st.sampled_from(["p1", "p2"]))
        call_id = f"toolu_{n}"
        named = [hook(call_id, skill, prompt), result(call_id, skill, 10 * n + 1, 10 * n + 1, prompt)]
        copies += draw(st.lists(st.sampled_from(named), min_size=1, max_size=2))
        if draw(st.booleans()):
            copies.append(seen(skill, 10 * n, 10 * n, prompt))
    return copies


@bounded(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(copies=sessions(), data=st.data())
def test_arrival_order_and_batching_never_matter(worlds: Worlds, copies: list[Event], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(copies))
    cut = data.draw(st.integers(0, len(copies)))

    assert worlds.published(copies) == worlds.published(shuffled[:cut], shuffled[cut:])
    assert len(worlds.published(copies)) == len({e.event_id for e in copies if "seen_as" not in e.extra})
