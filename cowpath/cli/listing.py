"""``cowpath listing``: what an agent's list of skills loses to its budget, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cowpath.cli.output import settings_of, show, with_home, with_json

if TYPE_CHECKING:
    from ranker.listing import ListingAnswer

MOST_LINES = 10


@click.command()
@click.option("--context", default=200_000, show_default=True, metavar="TOKENS", help="The agent's context window.")
@click.option("--fraction", default=0.01, show_default=True, help="Share of it that the listing may take.")
@click.option("--entry", default=1_536, show_default=True, metavar="CHARS", help="Most text of one skill.")
@click.option("--after", multiple=True, metavar="SKILL", help="What is called already, oldest first; repeatable.")
@with_home
@with_json
def listing(context: int, fraction: float, entry: int, after: tuple[str, ...], home: str | None, as_json: bool) -> None:
    """Simulate the list of skills that an agent sees, and show which descriptions it loses to its budget.

    The agent's own way is to keep the text of the skills it called most. Need goes by the calls of the log, or with
    --after by what the model expects next, and reaches the prerequisites of likely skills. The answer's ``overrides``
    are Claude Code's skillOverrides, ``shorten`` the descriptions that fit once they are cut to one sentence.
    """
    from ranker.engine import Ranker
    from ranker.listing import Budget

    budget = Budget(context_tokens=context, fraction=fraction, entry_chars=entry)
    answer = Ranker(settings_of(home)).listing(after=after, budget=budget)
    show(answer, lambda: page(answer), as_json=as_json)


def page(answer: ListingAnswer) -> str:
    """The listing as a person reads it."""
    lines = [
        f"{answer.skills} skills: {answer.names_chars:,} characters of names, {answer.texts_chars:,} of descriptions; "
        f"the budget is {answer.budget_chars:,}"
    ]
    if answer.fits:
        return "\n".join([*lines, "Everything fits; nothing is lost."])
    if answer.names_chars >= answer.budget_chars:
        lines.append("The names alone take it all: no description is left. Switch off skills that nobody needs.")
    what = "the calls of the log" if answer.basis == "calls" else f"what comes after {' → '.join(answer.after)}"
    lines += [f"Descriptions kept, and the share of {what} they cover:"]
    for name, kept in (("by habit", answer.by_habit), ("by need", answer.by_need)):
        share = "" if kept.need_kept is None else f"  {kept.need_kept:.0%}"
        short = f", {len(kept.shortened)} shortened" if kept.shortened else ""
        lines.append(f"  {name:9} {len(kept.whole):5}{short}{share}")
    if answer.lost:
        lines += ["Needed most among those that habit loses:"]
        lines += [f"  {one.need:6.1%}  {one.skill_id}" for one in answer.lost[:MOST_LINES]]
    if answer.overrides:
        lines.append(f"--json prints skillOverrides for {len(answer.overrides)} skills that can do with their name.")
    return "\n".join(lines)
