"""Equal logs leave equal bytes, whatever the order or the day of their arrival."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.worlds import live, plant
from collector.doors import open_door
from cowpath.event import Event
from cowpath.settings import Settings
from miner.stages import mine


def learned(home: Path, events: list[Event], *, batch: int) -> dict[str, bytes]:
    """Send, publish and mine in a new home; every file that is left, by name."""
    settings = Settings(home=str(home))
    with open_door(settings) as door:
        for start in range(0, len(events), batch):
            door.send(events[start : start + batch])
        door.publish()
    mine(settings)
    return {path.name: path.read_bytes() for path in [*settings.at.learned.iterdir(), *settings.at.edges.iterdir()]}


def test_equal_logs_give_equal_bytes_in_whatever_order_they_arrive(tmp_path: Path) -> None:
    events = live(plant(5, skills=80, templates=14, actors=6), sessions=700, seed=5)
    shuffled = [*events, *events[:500]]
    random.Random(2).shuffle(shuffled)

    straight = learned(tmp_path / "straight", events, batch=5_000)
    again = learned(tmp_path / "again", events, batch=5_000)
    mixed = learned(tmp_path / "mixed", shuffled, batch=777)

    assert set(straight) == {
        "learned.jsonl",
        "pairs.parquet",
        "strata.parquet",
        "suggested.parquet",
        "bundles.jsonl",
        "next.npz",
        "run.json",
    }
    assert len(straight["learned.jsonl"].splitlines()) > 10
    assert again == straight
    assert {name for name in mixed if mixed[name] != straight[name]} == set()
