"""Bundles: three and more skills that belong together, hubs left out, no subset repeated."""

from __future__ import annotations

from itertools import combinations

from miner.itemsets import Bundle, find_bundles
from miner.parameters import Parameters


def related(*groups: str) -> frozenset[tuple[str, str]]:
    return frozenset(pair for group in groups for pair in combinations(sorted(group.split()), 2))


def baskets(*counted: tuple[int, str]) -> list[frozenset[str]]:
    return [frozenset(skills.split()) for n, skills in counted for _ in range(n)]


def test_a_set_of_three_is_found_with_its_support() -> None:
    found = find_bundles(baskets((8, "lint test ship"), (30, "other")), related("lint test ship"), Parameters())

    assert found == [Bundle(skills=("lint", "ship", "test"), support=8, share=round(8 / 38, 6))]


def test_a_subset_as_frequent_as_its_larger_set_is_not_repeated() -> None:
    found = find_bundles(
        baskets((8, "a b c d"), (6, "a b c"), (30, "other")), related("a b c d"), Parameters(bundle_min_sessions=5)
    )

    assert [(b.skills, b.support) for b in found] == [(("a", "b", "c"), 14), (("a", "b", "c", "d"), 8)]


def test_a_hub_joins_no_bundle() -> None:
    found = find_bundles(baskets((8, "a b c hub"), (30, "hub")), related("a b c"), Parameters())

    assert [b.skills for b in found] == [("a", "b", "c")]


def test_too_few_sessions_or_no_related_pair_give_nothing() -> None:
    assert find_bundles(baskets((4, "a b c")), related("a b c"), Parameters()) == []
    assert find_bundles(baskets((40, "a b c")), frozenset(), Parameters()) == []
    assert find_bundles([], related("a b c"), Parameters()) == []
