"""Fit the parts of the next-skill model to a log. Every statistic is a sum over sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from cowpath.next_parts import LONGEST_CONTEXT, LONGEST_PREFIX, Alike, Linear, NGrams, Part, Popularity, Similar
from miner.log import Ints, Log

Matrix = NDArray[np.float64]
Vectors = Mapping[str, NDArray[np.floating[Any]]]

MOST_HEADS = 2_500
"""The ridge parts know the most used skills only: their memory grows with the square of this."""

DECAY = 0.9
DECAYED_RIDGE = 20.0
LAST_AND_REST_RIDGE = 10.0

SESSION_DECAY = float(np.exp(-1))
SESSION_RIDGE = 10.0
SESSION_SHARE = 0.2
SESSION_REACH = 10
"""Steps after which SESSION_DECAY has left nothing (e ** -10)."""

NEIGHBOURS = 10
SHARPNESS = 12.0


def fit_parts(log: Log, vectors: Vectors | None = None, new_skills: Sequence[str] = ()) -> dict[str, Part]:
    """All parts; the two that read descriptions only where ``vectors`` holds some of the log's skills."""
    ngrams = fit_ngrams(log)
    parts: dict[str, Part] = {
        "ngrams": ngrams,
        "decayed": fit_decayed(log),
        "last_and_rest": fit_last_and_rest(log),
        "session_linear": fit_session_linear(log),
        "popularity": Popularity(ngrams.calls),
    }
    if vectors and any(skill in vectors for skill in log.skills):
        parts |= fit_content(ngrams, log.skills, new_skills, vectors)
    return parts


def fit_ngrams(log: Log) -> NGrams:
    """Count what followed every context of one, two and three symbols, the start of a session included."""
    size = len(log.skills)
    keys, targets = _contexts(log)
    pairs, counts = np.unique(np.stack([keys, targets]), axis=1, return_counts=True)
    contexts, starts = np.unique(pairs[0], return_index=True)
    return NGrams(
        calls=np.bincount(log.flat, minlength=size),
        contexts=contexts,
        starts=np.append(starts, pairs.shape[1]).astype(np.int64),
        following=pairs[1].astype(np.int32),
        counts=counts.astype(np.int32),
    )


def _contexts(log: Log) -> tuple[Ints, Ints]:
    """Context key and following skill of every call at every order, in the numbering of ``NGrams``."""
    size = len(log.skills)
    key, place = np.zeros_like(log.flat), 1
    keys, targets = [], []
    for distance in range(1, LONGEST_CONTEXT + 1):
        exists = log.place >= distance - 1
        symbol = np.full_like(log.flat, size + 1)
        inside = log.place >= distance
        symbol[inside] = log.flat[np.flatnonzero(inside) - distance] + 1
        key = key + symbol * place
        place *= size + 2
        keys.append(key[exists])
        targets.append(log.flat[exists])
    return np.concatenate(keys), np.concatenate(targets)


def fit_decayed(log: Log) -> Linear:
    """Ridge from the decayed bag of the past to the next skill."""
    heads, events = _heads(log), log.place > 0
    past = _bag(log, events, heads, DECAY)
    gram = (past.T @ past).toarray()
    moment = (past.T @ _target(log, events, heads)).toarray()
    return _linear(_ridge(gram, moment, DECAYED_RIDGE), log, DECAY)


def fit_last_and_rest(log: Log) -> Linear:
    """Ridge with blocks: the last skill, the decayed bag of those before it, a bias.

    The last skill's block of the Gram matrix is diagonal, so it is eliminated first (Schur complement)
    and one solve of the size of the rest is left.
    """
    heads, events = _heads(log), log.place > 0
    target = _target(log, events, heads)
    last = _bag(log, events, heads, DECAY, stop=1)
    bias = sparse.csr_matrix(np.ones((last.shape[0], 1)))
    rest = sparse.hstack([_bag(log, events, heads, DECAY, start=1), bias]).tocsr()
    diagonal = np.asarray(last.multiply(last).sum(axis=0)).ravel() + LAST_AND_REST_RIDGE
    cross = (last.T @ rest).toarray()
    of_last, of_rest = (last.T @ target).toarray(), (rest.T @ target).toarray()
    scaled = cross / diagonal[:, None]
    rest_weights = _ridge(
        (rest.T @ rest).toarray() - cross.T @ scaled, of_rest - scaled.T @ of_last, LAST_AND_REST_RIDGE
    )
    last_weights = of_last / diagonal[:, None] - scaled @ rest_weights
    return _linear(np.vstack([last_weights, rest_weights]), log, DECAY)


def fit_session_linear(log: Log) -> Linear:
    """SLIST (Choi et al. 2021, "Session-aware linear item-item models"): whole sessions and splits together."""
    heads, events = _heads(log), log.place > 0
    past = _bag(log, events, heads, SESSION_DECAY, stop=SESSION_REACH)
    future = _bag(log, events, heads, SESSION_DECAY, stop=SESSION_REACH, ahead=True)
    whole = _sessions(log, heads)
    together = SESSION_SHARE * (whole.T @ whole).toarray()
    gram = together + (1 - SESSION_SHARE) * (past.T @ past).toarray()
    moment = together + (1 - SESSION_SHARE) * (past.T @ future).toarray()
    return _linear(_ridge(gram, moment, SESSION_RIDGE), log, SESSION_DECAY)


