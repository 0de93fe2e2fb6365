"""The demo's log: it is what its generator writes, and it holds the paths and the traps that it claims."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from examples.demo import world

Pair = tuple[str, str]


@pytest.fixture(scope="module")
def log() -> list[dict[str, Any]]:
    return [json.loads(line) for line in world.read_log()]


def test_the_shipped_log_is_what_the_generator_writes() -> None:
    """Compared unpacked: two zlib versions may pack equal text differently."""
    assert world.to_lines(world.generate()).splitlines() == world.read_log()


def test_the_shipped_log_stays_small() -> None:
    assert world.EVENTS.stat().st_size < 1.5 * 2**20


def test_another_seed_gives_another_log() -> None:
    assert world.to_lines(world.generate(seed=world.SEED + 1)).splitlines() != world.read_log()


def test_every_skill_of_the_log_has_a_file_and_every_file_is_called(log: list[dict[str, Any]]) -> None:
    files = {path.parent.name for path in world.SKILLS.glob("*/SKILL.md")}
    assert {event["skill"] for event in log} == files
    assert all(f"name: {name}\n" in (world.SKILLS / name / "SKILL.md").read_text() for name in files)


def test_event_ids_are_unique_and_a_stream_counts_its_calls(log: list[dict[str, Any]]) -> None:
    assert len({event["event_id"] for event in log}) == len(log)
    streams: dict[Pair, list[int]] = defaultdict(list)
    for event in log:
        streams[event["session_id"], event.get("stream_id", "")].append(event["seq"])
    assert all(seqs == list(range(len(seqs))) for seqs in streams.values())


def test_planted_orders_are_walked_by_many_actors(log: list[dict[str, Any]]) -> None:
    forward, backward = orders(log)
    for pair in world.truth().precedes:
        assert len({actor for actor, _ in forward[pair]}) >= 5, pair
        assert len(forward[pair]) > 2 * len(backward[pair]), pair


def test_truth_holds_the_steps_between_and_no_pair_twice() -> None:
    truth = world.truth()
    assert ("reproduce-fault", "draft-changelog") in truth.precedes
    assert ("query-metrics", "write-postmortem") in truth.precedes
    assert ("query-logs", "query-metrics") in truth.complements
    assert {tuple(sorted(pair)) for pair in truth.precedes} & truth.complements == set()
    assert {(b, a) for a, b in truth.precedes} & truth.precedes == set()


def test_the_traps_are_in_the_log(log: list[dict[str, Any]]) -> None:
    forward, backward = orders(log)

    assert {actor for actor, _ in forward[world.PRIVATE]} == {world.PRIVATE_ACTOR}
    assert len(forward[world.PRIVATE]) >= 20

    assert {actor for actor, _ in backward[world.HABIT]} == {world.HABIT_ACTOR}

    hub = {event["session_id"] for event in log if event["skill"] == world.HUB}
    assert len(hub) > 0.5 * world.SESSIONS

    batches: dict[str, set[str]] = defaultdict(set)
    for event in log:
        if event["skill"] in world.PARALLEL:
            batches[event["batch_id"]].add(event["skill"])
    assert all(skills == set(world.PARALLEL) for skills in batches.values())


def test_the_advised_pair_is_never_walked_unadvised(log: list[dict[str, Any]]) -> None:
    advised = [event for event in log if event.get("suggested_by")]
    assert {event["skill"] for event in advised} == {world.ADVISED[1]}
    assert len(advised) >= 20

    own_accord = [event for event in log if not event.get("suggested_by")]
    assert orders(own_accord)[0][world.ADVISED] == []
    assert orders(own_accord)[1][world.ADVISED] == []


def test_twins_are_never_used_together(log: list[dict[str, Any]]) -> None:
    forward, backward = orders(log)
    assert [pair for pair in world.TWINS.items() if forward[pair] or backward[pair]] == []


def orders(log: Iterable[dict[str, Any]]) -> tuple[dict[Pair, list[Pair]], dict[Pair, list[Pair]]]:
    """For each ordered pair, the (actor, session)s whose first calls came in that order, and in the other one."""
    firsts: dict[Pair, dict[str, int]] = defaultdict(dict)
    for at, event in enumerate(log):
        firsts[event["actor"], event["session_id"]].setdefault(event["skill"], at)
    forward: dict[Pair, list[Pair]] = defaultdict(list)
    backward: dict[Pair, list[Pair]] = defaultdict(list)
    for session, first in firsts.items():
        for a, b in ((a, b) for a in first for b in first if a != b):
            (forward if first[a] < first[b] else backward)[a, b].append(session)
    return forward, backward
