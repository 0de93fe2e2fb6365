"""What mining costs: from the events to tested edges, beside what peers take for less, and what a run costs that adds.

    python -m benchmarks.mine_speed --json [--events 1000000] [--big 10000000]

Everything is measured in a process of its own on the same log: time without reading it, peak memory with everything.
Peers get it prepared (baskets, a frame) at no cost. A peer that is not installed is named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from benchmarks.machine import document, finish, peak_rss
from benchmarks.worlds import live, plant
from cowpath.event import Event
from cowpath.settings import Settings
from cowpath.store import Store
from miner.edge_eval import event_rows
from miner.parameters import Parameters
from miner.stages import Mining, build, count_pairs, read_log, test_pairs
from miner.statistics import keep_in

SKILLS, TEMPLATES, ACTORS, CALLS_A_SESSION = 1_000, 200, 60, 9.5
ADDED = 1_000
"""Sessions that come on top."""

BARS = {
    "slowest peer's pairs / ours": 6.0,
    "ours / DuckDB's bare count of ordered pairs by actor": 4.0,
    "peak memory in GB": 1.5,
    "reading 1,000 new sessions / reading all": 0.05,
    "edges that differ between added and at once": 0,
    "peak memory of the large log in GB": 8.0,
}
"""The first is a least, the others are mosts."""

PAIRS = """
    select count(*), sum(forward), sum(backward)
    from (
        select a.skill_id, b.skill_id, a.actor,
            count(*) filter (a.seq < b.seq) as forward, count(*) filter (a.seq > b.seq) as backward
        from (select session_id, skill_id, min(actor) as actor, min(seq) as seq from events group by all) as a
        join (select session_id, skill_id, min(seq) as seq from events group by all) as b using (session_id)
        where a.skill_id < b.skill_id
        group by all
    )
"""


def main() -> None:
    """Measure, print the document, exit 1 where a bar is missed."""
    asked = _arguments()
    if asked.measure:
        print(json.dumps(MEASURES[asked.measure](asked.log)))
        return
    with tempfile.TemporaryDirectory(prefix="cowpath-mine-") as folder:
        log = write_log(Path(folder, "log.parquet"), events=asked.events)
        found = {name: apart(name, log) for name in MEASURES if name != "large"}
        found["large"] = apart("large", write_large(log, Path(folder, "large.parquet"), asked.big)) if asked.big else {}
    finish(document("mine_speed", results=found, bars=bars(found)), as_json=asked.json)


def bars(found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    ours = found["ours"]["total_s"]
    peers = {name: found[name]["took_s"] for name in PEERS if "took_s" in found[name]}
    measured: dict[str, float] = {
        "ours / DuckDB's bare count of ordered pairs by actor": ours / found["bare"]["took_s"],
        "peak memory in GB": found["ours"]["peak_gb"],
        "reading 1,000 new sessions / reading all": found["added"]["added_s"] / found["added"]["all_s"],
        "edges that differ between added and at once": found["added"]["differ"],
    }
    if found["large"]:
        measured["peak memory of the large log in GB"] = found["large"]["peak_gb"]
    least = [
        {"bar": f"{name} / ours", "measured": round(took / ours, 2), "at": 6.0, "met": took / ours >= 6.0}
        for name, took in peers.items()
    ]
    return least + [
        {"bar": name, "measured": round(value, 3), "at": BARS[name], "met": value <= BARS[name]}
        for name, value in measured.items()
    ]


def ours(log: Path) -> dict[str, Any]:
    """Sums, read out, tests, false discovery rate, direction, cycles, edges with their evidence."""
    with opened(log) as store:
        began = time.perf_counter()
        mining = read_log(_mining(store))
        read_s = time.perf_counter() - began
        mining = build(test_pairs(count_pairs(mining)))
        total_s = time.perf_counter() - began
        return {
            "events": mining.profile["events"],
            "pairs": mining.pairs.height,
            "edges": len(mining.edges),
            "read_s": round(read_s, 3),
            "total_s": round(total_s, 3),
            **peak(),
        }


def large(log: Path) -> dict[str, Any]:
    return ours(log)


def added(log: Path) -> dict[str, Any]:
    """All but the last sessions, then these on top; beside all at once."""
    with opened(log) as store:
        began = time.perf_counter()
        at_once = read_log(_mining(store))
        all_s = time.perf_counter() - began
        expected = build(test_pairs(count_pairs(at_once))).edges
    with opened(log) as store:
        store.execute(
            f"create table last as select distinct session_id from events order by session_id desc limit {ADDED}"
        )
        store.execute("create table added as from events where session_id in (from last)")
        store.execute("delete from logged.events where session_id in (from last)")
        read_log(_mining(store))
        # New events lie behind everything that was read, as in a log they do.
        store.execute(
            "insert into logged.events "
            "select * replace (arrival + 1000000000 as arrival, changed + 1000000000 as changed) from added"
        )
        began = time.perf_counter()
        mining = read_log(_mining(store))
        added_s = time.perf_counter() - began
        edges = build(test_pairs(count_pairs(mining))).edges
    return {
        "all_s": round(all_s, 3),
        "added_s": round(added_s, 4),
        "edges": len(edges),
        "differ": len({repr(e) for e in edges} ^ {repr(e) for e in expected}),
    }


def bare(log: Path) -> dict[str, Any]:
    """DuckDB: which of two skills came first, by pair and actor; no tests, no parallel calls, no advice."""
    with opened(log) as store:
        took_s, ((pairs, _, _),) = timed(lambda: store.rows(PAIRS))
        return {"pairs": pairs, "took_s": took_s, **peak()}


def fpgrowth(log: Path) -> dict[str, Any]:
    """mlxtend, asked for what we claim from: every pair of as few sessions as an edge needs, and all its rules."""
    return _fpgrowth(log, sessions=Parameters().min_sessions, confidence=0.0)


def fpgrowth_frequent(log: Path) -> dict[str, Any]:
    """mlxtend, asked for less: pairs in one session of a thousand, rules from a confidence of .05. Held to no bar."""
    return _fpgrowth(log, share=0.001, confidence=0.05)


def _fpgrowth(log: Path, *, confidence: float, sessions: int = 0, share: float = 0.0) -> dict[str, Any]:
    """Frequent pairs without order, without actors, without tests, and their rules."""
    from mlxtend.frequent_patterns import association_rules
    from mlxtend.frequent_patterns import fpgrowth as grow

    from miner.itemsets import _one_hot

    baskets = pl.read_parquet(log).group_by("session_id").agg(pl.col("skill_id").unique())["skill_id"].to_list()
    skills = sorted({skill for basket in baskets for skill in basket})
    at = {skill: n for n, skill in enumerate(skills)}
    frame = _one_hot([sorted(at[skill] for skill in basket) for basket in baskets], skills)
    support = share or sessions / len(baskets)
    took_s, rules = timed(
        lambda: association_rules(
            grow(frame, min_support=support, max_len=2), metric="confidence", min_threshold=confidence
        )
    )
    return {"sessions": len(baskets), "support": support, "rules": len(rules), "took_s": took_s, **peak()}


def eventually_follows(log: Path) -> dict[str, Any]:
    """pm4py, asked for every pair: the eventually-follows graph, without actors and without tests."""
    import pm4py

    frame = (
        pl.read_parquet(log)
        .select(
            pl.col("session_id").alias("case:concept:name"),
            pl.col("skill_id").alias("concept:name"),
            pl.col("called_at").dt.replace_time_zone("UTC").alias("time:timestamp"),
        )
        .to_pandas()
    )
    took_s, graph = timed(lambda: pm4py.discover_eventually_follows_graph(frame))
    return {"pairs": len(graph), "took_s": took_s, **peak()}


PEERS = {"fpgrowth": "mlxtend", "eventually_follows": "pm4py"}
"""What our time is held against, and the package it needs. SPMF's RuleGrowth needs Java and is not run here."""

