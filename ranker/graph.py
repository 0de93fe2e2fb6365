"""The graph of skills: every edge layer joined by precedence, and a bounded walk over what is served."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import networkx as nx

from cowpath.edge import LAYERS, SYMMETRIC, Edge, Relation, read_layer

log = logging.getLogger("cowpath.ranker")

ACYCLIC: tuple[Relation, ...] = ("requires", "specializes", "feeds_into", "precedes")
CONFLICT: Relation = "conflicts_with"
RELATION_ORDER: tuple[Relation, ...] = (
    "requires",
    "feeds_into",
    "precedes",
    "routes_to",
    "verifies",
    "complements",
    "specializes",
    "alternative_to",
    "similar_to",
)
"""Which relation is told first where several lead to the same skill in the same layer."""

STRENGTHS = ("lift", "confidence", "cosine")
"""Where an edge's evidence says how well founded it is; ``precedes`` that was learned goes by ``lower``."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One skill reached by the walk: how far, from where, over which edge, who says so.

    ``direction`` is "out" where the edge is walked from its source to its target.
    """

    skill_id: str
    distance: int
    predecessor: str
    relation: Relation
    direction: Literal["out", "in"]
    provenance: str


class SkillGraph:
    """All layers joined. Of two edges that contradict each other, the less trusted layer's is left out.

    Contradicting are a positive edge beside ``conflicts_with``, and edges of an acyclic relation
    that close a cycle; ``left_out`` holds the losers. Candidates are kept as reasons, never walked.
    """

    def __init__(self, edges: Iterable[Edge]) -> None:
        ordered = sorted(edges, key=_trust)
        agreed, contradicted = _without_contradicted(ordered)
        kept, cyclic = _without_cycles(agreed)
        self.left_out = contradicted + cyclic
        if self.left_out:
            log.warning("%d edges contradict edges of a more trusted layer and are left out", len(self.left_out))
        self._between: dict[frozenset[str], list[Edge]] = defaultdict(list)
        for edge in kept:
            self._between[frozenset((edge.source, edge.target))].append(edge)
        self._served = _multigraph(e for e in kept if e.status == "confirmed" and e.relation != CONFLICT)
        self._conflicts = _multigraph(e for e in kept if e.status == "confirmed" and e.relation == CONFLICT)
        self.edges = kept

    @classmethod
    def read(cls, folder: Path) -> SkillGraph:
        """The graph of the layers in ``folder``; missing layers are empty."""
        return cls(edge for layer in LAYERS for edge in read_layer(folder, layer))

    def between(self, a: str, b: str) -> list[Edge]:
        """Edges of every status that join two skills, either way, most trusted first."""
        return list(self._between.get(frozenset((a, b)), ()))

    def conflicts(self, skill_id: str) -> list[Edge]:
        """The confirmed ``conflicts_with`` edges of a skill."""
        return [edge for _, edge in _edges_at(self._conflicts, skill_id)]

    def walk(self, starts: Iterable[str], *, max_distance: int = 2, limit: int = 20) -> list[Step]:
        """Skills within ``max_distance`` served edges of the starts, nearest and best founded first.

        A skill in conflict with a start is not reached, and no walk goes through it.
        """
        frontier = [s for s in dict.fromkeys(starts) if s in self._served]
        seen = set(frontier) | {_other(edge, s) for s in frontier for edge in self.conflicts(s)}
        steps: list[Step] = []
        for distance in range(1, max_distance + 1):
            reached = self._reach(frontier, seen, distance)
            steps.extend(reached)
            frontier = [step.skill_id for step in reached]
            seen.update(frontier)
        return steps[:limit]

    def _reach(self, frontier: list[str], seen: set[str], distance: int) -> list[Step]:
        best: dict[str, tuple[tuple[Any, ...], Step]] = {}
        for position, start in enumerate(frontier):
            for other, edge in _edges_at(self._served, start):
                key = (*_trust(edge)[:1], RELATION_ORDER.index(edge.relation), -_strength(edge), position)
                if other not in seen and (other not in best or key < best[other][0]):
                    best[other] = (key, _step(other, start, edge, distance))
        return [step for _, step in sorted(best.values(), key=lambda found: (found[0], found[1].skill_id))]


def _trust(edge: Edge) -> tuple[int, int, float, str, str, str]:
    confirmed_first = 0 if edge.status == "confirmed" else 1
    layer = LAYERS.index(edge.provenance)
    return (layer, confirmed_first, -_strength(edge), edge.source, edge.relation, edge.target)


def _strength(edge: Edge) -> float:
    """How well founded an edge is inside its layer and relation: its lower bound, lift, confidence or cosine."""
    keys = ("lower",) if edge.relation == "precedes" and edge.provenance == "learned" else STRENGTHS
    value = next((edge.evidence[key] for key in keys if key in edge.evidence), None)
    return float(value) if isinstance(value, int | float) else 0.0


def _without_contradicted(ordered: list[Edge]) -> tuple[list[Edge], list[Edge]]:
    """Of a pair's positive edges and conflicts, keep the kind that the more trusted layer has."""
    first: dict[frozenset[str], bool] = {}
    for edge in ordered:
        if edge.status == "confirmed":
            first.setdefault(frozenset((edge.source, edge.target)), edge.relation == CONFLICT)

    def agrees(edge: Edge) -> bool:
        conflict = edge.relation == CONFLICT
        return first.get(frozenset((edge.source, edge.target)), conflict) == conflict

    return [e for e in ordered if agrees(e)], [e for e in ordered if not agrees(e)]


