"""Content back-off: a skill without history borrows from skills with history whose descriptions are nearest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cowpath.next_model import NextModel
from cowpath.vectors import Vector

NEAREST = 10
SHARPNESS = 12.0
DISCOUNT = 0.5
"""What a skill without history gets of its neighbours' probability."""
FLOOR = 0.5
"""A skill whose nearest description is less alike than this is not suggested for its likeness."""
ROWS = 2_048


@dataclass(frozen=True)
class Likeness:
    """For each embedded skill without history: its nearest skills with history and their cosines.

    ``near`` are places in ``names``; both arrays have one row a skill of ``ids``, nearest first.
    """

    ids: tuple[str, ...]
    names: tuple[str, ...]
    near: NDArray[np.int64]
    cosine: NDArray[np.float32]

    @classmethod
    def of(cls, model: NextModel, vectors: Mapping[str, Vector]) -> Likeness:
        """Empty where nothing is embedded, or everything embedded has a history."""
        names = tuple(name for name in model.skills if name in vectors)
        ids = tuple(sorted(set(vectors) - set(model.skills)))
        if not names or not ids:
            return cls((), names, np.zeros((0, 0), np.int64), np.zeros((0, 0), np.float32))
        known = np.stack([vectors[name] for name in names])
        blocks = [ids[start : start + ROWS] for start in range(0, len(ids), ROWS)]
        found = [_nearest(np.stack([vectors[s] for s in block]) @ known.T) for block in blocks]
        return cls(ids, names, np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found]))

    def nearest(self, skill_id: str) -> list[tuple[str, float]]:
        """(skill with history, cosine), nearest first; empty for a skill that is not among ``ids``."""
        row = self._row.get(skill_id)
        if row is None:
            return []
        pairs = zip(self.near[row].tolist(), self.cosine[row].tolist(), strict=True)
        return [(self.names[place], cosine) for place, cosine in pairs]

    def stand_in(self, prefix: Sequence[str], model: NextModel) -> NDArray[np.float64]:
        """The next skill's probabilities, with its neighbours standing in for the last skill of the prefix."""
        row = self._row[prefix[-1]]
        answers = [model.predict([*prefix[:-1], name]) for name, _ in self.nearest(prefix[-1])]
        mixed: NDArray[np.float64] = self._shares[row] @ np.stack(answers)
        return mixed

    def transfer(self, probabilities: Mapping[str, float]) -> dict[str, float]:
        """What the skills without history get of their neighbours' probabilities."""
        if not self.ids:
            return {}
        values = np.array([probabilities.get(name, 0.0) for name in self.names])
        given = DISCOUNT * (self._shares * values[self.near]).sum(axis=1)
        alike = self.cosine[:, 0] >= FLOOR
        return {s: float(v) for s, v, yes in zip(self.ids, given, alike, strict=True) if yes and v > 0}

    @cached_property
    def _row(self) -> dict[str, int]:
        return {skill_id: row for row, skill_id in enumerate(self.ids)}

    @cached_property
    def _shares(self) -> NDArray[np.float64]:
        """Each neighbour counts by the softmax of its sharpened cosine."""
        weights = np.exp(SHARPNESS * (self.cosine.astype(np.float64) - self.cosine[:, :1]))
        shares: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
        return shares


def _nearest(cosine: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Places and cosines of each row's highest, highest first."""
    k = min(NEAREST, cosine.shape[1])
    highest = np.sort(np.argpartition(-cosine, k - 1, axis=1)[:, :k], axis=1)
    values = np.take_along_axis(cosine, highest, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(highest, order, axis=1), np.take_along_axis(values, order, axis=1)
