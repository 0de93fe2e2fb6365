"""Embedding neighbours, and the share of edges that they would have missed."""

from __future__ import annotations

import numpy as np
import pytest

from cowpath.edge import Edge
from cowpath.vectors import Vector
from ranker.neighbours import embedding_neighbours, outside_share


def at(degrees: float) -> Vector:
    return np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], dtype=np.float32)


ANGLES: dict[str, Vector] = {"a": at(0), "b": at(10), "c": at(40), "d": at(90), "e": at(180)}


def precedes(source: str, target: str) -> Edge:
    return Edge(source=source, relation="precedes", target=target, status="confirmed", provenance="learned")


def test_neighbours_are_the_nearest_above_the_floor_without_the_skill_itself() -> None:
    assert [name for name, _ in embedding_neighbours("a", ANGLES, k=3)] == ["b", "c"]
    assert [name for name, _ in embedding_neighbours("a", ANGLES, k=1)] == ["b"]
    assert dict(embedding_neighbours("a", ANGLES))["b"] == pytest.approx(np.cos(np.radians(10)), abs=1e-6)
    assert embedding_neighbours("e", ANGLES) == []
    assert embedding_neighbours("unknown", ANGLES) == []


def test_skills_with_equal_vectors_are_neighbours_and_not_themselves() -> None:
    twins = {name: at(0) for name in "abc"}

    assert [name for name, _ in embedding_neighbours("c", twins, k=2)] == ["a", "b"]


def test_the_share_outside_counts_pairs_of_which_neither_is_near_the_other() -> None:
    edges = [precedes("a", "b"), precedes("a", "d"), precedes("e", "a"), precedes("a", "not-embedded")]

    share = outside_share(edges, ANGLES)

    assert (share.edges, share.share) == (3, 0.6667)
    assert share.random_pairs > 0


def test_the_random_control_is_the_share_among_pairs_without_an_edge() -> None:
    near = {name: at(degree) for name, degree in zip("abcd", (0, 1, 2, 3), strict=True)}

    assert outside_share([precedes("a", "b"), precedes("c", "d")], near).random == 0.0
    assert outside_share([precedes("a", "b"), precedes("b", "d")], ANGLES).random == 1.0
    assert outside_share([], ANGLES).share is None
