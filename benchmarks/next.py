"""The next-skill model beside its peers, on every measured log and on planted worlds.

    python -m benchmarks.next --json [--data NAME ...] [--seeds 0 1] [--quick] [--without-model] [--without-gru] [--gru]

Every call of the test sessions (at most 2,000 drawn for a seed) is predicted from its prefix; repeats are
folded, the current skill is no candidate, ties take their middle rank. Rows: all sessions by a random split,
by time where it means something, 100 training sessions only, and 15 % of the skills unknown to the training.
Data sets are read from COWPATH_DATA, else ``../shared/data``; an absent one ends the run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import document, finish
from benchmarks.next_peers import NEURAL, Scorer, peers
from benchmarks.real_edges import embedded
from benchmarks.worlds import live, plant
from cowpath.errors import CowpathError
from cowpath.vectors import Vector
from miner.log import collapse
from miner.next_eval import Session, by_time, by_unit, metrics, ours, paired, ranks_of, read_sessions, read_texts
from miner.transitions import fit

SETS = (
    "n8n_dev",
    "ultratool",
    "galaxy_eu_2019",
    "tau_bench",
    "traject_bench",
    "github_actions",
    "bfcl_multiturn",
    "restbench_tmdb",
    "seal_tools",
)
PLANTED = {"planted_1k": 1_000, "planted_10k": 10_000}
QUICK = ("ultratool", "galaxy_eu_2019", "tau_bench", "restbench_tmdb", "planted_1k")
BY_TIME = ("n8n_dev", "galaxy_eu_2019")
LITTLE = ("n8n_dev", "ultratool")
NEW = "ultratool"

MOST_CALLS = 2_000
FEW_SESSIONS = 100
NEW_SHARE = 0.15

Row = dict[str, Any]
Call = tuple[Sequence[str], str, str]
"""Prefix, the skill that came, and the unit that is drawn whole in an interval."""


@dataclass(frozen=True)
class Data:
    """A log and what is known of its skills."""

    sessions: Sequence[Session]
    catalogue: frozenset[str]
    vectors: Mapping[str, Vector] | None
    note: str | None = None


@dataclass(frozen=True)
class Split:
    """What is learned from, and the calls to be told."""

    train: Sequence[Session]
    calls: Sequence[Call]
    candidates: Sequence[str]


def main() -> None:
    """Measure, print the document, exit 1 where a bar is missed or a data set is absent."""
    asked = _arguments()
    absent = [n for n in asked.data if n not in PLANTED and not (_home() / n / "events.jsonl").exists()]
    if absent:
        sys.exit(f"absent below {_home()}: {', '.join(absent)}; set COWPATH_DATA to the folder of data sets")
    rows: dict[str, Row] = {}
    for name in asked.data:
        for title, row in measure(name, asked):
            rows[title] = row
            print(f"{title}: {row.get('summary', '')}", file=sys.stderr, flush=True)
    finish(
        document("next", results={"seeds": asked.seeds, "gru": asked.gru, "rows": rows}, bars=bars(rows)),
        as_json=asked.json,
    )


def measure(name: str, asked: argparse.Namespace) -> Iterator[tuple[str, Row]]:
    """Every row of one log."""
    neural = not asked.without_gru
    data = _planted(PLANTED[name]) if name in PLANTED else _read(_home() / name, model=not asked.without_model)
    random = [_split(data, *by_unit(data.sessions, seed), seed) for seed in asked.seeds]
    yield name, compared(data, random, asked.seeds, neural=neural, gru=asked.gru)
    if name in BY_TIME and any(s.ts is None for s in data.sessions):
        yield f"{name} by time", {"left_out": "not every session has a ts"}
    elif name in BY_TIME:
        yield (
            f"{name} by time",
            compared(data, [_split(data, *by_time(data.sessions), 0)], [0], neural=neural, gru=asked.gru),
        )
    if not data.vectors and name in {*LITTLE, NEW}:
        yield f"{name} with descriptions", {"left_out": data.note or "no skill has a description"}
    if name in LITTLE and data.vectors:
        little = [replace(s, train=_some(s.train, seed)) for s, seed in zip(random, asked.seeds, strict=True)]
        yield f"{name} 100 sessions", compared(data, little, asked.seeds, neural=neural, gru=asked.gru)
    if name == NEW and data.vectors:
        yield f"{name} new skills", new_skills(data, random, asked.seeds)


def compared(data: Data, splits: Sequence[Split], seeds: Sequence[int], *, neural: bool, gru: bool) -> Row:
    """Each model over the calls of all splits, and ours minus the best peer with its interval."""
    ranks: dict[str, list[NDArray[np.float64]]] = {}
    chosen, recurrent = [], []
    for split, seed in zip(splits, seeds, strict=True):
        train = [s.skills for s in split.train]
        model = fit(train, groups=[s.unit for s in split.train], vectors=data.vectors, seed=seed, gru=gru)
        chosen.append(model.record.get("chosen"))
        recurrent.append(model.record.get("gru"))
        scorers = peers(train, split.candidates, data.vectors, seed=seed, neural=neural)
        scorers["ours"] = ours(model, split.candidates)
        for name, scorer in scorers.items():
            ranks.setdefault(name, []).append(ranks_of(scorer, split.calls, split.candidates))
    joined = {name: np.concatenate(found) for name, found in ranks.items()}
    return _row(joined, [unit for split in splits for _, _, unit in split.calls]) | {
        "sessions": [len(split.train) for split in splits],
        "chosen": chosen,
        "gru": recurrent,
        "note": data.note,
    }


def _row(ranks: Mapping[str, NDArray[np.float64]], units: Sequence[str]) -> Row:
    models = {name: metrics(found) for name, found in ranks.items()}
    best = _best(models, leaving=("ours",))
    plain = _best(models, leaving=("ours", *NEURAL))
    versus = {name: paired(ranks["ours"], ranks[name], units, 0)["mrr@20"] for name in dict.fromkeys((best, plain))}
    said = ", ".join(f"{n} {models[n]['mrr@20']}" for n in dict.fromkeys(("ours", plain, best)))
    return {
        "predictions": len(units),
        "models": models,
        "best": best,
        "best_non_neural": plain,
        "paired": versus,
        "summary": f"mrr@20 {said}",
    }


def new_skills(data: Data, splits: Sequence[Split], seeds: Sequence[int]) -> Row:
    """HR@5 and HR@20 by whether the skill to come was removed from training; the old ones without transfer beside."""
    found: dict[str, list[NDArray[np.float64]]] = {"target_new": [], "old": [], "old_without_transfer": []}
    for split, seed in zip(splits, seeds, strict=True):
        removed = _removed(split, seed)
        train = [replace(s, skills=collapse([k for k in s.skills if k not in removed])) for s in split.train]
        train = [s for s in train if s.skills]
        model = fit([s.skills for s in train], groups=[s.unit for s in train], vectors=data.vectors, seed=seed)
        old = [c for c in split.calls if c[1] not in removed and c[0][-1] not in removed]
        new = [c for c in split.calls if c[1] in removed and c[0][-1] not in removed]
        scorers: dict[str, tuple[Scorer, list[Call]]] = {
            "target_new": (ours(model, split.candidates), new),
            "old": (ours(model, split.candidates), old),
            "old_without_transfer": (ours(replace(model, new_share=0.0), split.candidates), old),
        }
        for name, (scorer, calls) in scorers.items():
            found[name].append(ranks_of(scorer, calls, split.candidates))
    models = {name: metrics(np.concatenate(ranks)) for name, ranks in found.items()}
    loss = round(models["old_without_transfer"]["hr@20"] - models["old"]["hr@20"], 4)
    summary = f"hr@20 of new {models['target_new']['hr@20']}, lost on old {loss}"
    return {"removed_share": NEW_SHARE, "models": models, "lost_on_old": loss, "summary": summary}


def bars(rows: Mapping[str, Row]) -> list[Row]:
    """Each bar with what was measured. One that asks for the best of all is not met where a peer was left out."""
    found: list[Row] = []
    for title, row in rows.items():
        if "left_out" in row:
            found.append(_bar(f"{title}: {row['left_out']}", 0.0, None, False))
            continue
        if title.endswith("new skills"):
            new, lost = row["models"]["target_new"]["hr@20"], row["lost_on_old"]
            found += [_bar(f"{title}: hr@20", 0.75, new, new >= 0.75)]
            found += [_bar(f"{title}: hr@20 lost on old", 0.01, lost, lost <= 0.01)]
            continue
        mine = row["models"]["ours"]["mrr@20"]
        best, plain = (row["models"][row[key]]["mrr@20"] for key in ("best", "best_non_neural"))
        complete = set(NEURAL) <= set(row["models"])
        said = row["best"] if complete else f"{row['best']}, GRU4Rec not measured"
        if title.endswith("100 sessions"):
            ratio = _ratio(f"{title}: mrr@20 / best peer ({said})", 1.03, mine, best)
            found.append(ratio | {"met": ratio["met"] and complete})
        elif title == "n8n_dev":
            found.append(_ratio(f"{title}: mrr@20 / best non-neural ({row['best_non_neural']})", 1.10, mine, plain))
        elif not title.endswith("by time"):
            gap = round(mine - best, 4)
            met = gap >= -0.005 and complete
            found.append(_bar(f"{title}: mrr@20 minus best of all ({said})", -0.005, gap, met))
    return found


def _read(folder: Path, *, model: bool) -> Data:
    vectors: Mapping[str, Vector] | None = None
    note: str | None = "MiniLM not asked for"
    if model:
        try:
            vectors, note = embedded(folder / "catalog.jsonl") or None, None
        except CowpathError as error:
            note = f"without MiniLM: {error.message}"
            print(f"{folder.name}: {note}", file=sys.stderr)
    return Data(read_sessions(folder), frozenset(read_texts(folder)), vectors, note)


def _planted(size: int) -> Data:
    """The clean log of a planted world: what the miner itself would learn from."""
    held: dict[str, list[tuple[int, str, str]]] = {}
    for event in live(plant(31), sessions=size, seed=31):
        if event.kind == "activated" and not event.suggested_by:
            held.setdefault(event.session_id, []).append((event.seq or 0, event.skill, str(event.called_at)))
    sessions = []
    for name, calls in sorted(held.items()):
        skills = collapse([skill for _, skill, _ in sorted(calls)])
        sessions.append(Session(skills, name, min(at for _, _, at in calls), None))
    return Data(sessions, frozenset(), None, "planted skills have no descriptions")


def _split(data: Data, train: Sequence[Session], test: Sequence[Session], seed: int) -> Split:
    calls = [(s.skills[:at], s.skills[at], s.unit) for s in test for at in range(1, len(s.skills))]
    drawn = np.sort(np.random.default_rng(seed).permutation(len(calls))[:MOST_CALLS])
    candidates = sorted({skill for s in train for skill in s.skills} | data.catalogue)
    return Split(train, [calls[i] for i in drawn], candidates)


def _some(train: Sequence[Session], seed: int) -> list[Session]:
    drawn = np.random.default_rng(seed).permutation(len(train))[:FEW_SESSIONS]
    return [train[i] for i in sorted(drawn)]


def _removed(split: Split, seed: int) -> set[str]:
    used = sorted({skill for s in split.train for skill in s.skills})
    drawn = np.random.default_rng(seed).permutation(len(used))[: round(NEW_SHARE * len(used))]
    return {used[i] for i in drawn}


def _best(models: Mapping[str, Mapping[str, float]], *, leaving: Sequence[str]) -> str:
    return max((name for name in models if name not in leaving), key=lambda name: models[name]["mrr@20"])


def _ratio(name: str, at: float, mine: float, other: float) -> Row:
    ratio = round(mine / max(other, 1e-9), 4)
    return _bar(name, at, ratio, ratio >= at)


def _bar(name: str, at: float, measured: float | None, met: bool) -> Row:
    return {"bar": name, "at": at, "measured": measured, "met": met}


def _home() -> Path:
    return Path(os.environ.get("COWPATH_DATA", Path(__file__).parents[2] / "shared" / "data"))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.next", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = (*SETS, *PLANTED)
    parser.add_argument("--data", nargs="+", choices=names, default=[], metavar="NAME", help=", ".join(names))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1], help="random splits")
    parser.add_argument("--quick", action="store_true", help="one seed of the small logs")
    parser.add_argument("--without-model", action="store_true", help="leave out what needs embeddings")
    parser.add_argument("--without-gru", action="store_true", help="leave out GRU4Rec")
    parser.add_argument("--gru", action="store_true", help="ours may hold a recurrent part, as by cowpath mine --gru")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    asked.seeds = asked.seeds[:1] if asked.quick else asked.seeds
    asked.data = asked.data or (QUICK if asked.quick else names)
    return asked


if __name__ == "__main__":
    main()
