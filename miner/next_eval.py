"""Measure next-skill models on a log: every call of the test sessions predicted from its prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from cowpath.errors import BadFile, InputError
from cowpath.next_model import NextModel
from cowpath.skill import Skill
from miner import baselines
from miner.log import collapse
from miner.transitions import fit

Floats = NDArray[np.float64]
Scorer = Callable[[Sequence[str]], Floats]
"""Prefix -> scores of all candidates; minus infinity where the model cannot score one."""

TEST_SHARE = 0.2
REPLICATES = 2_000
OURS = "ours"


@dataclass(frozen=True)
class Session:
    """One session of a data set. ``unit`` is what a split keeps together: its group, or the session itself."""

    skills: tuple[str, ...]
    unit: str
    ts: str | None
    actor: str | None


def evaluate_next(
    data: Path,
    *,
    vectors: Mapping[str, NDArray[np.float32]] | None = None,
    seed: int = 0,
    time_split: bool = False,
) -> dict[str, Any]:
    """The document of ``cowpath eval next``. Without ``vectors`` the MiniLM row is null.

    Repeats are folded, the current skill is no candidate, ties take their middle rank. Candidates are the
    whole catalogue and every skill of the training sessions; a target that a model cannot score is a miss.
    """
    sessions = read_sessions(data)
    train, test = by_time(sessions) if time_split else by_unit(sessions, seed)
    candidates = sorted({skill for s in train for skill in s.skills} | set(read_texts(data)))
    model = fit([s.skills for s in train], groups=[s.unit for s in train], vectors=vectors, seed=seed)
    scorers = _scorers([s.skills for s in train], candidates, vectors, model)
    calls = [(s.skills[:at], s.skills[at], s.unit) for s in test for at in range(1, len(s.skills))]
    ranks = {name: ranks_of(scorer, calls, candidates) for name, scorer in scorers.items() if scorer}
    units = [unit for _, _, unit in calls]
    return {
        "data": data.name,
        "sessions": len(sessions),
        "predictions": len(calls),
        "split": {
            "by": "time" if time_split else _split_by(sessions),
            "train": len(train),
            "test": len(test),
            "test_share": TEST_SHARE,
            "seed": seed,
            "unseen_targets": _unseen(train, calls),
        },
        "models": {name: metrics(ranks[name]) if name in ranks else None for name in scorers},
        "paired": {name: paired(ranks[OURS], ranks[name], units, seed) for name in ranks if name != OURS},
        "ours": model.record,
    }


def read_sessions(data: Path) -> list[Session]:
    """The sessions of ``events.jsonl``, sorted by id, in the order of ``seq``; direct repeats folded."""
    rows = read_lines(data / "events.jsonl")
    held: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        held.setdefault(str(row["session_id"]), []).append(row)
    sessions = []
    for name, events in sorted(held.items()):
        events = sorted(events, key=lambda event: event.get("seq", 0))
        unit = next((str(e["group"]) for e in events if e.get("group") is not None), None)
        times = [str(e["ts"]) for e in events if e.get("ts")]
        skills = collapse([str(event["skill_id"]) for event in events])
        actor = next((str(e["actor"]) for e in events if e.get("actor") is not None), None)
        sessions.append(Session(skills, unit if unit is not None else name, min(times, default=None), actor))
    return sessions


def read_texts(data: Path) -> dict[str, str]:
    """Skill -> the text an encoder reads, from ``catalog.jsonl``; empty where the set has no catalogue."""
    path = data / "catalog.jsonl"
    if not path.exists():
        return {}
    skills = [
        Skill(skill_id=str(row["skill_id"]), name=str(row.get("name") or row["skill_id"]), description=_text(row))
        for row in read_lines(path)
    ]
    return {skill.skill_id: skill.text for skill in skills}


def _text(row: dict[str, Any]) -> str:
    return str(row.get("description") or "")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON lines file. Raises InputError where it is missing, BadFile where a line is broken."""
    if not path.exists():
        raise InputError(f"no {path}; a data set is a folder with events.jsonl and catalog.jsonl")
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            rows.append(msgspec.json.decode(line, type=dict[str, Any]))
        except msgspec.MsgspecError as error:
            raise BadFile(f"{path}, line {number}: {error}") from error
    return rows


def by_unit(sessions: Sequence[Session], seed: int) -> tuple[list[Session], list[Session]]:
    """A random fifth of the units tested, the rest to learn from."""
    units = sorted({s.unit for s in sessions})
    order = np.random.default_rng(seed).permutation(len(units))
    held = {units[i] for i in order[: round(TEST_SHARE * len(units))]}
    return [s for s in sessions if s.unit not in held], [s for s in sessions if s.unit in held]


