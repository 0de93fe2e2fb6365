"""Order without circles: keep the strongest directions, set aside what would close a cycle."""

from __future__ import annotations

from collections.abc import Sequence

Pair = tuple[str, str]


def acyclic(pairs: Sequence[Pair]) -> tuple[list[Pair], dict[Pair, list[str]]]:
    """Insert pairs in the given order, strongest first; a pair that closes a cycle is refused.

    Returns the kept pairs and, for each refused one, the path of kept pairs that already leads from
    its target back to its source.
    """
    following: dict[str, list[str]] = {}
    kept: list[Pair] = []
    refused: dict[Pair, list[str]] = {}
    for source, target in pairs:
        path = _path(following, target, source)
        if path:
            refused[source, target] = path
        else:
            following.setdefault(source, []).append(target)
            kept.append((source, target))
    return kept, refused


def implied(pairs: Sequence[Pair]) -> set[Pair]:
    """The pairs of an acyclic order that a longer path of the others already says (transitive reduction)."""
    following: dict[str, list[str]] = {}
    for source, target in pairs:
        following.setdefault(source, []).append(target)
    reach: dict[str, set[str]] = {}
    for source in following:
        _reach(source, following, reach)
    return {
        (source, target)
        for source, target in pairs
        if any(target in reach.get(other, ()) for other in following[source] if other != target)
    }


def _path(following: dict[str, list[str]], start: str, goal: str) -> list[str]:
    """A shortest path from start to goal, both included; empty where there is none."""
    came_from = {start: start}
    queue = [start]
    for here in queue:
        if here == goal:
            return _walked(came_from, goal)
        for there in following.get(here, ()):
            if there not in came_from:
                came_from[there] = here
                queue.append(there)
    return []


def _walked(came_from: dict[str, str], goal: str) -> list[str]:
    path = [goal]
    while came_from[path[-1]] != path[-1]:
        path.append(came_from[path[-1]])
    return path[::-1]


def _reach(start: str, following: dict[str, list[str]], reach: dict[str, set[str]]) -> None:
    """Fill ``reach`` for ``start`` and everything below it, without recursion (paths may be long)."""
    stack = [start]
    while stack:
        here = stack[-1]
        waiting = [there for there in following.get(here, ()) if there not in reach]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        reach[here] = {there for near in following.get(here, ()) for there in (near, *reach[near])}
