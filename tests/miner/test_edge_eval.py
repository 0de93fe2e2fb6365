"""Edges judged by sessions that the miner did not see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from miner.edge_eval import deal, evaluate_edges, first_before, judged
from miner.next_eval import Session, read_sessions


def session(skills: str, unit: str = "u") -> Session:
    return Session(tuple(skills.split()), unit, None, None)


def test_the_two_halves_share_no_unit() -> None:
    sessions = [session("a b", unit=f"task-{i // 3}") for i in range(30)]

    one, other = deal(sessions, seed=0)

    assert (len(one), len(other)) == (15, 15)
    assert not {s.unit for s in one} & {s.unit for s in other}


def test_order_is_that_of_first_calls() -> None:
    assert first_before([session("a b a c")]) == {("a", "b"): 1, ("a", "c"): 1, ("b", "c"): 1}


def test_claims_are_right_weak_reversed_or_not_judged() -> None:
    unseen = [*[session("a b")] * 7, *[session("b a")] * 3, *[session("c d"), session("d c")], session("f e")]

    fate = judged([([("a", "b"), ("c", "d"), ("e", "f"), ("x", "y")], unseen)], truth={("b", "a"), ("c", "d")})

    assert (fate["claimed"], fate["judged"]) == (4, 3)
    assert (fate["right"], fate["weak"], fate["reversed"]) == (1, 1, 1)
    assert fate["precision"] == pytest.approx(1 / 3, abs=1e-4)
    assert fate["truth_edges"] == {"claimed": 1, "reversed": 1}


def test_a_planted_order_is_claimed_by_both_halves_and_right(tmp_path: Path) -> None:
    lines = [
        {"session_id": f"s{i}", "seq": seq, "skill_id": skill}
        for i, order in enumerate(["plan build"] * 40 + [f"x{n} y{(3 * n) % 11}" for n in range(160)])
        for seq, skill in enumerate(order.split())
    ]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    document = evaluate_edges(tmp_path)

    assert document["precedes"]["confirmed"] == {
        "claimed": 2,
        "judged": 2,
        "right": 2,
        "weak": 0,
        "reversed": 0,
        "precision": 1.0,
        "reversed_share": 0.0,
        "truth_edges": None,
    }


@pytest.mark.data
@pytest.mark.parametrize("name", ["ultratool", "galaxy_eu_2019"])
def test_confirmed_orders_of_real_logs_are_not_reversed_in_unseen_sessions(name: str, data: Path) -> None:
    confirmed = evaluate_edges(data / name)["precedes"]["confirmed"]

    assert confirmed["judged"] >= 50
    assert confirmed["reversed_share"] <= 0.01
    assert confirmed["precision"] >= 0.85


@pytest.mark.data
def test_where_no_order_repeats_nothing_is_claimed(data: Path) -> None:
    document = evaluate_edges(data / "seal_tools")

    assert document["precedes"]["confirmed"]["claimed"] + document["complements"]["confirmed"] <= 1
    assert len(read_sessions(data / "seal_tools")) == 1560
