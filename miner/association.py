"""Association: which pairs are used together more often than independent use within strata explains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import poisson

from miner.parameters import Parameters


def associate(pairs: pl.DataFrame, parameters: Parameters, *, skills: int) -> pl.DataFrame:
    """Add ``lift``, ``z``, ``p``, ``q`` and ``related`` to the pair statistics.

    The false discovery rate is held over all ``skills * (skills - 1) / 2`` pairs, not only over
    those that were seen together: an unseen pair is a test too, one that nobody noticed.
    """
    observed = pairs["o"].to_numpy().astype(np.float64)
    expected = pairs["expected"].to_numpy().astype(np.float64)
    p = poisson_mid_p(observed, expected)
    scored = pairs.with_columns(
        pl.Series("lift", observed / expected),
        pl.Series("z", (observed - expected) / np.sqrt(expected)),
        pl.Series("p", p),
        pl.Series("q", benjamini_hochberg(p, tests=skills * (skills - 1) // 2)),
    )
    return scored.with_columns(related=~pl.any_horizontal(test.missed for test in association_tests(parameters)))


class Test(NamedTuple):
    """One question a pair is asked: the value that answers it, its bound, and whether the pair misses it."""

    name: str
    value: pl.Expr
    bound: float
    missed: pl.Expr


def association_tests(parameters: Parameters) -> list[Test]:
    """What makes a pair ``related``; it misses none of these."""
    return [
        at_least("support", "o", parameters.min_sessions),
        at_least("lift", "lift", parameters.min_lift),
        Test("false_discovery", pl.col("q"), parameters.q, pl.col("q") > parameters.q),
        at_least("witnesses", "witnesses", parameters.min_witnesses),
        at_least("outside_busiest", "outside_busiest", parameters.min_outside_busiest),
        at_least("outside_lift", "outside_lift", parameters.min_outside_lift),
        at_least("outside_z", "outside_z", parameters.min_outside_z),
    ]


def at_least(name: str, column: str, bound: float) -> Test:
    """A column may not lie below the bound; a missing value misses it."""
    return Test(name, pl.col(column), bound, (pl.col(column) < bound).fill_null(True))


def poisson_mid_p(observed: NDArray[np.float64], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(X > observed) + P(X = observed) / 2 for X ~ Poisson(expected): the upper mid-p value (Lancaster 1961)."""
    return np.asarray(poisson.sf(observed, expected) + 0.5 * poisson.pmf(observed, expected), dtype=np.float64)


def benjamini_hochberg(p: NDArray[np.float64], *, tests: int) -> NDArray[np.float64]:
    """Adjusted p values (Benjamini and Hochberg 1995) of the ``len(p)`` smallest out of ``tests`` tests."""
    order = np.argsort(p, kind="stable")
    ranks = np.arange(1, len(p) + 1)
    stepped = np.minimum.accumulate((p[order] * tests / ranks)[::-1])[::-1]
    q = np.empty_like(p)
    q[order] = np.minimum(stepped, 1.0)
    return q
