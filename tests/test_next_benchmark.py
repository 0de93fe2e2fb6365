"""What the next-skill benchmark and its peers promise."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.next import bars
from benchmarks.next_peers import peers

TRAIN = [("a", "b", "c")] * 5 + [("d", "b", "e")] * 5
CANDIDATES = ["a", "b", "c", "d", "e", "never"]


@pytest.mark.parametrize("name", ["vsknn", "vstan", "ad3", "ease", "slist"])
def test_a_peer_reads_more_than_the_last_skill(name: str) -> None:
    scorer = peers(TRAIN, CANDIDATES, None, seed=0, neural=False)[name]

    after_a, after_d = scorer(("a", "b")), scorer(("d", "b"))

    assert after_a[2] > after_a[4]
    assert after_d[4] > after_d[2]


@pytest.mark.slow
def test_the_network_learns_the_order_and_the_same_one_each_time() -> None:
    pytest.importorskip("torch", reason="GRU4Rec needs torch")
    first, second = (peers(TRAIN * 20, CANDIDATES, None, seed=0, neural=True)["gru4rec"](("a", "b")) for _ in range(2))

    assert np.argmax(first) == 2
    assert first[5] == -np.inf
    assert np.array_equal(first, second)


def row(ours: float, plain: float, neural: float) -> dict[str, object]:
    models = {"ours": {"mrr@20": ours}, "slist": {"mrr@20": plain}, "gru4rec": {"mrr@20": neural}}
    return {"models": models, "best": "gru4rec", "best_non_neural": "slist"}


def test_n8n_is_held_to_a_tenth_above_the_best_that_is_not_neural() -> None:
    [met] = bars({"n8n_dev": row(0.36, 0.32, 0.5)})
    [missed] = bars({"n8n_dev": row(0.35, 0.32, 0.3)})

    assert met["met"]
    assert not missed["met"]


def test_other_logs_may_lose_half_a_point_to_the_best_of_all() -> None:
    [met] = bars({"tau_bench": row(0.596, 0.5, 0.6)})
    [missed] = bars({"tau_bench": row(0.594, 0.5, 0.6)})

    assert met["met"]
    assert not missed["met"]


def test_new_skills_are_to_be_found_without_losing_the_old() -> None:
    measured = {"models": {"target_new": {"hr@20": 0.76}}, "lost_on_old": 0.02}

    found, kept = bars({"ultratool new skills": measured})

    assert found["met"]
    assert not kept["met"]


def test_the_best_of_all_is_not_beaten_while_the_network_was_left_out() -> None:
    models = {"ours": {"mrr@20": 0.9}, "slist": {"mrr@20": 0.5}}

    [bar] = bars({"tau_bench": {"models": models, "best": "slist", "best_non_neural": "slist"}})

    assert not bar["met"]
    assert "GRU4Rec not measured" in bar["bar"]


def test_rows_that_could_not_be_measured_are_missed_bars() -> None:
    [bar] = bars({"ultratool with descriptions": {"left_out": "MiniLM not asked for"}})

    assert not bar["met"]
