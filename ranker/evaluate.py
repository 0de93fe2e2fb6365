"""Retrieval measured: the three arms on queries with known skills, compared query by query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from cowpath.errors import BadFile, ModelMissing
from cowpath.settings import Settings
from cowpath.skill import Catalogue, Skill, text_hash
from cowpath.vectors import matrix_of, read_vectors
from ranker.bm25 import Keywords
from ranker.encoder import Encoder
from ranker.graph import SkillGraph
from ranker.search import ARMS, Arm, Meaning, Rankings, Search

METRICS = ("hit@1", "hit@5", "recall@5", "full@5", "mrr@10")
RESAMPLES = 2_000
CLUSTER_FIELDS = ("group", "task", "session_id")
"""Queries that share one of these are drawn together: they are not independent."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Scope:
    """Some queries on some skills. ``by_slug``: any copy of a skill, under whatever library, is right."""

    name: str
    catalogue: Catalogue
    queries: list[Row]
    by_slug: bool = False


def evaluate_retrieval(directory: Path | str, settings: Settings | None = None) -> dict[str, Any]:
    """``{"data", "model", "sets": {name: {"n", "arms": {arm: {metric: mean}}, "paired"}}}``.

    ``paired`` holds hybrid minus each other arm: exact McNemar for hits, and a bootstrap interval.
    A set with a ``core`` flag in its catalogue is measured on that core and, by slug, on all of it.
    Embeddings are kept below the home's; without settings nothing is kept.
    """
    if settings is None:
        with TemporaryDirectory() as scratch:
            return evaluate_retrieval(directory, Settings(home=scratch))
    sets: dict[str, Any] = {}
    note: str | None = None
    for scope in scopes(Path(directory)):
        search = open_search(scope.catalogue, settings)
        note = search.reason
        sets |= _measured(scope, search)
    return {"data": Path(directory).name, "model": note is None, "reason": note, "sets": sets}


def scopes(directory: Path) -> list[Scope]:
    """What a data folder asks to be measured on. Queries its authors leave out of scoring are left out."""
    skills = _rows(directory / "catalog.jsonl")
    queries = [q for q in _rows(directory / "queries.jsonl") if q.get("gold") and not q.get("generic_only")]
    if not any(row.get("core") for row in skills):
        return [Scope("", _catalogue(skills), queries)]
    core = _catalogue(row for row in skills if row.get("core"))
    inside = [q for q in queries if all(gold in core for gold in q["gold"])]
    return [Scope("core", core, inside), Scope("full", _catalogue(skills), queries, by_slug=True)]


def open_search(catalogue: Catalogue, settings: Settings) -> Search:
    """A search over a catalogue that is not the home's; keyword only, with the reason, without the model."""
    keywords = Keywords(catalogue.skills.values())
    try:
        meaning, reason = _meaning(catalogue, settings), None
    except ModelMissing as error:
        meaning, reason = None, error.message
    return Search(catalogue, keywords, meaning, SkillGraph(()), reason)


def mcnemar(one: Sequence[float], other: Sequence[float]) -> dict[str, Any]:
    """How often only the one and only the other hit, and the exact two-sided p (McNemar 1947, binomial)."""
    only_one = sum(a > b for a, b in zip(one, other, strict=True))
    only_other = sum(b > a for a, b in zip(one, other, strict=True))
    n = only_one + only_other
    tail = sum(math.comb(n, i) for i in range(min(only_one, only_other) + 1))
    return {"only_hybrid": only_one, "only_other": only_other, "p": float(f"{min(1.0, 2 * tail / 2**n):.4g}")}


def interval(differences: Sequence[float], clusters: Sequence[object]) -> list[float]:
    """95 % percentile bootstrap of a mean difference, drawing whole clusters, seed 0."""
    numbered = {name: i for i, name in enumerate(dict.fromkeys(clusters))}
    member = np.array([numbered[name] for name in clusters])
    total = np.bincount(member, weights=np.array(differences))
    size = np.bincount(member)
    generator = np.random.default_rng(0)
    means = []
    for _ in range(RESAMPLES):
        drawn = generator.integers(len(numbered), size=len(numbered))
        means.append(total[drawn].sum() / size[drawn].sum())
    low, high = np.percentile(means, [2.5, 97.5])
    return [round(float(low), 4), round(float(high), 4)]


def _measured(scope: Scope, search: Search) -> dict[str, Any]:
    scored, refused = _scores(scope, search)
    found: dict[str, Any] = {}
    for name, rows in _sets(scope).items():
        own = {arm: {metric: values[rows] for metric, values in table.items()} for arm, table in scored.items()}
        found[name] = {
            "n": len(rows),
            "abstained": round(sum(refused[i] for i in rows) / len(rows), 4),
            "arms": {arm: {m: round(float(v.mean()), 4) for m, v in table.items()} for arm, table in own.items()},
            "paired": _paired(own, [_cluster(scope.queries[i]) for i in rows]),
        }
    return found


