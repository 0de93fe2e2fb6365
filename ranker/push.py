"""Push: what an agent's hook is answered beside "taken": a fact about what usually comes next, under guard rails.

Off by default (``push_most``). Told is only what recorded use or a person proves (``push_min_sessions``), a skill once
a session, never to a subagent, never one that is active, switched off, declined or in conflict; a share of the sessions
is told nothing; what was told leaves an impression. Whatever goes wrong or takes too long, the hook's answer is ``{}``.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from cowpath.event import Event
from cowpath.settings import Settings
from ranker.advice import Record, impressions, policy_of, session_digest
from ranker.declined import read_declined
from ranker.engine import Ranker, Read
from ranker.history import session_past
from ranker.next import NextAnswer, Suggestion
from ranker.reasons import EdgeReason

log = logging.getLogger("cowpath.ranker")

Payload = Mapping[str, Any]
Reply = dict[str, Any]

WAIT_S = 0.04
"""An agent stands still while its hook runs: what is not decided by then is not told."""

MAX_CHARS = 400
MOST_SESSIONS = 5_000
"""Sessions whose calls are kept in mind; the one that was silent longest is forgotten first."""

MOST_CALLS = 200
"""Of one session; a skill that was called before them may be told of again."""

TRAIL = 20
"""How many of a session's latest calls are looked at."""

LOOKED_AT = 20
PLAIN_NAME = re.compile(r"[\w:./-]{1,80}")
"""Names of any other form are not told: a hook's text is read by a model as if the system had written it."""

IN_SUBAGENT = ("agent_id", "subagent_id", "parent_conversation_id", "parent_session_id")
"""Fields that a payload has only where it comes from a subagent."""


def in_claude_code(event: str, text: str) -> Reply:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def in_cursor(event: str, text: str) -> Reply:
    return {"additional_context": text}


def in_codex(event: str, text: str) -> Reply:
    return {"continue": True, **in_claude_code(event, text)}


MOMENTS: Mapping[str, tuple[frozenset[str], Callable[[str, str], Reply]]] = {
    "claude-code": (frozenset({"PostToolUse", "PostToolBatch", "UserPromptExpansion"}), in_claude_code),
    "cursor": (frozenset({"postToolUse"}), in_cursor),
    "codex": (frozenset({"PostToolUse", "UserPromptSubmit"}), in_codex),
}
"""Harness -> its events whose answer may carry a text, and the form of that answer."""


@dataclass
class Seen:
    """What is in mind of one session: its latest calls, and what it was told."""

    calls: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Told:
    """A decision: the text, and the events that say so once it is told."""

    session: str
    skills: list[str]
    text: str
    events: list[Event]


