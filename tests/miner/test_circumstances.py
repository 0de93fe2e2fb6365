"""What advice, failures and callers say beside the order of calls, and what they may not change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import polars as pl
import pytest

from benchmarks.worlds import failures, live, plant, with_outcomes
from cowpath.edge import Edge
from cowpath.event import Event, Outcome
from miner.conflicts import SESSIONS, find_conflicts
from miner.edge_eval import mined as mined_in_memory
from miner.parameters import Parameters
from miner.stages import Mining

Mine = Callable[..., Mining]
Sessions = Callable[..., list[Event]]

BACKGROUND = [f"x{i} y{(3 * i) % 11}" for i in range(60)]


def ends(events: Sequence[Event], failing: set[str]) -> list[Event]:
    """The same events, with an error where the skill is one of the failing, else ok."""
    return [msgspec.structs.replace(e, outcome="error" if e.skill in failing else "ok") for e in events]


def of(mining: Mining, relation: str) -> list[Edge]:
    return [edge for edge in mining.edges if edge.relation == relation]


def shown(after: Event, skill: str) -> Event:
    return Event(
        event_id=f"{after.event_id}-shown",
        session_id=after.session_id,
        seq=after.seq,
        skill=skill,
        kind="impression",
        actor=after.actor,
    )


def test_a_call_of_what_was_just_shown_is_no_evidence_and_is_counted(mined: Mine, sessions: Sessions) -> None:
    events = sessions(["plan build"] * 12 + BACKGROUND)
    impressions = [shown(e, "build") for e in events if e.skill == "plan"]

    mining = mined([*events, *impressions])

    assert mining.edges == ()
    assert mining.profile["shown_calls"] == 12
    assert mining.store.rows("select suggested from suggested_pairs where a = 'build' and b = 'plan'") == [(12,)]


def test_what_was_shown_long_before_or_to_another_stream_changes_nothing(mined: Mine, sessions: Sessions) -> None:
    events = sessions(["plan a b c d e f build"] * 12 + BACKGROUND)
    early = [shown(e, "build") for e in events if e.skill == "plan"]
    elsewhere = [msgspec.structs.replace(shown(e, "build"), stream_id="sub") for e in events if e.skill == "f"]

    mining = mined([*events, *early, *elsewhere])

    assert mining.profile["shown_calls"] == 0
    assert ("plan", "build") in {(e.source, e.target) for e in of(mining, "precedes")}


def test_an_edge_tells_how_sessions_ended_with_both_skills_and_with_one(mined: Mine, sessions: Sessions) -> None:
    events = sessions(["plan build"] * 12 + ["plan x9"] * 4 + BACKGROUND)
    failed = {f"s{number:04d}" for number in (0, 1, 2, 12)}

    mining = mined([event for e in events for event in ends([e], {"plan"} if e.session_id in failed else set())])

    (edge,) = of(mining, "precedes")
    told = {name: edge.evidence[name] for name in ("ended_with", "success_with", "ended_without", "success_without")}
    assert told == {"ended_with": 12, "success_with": 0.75, "ended_without": 4, "success_without": 0.75}


def test_reported_ends_move_no_edge(mined: Mine, sessions: Sessions) -> None:
    events = sessions(["plan build", "lint test", "test lint"] * 12 + BACKGROUND)

    def claims(outcome: Outcome, name: str) -> list[tuple[str, str, str, str]]:
        mining = mined([msgspec.structs.replace(e, outcome=outcome) for e in events], name=name)
        return [(e.source, e.relation, e.target, e.status) for e in mining.edges]

    silent = claims("unknown", "silent")
    assert silent
    assert claims("ok", "praised") == claims("error", "blamed") == silent


def test_skills_that_fail_together_are_proposed_and_never_beside_a_positive_edge() -> None:
    world = plant(3, advised=12)
    why = failures(world, 3)

    mining = mined_in_memory(with_outcomes(live(world, sessions=6_000, seed=3), why, 3))

    proposed = {(e.source, e.target) for e in of(mining, "conflicts_with")}
    positive = {frozenset((e.source, e.target)) for e in mining.edges if e.relation != "conflicts_with"}
    assert len(proposed & set(why.conflicts)) >= 3
    assert len(proposed - set(why.conflicts)) <= 1
    assert {e.status for e in of(mining, "conflicts_with")} == {"candidate"}
    assert not {frozenset(pair) for pair in proposed} & positive


def test_a_skill_that_fails_by_itself_conflicts_with_nobody() -> None:
    deploys = [(f"d{i}", f"actor-{i % 5}", ["deploy", f"x{i % 3}"], i % 2 == 0) for i in range(300)]
    others = [(f"o{i}", f"actor-{i % 5}", [f"x{i % 3}", "y"], i % 40 == 0) for i in range(300)]
    rows = deploys + others

    assert find_conflicts(pl.DataFrame(rows, schema=list(SESSIONS), orient="row"), Parameters()) == []


@pytest.mark.parametrize("failed", [False, True])
def test_where_all_sessions_end_alike_nothing_is_fitted(failed: bool) -> None:
    rows = [(f"s{i}", "ann", ["a", "b"], failed) for i in range(50)]

    assert find_conflicts(pl.DataFrame(rows, schema=list(SESSIONS), orient="row"), Parameters()) == []


def test_nested_calls_are_routes_and_nothing_else(mined: Mine, sessions: Sessions) -> None:
    calls = sessions(["plan"] * 6 + BACKGROUND)
    nested = [
        Event(
            event_id=f"n{number}",
            session_id=f"s{number:04d}",
            stream_id="sub",
            seq=0,
            skill="search",
            trigger="nested",
            actor=("ann", "bob", "cid")[number % 3],
            extra={"caller": "plan"},
        )
        for number in range(6)
    ]

    (edge,) = mined([*calls, *nested]).edges

    assert (edge.source, edge.relation, edge.target, edge.status) == ("plan", "routes_to", "search", "candidate")
    assert (edge.evidence["sessions"], edge.evidence["witnesses"]) == (6, 3)


def test_after_a_failure_the_skill_that_is_turned_to_is_told(mined: Mine, sessions: Sessions) -> None:
    good = ends(sessions([f"deploy x{i}" for i in range(30)] + BACKGROUND), set())
    # Tried twice before giving up: one failure.
    bad = [
        msgspec.structs.replace(e, event_id=f"f{e.event_id}", session_id=f"f{e.session_id}")
        for e in ends(sessions(["deploy deploy rollback"] * 6), {"deploy"})
    ]

    (told,) = mined([*good, *bad]).recoveries

    assert (told["failed"], told["next"], told["sessions"], told["failures"]) == ("deploy", "rollback", 6, 6)
    assert (told["share"], told["usually"]) == (1.0, pytest.approx(6 / 36, rel=1e-4))


def test_a_failure_that_a_second_try_mends_is_none(mined: Mine, sessions: Sessions) -> None:
    events = sessions(["deploy deploy check"] * 6 + BACKGROUND)
    mended = [
        msgspec.structs.replace(e, outcome="error" if e.skill == "deploy" and e.seq == 0 else "ok") for e in events
    ]

    mining = mined(mended)

    assert mining.recoveries == ()
    assert mining.store.rows("select count(*) from kept.circumstances where len(failed) > 0") == [(0,)]
