"""Reciprocal rank fusion gives the paper's numbers."""

from __future__ import annotations

import pytest

from ranker.fuse import fuse


def test_each_ranking_adds_one_over_sixty_plus_the_rank() -> None:
    fused = fuse([["a", "b", "c"], ["b", "d"]])

    assert [skill for skill, _ in fused] == ["b", "a", "d", "c"]
    assert dict(fused) == pytest.approx({"b": 1 / 62 + 1 / 61, "a": 1 / 61, "d": 1 / 62, "c": 1 / 63})


def test_equal_sums_are_ordered_by_id_whatever_the_order_of_the_rankings() -> None:
    assert fuse([["z", "a"], ["a", "z"]]) == fuse([["a", "z"], ["z", "a"]])
    assert [skill for skill, _ in fuse([["z"], ["a"]])] == ["a", "z"]


def test_nothing_fused_is_nothing() -> None:
    assert fuse([]) == []
    assert fuse([[], []]) == []
