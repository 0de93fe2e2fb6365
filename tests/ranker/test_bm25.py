"""Keyword retrieval: words, weights, and the same numbers as rank_bm25."""

from __future__ import annotations

import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from cowpath.skill import Catalogue, Skill
from ranker.bm25 import Keywords, document, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run-tests", ["run", "test"]),
        ("plugin:skill_name.v2", ["plugin", "skill", "name", "v2"]),
        ("parseHTMLPage", ["parse", "html", "page"]),
        ("Straße und Übung", ["strasse", "und", "übung"]),
        ("日本語の文書", ["日本語の文書"]),
        ("libraries, classes, status, indexes", ["library", "classe", "status", "indexe"]),
        ("what is the way to do this", ["way"]),
        ("", []),
    ],
)
def test_words_are_lower_case_singular_and_parted(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_values_are_those_of_rank_bm25(catalogue: Catalogue) -> None:
    skills = list(catalogue.skills.values())
    keywords = Keywords(skills)
    known = keywords.known("deploy the production cluster after tests")

    reference = BM25Okapi([document(skill) for skill in skills]).get_scores(known)

    assert known == ["deploy", "production", "cluster", "test"]
    np.testing.assert_allclose(keywords.values(known, np.arange(len(skills))), reference, rtol=1e-12)


def test_golden_queries_keep_their_order(catalogue: Catalogue) -> None:
    keywords = Keywords(catalogue.skills.values())

    def found(query: str) -> list[str]:
        return keywords.rank(keywords.known(query))

    assert found("production release") == ["roll-back", "deploy-service", "freeze-releases", "write-changelog"]
    assert found("clean my Excel spreadsheet") == ["spreadsheetCleaner"]
    assert found("slow queries in the database") == ["sql-tuning"]
    assert found("knitting patterns") == []


def test_a_word_in_the_name_outweighs_one_in_the_description_and_in_the_body() -> None:
    skills = [
        Skill(skill_id="body", name="one", description="nothing here", body="alpha"),
        Skill(skill_id="name", name="alpha", description="nothing here", body="one"),
        Skill(skill_id="other", name="two", description="nothing else", body="three"),
        Skill(skill_id="more", name="four", description="nothing else", body="five"),
        Skill(skill_id="last", name="six", description="nothing else", body="seven"),
    ]
    keywords = Keywords(skills)

    assert keywords.rank(keywords.known("alpha")) == ["name", "body"]


def test_a_description_over_several_lines_is_found_by_its_last_line() -> None:
    skills = [
        Skill(skill_id="folded", name="x", description="First line.\nSecond line:\n  migrate schemas"),
        Skill(skill_id="other", name="y", description="First line."),
        Skill(skill_id="third", name="z", description="Something else"),
    ]
    keywords = Keywords(skills)

    assert keywords.rank(keywords.known("migrate a schema")) == ["folded"]
    assert keywords.matched("folded", ["migrate", "schema", "line"]) == ["migrate", "schema", "line"]


def test_a_catalogue_of_one_or_of_none_still_answers() -> None:
    one = Keywords([Skill(skill_id="a", name="alpha")])

    assert one.rank(one.known("alpha beta")) == ["a"]
    assert Keywords([]).rank([]) == []
    assert Keywords([Skill(skill_id="a", name="!")]).known("alpha") == []
