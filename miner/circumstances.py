"""What the circumstances of calls add to the edges: how sessions ended, which skill called which, where one turns to.

Nothing here confirms, ranks or removes an edge: ends are reported by whoever was asked to succeed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl
from scipy.stats import binom

from cowpath.edge import Edge
from cowpath.store import Store, read_sql
from miner.association import benjamini_hochberg
from miner.conflicts import Conflict, find_conflicts
from miner.edges import rounded
from miner.parameters import Parameters

Pair = tuple[str, str]


def with_success(store: Store, edges: Sequence[Edge]) -> list[Edge]:
    """The same edges; where ends are known, their evidence says how sessions ended with both skills and with one."""
    success = _success(store, {_unordered(edge.source, edge.target) for edge in edges})
    return [
        msgspec.structs.replace(
            edge, evidence=dict(edge.evidence) | success.get(_unordered(edge.source, edge.target), {})
        )
        for edge in edges
    ]


def conflict_edges(
    store: Store, parameters: Parameters, *, positive: Iterable[Edge], evidence: Mapping[str, object]
) -> list[Edge]:
    """Proposals of ``conflicts_with``: candidates, and none beside a positive edge of the same two skills."""
    beside = {_unordered(edge.source, edge.target) for edge in positive}
    found = [
        conflict
        for conflict in find_conflicts(store.frame(read_sql("edges/ended_sessions")), parameters)
        if _unordered(conflict.a, conflict.b) not in beside
    ]
    return with_success(store, [_conflict_edge(conflict, evidence) for conflict in found])


def nested_edges(
    store: Store, parameters: Parameters, *, alias_of: Mapping[str, str], evidence: Mapping[str, object]
) -> list[Edge]:
    """``routes_to`` candidates from nested calls, caller to callee. ``alias_of`` resolves the callers' raw names."""
    calls = store.frame(read_sql("edges/nested"))
    named = calls.with_columns(caller=pl.col("caller").replace(dict(alias_of))).filter(
        pl.col("caller") != pl.col("callee")
    )
    pairs = named.group_by("caller", "callee").agg(pl.col("sessions").sum(), witnesses=pl.col("witness").n_unique())
    kept = pairs.filter(
        pl.col("sessions") >= parameters.min_sessions, pl.col("witnesses") >= parameters.min_witnesses
    ).sort("caller", "callee")
    return [
        Edge(
            source=row["caller"],
            relation="routes_to",
            target=row["callee"],
            status="candidate",
            provenance="learned",
            evidence={"nested_calls": True, "sessions": row["sessions"], "witnesses": row["witnesses"], **evidence},
        )
        for row in kept.iter_rows(named=True)
    ]


def recoveries(store: Store, parameters: Parameters) -> list[dict[str, Any]]:
    """After ``failed`` fails, ``next`` is turned to more often than it follows anyway; the surest first.

    ``share`` of the failures that were followed by it, ``usually`` the share of all uses that are.
    """
    turns = store.frame(read_sql("edges/recoveries"))
    if turns.is_empty():
        return []
    usually = np.minimum(np.maximum(turns["followed"].to_numpy(), 0.5) / turns["uses"].to_numpy(), 1)
    sessions, failures = turns["sessions"].to_numpy(), turns["failures"].to_numpy()
    p = np.asarray(binom.sf(sessions - 1, failures, usually), dtype=np.float64)
    judged = turns.select("failed", "next", "sessions", "witnesses", "failures").with_columns(
        share=pl.Series(sessions / failures),
        usually=pl.Series(usually),
        q=pl.Series(benjamini_hochberg(p, tests=len(p))),
    )
    kept = judged.filter(
        pl.col("sessions") >= parameters.recovery_min_sessions,
        pl.col("witnesses") >= parameters.min_witnesses,
        pl.col("q") <= parameters.q,
    ).sort("q", "failed", "next")
    return [rounded(row) for row in kept.iter_rows(named=True)]


def _success(store: Store, pairs: Iterable[Pair]) -> dict[Pair, dict[str, Any]]:
    chosen = pl.DataFrame(sorted(pairs), schema={"a": pl.String, "b": pl.String}, orient="row")
    with store.visible("chosen_pairs", chosen):
        rows = store.frame(read_sql("edges/outcomes")).iter_rows(named=True)
    return {(row.pop("a"), row.pop("b")): rounded(row) for row in rows}


def _conflict_edge(conflict: Conflict, evidence: Mapping[str, object]) -> Edge:
    own = {
        "sessions": conflict.sessions,
        "failed_sessions": conflict.failed,
        "expected_failures": conflict.expected,
        "z": conflict.z,
    }
    return Edge(
        source=conflict.a,
        relation="conflicts_with",
        target=conflict.b,
        status="candidate",
        provenance="learned",
        evidence=rounded(own) | dict(evidence),
    )


def _unordered(a: str, b: str) -> Pair:
    return (a, b) if a < b else (b, a)
