"""Feedback is kept once, listed, turned into judged pairs; it moves no ranking and stops nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cowpath.cli import run
from cowpath.errors import BadFile, InputError, UnknownSkill
from cowpath.settings import Settings
from ranker.engine import Ranker
from ranker.feedback import FeedbackRequest, give, give_quietly, judged_pairs, read_feedback
from ranker.judged import agreement, judged


def said(better: str, worse: str, **about: str) -> FeedbackRequest:
    return FeedbackRequest(better=better, worse=worse, **about)


def test_a_statement_is_kept_with_the_ids_of_the_catalogue(settings: Settings) -> None:
    answer = give(settings, said("ops:roll-back", "deploy-service", query="undo a deploy", key="k1"), source="test")

    (kept,) = read_feedback(settings)
    assert (answer.stored, answer.duplicate, answer.key) == (True, False, "k1")
    assert (kept.better, kept.worse, kept.query, kept.source) == (
        "roll-back",
        "deploy-service",
        "undo a deploy",
        "test",
    )


@pytest.mark.parametrize("key", ["k1", None])
def test_a_repeat_is_kept_once(key: str | None, settings: Settings) -> None:
    asked = FeedbackRequest(better="roll-back", worse="lint-code", after="deploy-service", key=key)

    first, again = give(settings, asked, source="test"), give(settings, asked, source="test")

    assert (first.stored, again.stored, again.duplicate) == (True, False, True)
    assert first.key == again.key
    assert len(read_feedback(settings)) == 1


def test_a_key_that_says_something_else_now_is_refused(settings: Settings) -> None:
    give(settings, said("roll-back", "lint-code", query="undo", key="k1"), source="test")

    with pytest.raises(InputError, match="another statement"):
        give(settings, said("lint-code", "roll-back", query="undo", key="k1"), source="test")


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        (said("roll-back", "lint-code"), InputError, "say one of the two"),
        (said("roll-back", "lint-code", query="a", after="lint-code"), InputError, "say one of the two"),
        (said("roll-back", "ops:roll-back", query="a"), InputError, "above itself"),
        (said("rollback", "lint-code", query="a"), UnknownSkill, "'roll-back'"),
        (said("roll-back", "lint-code", after="lint-coed"), UnknownSkill, "'lint-code'"),
    ],
)
def test_what_says_nothing_is_told(
    asked: FeedbackRequest, error: type[Exception], words: str, settings: Settings
) -> None:
    with pytest.raises(error, match=words):
        give(settings, asked, source="test")
    assert not settings.at.feedback.exists()


def test_an_agent_is_told_in_the_answer_what_went_wrong_and_never_fails(settings: Settings) -> None:
    settings.at.feedback.mkdir(parents=True)

    unknown = give_quietly(settings, said("rollback", "lint-code", query="a"), source="test")
    full = give_quietly(settings, said("roll-back", "lint-code", query="a"), source="test")

    assert not unknown.stored
    assert "no skill 'rollback'" in (unknown.reason or "")
    assert not full.stored
    assert "cannot be written" in (full.reason or "")


def test_statements_about_one_pair_are_counted_and_a_draw_is_no_pair(settings: Settings) -> None:
    for number, (better, worse, query) in enumerate(
        [("a", "b", "q"), ("a", "b", "q"), ("b", "a", "q"), ("c", "d", "q"), ("d", "c", "q"), ("b", "a", "other")]
    ):
        names = {"a": "roll-back", "b": "lint-code", "c": "pdf-forms", "d": "run-tests"}
        give(settings, said(names[better], names[worse], query=query, key=str(number)), source="test")

    found = judged_pairs(read_feedback(settings))

    assert [(p.query, p.better, p.worse, p.votes, p.against) for p in found] == [
        ("other", "lint-code", "roll-back", 1, 0),
        ("q", "roll-back", "lint-code", 2, 1),
    ]


def test_no_ranking_moves_by_feedback(learned: Settings) -> None:
    ranker = Ranker(learned)
    before = ranker.search("deploy"), ranker.next(["run-tests"])

    give(learned, said("roll-back", "deploy-service", query="deploy"), source="test")
    give(learned, said("write-changelog", "deploy-service", after="run-tests"), source="test")

    assert (Ranker(learned).search("deploy"), Ranker(learned).next(["run-tests"])) == before


def test_evaluation_says_how_often_each_ranking_agrees(learned: Settings) -> None:
    give(learned, said("deploy-service", "pdf-forms", query="production cluster"), source="test")
    give(learned, said("pdf-forms", "deploy-service", query="roll out a build"), source="test")
    give(learned, said("deploy-service", "write-changelog", after="run-tests"), source="test")

    document = agreement(Ranker(learned), judged_pairs(read_feedback(learned)))

    assert document["pairs"] == 3
    assert set(document["rankings"]) == {"keyword", "next"}, "without embeddings nothing is compared by meaning"
    assert {name: (row["right"], row["wrong"]) for name, row in document["rankings"].items()} == {
        "keyword": (1, 1),
        "next": (1, 0),
    }


def test_a_pair_that_a_ranking_has_not_is_undecided_and_no_share_is_made_of_nothing(settings: Settings) -> None:
    give(settings, said("roll-back", "lint-code", query="a"), source="test")

    row = judged(lambda pair: [], judged_pairs(read_feedback(settings)))

    assert row == {"n": 1, "right": 0, "wrong": 0, "undecided": 1, "share": None, "interval": None}


def test_a_broken_file_is_named_with_its_line(settings: Settings) -> None:
    settings.at.feedback.write_bytes(b"{}\n")

    with pytest.raises(BadFile, match="line 1"):
        read_feedback(settings)


def test_the_command_line_gives_lists_and_pairs(learned: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    def asked(*arguments: str) -> Any:
        with pytest.raises(SystemExit) as done:
            run([*arguments, "--home", learned.home, "--json"])
        return json.loads(capsys.readouterr().out) | {"exit": int(done.value.code or 0)}

    given = asked("feedback", "give", "roll-back", "deploy-service", "--query", "undo a deploy")
    refused = asked("feedback", "give", "roll-back", "roll-back", "--query", "a")
    measured = asked("eval", "feedback")

    assert (given["stored"], given["exit"]) == (True, 0)
    assert (refused["error"]["code"], refused["exit"]) == ("bad_input", 80)
    assert asked("feedback", "list")["feedback"][0]["better"] == "roll-back"
    assert asked("feedback", "pairs")["count"] == 1
    assert measured["rankings"]["keyword"]["n"] == 1


def test_what_is_kept_is_one_line_a_statement(settings: Settings) -> None:
    give(settings, said("roll-back", "lint-code", query="line\nbreak"), source="test")

    lines = Path(settings.at.feedback).read_bytes().splitlines()
    assert [msgspec.json.decode(line)["query"] for line in lines] == ["line\nbreak"]
