"""The stages of one mining run, in order: read this file to know the method, ``ls sql/mine`` for its SQL.

    usage.duckdb -> read_log (statistics) -> count_pairs -> test_pairs -> build -> weigh
                 -> bundle -> fit_next -> write -> edges/, learned/

Each stage takes the run so far and returns it with more known. ``miner/flow.py`` runs the same
stages under Prefect.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from cowpath.edge import Edge
from cowpath.errors import StateError
from cowpath.home import held
from cowpath.next_model import NextModel
from cowpath.settings import Settings
from cowpath.skill import read_catalogue
from cowpath.store import Store, read_sql, sql_names
from cowpath.vectors import Vector, read_vectors, skill_vectors
from miner.association import associate
from miner.circumstances import conflict_edges, nested_edges, recoveries, with_success
from miner.direction import direct
from miner.edges import build_edges, relation_counts
from miner.expected import expect
from miner.itemsets import Bundle, find_bundles
from miner.parameters import Parameters
from miner.report import write_learned
from miner.runs import keep_run
from miner.statistics import Witness, keep_in, merge, update
from miner.transitions import fit

log = logging.getLogger("cowpath.miner")


@dataclass(frozen=True)
class Mining:
    """One mining run: what it was given, and what its stages have found so far."""

    settings: Settings
    parameters: Parameters
    store: Store
    others: tuple[Path, ...] = ()
    profile: dict[str, Any] = field(default_factory=dict)
    witness: Witness = "session"
    run_id: str = ""
    alias_of: dict[str, str] = field(default_factory=dict)
    vectors: dict[str, Vector] = field(default_factory=dict)
    pairs: pl.DataFrame = field(default_factory=pl.DataFrame)
    edges: tuple[Edge, ...] = ()
    cycles: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    recoveries: tuple[dict[str, Any], ...] = ()
    bundles: tuple[Bundle, ...] = ()
    model: NextModel | None = None

    @property
    def single_actor(self) -> bool:
        """Days or sessions had to stand in for actors."""
        return self.witness != "actor"

    @property
    def shared_evidence(self) -> dict[str, object]:
        """What every edge of this run says of itself."""
        return {"witness": self.witness, "single_actor": self.single_actor, "run_id": self.run_id}


def mine(settings: Settings, parameters: Parameters | None = None, *, others: Sequence[Path] = ()) -> dict[str, Any]:
    """Run all stages in this process and return the run record. Needs a published ``usage.duckdb``.

    ``others`` are the statistics of other homes, learned from as if their sessions were in this log.
    """
    with opened(settings, parameters, others=others) as mining:
        for stage in STAGES:
            log.info("%s", stage.__name__)
            mining = stage(mining)
        return record_of(mining)


@contextmanager
def opened(
    settings: Settings, parameters: Parameters | None = None, *, others: Sequence[Path] = ()
) -> Iterator[Mining]:
    """A run on the published copy, with a database of its own in memory for the stages' tables."""
    if not settings.at.usage.exists():
        raise StateError(
            f"nothing is published at {settings.at.usage}",
            suggestions=["cowpath import jsonl EVENTS", "cowpath publish"],
        )
    busy = f"another mining run works on {settings.at.root}; wait for it to end"
    with held(settings.at.root / "mining.lock", busy), Store.open() as store:
        store.limit_memory(settings.mining_memory_gb, settings.at.root / "mining.tmp")
        store.run("schema/001_formulas")
        store.attach(settings.at.usage, "usage", read_only=True)
        store.execute("create view events as select * from usage.events")
        keep_in(store, settings.at.statistics)
        yield Mining(settings=settings, parameters=parameters or Parameters(), store=store, others=tuple(others))


def read_log(mining: Mining) -> Mining:
    """Count what is new in the log; what it holds, who can vouch for a pair in it, the embeddings at rest."""
    catalogue = read_catalogue(mining.settings.at.catalogue)
    names = hashlib.sha256(msgspec.json.encode(catalogue.alias_of, order="sorted")).hexdigest()[:12]
    counted = update(mining.store, mining.parameters, names=names)
    if mining.others:
        counted = merge(mining.store, [mining.settings.at.statistics, *mining.others])
    identity = f"{counted.profile['digest']}:{mining.parameters.digest}{':gru' * mining.settings.gru}"
    return replace(
        mining,
        profile=counted.profile,
        witness=counted.witness,
        run_id=hashlib.sha256(identity.encode()).hexdigest()[:12],
        alias_of=catalogue.alias_of,
        vectors=skill_vectors(catalogue, read_vectors(mining.settings.at.embeddings)),
    )


def count_pairs(mining: Mining) -> Mining:
    """Run the numbered SQL stages, and one product of matrices among them: kept sums to one row of counts a pair."""
    # The sessions of one group retell one task: together they have one vote.
    cap = 1.0 if mining.witness == "session" else mining.parameters.cap
    given = msgspec.structs.asdict(mining.parameters) | {"witness": mining.witness, "cap": cap}
    for name in sql_names("mine"):
        mining.store.run(name, **given)
        if name == "mine/30_witnessed_pairs":
            expect(mining.store)
    ((skills, shown),) = mining.store.rows(
        "select (select count(distinct skill) from kept.steps), "
        "(select coalesce(sum(shown_calls), 0)::bigint from kept.circumstances)"
    )
    pairs = mining.store.frame("select * from pair_stats order by a, b")
    return replace(mining, pairs=pairs, profile=mining.profile | {"skills": skills, "shown_calls": shown})


