"""Conflicts: pairs of skills whose sessions fail more often than their skills, their actor and their length explain.

Proposals only. Why a session failed is not on record: a hard task that needs both skills looks the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from miner.parameters import Parameters

SESSIONS = ("session_id", "actor", "skills", "failed")
"""Columns of the frame of sessions whose end is known."""

RIDGE = 1.0
NEWTON_STEPS = 25
MOST = 50
"""Proposals of one run; each is fitted before the next is looked for."""

Floats = NDArray[np.float64]


class Conflict(NamedTuple):
    """Two skills, smaller name first; ``expected`` of the ``failed`` sessions would have failed without a conflict."""

    a: str
    b: str
    sessions: int
    failed: int
    expected: float
    z: float


def find_conflicts(sessions: pl.DataFrame, parameters: Parameters) -> list[Conflict]:
    """The pairs whose sessions failed surprisingly often, the most surprising first.

    A ridge logit explains each session's failure by its skills, its actor and the log of how many skills
    it used. The pair with the largest residual is proposed and becomes part of the explanation, so that
    pairs which only keep it company do not follow; then the next one, until none reaches ``conflict_z``.
    """
    failed = sessions["failed"].to_numpy().astype(np.float64)
    if not 0 < failed.sum() < len(failed):
        return []
    names, used = _used(sessions["skills"].to_list(), parameters.conflict_min_sessions)
    together = sparse.triu(used.T @ used, k=1).tocoo()
    enough = together.data >= parameters.conflict_min_sessions
    pairs = np.column_stack([together.row[enough], together.col[enough]])
    intercept = sparse.csr_matrix(np.ones((len(failed), 1)))
    columns = [intercept, used, _actors(sessions["actor"].to_list()), _length(sessions["skills"])]
    design = sparse.csr_matrix(sparse.hstack(columns))
    weights = np.zeros(design.shape[1])
    found: list[Conflict] = []
    while len(pairs) and len(found) < MOST:
        weights = _fit(design, failed, weights)
        chance = expit(design @ weights)
        z = _surprise(used, pairs, failed - chance, chance * (1 - chance))
        best = int(np.argmax(z))
        if z[best] < parameters.conflict_z:
            break
        a, b = (int(place) for place in pairs[best])
        both = sparse.csr_matrix(used[:, [a]].multiply(used[:, [b]]))
        rows = both.nonzero()[0]
        counts = len(rows), int(failed[rows].sum()), float(chance[rows].sum())
        found.append(Conflict(names[a], names[b], *counts, float(z[best])))
        pairs = np.delete(pairs, best, axis=0)
        design = sparse.csr_matrix(sparse.hstack([design, both]))
        weights = np.append(weights, 0.0)
    return found


def _used(skills: Sequence[Sequence[str]], least: int) -> tuple[list[str], sparse.csr_matrix]:
    """Sessions by the skills that occur in enough of them, in the order of their names."""
    names, columns, counts = np.unique(
        np.array([name for session in skills for name in session]), return_inverse=True, return_counts=True
    )
    rows = np.repeat(np.arange(len(skills)), [len(session) for session in skills])
    used = sparse.csr_matrix((np.ones(len(columns)), (rows, columns)), shape=(len(skills), len(names)))
    often = np.flatnonzero(counts >= least)
    return [str(names[place]) for place in often], used[:, often]


def _actors(actors: Sequence[str]) -> sparse.csr_matrix:
    names, columns = np.unique(np.array(actors), return_inverse=True)
    return sparse.csr_matrix(
        (np.ones(len(columns)), (np.arange(len(columns)), columns)), shape=(len(actors), len(names))
    )


def _length(skills: pl.Series) -> sparse.csr_matrix:
    length = np.log(skills.list.len().to_numpy().astype(np.float64))
    return sparse.csr_matrix((length - length.mean())[:, None])


def _fit(design: sparse.csr_matrix, failed: Floats, start: Floats) -> Floats:
    """Weights of the ridge logit by Newton's method; the first column is the intercept and bears no penalty."""
    penalty = np.full(design.shape[1], RIDGE)
    penalty[0] = 1e-9
    weights = start
    for _ in range(NEWTON_STEPS):
        chance = expit(design @ weights)
        gradient = design.T @ (chance - failed) + penalty * weights
        spread = sparse.diags_array(chance * (1 - chance))
        curvature = (design.T @ spread @ design).toarray() + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def _surprise(used: sparse.csr_matrix, pairs: NDArray[np.int64], residual: Floats, variance: Floats) -> Floats:
    """For each pair, the sum of the residuals of its sessions over the standard deviation of that sum."""
    more = sparse.csr_matrix(used.T @ sparse.diags_array(residual) @ used)
    spread = sparse.csr_matrix(used.T @ sparse.diags_array(variance) @ used)
    sums = np.asarray(more[pairs[:, 0], pairs[:, 1]]).ravel()
    spreads = np.asarray(spread[pairs[:, 0], pairs[:, 1]]).ravel()
    return np.asarray(sums / np.sqrt(spreads), dtype=np.float64)
