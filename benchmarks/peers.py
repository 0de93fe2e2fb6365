"""What other rules and tools claim on the same log: counts, associations, tests, process mining.

Every peer sees the spontaneous calls only. pm4py and mlxtend are asked where they are installed
(``pip install 'cowpath[peers]'``); the product does not need pm4py.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import binom, false_discovery_control, gamma, hypergeom

from cowpath.event import Event

Pair = tuple[str, str]
Floats = NDArray[np.float64]

SUPPORT = 5
"""Least sessions behind a claim of the rules that ask for a support."""


@dataclass(frozen=True)
class Log:
    """What a peer sees: the skills of each session in order, and the pair statistics over them.

    ``stats`` has one row a pair: ``source`` came first more often than ``target``; ``n_*`` sessions
    with a skill, ``o`` with both, ``forward``, ``backward`` by who came first.
    """

    sessions: Sequence[Sequence[str]]
    stats: pl.DataFrame

    @property
    def size(self) -> int:
        return len(self.sessions)

    @cached_property
    def frame(self) -> Any:  # pandas, where a tool asks for it
        import pandas as pd

        began = datetime(2026, 1, 1, tzinfo=UTC)
        return pd.DataFrame(
            [
                (str(case), skill, began + timedelta(minutes=case, milliseconds=place))
                for case, skills in enumerate(self.sessions)
                for place, skill in enumerate(skills)
            ],
            columns=["case:concept:name", "concept:name", "time:timestamp"],
        )


Peer = Callable[[Log], set[Pair]]


def log_of(events: Iterable[Event], stats: pl.DataFrame) -> Log:
    """The spontaneous calls of each session, in order, beside their statistics."""
    calls = (event for event in events if event.kind == "activated" and not event.suggested_by)
    return Log([[call.skill for call in session] for _, session in groupby(calls, key=lambda e: e.session_id)], stats)


def directly_follows(log: Log) -> set[Pair]:
    """a directly before b, at least five times."""
    counts: Counter[Pair] = Counter(pair for skills in log.sessions for pair in pairwise(skills))
    return {(a, b) for (a, b), n in counts.items() if n >= SUPPORT and a != b}


def confidence(log: Log) -> set[Pair]:
    """Sequential rule a => b: confidence .3, support 5. What RuleGrowth and ERMiner list for one skill on each side."""
    kept = log.stats.filter(pl.col("forward") >= SUPPORT, pl.col("forward") / pl.col("n_source") >= 0.3)
    return set(kept.select("source", "target").iter_rows())


def lift(log: Log) -> set[Pair]:
    """Lift 2 over the whole log, support 5, the majority's order."""
    return _directed(log.stats.filter(pl.col("o") >= SUPPORT, _lift(log) >= 2, pl.col("forward") > pl.col("backward")))


def fisher(log: Log) -> set[Pair]:
    """Fisher's exact test and a sign test of the order, each at a false discovery rate of 1 % (Benjamini-Hochberg)."""
    related = log.stats.filter(pl.Series(false_discovery_control(fisher_p(log)) <= 0.01))
    if related.is_empty():
        return set()
    q = false_discovery_control(sign_p(related))
    return _directed(related.filter(pl.Series(q <= 0.01), pl.col("forward") > pl.col("backward")))


def shrunk_lift(log: Log) -> set[Pair]:
    """Empirical-Bayes lift: 5 % quantile at least 2 (gamma-Poisson, DuMouchel 1999), and a Wilson bound of .65."""
    low, direction = _shrunk(log)
    return _directed(log.stats.filter(pl.Series((low >= 2) & (direction >= 0.65))))


def heuristics_net(log: Log, *, dependency: float) -> set[Pair]:
    """pm4py's heuristics miner: every arc of the net it discovers."""
    with _quiet():
        import pm4py

        net = pm4py.discover_heuristics_net(log.frame, dependency_threshold=dependency)
    return {
        (name, after.node_name)
        for name, node in net.nodes.items()
        for after in node.output_connections
        if name != after.node_name
    }