def fit_content(ngrams: NGrams, skills: Sequence[str], new_skills: Sequence[str], vectors: Vectors) -> dict[str, Part]:
    """The parts that read descriptions. ``new_skills`` have no history and appear as kernels only."""
    size, dimensions = len(skills), len(next(iter(vectors.values())))
    matrix = np.zeros((size + len(new_skills), dimensions), dtype=np.float32)
    for i, skill in enumerate([*skills, *new_skills]):
        if skill in vectors:
            matrix[i] = vectors[skill]
    near, shares = _kernel(matrix, size)
    starts, following, counts = _pairs(ngrams)
    return {
        "alike": Alike(near, shares, starts, following, counts),
        "similar": Similar(matrix.astype(np.float16), np.array(size)),
    }


def _kernel(matrix: NDArray[np.float32], size: int) -> tuple[NDArray[np.int32], NDArray[np.float16]]:
    """Each skill's nearest skills with history and their shares; one without a description has itself only."""
    known = np.asarray(matrix.any(axis=1), dtype=np.bool_)
    reach = min(NEIGHBOURS, size)
    near = np.zeros((len(matrix), reach), dtype=np.int32)
    shares = np.zeros((len(matrix), reach))
    exact = matrix.astype(np.float64)  # so that the order of summation is lost in the rounding below
    for first in range(0, len(matrix), 1024):
        rows = slice(first, min(first + 1024, len(matrix)))
        cosine = np.where(known[:size], np.round(exact[rows] @ exact[:size].T, 4), -2.0)
        nearest = np.argsort(-cosine, axis=1, kind="stable")[:, :reach]
        near[rows] = nearest
        likeness = np.take_along_axis(cosine, nearest, axis=1)
        weight = np.where(likeness > -2.0, np.exp(SHARPNESS * (likeness - 1)), 0.0)
        shares[rows] = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-12)
    alone = np.flatnonzero(~known)
    shares[alone] = 0.0
    alone = alone[alone < size]
    near[alone, 0], shares[alone, 0] = alone, 1.0
    return near, shares.astype(np.float16)


def _pairs(ngrams: NGrams) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """The contexts of one skill only, as a matrix of sparse rows."""
    size = len(ngrams.calls)
    first, last = np.searchsorted(ngrams.contexts, [1, size + 1])
    lengths = np.zeros(size, dtype=np.int64)
    lengths[ngrams.contexts[first:last] - 1] = np.diff(ngrams.starts)[first:last]
    held = slice(ngrams.starts[first], ngrams.starts[last])
    return np.concatenate([[0], np.cumsum(lengths)]), ngrams.following[held], ngrams.counts[held]


def _heads(log: Log) -> int:
    return min(len(log.skills), MOST_HEADS)


def _bag(
    log: Log,
    events: NDArray[np.bool_],
    heads: int,
    decay: float,
    *,
    start: int = 0,
    stop: int = LONGEST_PREFIX,
    ahead: bool = False,
) -> sparse.csr_matrix:
    """One row an event: the skills ``start`` to ``stop`` steps before it (or from it on), weights decay ** step."""
    at = np.flatnonzero(events)
    room = log.left[at] if ahead else log.place[at] - 1
    longest = int(room.max(initial=-1)) + 1
    rows, columns, weights = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for step in range(start, min(stop, longest)):
        row = np.flatnonzero(room >= step)
        skill = log.flat[at[row] + step if ahead else at[row] - 1 - step]
        row, skill = row[skill < heads], skill[skill < heads]
        rows.append(row)
        columns.append(skill)
        weights.append(np.full(len(row), decay**step))
    entries = (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.coo_matrix(entries, shape=(len(at), heads)).tocsr()


def _target(log: Log, events: NDArray[np.bool_], heads: int) -> sparse.csr_matrix:
    return _bag(log, events, heads, 1.0, stop=1, ahead=True)


def _sessions(log: Log, heads: int) -> sparse.csr_matrix:
    """One row a session: which skills it holds."""
    session = np.cumsum(log.place == 0) - 1
    inside = log.flat < heads
    entries = (np.ones(int(inside.sum())), (session[inside], log.flat[inside]))
    whole = sparse.coo_matrix(entries, shape=(len(log.sessions), heads)).tocsr()
    whole.data[:] = 1.0
    return whole


def _ridge(gram: Matrix, moment: Matrix, penalty: float) -> Matrix:
    gram[np.diag_indices_from(gram)] += penalty
    solved: Matrix = linalg.solve(gram, moment, assume_a="pos", overwrite_a=True, check_finite=False)
    return solved


def _linear(matrix: Matrix, log: Log, decay: float) -> Linear:
    return Linear(matrix.astype(np.float16), np.array(len(log.skills)), np.array(decay))
