"""An edge between two skills, and the edge layers: one sorted JSONL file per provenance."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec

from cowpath.errors import BadFile
from cowpath.home import write_whole

Relation = Literal[
    "requires",
    "specializes",
    "feeds_into",
    "routes_to",
    "precedes",
    "complements",
    "alternative_to",
    "verifies",
    "similar_to",
    "conflicts_with",
]
Provenance = Literal["curated", "learned", "llm", "derived", "similar"]
Status = Literal["confirmed", "candidate"]

LAYERS: tuple[Provenance, ...] = ("curated", "learned", "llm", "derived", "similar")
"""Edge layers, most trusted first."""

SYMMETRIC: frozenset[Relation] = frozenset({"complements", "alternative_to", "similar_to", "conflicts_with"})
"""Relations without a direction; stored with the smaller id first."""


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """``precedes`` reads "source before target". Only ``confirmed`` edges are served by default."""

    source: str
    relation: Relation
    target: str
    status: Status
    provenance: Provenance
    evidence: dict[str, Any] = {}


def read_layer(folder: Path, layer: Provenance) -> list[Edge]:
    """All edges of one layer, in file order; a missing file is an empty layer."""
    path = folder / f"{layer}.jsonl"
    if not path.exists():
        return []
    try:
        return [msgspec.json.decode(line, type=Edge) for line in path.read_bytes().splitlines()]
    except msgspec.MsgspecError as error:
        how = "cowpath mine" if layer == "learned" else f"mv {path} {path}.broken"
        raise BadFile(f"{path} is not a file of edges: {error}", suggestions=[how]) from error


def write_layer(folder: Path, layer: Provenance, edges: Iterable[Edge]) -> Path:
    """Write one layer whole and sorted; equal edges give equal bytes, so a diff is a review."""
    path = folder / f"{layer}.jsonl"
    rows = sorted(edges, key=lambda e: (e.source, e.relation, e.target))
    write_whole(path, b"".join(msgspec.json.encode(edge, order="sorted") + b"\n" for edge in rows))
    return path
