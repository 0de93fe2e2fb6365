"""The parts of the next-skill model: each turns a prefix into a distribution over the vocabulary.

A prefix is a list of skill numbers, oldest first. Numbers below the vocabulary's size are skills with
history, the most used first; numbers from there on are skills of which only the description is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]

DISCOUNT = 0.75
LONGEST_CONTEXT = 3
LONGEST_PREFIX = 50
"""Older skills weigh less than .9 ** 50 = .5 % and are left out."""

LONGEST_READ = 20
"""A recurrent network takes 5 µs a skill; its answers are to stay under .2 ms."""

MOST_ASKED = 1_024
"""Answers a part keeps in memory: 10 MB at 1,200 skills."""


class Part(Protocol):
    """One view of what comes next."""

    def scores(self, prefix: Sequence[int]) -> Floats:
        """Scores of every skill with history, shape (size,); all zero where the part knows nothing."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The part at rest."""
        ...


class AtRest:
    """A part whose fields are its arrays at rest."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type] # dataclasses only

    @classmethod
    def of(cls, arrays: Arrays) -> Self:
        """The part that ``arrays`` came from."""
        return cls(**arrays)


@dataclass(frozen=True)
class Popularity(AtRest):
    """How often each skill was called; a skill's number is its place in this order."""

    calls: NDArray[np.int64]

    def scores(self, prefix: Sequence[int]) -> Floats:
        return self.calls.astype(np.float64)


@dataclass(frozen=True)
class NGrams(AtRest):
    """Which skill followed the last one, two and three, interpolated by absolute discounting.

    Ney, Essen and Kneser 1994. Raw counts at every order: continuation counts were measured far worse here.
    ``contexts`` are sorted keys; those calls that followed the i-th lie at ``starts[i]:starts[i + 1]``.
    """

    calls: NDArray[np.int64]
    contexts: NDArray[np.int64]
    starts: NDArray[np.int64]
    following: NDArray[np.int32]
    counts: NDArray[np.int32]

    def scores(self, prefix: Sequence[int]) -> Floats:
        scores: Floats = self._base
        for key in self._keys(prefix):
            at = self.find(key)
            if at is None:
                break
            counts = self.counts[at]
            total = int(counts.sum())
            scores = scores * (DISCOUNT * len(counts) / total)
            scores[self.following[at]] += (counts - DISCOUNT) / total
        return scores

    def find(self, key: int) -> slice | None:
        """Where the followers of a context lie; None where it was never seen."""
        i = int(self.contexts.searchsorted(key))
        if i == len(self.contexts) or self.contexts[i] != key:
            return None
        return slice(int(self.starts[i]), int(self.starts[i + 1]))

    def count(self, a: int, b: int) -> int:
        """How often ``b`` directly followed ``a``."""
        at = self.find(a + 1)
        return 0 if at is None else int(self.counts[at][self.following[at] == b].sum())

    def _keys(self, prefix: Sequence[int]) -> list[int]:
        """Keys of the last one, two and three symbols. Symbols: a skill's number + 1; size + 1 is the start."""
        size = len(self.calls)
        symbols = [size + 1] * (len(prefix) < LONGEST_CONTEXT) + [s + 1 for s in prefix[-LONGEST_CONTEXT:]]
        keys, key, place = [], 0, 1
        for symbol in reversed(symbols):
            key += symbol * place
            place *= size + 2
            keys.append(key)
        return keys

    @cached_property
    def _base(self) -> Floats:
        total = max(int(self.calls.sum()), 1)
        size = max(len(self.calls), 1)
        seen = self.calls > 0
        rest = DISCOUNT * int(seen.sum()) / total / size
        return np.where(seen, self.calls - DISCOUNT, 0.0) / total + rest


@dataclass(frozen=True)
class Linear(AtRest):
    """A ridge regression from the decayed bag of the prefix to the next skill.

    One row a skill; where ``rows`` is twice the columns and one, the last skill has a block of its own,
    the rest of the prefix the second, and the last row is the bias. Covers the most used skills only where
    there are very many. Numbers lie on the grid of half precision, so that equal logs give equal bytes
    whatever the order of summation.
    """

    matrix: NDArray[np.float16]
    size: NDArray[np.int64]
    decay: NDArray[np.float64]

    def scores(self, prefix: Sequence[int]) -> Floats:
        weights, heads = self._weights, self._matrix.shape[1]
        recent = prefix[: -LONGEST_PREFIX - 1 : -1]
        if self._last_apart:
            rows = [s + heads * (distance > 0) for distance, s in enumerate(recent) if s < heads]
            rows.append(2 * heads)
            factors = np.append(weights[[d for d, s in enumerate(recent) if s < heads]], np.float32(1))
        else:
            rows = [s for s in recent if s < heads]
            factors = weights[[d for d, s in enumerate(recent) if s < heads]]
        scores = np.zeros(self._size)
        if rows:
            scores[:heads] = factors @ self._matrix[rows]
        return scores

    @cached_property
    def _matrix(self) -> NDArray[np.float32]:
        return self.matrix.astype(np.float32)

    @cached_property
    def _size(self) -> int:
        return int(self.size)

    @cached_property
    def _weights(self) -> NDArray[np.float32]:
        return np.power(float(self.decay), np.arange(LONGEST_PREFIX)).astype(np.float32)

    @cached_property
    def _last_apart(self) -> bool:
        rows, heads = self.matrix.shape
        return bool(rows == 2 * heads + 1)


