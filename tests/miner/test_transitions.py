"""Fitting: a planted world comes back, and neither names nor the order of arrival matter."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cowpath.next_model import BUCKETS, Blend
from miner.blend import HeldOut, choose, mean_weights, product_weights
from miner.log import collapse, read_log
from miner.transitions import fit

NAMES = [f"skill-{i:02d}" for i in range(12)]
CHANCES = np.random.default_rng(5).dirichlet(np.full(len(NAMES), 0.3), size=len(NAMES))
np.fill_diagonal(CHANCES, 0)
CHANCES /= CHANCES.sum(axis=1, keepdims=True)


def markov_world(sessions: int, seed: int = 0) -> list[list[str]]:
    """Sessions in which the next skill depends on the current one alone, by CHANCES."""
    rng = np.random.default_rng(seed)
    log = []
    for _ in range(sessions):
        session = [int(rng.integers(len(NAMES)))]
        for _ in range(int(rng.integers(2, 8))):
            session.append(int(rng.choice(len(NAMES), p=CHANCES[session[-1]])))
        log.append([NAMES[skill] for skill in session])
    return log


def test_a_planted_world_comes_back() -> None:
    model = fit(markov_world(700))
    for current in range(len(NAMES)):
        found = dict(zip(model.skills, model.predict([NAMES[current]]).tolist(), strict=True))
        learned = np.array([found[name] for name in NAMES])
        assert np.abs(learned - CHANCES[current]).sum() / 2 < 0.15
        assert learned.argmax() == CHANCES[current].argmax()


def test_the_order_of_arrival_leaves_equal_bytes() -> None:
    log = markov_world(150)
    groups = [f"group {i // 3}" for i in range(len(log))]
    order = np.random.default_rng(1).permutation(len(log))

    straight = fit(log, groups=groups)
    shuffled = fit([log[i] for i in order], groups=[groups[i] for i in order])

    assert straight.to_bytes() == shuffled.to_bytes()


def test_renaming_the_skills_renames_the_answer_and_nothing_else() -> None:
    log = markov_world(150)
    renamed = dict(zip(NAMES, reversed([f"z{i}" for i in range(len(NAMES))]), strict=True))

    one = fit(log)
    other = fit([[renamed[skill] for skill in session] for session in log])

    assert tuple(renamed[skill] for skill in one.skills) == other.skills
    assert one.record == other.record
    for prefix in ([], NAMES[:1], NAMES[3:6], NAMES[:8]):
        assert one.predict(prefix).tolist() == other.predict([renamed[skill] for skill in prefix]).tolist()


def test_direct_repeats_fold_before_anything_is_counted() -> None:
    assert collapse(["a", "a", "b", "b", "b", "a"]) == ("a", "b", "a")
    assert fit([["a", "a", "b", "b"]] * 30).to_bytes() == fit([["a", "b"]] * 30).to_bytes()


def test_skills_are_ordered_by_use() -> None:
    assert read_log([["a", "c", "b"], ["c", "b"], ["c"]]).skills == ("c", "b", "a")


def held_out(calls: int, buckets: list[str]) -> tuple[HeldOut, NDArray[np.float64]]:
    """Calls drawn from a mixture: 70 % the first part, 30 % the second, none the third."""
    rng = np.random.default_rng(0)
    truth = np.array([0.7, 0.3, 0.0])
    chances = rng.dirichlet(np.full(20, 0.2), size=(calls, 3))
    part = rng.choice(3, p=truth, size=calls)
    targets = np.array([rng.choice(20, p=chances[i, part[i]]) for i in range(calls)])
    bucket = np.array([buckets[i % len(buckets)] for i in range(calls)])
    held = HeldOut(
        chances.astype(np.float32), targets, np.full(calls, -1, dtype=np.int64), bucket, np.arange(calls) % 2
    )
    return held, truth


def test_mixture_weights_come_back_and_sum_to_one() -> None:
    held, truth = held_out(3_000, ["1", "2-3"])
    weights = mean_weights([held], ("one", "two", "three"))

    assert set(weights) == set(BUCKETS)
    for row in weights.values():
        assert sum(row.values()) == pytest.approx(1, abs=0.01)
    for bucket in ("1", "2-3"):
        assert [weights[bucket].get(name, 0) for name in ("one", "two", "three")] == pytest.approx(truth, abs=0.04)


def test_a_bucket_with_few_calls_takes_the_weights_of_all() -> None:
    held, _ = held_out(1_000, ["1"] * 19 + ["4+"])
    mixture = mean_weights([held], ("one", "two", "three"))
    product = product_weights([held], ("one", "two", "three"))
    assert mixture["4+"] == mixture["2-3"] != mixture["1"]
    assert product["4+"] == product["2-3"] != product["1"]


def test_the_mixture_is_chosen_where_the_world_is_one() -> None:
    held, _ = held_out(2_000, ["1"])
    blend, record = choose([held], ("one", "two", "three"))
    assert (blend.kind, record["chosen"]) == ("mean", "mean")
    assert record["mrr@20"]["mean"] > max(record["mrr@20"][name] for name in ("one", "two", "three"))


def test_a_part_alone_is_chosen_where_likelihood_prefers_a_worse_ranking() -> None:
    """The bold part halves its bet between two skills and is right half the time; the modest one always, barely."""
    calls = np.arange(400)
    targets = calls % 20
    modest = np.full((400, 20), 0.0495)
    modest[calls, targets] = 0.06
    bold = np.zeros((400, 20))
    bold[calls, (targets + calls // 20 % 2) % 20] = bold[calls, (targets + 5) % 20] = 0.5
    chances = np.stack([modest, bold], axis=1).astype(np.float32)
    held = HeldOut(chances, targets, np.full(400, -1), np.full(400, "1"), calls // 40 % 2)

    blend, record = choose([held], ("modest", "bold"))

    assert record["chosen"] == "modest"
    assert record["mrr@20"]["modest"] == 1.0 > record["mrr@20"]["mean"]
    assert blend == Blend("mean", {bucket: {"modest": 1.0} for bucket in BUCKETS})


def test_a_new_skill_is_reached_by_its_description() -> None:
    rng = np.random.default_rng(2)
    centres = np.eye(6)
    kinds = {f"k{kind}-{i}": kind for kind in range(6) for i in range(6)}
    vectors = {}
    for skill, kind in kinds.items():
        vector = centres[kind] + 0.05 * rng.normal(size=6)
        vectors[skill] = vector / np.linalg.norm(vector)
    members = {kind: [s for s, k in kinds.items() if k == kind] for kind in range(6)}
    log = [[members[(start + step) % 6][rng.integers(5)] for step in range(3)] for start in rng.integers(0, 6, 400)]

    model = fit(log, vectors=vectors)

    assert set(model.new_skills) == {f"k{kind}-5" for kind in range(6)}
    answer = dict(zip(model.new_skills, model.predict_new(["k2-0"]).tolist(), strict=True))
    assert max(answer, key=answer.__getitem__) == "k3-5"
    after_new = dict(zip(model.skills, model.predict(["k2-5"]).tolist(), strict=True))
    assert sum(p for skill, p in after_new.items() if skill.startswith("k3-")) > 0.3
    assert model.predict_new(["k2-5"])[model.new_skills.index("k2-5")] == 0
