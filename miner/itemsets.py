"""Bundles: sets of three and more skills used together. The one home of mlxtend and pandas."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import msgspec
import numpy as np
import pandas as pd
from mlxtend.frequent_patterns import fpgrowth
from scipy.sparse import csr_matrix

from miner.parameters import Parameters


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A set of skills that occur together in ``support`` sequences."""

    skills: tuple[str, ...]
    support: int
    share: float


def find_bundles(
    baskets: Sequence[frozenset[str]], related: frozenset[tuple[str, str]], parameters: Parameters
) -> list[Bundle]:
    """Closed itemsets of three and more skills, found by FP-growth (Han et al. 2000).

    Every pair inside must have passed the association tests by itself (``related``: smaller id
    first), so that a hub that stands in every session joins no bundle; and no larger bundle may
    have the same support.
    """
    skills = sorted({skill for pair in related for skill in pair})
    at = {skill: column for column, skill in enumerate(skills)}
    rows = [sorted(at[skill] for skill in basket if skill in at) for basket in baskets]
    support = max(parameters.bundle_min_sessions, int(np.ceil(parameters.bundle_min_share * len(baskets))))
    if not skills or len(baskets) < support:
        return []
    found = fpgrowth(_one_hot(rows, skills), min_support=support / len(baskets), max_len=parameters.bundle_max_size)
    counted = {frozenset(items): round(share * len(baskets)) for share, items in found.itertuples(index=False)}
    kept = {s: n for s, n in counted.items() if len(s) > 2 and _all_related(s, skills, related)}
    open_sets = {
        s - {item} for s, n in kept.items() for item in s if len(s) > 3 and kept.get(frozenset(s - {item})) == n
    }
    return sorted(
        (
            Bundle(skills=tuple(sorted(skills[i] for i in s)), support=n, share=round(n / len(baskets), 6))
            for s, n in kept.items()
            if s not in open_sets
        ),
        key=lambda bundle: (-bundle.support, bundle.skills),
    )


def _one_hot(rows: list[list[int]], skills: list[str]) -> pd.DataFrame:
    columns = [column for row in rows for column in row]
    pointers = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    matrix = csr_matrix((np.ones(len(columns), dtype=bool), columns, pointers), shape=(len(rows), len(skills)))
    frame: pd.DataFrame = pd.DataFrame.sparse.from_spmatrix(matrix, columns=range(len(skills)))  # type: ignore[attr-defined]  # an accessor the stubs do not know
    return frame


def _all_related(items: frozenset[int], skills: list[str], related: frozenset[tuple[str, str]]) -> bool:
    names = sorted(skills[i] for i in items)
    return all(pair in related for pair in combinations(names, 2))
