"""The edge layers that follow from what is at rest: declared, from bodies, by likeness. Equal input, equal bytes."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cowpath.edge import Edge, Provenance, read_layer, write_layer
from cowpath.settings import Settings
from cowpath.skill import Catalogue, read_catalogue
from cowpath.vectors import NEAREST, neighbourhoods, read_vectors, skill_vectors
from ranker.declared import BASIS, declared
from ranker.graph import SkillGraph
from ranker.mentions import mentions


class LayerReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one layer holds now. ``by_hand`` edges are kept as they were; ``left_out`` ones contradict others."""

    edges: int
    by_hand: int = 0
    left_out: int = 0


def build_layers(settings: Settings) -> dict[str, LayerReport]:
    """Write the curated layer's declared part, the derived and the similar layer from catalogue and embeddings."""
    at = settings.at
    catalogue = read_catalogue(at.catalogue)
    by_hand = [e for e in read_layer(at.edges, "curated") if e.evidence.get("basis") != BASIS]
    curated, left_out = with_declared(by_hand, declared(catalogue))
    layers: dict[Provenance, list[Edge]] = {
        "curated": curated,
        "derived": mentions(catalogue),
        "similar": similar(catalogue, settings),
    }
    for layer, edges in layers.items():
        write_layer(at.edges, layer, edges)
    reports = {layer: LayerReport(edges=len(edges)) for layer, edges in layers.items()}
    return reports | {"curated": LayerReport(edges=len(curated), by_hand=len(by_hand), left_out=len(left_out))}


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


def similar(catalogue: Catalogue, settings: Settings) -> list[Edge]:
    """``similar_to`` between embedding neighbours, once a pair; none where nothing was embedded yet."""
    found: dict[tuple[str, str], float] = {}
    vectors = skill_vectors(catalogue, read_vectors(settings.at.embeddings))
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
