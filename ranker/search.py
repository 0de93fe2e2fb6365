"""Search: skills for a request in words, by keyword and by meaning; their neighbours; their conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from cowpath.errors import InputError, ModelMissing
from cowpath.settings import Settings
from cowpath.skill import Catalogue, read_catalogue, text_hash
from cowpath.vectors import Vector, matrix_of, read_vectors
from ranker.bm25 import Keywords
from ranker.encoder import Encoder
from ranker.fuse import fuse
from ranker.graph import SkillGraph, Step

Arm = Literal["hybrid", "keyword", "semantic"]
ARMS: tuple[Arm, ...] = ("hybrid", "keyword", "semantic")

DEPTH = 50
"""How far down each ranking the fusion looks."""
FLOOR = 0.25
"""A request without one known word and with no cosine of at least this is off topic.

`cowpath eval retrieval` prints the share of real requests that the gate refuses.
"""
MAX_K = 100
MAX_QUERY_CHARS = 20_000
MAX_NEIGHBOURS = 10


class MatchReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a skill matched: its place in each ranking. None where that ranking does not have it."""

    keyword_rank: int | None
    words: list[str]
    semantic_rank: int | None
    cosine: float | None


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """One skill found."""

    skill_id: str
    name: str
    description: str
    because: MatchReason


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that does not go together with a match."""

    skill_id: str
    conflicts_with: str
    provenance: str


class SearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one request: what matched, what lies around it, what it excludes; never one list.

    ``mode`` is "keyword" where nothing could be compared by meaning, and ``reason`` says why.
    ``abstained``: the request is not about any known skill.
    """

    query: str
    arm: Arm
    mode: Literal["hybrid", "keyword", "semantic"]
    reason: str | None
    abstained: bool
    matches: list[Match]
    neighbors: list[Step]
    conflicts: list[Conflict]
    versions: dict[str, str | None] = {}


@dataclass(frozen=True)
class Rankings:
    """What both retrievers say about one request, before anything is fused or cut."""

    words: list[str]
    keyword: list[str]
    semantic: list[str]
    cosine: dict[str, float]

    @property
    def off_topic(self) -> bool:
        return not self.words and max(self.cosine.values(), default=-1.0) < FLOOR

    def of(self, arm: Arm) -> list[str]:
        """The skill ids of one arm, best first; an off-topic request has none."""
        if self.off_topic:
            return []
        if arm == "hybrid":
            return [skill_id for skill_id, _ in fuse([self.keyword[:DEPTH], self.semantic[:DEPTH]])]
        return self.keyword if arm == "keyword" else self.semantic


@dataclass(frozen=True)
class Meaning:
    """The embedded skills and the encoder that embeds the request."""

    ids: list[str]
    matrix: Vector
    encoder: Encoder

    @classmethod
    def open(cls, catalogue: Catalogue, settings: Settings) -> Meaning:
        """Raises ModelMissing, with what to do, where requests cannot be compared by meaning."""
        encoder = Encoder.open(settings.at.embeddings)
        hashes = [text_hash(skill.text) for skill in catalogue.skills.values()]
        matrix, known = matrix_of(hashes, read_vectors(settings.at.embeddings))
        ids = [skill_id for skill_id, there in zip(catalogue.skills, known, strict=True) if there]
        if not ids and len(catalogue):
            raise ModelMissing("no skill of the catalogue is embedded", suggestions=["cowpath catalogue sync DIR"])
        return cls(ids, matrix[known], encoder)

    def rank(self, vector: Vector) -> tuple[list[str], dict[str, float]]:
        """All embedded skills by cosine, nearest first, and the cosines."""
        if not self.ids:
            return [], {}
        cosine = self.matrix @ vector
        order = np.argsort(-cosine, kind="stable")
        return [self.ids[i] for i in order], dict(zip(self.ids, cosine.tolist(), strict=True))


