"""The graph: layers by trust, no contradictions, conflicts only exclude, bounded walks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cowpath.edge import Edge, Provenance, Relation, Status, write_layer
from ranker.graph import SkillGraph


def edge(
    text: str, provenance: Provenance = "learned", status: Status = "confirmed", **evidence: Any
) -> Edge:  # evidence is free form
    source, relation, target = text.split()
    kind: Relation = relation  # type: ignore[assignment]  # a word of the test
    return Edge(
        source=source, relation=kind, target=target, status=status, provenance=provenance, evidence=dict(evidence)
    )


def reached(graph: SkillGraph, *starts: str, **bounds: int) -> list[tuple[str, int, str, str, str, str]]:
    steps = graph.walk(starts, **bounds)
    return [(s.skill_id, s.distance, s.predecessor, s.relation, s.direction, s.provenance) for s in steps]


def test_a_walk_names_distance_predecessor_relation_direction_and_provenance() -> None:
    graph = SkillGraph([edge("a precedes b"), edge("c precedes b"), edge("b complements d")])

    assert reached(graph, "a") == [
        ("b", 1, "a", "precedes", "out", "learned"),
        ("c", 2, "b", "precedes", "in", "learned"),
        ("d", 2, "b", "complements", "out", "learned"),
    ]


def test_a_walk_is_bounded_in_distance_and_in_number() -> None:
    graph = SkillGraph([edge(f"{x} precedes {y}") for x, y in zip("abcd", "bcde", strict=True)])

    assert [s.skill_id for s in graph.walk(["a"])] == ["b", "c"]
    assert [s.skill_id for s in graph.walk(["a"], max_distance=4, limit=3)] == ["b", "c", "d"]
    assert graph.walk(["nobody"]) == []


def test_the_more_trusted_layer_is_told_first() -> None:
    learned = [edge("a complements y"), edge("a precedes x")]
    graph = SkillGraph([edge("a similar_to x", "similar"), *learned, edge("a requires z", "curated")])

    walked = [(s.skill_id, s.provenance) for s in graph.walk(["a"])]
    assert walked == [("z", "curated"), ("x", "learned"), ("y", "learned")]
    assert [e.provenance for e in graph.between("x", "a")] == ["learned", "similar"]


def test_candidates_are_reasons_and_are_never_walked() -> None:
    graph = SkillGraph([edge("a precedes b", status="candidate")])

    assert graph.walk(["a"]) == []
    assert [e.status for e in graph.between("a", "b")] == ["candidate"]


def test_conflicts_are_not_walked_and_block_the_walk() -> None:
    graph = SkillGraph(
        [edge("a conflicts_with x", "curated"), edge("a precedes b"), edge("b precedes x"), edge("x precedes y")]
    )

    assert [s.skill_id for s in graph.walk(["a"], max_distance=3)] == ["b"]
    assert [e.target for e in graph.conflicts("a")] == ["x"]


def test_a_pair_keeps_either_its_conflict_or_its_positive_edges_by_trust() -> None:
    conflict_wins = SkillGraph([edge("a conflicts_with b", "curated"), edge("a precedes b")])
    positive_wins = SkillGraph([edge("a conflicts_with b", "llm"), edge("a precedes b")])

    assert (conflict_wins.walk(["a"]), len(conflict_wins.conflicts("a"))) == ([], 1)
    assert ([s.skill_id for s in positive_wins.walk(["a"])], positive_wins.conflicts("a")) == (["b"], [])
    assert [e.relation for e in conflict_wins.left_out] == ["precedes"]


def test_a_cycle_across_layers_loses_its_least_trusted_edge() -> None:
    graph = SkillGraph(
        [
            edge("a precedes b", "curated"),
            edge("b precedes c", lower=0.9),
            edge("c precedes a", lower=0.7),
            edge("c requires a", "llm"),
        ]
    )

    assert [(e.source, e.relation, e.target) for e in graph.left_out] == [("c", "precedes", "a")]
    assert len(graph.edges) == 3


def test_reading_gives_the_same_graph_whatever_the_order_in_the_files(tmp_path: Path) -> None:
    edges = [edge("a precedes b", lower=0.7), edge("a precedes c", lower=0.9), edge("a complements d", lift=2.0)]
    write_layer(tmp_path, "learned", edges)

    assert SkillGraph.read(tmp_path).walk(["a"]) == SkillGraph(reversed(edges)).walk(["a"])
    assert [s.skill_id for s in SkillGraph(edges).walk(["a"])] == ["c", "b", "d"]
    assert SkillGraph.read(tmp_path / "nothing").edges == []
