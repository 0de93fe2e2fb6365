"""Expected co-uses of every seen pair, were skills independent within each stratum: E = sum over k of n_ka n_kb / N_k.

One product of a matrix with itself. In SQL, a join of all skills of a stratum with all others, it took as long as
everything else that is read out together.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cowpath.store import Store

BLOCK = 1_024
"""Skills whose row of the product is in memory at a time: 80 MB with 10,000 skills."""

DIGITS = 9
"""Significant ones that are kept: the last bits of a product differ between machines."""


def expect(store: Store) -> None:
    """stratum_skills, witnessed_pairs -> expected_pairs (a, b, expected, strata in which both occur)."""
    skills = store.frame("select skill, number, n, size from stratum_skills order by number, skill")
    seen = store.frame("select distinct a, b from witnessed_pairs order by a, b")
    with store.visible("given", expected_pairs(skills, seen)):
        store.execute("create or replace table expected_pairs as from given")


def expected_pairs(skills: pl.DataFrame, seen: pl.DataFrame) -> pl.DataFrame:
    """``skills``: a row for each stratum (``number``, ``size``) and skill with its ``n`` sequences; ``seen``: a, b."""
    names, column = np.unique(skills["skill"].to_numpy(), return_inverse=True)
    strata, row = np.unique(skills["number"].to_numpy(), return_inverse=True)
    n, size = skills["n"].to_numpy().astype(np.float64), skills["size"].to_numpy().astype(np.float64)
    counts = _dense(row, column, n, (len(strata), len(names)))
    shares = _dense(row, column, n / size, counts.shape)
    occurs = (counts > 0).astype(np.float32)
    a, b = (np.searchsorted(names, seen[side].to_numpy()) for side in ("a", "b"))
    expected, common = np.empty(len(a)), np.empty(len(a), dtype=np.int64)
    for start in range(0, len(names), BLOCK):
        here = (a >= start) & (a < start + BLOCK)
        rows = slice(start, start + BLOCK)
        place = a[here] - start, b[here]
        expected[here] = (counts[:, rows].T @ shares)[place]
        common[here] = np.rint((occurs[:, rows].T @ occurs)[place])
    return seen.with_columns(expected=pl.Series(expected).round_sig_figs(DIGITS), strata=pl.Series(common))


def _dense(
    row: NDArray[np.intp], column: NDArray[np.intp], value: NDArray[np.float64], shape: tuple[int, int]
) -> NDArray[np.float64]:
    filled = np.zeros(shape)
    filled[row, column] = value
    return filled
