"""Next: the model's order, reasons that can be checked, unknown names, skills without history, conflicts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from cowpath.edge import Edge, write_layer
from cowpath.errors import NothingLearned, UnknownSkill
from cowpath.next_model import NextModel
from cowpath.settings import Settings
from cowpath.skill import Catalogue, Skill, read_catalogue, write_catalogue
from cowpath.vectors import Vector
from miner.transitions import fit
from ranker.backoff import Likeness
from ranker.engine import Ranker
from ranker.graph import SkillGraph
from ranker.next import Next
from ranker.reasons import EdgeReason, edge_words


def unit(*values: float) -> Vector:
    vector = np.array(values, dtype=np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def asked(model: NextModel, vectors: Mapping[str, Vector] | None = None, *edges: Edge, ids: str = "") -> Next:
    known = Catalogue(Skill(skill_id=s, name=s) for s in [*model.skills, *model.new_skills, *ids.split()])
    return Next(known, model, SkillGraph(edges), Likeness.of(model, vectors or {}))


def test_the_likeliest_follow_in_the_models_own_order(learned: Settings) -> None:
    answer = Ranker(learned).next(["lint-code", "run-tests"])
    model = NextModel.load(learned.at.learned / "next.npz")
    probability = dict(zip(model.skills, model.predict(["lint-code", "run-tests"]), strict=True))

    assert (answer.basis, answer.context, answer.reason) == ("history", ["lint-code", "run-tests"], None)
    assert [s.skill_id for s in answer.suggestions][:2] == ["deploy-service", "write-changelog"]
    for suggestion in answer.suggestions:
        assert suggestion.probability == pytest.approx(probability[suggestion.skill_id], abs=1e-6)
    assert "run-tests" not in [s.skill_id for s in answer.suggestions]


def test_a_suggestion_carries_edge_follows_and_parts(learned: Settings) -> None:
    because = Ranker(learned).next(["run-tests"]).suggestions[0].because

    assert because.edges == [
        EdgeReason(
            source="run-tests",
            relation="precedes",
            target="deploy-service",
            status="confirmed",
            provenance="learned",
            sessions=20,
            forward=18,
            share=0.9,
            lower=0.74,
            lift=3.25,
        )
    ]
    assert because.followed is not None
    assert (because.followed.after, because.followed.times) == ("run-tests", 15)
    assert sum(because.parts.values()) == pytest.approx(1, abs=0.05)
    assert because.words == [
        "run-tests precedes deploy-service in 18 of 20 sessions with both (share at least 0.74)"
        " - together 3.2 times as often as by chance",
        "called directly after run-tests 15 times",
    ]


def test_an_edge_that_says_the_opposite_order_is_no_reason(learned: Settings) -> None:
    suggestions = Ranker(learned).next(["deploy-service"], k=10).suggestions

    reasons = {s.skill_id: [e.relation for e in s.because.edges] for s in suggestions}
    assert reasons.get("run-tests", []) == []
    assert reasons["write-changelog"] == ["complements"]


def test_modest_words_for_one_actor_and_for_candidates() -> None:
    edge = EdgeReason(
        source="a",
        relation="complements",
        target="b",
        status="candidate",
        provenance="learned",
        sessions=4,
        lift=2.0,
        single_actor=True,
    )

    assert edge_words(edge) == (
        "a complements b in 4 sessions, no fixed order - together 2.0 times as often as by chance"
        " (a candidate, not proven; no second actor confirms it)"
    )


def test_raw_names_are_resolved_and_unknown_ones_name_their_neighbours(learned: Settings) -> None:
    ranker = Ranker(learned)

    assert ranker.next(["ops:run-tests"]).context == ["run-tests"]
    with pytest.raises(UnknownSkill, match="no skill 'run-test'; did you mean") as raised:
        ranker.next(["run-test"])
    assert "run-tests" in raised.value.suggestions


def test_before_the_first_mining_run_nothing_is_learned(settings: Settings) -> None:
    with pytest.raises(NothingLearned) as raised:
        Ranker(settings).next(["run-tests"])

    assert raised.value.suggestions == ["cowpath mine"]


def test_a_model_of_an_empty_log_has_learned_nothing(settings: Settings) -> None:
    fit([]).save(settings.at.learned / "next.npz")

    with pytest.raises(NothingLearned):
        Ranker(settings).next([])


def test_without_a_context_sessions_begin_as_they_began(learned: Settings) -> None:
    answer = Ranker(learned).next([])

    assert (answer.basis, answer.suggestions[0].skill_id) == ("start", "lint-code")
    assert answer.suggestions[0].because.followed is None


def test_a_skill_in_conflict_with_the_context_is_left_out_and_named() -> None:
    model = fit([["a", "b", "c"]] * 5 + [["a", "c"]] * 3)
    edge = Edge(source="a", relation="conflicts_with", target="b", status="confirmed", provenance="curated")

    free, bound = asked(model).suggest(["a"]), asked(model, {}, edge).suggest(["a"])

    assert [s.skill_id for s in free.suggestions] == ["b", "c"]
    assert [s.skill_id for s in bound.suggestions] == ["c"]
    assert [(left.skill_id, left.conflicts_with) for left in bound.left_out] == [("b", "a")]


def test_a_current_skill_younger_than_the_model_borrows_from_its_nearest_descriptions() -> None:
    model = fit([["a", "b"]] * 10 + [["x", "y"]] * 10)
    vectors = {"a": unit(1, 0, 0), "b": unit(0, 1, 0), "x": unit(0, 0, 1), "y": unit(0, 1, 1), "young": unit(9, 1, 0)}

    answer = asked(model, vectors, ids="young").suggest(["young"])

    assert answer.basis == "content"
    assert answer.reason is not None
    assert answer.suggestions[0].skill_id == "b"
    assert [s.resembles for s in answer.suggestions[0].because.similar][:1] == ["a"]
    assert answer.suggestions[0].because.parts == {}


def test_without_an_embedding_the_calls_before_a_young_skill_decide() -> None:
    model = fit([["a", "b"]] * 10 + [["x", "y"]] * 10)

    answer = asked(model, ids="young").suggest(["a", "young"])

    assert (answer.basis, answer.suggestions[0].skill_id) == ("history", "b")
    assert answer.reason == "young has neither history nor an embedding; the calls before it decide"


def test_of_five_suggestions_at_most_one_has_no_history() -> None:
    names = "abcdefghijklm"
    sessions = [["a", after] for after in "bbbbcdefghijklm"] * 3
    vectors = {s: unit(*(float(s == other) for other in names)) for s in names}
    new = {f"new{i}": unit(*(float(other == "b") + 0.01 * i for other in names)) for i in range(4)}
    next_ = asked(fit(sessions), vectors | new, ids=" ".join(new))

    def without_history(k: int) -> list[str]:
        return [s.skill_id for s in next_.suggest(["a"], k=k).suggestions if not s.has_history]

    assert without_history(4) == []
    assert without_history(5) == ["new0"]
    assert without_history(10) == ["new0", "new1"]
    suggestion = next_.suggest(["a"]).suggestions[1]
    assert suggestion.because.words == ["new0 has no history yet; its description is close to that of b (cosine 1.00)"]


def test_a_skill_without_history_needs_a_description_like_that_of_a_likely_one() -> None:
    model = fit([["a", "b"], ["a", "c"]] * 5)
    vectors = {"a": unit(1, 0, 0), "b": unit(0, 1, 0), "c": unit(0, 0, 1)}

    def suggested(new: Vector) -> list[str]:
        next_ = asked(model, vectors | {"new": new}, ids="new")
        return [s.skill_id for s in next_.suggest(["a"]).suggestions]

    assert suggested(unit(0, 5, 1)) == ["b", "c", "new"]
    assert suggested(unit(-1, -1, 0)) == ["b", "c"]


def test_a_query_is_fused_with_the_models_ranking(learned: Settings) -> None:
    answer = Ranker(learned).next(["run-tests"], query="release notes for users")

    by_id = {s.skill_id: s.because for s in answer.suggestions}
    assert by_id["write-changelog"].search_rank == 1
    assert answer.suggestions[0].skill_id == "write-changelog"
    assert "number 1 for the query" in by_id["write-changelog"].words
    assert by_id["deploy-service"].search_rank is None


def test_files_written_anew_are_read_anew(learned: Settings) -> None:
    ranker = Ranker(learned)
    before = ranker.next(["run-tests"])

    fit([["run-tests", "sql-tuning"]] * 5).save(learned.at.learned / "next.npz")
    write_layer(learned.at.edges, "learned", [])
    catalogue = read_catalogue(learned.at.catalogue)
    write_catalogue(learned.at.catalogue, Catalogue([*catalogue.skills.values(), Skill(skill_id="new", name="new")]))
    after = ranker.next(["run-tests"])

    assert (before.suggestions[0].skill_id, after.suggestions[0].skill_id) == ("deploy-service", "sql-tuning")
    assert after.suggestions[0].because.edges == []
    for version in ("catalogue", "edges"):
        assert None not in (before.versions[version], after.versions[version])
        assert before.versions[version] != after.versions[version]


@pytest.mark.model
def test_skills_without_history_answer_through_their_descriptions(embedded: Settings) -> None:
    answer = Ranker(embedded).next(["freeze-releases"])

    assert answer.basis == "content"
    assert answer.suggestions
    assert answer.suggestions[0].because.similar[0].skill_id == "freeze-releases"
    assert "deploy-service" not in [s.skill_id for s in answer.suggestions]
    assert [left.skill_id for left in answer.left_out] == ["deploy-service"]