def _scores(scope: Scope, search: Search) -> tuple[dict[Arm, dict[str, NDArray[np.float64]]], list[bool]]:
    """Every metric of every arm, one number a query; and which queries the gate refused."""
    arms: tuple[Arm, ...] = ARMS if search.meaning else ("keyword",)
    table = np.zeros((len(arms), len(METRICS), len(scope.queries)))
    refused = []
    for row, (query, found) in enumerate(zip(scope.queries, _rankings(search, scope.queries), strict=True)):
        gold = _gold(query, scope)
        refused.append(found.off_topic)
        for number, arm in enumerate(arms):
            table[number, :, row] = _query_scores([_key(s, scope) for s in found.of(arm)[:10]], gold)
    return {arm: dict(zip(METRICS, table[number], strict=True)) for number, arm in enumerate(arms)}, refused


def _rankings(search: Search, queries: Sequence[Row]) -> Iterator[Rankings]:
    texts = [query["query"] for query in queries]
    if search.meaning is None:
        yield from (search.rankings(text) for text in texts)
        return
    vectors = search.meaning.encoder.encode(texts)
    yield from (search.rankings(text, vector) for text, vector in zip(texts, vectors, strict=True))


def _query_scores(ranking: Sequence[str], gold: set[str]) -> tuple[float, ...]:
    """One number a metric, in the order of METRICS."""
    five = gold & set(ranking[:5])
    first = next((rank for rank, skill_id in enumerate(ranking, start=1) if skill_id in gold), None)
    return (
        float(first == 1),
        float(bool(five)),
        len(five) / len(gold),
        float(five == gold),
        1 / first if first else 0.0,
    )


def _paired(own: Mapping[Arm, Mapping[str, NDArray[np.float64]]], clusters: Sequence[object]) -> dict[str, Any]:
    if "hybrid" not in own:
        return {}
    return {
        other: {metric: _compared(own["hybrid"][metric], table[metric], metric, clusters) for metric in METRICS}
        for other, table in own.items()
        if other != "hybrid"
    }


def _compared(
    one: NDArray[np.float64], other: NDArray[np.float64], metric: str, clusters: Sequence[object]
) -> dict[str, Any]:
    difference = one - other
    test = mcnemar(one.tolist(), other.tolist()) if metric.startswith("hit") else {}
    return {
        "difference": round(float(difference.mean()), 4),
        "interval": interval(difference.tolist(), clusters),
        **test,
    }


def _sets(scope: Scope) -> dict[str, list[int]]:
    """Set name -> rows of its queries; where there is more than one set, also all of them together."""
    prefix = f"{scope.name}/" if scope.name else ""
    found: dict[str, list[int]] = {}
    for row, query in enumerate(scope.queries):
        found.setdefault(f"{prefix}{query.get('set', 'all')}", []).append(row)
    if len(found) > 1:
        found[f"{prefix}all"] = list(range(len(scope.queries)))
    return dict(sorted(found.items()))


def _cluster(query: Row) -> object:
    named = [query[field] for field in CLUSTER_FIELDS if query.get(field)]
    return named[0] if named else query["query_id"]


def _key(skill_id: str, scope: Scope) -> str:
    return skill_id.rsplit("/", 1)[-1] if scope.by_slug else skill_id


def _gold(query: Row, scope: Scope) -> set[str]:
    return set(query.get("gold_slugs") or ()) if scope.by_slug else set(query["gold"])


def _meaning(catalogue: Catalogue, settings: Settings) -> Meaning:
    from ranker.dense import embed_texts  # torch, and only where something is not embedded yet

    folder = settings.at.embeddings / "evaluated"
    hashes = [text_hash(skill.text) for skill in catalogue.skills.values()]
    embed_texts([skill.text for skill in catalogue.skills.values()], folder, settings)
    matrix, _ = matrix_of(hashes, read_vectors(folder))
    return Meaning(list(catalogue.skills), matrix, Encoder.open(folder))


def _catalogue(rows: Iterable[Row]) -> Catalogue:
    return Catalogue(
        Skill(skill_id=r["skill_id"], name=r.get("name") or r["skill_id"], description=r.get("description") or "")
        for r in rows
    )


def _rows(path: Path) -> list[Row]:
    if not path.is_file():
        raise BadFile(f"{path} is missing; a retrieval data set is a folder with catalog.jsonl and queries.jsonl")
    try:
        return [msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
    except msgspec.MsgspecError as error:
        raise BadFile(f"{path} is not JSON lines: {error}") from error
