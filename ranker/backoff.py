"""Content back-off: a current skill without history borrows from the skills whose descriptions are nearest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cowpath.next_model import NextModel
from cowpath.vectors import Vector

NEAREST = 10
SHARPNESS = 12.0


def nearest_with_history(skill_id: str, model: NextModel, vectors: Mapping[str, Vector]) -> list[tuple[str, float]]:
    """(skill id, cosine) of the ten nearest skills with history, nearest first; empty where not embedded."""
    names = [name for name in model.skills if name in vectors and name != skill_id]
    if skill_id not in vectors or not names:
        return []
    cosine = np.stack([vectors[name] for name in names]) @ vectors[skill_id]
    order = np.argsort(-cosine, kind="stable")[:NEAREST]
    return [(names[i], float(cosine[i])) for i in order]


def stand_in(prefix: Sequence[str], near: Sequence[tuple[str, float]], model: NextModel) -> NDArray[np.float64]:
    """The next skill's probabilities with the neighbours standing in for the last skill of the prefix.

    Each neighbour counts by the softmax of its cosine.
    """
    cosine = np.array([value for _, value in near])
    weights = np.exp(SHARPNESS * (cosine - cosine.max()))
    shares = weights / weights.sum()
    answers = [model.predict([*prefix[:-1], name]) for name, _ in near]
    mixed: NDArray[np.float64] = shares @ np.stack(answers)
    return mixed