class Push:
    """Answers hooks. Called with a harness, a payload and the events it told of; safe for many hooks at once."""

    def __init__(self, settings: Settings, ranker: Ranker, record: Record) -> None:
        self._settings = settings
        self._ranker = ranker
        self._record = record
        self._declined = Read(lambda: read_declined(settings), settings.at.declined)
        self._sessions: OrderedDict[str, Seen] = OrderedDict()
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="cowpath-push")

    async def __call__(self, harness: str, payload: Payload, items: Sequence[object]) -> Reply:
        """The body of the hook's answer; ``{}`` where there is nothing to tell."""
        moment = MOMENTS.get(harness)
        event = str(payload.get("hook_event_name", ""))
        calls = [item for item in items if isinstance(item, Event) and item.kind == "activated"]
        if moment is None or event not in moment[0] or not _may_be_told(payload, calls):
            return {}
        try:
            deciding = asyncio.get_running_loop().run_in_executor(self._threads, self.decide, calls)
            told = await asyncio.wait_for(deciding, WAIT_S)
        except TimeoutError:
            return {}
        except Exception as error:
            # Nothing is learned yet, a file is broken: it is told where somebody asks, not where an agent works.
            log.info("nothing is pushed: %s", error)
            return {}
        return self._tell(told, lambda text: moment[1](event, text)) if told else {}

    def close(self) -> None:
        """Forget what nobody waits for any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def decide(self, calls: Sequence[Event]) -> Told | None:
        """What this session should be told after these calls, if anything."""
        session = calls[-1].session_id
        done = [call.skill for call in calls if call.outcome in ("ok", "unknown")]
        seen = self._noted(session, [self._ranker.catalogue.resolve(skill) for skill in done])
        if not done:
            return None
        known = [skill for skill in seen.calls if skill in self._ranker.catalogue]
        if not known or known[-1] != seen.calls[-1]:
            return None
        answer = self._ranker.next(known[-TRAIL:], k=LOOKED_AT)
        facts = self._facts(session, seen, answer)
        return self._told(session, answer, facts) if facts else None

    def _noted(self, session: str, skills: Sequence[str]) -> Seen:
        """What is in mind of a session, these calls included; a session that is new here is looked up first."""
        with self._lock:
            seen = self._sessions.get(session)
        if seen is None:
            earlier = Seen(*session_past(self._settings, session))
        with self._lock:
            seen = self._sessions.setdefault(session, earlier) if seen is None else seen
            self._sessions.move_to_end(session)
            while len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
            # The hook of a call and that of its batch both tell of it.
            fresh = [skill for skill in skills if skill not in seen.calls[-len(skills) :]]
            seen.calls = [*seen.calls, *fresh][-MOST_CALLS:]
            return Seen(list(seen.calls), set(seen.told))

    def _facts(self, session: str, seen: Seen, answer: NextAnswer) -> list[tuple[str, str]]:
        """(skill, fact) of what may be told, best first."""
        barred = {*seen.calls, *seen.told, *self._declined_in(session)}
        facts = []
        for one in answer.suggestions:
            fact = fact_of(one, min_sessions=self._settings.push_min_sessions)
            if fact and one.skill_id not in barred and self._may_be_called(one.skill_id):
                facts.append((one.skill_id, fact))
        return facts[: self._settings.push_most]

    def _told(self, session: str, answer: NextAnswer, facts: Sequence[tuple[str, str]]) -> Told:
        facts = _within(facts)
        skills = [skill for skill, _ in facts]
        events = impressions(
            skills,
            session=session,
            after=answer.context[-1],
            policy=policy_of(session, self._settings),
            run=answer.versions["run"],
            holdout_share=self._settings.holdout_share,
        )
        return Told(session, skills, _text(facts), events)

    def _tell(self, told: Told, reply: Callable[[str], Reply]) -> Reply:
        """Tell it, unless another hook of the session just did; a session of the holdout is told nothing."""
        with self._lock:
            seen = self._sessions.setdefault(told.session, Seen())
            if seen.told & set(told.skills):
                return {}
            seen.told.update(told.skills)
        self._record(told.events)
        return {} if policy_of(told.session, self._settings) == "holdout" else reply(told.text)

    def _declined_in(self, session: str) -> set[str]:
        mine = {"", session_digest(session, self._settings)}
        return {one.skill for one in self._declined.now() if one.session in mine}

    def _may_be_called(self, skill_id: str) -> bool:
        skill = self._ranker.catalogue.skills.get(skill_id)
        return bool(skill and skill.listed)


def fact_of(one: Suggestion, *, min_sessions: int) -> str | None:
    """What is proven about a suggestion, in words; None where nothing is, or its names cannot be told."""
    for edge in one.because.edges:
        if edge.status != "confirmed" or not all(map(PLAIN_NAME.fullmatch, (edge.source, edge.target))):
            continue
        if edge.provenance == "curated":
            return f"{edge.source} {edge.relation.replace('_', ' ')} {edge.target}, as a person stated"
        if edge.provenance == "learned" and (edge.sessions or 0) >= min_sessions:
            return _counted(edge, one.skill_id)
    return None


def _counted(edge: EdgeReason, skill_id: str) -> str:
    other = edge.source if edge.target == skill_id else edge.target
    alone = " by one person" if edge.single_actor else ""
    if edge.relation == "precedes" and edge.forward is not None:
        return f"{edge.target} was called after {edge.source} in {edge.forward} of {edge.sessions} sessions{alone}"
    return f"{skill_id} was called together with {other} in {edge.sessions} sessions{alone}"


def _within(facts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """As many of the facts, from the first, as the text may hold."""
    kept = list(facts)
    while len(kept) > 1 and len(_text(kept)) > MAX_CHARS:
        kept.pop()
    return kept


def _text(facts: Sequence[tuple[str, str]]) -> str:
    return "Recorded use of skills here (cowpath): " + "; ".join(fact for _, fact in facts) + "."


def _may_be_told(payload: Payload, calls: Sequence[Event]) -> bool:
    """Whether these are calls of a session's own agent."""
    in_subagent = any(payload.get(name) for name in IN_SUBAGENT) or any(call.stream_id for call in calls)
    return bool(calls) and all(call.session_id for call in calls) and not in_subagent
