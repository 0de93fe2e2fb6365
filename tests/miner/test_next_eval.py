"""The measurement: its protocol, its document, and what it says on small data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from cowpath.cli import main
from cowpath.errors import InputError
from miner import baselines
from miner.next_eval import by_unit, evaluate_next, metrics, mid_rank, paired, read_sessions

MODELS = ["popularity", "markov", "sequential_rules", "minilm", "ours"]
MEASURES = ["hr@1", "hr@5", "hr@20", "mrr@20"]


def write(folder: Path, sessions: list[list[str]], **fields: list[Any]) -> Path:
    """A data set with a catalogue; ``fields`` give each session's group or ts."""
    folder.mkdir(parents=True, exist_ok=True)
    events = [
        {"session_id": f"s{i:03d}", "seq": seq, "skill_id": skill} | {name: of[i] for name, of in fields.items()}
        for i, session in enumerate(sessions)
        for seq, skill in enumerate(session)
    ]
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in reversed(events)))
    skills = sorted({skill for session in sessions for skill in session})
    rows = [{"skill_id": skill, "name": skill, "description": f"does {skill}"} for skill in skills]
    (folder / "catalog.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def small_world(sessions: int = 80) -> list[list[str]]:
    """A cycle of ten skills, walked from anywhere, one step in five at random."""
    rng = np.random.default_rng(0)
    log = []
    for _ in range(sessions):
        session = [int(rng.integers(10))]
        for _ in range(4):
            session.append(int(rng.integers(10)) if rng.random() < 0.2 else (session[-1] + 1) % 10)
        log.append([f"k{skill}" for skill in session])
    return log


def test_ties_take_their_middle_rank_and_the_current_skill_is_no_candidate() -> None:
    scores = np.array([0.9, 0.5, 0.5, 0.5, 0.1, -np.inf])
    assert mid_rank(scores, 1, None) == 3  # one better, two equal
    assert mid_rank(scores, 1, 0) == 2
    assert mid_rank(scores, 1, 2) == 2.5
    assert mid_rank(scores, 5, None) == float("inf")


def test_metrics_of_ranks_done_by_hand() -> None:
    assert metrics(np.array([1.0, 2.0, 10.0, 25.0, np.inf])) == {
        "hr@1": 0.2,
        "hr@5": 0.4,
        "hr@20": 0.6,
        "mrr@20": pytest.approx((1 + 1 / 2 + 1 / 10) / 5, abs=1e-4),
    }


def test_sequential_rules_weigh_by_distance() -> None:
    train = [["a", "b", "c"], ["a", "c", "b"], ["a", "c"]]
    candidates = ["a", "b", "c", "never called"]
    score = baselines.sequential_rules(train, candidates)(["x", "a"])
    # after a: b at 1 and 2, c at 2, 1 and 1
    assert score == pytest.approx([0, 1.5, 2.5, -np.inf], abs=1e-4)


def test_markov_counts_direct_steps_then_popularity() -> None:
    train = [["a", "b"], ["a", "b"], ["a", "c"], ["d", "e"], ["d"]]
    candidates = ["a", "b", "c", "d", "e", "never called"]
    score = baselines.markov(train, candidates)
    assert [candidates[i] for i in np.argsort(-score(["a"]))][:4] == ["b", "c", "a", "d"]
    assert [candidates[i] for i in np.argsort(-score(["unknown"]), kind="stable")][:3] == ["a", "b", "d"]


def test_a_paired_interval_lies_around_the_difference() -> None:
    ours, other = np.array([1.0, 1, 2, 1, 5, 1]), np.array([2.0, 1, 1, 4, 9, 30])
    found = paired(ours, other, ["u1", "u1", "u2", "u3", "u3", "u4"], seed=0)
    mean = (0.5 + 0 - 0.5 + 0.75 + (1 / 5 - 1 / 9) + 1) / 6
    assert found["mrr@20"]["difference"] == pytest.approx(mean, abs=1e-4)
    assert found["mrr@20"]["low"] < mean < found["mrr@20"]["high"]
    assert paired(ours, ours, ["u"] * 6, seed=0)["hr@5"] == {"difference": 0, "low": 0, "high": 0}


def test_sessions_come_in_the_order_of_seq_with_repeats_folded(tmp_path: Path) -> None:
    data = write(tmp_path / "set", [["b", "b", "a"], ["c"]], group=["g1", "g1"])
    assert [(s.skills, s.unit) for s in read_sessions(data)] == [(("b", "a"), "g1"), (("c",), "g1")]


def test_a_group_lies_on_one_side_of_the_split(tmp_path: Path) -> None:
    data = write(tmp_path / "set", [["a", "b"]] * 50, group=[f"g{i // 5}" for i in range(50)])
    train, test = by_unit(read_sessions(data), seed=0)
    assert (len(train), len(test)) == (40, 10)
    assert not {s.unit for s in train} & {s.unit for s in test}


def test_a_split_by_time_tests_the_latest_and_needs_times(tmp_path: Path) -> None:
    log = small_world(20)
    data = write(tmp_path / "dated", log, ts=[f"2026-01-{i + 1:02d}" for i in range(20)])
    document = evaluate_next(data, time_split=True)
    assert document["split"]["by"] == "time"
    assert document["predictions"] == sum(len(s.skills) - 1 for s in read_sessions(data)[16:])
    with pytest.raises(InputError, match="ts"):
        evaluate_next(write(tmp_path / "undated", log), time_split=True)


def test_the_document_keeps_its_contract_and_repeats_itself(tmp_path: Path) -> None:
    data = write(tmp_path / "set", small_world())
    document = evaluate_next(data)

    assert (document["data"], document["sessions"]) == ("set", 80)
    assert document["predictions"] > 0
    assert list(document["models"]) == MODELS
    assert document["models"]["minilm"] is None
    assert all(list(document["models"][name]) == MEASURES for name in ("popularity", "markov", "ours"))
    assert set(document["paired"]["markov"]["mrr@20"]) == {"difference", "low", "high"}
    assert document["ours"]["chosen"] in document["ours"]["mrr@20"]
    assert document["models"]["markov"]["hr@1"] > 0.6 > document["models"]["popularity"]["hr@1"]
    assert document["models"]["ours"]["mrr@20"] > document["models"]["popularity"]["mrr@20"]
    assert document == evaluate_next(data)


def test_a_target_nobody_saw_is_a_miss_but_for_models_that_read_descriptions(tmp_path: Path) -> None:
    log = [["a", "b", "c"]] * 9 + [["a", "new", "b"]]
    data = write(tmp_path / "set", log, ts=[f"2026-01-{day:02d}" for day in range(1, 11)])
    vectors = {skill: np.eye(4, dtype=np.float32)[i] for i, skill in enumerate(["a", "b", "c", "new"])}
    document = evaluate_next(data, vectors=vectors, time_split=True)
    assert document["split"]["unseen_targets"] == 0.25  # a b c a new b: four calls, one of them new
    assert document["models"]["markov"]["hr@20"] == 0.75
    assert document["models"]["minilm"]["hr@20"] == 1.0


def test_the_command_prints_the_document_and_names_what_is_missing(tmp_path: Path) -> None:
    data = write(tmp_path / "set", small_world(40))
    environment = {"COWPATH_MODEL_DIR": str(tmp_path / "no weights"), "COWPATH_HOME": str(tmp_path / "home")}
    result = CliRunner().invoke(main, ["eval", "next", "--data", str(data), "--json"], env=environment)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert list(document["models"]) == MODELS
    assert "model.safetensors" in document["absent"]["minilm"]


@pytest.mark.data
@pytest.mark.parametrize("name", ["bfcl_multiturn", "restbench_tmdb", "tau_bench"])
def test_on_small_real_sets_ours_is_not_behind_the_best(data: Path, name: str) -> None:
    """Five splits a set: one alone has as few as twenty calls."""
    documents = [evaluate_next(data / name, seed=seed)["models"] for seed in range(5)]
    mean = {name: np.mean([d[name]["mrr@20"] for d in documents]) for name in MODELS if name != "minilm"}
    assert mean["ours"] >= max(mean.values())