def footprints(log: Log) -> dict[str, set[Pair]]:
    """pm4py's footprints: what it calls a sequence (the alpha miner's causality), and what it calls parallel."""
    with _quiet():
        import pm4py

        found = pm4py.discover_footprints(log.frame)
    return {
        "sequence": {(a, b) for a, b in found["sequence"] if a != b},
        "parallel": {(min(p), max(p)) for p in found["parallel"] if p[0] != p[1]},
    }


def frequent_pairs(log: Log) -> set[Pair]:
    """mlxtend: pairs of fpgrowth's itemsets with support 5 and lift 2. No order is known to it."""
    import pandas as pd
    from mlxtend.frequent_patterns import association_rules, fpgrowth

    names = sorted({skill for skills in log.sessions for skill in skills})
    place = {name: i for i, name in enumerate(names)}
    held = np.zeros((log.size, len(names)), dtype=bool)
    for row, skills in enumerate(log.sessions):
        held[row, [place[skill] for skill in skills]] = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sets = fpgrowth(pd.DataFrame(held, columns=names), min_support=SUPPORT / log.size, use_colnames=True, max_len=2)
        rules = association_rules(sets, metric="lift", min_threshold=2)
    pairs = zip(rules["antecedents"], rules["consequents"], strict=True)
    return {(min(*a, *b), max(*a, *b)) for a, b in pairs}


def lift_without_order(log: Log) -> set[Pair]:
    """Lift 2, and neither order in more than 70 %."""
    return _smaller_first(log.stats.filter(pl.col("o") >= SUPPORT, _lift(log) >= 2, _no_majority()))


def fisher_without_order(log: Log) -> set[Pair]:
    """Fisher's exact test, and neither order in more than 70 %."""
    related = pl.Series(false_discovery_control(fisher_p(log)) <= 0.01)
    return _smaller_first(log.stats.filter(related).filter(_no_majority()))


RULES: dict[str, Peer] = {
    "directly follows": directly_follows,
    "confidence": confidence,
    "lift": lift,
    "fisher": fisher,
    "shrunk lift": shrunk_lift,
}
UNORDERED_RULES: dict[str, Peer] = {
    "complements by lift": lift_without_order,
    "complements by fisher": fisher_without_order,
}


def directed_claims(log: Log) -> dict[str, set[Pair]]:
    """Which pairs each peer calls ordered."""
    claimed = {name: peer(log) for name, peer in RULES.items()}
    if _version("pm4py"):
        claimed["pm4py heuristics .5"] = heuristics_net(log, dependency=0.5)
        claimed["pm4py heuristics .9"] = heuristics_net(log, dependency=0.9)
        claimed["pm4py footprints"] = footprints(log)["sequence"]
    return claimed


def unordered_claims(log: Log) -> dict[str, set[Pair]]:
    """Which pairs each peer calls used together without an order."""
    claimed = {name: peer(log) for name, peer in UNORDERED_RULES.items()}
    if _version("pm4py"):
        claimed["complements by pm4py footprints"] = footprints(log)["parallel"]
    if _version("mlxtend"):
        claimed["complements by mlxtend"] = frequent_pairs(log)
    return claimed


def ranked_by_fisher(log: Log) -> list[Pair]:
    """All pairs, the surest first: by the larger of the two p values of ``fisher``, then by support."""
    order = log.stats.with_columns(p=pl.Series(np.maximum(fisher_p(log), sign_p(log.stats)))).sort(
        "p", "o", "source", "target", descending=[False, True, False, False]
    )
    return list(order.select("source", "target").iter_rows())


