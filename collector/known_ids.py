"""The ids that are kept, as a compact set of 64-bit hashes: is an event new, without looking at the table.

A hash that is not here belongs to a new id, surely. One that is here belongs to a kept id, or, once
in 10^11 ids at 100 million kept ones, to a stranger of equal hash: the drain then looks in the table.
Eight bytes an id (400 MB for 50 million), twice that for moments. An index in DuckDB costs more, and
collapses where ids are random (192 events/s at 50 million rows).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

GROWTH = 4
"""A sorted run is merged with the one before it, unless that is more than so many times as long."""


class KnownIds:
    """Sorted runs, each much longer than the next, so that adding costs the logarithm and looking up too."""

    def __init__(self, hashes: Iterable[Hashes] = ()) -> None:
        everything = list(hashes)
        self._runs: list[Hashes] = []
        if everything:
            self.add(np.concatenate(everything))

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def add(self, hashes: Hashes) -> None:
        """Remember these."""
        if not len(hashes):
            return
        self._runs.append(np.sort(hashes))
        while len(self._runs) > 1 and len(self._runs[-2]) <= GROWTH * len(self._runs[-1]):
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            merged.sort(kind="stable")  # finds the two runs and merges them
            self._runs.append(merged)

    def seen(self, hashes: Hashes) -> Mask:
        """Which of these are known, or came before in the same array."""
        known = np.ones(len(hashes), dtype=np.bool_)
        unique, first = np.unique(hashes, return_index=True)
        found = np.zeros(len(unique), dtype=np.bool_)
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, unique), len(run) - 1)
            found |= run[place] == unique
        known[first] = found
        return known