def test_pairs(mining: Mining) -> Mining:
    """Association within strata, then direction: each pair gets its verdict and what it failed."""
    scored = associate(mining.pairs, mining.parameters, skills=mining.profile["skills"])
    return replace(mining, pairs=direct(scored, mining.parameters))


def build(mining: Mining) -> Mining:
    """Acyclic edges with their evidence."""
    chosen = mining.pairs.filter(pl.col("status").is_not_null())
    with mining.store.visible("chosen_pairs", chosen.select("a", "b")):
        seen = mining.store.frame(read_sql("edges/seen"))
    edges, cycles = build_edges(mining.pairs, seen=seen, evidence=mining.shared_evidence, vectors=mining.vectors)
    return replace(mining, edges=tuple(edges), cycles=cycles)


def weigh(mining: Mining) -> Mining:
    """How calls ended and who made them: success beside each edge, proposed conflicts, nested calls, recoveries."""
    store, parameters, shared = mining.store, mining.parameters, mining.shared_evidence
    ordered = [*mining.edges, *nested_edges(store, parameters, alias_of=mining.alias_of, evidence=shared)]
    conflicts = conflict_edges(store, parameters, positive=ordered, evidence=shared)
    return replace(
        mining,
        edges=(*with_success(store, ordered), *conflicts),
        recoveries=tuple(recoveries(store, parameters)),
    )


def bundle(mining: Mining) -> Mining:
    """Sets of three and more skills that belong together."""
    baskets = mining.store.rows(
        """
        select list(distinct skill_id)
        from kept.steps
        join kept.skills using (skill)
        where not suggested
        group by sequence
        """
    )
    related = frozenset(mining.pairs.filter(pl.col("related")).select("a", "b").iter_rows())
    found = find_bundles([frozenset(skills) for (skills,) in baskets], related, mining.parameters)
    return replace(mining, bundles=tuple(found))


def fit_next(mining: Mining) -> Mining:
    """The next-skill model, from the sequences without the calls that followed our own advice."""
    rows = mining.store.rows(
        """
        select list(skill_id order by position), any_value(session_group)
        from kept.steps
        join kept.skills using (skill)
        join kept.sequences using (sequence)
        where not suggested
        group by session_id, stream_id
        order by session_id, stream_id
        """
    )
    model = fit(
        [skills for skills, _ in rows],
        groups=[group for _, group in rows],
        vectors=mining.vectors,
        gru=mining.settings.gru,
    )
    return replace(mining, model=model)


def write(mining: Mining) -> Mining:
    """Everything learned goes to rest: whole files, sorted, rounded, no wall clock."""
    write_learned(
        mining.settings.at,
        edges=mining.edges,
        pairs=mining.pairs,
        bundles=mining.bundles,
        recoveries=mining.recoveries,
        strata=mining.store.frame("select * from named_strata"),
        suggested=mining.store.frame("select * from suggested_pairs"),
        model=mining.model,
        record=record_of(mining),
    )
    keep_run(mining.settings.at, pairs=mining.pairs, keep=mining.settings.keep_runs)
    return mining


STAGES: tuple[Callable[[Mining], Mining], ...] = (
    read_log,
    count_pairs,
    test_pairs,
    build,
    weigh,
    bundle,
    fit_next,
    write,
)


def record_of(mining: Mining) -> dict[str, Any]:
    """The run record: what was read, with which thresholds, and what came of it. No wall clock."""
    profile = mining.profile
    verdicts = dict(mining.pairs.group_by("verdict").len().sort("verdict").iter_rows())
    return {
        "run_id": mining.run_id,
        "events": profile["events"],
        "calls": profile["calls"],
        "suggested_calls": profile["suggested_calls"],
        "shown_calls": profile["shown_calls"],
        "sessions": profile["sessions"],
        "skills": profile["skills"],
        "actors": profile["actors"],
        "days": profile["days"],
        "first_called_at": _iso(profile["first_called_at"]),
        "last_called_at": _iso(profile["last_called_at"]),
        "witness": mining.witness,
        "single_actor": mining.single_actor,
        "pairs_tested": profile["skills"] * (profile["skills"] - 1) // 2,
        "pairs_seen": mining.pairs.height,
        "verdicts": verdicts,
        "edges": relation_counts(mining.edges),
        "refused_for_a_cycle": [
            {"source": source, "target": target, "cycle": path} for (source, target), path in mining.cycles.items()
        ],
        "bundles": len(mining.bundles),
        "recoveries": len(mining.recoveries),
        "embedded_skills": len(mining.vectors),
        "next_model": mining.model.record if mining.model else None,
        "parameters": msgspec.structs.asdict(mining.parameters),
        "parameters_digest": mining.parameters.digest,
    }


def _iso(moment: Any) -> str | None:
    return None if moment is None else f"{moment.isoformat(timespec='seconds')}Z"
