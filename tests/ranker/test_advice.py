"""What is shown to a named session leaves an impression, a share of the sessions is shown nothing, nothing waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from collector.private import without_private
from cowpath.errors import InputError
from cowpath.event import Event
from cowpath.home import write_whole
from cowpath.settings import Settings, read_settings
from cowpath.spool import Spool
from cowpath.store import Store
from ranker.advice import MAX_LIST, impressions, policy_of
from ranker.app import create_app
from ranker.engine import Ranker


def spooled(settings: Settings) -> list[dict[str, Any]]:
    """The events that wait in the home's spool."""
    return [
        json.loads(line.partition(b" ")[2])
        for path in settings.at.spool.glob("*.spool")
        for line in path.read_bytes().splitlines()
    ]


def test_a_list_for_a_named_session_leaves_an_impression_of_it(learned: Settings) -> None:
    settings, taken = replace(learned, holdout_share=0.0), list[Event]()
    write_whole(settings.at.learned / "run.json", b'{"run_id": "r1"}')

    answer = Ranker(settings, record=taken.extend).next(["lint-code", "run-tests"], session="s1", k=3)

    (event,) = taken
    assert (answer.policy, answer.advice) == ("served", event.event_id)
    assert len(answer.suggestions) == 3
    assert (event.kind, event.session_id, event.skill) == ("impression", "s1", answer.suggestions[0].skill_id)
    assert event.extra == {
        "list": event.event_id,
        "rank": 1,
        "shown": [one.skill_id for one in answer.suggestions],
        "policy": "served",
        "propensity": 1.0,
        "after": "run-tests",
        "run": "r1",
    }


def test_a_session_of_the_holdout_is_shown_nothing_and_told_so_and_what_it_missed_is_kept(learned: Settings) -> None:
    shown, kept = list[Event](), list[Event]()
    everybody, nobody = replace(learned, holdout_share=0.0), replace(learned, holdout_share=1.0)
    served = Ranker(everybody, record=shown.extend).next(["run-tests"], session="s1")

    answer = Ranker(nobody, record=kept.extend).next(["run-tests"], session="s1")

    assert (answer.policy, answer.advice, answer.suggestions, answer.left_out) == ("holdout", None, [], [])
    assert answer.context == served.context
    assert "s1" in (answer.reason or "")
    assert "100%" in (answer.reason or "")
    assert kept[0].extra["shown"] == shown[0].extra["shown"]
    assert (kept[0].extra["policy"], kept[0].extra["propensity"]) == ("holdout", 1.0)


def test_without_a_session_there_is_no_impression_and_no_holdout(learned: Settings) -> None:
    taken: list[Event] = []

    answer = Ranker(replace(learned, holdout_share=1.0), record=taken.extend).next(["run-tests"])

    assert (answer.policy, answer.advice, taken) == (None, None, [])
    assert answer.suggestions


def test_the_holdout_is_a_share_of_sessions_by_a_key_of_this_home_and_stays_the_same(learned: Settings) -> None:
    sessions = [f"session-{number}" for number in range(4_000)]

    def held_out(secret: bytes) -> set[str]:
        write_whole(learned.at.secret, secret)
        return {session for session in sessions if policy_of(session, learned) == "holdout"}

    here, again, elsewhere = held_out(b"one" * 16), held_out(b"one" * 16), held_out(b"two" * 16)

    assert 0.04 * 4_000 < len(here) < 0.06 * 4_000
    assert here == again
    assert len(here & elsewhere) < 30


def test_a_share_above_one_is_refused() -> None:
    with pytest.raises(InputError, match="COWPATH_HOLDOUT_SHARE"):
        read_settings({"COWPATH_HOLDOUT_SHARE": "5"})


