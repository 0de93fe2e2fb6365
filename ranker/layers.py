"""The edge layers that follow from what is at rest: declared, from bodies, by likeness, from a model's answers."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cowpath.edge import Edge, Provenance, read_layer, write_layer
from cowpath.settings import Settings
from cowpath.skill import read_catalogue
from cowpath.vectors import read_vectors, skill_vectors
from ranker.answers import read_answers
from ranker.declared import BASIS, declared
from ranker.graph import SkillGraph
from ranker.llm_edges import Census, llm_edges
from ranker.mentions import mentions
from ranker.neighbours import similar


class LayerReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one layer holds now. ``by_hand`` edges are kept as they were; ``left_out`` ones contradict others."""

    edges: int
    by_hand: int = 0
    left_out: int = 0


class BuildReport(msgspec.Struct, frozen=True, kw_only=True):
    """The layers as they were built. ``census`` is about a language model's answers; None where there are none."""

    layers: dict[str, LayerReport]
    census: Census | None = None


def build_layers(settings: Settings) -> BuildReport:
    """Write each layer that follows from catalogue, embeddings and answers; equal input gives equal bytes.

    The llm layer is written only where a language model was asked: one that was imported stays.
    """
    at = settings.at
    catalogue, answers = read_catalogue(at.catalogue), read_answers(at.edges)
    vectors = skill_vectors(catalogue, read_vectors(at.embeddings))
    by_hand = [e for e in read_layer(at.edges, "curated") if e.evidence.get("basis") != BASIS]
    curated, left_out = with_declared(by_hand, declared(catalogue))
    layers: dict[Provenance, list[Edge]] = {
        "curated": curated,
        "derived": mentions(catalogue),
        "similar": similar(vectors),
    }
    census = None
    if answers:
        layers["llm"], census = llm_edges(catalogue, answers, vectors)
    for layer, edges in layers.items():
        write_layer(at.edges, layer, edges)
    reports: dict[str, LayerReport] = {layer: LayerReport(edges=len(edges)) for layer, edges in layers.items()}
    reports |= {"curated": LayerReport(edges=len(curated), by_hand=len(by_hand), left_out=len(left_out))}
    return BuildReport(layers=reports, census=census)


def with_declared(by_hand: Iterable[Edge], found: Iterable[Edge]) -> tuple[list[Edge], list[Edge]]:
    """(the curated layer, declared edges left out): what is made by hand stays, what contradicts it is not added."""
    kept = list(by_hand)
    taken = {(e.source, e.relation, e.target) for e in kept}
    added = [e for e in found if (e.source, e.relation, e.target) not in taken]
    # a layer below the hand's: of two that contradict each other the graph leaves out the less trusted
    graph = SkillGraph([*kept, *(msgspec.structs.replace(e, provenance="derived") for e in added)])
    lost = {(e.source, e.relation, e.target) for e in graph.left_out}
    left_out = [e for e in added if (e.source, e.relation, e.target) in lost]
    return kept + [e for e in added if e not in left_out], left_out
