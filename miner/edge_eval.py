"""Measure learned edges on a log: mine one half, judge by the order that the unseen half keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from cowpath.edge import Edge, Relation, Status
from cowpath.event import Event
from cowpath.settings import Settings
from cowpath.store import Store
from miner.next_eval import Session, read_lines, read_sessions
from miner.parameters import Parameters
from miner.stages import Mining, build, count_pairs, read_log, test_pairs, weigh
from miner.statistics import keep_in

Pair = tuple[str, str]

START = datetime(2000, 1, 1)

EVENTS = pa.schema(
    [
        ("event_id", pa.string()),
        ("session_id", pa.string()),
        ("stream_id", pa.string()),
        ("seq", pa.int64()),
        ("skill_id", pa.string()),
        ("called_at", pa.timestamp("us")),
        ("stored_at", pa.timestamp("us")),
        ("kind", pa.string()),
        ("trigger", pa.string()),
        ("outcome", pa.string()),
        ("batch_id", pa.string()),
        ("actor", pa.string()),
        ("confidence", pa.float64()),
        ("suggested_by", pa.string()),
        ("clock", pa.string()),
        ("extra", pa.string()),
        ("arrival", pa.int64()),
        ("changed", pa.int64()),
    ]
)

RIGHT = 0.7
"""A claimed order is right where the unseen half keeps it in at least this share of its sessions."""

WRONG = 0.5
"""Below this the unseen half says the opposite: the claim is reversed."""


def evaluate_edges(data: Path, *, seed: int = 0, parameters: Parameters | None = None) -> dict[str, Any]:
    """The document of ``cowpath eval edges``.

    Units (groups, else sessions) are dealt into two halves; each half is mined and judged by the
    other, and the counts of both are added. A claim whose two skills never meet in the unseen half is
    not judged. ``truth_edges`` says how many claims the data set's own edges hold, and how many they
    hold only the other way round.
    """
    sessions = read_sessions(data)
    halves = deal(sessions, seed)
    rounds = [
        (mined(as_events(mine_half), parameters).edges, judge_half) for mine_half, judge_half in (halves, halves[::-1])
    ]
    truth = truth_edges(data)
    return {
        "data": data.name,
        "sessions": len(sessions),
        "split": {"by": "unit", "share": 0.5, "seed": seed, "halves": 2},
        "precedes": {
            status: judged([(claims(edges, "precedes", status), half) for edges, half in rounds], truth)
            for status in ("confirmed", "candidate")
        },
        "complements": {"confirmed": sum(len(claims(edges, "complements", "confirmed")) for edges, _ in rounds)},
    }


def deal(sessions: Sequence[Session], seed: int) -> tuple[list[Session], list[Session]]:
    """Two halves, no unit in both."""
    units = sorted({s.unit for s in sessions})
    order = np.random.default_rng(seed).permutation(len(units))
    first = {units[i] for i in order[: len(units) // 2]}
    return [s for s in sessions if s.unit in first], [s for s in sessions if s.unit not in first]


def mined(events: Sequence[Event], parameters: Parameters | None = None) -> Mining:
    """The real stages up to the edges, on a log in memory. Its store is closed; frames and edges stay."""
    with Store.open() as store:
        store.run("schema/001_formulas")
        keep_in(store)
        with store.visible("given", event_rows(events)):
            store.execute("create or replace table events as select * from given")
        mining = Mining(settings=Settings(home="/nonexistent"), parameters=parameters or Parameters(), store=store)
        for stage in (read_log, count_pairs, test_pairs, build, weigh):
            mining = stage(mining)
        return mining


def claims(edges: Iterable[Edge], relation: Relation, *statuses: Status) -> list[Pair]:
    """The pairs that edges of this relation and these statuses claim."""
    return [(e.source, e.target) for e in edges if e.relation == relation and e.status in statuses]


def judged(rounds: Iterable[tuple[Sequence[Pair], Sequence[Session]]], truth: set[Pair]) -> dict[str, Any]:
    """How the claims of each round fare in its unseen sessions, added up over the rounds."""
    counts: Counter[str] = Counter()
    for claimed, unseen in rounds:
        order = first_before(unseen)
        for source, target in claimed:
            counts["claimed"] += 1
            counts[_fate(order[source, target], order[target, source])] += 1
            counts["in_truth"] += (source, target) in truth
            counts["reversed_in_truth"] += (source, target) not in truth and (target, source) in truth
    met = counts["right"] + counts["weak"] + counts["reversed"]
    return {
        "claimed": counts["claimed"],
        "judged": met,
        "right": counts["right"],
        "weak": counts["weak"],
        "reversed": counts["reversed"],
        "precision": round(counts["right"] / met, 4) if met else None,
        "reversed_share": round(counts["reversed"] / met, 4) if met else None,
        "truth_edges": {"claimed": counts["in_truth"], "reversed": counts["reversed_in_truth"]} if truth else None,
    }


def first_before(sessions: Iterable[Session]) -> Counter[Pair]:
    """In how many sessions the first call of one skill comes before the first call of another."""
    order: Counter[Pair] = Counter()
    for session in sessions:
        firsts = list(dict.fromkeys(session.skills))
        order.update((a, b) for place, a in enumerate(firsts) for b in firsts[place + 1 :])
    return order


def _fate(kept: int, opposed: int) -> str:
    if not kept + opposed:
        return "unmet"
    share = kept / (kept + opposed)
    return "right" if share >= RIGHT else "weak" if share >= WRONG else "reversed"


def truth_edges(data: Path) -> set[Pair]:
    """The edges that come with a data set; empty where none do."""
    path = data / "truth_edges.jsonl"
    return {(str(row["src"]), str(row["dst"])) for row in read_lines(path)} if path.exists() else set()


def as_events(sessions: Sequence[Session]) -> list[Event]:
    """Sessions as events; what a split keeps together stays a group."""
    return [
        Event(
            event_id=f"{number}-{seq}",
            session_id=str(number),
            seq=seq,
            skill=skill,
            called_at=_moment(session.ts),
            actor=session.actor,
            extra={"group": session.unit},
        )
        for number, session in enumerate(sessions)
        for seq, skill in enumerate(session.skills)
    ]


def event_rows(events: Sequence[Event]) -> pa.Table:
    """Events as rows of the published events table, as far as the stages read it."""
    rows = [
        {name: getattr(event, name, None) for name in EVENTS.names}
        | {
            "skill_id": event.skill,
            "stored_at": START,
            "extra": msgspec.json.encode(event.extra).decode(),
            "arrival": arrival,
            "changed": arrival,
        }
        for arrival, event in enumerate(events)
    ]
    return pa.Table.from_pylist(rows, schema=EVENTS)


def _moment(text: str | None) -> datetime | None:
    """A session's time, UTC where it names no zone; None where it is no time."""
    try:
        moment = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment and not moment.tzinfo else moment
