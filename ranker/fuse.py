"""Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): rankings to one ranking, values ignored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

K = 60
"""The constant of the paper: how little the very first ranks weigh more than the next ones."""


def fuse(rankings: Sequence[Sequence[str]], k: int = K) -> list[tuple[str, float]]:
    """(skill id, sum of 1 / (k + rank)) best first; equal sums by their best rank, then by id."""
    total: dict[str, float] = defaultdict(float)
    best: dict[str, int] = {}
    for ranking in rankings:
        for rank, skill_id in enumerate(ranking, start=1):
            total[skill_id] += 1 / (k + rank)
            best[skill_id] = min(rank, best.get(skill_id, rank))
    return sorted(total.items(), key=lambda item: (-item[1], best[item[0]], item[0]))
