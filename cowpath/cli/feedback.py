"""``cowpath feedback``: say which of two skills should stand higher, and read what was said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cowpath.cli.output import settings_of, show, with_home, with_json

if TYPE_CHECKING:
    from ranker.feedback import Feedback, FeedbackAnswer, JudgedPair


@click.group()
def feedback() -> None:
    """Say which of two skills should stand higher. It is kept and evaluated, and moves no ranking by itself."""


@feedback.command()
@click.argument("better")
@click.argument("worse")
@click.option("--query", default=None, help="The request in words that it is about.")
@click.option("--after", default=None, metavar="SKILL", help="The skill called before, that it is about.")
@click.option("--key", default=None, help="Idempotency key; without one, equal words are one statement.")
@with_home
@with_json
def give(
    better: str, worse: str, query: str | None, after: str | None, key: str | None, home: str | None, as_json: bool
) -> None:
    """For a query, or after a skill, BETTER should stand above WORSE."""
    from ranker.feedback import FeedbackRequest
    from ranker.feedback import give as keep

    asked = FeedbackRequest(better=better, worse=worse, query=query, after=after, key=key)
    answer = keep(settings_of(home), asked, source="cli")
    show(answer, lambda: _said(answer), as_json=as_json)


@feedback.command("list")
@with_home
@with_json
def list_(home: str | None, as_json: bool) -> None:
    """Every statement, oldest first."""
    from ranker.feedback import read_feedback

    given = read_feedback(settings_of(home))
    show({"count": len(given), "feedback": given}, lambda: _page(given), as_json=as_json)


@feedback.command()
@with_home
@with_json
def pairs(home: str | None, as_json: bool) -> None:
    """The judged pairs that the statements come to; ``cowpath eval feedback`` measures rankings by them."""
    from ranker.feedback import judged_pairs, read_feedback

    found = judged_pairs(read_feedback(settings_of(home)))
    show({"count": len(found), "pairs": found}, lambda: _pairs_page(found), as_json=as_json)


def _said(answer: FeedbackAnswer) -> str:
    return f"kept as {answer.key}" if answer.stored else f"was kept before, as {answer.key}"


def _page(given: list[Feedback]) -> str:
    lines = [f"{one.stored_at}  {_place(one)}: {one.better} above {one.worse}  ({one.source})" for one in given]
    return "\n".join(lines) or "Nobody said anything yet."


def _pairs_page(found: list[JudgedPair]) -> str:
    lines = [f"{_place(one)}: {one.better} above {one.worse}  ({one.votes} to {one.against})" for one in found]
    return "\n".join(lines) or "No pairs yet."


def _place(one: Feedback | JudgedPair) -> str:
    return f"for {one.query!r}" if one.query is not None else f"after {one.after}"
