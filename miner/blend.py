"""Put the parts together: weights from calls held out from their fitting, by the prefix's length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from cowpath.next_model import BUCKETS, FLOOR, Blend
from miner.log import Ints

Floats = NDArray[np.float64]

BUCKET_CALLS = 100
"""A bucket with fewer held-out calls takes the weights of all."""
PRIOR_CALLS = 20.0
"""The weights of all count as this many calls in each bucket."""

STEPS = 100
PRODUCT_CALLS = 1_500
TOP = 20


@dataclass(frozen=True)
class HeldOut:
    """Calls held out from the fitting of one set of parts, and what each part said of them.

    ``chances`` has shape (calls, parts, skills); ``targets`` are skill numbers, ``halves`` say where
    a call is judged: weights are learned on one half and judged on the other.
    """

    chances: NDArray[np.float32]
    targets: Ints
    currents: Ints
    buckets: NDArray[np.str_]
    halves: Ints

    def of(self, keep: NDArray[np.bool_]) -> HeldOut:
        return HeldOut(
            self.chances[keep], self.targets[keep], self.currents[keep], self.buckets[keep], self.halves[keep]
        )

    def said_by(self, parts: Sequence[int]) -> HeldOut:
        return replace(self, chances=self.chances[:, list(parts)])

    @property
    def of_targets(self) -> Floats:
        """What each part gave the skill that did come, shape (calls, parts)."""
        calls = np.arange(len(self.targets))
        found: Floats = self.chances[calls, :, self.targets].astype(np.float64)
        return found


@dataclass(frozen=True)
class Choice:
    """A blend, how it and the others did, and its reciprocal ranks on calls that its weights did not see."""

    blend: Blend
    record: dict[str, Any]
    reciprocal: Floats


def choose(
    held: Sequence[HeldOut], names: Sequence[str], *, optional: str | None = None
) -> tuple[Blend, dict[str, Any]]:
    """The mixture, unless the product or one part alone clearly does better on calls its weights did not see.

    Clearly: by two standard errors of the paired difference. Also how all of them did, as a record. The part
    named ``optional`` is left out unless the choice with it clearly does better than the choice without.
    """
    if optional is None or optional not in names:
        choice = _choose(held, names)
        return choice.blend, choice.record
    others = [i for i, name in enumerate(names) if name != optional]
    plain = _choose([h.said_by(others) for h in held], [names[i] for i in others])
    whole = _choose(held, names)
    kept = _clearly_better(whole.reciprocal, plain.reciprocal)
    choice = whole if kept else plain
    return choice.blend, choice.record | {optional: _compared(whole.reciprocal, plain.reciprocal) | {"kept": kept}}


def _choose(held: Sequence[HeldOut], names: Sequence[str]) -> Choice:
    reciprocal = {way: _judge(held, names, way) for way in WAYS}
    for i, name in enumerate(names):
        reciprocal[name] = np.concatenate([_reciprocal_ranks(h, h.chances[:, i]) for h in held])
    measured = {way: round(float(values.mean()), 4) for way, values in reciprocal.items()}
    better = [way for way, values in reciprocal.items() if _clearly_better(values, reciprocal["mean"])]
    best = max(better, key=lambda way: measured[way], default="mean")
    alone = {bucket: {best: 1.0} for bucket in BUCKETS}
    blend = Blend(best, WAYS[best](held, names)) if best in WAYS else Blend("mean", alone)
    return Choice(blend, {"chosen": best, "mrr@20": measured}, reciprocal[best])


def _compared(values: Floats, than: Floats) -> dict[str, float]:
    gain = values - than
    return {
        "mrr@20_with": round(float(values.mean()), 4),
        "mrr@20_without": round(float(than.mean()), 4),
        "standard_error": round(float(gain.std() / np.sqrt(len(gain))), 4),
    }


def _clearly_better(values: Floats, than: Floats) -> bool:
    gain = values - than
    return bool(gain.mean() > 2 * gain.std() / np.sqrt(len(gain)) > 0)


def mean_weights(held: Sequence[HeldOut], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Mixture weights by expectation maximisation (Dempster, Laird and Rubin 1977; Jelinek and Mercer 1980)."""
    chances = np.concatenate([h.of_targets for h in held])
    buckets = np.concatenate([h.buckets for h in held])
    even = np.full(len(names), 1 / len(names))
    overall = _maximise(chances, even)
    rows = {bucket: _prior(bucket, overall, names) for bucket in BUCKETS}
    for bucket, prior in rows.items():
        own = chances[buckets == bucket]
        if len(own) >= BUCKET_CALLS or bucket == "new":
            rows[bucket] = _maximise(own, prior)
    return {bucket: _named(row / row.sum(), names) for bucket, row in rows.items()}


