"""``cowpath search`` and ``cowpath next``: the ranker's answers in a terminal."""

from __future__ import annotations

import sys
from textwrap import shorten
from typing import TYPE_CHECKING

import click

from cowpath.cli.output import settings_of, show, with_home, with_json

if TYPE_CHECKING:
    from ranker.next import NextAnswer, Suggestion
    from ranker.search import Arm, Match, SearchAnswer

WIDTH = 100


@click.command()
@click.argument("query")
@click.option("-k", default=10, show_default=True, help="How many matches.")
@click.option(
    "--arm",
    type=click.Choice(["hybrid", "keyword", "semantic"]),
    default="hybrid",
    show_default=True,
    help="How to compare.",
)
@with_home
@with_json
def search(query: str, k: int, arm: Arm, home: str | None, as_json: bool) -> None:
    """Find skills for a QUERY in words: matches, the skills around them, and what conflicts with them."""
    from ranker.engine import Ranker

    answer = Ranker(settings_of(home)).search(query, k, arm)
    show(answer, lambda: search_page(answer), as_json=as_json)


@click.command("next")
@click.argument("skills", metavar="[SKILL]...", nargs=-1)
@click.option("--session", default=None, help="A session whose published calls come before the skills.")
@click.option("--query", default=None, help="What is to be done, in words.")
@click.option("-k", default=5, show_default=True, help="How many suggestions.")
@with_home
@with_json
def next_(
    skills: tuple[str, ...], session: str | None, query: str | None, k: int, home: str | None, as_json: bool
) -> None:
    """What comes next after these SKILLs (called so far, oldest first), and why. Without any: how sessions begin.

    With --session what is shown is recorded, and a share of the sessions is shown nothing (COWPATH_HOLDOUT_SHARE).
    """
    from ranker.engine import Ranker

    settings = settings_of(home)
    answer = Ranker(settings).next(skills, session=session, query=query, k=k)
    show(answer, lambda: next_page(answer), as_json=as_json)
    if answer.policy:
        from ranker.advice import ship

        sys.stdout.flush()
        ship(settings)


def search_page(answer: SearchAnswer) -> str:
    """A search as a person reads it."""
    lines = [f"keyword search only: {answer.reason}"] if answer.reason else []
    if answer.abstained:
        return "\n".join([*lines, "No known skill is about this."])
    lines += [line for rank, match in enumerate(answer.matches, start=1) for line in _match_lines(rank, match)]
    if answer.neighbors:
        lines += ["", "Around them:"]
        lines += [f"  {s.skill_id}  ({_way(s.predecessor, s.relation, s.direction)})" for s in answer.neighbors]
    if answer.conflicts:
        lines += ["", "Not together:"]
        lines += [f"  {c.conflicts_with} and {c.skill_id} ({c.provenance})" for c in answer.conflicts]
    return "\n".join(lines)


def next_page(answer: NextAnswer) -> str:
    """Suggestions as a person reads them."""
    after = " → ".join(answer.context[-5:]) or "the start of a session"
    lines = [f"After {after}:"] + ([f"({answer.reason})"] if answer.reason else [])
    lines += [line for rank, one in enumerate(answer.suggestions, start=1) for line in _suggestion_lines(rank, one)]
    if not answer.suggestions and answer.policy != "holdout":
        lines.append("  nothing was ever called after this")
    lines += [f"Left out: {one.skill_id} conflicts with {one.conflicts_with}" for one in answer.left_out]
    return "\n".join(lines)


def _match_lines(rank: int, match: Match) -> list[str]:
    because = match.because
    parts = [f"words: {', '.join(because.words)}"] if because.words else []
    parts += [f"cosine {because.cosine:.2f}"] if because.cosine is not None else []
    return [f"{rank:3}. {match.skill_id}  ({'; '.join(parts)})", *_described(match.description)]


def _suggestion_lines(rank: int, one: Suggestion) -> list[str]:
    head = f"{rank:3}. {one.skill_id}  ({one.probability:.0%} of next calls)"
    return [head, *_described(one.description), *(f"       because {words}" for words in one.because.words)]


def _described(description: str) -> list[str]:
    return [f"     {shorten(description, WIDTH, placeholder=' …')}"] if description else []


def _way(predecessor: str, relation: str, direction: str) -> str:
    words = relation.replace("_", " ")
    return f"{predecessor} {words} it" if direction == "out" else f"it {words} {predecessor}"