def _without_cycles(ordered: list[Edge]) -> tuple[list[Edge], list[Edge]]:
    """Leave out the least trusted edge of every cycle, until no acyclic relation has one."""
    dropped: set[tuple[str, str, str]] = set()
    for relation in ACYCLIC:
        mine = [e for e in ordered if e.relation == relation and e.status == "confirmed"]
        weakest_first = list(dict.fromkeys((e.source, e.target) for e in mine))[::-1]
        graph = nx.DiGraph(weakest_first)
        while not nx.is_directed_acyclic_graph(graph):
            component = {n: i for i, c in enumerate(nx.strongly_connected_components(graph)) for n in c}
            inside = (pair for pair in weakest_first if graph.has_edge(*pair) and _same(component, pair))
            source, target = next(inside)
            graph.remove_edge(source, target)
            dropped.add((source, relation, target))

    def lost(edge: Edge) -> bool:
        return (edge.source, edge.relation, edge.target) in dropped

    return [e for e in ordered if not lost(e)], [e for e in ordered if lost(e)]


def _same(component: dict[str, int], pair: tuple[str, str]) -> bool:
    return component[pair[0]] == component[pair[1]]


def _multigraph(edges: Iterable[Edge]) -> nx.MultiDiGraph[str]:
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for edge in edges:
        if not graph.has_edge(edge.source, edge.target, key=edge.relation):  # the most trusted layer came first
            graph.add_edge(edge.source, edge.target, key=edge.relation, edge=edge)
    return graph


def _edges_at(graph: nx.MultiDiGraph[str], skill_id: str) -> Iterator[tuple[str, Edge]]:
    """(other end, edge) of all edges at a skill, both ways, in a fixed order."""
    if skill_id not in graph:
        return
    out = [(target, data["edge"]) for _, target, data in graph.out_edges(skill_id, data=True)]
    into = [(source, data["edge"]) for source, _, data in graph.in_edges(skill_id, data=True)]
    yield from sorted(out + into, key=lambda found: (_trust(found[1]), found[0]))


def _other(edge: Edge, skill_id: str) -> str:
    return edge.target if edge.source == skill_id else edge.source


def _step(skill_id: str, start: str, edge: Edge, distance: int) -> Step:
    out = edge.source == start or edge.relation in SYMMETRIC
    return Step(
        skill_id=skill_id,
        distance=distance,
        predecessor=start,
        relation=edge.relation,
        direction="out" if out else "in",
        provenance=edge.provenance,
    )
