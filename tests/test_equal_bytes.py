"""Equal logs leave equal bytes, whatever the order or the day of their arrival."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.worlds import live, plant
from collector.doors import open_door
from cowpath.event import Event
from cowpath.settings import Settings
from miner.stages import mine


def learned(home: Path, events: list[Event], *, batch: int, mine_each: bool = False) -> dict[str, bytes]:
    """Send, publish and mine in a home; every file that is left, by name."""
    settings = Settings(home=str(home))
    for start in range(0, len(events), batch):
        with open_door(settings) as door:
            door.send(events[start : start + batch])
            door.publish()
        if mine_each:
            mine(settings)
    if not mine_each:
        mine(settings)
    return files_of(settings)


def files_of(settings: Settings) -> dict[str, bytes]:
    """What the run learned. ``learned/runs`` is left out: it tells of earlier runs too, and when each was mined."""
    found = [*settings.at.learned.iterdir(), *settings.at.edges.iterdir()]
    return {path.name: path.read_bytes() for path in found if path.name != "runs"}


def test_b10_equal_logs_give_equal_bytes_in_whatever_order_they_arrive(tmp_path: Path) -> None:
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
        "recoveries.jsonl",
        "next.npz",
        "run.json",
    }
    assert len(straight["learned.jsonl"].splitlines()) > 10
    assert again == straight
    assert {name for name in mixed if mixed[name] != straight[name]} == set()


def test_mining_again_and_again_while_the_log_comes_in_leaves_the_bytes_of_one_run(tmp_path: Path) -> None:
    events = live(plant(6, skills=80, templates=14, actors=6), sessions=500, seed=6)
    random.Random(3).shuffle(events)

    assert learned(tmp_path / "often", events, batch=900, mine_each=True) == learned(
        tmp_path / "once", events, batch=5_000
    )


def test_homes_with_one_secret_that_share_no_session_learn_together_what_one_home_learns(tmp_path: Path) -> None:
    events = live(plant(7, skills=80, templates=14, actors=6), sessions=500, seed=7)
    together = learned(tmp_path / "together", events, batch=5_000)
    secret = (tmp_path / "together" / "secret").read_bytes()
    for part in (0, 1):
        home = tmp_path / f"part-{part}"
        home.mkdir()
        (home / "secret").write_bytes(secret)
        learned(home, [e for e in events if int(e.session_id[1:]) % 2 == part], batch=5_000)

    apart = Settings(home=str(tmp_path / "part-0"))
    assert files_of(apart) != together
    mine(apart, others=[tmp_path / "part-1" / "statistics.duckdb"])

    assert files_of(apart) == together
