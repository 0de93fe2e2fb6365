"""Next: which skills follow a context of skills, from the learned model, each with its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from cowpath.next_model import NextModel
from cowpath.skill import Catalogue, unknown_skill
from ranker.advice import Policy
from ranker.backoff import Likeness
from ranker.fuse import fuse
from ranker.graph import SkillGraph
from ranker.reasons import Followed, Reason, Similar, edge_reasons, in_words, part_shares
from ranker.search import DEPTH, Search, check_k, check_request

Basis = Literal["history", "content", "start"]

SLOTS_PER_NEW = 5
"""At most one of five suggestions has no history: a slot kept for it costs the others least."""


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """One skill that may come next. ``probability`` is the model's, of the very next call.

    Without history it is half of what the skills of like description have: an ordering, not a frequency.
    """

    skill_id: str
    name: str
    description: str
    probability: float
    has_history: bool
    because: Reason


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that would have been suggested, but conflicts with one of the context."""

    skill_id: str
    conflicts_with: str
    provenance: str


class NextAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What may come next after ``context`` (resolved ids, oldest first).

    ``basis``: "history" of the current skill; "content" where it has none and its nearest
    descriptions stand in; "start" where no call is known, so how sessions begin.
    ``reason`` says what was missing.

    For a named session ``policy`` says whether it is "served" or held out; ``advice`` is the id of the
    list that was shown, which calls that follow it name as ``suggested_by``.
    """

    context: list[str]
    session: str | None
    query: str | None
    basis: Basis
    reason: str | None
    suggestions: list[Suggestion]
    left_out: list[LeftOut]
    versions: dict[str, str | None] = {}
    policy: Policy | None = None
    advice: str | None = None


@dataclass(frozen=True)
class Scores:
    """Probability of each possible next skill, with and without history, and how it was found."""

    values: dict[str, float]
    basis: Basis
    new: dict[str, float] = field(default_factory=dict)
    stand_ins: list[Similar] = field(default_factory=list)
    reason: str | None = None


@dataclass(frozen=True)
class Next:
    """A learned model beside the catalogue, the graph and the likeness of descriptions, ready to be asked."""

    catalogue: Catalogue
    model: NextModel
    graph: SkillGraph
    likeness: Likeness

    def resolve(self, name: str) -> str:
        """The skill behind a raw name. Raises UnknownSkill, with near names, where nobody knows it."""
        skill_id = self.catalogue.resolve(name)
        known = {*self.model.skills, *self.model.new_skills}
        if skill_id in self.catalogue or skill_id in known:
            return skill_id
        named = [s.skill_id for s in self.catalogue.skills.values() if s.name == name]
        if len(named) == 1:
            return named[0]
        raise unknown_skill(name, sorted({*self.catalogue.alias_of, *known}))

    def suggest(
        self,
        context: Sequence[str],
        *,
        earlier: Sequence[str] = (),
        session: str | None = None,
        query: str | None = None,
        search: Search | None = None,
        k: int = 5,
    ) -> NextAnswer:
        """The k likeliest next skills after the calls of a session (``earlier``) and the named skills.

        With a query and a search, the model's ranking and the query's are fused.
        """
        check_k(k)
        prefix = [*earlier, *(self.resolve(name) for name in context)]
        scores = self.scores(prefix)
        found = self._found(query, search)
        against = self._conflicting(prefix)
        ranking = [s for s in _ranking(scores, found, against, k) if s not in prefix[-1:]]
        return NextAnswer(
            context=prefix,
            session=session,
            query=query,
            basis=scores.basis,
            reason=scores.reason,
            suggestions=self._suggestions(ranking[:k], prefix, scores, found),
            left_out=_left_out(scores, found, against),
        )

    def scores(self, prefix: Sequence[str]) -> Scores:
        """Every possible next skill's probability; a current skill without history borrows its neighbours'."""
        if not prefix or prefix[-1] in self.model.skills:
            return self._scores(prefix, "history" if prefix else "start")
        current = prefix[-1]
        likeness = self._resembled(current)
        if current in self.model.new_skills:
            reason = f"{current} has no history; descriptions like its own stand in"
            return replace(self._scores(prefix, "content"), stand_ins=likeness, reason=reason)
        if likeness:
            reason = f"{current} was not there when the model was learned; descriptions like its own stand in"
            values = _by_id(self.model.skills, self.likeness.stand_in(prefix, self.model))
            return Scores(values, "content", self._new(values, prefix), likeness, reason)
        earlier = [skill for skill in prefix if skill in self.model.skills]
        reason = f"{current} has neither history nor an embedding; the calls before it decide"
        return replace(self._scores(earlier, "history" if earlier else "start"), reason=reason)

    def _scores(self, prefix: Sequence[str], basis: Basis) -> Scores:
        values = _by_id(self.model.skills, self.model.predict(prefix))
        return Scores(values, basis, self._new(values, prefix))

    def _new(self, values: Mapping[str, float], prefix: Sequence[str]) -> dict[str, float]:
        """Skills without history by their neighbours' probabilities, without those called already."""
        return {s: p for s, p in self.likeness.transfer(values).items() if s not in prefix}

    def _found(self, query: str | None, search: Search | None) -> list[str]:
        if query is None or search is None:
            return []
        check_request(query, 1, "hybrid")
        return search.rankings(query).of("hybrid")[:DEPTH]

    def _conflicting(self, prefix: Sequence[str]) -> dict[str, LeftOut]:
        """The skills that must not be suggested: in conflict with one of the context."""
        against: dict[str, LeftOut] = {}
        for skill_id in dict.fromkeys(prefix):
            for edge in self.graph.conflicts(skill_id):
                other = edge.target if edge.source == skill_id else edge.source
                left_out = LeftOut(skill_id=other, conflicts_with=skill_id, provenance=edge.provenance)
                against.setdefault(other, left_out)
        return against

    def _suggestions(
        self, chosen: Sequence[str], prefix: Sequence[str], scores: Scores, found: Sequence[str]
    ) -> list[Suggestion]:
        search_rank = {skill_id: rank for rank, skill_id in enumerate(found, start=1)}
        return [self._suggestion(s, prefix, scores, search_rank.get(s)) for s in chosen]

    def _suggestion(self, skill_id: str, prefix: Sequence[str], scores: Scores, search_rank: int | None) -> Suggestion:
        current = prefix[-1] if prefix else None
        skill = self.catalogue.skills.get(skill_id)
        times = self.model.count(current, skill_id) if current else 0
        reason = Reason(
            words=[],
            edges=edge_reasons(prefix, skill_id, self.graph),
            followed=Followed(after=current, times=times) if current and times else None,
            parts=part_shares(prefix, skill_id, self.model),
            similar=self._resembled(skill_id) or scores.stand_ins,
            search_rank=search_rank,
        )
        return Suggestion(
            skill_id=skill_id,
            name=skill.name if skill else skill_id,
            description=skill.description if skill else "",
            probability=round(scores.values.get(skill_id, scores.new.get(skill_id, 0.0)), 6),
            has_history=skill_id in self.model.skills,
            because=msgspec.structs.replace(reason, words=in_words(reason)),
        )

    def _resembled(self, skill_id: str) -> list[Similar]:
        """The three nearest skills with history of one without; none for a skill with history."""
        near = self.likeness.nearest(skill_id)[:3]
        return [Similar(skill_id=skill_id, resembles=name, cosine=round(cosine, 4)) for name, cosine in near]


def _ranking(scores: Scores, found: Sequence[str], against: Mapping[str, LeftOut], k: int) -> list[str]:
    """Best first: the likeliest, a few of them without history, fused with what the query found."""
    new = [s for s in _best_first(scores.new) if s not in against][: k // SLOTS_PER_NEW]
    likely = _best_first(scores.values | {s: scores.new[s] for s in new})
    fused = [s for s, _ in fuse([likely[:DEPTH], found])] if found else likely
    return [s for s in fused if s not in against]


def _left_out(scores: Scores, found: Sequence[str], against: Mapping[str, LeftOut]) -> list[LeftOut]:
    likely = [*_best_first(scores.values)[:DEPTH], *found]
    return [against[s] for s in dict.fromkeys(likely) if s in against]


def _best_first(values: Mapping[str, float]) -> list[str]:
    return sorted(values, key=lambda s: (-values[s], s))


def _by_id(skills: Sequence[str], probabilities: NDArray[np.float64]) -> dict[str, float]:
    return {s: float(p) for s, p in zip(skills, probabilities, strict=True) if p > 0}
