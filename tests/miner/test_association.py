"""The formulas against independent calculations, and the strata."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from scipy.stats import binomtest, false_discovery_control, norm, poisson

from cowpath.event import Event
from cowpath.store import Store
from miner.association import benjamini_hochberg, poisson_mid_p
from miner.parameters import Parameters
from miner.stages import Mining

Mine = Callable[..., Mining]


@pytest.mark.parametrize(("k", "n"), [(0, 5), (5, 5), (3, 7), (90, 100), (1, 1)])
def test_the_wilson_macro_equals_an_independent_interval(k: int, n: int) -> None:
    z = float(norm.ppf(0.95))
    expected = binomtest(k, n).proportion_ci(confidence_level=0.90, method="wilson")
    with Store.open() as store:
        store.run("schema/001_formulas")

        ((low, high),) = store.rows(
            "select wilson_lower($k, $n, $z), wilson_upper($k, $n, $z)", {"k": k, "n": n, "z": z}
        )

    assert low == pytest.approx(expected.low, abs=1e-9)
    assert high == pytest.approx(expected.high, abs=1e-9)


def test_a_pair_without_ordered_co_uses_has_no_interval() -> None:
    with Store.open() as store:
        store.run("schema/001_formulas")

        assert store.rows("select wilson_lower(0, 0, 1.645), wilson_upper(0, 0, 1.645)") == [(None, None)]


@pytest.mark.parametrize(("observed", "expected"), [(3, 0.5), (0, 2.0), (40, 10.0)])
def test_the_mid_p_value_equals_the_sum_over_the_tail(observed: int, expected: float) -> None:
    tail = sum(poisson.pmf(x, expected) for x in range(observed + 1, observed + 400))

    p = poisson_mid_p(np.array([float(observed)]), np.array([expected]))

    assert p[0] == pytest.approx(tail + poisson.pmf(observed, expected) / 2, rel=1e-9)


def test_adjusted_p_values_equal_the_library_where_every_test_is_seen() -> None:
    p = np.random.default_rng(0).uniform(size=50) ** 3

    assert benjamini_hochberg(p, tests=50) == pytest.approx(false_discovery_control(p))


def test_unseen_pairs_count_as_tests() -> None:
    p = np.array([0.001, 0.01, 0.5])
    padded = np.concatenate([p, np.ones(97)])

    assert benjamini_hochberg(p, tests=100) == pytest.approx(false_discovery_control(padded)[:3])


def test_a_small_group_falls_back_to_a_coarser_one(mined: Mine, sessions: Callable[..., list[Event]]) -> None:
    # Ann has 12 sessions. Bob and Cid have too few each, but enough together of the short kind.
    short = sessions(["a b"] * 24, actors=["ann", "ann", "bob", "cid"])
    long = sessions(["a b c d e f"] * 3, actors=["bob"])
    longer = [msgspec.structs.replace(e, event_id=f"l{e.event_id}", session_id=f"l{e.session_id}") for e in long]

    mining = mined([*short, *longer], parameters=Parameters(pool_min=10))

    strata = mining.store.rows("select distinct split_part(stratum, '|', 1), size from strata order by all")
    assert strata == [("actor,length,weeks", 12), ("length", 12), ("rest", 3)]


def test_expected_co_use_is_summed_inside_strata(mined: Mine, sessions: Callable[..., list[Event]]) -> None:
    # One stratum of ten sessions: a in 6 of them, b in 5, so chance gives 6 * 5 / 10 = 3 together.
    orders = ["a b", "a b", "a b", "a c", "a c", "a c", "b c", "b c", "c d", "c d"]

    mining = mined(sessions(orders, actors=["ann"]))

    assert mining.pairs.filter(a="a", b="b").row(0, named=True)["expected"] == pytest.approx(3.0)
    assert mining.pairs.filter(a="a", b="b").row(0, named=True)["lift"] == pytest.approx(1.0)
