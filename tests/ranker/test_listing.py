"""The listing is cut as an agent cuts it and as need would; what is proposed fits the budget."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cowpath.cli.listing import page
from cowpath.edge import Edge
from cowpath.errors import InputError, UnknownSkill
from cowpath.settings import Settings
from cowpath.skill import Skill
from ranker.engine import Ranker
from ranker.graph import SkillGraph
from ranker.listing import Budget, ListingAnswer, entry_of, first_sentence, listing

NO_EDGES = SkillGraph([])


def skill(name: str, chars: int = 40, **fields: object) -> Skill:
    return Skill(skill_id=name, name=name, description="x" * chars, **fields)  # type: ignore[arg-type]  # test words


def room_for(skills: list[Skill], texts: int) -> Budget:
    """A budget of all names and ``texts`` descriptions of 40 characters."""
    names = sum(entry_of(one, Budget()).name_chars for one in skills)
    return Budget(context_tokens=names + texts * 42, fraction=0.25)


def cut(skills: list[Skill], budget: Budget, *, uses: dict[str, int], need: dict[str, float]) -> ListingAnswer:
    return listing(skills, uses=uses, need=need, graph=NO_EDGES, budget=budget)


def test_habit_keeps_the_most_called_and_need_the_most_needed() -> None:
    skills = [skill(name) for name in "abcd"]

    answer = cut(skills, room_for(skills, 2), uses={"a": 9, "b": 5, "c": 1}, need={"d": 0.6, "a": 0.3, "b": 0.1})

    assert answer.by_habit.whole == ["a", "b"]
    assert answer.by_need.whole == ["a", "d"]
    assert (answer.by_habit.need_kept, answer.by_need.need_kept) == (0.4, 0.9)
    assert [(lost.skill_id, lost.need) for lost in answer.lost] == [("d", 0.6), ("c", 0.0)]


def test_with_the_overrides_that_are_proposed_the_agent_has_nothing_left_to_cut() -> None:
    skills = [skill(name, chars) for name, chars in (("a", 40), ("b", 41), ("c", 39), ("d", 30))]
    budget = room_for(skills, 2)

    answer = cut(skills, budget, uses={"a": 9, "b": 5}, need={"d": 0.6, "a": 0.3, "b": 0.1})

    assert answer.overrides == {"b": "name-only", "c": "name-only"}
    left = [entry_of(one, budget) for one in skills if one.skill_id not in answer.overrides]
    assert answer.names_chars + sum(entry.text_chars for entry in left) <= answer.budget_chars
    assert not answer.fits


def test_a_listing_that_fits_loses_and_proposes_nothing() -> None:
    skills = [skill("a"), skill("b")]

    answer = cut(skills, room_for(skills, 2), uses={}, need={})

    assert answer.fits
    assert (answer.by_habit.whole, answer.by_need.whole) == (["a", "b"], ["a", "b"])
    assert (answer.lost, answer.overrides, answer.shorten) == ([], {}, [])
    assert "nothing is lost" in page(answer)


def test_names_that_take_the_whole_budget_leave_no_description_and_the_page_says_so() -> None:
    skills = [skill("a"), skill("b")]

    answer = cut(skills, Budget(context_tokens=6, fraction=0.25), uses={"a": 1}, need={"a": 1.0})

    assert (answer.by_habit.whole, answer.by_need.whole) == ([], [])
    assert "The names alone take it all" in page(answer)


def test_a_needed_text_that_does_not_fit_is_cut_to_its_first_sentence() -> None:
    long = Skill(skill_id="long", name="long", description="Says what it does. " + "y" * 200)
    skills = [long, skill("a", 20)]

    answer = cut(skills, room_for(skills, 1), uses={"a": 3}, need={"long": 0.9})

    assert answer.by_need.shortened == {"long": "Says what it does."}
    assert [(one.skill_id, one.chars, one.to_chars) for one in answer.shorten] == [("long", 219, 18)]
    assert first_sentence("one sentence") == "one sentence"


def test_no_text_is_taken_from_a_plugins_skill_because_no_agent_lets_one() -> None:
    skills = [skill("plug:a", plugin="plug"), skill("b")]

    answer = cut(skills, room_for(skills, 1), uses={"b": 3}, need={"b": 1.0})

    assert answer.by_need.whole == ["plug:a"]
    assert answer.overrides == {"b": "name-only"}


def test_a_skill_that_no_agent_may_call_has_no_line() -> None:
    assert cut([skill("a", listed=False)], Budget(), uses={}, need={}).skills == 0


def test_when_to_use_is_part_of_the_text_and_one_entry_is_capped() -> None:
    told = Skill(skill_id="a", name="a", description="Does this.", metadata={"when_to_use": "On Mondays."})

    assert entry_of(told, Budget()).text == "Does this. On Mondays."
    assert entry_of(told, Budget(entry_chars=4)).text == "Does"


def test_what_a_likely_skill_requires_or_comes_after_is_needed_too_step_by_step() -> None:
    edges = [edge("deploy", "requires", "login"), edge("fetch-key", "precedes", "login")]
    skills = [skill(name) for name in ("deploy", "login", "fetch-key", "other")]

    answer = listing(
        skills,
        uses={"other": 100},
        need={"deploy": 0.9, "other": 0.1},
        graph=SkillGraph(edges),
        budget=room_for(skills, 3),
    )

    assert answer.by_habit.whole == ["deploy", "fetch-key", "other"]
    assert answer.by_need.whole == ["deploy", "fetch-key", "login"]


def test_learned_orders_are_not_told_twice() -> None:
    edges = [replace(edge("b", "precedes", "a"), provenance="learned")]
    skills = [skill("a"), skill("b"), skill("c")]

    answer = listing(skills, uses={"c": 1}, need={"a": 1.0}, graph=SkillGraph(edges), budget=room_for(skills, 2))

    assert answer.by_need.whole == ["a", "c"]


def test_what_was_called_already_needs_no_line(learned: Settings) -> None:
    ranker = Ranker(learned)
    names = sum(entry_of(one, Budget()).name_chars for one in ranker.catalogue.skills.values())

    answer = ranker.listing(after=["lint-code", "run-tests"], budget=Budget(context_tokens=names + 50, fraction=0.25))

    assert (answer.basis, answer.after) == ("model", ["lint-code", "run-tests"])
    assert answer.by_need.whole == ["deploy-service"]


def test_a_home_without_calls_goes_by_names_and_says_that_no_need_is_known(settings: Settings) -> None:
    answer = Ranker(settings).listing(budget=Budget(context_tokens=100))

    assert (answer.by_habit.need_kept, answer.by_need.need_kept) == (None, None)


@pytest.mark.parametrize(
    "budget", [Budget(fraction=0.0), Budget(fraction=1.5), Budget(context_tokens=0), Budget(entry_chars=0)]
)
def test_a_budget_no_agent_could_have_is_refused(budget: Budget, settings: Settings) -> None:
    with pytest.raises(InputError):
        Ranker(settings).listing(budget=budget)


def test_an_unknown_skill_before_the_listing_is_told(learned: Settings) -> None:
    with pytest.raises(UnknownSkill, match="run-tests"):
        Ranker(learned).listing(after=["run-test"])


def edge(source: str, relation: str, target: str) -> Edge:
    return Edge(
        source=source,
        relation=relation,  # type: ignore[arg-type]  # words of the test
        target=target,
        status="confirmed",
        provenance="curated",
    )
