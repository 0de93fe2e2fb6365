"""Edges with their evidence, from the judged pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import polars as pl

from cowpath.acyclic import acyclic, implied
from cowpath.edge import Edge
from cowpath.vectors import Vector, neighbourhoods


def build_edges(
    pairs: pl.DataFrame, *, seen: pl.DataFrame, evidence: Mapping[str, object], vectors: Mapping[str, Vector]
) -> tuple[list[Edge], dict[tuple[str, str], list[str]]]:
    """The learned edges, acyclic in ``precedes``, and the refused pairs with the cycle each would close.

    ``seen`` says when each chosen pair was used together first and last (a, b, first_seen, last_seen);
    ``evidence`` is what every edge of this run shares (run id, witness); ``vectors`` are unit
    vectors by skill id, to say whether an edge lies outside its skills' embedding neighbourhood.
    """
    kept, refused = acyclic(strongest_first(pairs.filter(verdict="precedes")))
    direct = _direct(pairs, set(kept))
    near = {name: {other for other, _ in found} for name, found in neighbourhoods(vectors).items()}
    chosen = pairs.filter(pl.col("status").is_not_null()).join(seen, on=["a", "b"], how="left", maintain_order="left")
    edges = [
        _edge(row, direct=direct, near=near, shared=evidence)
        for row in chosen.iter_rows(named=True)
        if row["verdict"] != "precedes" or (row["source"], row["target"]) not in refused
    ]
    return edges, refused


def strongest_first(precedes: pl.DataFrame) -> list[tuple[str, str]]:
    """The ``precedes`` pairs, confirmed before candidate, by lower bound times log of association."""
    ordered = precedes.with_columns(
        strength=pl.col("lower") * (1 + pl.col("z").clip(0)).log(), confirmed=pl.col("status") == "confirmed"
    ).sort("confirmed", "strength", "source", "target", descending=[True, True, False, False])
    return list(ordered.select("source", "target").iter_rows())


def _direct(pairs: pl.DataFrame, kept: set[tuple[str, str]]) -> set[tuple[str, str]]:
    confirmed = pairs.filter(verdict="precedes", status="confirmed").select("source", "target").iter_rows()
    order = [pair for pair in confirmed if pair in kept]
    return kept - implied(order)


def _edge(
    row: dict[str, Any],
    *,
    direct: set[tuple[str, str]],
    near: Mapping[str, set[str]],
    shared: Mapping[str, object],
) -> Edge:
    source, target = row["source"], row["target"]
    symmetric = row["verdict"] == "complements"
    own = _symmetric_evidence(row) if symmetric else _directed_evidence(row) | {"direct": (source, target) in direct}
    if source in near and target in near:
        own["outside_neighbourhood"] = target not in near[source] and source not in near[target]
    ends = sorted((source, target)) if symmetric else (source, target)
    return Edge(
        source=ends[0],
        relation=row["verdict"],
        target=ends[1],
        status=row["status"],
        provenance="learned",
        evidence=rounded(own) | dict(shared),
    )


def _symmetric_evidence(row: dict[str, Any]) -> dict[str, Any]:
    """What says that two skills are used together; directions reported smaller id first."""
    same = row["source"] == row["a"]
    return {
        "sessions": row["o"],
        "expected": row["expected"],
        "lift": row["lift"],
        "z": row["z"],
        "p": row["p"],
        "q": row["q"],
        "strata": row["strata"],
        "witnesses": row["witnesses"],
        "outside_busiest": row["outside_busiest"],
        "outside_lift": row["outside_lift"],
        "outside_z": row["outside_z"],
        "forward": row["forward"] if same else row["backward"],
        "backward": row["backward"] if same else row["forward"],
        "parallel": row["parallel"],
        "lower": row["lower"] if same or row["lower"] is None else 1 - row["upper"],
        "upper": row["upper"] if same or row["upper"] is None else 1 - row["lower"],
        "suggested_excluded": row["suggested"],
        "first_seen": row["first_seen"],
        "last_seen": row["last_seen"],
    }


def _directed_evidence(row: dict[str, Any]) -> dict[str, Any]:
    ordered = row["forward"]
    return _symmetric_evidence(row) | {
        "forward": row["forward"],
        "backward": row["backward"],
        "lower": row["lower"],
        "upper": row["upper"],
        "share": row["share"],
        "capped_forward": row["capped_forward"],
        "capped_backward": row["capped_backward"],
        "forward_witnesses": row["forward_witnesses"],
        "backward_witnesses": row["backward_witnesses"],
        "recent_forward": row["recent_forward"],
        "recent_backward": row["recent_backward"],
        "drifted": row["drifted"],
        "adjacent_share": row["adjacent_forward"] / ordered if ordered else None,
    }


def rounded(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Six significant digits and ISO times; nothing that differs between equal runs."""
    return {name: _round(value) for name, value in evidence.items()}


def _round(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds") + "Z"
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def relation_counts(edges: Iterable[Edge]) -> dict[str, dict[str, int]]:
    """``{relation: {status: n}}`` of the edges, for the run record."""
    counts = {"precedes": {"confirmed": 0, "candidate": 0}, "complements": {"confirmed": 0}}
    for edge in edges:
        found = counts.setdefault(edge.relation, {})
        found[edge.status] = found.get(edge.status, 0) + 1
    return counts
