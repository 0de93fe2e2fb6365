"""Verdicts: which claims are made, which are refused, and what is said to be missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from cowpath.edge import Edge
from cowpath.event import Event
from cowpath.interval import wilson
from miner.stages import Mining

Mine = Callable[..., Mining]
Sessions = Callable[..., list[Event]]

BACKGROUND = [f"x{i} y{(3 * i) % 11}" for i in range(60)]
"""Sessions about other things: without them every pair of a log is all there is to expect."""


def edges(mining: Mining) -> list[tuple[str, str, str, str]]:
    return [(e.source, e.relation, e.target, e.status) for e in mining.edges]


def pair(mining: Mining, a: str, b: str) -> dict[str, Any]:
    return mining.pairs.filter(a=min(a, b), b=max(a, b)).row(0, named=True)


def missing(mining: Mining, a: str, b: str) -> list[str]:
    return [failed["test"] for failed in pair(mining, a, b)["failed"]]


def test_an_order_that_several_actors_keep_is_confirmed_and_nothing_else(mined: Mine, sessions: Sessions) -> None:
    mining = mined(sessions(["plan build"] * 12 + BACKGROUND))

    assert edges(mining) == [("plan", "precedes", "build", "confirmed")]
    assert pair(mining, "plan", "build")["failed"] == []


def test_the_order_reads_source_before_target_whatever_the_names(mined: Mine, sessions: Sessions) -> None:
    mining = mined(sessions(["zeta alpha"] * 12 + BACKGROUND))

    assert edges(mining) == [("zeta", "precedes", "alpha", "confirmed")]


def test_no_fixed_order_makes_complements(mined: Mine, sessions: Sessions) -> None:
    mining = mined(sessions(["lint test", "test lint"] * 12 + BACKGROUND, actors=["ann", "ann", "bob", "bob"]))

    assert edges(mining) == [("lint", "complements", "test", "confirmed")]
    assert "direction" in missing(mining, "lint", "test")


def test_parallel_calls_make_complements_never_an_order(mined: Mine, sessions: Sessions) -> None:
    together = sessions(["lint test"] * 12)
    parallel = [
        Event(event_id=e.event_id, session_id=e.session_id, skill=e.skill, seq=e.seq, actor=e.actor, batch_id="b")
        for e in together
    ]
    other = [
        Event(event_id=f"o{e.event_id}", session_id=f"o{e.session_id}", skill=e.skill, seq=e.seq, actor=e.actor)
        for e in sessions(BACKGROUND)
    ]

    assert edges(mined([*parallel, *other])) == [("lint", "complements", "test", "confirmed")]


def test_a_habit_of_one_actor_among_several_is_refused(mined: Mine, sessions: Sessions) -> None:
    orders = [f"odd even {x}" if i % 3 == 0 else x for i, x in enumerate(BACKGROUND)]

    mining = mined(sessions(orders))

    assert edges(mining) == []
    assert {"witnesses", "outside_busiest"} <= set(missing(mining, "odd", "even"))


def test_a_busy_actors_routine_is_refused_where_the_others_meet_it_only_by_chance(
    mined: Mine, sessions: Sessions
) -> None:
    # Ann makes it a routine; in the sessions of the others the two meet as often as any two skills do.
    others = [f"{'odd' if n % 6 == 0 else f'x{n % 7}'} {'even' if n % 5 == 0 else f'y{n % 3}'}" for n in range(240)]
    actors = ["ann"] * 30 + [f"other-{n % 6}" for n in range(240)]

    mining = mined(sessions(["odd even"] * 30 + others, actors=actors))

    row = pair(mining, "odd", "even")
    assert (row["outside_busiest"], row["lift"] > 1.3) == (8, True)
    assert row["verdict"] == "unrelated"
    assert missing(mining, "odd", "even")[0] == "outside_lift"


def test_one_busy_actor_cannot_outvote_the_others(mined: Mine, sessions: Sessions) -> None:
    busy = ["build plan"] * 80
    others = ["plan build"] * 36
    actors = ["ann"] * 80 + [f"other-{i % 6}" for i in range(36)]

    mining = mined(sessions(busy + others + BACKGROUND, actors=actors + ["ann", "bob", "cid"] * 20))

    row = pair(mining, "plan", "build")
    assert (row["source"], row["forward"], row["backward"]) == ("plan", 36, 80)
    assert (row["capped_forward"], row["capped_backward"]) == (36, 10)


def test_a_hub_that_stands_in_every_session_gets_no_edge(mined: Mine, sessions: Sessions) -> None:
    mining = mined(sessions([f"hub {order}" for order in ["plan build"] * 12 + BACKGROUND]))

    assert edges(mining) == [("plan", "precedes", "build", "confirmed")]
    assert "lift" in missing(mining, "hub", "plan")


def test_calls_that_followed_our_advice_are_no_evidence(mined: Mine, sessions: Sessions) -> None:
    events = [
        Event(
            event_id=e.event_id,
            session_id=e.session_id,
            skill=e.skill,
            seq=e.seq,
            actor=e.actor,
            suggested_by="cowpath" if e.skill == "build" else None,
        )
        for e in sessions(["plan build"] * 12 + BACKGROUND)
    ]

    mining = mined(events)

    assert edges(mining) == []
    assert mining.store.rows("select suggested from suggested_pairs where a = 'build' and b = 'plan'") == [(12,)]


def test_a_new_order_of_late_silences_the_old_one(mined: Mine, sessions: Sessions) -> None:
    # 14 old sessions one way, 3 of the latest the other way: too few to prove, enough to doubt.
    orders = ["plan build"] * 14 + BACKGROUND + ["build plan"] * 3
    days = len(orders)

    mining = mined(sessions(orders, days=days))

    assert edges(mining) == []
    assert "recent_order" in missing(mining, "plan", "build")


def test_an_order_that_nobody_walked_of_late_is_a_candidate(mined: Mine, sessions: Sessions) -> None:
    orders = ["plan build"] * 8 + BACKGROUND

    mining = mined(sessions(orders, days=len(orders)))

    assert edges(mining) == [("plan", "precedes", "build", "candidate")]
    assert missing(mining, "plan", "build") == ["recent_use"]


def test_co_uses_that_were_due_of_late_and_did_not_come_count_half_for_either_order(
    mined: Mine, sessions: Sessions
) -> None:
    orders = ["plan build"] * 14 + BACKGROUND

    mining = mined(sessions(orders, days=len(orders)))

    all_pairs = mining.pairs.select(pl.col("^(recent_)?(for|back)ward$").sum()).row(0, named=True)
    due = (all_pairs["recent_forward"] + all_pairs["recent_backward"]) / (all_pairs["forward"] + all_pairs["backward"])
    found = pair(mining, "plan", "build")
    assert found["capped_forward"] == found["forward"] == 14
    assert found["steady_lower"] == pytest.approx(wilson(14 + 14 * due / 2, 14 + 14 * due, z=1.645)[0])


def test_missing_co_uses_do_not_shake_an_order_that_enough_kept(mined: Mine, sessions: Sessions) -> None:
    orders = ["plan build"] * 14 + BACKGROUND

    mining = mined(sessions(orders, days=len(orders)))

    assert pair(mining, "plan", "build")["recent_forward"] == 0
    assert edges(mining) == [("plan", "precedes", "build", "confirmed")]


def test_a_new_order_that_the_latest_sessions_prove_replaces_the_old_one(mined: Mine, sessions: Sessions) -> None:
    orders = ["plan build"] * 14 + BACKGROUND + ["build plan"] * 12

    mining = mined(sessions(orders, days=len(orders)))

    assert edges(mining) == [("build", "precedes", "plan", "confirmed")]
    assert mining.edges[0].evidence["drifted"]


@pytest.mark.parametrize(("days", "witness"), [(12, "day"), (1, "session")])
def test_a_log_of_one_actor_still_learns_and_says_so(days: int, witness: str, mined: Mine, sessions: Sessions) -> None:
    mining = mined(sessions(["plan build"] * 12 + BACKGROUND, actors=["ann"], days=days))

    assert mining.witness == witness
    assert edges(mining) == [("plan", "precedes", "build", "confirmed")]
    assert mining.edges[0].evidence["single_actor"] is True


def test_a_log_without_actors_or_times_still_learns(mined: Mine, sessions: Sessions) -> None:
    events = [
        Event(event_id=e.event_id, session_id=e.session_id, skill=e.skill, seq=e.seq)
        for e in sessions(["plan build"] * 12 + BACKGROUND)
    ]

    mining = mined(events)

    assert (mining.witness, edges(mining)) == ("session", [("plan", "precedes", "build", "confirmed")])


def test_related_sessions_are_one_witness(mined: Mine, sessions: Sessions) -> None:
    """Twelve retellings of one task prove no more than one."""
    events = [
        Event(
            event_id=e.event_id,
            session_id=e.session_id,
            skill=e.skill,
            seq=e.seq,
            extra={"group": "one-task"} if e.skill in ("plan", "build") else {},
        )
        for e in sessions(["plan build"] * 12 + BACKGROUND)
    ]

    assert edges(mined(events)) == []


def test_an_empty_log_and_a_single_call_give_no_edges_and_no_error(mined: Mine, sessions: Sessions) -> None:
    assert edges(mined([], name="empty")) == []
    assert edges(mined(sessions(["plan"]), name="one")) == []


def test_evidence_carries_its_numbers(mined: Mine, sessions: Sessions) -> None:
    (edge,) = mined(sessions(["plan build"] * 12 + BACKGROUND)).edges

    kept = ("sessions", "forward", "backward", "parallel", "witnesses", "forward_witnesses", "share", "direct")
    assert [edge.evidence[name] for name in kept] == [12, 12, 0, 0, 3, 3, 1.0, True]
    assert edge.evidence["expected"] == pytest.approx(12 * 12 / 72)
    assert isinstance(edge, Edge)