def _maximise(chances: Floats, prior: Floats) -> Floats:
    weights = prior
    for _ in range(STEPS):
        joint = chances * weights
        total = joint.sum(axis=1, keepdims=True)
        shares = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
        weights = (shares.sum(axis=0) + PRIOR_CALLS * prior) / (float((total > 0).sum()) + PRIOR_CALLS)
    return weights


def _prior(bucket: str, overall: Floats, names: Sequence[str]) -> Floats:
    """Where the current skill has no history, descriptions are worth half before anything was seen."""
    content = np.array([float(name in ("alike", "similar")) for name in names])
    if bucket != "new" or not content.any():
        return overall
    half: Floats = (overall + content / content.sum()) / 2
    return half


def product_weights(held: Sequence[HeldOut], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Weights of a log-linear blend (Genest and Zidek 1986) by conditional likelihood, drawn towards those of all."""
    overall = _climb(held, np.full(len(names), 1 / len(names)))
    rows = dict.fromkeys(BUCKETS, overall)
    for bucket in BUCKETS:
        own = [h.of(h.buckets == bucket) for h in held]
        if sum(len(h.targets) for h in own) >= BUCKET_CALLS:
            rows[bucket] = _climb(own, overall)
    return {bucket: _named(row, names) for bucket, row in rows.items()}


def _climb(held: Sequence[HeldOut], prior: Floats) -> Floats:
    logs = [(np.log(h.chances[:PRODUCT_CALLS] + np.float32(FLOOR)), h.targets[:PRODUCT_CALLS]) for h in held]

    def loss(weights: Floats) -> tuple[float, Floats]:
        total, slope = 0.0, np.zeros_like(weights)
        for log, targets in logs:
            value, gradient = _likelihood(log, targets, weights.astype(np.float32))
            total, slope = total + value, slope + gradient
        away = weights - prior
        return PRIOR_CALLS * float(away @ away) - total, 2 * PRIOR_CALLS * away - slope

    found = optimize.minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(prior))
    climbed: Floats = found.x
    return climbed


def _likelihood(log: NDArray[np.float32], targets: Ints, weights: NDArray[np.float32]) -> tuple[float, Floats]:
    """Log likelihood of the targets under the product, and its slope in the weights."""
    calls = np.arange(len(targets))
    scores = np.einsum("cps,p->cs", log, weights)
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores)
    total = chances.sum(axis=1, keepdims=True)
    expected = np.einsum("cps,cs->cp", log, chances / total)
    value = float((scores[calls, targets] - np.log(total[:, 0])).sum())
    slope: Floats = (log[calls, :, targets] - expected).sum(axis=0).astype(np.float64)
    return value, slope


def _named(row: Floats, names: Sequence[str]) -> dict[str, float]:
    """Weights by name, those under half a percent left out."""
    return {name: round(float(w), 6) for name, w in zip(names, row, strict=True) if w >= 0.005}


def _judge(held: Sequence[HeldOut], names: Sequence[str], way: str) -> Floats:
    """Reciprocal ranks of a blend, each call judged by weights from the other half."""
    ranks = []
    blends = [Blend(way, WAYS[way]([h.of(h.halves != half) for h in held], names)) for half in (0, 1)]
    for h in held:
        joined = [
            blends[half].join(dict(zip(names, chances, strict=True)), bucket)
            for half, chances, bucket in zip(h.halves.tolist(), h.chances, h.buckets.tolist(), strict=True)
        ]
        ranks.append(_reciprocal_ranks(h, np.stack(joined) if joined else h.chances[:, 0]))
    return np.concatenate(ranks)


def _reciprocal_ranks(held: HeldOut, scores: NDArray[Any]) -> Floats:
    """1 / rank of each target among all but the current skill, ties at mid-rank; 0 beyond the twentieth."""
    calls = np.arange(len(held.targets))
    scores = scores.astype(np.float64)
    excluded = held.currents >= 0
    scores[calls[excluded], held.currents[excluded]] = -1.0
    own = scores[calls, held.targets][:, None]
    ranks = (scores > own).sum(axis=1) + ((scores == own).sum(axis=1) + 1) / 2
    reciprocal: Floats = np.where(ranks <= TOP, 1 / ranks, 0.0)
    return reciprocal


WAYS: dict[str, Callable[[Sequence[HeldOut], Sequence[str]], dict[str, dict[str, float]]]] = {
    "mean": mean_weights,
    "product": product_weights,
}
