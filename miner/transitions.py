"""Learn what comes next: fit the parts, weigh them on calls held out, keep those that have a say."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cowpath.next_model import BUCKETS, EMPTY, Blend, NextModel
from miner.blend import HeldOut, choose
from miner.gru import fit_gru
from miner.log import Log, read_log
from miner.parts import Vectors, fit_parts

FOLDS = 5
FEW_SESSIONS = 600
"""Below this every fold is held out in turn; from here on the first fifth of the groups is enough."""

MOST_CALLS = 4_000
MOST_NUMBERS = 64_000_000
"""At most so many held-out calls, and so many numbers about them (256 MB)."""

USUAL_NEW_SHARE = 0.2
"""Expected of skills without history before anything was seen, and worth one expected call."""

FEWEST_CALLS = 40
"""With fewer held-out calls nothing can be chosen."""

RECURRENT = "gru"
"""The part that is trained only where it is asked for."""

ALWAYS = ("ngrams", "alike")
"""Kept without a say too: the first counts and starts sessions, the second reaches skills without history."""


@dataclass(frozen=True)
class Fold:
    """A model of some groups and the calls of the others."""

    model: NextModel
    calls: tuple[tuple[tuple[str, ...], str, int], ...]
    """(prefix, target, half) of each held-out call."""


def fit(
    sequences: Sequence[Sequence[str]],
    *,
    groups: Sequence[Hashable] | None = None,
    vectors: Vectors | None = None,
    seed: int = 0,
    gru: bool = False,
) -> NextModel:
    """The model of these sessions. Direct repeats are folded; neither arrival order nor names matter.

    Sessions of one group are never on both sides of a held-out split. ``vectors`` are the descriptions'
    unit vectors by skill; those without history become the model's ``new_skills``. With ``gru`` a recurrent part
    is trained too, and kept where it clearly betters the others on the calls held out.
    """
    log = read_log(sequences, groups)
    if not log.skills:
        return EMPTY
    folds = list(_folds(log, vectors, seed, gru=gru))
    blend, record = _choose(folds, seed)
    share = _new_share(folds, blend)
    model = _fit_parts(log, vectors, seed, gru=any(RECURRENT in row for row in blend.weights.values()))
    record |= {"sessions": len(log.sessions), "skills": len(log.skills), "weights": dict(blend.weights)}
    record |= {"content": "similar" in model.kept, "new_share": share}
    return replace(model, kept=_kept(model, blend), blend=blend, new_share=share, record=record)


def _fit_parts(log: Log, vectors: Vectors | None, seed: int, *, gru: bool) -> NextModel:
    """All parts with equal weights."""
    new = tuple(sorted(set(vectors or ()) - set(log.skills)))
    parts = fit_parts(log, vectors, new)
    if gru and any(len(session) > 1 for session in log.sessions):
        parts[RECURRENT] = fit_gru(log, seed)
    even = {name: round(1 / len(parts), 6) for name in parts}
    blend = Blend("mean", dict.fromkeys(BUCKETS, even))
    return NextModel(log.skills, parts, blend, new_skills=new if "alike" in parts else ())


def _kept(model: NextModel, blend: Blend) -> dict[str, Any]:
    used = {name for row in blend.weights.values() for name in row}
    return {name: part for name, part in model.kept.items() if name in used or name in ALWAYS}


def _folds(log: Log, vectors: Vectors | None, seed: int, *, gru: bool) -> Iterator[Fold]:
    order = np.random.default_rng(seed).permutation(max(log.groups) + 1)
    fold_of = np.argsort(order) % FOLDS
    half_of = np.argsort(order) // FOLDS % 2
    for fold in range(FOLDS if len(log.sessions) < FEW_SESSIONS else 1):
        train = log.where(frozenset(np.flatnonzero(fold_of != fold).tolist()))
        held = [i for i, group in enumerate(log.groups) if fold_of[group] == fold]
        calls = [
            (log.names(i)[:at], log.names(i)[at], int(half_of[log.groups[i]]))
            for i in held
            for at in range(1, len(log.sessions[i]))
        ]
        if train.skills and calls:
            yield Fold(_fit_parts(train, vectors, seed, gru=gru), tuple(calls))


def _choose(folds: Sequence[Fold], seed: int) -> tuple[Blend, dict[str, Any]]:
    names = tuple(dict.fromkeys(name for fold in folds for name in fold.model.kept))
    held = [_held_out(fold, names, len(folds), seed) for fold in folds]
    calls = sum(len(h.targets) for h in held)
    if calls < FEWEST_CALLS:
        return _even(names), {"chosen": "even", "calls": calls}
    blend, record = choose(held, names, optional=RECURRENT)
    return blend, record | {"calls": calls}


def _even(names: Sequence[str]) -> Blend:
    """Two parts in equal shares; descriptions as well where the current skill has no history."""
    rows = {bucket: ["ngrams", "decayed"] for bucket in BUCKETS}
    rows["new"] += [name for name in ("alike", "similar") if name in names]
    return Blend("mean", {bucket: dict.fromkeys(row, 1 / len(row)) for bucket, row in rows.items()})


def _held_out(fold: Fold, names: Sequence[str], folds: int, seed: int) -> HeldOut:
    """What the parts say of a fold's calls, those whose target they cannot know left out."""
    model, number = fold.model, {skill: i for i, skill in enumerate(fold.model.skills)}
    known = [call for call in fold.calls if call[1] in number]
    most = min(MOST_CALLS, MOST_NUMBERS // (len(names) * len(number))) // folds
    if len(known) > most:
        chosen = np.random.default_rng(seed).permutation(len(known))[:most]
        known = [known[i] for i in sorted(chosen)]
    chances = np.zeros((len(known), len(names), len(number)), dtype=np.float32)
    for row, (prefix, _, _) in enumerate(known):
        said = model.parts(prefix)
        for column, name in enumerate(names):
            if name in said:
                chances[row, column] = said[name]
    return HeldOut(
        chances=chances,
        targets=np.array([number[target] for _, target, _ in known], dtype=np.int64),
        currents=np.array([number.get(prefix[-1], -1) for prefix, _, _ in known], dtype=np.int64),
        buckets=np.array([model.bucket(prefix) for prefix, _, _ in known], dtype=np.str_),
        halves=np.array([half for _, _, half in known], dtype=np.int64),
    )


def _new_share(folds: Sequence[Fold], blend: Blend) -> float:
    """The factor that gives skills without history, together, the share of calls that they had when held out."""
    came, expected = USUAL_NEW_SHARE, 1.0
    for fold in folds:
        model = replace(fold.model, blend=blend, new_share=1.0)
        new = set(model.new_skills)
        came += sum(target in new for _, target, _ in fold.calls)
        sample = fold.calls[:: max(1, len(fold.calls) // 200)]
        expected += len(fold.calls) * float(np.mean([model.predict_new(prefix).sum() for prefix, _, _ in sample]))
    return round(min(came / expected, 1.0), 6)