PACKAGES = PEERS | {"fpgrowth_frequent": "mlxtend"}
"""What is measured beside us."""

MEASURES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "file": lambda log: {"bytes": file_of(log).stat().st_size},
    "ours": ours,
    "added": added,
    "bare": bare,
    "fpgrowth": fpgrowth,
    "fpgrowth_frequent": fpgrowth_frequent,
    "eventually_follows": eventually_follows,
    "large": large,
}


def apart(name: str, log: Path) -> dict[str, Any]:
    """One measure in a process of its own, the log read once before."""
    if name in PACKAGES and find_spec(PACKAGES[name]) is None:
        return {"left out": f"{PACKAGES[name]} is not installed"}
    command = [sys.executable, "-m", "benchmarks.mine_speed", "--log", str(log), "--measure"]
    if name not in PACKAGES:
        subprocess.run([*command, "file"], stdout=subprocess.DEVNULL, check=True)
    done = subprocess.run([*command, name], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def opened(log: Path) -> Iterator[Store]:
    """A copy of the log's file, and statistics in another, new one, as in a home."""
    with tempfile.TemporaryDirectory(prefix="cowpath-mine-") as folder, Store.open() as store:
        store.limit_memory(Settings().mining_memory_gb, Path(folder, "spill"))
        store.run("schema/001_formulas")
        store.attach(Path(shutil.copy(file_of(log), folder)), "logged")
        store.execute("create view events as from logged.events")
        keep_in(store, Path(folder, "statistics.duckdb"))
        yield store


def file_of(log: Path) -> Path:
    """The log as DuckDB's file, made once, in a process of its own."""
    path = log.with_suffix(".duckdb")
    if not path.exists():
        with Store.open(path) as store:
            store.execute(f"create table events as from read_parquet('{log}')")
    return path


def _mining(store: Store) -> Mining:
    return Mining(settings=Settings(home="/nonexistent"), parameters=Parameters(), store=store)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = work()
    return round(time.perf_counter() - began, 3), found


def peak() -> dict[str, float]:
    return {"peak_gb": round(peak_rss(os.getpid()) / 1e9, 3)}


def write_log(path: Path, *, events: int) -> Path:
    """A planted world of about so many events."""
    world = plant(7, skills=SKILLS, templates=TEMPLATES, actors=ACTORS)
    made: Sequence[Event] = live(world, sessions=round(events / CALLS_A_SESSION), seed=7)
    pq.write_table(event_rows(made), path)
    return path


def write_large(log: Path, path: Path, events: int) -> Path:
    """The same log over and over under other sessions' names, until it has so many events."""
    table = pl.read_parquet(log)
    copies = -(-events // table.height)
    with pq.ParquetWriter(path, pq.read_schema(log)) as writer:
        for n in range(copies):
            copy = table.with_columns(
                pl.concat_str(pl.lit(f"{n}-"), "event_id").alias("event_id"),
                pl.concat_str(pl.lit(f"{n}-"), "session_id").alias("session_id"),
                (pl.col("arrival") + n * table.height).alias("arrival"),
                (pl.col("changed") + n * table.height).alias("changed"),
            )
            writer.write_table(copy.to_arrow().cast(pq.read_schema(log)))
    return path


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mine_speed", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--big", type=int, default=10_000_000, help="events of the large log; 0 leaves it out")
    parser.add_argument("--measure", choices=sorted(MEASURES), help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
