"""A planted world comes back, and nothing else does."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest

from benchmarks.worlds import World, live, plant, plant_nothing, truth
from miner.stages import Mining

Mine = Callable[..., Mining]


@pytest.fixture(scope="module")
def world() -> World:
    return plant(21)


def directed(mining: Mining, status: str = "confirmed") -> set[tuple[str, str]]:
    return {(e.source, e.target) for e in mining.edges if e.relation == "precedes" and e.status == status}


@pytest.mark.slow
def test_a_planted_world_comes_back_and_nothing_else_does(world: World, mined: Mine) -> None:
    mining = mined(live(world, sessions=3_000, seed=21))

    planted = truth(world)
    judged = {pair for pair in directed(mining) if tuple(sorted(pair)) not in planted.retired}
    right = judged & planted.precedes
    assert len(right) / len(judged) >= 0.97
    assert len(right) / len(planted.precedes) >= 0.6
    assert not {(b, a) for a, b in judged} & planted.precedes
    hubs = {*world.hubs, *world.starters, *world.enders}
    assert not [edge for edge in mining.edges if {edge.source, edge.target} & hubs]
    assert not {tuple(sorted(p)) for p in world.private_pairs.values()} & {
        tuple(sorted((e.source, e.target))) for e in mining.edges if e.status == "confirmed"
    } - planted.complements - {tuple(sorted(p)) for p in planted.precedes}


def test_where_nothing_is_planted_nothing_is_found(mined: Mine) -> None:
    mining = mined(live(plant_nothing(7), sessions=3_000, seed=7))

    assert len(directed(mining)) <= 1
    assert len(mining.edges) <= 3


def test_renaming_every_skill_renames_every_edge(world: World, mined: Mine) -> None:
    events = live(world, sessions=1_000, seed=3)
    shuffled = sorted(world.skills)
    random.Random(1).shuffle(shuffled)
    names = dict(zip(sorted(world.skills), shuffled, strict=True))

    before = mined(events, name="before")
    after = mined([msgspec.structs.replace(e, skill=names[e.skill]) for e in events], name="after")

    assert directed(before) | directed(before, "candidate")
    assert {(names[a], names[b]) for a, b in directed(before)} == directed(after)
    assert {frozenset((names[e.source], names[e.target])) for e in before.edges if e.relation == "complements"} == {
        frozenset((e.source, e.target)) for e in after.edges if e.relation == "complements"
    }
