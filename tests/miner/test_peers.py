"""The yardsticks: what peers claim where it can be told by hand, how a ranking is judged, what a world adds."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest

from benchmarks.edges import recall_at
from benchmarks.peers import Log, confidence, directly_follows, fisher_p, lift, rankings, sign_p
from benchmarks.worlds import Truth, failures, live, plant, unthreaded, with_outcomes

SESSIONS = [["plan", "build"]] * 8 + [["build", "plan"]] * 2 + [["x", "y"]] * 30

STATS = pl.DataFrame(
    {
        "a": ["build", "x"],
        "b": ["plan", "y"],
        "source": ["plan", "x"],
        "target": ["build", "y"],
        "n_source": [10, 30],
        "n_target": [10, 30],
        "o": [10, 30],
        "forward": [8, 30],
        "backward": [2, 0],
    }
)


def test_peers_claim_what_their_rule_says() -> None:
    log = Log(SESSIONS, STATS)

    assert directly_follows(log) == {("plan", "build"), ("x", "y")}
    assert confidence(log) == {("plan", "build"), ("x", "y")}
    assert lift(log) == {("plan", "build")}  # 40 * 30 / 30 / 30 is no lift of 2
    assert rankings(log)["lift"] == [("plan", "build"), ("x", "y")]


def test_the_p_values_of_a_peer_equal_sums_done_by_hand() -> None:
    assert sign_p(STATS)[0] == pytest.approx(2 * (45 + 10 + 1) / 2**10)
    assert fisher_p(Log(SESSIONS, STATS))[0] == pytest.approx(1 / 847_660_528)  # 40 over 10


def test_recall_is_that_of_the_last_cut_that_is_precise_enough() -> None:
    truth = Truth(precedes={("a", "b"), ("c", "d"), ("e", "f")}, complements=set(), retired={("r", "s")}, first={})

    assert recall_at([("a", "b"), ("s", "r"), ("x", "y"), ("c", "d")], truth, precision=0.95) == pytest.approx(1 / 3)
    assert recall_at([("a", "b"), ("x", "y"), ("c", "d")], truth, precision=0.6) == pytest.approx(2 / 3)


def test_a_log_without_threads_holds_the_same_calls_and_what_was_shown() -> None:
    world = plant(4, advised=72)
    events = live(world, sessions=200, seed=4)

    log = unthreaded(world, events)

    calls = [event for event in log if event.kind == "activated"]
    assert [e.event_id for e in calls] == [e.event_id for e in events]
    assert not [e for e in log if e.suggested_by]
    followed = sum(bool(event.suggested_by) for event in events)
    assert 0 < followed <= len(log) - len(calls)


def test_outcomes_change_no_call_and_stubborn_actors_only_what_they_do() -> None:
    world = plant(4)
    events = live(world, sessions=200, seed=4)

    told = with_outcomes(events, failures(world, 4), 4)

    assert {event.outcome for event in told} == {"ok", "error"}
    assert [msgspec.structs.replace(event, outcome="unknown") for event in told] == events
    stubborn = plant(4, stubborn=6)
    assert (len(stubborn.stubborn), stubborn.templates, stubborn.preference.keys()) == (
        6,
        world.templates,
        world.preference.keys(),
    )