def by_time(sessions: Sequence[Session]) -> tuple[list[Session], list[Session]]:
    """The earlier four fifths to learn from, the later fifth tested."""
    if any(s.ts is None for s in sessions):
        raise InputError("a split by time needs a ts on every session")
    ordered = sorted(sessions, key=lambda s: s.ts or "")
    cut = len(ordered) - round(TEST_SHARE * len(ordered))
    return ordered[:cut], ordered[cut:]


def _split_by(sessions: Sequence[Session]) -> str:
    return "session" if len({s.unit for s in sessions}) == len(sessions) else "group"


def _unseen(train: Sequence[Session], calls: Sequence[tuple[Sequence[str], str, str]]) -> float:
    """The share of targets that no training session holds."""
    seen = {skill for s in train for skill in s.skills}
    return round(float(np.mean([target not in seen for _, target, _ in calls])), 4) if calls else 0.0


def _scorers(
    train: Sequence[tuple[str, ...]],
    candidates: Sequence[str],
    vectors: Mapping[str, NDArray[np.float32]] | None,
    model: NextModel,
) -> dict[str, Scorer | None]:
    return {
        "popularity": baselines.popularity(train, candidates),
        "markov": baselines.markov(train, candidates),
        "sequential_rules": baselines.sequential_rules(train, candidates),
        "minilm": baselines.neighbours(candidates, vectors) if vectors else None,
        OURS: ours(model, candidates),
    }


def ours(model: NextModel, candidates: Sequence[str]) -> Scorer:
    """Our model over the candidates, skills without history included where it has their descriptions."""
    number = {skill: i for i, skill in enumerate(candidates)}
    old = np.array([number[skill] for skill in model.skills], dtype=np.int64)
    new = [(i, number[skill]) for i, skill in enumerate(model.new_skills) if skill in number]
    place, at = (np.array([pair[side] for pair in new], dtype=np.int64) for side in (0, 1))

    def score(prefix: Sequence[str]) -> Floats:
        scores = np.full(len(candidates), -np.inf)
        scores[old] = model.predict(prefix)
        if model.new_share > 0:
            scores[at] = model.predict_new(prefix)[place]
        return scores

    return score


def ranks_of(scorer: Scorer, calls: Sequence[tuple[Sequence[str], str, str]], candidates: Sequence[str]) -> Floats:
    """The target's rank at each call, ties at the middle; infinity where it cannot be scored."""
    number = {skill: i for i, skill in enumerate(candidates)}
    ranks = np.full(len(calls), np.inf)
    for row, (prefix, target, _) in enumerate(calls):
        if target in number:
            ranks[row] = mid_rank(scorer(prefix), number[target], number.get(prefix[-1]))
    return ranks


def mid_rank(scores: Floats, target: int, excluded: int | None) -> float:
    """1 + those better + half of those equal, without the excluded one."""
    own = scores[target]
    if own == -np.inf:
        return float("inf")
    better, equal = int((scores > own).sum()), int((scores == own).sum()) - 1
    if excluded is not None:
        better -= int(scores[excluded] > own)
        equal -= int(scores[excluded] == own)
    return 1 + better + equal / 2


def metrics(ranks: Floats) -> dict[str, float]:
    """Hit rates at 1, 5 and 20, and the mean reciprocal rank to 20."""
    return {name: round(float(values.mean()), 4) if len(ranks) else 0.0 for name, values in _per_call(ranks).items()}


def _per_call(ranks: Floats) -> dict[str, Floats]:
    hits = {f"hr@{k}": (ranks <= k).astype(np.float64) for k in (1, 5, 20)}
    return hits | {"mrr@20": np.where(ranks <= 20, 1 / ranks, 0.0)}


def paired(ours: Floats, other: Floats, units: Sequence[str], seed: int) -> dict[str, dict[str, float]]:
    """Ours minus the other with a 95 % interval: whole units drawn with replacement, the same for both."""
    names, unit = np.unique(np.array(units, dtype=np.str_), return_inverse=True)
    sizes = np.bincount(unit, minlength=len(names)).astype(np.float64)
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(len(names), np.full(len(names), 1 / max(len(names), 1)), size=REPLICATES)
    result = {}
    left, right = _per_call(ours), _per_call(other)
    for measure in ("mrr@20", "hr@1", "hr@5", "hr@20"):
        gains = np.bincount(unit, weights=left[measure] - right[measure], minlength=len(names))
        drawn = (draws @ gains) / np.maximum(draws @ sizes, 1)
        low, high = np.quantile(drawn, [0.025, 0.975])
        mean = gains.sum() / max(sizes.sum(), 1)
        result[measure] = {key: round(float(v), 4) for key, v in (("difference", mean), ("low", low), ("high", high))}
    return result
