"""Retrieval measured: the contract of the document, its numbers by hand, and hybrid against its arms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cowpath.errors import BadFile
from cowpath.settings import Settings
from ranker.evaluate import METRICS, evaluate_retrieval, interval, mcnemar


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def keyword_only(tmp_path: Path) -> Settings:
    """Settings whose weights are missing: what a ranker without the model extra measures."""
    return Settings(home=str(tmp_path / "home"), model_dir=str(tmp_path / "none"))


SKILLS = [
    {"skill_id": f"lib/{word}", "name": word, "description": f"about {word} things", "core": word != "extra"}
    for word in ("alpha", "beta", "gamma", "delta", "epsilon", "extra")
]


def test_the_numbers_of_a_set_are_those_of_a_hand_count(tmp_path: Path, keyword_only: Settings) -> None:
    write(tmp_path, "catalog.jsonl", [{**skill, "core": False} for skill in SKILLS])
    write(
        tmp_path,
        "queries.jsonl",
        [
            {"query_id": "1", "query": "alpha", "gold": ["lib/alpha"]},
            {"query_id": "2", "query": "alpha", "gold": ["lib/alpha", "lib/beta"]},
            {"query_id": "3", "query": "unheard", "gold": ["lib/beta"]},
            {"query_id": "4", "query": "beta beta gamma", "gold": ["lib/gamma"]},
            {"query_id": "5", "query": "ignored", "gold": ["lib/gamma"], "generic_only": True},
        ],
    )

    document = evaluate_retrieval(tmp_path, keyword_only)

    assert (document["data"], document["model"]) == (tmp_path.name, False)
    assert document["sets"] == {
        "all": {
            "n": 4,
            "abstained": 0.25,
            "arms": {"keyword": {"hit@1": 0.5, "hit@5": 0.75, "recall@5": 0.625, "full@5": 0.5, "mrr@10": 0.625}},
            "paired": {},
        }
    }


def test_a_core_is_measured_by_id_and_the_whole_by_slug(tmp_path: Path, keyword_only: Settings) -> None:
    copy = {"skill_id": "mirror/beta", "name": "beta", "description": "about beta things", "core": False}
    write(tmp_path, "catalog.jsonl", [*SKILLS, copy])
    write(
        tmp_path,
        "queries.jsonl",
        [
            {"query_id": "1", "query": "beta", "gold": ["lib/beta"], "gold_slugs": ["beta"], "set": "short"},
            {"query_id": "2", "query": "extra", "gold": ["lib/extra"], "gold_slugs": ["extra"], "set": "long"},
        ],
    )

    sets = evaluate_retrieval(tmp_path, keyword_only)["sets"]

    assert {name: found["n"] for name, found in sets.items()} == {
        "core/short": 1,
        "full/all": 2,
        "full/long": 1,
        "full/short": 1,
    }
    assert all(found["arms"]["keyword"]["hit@1"] == 1.0 for found in sets.values())


def test_mcnemar_is_the_exact_binomial() -> None:
    assert mcnemar([1] * 5 + [0] * 3, [0] * 5 + [0] * 2 + [1])["p"] == pytest.approx(0.2188)
    assert mcnemar([1] * 10, [0] * 10) == {"only_hybrid": 10, "only_other": 0, "p": pytest.approx(0.001953)}
    assert mcnemar([1, 0], [1, 0])["p"] == 1.0


def test_the_interval_is_wider_when_queries_belong_together() -> None:
    differences = [1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 0.0, 0.0] * 5
    alone = interval(differences, list(range(40)))
    together = interval(differences, [i // 4 for i in range(40)])

    assert alone[0] < 0.25 < alone[1]
    assert together[1] - together[0] > alone[1] - alone[0]
    assert interval(differences, list(range(40))) == alone


def test_a_folder_that_is_no_data_set_is_named(tmp_path: Path, keyword_only: Settings) -> None:
    with pytest.raises(BadFile, match=r"catalog\.jsonl is missing"):
        evaluate_retrieval(tmp_path, keyword_only)


@pytest.mark.model
@pytest.mark.data
@pytest.mark.slow
def test_hybrid_reaches_its_best_arm_on_measured_queries(data: Path, embedded: Settings) -> None:
    found = evaluate_retrieval(data / "bfcl_multiturn", embedded)["sets"]["all"]

    hybrid = found["arms"]["hybrid"]
    assert set(hybrid) == set(METRICS)
    for other in ("keyword", "semantic"):
        assert hybrid["hit@5"] >= found["arms"][other]["hit@5"] - 0.01
        assert hybrid["mrr@10"] >= found["arms"][other]["mrr@10"] - 0.01
    assert found["paired"]["keyword"]["hit@5"]["interval"][0] > 0