def rankings(log: Log, support: int = 3) -> dict[str, list[Pair]]:
    """The pairs each rule would claim first, the surest first; from pairs seen in ``support`` sessions."""
    seen = log.stats.filter(pl.col("o") >= support, pl.col("forward") > pl.col("backward"))
    steps: Counter[Pair] = Counter(pair for skills in log.sessions for pair in pairwise(skills) if pair[0] != pair[1])
    dependency = {(a, b): (n - steps[b, a]) / (n + steps[b, a] + 1) for (a, b), n in steps.items() if n >= support}
    low, direction = _shrunk(log)
    shrunk = log.stats.with_columns(surely=pl.Series(low * direction)).filter(pl.col("o") >= support)
    return {
        "directly follows": [pair for pair, n in steps.most_common() if n >= support],
        "dependency": sorted(dependency, key=lambda pair: (-dependency[pair], pair)),
        "confidence": _ranked(seen, pl.col("forward") / pl.col("n_source")),
        "lift": _ranked(seen, _lift(log)),
        "fisher": ranked_by_fisher(log),
        "shrunk lift": _ranked(shrunk, pl.col("surely")),
    }


def tools() -> dict[str, str]:
    """Which tools took part, and why the others did not."""
    java = "there is a Java" if shutil.which("java") else "there is no Java"
    absent = "not installed: pip install 'cowpath[peers]'"
    return {
        **{name: _version(name) or absent for name in ("pm4py", "mlxtend")},
        "spmf": f"not run: it is a jar that no Python package holds ({java}); `confidence` is its rule for two skills",
    }


def fisher_p(log: Log) -> Floats:
    """One-sided p value of Fisher's exact test that two skills meet in one session by chance."""
    counts = [log.stats[name].to_numpy() for name in ("o", "n_source", "n_target")]
    return np.asarray(np.clip(hypergeom.sf(counts[0] - 1, log.size, counts[1], counts[2]), 0, 1), dtype=np.float64)


def sign_p(stats: pl.DataFrame) -> Floats:
    """Two-sided p value of a sign test that neither order is preferred."""
    forward, backward = stats["forward"].to_numpy(), stats["backward"].to_numpy()
    tail = binom.sf(np.maximum(forward, backward) - 1, forward + backward, 0.5)
    return np.asarray(np.clip(2 * tail, 0, 1), dtype=np.float64)


def _shrunk(log: Log) -> tuple[Floats, Floats]:
    """The 5 % quantile of each pair's shrunk lift, and the Wilson lower bound of its order."""
    expected = (log.stats["n_source"] * log.stats["n_target"] / log.size).to_numpy()
    observed = log.stats["o"].to_numpy()
    ratio = observed / expected
    mean, variance = float(np.mean(ratio)), float(np.var(ratio))
    beta = mean / variance
    low = np.asarray(gamma.ppf(0.05, mean * beta + observed, scale=1 / (beta + expected)), dtype=np.float64)
    n = (log.stats["forward"] + log.stats["backward"]).to_numpy().astype(float)
    return low, _wilson_lower(log.stats["forward"].to_numpy(), n)


def _lift(log: Log) -> pl.Expr:
    return pl.col("o") * log.size / (pl.col("n_source") * pl.col("n_target"))


def _no_majority() -> pl.Expr:
    ordered = pl.col("forward") + pl.col("backward")
    return pl.max_horizontal("forward", "backward") <= 0.7 * ordered


def _wilson_lower(k: NDArray[Any], n: Floats, z: float = 1.645) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        share = k / n
        low = (share + z * z / (2 * n) - z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    return np.nan_to_num(np.asarray(low, dtype=np.float64))


def _ranked(stats: pl.DataFrame, score: pl.Expr) -> list[Pair]:
    order = stats.with_columns(score=score).sort(
        "score", "o", "source", "target", descending=[True, True, False, False]
    )
    return list(order.select("source", "target").iter_rows())


def _directed(stats: pl.DataFrame) -> set[Pair]:
    return set(stats.select("source", "target").iter_rows())


def _smaller_first(stats: pl.DataFrame) -> set[Pair]:
    return set(stats.select("a", "b").iter_rows())


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@contextlib.contextmanager
def _quiet() -> Any:
    """A tool's banner and progress bars are no part of the document."""
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
