"""The models that ours is measured against, each in its plainest strong form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Scorer = Callable[[Sequence[str]], Floats]

STEPS = 10
BACK_OFF = 1e-6
"""Weight of popularity where it only breaks ties; counts differ by far more."""


def popularity(train: Sequence[Sequence[str]], candidates: Sequence[str]) -> Scorer:
    """Always the most called skills."""
    calls = _popularity(train, candidates)
    return lambda prefix: calls


def markov(train: Sequence[Sequence[str]], candidates: Sequence[str]) -> Scorer:
    """What directly followed the current skill most often, then the most called."""
    return _by_current(train, candidates, steps=1)


def sequential_rules(train: Sequence[Sequence[str]], candidates: Sequence[str]) -> Scorer:
    """What followed the current skill within ten steps, each time worth 1 / distance, then the most called.

    Ludewig and Jannach 2018, "Evaluation of session-based recommendation algorithms", without pruning.
    """
    return _by_current(train, candidates, steps=STEPS)


def neighbours(candidates: Sequence[str], vectors: Mapping[str, NDArray[np.float32]]) -> Scorer:
    """The skills whose descriptions are nearest to the current skill's; those without a description are unknown."""
    dimensions = len(next(iter(vectors.values())))
    matrix = np.zeros((len(candidates), dimensions), dtype=np.float32)
    for i, skill in enumerate(candidates):
        matrix[i] = vectors.get(skill, 0)
    known = matrix.any(axis=1)

    def score(prefix: Sequence[str]) -> Floats:
        current = vectors.get(prefix[-1])
        cosine = matrix @ current if current is not None else np.zeros(len(candidates))
        return np.where(known, cosine.astype(np.float64), -np.inf)

    return score


def _popularity(train: Sequence[Sequence[str]], candidates: Sequence[str]) -> Floats:
    number = {skill: i for i, skill in enumerate(candidates)}
    calls = np.bincount([number[skill] for session in train for skill in session], minlength=len(candidates))
    return np.where(calls > 0, calls, -np.inf)


def _by_current(train: Sequence[Sequence[str]], candidates: Sequence[str], steps: int) -> Scorer:
    rules: dict[str, dict[int, float]] = {}
    number = {skill: i for i, skill in enumerate(candidates)}
    for session in train:
        for at, skill in enumerate(session):
            for distance in range(1, min(steps, at) + 1):
                row = rules.setdefault(session[at - distance], {})
                row[number[skill]] = row.get(number[skill], 0.0) + 1 / distance
    back_off = BACK_OFF * _popularity(train, candidates)

    def score(prefix: Sequence[str]) -> Floats:
        scores = back_off.copy()
        row = rules.get(prefix[-1], {})
        scores[list(row)] += list(row.values())
        return scores

    return score
