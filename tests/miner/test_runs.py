"""Kept runs: what was learned, changed and dropped between two of them, and why; bounded, and gone with an erasure."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from collector.doors import open_door
from cowpath.cli import run
from cowpath.cli.runs import page
from cowpath.errors import InputError, NothingLearned
from cowpath.event import Event
from cowpath.settings import Settings
from miner.runs import diff, kept_runs, runs
from miner.stages import mine

NOISE = [f"x{i} y{(3 * i) % 11}" for i in range(60)]
FIRST = ["plan build"] * 12 + NOISE
LATER = ["build plan"] * 30 + ["lint ship"] * 12

Publish = Callable[..., Settings]
Sessions = Callable[..., list[Event]]


@pytest.fixture
def twice(publish: Publish, sessions: Sessions) -> Settings:
    """A home mined before and after the habit of plan and build turned and a new path appeared."""
    settings = publish(sessions(FIRST))
    mine(settings)
    more(settings, sessions([*FIRST, *LATER]))
    mine(settings)
    return settings


def more(settings: Settings, events: list[Event]) -> None:
    with open_door(settings) as door:
        door.send(events)
        door.publish()


def claims(edges: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return [(edge["source"], edge["relation"], edge["target"], edge["status"]) for edge in edges]


def test_a_run_that_finds_the_same_log_is_one_run_mined_again(publish: Publish, sessions: Sessions) -> None:
    settings = publish(sessions(FIRST))
    first, second = mine(settings), mine(settings)

    (kept,) = runs(settings.at)

    assert first["run_id"] == second["run_id"] == kept["run_id"]
    assert (kept["times"], kept["sessions"]) == (2, 72)
    assert kept["edges"]["precedes"]["confirmed"] == 1


def test_learned_and_turned_edges_are_told_with_the_test_that_keeps_them_a_candidate(twice: Settings) -> None:
    document = diff(twice.at, "previous", "latest")

    assert document["log"]["sessions"] == [72, 114]
    assert document["parameters"] == {}
    assert claims(document["learned"]) == [("lint", "precedes", "ship", "confirmed")]
    assert document["learned"][0]["lacked"] == {"verdict": "unrelated", "failed": []}
    assert document["dropped"] == []
    (changed,) = document["changed"]
    assert claims([changed["before"], changed["after"]]) == [
        ("plan", "precedes", "build", "confirmed"),
        ("build", "precedes", "plan", "candidate"),
    ]
    assert [test["test"] for test in changed["lacks"]["failed"]] == ["direction"]


def test_a_dropped_edge_names_the_test_it_failed_and_the_way_back_is_the_mirror(
    publish: Publish, sessions: Sessions
) -> None:
    settings = publish(sessions(FIRST))
    mine(settings)
    # Too often the other way round for an order, too seldom for none.
    more(settings, sessions([*FIRST, *["build plan"] * 5]))
    mine(settings)

    there, back = diff(settings.at, "previous", "latest"), diff(settings.at, "latest", "previous")

    (dropped,) = there["dropped"]
    assert claims([dropped]) == [("plan", "precedes", "build", "confirmed")]
    assert dropped["lacks"]["verdict"] == "undetermined"
    failed = {test["test"]: test for test in dropped["lacks"]["failed"]}
    assert failed["direction"]["value"] < failed["direction"]["bound"] == 0.65
    assert claims(back["learned"]) == claims([dropped])
    assert back["learned"][0]["lacked"] == dropped["lacks"]
    assert "dropped: 1\n  plan → build (confirmed); now: direction 0." in page(there)


def test_only_so_many_runs_are_kept(twice: Settings, sessions: Sessions) -> None:
    ids = [one.run_id for one in kept_runs(twice.at)]
    one = replace(twice, keep_runs=1)
    mine(one)
    folder = twice.at.learned / "runs"

    assert len(ids) == 2
    assert [kept.run_id for kept in kept_runs(twice.at)] == ids[1:]
    assert sorted(path.name for path in folder.iterdir()) == sorted([ids[1], "runs.jsonl"])

    mine(replace(twice, keep_runs=0))
    assert not folder.exists()


def test_a_run_is_found_by_the_beginning_of_its_id_and_by_nothing_less(twice: Settings) -> None:
    old, new = (one.run_id for one in kept_runs(twice.at))

    assert diff(twice.at, old[:6], new)["old"]["run_id"] == old
    for name in ("nope", ""):
        with pytest.raises(InputError, match=f"kept are {old}, {new}"):
            diff(twice.at, name, new)


def test_without_a_run_the_command_says_what_to_do(settings_of_nothing: Settings) -> None:
    with pytest.raises(NothingLearned):
        diff(settings_of_nothing.at, "previous", "latest")
    assert runs(settings_of_nothing.at) == []


@pytest.fixture
def settings_of_nothing(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(home=str(tmp_path_factory.mktemp("nothing")))


def test_the_commands_print_the_same_documents(twice: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str) -> object:
        with pytest.raises(SystemExit) as done:
            run([*arguments, "--json", "--home", twice.home])
        assert not done.value.code
        return json.loads(capsys.readouterr().out)

    assert said("runs") == {"runs": runs(twice.at)}
    assert said("diff", "previous", "latest") == diff(twice.at, "previous", "latest")


def test_with_an_erased_actor_every_kept_run_goes(twice: Settings) -> None:
    with open_door(twice) as door:
        document = door.erase("actor", "ann")

    assert document["learned"] == "stale"
    assert not twice.at.learned.exists()
    mine(twice)
    assert len(kept_runs(twice.at)) == 1
