"""What an agent may ask over MCP, as data: each tool's words, its request, its answer and what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from cowpath.event import Event, Outcome, derived_id, utc_now
from cowpath.settings import Settings
from ranker.advice import Record
from ranker.engine import Ranker
from ranker.feedback import FeedbackAnswer, FeedbackRequest, give_quietly
from ranker.next import NextAnswer, Suggestion
from ranker.search import Arm, Match, SearchAnswer

Scope = Literal["read", "ingest", "admin"]

MOST = 20
"""Most hits of one answer: an agent refuses results of more than 25,000 tokens."""

MAX_DESCRIPTION = 1_536
MAX_SKILLS = 200

D = TypeVar("D", Match, Suggestion)

SkillName = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"\S", description="a skill's id or other name")]
Id = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"\S")]
Words = Annotated[str, Meta(min_length=1, max_length=20_000, pattern=r"\S")]


@dataclass(frozen=True)
class Desk:
    """Where tools get their answers: the ranker of a home, and who takes the events that they make."""

    settings: Settings
    ranker: Ranker
    record: Record

    @classmethod
    def over(cls, settings: Settings, record: Record) -> Desk:
        """A desk with a ranker of its own."""
        return cls(settings, Ranker(settings, record=record), record)


@dataclass(frozen=True)
class Tool:
    """One tool. ``answers`` is the struct whose schema every answer meets; None for any object."""

    name: str
    says: str
    asks: type[msgspec.Struct]
    answers: type | None
    run: Callable[[Desk, Any], object]
    scope: Scope = "read"


class SearchSkills(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[Words, Meta(description="what is to be done, in words")]
    k: Annotated[int, Meta(ge=1, le=MOST, description="most matches")] = 5
    arm: Annotated[Arm, Meta(description="how to compare; hybrid unless you know better")] = "hybrid"


class SuggestNextSkills(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    skills: Annotated[
        list[SkillName], Meta(max_length=MAX_SKILLS, description="called so far, oldest first; empty: a session begins")
    ] = []
    session: Annotated[
        Id | None,
        Meta(description="session id: its published calls come before the skills, and what is shown is recorded"),
    ] = None
    query: Annotated[Words | None, Meta(description="what is to be done, in words")] = None
    k: Annotated[int, Meta(ge=1, le=MOST, description="most suggestions")] = 3


class RecordSkillCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    skill: SkillName
    session: Annotated[Id, Meta(description="session id")]
    outcome: Annotated[Outcome, Meta(description="how the call ended")] = "unknown"
    suggested_by: Annotated[Id | None, Meta(description="the advice id of the list that the call followed")] = None
    call_id: Annotated[Id | None, Meta(description="your id of the call: a repeat counts once")] = None


class Explain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    before: SkillName
    after: SkillName


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was handed to the collector, or to this machine's spool until there is one."""

    event_id: str
    skill: str
    session: str
    known: bool


def search_skills(desk: Desk, asked: SearchSkills) -> SearchAnswer:
    answer = desk.ranker.search(asked.query, asked.k, asked.arm)
    return replace(answer, matches=[_short(match) for match in answer.matches])


def suggest_next_skills(desk: Desk, asked: SuggestNextSkills) -> NextAnswer:
    answer = desk.ranker.next(asked.skills, session=asked.session, query=asked.query, k=asked.k)
    return replace(answer, suggestions=[_short(one) for one in answer.suggestions])


def record_skill_call(desk: Desk, asked: RecordSkillCall) -> Recorded:
    """The raw name is recorded as it is; ``known`` says whether the catalogue has it."""
    now = utc_now()
    event = Event(
        event_id=derived_id("mcp", asked.session, asked.call_id or now.isoformat(), asked.skill),
        session_id=asked.session,
        skill=asked.skill,
        called_at=now,
        trigger="agent",
        outcome=asked.outcome,
        source="mcp",
        suggested_by=asked.suggested_by,
    )
    desk.record([event])
    catalogue = desk.ranker.catalogue
    known = catalogue.resolve(asked.skill) in catalogue
    return Recorded(event_id=event.event_id, skill=asked.skill, session=asked.session, known=known)


def explain(desk: Desk, asked: Explain) -> dict[str, Any]:
    return desk.ranker.why(asked.before, asked.after)


def give_feedback(desk: Desk, asked: FeedbackRequest) -> FeedbackAnswer:
    return give_quietly(desk.settings, asked, source="mcp")


def _short(one: D) -> D:
    """A skill with no longer description than an agent's own listing shows."""
    if len(one.description) <= MAX_DESCRIPTION:
        return one
    return replace(one, description=one.description[: MAX_DESCRIPTION - 2] + " …")


TOOLS: Sequence[Tool] = (
    Tool(
        "search_skills",
        "Find skills for a request in words. Answers three separate lists: matches (best first, each with its "
        "reasons), neighbors (skills around them in the graph) and conflicts (skills that do not go together with a "
        "match). abstained is true where no known skill is about the request.",
        SearchSkills,
        SearchAnswer,
        search_skills,
    ),
    Tool(
        "suggest_next_skills",
        "Which skills usually come next after the ones called so far, with the evidence of each. Learned from what "
        "agents really did; an empty list with a reason is an answer too.",
        SuggestNextSkills,
        NextAnswer,
        suggest_next_skills,
    ),
    Tool(
        "explain",
        "The evidence that one skill comes before another, also where there is no edge between them: what was "
        "counted, and which test failed by how much.",
        Explain,
        None,
        explain,
    ),
    Tool(
        "record_skill_call",
        "Record that a skill was called in a session, so that suggestions can be learned from it. Not needed where "
        "hooks or telemetry report the calls already.",
        RecordSkillCall,
        Recorded,
        record_skill_call,
        scope="ingest",
    ),
    Tool(
        "give_feedback",
        "Say that for a query, or after a skill, one skill should stand above another. Kept for evaluation; it moves "
        "no ranking by itself. Never fails: stored is false and reason says why.",
        FeedbackRequest,
        FeedbackAnswer,
        give_feedback,
        scope="ingest",
    ),
)
"""In the order in which agents read them."""
