"""Peers of the next-skill model, written anew from their papers with fixed, published or usual parameters.

Two of them, AD-3 and SLIST, are parts of our own model standing alone.
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

WIDTH = 64
LONGEST = 50
BATCH = 64
EPOCHS = 30
PATIENCE = 2
THREADS = 2


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
        found["gru4rec"] = gru4rec(train, candidates, seed)
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


def gru4rec(train: Sessions, candidates: Sequence[str], seed: int) -> Scorer:
    """A gated recurrent network with a full softmax (Hidasi et al. 2016), small, stopped early on a tenth."""
    import torch  # only where asked for

    torch.set_num_threads(THREADS)
    torch.manual_seed(seed)
    names = sorted({skill for session in train for skill in session})
    number = {skill: i + 1 for i, skill in enumerate(names)}
    known = {skill: i for i, skill in enumerate(candidates)}
    at = np.array([known[skill] for skill in names], dtype=np.int64)
    layers = torch.nn.ModuleDict(
        {
            "embed": torch.nn.Embedding(len(names) + 1, WIDTH, padding_idx=0),
            "gru": torch.nn.GRU(WIDTH, WIDTH, batch_first=True),
            "drop": torch.nn.Dropout(0.2),
            "out": torch.nn.Linear(WIDTH, len(names) + 1),
        }
    )

    def read(batch: Any) -> Any:
        hidden, _ = layers["gru"](layers["drop"](layers["embed"](batch)))
        return layers["out"](layers["drop"](hidden))

    _train(torch, layers, read, _windows(train, number), seed)

    def score(prefix: Sequence[str]) -> Floats:
        scores = np.full(len(candidates), -np.inf)
        held = [number[skill] for skill in prefix if skill in number][-LONGEST:]
        if held:
            with torch.no_grad():
                scores[at] = read(torch.tensor([held]))[0, -1, 1:].double().numpy()
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


def _windows(train: Sessions, number: Mapping[str, int]) -> list[list[int]]:
    """Sessions in pieces of the longest length and one, each overlapping the one before by one."""
    held = [[number[skill] for skill in session] for session in train]
    return [s[at : at + LONGEST + 1] for s in held for at in range(0, max(1, len(s) - 1), LONGEST) if len(s) > 1]


def _train(torch: Any, layers: Any, read: Callable[[Any], Any], windows: list[list[int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(windows))
    kept = [windows[i] for i in order[: max(1, len(windows) // 10)]]
    learned = [windows[i] for i in order[len(kept) :]] or kept
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.003)
    best, state, waited = float("inf"), None, 0
    for _ in range(EPOCHS):
        layers.train()
        shuffled = [learned[i] for i in rng.permutation(len(learned))]
        for start in range(0, len(shuffled), BATCH):
            optimizer.zero_grad()
            total, calls = _loss(torch, read, shuffled[start : start + BATCH])
            (total / calls).backward()
            optimizer.step()
        layers.eval()
        with torch.no_grad():
            sums = [_loss(torch, read, kept[start : start + BATCH]) for start in range(0, len(kept), BATCH)]
        loss = float(sum(total for total, _ in sums)) / sum(calls for _, calls in sums)
        best, state, waited = (loss, _copy(layers), 0) if loss < best else (best, state, waited + 1)
        if waited == PATIENCE:
            break
    layers.load_state_dict(state)
    layers.eval()


def _copy(layers: Any) -> dict[str, Any]:
    return {name: value.clone() for name, value in layers.state_dict().items()}


def _loss(torch: Any, read: Callable[[Any], Any], windows: list[list[int]]) -> tuple[Any, int]:
    """Summed cross entropy of the calls that followed, and how many they are."""
    longest = max(len(w) for w in windows)
    padded = torch.tensor([w + [0] * (longest - len(w)) for w in windows])
    said, targets = read(padded[:, :-1]), padded[:, 1:]
    total = torch.nn.functional.cross_entropy(said.flatten(0, 1), targets.flatten(), ignore_index=0, reduction="sum")
    return total, int((targets > 0).sum())
