"""Uplift: served sessions against held-out ones, by their first list, with an interval, and too few said as such."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from cowpath.cli import run
from cowpath.cli.uplift import page
from cowpath.edge import Edge, write_layer
from cowpath.errors import StateError
from cowpath.event import Event
from cowpath.interval import newcombe, wilson
from cowpath.settings import Settings
from miner.uplift import uplift

NINE = datetime(2026, 3, 1, 9, tzinfo=UTC)

Publish = Callable[..., Settings]


def session(name: str, policy: str, calls: Sequence[str], *, lists: Sequence[Sequence[str]]) -> list[Event]:
    """A session that calls ``plan``, is shown the first list, makes one call, is shown the second, and so on."""
    events = [_event(name, 0, "plan")]
    for number, shown in enumerate(lists):
        extra = {"list": f"{name}-l{number}", "rank": 1, "shown": list(shown), "policy": policy, "after": "plan"}
        events.append(_event(name, 2 * number + 1, shown[0], kind="impression", extra=extra))
        if number + 1 < len(lists):
            events.append(_event(name, 2 * number + 2, calls[number]))
    rest = calls[len(lists) - 1 :]
    return events + [_event(name, 2 * len(lists) + number, skill) for number, skill in enumerate(rest)]


def _event(session_id: str, minute: int, skill: str, **fields: object) -> Event:
    return Event(
        event_id=f"{session_id}-{minute}",
        session_id=session_id,
        skill=skill,
        called_at=NINE + timedelta(minutes=minute),
        actor="ann",
        **fields,  # type: ignore[arg-type]  # fields of an event, as the test writes them
    )


def many(policy: str, *, took: int, of: int) -> list[Event]:
    return [
        event
        for number in range(of)
        for event in session(
            f"{policy}{number}",
            policy,
            ["look", "build"] if number < took else ["look", "rest"],
            lists=[["build", "test"]],
        )
    ]


def test_the_interval_is_newcombes() -> None:
    """The first row of table II of the paper: 56/70 against 48/80."""
    low, high = newcombe((56, 70), (48, 80))
    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)
    assert newcombe((10, 10), (0, 20)) == pytest.approx((0.6791, 1.0), abs=5e-5)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=5e-5)


def test_sessions_that_were_shown_a_list_are_compared_with_those_that_were_not(publish: Publish) -> None:
    settings = publish([*many("served", took=70, of=100), *many("holdout", took=12, of=40)])
    edge = Edge(source="plan", relation="precedes", target="build", status="confirmed", provenance="learned")
    seldom = Edge(source="plan", relation="precedes", target="test", status="confirmed", provenance="learned")
    write_layer(settings.at.edges, "learned", [edge, seldom])

    document = uplift(settings, within=5)

    assert document["served"] == {"sessions": 100, "followed": 70, "share": 0.7}
    assert document["holdout"] == {"sessions": 40, "followed": 12, "share": 0.3}
    assert document["difference"] == 0.4
    assert document["interval"] == [round(bound, 6) for bound in newcombe((70, 100), (12, 40))]
    assert document["enough"]
    (told,) = document["edges"]
    assert (told["target"], told["co_uses"], told["difference"]) == ("build", 82, 0.4)
    assert document["edges_with_too_few"] == 1
    assert "difference +40.0% (95 % interval +21.8% to +54.4%)" in page(document)


def test_only_the_first_list_of_a_session_decides_and_only_calls_soon_after_it(publish: Publish) -> None:
    settings = publish(
        [
            *session("late", "served", ["a", "b", "build"], lists=[["build"]]),
            *session("second", "served", ["a", "test"], lists=[["build"], ["test"]]),
            *session("before", "served", ["a"], lists=[["plan"]]),
        ]
    )

    three, two = uplift(settings, within=3), uplift(settings, within=2)

    assert (three["served"]["followed"], two["served"]["followed"]) == (1, 0)
    assert (two["lists"]["served"]["lists"], two["lists"]["served"]["followed"]) == (4, 1)


def test_a_call_that_names_the_list_follows_it_however_late(publish: Publish) -> None:
    events = session("s", "served", ["a", "b", "c", "build"], lists=[["build"]])
    last = events.pop()
    settings = publish([*events, _event("s", 99, last.skill, suggested_by="s-l0")])

    document = uplift(settings, within=1)

    assert document["served"]["followed"] == 1
    assert document["lists"]["served"] == {"lists": 1, "followed": 1, "said": 1}


def test_too_few_sessions_are_said_to_be_too_few(publish: Publish) -> None:
    document = uplift(publish(many("served", took=3, of=5)), within=5)

    assert (document["enough"], document["difference"], document["interval"]) == (False, None, None)
    assert document["reason"] == ("too few sessions to say: 5 served and 0 held out, at least 20 of each are needed")
    assert document["reason"] in page(document)


def test_a_log_without_impressions_is_too_few_too_and_no_log_is_an_error(
    publish: Publish, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert uplift(publish([_event("s", 0, "plan")]), within=5)["served"]["sessions"] == 0
    with pytest.raises(StateError, match="nothing is published"):
        uplift(Settings(home=str(tmp_path_factory.mktemp("nothing"))), within=5)


def test_the_command_prints_the_document(publish: Publish, capsys: pytest.CaptureFixture[str]) -> None:
    settings = publish(many("served", took=3, of=5))

    with pytest.raises(SystemExit) as done:
        run(["uplift", "--within", "4", "--json", "--home", settings.home])

    assert not done.value.code
    assert json.loads(capsys.readouterr().out) == uplift(settings, within=4)
