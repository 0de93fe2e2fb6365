"""The case of a pair: what is said where there is an edge, where there is none, and where nothing was seen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from collector.doors import open_door
from cowpath.errors import BadFile, NothingLearned, UnknownSkill
from cowpath.event import Event
from cowpath.home import Home
from cowpath.settings import Settings
from miner.stages import mine
from ranker.why import why

ORDERS = ["plan build"] * 12 + ["hub lint"] * 3 + [f"hub x{i} y{(3 * i) % 11}" for i in range(60)]


@pytest.fixture
def mined(home: Home) -> Settings:
    return learn(Settings(home=str(home.root)), ORDERS)


def learn(settings: Settings, orders: Sequence[str]) -> Settings:
    events = [
        Event(event_id=f"{n}-{seq}", session_id=str(n), skill=skill, seq=seq, actor=("ann", "bob", "cid")[n % 3])
        for n, order in enumerate(orders)
        for seq, skill in enumerate(order.split())
    ]
    with open_door(settings) as door:
        door.send(events)
        door.publish()
    mine(settings)
    return settings


def test_a_confirmed_pair_says_in_how_many_sessions(mined: Settings) -> None:
    case = why(mined, "plan", "build")

    assert (case["verdict"], case["status"], case["failed"]) == ("precedes", "confirmed", [])
    assert (case["evidence"]["this_order"], case["evidence"]["other_order"]) == (12, 0)
    assert case["text"].startswith("plan comes before build (confirmed). Together in 12 sessions")
    assert [edge["relation"] for edge in case["edges"]] == ["precedes"]


def test_asked_the_wrong_way_round_the_case_says_so(mined: Settings) -> None:
    case = why(mined, "build", "plan")

    assert case["verdict"] == "reversed"
    assert case["text"].startswith("It is the other way round: plan comes before build")
    assert [failed["test"] for failed in case["failed"]] == ["direction"]
    assert case["evidence"]["lower"] < 0.5 < case["failed"][0]["bound"]


def test_a_refused_pair_names_each_missed_test_with_value_and_bound(mined: Settings) -> None:
    case = why(mined, "hub", "lint")

    missed = {failed["test"]: failed for failed in case["failed"]}
    assert case["verdict"] == "unrelated"
    assert missed["lift"]["bound"] == 1.3
    assert missed["lift"]["value"] == pytest.approx(3 / (3 * 63 / 75), abs=1e-6)
    assert "at least 1.3 is needed" in case["text"]


def test_a_pair_that_never_met_says_what_chance_would_have_given(mined: Settings) -> None:
    case = why(mined, "plan", "hub")

    assert (case["verdict"], case["evidence"]["sessions"]) == ("unseen", 0)
    assert case["evidence"]["expected"] == pytest.approx(12 * 63 / 75)


def test_a_pair_that_only_our_advice_brought_together_says_so(home: Home) -> None:
    settings = Settings(home=str(home.root))
    with open_door(settings) as door:
        for n in range(8):
            door.send([Event(event_id=f"{n}-0", session_id=str(n), skill="plan", seq=0, actor=f"a{n % 2}")])
            advised = Event(
                event_id=f"{n}-1", session_id=str(n), skill="audit", seq=1, actor=f"a{n % 2}", suggested_by="cowpath"
            )
            door.send([advised, Event(event_id=f"{n}-2", session_id=f"other-{n}", skill="audit", seq=0)])
        door.publish()
    mine(settings)

    case = why(settings, "plan", "audit")

    assert (case["verdict"], case["evidence"]["sessions"], case["evidence"]["suggested_excluded"]) == ("unseen", 0, 8)
    assert case["text"].endswith("8 co-uses followed our own advice and do not count.")


def test_a_single_actors_edge_is_worded_modestly(home: Home) -> None:
    settings = Settings(home=str(home.root))
    with open_door(settings) as door:
        door.send(
            [
                Event(event_id=f"{n}-{seq}", session_id=str(n), skill=skill, seq=seq)
                for n, order in enumerate(ORDERS)
                for seq, skill in enumerate(order.split())
            ]
        )
        door.publish()
    mine(settings)

    assert why(settings, "plan", "build")["text"].endswith(
        "Only one actor is known here: it may be nothing but a habit."
    )


def test_unknown_skills_unmined_homes_and_broken_files_are_typed_errors(mined: Settings, home: Home) -> None:
    with pytest.raises(UnknownSkill, match="did you mean 'plan'"):
        why(mined, "plam", "build")
    (home.learned / "run.json").write_text("{")
    with pytest.raises(BadFile) as broken:
        why(mined, "plan", "build")
    assert broken.value.suggestions == ["cowpath mine"]
    (home.learned / "pairs.parquet").unlink()
    with pytest.raises(NothingLearned):
        why(mined, "plan", "build")
