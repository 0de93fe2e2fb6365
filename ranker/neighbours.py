"""Embedding neighbours: what a graph drawn from descriptions alone would have said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from cowpath.edge import Edge
from cowpath.vectors import FLOOR, NEAREST, Vector, neighbourhoods

RANDOM_PAIRS = 2_000


class OutsideShare(msgspec.Struct, frozen=True, kw_only=True):
    """How many edges join skills of which neither is an embedding neighbour of the other.

    ``random`` is the same share over random pairs of the skills that the edges join: what edges
    that know nothing would reach. None where there is nothing to count.
    """

    share: float | None
    edges: int
    random: float | None
    random_pairs: int


def embedding_neighbours(
    skill_id: str, vectors: Mapping[str, Vector], k: int = NEAREST, floor: float = FLOOR
) -> list[tuple[str, float]]:
    """(skill id, cosine) of the k nearest skills with a cosine of at least ``floor``, nearest first."""
    return neighbourhoods(vectors, [skill_id], k, floor).get(skill_id, [])


def outside_share(
    edges: Iterable[Edge],
    vectors: Mapping[str, Vector],
    k: int = NEAREST,
    floor: float = FLOOR,
    seed: int = 0,
) -> OutsideShare:
    """The share of edges outside the embedding neighbourhood, beside that of random pairs.

    Edges with an end that was not embedded are not counted; the two directions of a pair are one.
    """
    pairs = {frozenset((e.source, e.target)) for e in edges if e.source in vectors and e.target in vectors}
    skills = sorted(set().union(*pairs))
    near = {s: {name for name, _ in found} for s, found in neighbourhoods(vectors, skills, k, floor).items()}
    drawn = _random_pairs(skills, pairs, seed)
    return OutsideShare(
        share=_share_outside(pairs, near), edges=len(pairs), random=_share_outside(drawn, near), random_pairs=len(drawn)
    )


def _share_outside(pairs: Iterable[frozenset[str]], near: Mapping[str, set[str]]) -> float | None:
    outside = [b not in near[a] and a not in near[b] for a, b in (sorted(pair) for pair in pairs)]
    return round(sum(outside) / len(outside), 4) if outside else None


def _random_pairs(skills: list[str], taken: set[frozenset[str]], seed: int) -> list[frozenset[str]]:
    """Pairs of two different skills that no edge joins; the same skill may come again."""
    if len(skills) < 2:
        return []
    draws = np.random.default_rng(seed).integers(len(skills), size=(RANDOM_PAIRS, 2))
    pairs = [frozenset((skills[i], skills[j])) for i, j in draws.tolist() if i != j]
    return [pair for pair in pairs if pair not in taken]


def similar(vectors: Mapping[str, Vector]) -> list[Edge]:
    """``similar_to`` between embedding neighbours, once a pair, with the cosine as evidence."""
    found: dict[tuple[str, str], float] = {}
    for name, near in neighbourhoods(vectors).items():
        for other, cosine in near:
            first, second = sorted((name, other))
            found[first, second] = cosine
    return [_similar(a, b, cosine) for (a, b), cosine in sorted(found.items())]


def _similar(a: str, b: str, cosine: float) -> Edge:
    return Edge(
        source=a,
        relation="similar_to",
        target=b,
        status="confirmed",
        provenance="similar",
        evidence={"basis": "embedding", "cosine": round(cosine, 4), "nearest": NEAREST},
    )
