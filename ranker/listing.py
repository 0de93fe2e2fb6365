"""Listing: whose description an agent sees where the list of its skills is over its budget, and whose it should see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from cowpath.errors import InputError
from cowpath.skill import Skill
from ranker.graph import SkillGraph

CHARS_PER_TOKEN = 4
"""How an agent turns a share of its context window into characters."""

BEFORE_NAME, BEFORE_TEXT, END = "- ", ": ", "\n"

LIKELY = 20
"""Prerequisites are looked up for so many of the likeliest skills."""

REACH = 2
"""How many steps up the prerequisites of a likely skill are followed."""

ORDER_ALONE = 0.5
"""How much of a skill's need goes to one that is said to come before it, but not required."""

MOST_LOST = 20

SENTENCE = re.compile(r"(?<=[.!?;])\s")


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """How much an agent's listing may hold: a share of its context window, and characters for one entry's text."""

    context_tokens: int = 200_000
    fraction: float = 0.01
    entry_chars: int = 1_536

    @property
    def chars(self) -> int:
        return int(self.context_tokens * CHARS_PER_TOKEN * self.fraction)


@dataclass(frozen=True)
class Entry:
    """One line of the listing: its name, which always stays, and its text, which may be lost.

    ``fixed``: an agent lets nobody take the text away (a plugin's skill), so only its own habit can.
    """

    skill_id: str
    name: str
    text: str
    fixed: bool = False

    @property
    def name_chars(self) -> int:
        return len(BEFORE_NAME) + len(self.name) + len(END)

    @property
    def text_chars(self) -> int:
        return len(BEFORE_TEXT) + len(self.text) if self.text else 0


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What one way of cutting leaves: whole texts, texts cut to their first sentence, and the need they cover.

    ``need_kept`` is the share of all need that belongs to skills whose whole text is there; None where none is known.
    """

    whole: list[str]
    shortened: dict[str, str]
    need_kept: float | None


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that the agent's own cutting leaves without its text, and how much it is needed."""

    skill_id: str
    need: float
    chars: int


class Shorter(msgspec.Struct, frozen=True, kw_only=True):
    """A description that fits once it is cut to its first sentence."""

    skill_id: str
    chars: int
    to_chars: int
    text: str


class ListingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The listing as the agent cuts it (``by_habit``) and as need would (``by_need``), and what to change.

    ``overrides`` is Claude Code's ``skillOverrides``: with it the rest fits, and the agent has nothing to cut.
    ``basis`` says what need is made of: "calls" of the log, or the "model" after the skills called so far.
    """

    budget: Budget
    budget_chars: int
    skills: int
    names_chars: int
    texts_chars: int
    fits: bool
    basis: Literal["calls", "model"]
    after: list[str]
    by_habit: Kept
    by_need: Kept
    lost: list[Lost]
    overrides: dict[str, str]
    shorten: list[Shorter]


def listing(
    skills: Iterable[Skill],
    *,
    uses: Mapping[str, int],
    need: Mapping[str, float],
    graph: SkillGraph,
    budget: Budget | None = None,
    after: Sequence[str] = (),
    basis: Literal["calls", "model"] = "calls",
) -> ListingAnswer:
    """Cut the listing of these skills both ways. ``need`` is any non-negative weight per skill id."""
    budget = budget or Budget()
    check_budget(budget)
    entries = [entry_of(skill, budget) for skill in skills if skill.listed]
    wanted = with_prerequisites(need, graph, called=after)
    habit, ours = by_habit(entries, uses, budget.chars), by_need(entries, wanted, uses, budget.chars)
    names, texts = sum(e.name_chars for e in entries), sum(e.text_chars for e in entries)
    return ListingAnswer(
        budget=budget,
        budget_chars=budget.chars,
        skills=len(entries),
        names_chars=names,
        texts_chars=texts,
        fits=names + texts <= budget.chars,
        basis=basis,
        after=list(after),
        by_habit=_kept(entries, habit, {}, wanted),
        by_need=_kept(entries, *ours, wanted),
        lost=_lost(entries, habit, wanted),
        overrides={e.skill_id: "name-only" for e in entries if e.text and not e.fixed and e.skill_id not in ours[0]},
        shorten=_shorter(entries, ours[1]),
    )


def check_budget(budget: Budget) -> None:
    """Raise InputError for a budget no agent could have."""
    if budget.context_tokens < 1 or budget.entry_chars < 1:
        raise InputError("a context window and an entry hold at least one token and one character")
    if not 0 < budget.fraction <= 1:
        raise InputError(
            f"the fraction is {budget.fraction}; it is a share of the context window, so above 0, at most 1"
        )


def entry_of(skill: Skill, budget: Budget) -> Entry:
    """The line of a skill: description and ``when_to_use``, cut at the cap of one entry."""
    when = skill.metadata.get("when_to_use")
    text = " ".join(" ".join(part.split()) for part in (skill.description, when) if isinstance(part, str) and part)
    return Entry(skill.skill_id, skill.skill_id, text[: budget.entry_chars], fixed=bool(skill.plugin))


def with_prerequisites(need: Mapping[str, float], graph: SkillGraph, *, called: Sequence[str] = ()) -> dict[str, float]:
    """Need, where whatever a likely skill requires, or is said to come after, is needed as much as its edge says.

    What was called already is in the context with its whole text and needs no line.
    """
    wanted = {skill_id: value for skill_id, value in need.items() if skill_id not in called and value > 0}
    before = _prerequisites(graph)
    frontier = sorted(wanted, key=lambda s: (-wanted[s], s))[:LIKELY]
    for _ in range(REACH):
        reached: dict[str, float] = {}
        for skill_id in frontier:
            for other, share in before.get(skill_id, ()):
                if other not in called:
                    reached[other] = max(reached.get(other, 0.0), share * wanted[skill_id])
        frontier = sorted(s for s, value in reached.items() if value > wanted.get(s, 0.0))
        wanted |= {s: reached[s] for s in frontier}
    return wanted


def _prerequisites(graph: SkillGraph) -> dict[str, list[tuple[str, float]]]:
    """Skill -> (what has to come before it, how surely).

    Learned orders are left out: the model and the counts know them, and told twice they push out what is needed more
    (of n8n_dev's next descriptions, 2,000 characters then kept .844 instead of .879).
    """
    found: dict[str, list[tuple[str, float]]] = {}
    for edge in graph.edges:
        if edge.status != "confirmed" or edge.provenance == "learned":
            continue
        if edge.relation == "requires":
            found.setdefault(edge.source, []).append((edge.target, 1.0))
        elif edge.relation in ("precedes", "feeds_into"):
            found.setdefault(edge.target, []).append((edge.source, ORDER_ALONE))
    return found


def by_habit(entries: Sequence[Entry], uses: Mapping[str, int], chars: int) -> set[str]:
    """Whose text an agent keeps by itself: the least used lose theirs first, until the listing fits."""
    most_used = sorted((e for e in entries if e.text), key=lambda e: (-uses.get(e.skill_id, 0), e.skill_id))
    kept: set[str] = set()
    room = chars - sum(e.name_chars for e in entries)
    for entry in most_used:
        room -= entry.text_chars
        if room < 0:
            break
        kept.add(entry.skill_id)
    return kept


def by_need(
    entries: Sequence[Entry], need: Mapping[str, float], uses: Mapping[str, int], chars: int
) -> tuple[set[str], dict[str, str]]:
    """Whose text need would keep: (whole texts, first sentences), the most needed first, while there is room.

    Fixed texts come first: unless they fit beside the rest, the agent goes on cutting by habit.
    """
    order = sorted(
        (e for e in entries if e.text),
        key=lambda e: (not e.fixed, -need.get(e.skill_id, 0.0), -uses.get(e.skill_id, 0), e.skill_id),
    )
    whole: set[str] = set()
    shortened: dict[str, str] = {}
    room = chars - sum(e.name_chars for e in entries)
    for entry in order:
        short = first_sentence(entry.text)
        if entry.text_chars <= room:
            whole.add(entry.skill_id)
            room -= entry.text_chars
        elif not entry.fixed and short != entry.text and len(BEFORE_TEXT) + len(short) <= room:
            shortened[entry.skill_id] = short
            room -= len(BEFORE_TEXT) + len(short)
    return whole, shortened


def first_sentence(text: str) -> str:
    """The text up to its first end of a sentence."""
    return SENTENCE.split(text, maxsplit=1)[0]


def _kept(entries: Sequence[Entry], whole: set[str], shortened: dict[str, str], need: Mapping[str, float]) -> Kept:
    described = {e.skill_id for e in entries if e.text}
    total = sum(value for skill_id, value in need.items() if skill_id in described)
    covered = sum(need.get(skill_id, 0.0) for skill_id in whole)
    share = round(covered / total, 4) if total else None
    return Kept(whole=sorted(whole), shortened=dict(sorted(shortened.items())), need_kept=share)


def _lost(entries: Sequence[Entry], kept: set[str], need: Mapping[str, float]) -> list[Lost]:
    total = sum(need.values()) or 1.0
    found = [
        Lost(skill_id=e.skill_id, need=round(need.get(e.skill_id, 0.0) / total, 4), chars=e.text_chars)
        for e in entries
        if e.text and e.skill_id not in kept
    ]
    return sorted(found, key=lambda one: (-one.need, one.skill_id))[:MOST_LOST]


def _shorter(entries: Sequence[Entry], shortened: Mapping[str, str]) -> list[Shorter]:
    whole = {e.skill_id: e for e in entries}
    return [
        Shorter(skill_id=s, chars=len(whole[s].text), to_chars=len(text), text=text)
        for s, text in sorted(shortened.items())
    ]
