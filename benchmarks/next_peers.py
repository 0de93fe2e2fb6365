"""Peers of the next-skill model, written anew from their papers with fixed, published or usual parameters.

Three of them, AD-3, SLIST and GRU4Rec, are parts of our own model standing alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cowpath.next_parts import Part
from cowpath.vectors import Vector
from miner import baselines
from miner.gru import fit_gru
from miner.log import read_log
from miner.parts import fit_ngrams, fit_session_linear

Floats = NDArray[np.float64]
Scorer = Callable[[Sequence[str]], Floats]
Sessions = Sequence[tuple[str, ...]]

NEURAL = ("gru4rec",)
"""What the bar on n8n_dev leaves aside."""

NEIGHBOURS = 100
EASE_RIDGE = 10.0
DECAY = 1.02
"""Steps in which the weight of an older skill of the prefix falls to 1 / e (VSTAN, as in session-rec)."""
NEIGHBOUR_DECAY = 2.05
"""The same in a neighbour's session, counted from the skill it shares with the prefix."""


def peers(
    train: Sessions, candidates: Sequence[str], vectors: Mapping[str, Vector] | None, *, seed: int, neural: bool
) -> dict[str, Scorer]:
    """Name -> scorer. MiniLM only where there are vectors, GRU4Rec only where asked for."""
    found: dict[str, Scorer] = {
        "popularity": baselines.popularity(train, candidates),
        "markov": baselines.markov(train, candidates),
        "sequential_rules": baselines.sequential_rules(train, candidates),
        "vsknn": vsknn(train, candidates),
        "vstan": vstan(train, candidates),
        "ad3": _part(train, candidates, fit_ngrams),
        "ease": ease(train, candidates),
        "slist": _part(train, candidates, fit_session_linear),
    }
    if vectors:
        found["minilm"] = baselines.neighbours(candidates, vectors)
    if neural:
        found["gru4rec"] = _part(train, candidates, partial(fit_gru, seed=seed))
    return found


def vsknn(train: Sessions, candidates: Sequence[str]) -> Scorer:
    """Skills of the sessions most like the prefix, its later skills counting more.

    Ludewig and Jannach 2018: cosine with weights growing by place, 100 neighbours, and each neighbour worth
    1 / steps back to the last skill it shares with the prefix.
    """
    return partial(_by_neighbours, _Index(train, candidates), _growing, _share_back)


def vstan(train: Sessions, candidates: Sequence[str]) -> Scorer:
    """VSKNN with exponential decays, in the neighbour's session too (Garg et al. 2019; Ludewig et al. 2021).

    Without the decay by days and without the inverse document frequency.
    """
    return partial(_by_neighbours, _Index(train, candidates), _decaying, _share_near)


def ease(train: Sessions, candidates: Sequence[str]) -> Scorer:
    """Which skills sit in one session, by ridge without the diagonal (Steck 2019); blind to order."""
    index = _Index(train, candidates)
    used = np.flatnonzero([len(found) > 0 for found in index.sessions_of])
    place = {int(item): i for i, item in enumerate(used)}
    gram = np.zeros((len(used), len(used)))
    for items in index.items:
        own = [place[i] for i in set(items.tolist())]
        gram[np.ix_(own, own)] += 1
    inverse = np.linalg.inv(gram + EASE_RIDGE * np.eye(len(used)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)

    def score(prefix: Sequence[str]) -> Floats:
        scores = np.full(len(candidates), -np.inf)
        scores[used] = weights[[place[i] for i in set(index.read(prefix)) if i in place]].sum(axis=0)
        return scores

    return score


class _Index:
    """Sessions as numbers of candidates, and which sessions hold each."""

    def __init__(self, train: Sessions, candidates: Sequence[str]) -> None:
        self.number = {skill: i for i, skill in enumerate(candidates)}
        self.items = [np.array([self.number[skill] for skill in session], dtype=np.int64) for session in train]
        held: dict[int, list[int]] = defaultdict(list)
        for row, items in enumerate(self.items):
            for item in set(items.tolist()):
                held[item].append(row)
        self.sessions_of = [np.array(held[i], dtype=np.int64) for i in range(len(candidates))]
        self.lengths = np.array([max(1, len(set(items.tolist()))) for items in self.items], dtype=np.float64)

    def read(self, prefix: Sequence[str]) -> list[int]:
        return [self.number[skill] for skill in prefix if skill in self.number]


def _by_neighbours(
    index: _Index,
    weigh: Callable[[int, int], float],
    share: Callable[[NDArray[np.int64], Mapping[int, int], int], Floats],
    prefix: Sequence[str],
) -> Floats:
    """Similarity of each neighbour, given to its skills by ``share``."""
    items = index.read(prefix)
    last = {item: place for place, item in enumerate(items)}
    alike = np.zeros(len(index.items))
    for item, place in last.items():
        alike[index.sessions_of[item]] += weigh(place + 1, len(items))
    alike /= np.sqrt(index.lengths * max(1, len(last)))
    nearest = np.argsort(-alike, kind="stable")[:NEIGHBOURS]
    scores = np.zeros(len(index.number))
    for row in nearest[alike[nearest] > 0].tolist():
        given = share(index.items[row], last, len(items)) * alike[row]
        np.maximum.at(held := np.zeros(len(scores)), index.items[row], given)
        scores += held
    return scores


def _growing(place: int, length: int) -> float:
    return place / length


def _decaying(place: int, length: int) -> float:
    return float(np.exp((place - length) / DECAY))


def _share_back(items: NDArray[np.int64], last: Mapping[int, int], length: int) -> Floats:
    latest = max(last.get(item, -1) for item in items.tolist())
    return np.full(len(items), 1 / (length - latest))


def _share_near(items: NDArray[np.int64], last: Mapping[int, int], length: int) -> Floats:
    latest, place = max((last.get(item, -1), place) for place, item in enumerate(items.tolist()))
    away = np.abs(np.arange(len(items)) - place)
    near: Floats = np.exp(-away / NEIGHBOUR_DECAY) * np.exp((latest + 1 - length) / DECAY)
    return near


def _part(train: Sessions, candidates: Sequence[str], fit: Callable[[Any], Part]) -> Scorer:
    log = read_log(train, None)
    part, number = fit(log), {skill: i for i, skill in enumerate(log.skills)}
    known = {skill: i for i, skill in enumerate(candidates)}
    at = np.array([known[skill] for skill in log.skills], dtype=np.int64)

    def score(prefix: Sequence[str]) -> Floats:
        scores = np.full(len(candidates), -np.inf)
        scores[at] = part.scores([number[skill] for skill in prefix if skill in number])
        return scores

    return score
