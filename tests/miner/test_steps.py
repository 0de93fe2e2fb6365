"""events -> steps: what counts as a step, and in which order."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest

from cowpath.event import Event
from cowpath.store import Store
from miner.stages import Mining

Table = Callable[[str], list[Event]]
Mine = Callable[..., Mining]


def steps(store: Store) -> list[tuple[int, int, str]]:
    """(sequence, turn, skill) of the spontaneous steps."""
    return store.rows(
        "select sequence, turn, skill_id from kept.steps join kept.skills using (skill) "
        "where not suggested order by all"
    )


def test_repeats_of_a_skill_fold_into_one_step(mined: Mine, table: Table) -> None:
    mining = mined(
        table("""
            session  seq  skill
            s1       0    plan
            s1       1    plan
            s1       2    commit
            s1       3    plan
        """)
    )

    assert steps(mining.store) == [(1, 1, "plan"), (1, 3, "commit"), (1, 4, "plan")]


@pytest.mark.parametrize("how", ["seq", "batch"])
def test_parallel_calls_share_a_turn_and_carry_no_order(how: str, mined: Mine, table: Table) -> None:
    rows = {
        "seq": "s1 0 - lint\ns1 0 - test\ns1 1 - ship",
        "batch": "s1 0 b1 lint\ns1 1 b1 test\ns1 2 - ship",
    }[how]

    mining = mined(table("session seq batch skill\n" + rows))

    pairs = {(row["a"], row["b"]): row for row in mining.pairs.iter_rows(named=True)}
    assert (pairs["lint", "test"]["forward"], pairs["lint", "test"]["backward"]) == (0, 0)
    assert pairs["lint", "test"]["parallel"] == 1
    assert pairs["lint", "ship"]["forward"] + pairs["lint", "ship"]["backward"] == 1


def test_the_client_order_rules_over_the_clock(mined: Mine, table: Table) -> None:
    mining = mined(
        table("""
            session  seq  at                   skill
            s1       2    2026-03-01T09:00:00  third
            s1       1    2026-03-01T09:00:05  second
            s1       0    2026-03-01T09:00:09  first
        """)
    )

    assert [skill for _, _, skill in steps(mining.store)] == ["first", "second", "third"]


def test_a_stream_where_some_calls_have_no_number_goes_by_the_clock(mined: Mine, table: Table) -> None:
    mining = mined(
        table("""
            session  seq  at                   skill
            s1       -    2026-03-01T09:00:00  first
            s1       0    2026-03-01T09:00:05  second
        """)
    )

    assert [skill for _, _, skill in steps(mining.store)] == ["first", "second"]


def test_streams_of_one_session_are_never_interleaved(mined: Mine, table: Table) -> None:
    mining = mined(
        table("""
            session  stream  seq  skill
            s1       -       0    plan
            s1       sub     1    search
            s1       -       2    ship
        """)
    )

    assert steps(mining.store) == [(1, 1, "plan"), (1, 2, "ship"), (2, 1, "search")]


def test_denied_and_suggested_calls_are_no_spontaneous_steps(mined: Mine, table: Table) -> None:
    mining = mined(
        table("""
            session  seq  skill   outcome  suggested_by
            s1       0    plan    -        -
            s1       1    deploy  denied   -
            s1       2    audit   -        cowpath
            s1       3    ship    -        -
        """)
    )

    assert [skill for _, _, skill in steps(mining.store)] == ["plan", "ship"]
    assert mining.store.rows("select a, b, suggested from suggested_pairs order by all") == [
        ("audit", "plan", 1),
        ("audit", "ship", 1),
    ]


def test_arrival_order_and_repeats_change_nothing(mined: Mine, table: Table) -> None:
    events = table("""
        session  seq  skill  actor  batch
        s1       0    a      ann    -
        s1       1    b      ann    p
        s1       2    c      ann    p
        s2       0    b      bob    -
        s2       1    a      bob    -
    """)
    shuffled = [*events, *events]
    random.Random(0).shuffle(shuffled)

    straight = mined(events, name="straight")
    mixed = mined(shuffled, name="mixed")

    assert steps(mixed.store) == steps(straight.store)
    assert mixed.run_id == straight.run_id
    assert mixed.pairs.equals(straight.pairs)


def test_renaming_the_skills_renames_the_steps_and_nothing_else(mined: Mine, table: Table) -> None:
    events = table("""
        session  seq  skill  batch
        s1       0    a      p
        s1       0    b      p
        s1       1    b      -
        s1       2    c      -
    """)
    names = {"a": "z", "b": "y", "c": "x"}
    renamed = [msgspec.structs.replace(e, skill=names[e.skill]) for e in events]

    before = steps(mined(events, name="before").store)
    after = steps(mined(renamed, name="after").store)

    assert sorted((sequence, turn, names[skill]) for sequence, turn, skill in before) == sorted(after)
