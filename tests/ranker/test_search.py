"""Search over one home: three separate fields, reasons, keyword-only mode, abstention."""

from __future__ import annotations

import pytest

from cowpath.errors import InputError, ModelMissing
from cowpath.settings import Settings
from ranker.dense import embed_catalogue
from ranker.search import MAX_QUERY_CHARS, Rankings, Search


def test_without_the_model_search_is_by_keyword_and_says_so(learned: Settings) -> None:
    answer = Search.open(learned).search("deploy the service to production", k=2)

    assert (answer.arm, answer.mode, answer.abstained) == ("hybrid", "keyword", False)
    assert answer.reason is not None
    assert "cowpath mine" in answer.reason
    assert [m.skill_id for m in answer.matches] == ["deploy-service", "roll-back"]
    because = answer.matches[0].because
    assert (because.keyword_rank, because.words) == (1, ["deploy", "service", "production"])
    assert (because.semantic_rank, because.cosine) == (None, None)


def test_matches_neighbors_and_conflicts_are_three_fields(learned: Settings) -> None:
    answer = Search.open(learned).search("deploy", k=1)

    assert [m.skill_id for m in answer.matches] == ["deploy-service"]
    assert [(n.skill_id, n.relation, n.direction) for n in answer.neighbors] == [
        ("run-tests", "precedes", "in"),
        ("write-changelog", "complements", "out"),
    ]
    assert [(c.conflicts_with, c.skill_id) for c in answer.conflicts] == [("deploy-service", "freeze-releases")]


def test_a_request_without_a_known_word_abstains(learned: Settings) -> None:
    answer = Search.open(learned).search("zxcv qwerty")

    assert (answer.abstained, answer.matches, answer.neighbors, answer.conflicts) == (True, [], [], [])


@pytest.mark.parametrize(
    ("words", "cosine", "off_topic"), [([], 0.1, True), ([], 0.6, False), (["deploy"], 0.1, False)]
)
def test_off_topic_needs_both_no_word_and_no_likeness(words: list[str], cosine: float, off_topic: bool) -> None:
    rankings = Rankings(words, ["a"] if words else [], ["a"], {"a": cosine})

    assert rankings.off_topic is off_topic
    assert rankings.of("semantic") == ([] if off_topic else ["a"])


@pytest.mark.parametrize(
    ("query", "k", "arm"),
    [("  ", 5, "hybrid"), ("a", 0, "hybrid"), ("a" * (MAX_QUERY_CHARS + 1), 5, "hybrid"), ("a", 5, "x")],
)
def test_a_request_that_cannot_be_answered_is_refused(settings: Settings, query: str, k: int, arm: str) -> None:
    with pytest.raises(InputError):
        Search.open(settings).search(query, k, arm)  # type: ignore[arg-type]  # what a client may send


def test_the_semantic_arm_needs_the_model(settings: Settings) -> None:
    with pytest.raises(ModelMissing):
        Search.open(settings).search("deploy", arm="semantic")


def test_an_empty_home_finds_nothing_without_an_error(tmp_path: object) -> None:
    answer = Search.open(Settings(home=f"{tmp_path}/none")).search("deploy")

    assert (answer.matches, answer.abstained) == ([], True)


@pytest.mark.model
def test_golden_queries_of_the_hybrid_arm_keep_their_order(embedded: Settings) -> None:
    search = Search.open(embedded)

    def found(query: str) -> list[str]:
        return [m.skill_id for m in search.search(query, k=3).matches]

    assert found("ship the new version")[0] == "deploy-service"
    assert found("undo the last rollout")[:2] == ["freeze-releases", "roll-back"]  # the word beats the meaning
    assert found("return to an earlier version")[0] == "roll-back"
    assert found("tidy up an xlsx table")[0] == "spreadsheetCleaner"
    assert found("acrobat document with blanks")[0] == "pdf-forms"


@pytest.mark.model
def test_hybrid_reasons_hold_both_rankings_and_the_arms_differ_only_in_order(embedded: Settings) -> None:
    search = Search.open(embedded)
    hybrid = search.search("test the production rollout")
    semantic = search.search("test the production rollout", arm="semantic")

    assert (hybrid.mode, hybrid.reason) == ("hybrid", None)
    assert all(m.because.cosine is not None and m.because.semantic_rank for m in hybrid.matches)
    assert [m.because.semantic_rank for m in semantic.matches] == list(range(1, 10))
    assert {m.skill_id: m.because for m in hybrid.matches} == {m.skill_id: m.because for m in semantic.matches}


@pytest.mark.model
def test_an_off_topic_request_abstains_and_a_paraphrase_does_not(embedded: Settings) -> None:
    search = Search.open(embedded)

    assert search.search("penguin jokes").abstained
    assert [m.skill_id for m in search.search("acrobat blanks", k=1).matches] == ["pdf-forms"]


@pytest.mark.model
def test_embedding_again_finds_nothing_to_do(embedded: Settings) -> None:
    again = embed_catalogue(embedded)

    assert (again.skills, again.embedded, again.cached, again.exported) == (9, 0, 9, False)
