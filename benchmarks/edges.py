"""Learned edges against the truth of planted worlds, beside what simpler rules claim on the same logs.

    python -m benchmarks.edges --json [--seeds 31 32] [--sessions 300 1000 10000] [--null 10000]

Claims about pairs that a drift retired are judged neither way. Peers see the same spontaneous calls.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import binomtest, false_discovery_control, gamma, hypergeom

from benchmarks.machine import document, finish
from benchmarks.worlds import Pair, Truth, World, live, plant, plant_nothing, truth
from miner.edge_eval import claims, mined

BARS = {
    "precision of confirmed precedes, every size": 0.97,
    "reversed / claimed, every size": 0.003,
    "F1 minus the best peer's at 10,000 sessions and more": 0.05,
    "complements F1 / the best peer's at 10,000 sessions": 1.5,
    "precedes claimed where nothing is planted": 1,
    "complements claimed where nothing is planted": 25,
}

MEASURES = ("claimed", "precision", "recall", "f1", "reversed")

Peer = Callable[[pl.DataFrame, int], set[Pair]]


def main() -> None:
    """Measure, print the document, exit 1 where a bar is missed."""
    asked = _arguments()
    rows = [row for seed in asked.seeds for size in asked.sessions for row in measure(plant(seed), size, seed)]
    table = summary(rows)
    nothing = null_world(asked.null, asked.seeds[0]) if asked.null else None
    finish(document("edges", results={"table": table, "null": nothing}, bars=bars(table, nothing)), as_json=asked.json)


def measure(world: World, size: int, seed: int) -> list[dict[str, Any]]:
    """One row a method: how its claims about a log of ``size`` sessions fare against the planted truth."""
    mining = mined(live(world, sessions=size, seed=seed))
    planted = truth(world)
    stats = mining.pairs
    claimed = {
        "confirmed": set(claims(mining.edges, "precedes", "confirmed")),
        "candidate": set(claims(mining.edges, "precedes", "confirmed", "candidate")),
        **{name: peer(stats, size) for name, peer in PEERS.items()},
    }
    rows = [{"method": name, "sessions": size, **_directed(pairs, planted)} for name, pairs in claimed.items()]
    unordered = {
        "complements": set(claims(mining.edges, "complements", "confirmed")),
        "complements by lift": lift_without_order(stats, size),
        "complements by fisher": fisher_without_order(stats, size),
    }
    return rows + [
        {"method": name, "sessions": size, **_undirected(pairs, planted)} for name, pairs in unordered.items()
    ]


def null_world(size: int, seed: int) -> dict[str, int]:
    """What is claimed where no task is planted."""
    mining = mined(live(plant_nothing(seed), sessions=size, seed=seed))
    return {
        "sessions": size,
        "precedes": len(claims(mining.edges, "precedes", "confirmed")),
        "complements": len(claims(mining.edges, "complements", "confirmed")),
    }


def summary(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the seeds, one row a method and size."""
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["sessions"], row["method"]), []).append(row)
    return [
        {
            "sessions": sessions,
            "method": method,
            "seeds": len(group),
            **{
                name: round(statistics.fmean(r[name] for r in group), 4)
                for name in group[0]
                if name not in ("method", "sessions")
            },
        }
        for (sessions, method), group in sorted(groups.items())
    ]


def bars(table: Sequence[dict[str, Any]], nothing: dict[str, int] | None) -> list[dict[str, Any]]:
    """Each bar with what was measured."""
    at = {(row["sessions"], row["method"]): row for row in table}
    sizes = sorted({row["sessions"] for row in table})
    large = [size for size in sizes if size >= 10_000]
    measured: dict[str, tuple[float, bool]] = {}
    names = list(BARS)
    precision = min(at[size, "confirmed"]["precision"] for size in sizes)
    measured[names[0]] = (precision, precision >= BARS[names[0]])
    flipped = max(at[size, "confirmed"]["reversed"] for size in sizes)
    measured[names[1]] = (flipped, flipped <= BARS[names[1]])
    if large:
        gain = min(at[size, "confirmed"]["f1"] - max(at[size, peer]["f1"] for peer in PEERS) for size in large)
        measured[names[2]] = (round(gain, 4), gain >= BARS[names[2]])
        peers = ("complements by lift", "complements by fisher")
        ratio = min(at[size, "complements"]["f1"] / max(at[size, peer]["f1"] for peer in peers) for size in large)
        measured[names[3]] = (round(ratio, 4), ratio >= BARS[names[3]])
    if nothing:
        measured[names[4]] = (nothing["precedes"], nothing["precedes"] <= BARS[names[4]])
        measured[names[5]] = (nothing["complements"], nothing["complements"] <= BARS[names[5]])
    return [{"bar": name, "at": BARS[name], "measured": value, "met": met} for name, (value, met) in measured.items()]


# Peers: rules that are in use elsewhere, each on the same pair statistics.