@dataclass(frozen=True)
class Alike(AtRest):
    """What followed skills with a similar description: transitions smoothed on both sides.

    Row s of ``near`` and ``shares`` is skill s's kernel: the nearest skills with history and their shares.
    """

    near: NDArray[np.int32]
    shares: NDArray[np.float16]
    starts: NDArray[np.int64]
    following: NDArray[np.int32]
    counts: NDArray[np.int32]

    def scores(self, prefix: Sequence[int]) -> Floats:
        if not prefix:
            return np.zeros(self._size)
        current = prefix[-1]
        if current not in self._asked:
            if len(self._asked) >= MOST_ASKED:
                self._asked.clear()
            self._asked[current] = self._after(current)
        return self._asked[current]

    def _after(self, current: int) -> Floats:
        row = np.zeros(self._size)
        for neighbour, share in zip(self.near[current].tolist(), self._shares[current].tolist(), strict=True):
            at = slice(self.starts[neighbour], self.starts[neighbour + 1])
            counts = self.counts[at]
            if len(counts):
                row[self.following[at]] += counts * (share / counts.sum())
        return self._smooth(row, slice(0, self._size))

    def transfer(self, scores: Floats) -> Floats:
        """What the skills without history would have, going by their neighbours' scores."""
        return self._smooth(scores, slice(self._size, None))

    def _smooth(self, scores: Floats, rows: slice) -> Floats:
        smoothed: Floats = np.einsum("ij,ij->i", scores[self.near[rows]], self._shares[rows])
        return smoothed

    @cached_property
    def _asked(self) -> dict[int, Floats]:
        """Answers by current skill, on which alone they depend."""
        return {}

    @cached_property
    def _size(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def _shares(self) -> Floats:
        return self.shares.astype(np.float64)


@dataclass(frozen=True)
class Similar(AtRest):
    """Which descriptions resemble the decayed prefix's. One unit vector a skill, zero where unknown."""

    vectors: NDArray[np.float16]
    size: NDArray[np.int64]

    SHARPNESS: ClassVar[float] = 12.0
    DECAY: ClassVar[float] = 0.9

    def scores(self, prefix: Sequence[int]) -> Floats:
        recent = list(prefix[: -LONGEST_PREFIX - 1 : -1])
        factors = np.power(self.DECAY, np.arange(len(recent))).astype(np.float32)
        query = factors @ self._vectors[recent] if recent else np.zeros(self.vectors.shape[1], np.float32)
        length = float(np.sqrt(query @ query))
        if length == 0:
            return np.zeros(int(self.size))
        cosine = (self._vectors[: int(self.size)] @ (query / length)).astype(np.float64)
        scores: Floats = np.where(self._known, np.exp(self.SHARPNESS * (cosine - 1)), 0.0)
        return scores

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        return self.vectors.astype(np.float32)

    @cached_property
    def _known(self) -> NDArray[np.bool_]:
        return np.asarray(self._vectors[: int(self.size)].any(axis=1), dtype=np.bool_)


@dataclass(frozen=True)
class Gru(AtRest):
    """A gated recurrent network (Cho et al. 2014) that read the last skills of the prefix, oldest first.

    Row s of ``inputs`` is what skill s gives the gates: reset, update, candidate. Covers the most used skills only
    where there are very many.
    """

    inputs: NDArray[np.float16]
    recurrent: NDArray[np.float16]
    bias: NDArray[np.float16]
    outputs: NDArray[np.float16]
    popular: NDArray[np.float16]
    size: NDArray[np.int64]

    def scores(self, prefix: Sequence[int]) -> Floats:
        scores = np.zeros(int(self.size))
        recent = [skill for skill in prefix if skill < len(self.inputs)][-LONGEST_READ:]
        if recent:
            _, _, _, outputs, popular = self._weights
            logits = (self._read(recent) @ outputs + popular).astype(np.float64)
            chances = np.exp(logits - logits.max())
            scores[: len(chances)] = chances / chances.sum()
        return scores

    def _read(self, skills: Sequence[int]) -> NDArray[np.float32]:
        inputs, recurrent, bias, _, _ = self._weights
        width = len(bias)
        state = np.zeros(width, dtype=np.float32)
        for skill in skills:
            given, kept = inputs[skill], state @ recurrent
            gates = 1 / (1 + np.exp(-given[: 2 * width] - kept[: 2 * width]))
            fresh = np.tanh(given[2 * width :] + gates[:width] * (kept[2 * width :] + bias))
            state = fresh + gates[width:] * (state - fresh)
        return state

    @cached_property
    def _weights(self) -> tuple[NDArray[np.float32], ...]:
        return tuple(
            array.astype(np.float32) for array in (self.inputs, self.recurrent, self.bias, self.outputs, self.popular)
        )


KINDS: dict[str, type[Popularity | NGrams | Linear | Alike | Similar | Gru]] = {
    "ngrams": NGrams,
    "decayed": Linear,
    "last_and_rest": Linear,
    "session_linear": Linear,
    "popularity": Popularity,
    "alike": Alike,
    "similar": Similar,
    "gru": Gru,
}
"""Part name -> its class, in the order of the blend's weights."""


def as_distribution(scores: Floats, current: int | None) -> Floats:
    """Clipped at zero, the current skill excluded, summing to one (or all zero)."""
    clipped: Floats = np.maximum(scores, 0.0)
    if current is not None and current < len(clipped):
        clipped[current] = 0.0
    total = clipped.sum()
    return clipped / total if total > 0 else clipped