def test_a_long_list_is_kept_whole_by_the_intake_in_parts() -> None:
    skills = [f"{number:03d}-{'x' * 200}" for number in range(7)]

    events = impressions(skills, session="s", after=None, policy="served", run=None, holdout_share=0.05)

    kept = [without_private(event.extra) for event in events]
    assert [skill for extra in kept for skill in extra["shown"]] == skills
    assert [extra["rank"] for extra in kept] == [1, 3, 5, 7]
    assert {extra["list"] for extra in kept} == {events[0].event_id}
    assert len({event.event_id for event in events}) == 4
    assert MAX_LIST < 512


def test_an_answer_does_not_fail_where_its_impression_cannot_be_kept(learned: Settings) -> None:
    learned.at.spool.write_text("a file where the folder should be")

    assert Ranker(replace(learned, holdout_share=0.0)).next(["run-tests"], session="s1").suggestions


def test_a_ranker_alone_records_through_the_spool(learned: Settings) -> None:
    settings = replace(learned, holdout_share=0.0, port=1)

    with TestClient(create_app(settings)) as client:
        answer = client.get("/v1/next", params={"skill": "run-tests", "session": "s1"}).json()

    assert [event["event_id"] for event in spooled(settings)] == [answer["advice"]]


def test_in_a_terminal_the_impression_waits_in_the_spool_where_no_collector_listens(learned: Settings) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cowpath", "next", "run-tests", "--session", "s1", "--home", learned.home, "--json"],
        env=os.environ | {"COWPATH_HOLDOUT_SHARE": "0", "COWPATH_PORT": "1"},
        capture_output=True,
        check=True,
    )

    advice = json.loads(done.stdout)["advice"]
    assert [(event["event_id"], event["kind"]) for event in spooled(learned)] == [(advice, "impression")]
    assert Spool(learned.at.spool).waiting()[0] == 1


def test_beside_a_collector_impressions_of_http_and_terminal_become_events_and_calls_name_them(
    learned: Settings,
) -> None:
    up = subprocess.Popen(
        [sys.executable, "-m", "cowpath", "up", "--home", learned.home, "--port", "0", "--publish-every", "0"],
        env=os.environ | {"COWPATH_HOLDOUT_SHARE": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert up.stdout is not None
        url = json.loads(up.stdout.readline())["url"]
        asked = httpx.get(f"{url}/v1/next", params={"skill": "run-tests", "session": "s1"}).json()
        call = {"session_id": "s1", "skill_id": "deploy-service", "suggested_by": asked["advice"]}
        httpx.post(f"{url}/v1/events", json={"events": [call]}).raise_for_status()
        typed = subprocess.run(
            [sys.executable, "-m", "cowpath", "next", "run-tests", "--session", "s2", "--home", learned.home],
            env=os.environ | {"COWPATH_HOLDOUT_SHARE": "0", "COWPATH_URL": url},
            capture_output=True,
            check=True,
        )
    finally:
        up.terminate()
        up.communicate(timeout=30)

    with Store.open(learned.at.live, read_only=True) as live:
        shown = live.rows("select session_id, event_id, source from events where kind = 'impression' order by 1")
        named = live.rows("select suggested_by from events where kind = 'activated'")
    assert shown == [
        ("s1", asked["advice"], "cowpath-ranker"),
        ("s2", json.loads(typed.stdout)["advice"], "cowpath-ranker"),
    ]
    assert named == [(asked["advice"],)]


def test_nobody_waits_for_an_intake_that_hangs_and_what_is_lost_is_counted() -> None:
    from threading import Event as Signal

    from collector.aside import Aside

    hanging, taken = Signal(), list[Event]()

    def take_in(events: Any) -> None:
        hanging.wait(10)
        taken.extend(events)

    aside = Aside(take_in, room=2)
    events = impressions(["plan"], session="s", after=None, policy="served", run=None, holdout_share=0.0)
    for _ in range(8):
        aside(events)
    assert taken == []
    hanging.set()
    aside.close()

    assert len(taken) + aside.lost == 8
    assert aside.lost >= 5
