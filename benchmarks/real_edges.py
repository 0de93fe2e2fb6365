"""Learned edges on real logs: mine one half, judge by the unseen half and by the data set's own edges.

    python -m benchmarks.real_edges --json [--data DIR] [--seeds 0 1] [--without-model]

Peers claim as many pairs as the miner does, their surest first. The share of claims outside the
embedding neighbourhood (neither skill among the other's eight nearest) stands beside that of random pairs.
Needs the measured data sets: ``--data``, else COWPATH_DATA, else ``../shared/data``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.machine import document, finish
from benchmarks.peers import Pair, log_of, rankings
from cowpath.errors import CowpathError
from cowpath.settings import Settings
from cowpath.skill import Skill, text_hash
from cowpath.vectors import Vector, neighbourhoods, read_vectors
from miner.edge_eval import as_events, claims, deal, judged, mined, truth_edges
from miner.next_eval import Session, read_lines, read_sessions

SETS = ("n8n_dev", "galaxy_eu_2019", "ultratool")
CONTROL = "seal_tools"
"""A set without any repeated order: next to nothing may be claimed."""

RANDOM_PAIRS = 20_000

Row = dict[str, Any]


@dataclass(frozen=True)
class Half:
    """What was claimed from one half, by whom, and the half that judges it."""

    claimed: Mapping[str, Sequence[Pair]]
    unseen: Sequence[Session]


def main() -> None:
    """Measure, print the document, exit 1 where a bar is missed or a data set is absent."""
    asked = _arguments()
    absent = [name for name in (*SETS, CONTROL) if not (asked.data / name / "events.jsonl").exists()]
    if absent:
        sys.exit(f"absent below {asked.data}: {', '.join(absent)}; set COWPATH_DATA to the folder of data sets")
    sets = {name: measure(asked.data / name, asked.seeds, model=not asked.without_model) for name in SETS}
    control = negative_control(asked.data / CONTROL, asked.seeds)
    results = {"seeds": asked.seeds, "sets": sets, CONTROL: control}
    finish(document("real_edges", results=results, bars=bars(sets, control)), as_json=asked.json)


def measure(data: Path, seeds: Sequence[int], *, model: bool) -> Row:
    """One set: each method's claims judged over all halves of all splits, and where they lie."""
    sessions = read_sessions(data)
    halves = [half for seed in seeds for half in both_halves(sessions, seed)]
    truth = truth_edges(data)
    methods = {
        name: judged([(half.claimed[name], half.unseen) for half in halves], truth) for name in halves[0].claimed
    }
    ours = sorted({pair for half in halves for pair in half.claimed["confirmed"]})
    used = sorted({skill for session in sessions for skill in session.skills})
    return {
        "sessions": len(sessions),
        "methods": methods,
        "outside_neighbourhood": outside(data, ours, used) if model else "not asked for",
    }


def both_halves(sessions: Sequence[Session], seed: int) -> list[Half]:
    """Each half mined, and judged by the other."""
    one, other = deal(sessions, seed)
    return [Half(_claimed(seen), unseen) for seen, unseen in ((one, other), (other, one))]


def negative_control(data: Path, seeds: Sequence[int]) -> Row:
    """The most edges of any kind and status that a half of a log without any order gives."""
    sessions = read_sessions(data)
    found = [len(mined(as_events(half)).edges) for seed in seeds for half in deal(sessions, seed)]
    return {"sessions": len(sessions), "edges": max(found), "whole": len(mined(as_events(sessions)).edges)}


def outside(data: Path, claimed: Sequence[Pair], used: Sequence[str]) -> Row:
    """The share of pairs of which neither skill is an embedding neighbour of the other; random pairs as control.

    ``in_truth`` is the same share of the data set's own edges. Skills without a description are left out.
    """
    try:
        vectors = embedded(data / "catalog.jsonl")
    except CowpathError as error:
        return {"left_out": error.message}
    near = {name: {other for other, _ in found} for name, found in neighbourhoods(vectors, floor=-1.0).items()}
    rng = np.random.default_rng(0)
    known = [name for name in used if name in near]
    drawn = rng.integers(len(known), size=(RANDOM_PAIRS, 2))
    random_pairs = [(known[i], known[j]) for i, j in drawn if i != j]
    return {
        "claimed": _outside_share(claimed, near),
        "in_truth": _outside_share(sorted(truth_edges(data)), near),
        "random_pairs": _outside_share(random_pairs, near),
    }


def embedded(catalogue: Path) -> dict[str, Vector]:
    """Skill id -> unit vector of name and description."""
    from ranker.dense import embed_texts  # torch

    skills = [
        Skill(skill_id=row["skill_id"], name=row["name"], description=row.get("description") or "")
        for row in read_lines(catalogue)
    ]
    with TemporaryDirectory() as scratch:
        embed_texts([skill.text for skill in skills], Path(scratch), Settings(home=scratch))
        vectors = read_vectors(Path(scratch))
    return {skill.skill_id: vectors[text_hash(skill.text)] for skill in skills if skill.description}


def bars(sets: Mapping[str, Row], control: Row) -> list[Row]:
    """Each bar with what was measured."""
    rows: list[Row] = []
    for name, found in sets.items():
        ours, peers = found["methods"]["confirmed"], _peers(found["methods"])
        best = max(row["precision"] or 0.0 for row in peers)
        rows += [
            _bar(f"{name}: reversed / judged", 0.01, ours["reversed_share"], ours["reversed_share"] <= 0.01),
            _bar(
                f"{name}: precision above every peer's at equal count",
                best,
                ours["precision"],
                ours["precision"] > best,
            ),
        ]
    return [*rows, _bar(f"{CONTROL}: edges of any kind", 1, control["edges"], control["edges"] <= 1)]


def _claimed(sessions: Sequence[Session]) -> dict[str, Sequence[Pair]]:
    events = as_events(sessions)
    mining = mined(events)
    confirmed = claims(mining.edges, "precedes", "confirmed")
    peers = {name: ranking[: len(confirmed)] for name, ranking in rankings(log_of(events, mining.pairs)).items()}
    return {"confirmed": confirmed, "candidate": claims(mining.edges, "precedes", "candidate"), **peers}


def _peers(methods: Mapping[str, Row]) -> list[Row]:
    return [row for name, row in methods.items() if name not in ("confirmed", "candidate")]


def _outside_share(pairs: Iterable[Pair], near: Mapping[str, set[str]]) -> Row:
    known = [(a, b) for a, b in pairs if a in near and b in near]
    far = sum(b not in near[a] and a not in near[b] for a, b in known)
    return {"pairs": len(known), "outside": round(far / max(1, len(known)), 4)}


def _bar(name: str, at: float, measured: float, met: bool) -> Row:
    return {"bar": name, "at": at, "measured": measured, "met": met}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.real_edges",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    home = Path(os.environ.get("COWPATH_DATA", Path(__file__).parents[2] / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=home, help="the folder of measured data sets")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3], help="splits into halves")
    parser.add_argument("--without-model", action="store_true", help="leave out what needs embeddings")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
