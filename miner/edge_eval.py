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

from cowpath.edge import Edge
from cowpath.settings import Settings
from cowpath.store import Store
from miner.next_eval import Session, read_lines, read_sessions
from miner.parameters import Parameters
from miner.stages import Mining, build, count_pairs, read_log, test_pairs

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
        ("outcome", pa.string()),
        ("batch_id", pa.string()),
        ("actor", pa.string()),
        ("confidence", pa.float64()),
        ("suggested_by", pa.string()),
        ("clock", pa.string()),
        ("extra", pa.string()),
        ("arrival", pa.int64()),
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
    rounds = [(learn(mine_half, parameters), judge_half) for mine_half, judge_half in (halves, halves[::-1])]
    truth = _truth(data)
    return {
        "data": data.name,
        "sessions": len(sessions),
        "split": {"by": "unit", "share": 0.5, "seed": seed, "halves": 2},
        "precedes": {
            status: judged([(_claims(edges, "precedes", status), half) for edges, half in rounds], truth)
            for status in ("confirmed", "candidate")
        },
        "complements": {"confirmed": sum(len(_claims(edges, "complements", "confirmed")) for edges, _ in rounds)},
    }


def deal(sessions: Sequence[Session], seed: int) -> tuple[list[Session], list[Session]]:
    """Two halves, no unit in both."""
    units = sorted({s.unit for s in sessions})
    order = np.random.default_rng(seed).permutation(len(units))
    first = {units[i] for i in order[: len(units) // 2]}
    return [s for s in sessions if s.unit in first], [s for s in sessions if s.unit not in first]


def learn(sessions: Sequence[Session], parameters: Parameters | None = None) -> tuple[Edge, ...]:
    """The learned edges of these sessions: the real stages, on a log in memory."""
    with Store.open() as store:
        store.run("schema/001_formulas")
        with store.visible("given", _events(sessions)):
            store.execute("create or replace table events as select * from given")
        mining = Mining(settings=Settings(home="/nonexistent"), parameters=parameters or Parameters(), store=store)
        for stage in (read_log, count_pairs, test_pairs, build):
            mining = stage(mining)
        return mining.edges


def judged(rounds: Iterable[tuple[Sequence[Pair], Sequence[Session]]], truth: set[Pair]) -> dict[str, Any]:
    """How the claims of each round fare in its unseen sessions, added up over the rounds."""
    counts: Counter[str] = Counter()
    for claims, unseen in rounds:
        order = first_before(unseen)
        for source, target in claims:
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


def _claims(edges: Iterable[Edge], relation: str, status: str) -> list[Pair]:
    return [(e.source, e.target) for e in edges if e.relation == relation and e.status == status]


def _truth(data: Path) -> set[Pair]:
    path = data / "truth_edges.jsonl"
    return {(str(row["src"]), str(row["dst"])) for row in read_lines(path)} if path.exists() else set()


def _events(sessions: Sequence[Session]) -> pa.Table:
    """Sessions as rows of the published events table, as far as the stages read it."""
    rows = [
        {
            "event_id": f"{number}-{seq}",
            "session_id": str(number),
            "stream_id": "",
            "seq": seq,
            "skill_id": skill,
            "called_at": _moment(session.ts),
            "stored_at": START,
            "kind": "activated",
            "outcome": "unknown",
            "batch_id": None,
            "actor": session.actor,
            "confidence": 1.0,
            "suggested_by": None,
            "clock": "ok",
            "arrival": seq,
            "extra": msgspec.json.encode({"group": session.unit}).decode(),
        }
        for number, session in enumerate(sessions)
        for seq, skill in enumerate(session.skills)
    ]
    return pa.Table.from_pylist(rows, schema=EVENTS)


def _moment(text: str | None) -> datetime | None:
    """A session's time, UTC without a zone as the store keeps it; None where it is not one."""
    try:
        moment = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(UTC).replace(tzinfo=None) if moment and moment.tzinfo else moment