@dataclass(frozen=True)
class Search:
    """A catalogue ready to be searched. Without ``meaning`` it searches by keyword and says so."""

    catalogue: Catalogue
    keywords: Keywords
    meaning: Meaning | None
    graph: SkillGraph
    reason: str | None = None

    @classmethod
    def open(cls, settings: Settings) -> Search:
        """Read a home once; ``ranker.engine.Ranker`` is the one that notices changes."""
        catalogue = read_catalogue(settings.at.catalogue)
        meaning, reason = open_meaning(catalogue, settings)
        graph = SkillGraph.read(settings.at.edges)
        return cls(catalogue, Keywords(catalogue.skills.values()), meaning, graph, reason)

    def search(self, query: str, k: int = 10, arm: Arm = "hybrid") -> SearchAnswer:
        """The k best skills for a request. Raises ModelMissing only for the arm that is nothing but meaning."""
        check_request(query, k, arm)
        if arm == "semantic" and self.meaning is None:
            raise ModelMissing(f"no search by meaning: {self.reason}", suggestions=["--arm keyword"])
        rankings = self.rankings(query)
        # the catalogue may have been written anew since the rankings' side was read
        found = [skill_id for skill_id in rankings.of(arm) if skill_id in self.catalogue][:k]
        return SearchAnswer(
            query=query,
            arm=arm,
            mode="keyword" if self.meaning is None else arm,
            reason=self.reason if arm != "keyword" else None,
            abstained=not found,
            matches=self._matches(found, rankings),
            neighbors=self.graph.walk(found, limit=MAX_NEIGHBOURS),
            conflicts=self._conflicts(found),
        )

    def rankings(self, query: str, vector: Vector | None = None) -> Rankings:
        """Both rankings of a request; ``vector`` is its embedding where that is known already."""
        words = self.keywords.known(query)
        keyword = self.keywords.rank(words)
        if self.meaning is None:
            return Rankings(words, keyword, [], {})
        vector = self.meaning.encoder.encode([query])[0] if vector is None else vector
        semantic, cosine = self.meaning.rank(vector)
        return Rankings(words, keyword, semantic, cosine)

    def _matches(self, found: Sequence[str], rankings: Rankings) -> list[Match]:
        keyword_rank = {skill_id: rank for rank, skill_id in enumerate(rankings.keyword, start=1)}
        semantic_rank = {skill_id: rank for rank, skill_id in enumerate(rankings.semantic, start=1)}

        def match(skill_id: str) -> Match:
            skill = self.catalogue.skills[skill_id]
            cosine = rankings.cosine.get(skill_id)
            reason = MatchReason(
                keyword_rank=keyword_rank.get(skill_id),
                words=self.keywords.matched(skill_id, rankings.words),
                semantic_rank=semantic_rank.get(skill_id),
                cosine=None if cosine is None else round(cosine, 4),
            )
            return Match(skill_id=skill_id, name=skill.name, description=skill.description, because=reason)

        return [match(skill_id) for skill_id in found]

    def _conflicts(self, found: Sequence[str]) -> list[Conflict]:
        def conflict(skill_id: str, source: str, target: str, provenance: str) -> Conflict:
            other = target if source == skill_id else source
            return Conflict(skill_id=other, conflicts_with=skill_id, provenance=provenance)

        edges = [(skill_id, edge) for skill_id in found for edge in self.graph.conflicts(skill_id)]
        return [conflict(skill_id, e.source, e.target, e.provenance) for skill_id, e in edges]


def open_meaning(catalogue: Catalogue, settings: Settings) -> tuple[Meaning | None, str | None]:
    """The meaning side of a home, or None and the reason that an answer shows."""
    try:
        return Meaning.open(catalogue, settings), None
    except ModelMissing as error:
        advice = f"; {error.suggestions[0]}" if error.suggestions else ""
        return None, error.message + advice


def check_request(query: str, k: int, arm: str) -> None:
    """Raise InputError for a request that no catalogue could answer."""
    if not query.strip():
        raise InputError("the query is empty; say in words what is to be done")
    if len(query) > MAX_QUERY_CHARS:
        raise InputError(f"the query has {len(query)} characters; at most {MAX_QUERY_CHARS} are taken")
    if arm not in ARMS:
        raise InputError(f"no arm {arm!r}; there are {', '.join(ARMS)}")
    check_k(k)


def check_k(k: int) -> None:
    if not 1 <= k <= MAX_K:
        raise InputError(f"k is {k}; it must be between 1 and {MAX_K}")