def confidence(stats: pl.DataFrame, size: int) -> set[Pair]:
    """Association rule a -> b: confidence .3, support 5."""
    kept = stats.filter(pl.col("forward") >= 5, pl.col("forward") / pl.col("n_source") >= 0.3)
    return set(kept.select("source", "target").iter_rows())


def lift(stats: pl.DataFrame, size: int) -> set[Pair]:
    """Lift 2 over the whole log, support 5, the majority's order."""
    kept = stats.filter(pl.col("o") >= 5, _lift(size) >= 2, pl.col("forward") > pl.col("backward"))
    return set(kept.select("source", "target").iter_rows())


def fisher(stats: pl.DataFrame, size: int) -> set[Pair]:
    """Fisher's exact test and a sign test of the order, each at a false discovery rate of 1 % (Benjamini-Hochberg)."""
    related = stats.filter(pl.Series(_fisher_q(stats, size) <= 0.01))
    signs = [
        binomtest(int(k), int(n)).pvalue if n else 1.0
        for k, n in related.select("forward", ordered=pl.col("forward") + pl.col("backward")).iter_rows()
    ]
    if not signs:
        return set()
    kept = related.filter(pl.Series(false_discovery_control(signs) <= 0.01), pl.col("forward") > pl.col("backward"))
    return set(kept.select("source", "target").iter_rows())


def shrunk_lift(stats: pl.DataFrame, size: int) -> set[Pair]:
    """Empirical-Bayes lift: 5 % quantile at least 2 (gamma-Poisson, DuMouchel 1999), and a Wilson bound of .65."""
    expected = (stats["n_source"] * stats["n_target"] / size).to_numpy()
    observed = stats["o"].to_numpy()
    ratio = observed / expected
    mean, variance = float(np.mean(ratio)), float(np.var(ratio))
    beta = mean / variance
    low = gamma.ppf(0.05, mean * beta + observed, scale=1 / (beta + expected))
    n = (stats["forward"] + stats["backward"]).to_numpy().astype(float)
    kept = stats.filter(pl.Series((low >= 2) & (_wilson_lower(stats["forward"].to_numpy(), n) >= 0.65)))
    return set(kept.select("source", "target").iter_rows())


PEERS: dict[str, Peer] = {"confidence": confidence, "lift": lift, "fisher": fisher, "shrunk lift": shrunk_lift}


def lift_without_order(stats: pl.DataFrame, size: int) -> set[Pair]:
    """Lift 2, and neither order in more than 70 %."""
    return _smaller_first(stats.filter(pl.col("o") >= 5, _lift(size) >= 2, _no_majority()))


def fisher_without_order(stats: pl.DataFrame, size: int) -> set[Pair]:
    """Fisher's exact test, and neither order in more than 70 %."""
    return _smaller_first(stats.filter(pl.Series(_fisher_q(stats, size) <= 0.01)).filter(_no_majority()))


def _lift(size: int) -> pl.Expr:
    return pl.col("o") * size / (pl.col("n_source") * pl.col("n_target"))


def _no_majority() -> pl.Expr:
    ordered = pl.col("forward") + pl.col("backward")
    return pl.max_horizontal("forward", "backward") <= 0.7 * ordered


def _fisher_q(stats: pl.DataFrame, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    p = hypergeom.sf(stats["o"].to_numpy() - 1, size, stats["n_source"].to_numpy(), stats["n_target"].to_numpy())
    return np.asarray(false_discovery_control(np.clip(p, 0, 1)), dtype=np.float64)


def _wilson_lower(
    k: np.ndarray[Any, Any], n: np.ndarray[Any, np.dtype[np.float64]], z: float = 1.645
) -> np.ndarray[Any, np.dtype[np.float64]]:
    with np.errstate(invalid="ignore", divide="ignore"):
        share = k / n
        low = (share + z * z / (2 * n) - z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    return np.nan_to_num(np.asarray(low, dtype=np.float64))


def _smaller_first(stats: pl.DataFrame) -> set[Pair]:
    return set(stats.select("a", "b").iter_rows())


def _directed(pairs: set[Pair], planted: Truth) -> dict[str, float]:
    judged = {p for p in pairs if tuple(sorted(p)) not in planted.retired}
    right = judged & planted.precedes
    flipped = {p for p in judged if p[::-1] in planted.precedes}
    return _scores(len(judged), len(right), len(planted.precedes)) | {"reversed": len(flipped) / max(1, len(judged))}


def _undirected(pairs: set[Pair], planted: Truth) -> dict[str, float]:
    judged = {p for p in pairs if p not in planted.retired}
    return _scores(len(judged), len(judged & planted.complements), len(planted.complements)) | {"reversed": 0.0}


def _scores(claimed: int, right: int, planted: int) -> dict[str, float]:
    precision, recall = right / max(1, claimed), right / max(1, planted)
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return {"claimed": claimed, "precision": precision, "recall": recall, "f1": f1}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.edges", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[31, 32])
    parser.add_argument("--sessions", type=int, nargs="+", default=[300, 1_000, 10_000])
    parser.add_argument("--null", type=int, default=10_000, help="sessions of the world without tasks; 0: leave it out")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
