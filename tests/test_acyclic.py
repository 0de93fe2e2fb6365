"""Circles are refused, the weakest pair first; longer paths imply shortcuts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cowpath.acyclic import acyclic, implied


def test_the_weakest_pair_of_a_circle_is_refused_with_the_circle() -> None:
    kept, refused = acyclic([("a", "b"), ("b", "c"), ("c", "a"), ("a", "d")])

    assert kept == [("a", "b"), ("b", "c"), ("a", "d")]
    assert refused == {("c", "a"): ["a", "b", "c"]}


def test_a_shortcut_over_other_pairs_is_implied() -> None:
    assert implied([("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("a", "x")]) == {("a", "d")}


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")).filter(lambda p: p[0] != p[1]), unique=True
    )
)
def test_what_is_kept_never_holds_a_circle_and_what_is_refused_would_close_one(pairs: list[tuple[str, str]]) -> None:
    kept, refused = acyclic(pairs)

    assert sorted([*kept, *refused]) == sorted(pairs)
    assert not any(reachable(kept, b, a) for a, b in kept)
    assert all(reachable(kept, b, a) for a, b in refused)


@given(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda p: p[0] < p[1])))
def test_leaving_out_what_is_implied_keeps_every_reach(numbers: set[tuple[int, int]]) -> None:
    pairs = [(str(a), str(b)) for a, b in sorted(numbers)]

    reduced = [p for p in pairs if p not in implied(pairs)]

    assert all(reachable(reduced, a, b) for a, b in pairs)


def reachable(pairs: list[tuple[str, str]], start: str, goal: str) -> bool:
    seen, queue = {start}, [start]
    for here in queue:
        for source, target in pairs:
            if source == here and target not in seen:
                seen.add(target)
                queue.append(target)
    return goal in seen
