"""From a language model's answers to the llm layer: what is well formed and contradicts nothing, the rest counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from cowpath.acyclic import acyclic
from cowpath.edge import SYMMETRIC, Edge, Relation, Status
from cowpath.skill import Catalogue
from cowpath.vectors import Vector, neighbourhoods
from ranker.answers import Answer, current
from ranker.candidates import SOURCES
from ranker.graph import ACYCLIC, CONFLICT

SURE = 0.5
"""A claim of less confidence is a candidate: kept as a reason, never walked."""

LONGEST_REASON = 300

FIRST_IS_SOURCE: dict[Relation, bool] = {"precedes": True, "feeds_into": True, "requires": False}
"""Relations that say which of two comes first, and whether that is the source."""

Triple = tuple[str, Relation, str]


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One edge as a model writes it."""

    source: str
    relation: Relation
    target: str
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)]
    reason: str = ""

    @property
    def triple(self) -> Triple:
        ends = sorted((self.source, self.target)) if self.relation in SYMMETRIC else (self.source, self.target)
        return ends[0], self.relation, ends[1]


class SourceShare(msgspec.Struct, frozen=True, kw_only=True):
    """What one source of candidates brought. ``only``: edges of pairs that no other source proposed.

    ``outside``: edges between skills of which neither is an embedding neighbour of the other; None without embeddings.
    """

    pairs: int
    edges: int
    only: int
    outside: int | None


class Census(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the claims: ``edges`` are kept, everything else was dropped and counted.

    ``pairs``: pairs with a claim that has a direction; ``one_way``, ``both_ways``: which way such claims point.
    """

    answers: int
    outdated: int
    claims: int
    invalid: int
    pairs: int
    one_way: int
    both_ways: int
    dropped_direction: int
    dropped_conflict: int
    dropped_cycle: int
    edges: int
    candidates: int
    sources: dict[str, SourceShare]


def llm_edges(
    catalogue: Catalogue, answers: Sequence[Answer], vectors: Mapping[str, Vector]
) -> tuple[list[Edge], Census]:
    """The layer and its census; of several answers about a skill the last one counts."""
    known = current(answers, catalogue)
    ordered = [known[skill_id] for skill_id in sorted(known)]
    claims, invalid = _claims(ordered, catalogue)
    told = _told(claims)
    agreed = {t: c for t, c in claims.items() if len(told.get((_pair(t), _family(t[1])), ())) < 2}
    pairs = {pair for pair, _ in told}
    two_way = {pair for (pair, _), firsts in told.items() if len(firsts) > 1}
    conflicting = _beside_a_conflict(agreed)
    peaceful = {t: c for t, c in agreed.items() if _pair(t) not in conflicting}
    cyclic = _cyclic(peaceful)
    edges = [_edge(t, said, known) for t, said in sorted(peaceful.items()) if t not in cyclic]
    census = Census(
        answers=sum(a.outcome == "answered" for a in ordered),
        outdated=len({a.skill_id for a in answers} - known.keys()),
        claims=sum(map(len, claims.values())) + invalid,
        invalid=invalid,
        pairs=len(pairs),
        one_way=len(pairs - two_way),
        both_ways=len(two_way),
        dropped_direction=len(claims) - len(agreed),
        dropped_conflict=len(agreed) - len(peaceful),
        dropped_cycle=len(cyclic),
        edges=len(edges),
        candidates=sum(e.status == "candidate" for e in edges),
        sources=_shares(edges, ordered, vectors),
    )
    return edges, census


def claims_of(answer: Answer) -> tuple[list[Claim], int]:
    """The well-formed claims of an answer about the pairs it was asked about, and how many others there are."""
    listed = answer.input.get("edges") if isinstance(answer.input, dict) else None
    found = [_claim(item) for item in listed] if isinstance(listed, list) else []
    good = [claim for claim in found if claim is not None and _was_asked(claim, answer)]
    return good, len(found) - len(good)


def _claim(item: Any) -> Claim | None:
    try:
        return msgspec.convert(item, Claim)
    except msgspec.ValidationError:
        return None


def _was_asked(claim: Claim, answer: Answer) -> bool:
    ends = {claim.source, claim.target}
    other = ends - {answer.skill_id}
    return answer.skill_id in ends and len(other) == 1 and other <= answer.candidates.keys()


def _claims(answers: Iterable[Answer], catalogue: Catalogue) -> tuple[dict[Triple, list[tuple[str, Claim]]], int]:
    """Triple -> (who was asked, claim); the invalid ones are counted, those about skills that are gone too."""
    claims: dict[Triple, list[tuple[str, Claim]]] = defaultdict(list)
    invalid = 0
    for answer in answers:
        if answer.outcome != "answered":
            continue
        good, bad = claims_of(answer)
        invalid += bad
        for claim in good:
            if {claim.source, claim.target} <= catalogue.skills.keys() and claim.relation != "similar_to":
                claims[claim.triple].append((answer.skill_id, claim))
            else:
                invalid += 1
    return claims, invalid


def _pair(triple: Triple) -> frozenset[str]:
    return frozenset((triple[0], triple[2]))


def _told(triples: Iterable[Triple]) -> dict[tuple[frozenset[str], str], set[str]]:
    """(pair, family of relations) -> the skills that are claimed to be the first of the two."""
    told: dict[tuple[frozenset[str], str], set[str]] = defaultdict(set)
    for triple in triples:
        source, relation, target = triple
        if relation not in SYMMETRIC:
            told[_pair(triple), _family(relation)].add(source if FIRST_IS_SOURCE.get(relation, True) else target)
    return dict(told)


def _family(relation: Relation) -> str:
    """Relations of one family contradict each other where they point in different directions."""
    return "order" if relation in FIRST_IS_SOURCE else relation


def _beside_a_conflict(triples: Iterable[Triple]) -> set[frozenset[str]]:
    """Pairs that have a conflict and a positive edge."""
    kinds: dict[frozenset[str], set[bool]] = defaultdict(set)
    for triple in triples:
        kinds[_pair(triple)].add(triple[1] == CONFLICT)
    return {pair for pair, found in kinds.items() if len(found) > 1}


def _cyclic(claims: Mapping[Triple, list[tuple[str, Claim]]]) -> set[Triple]:
    """What would close a cycle of its relation, the least confident first."""
    refused: set[Triple] = set()
    for relation in ACYCLIC:
        mine = sorted((t for t in claims if t[1] == relation), key=lambda t: (-_confidence(claims[t]), t))
        _, closing = acyclic([(source, target) for source, _, target in mine])
        refused |= {(source, relation, target) for source, target in closing}
    return refused


def _confidence(said: Iterable[tuple[str, Claim]]) -> float:
    return max(claim.confidence for _, claim in said)


def _edge(triple: Triple, said: list[tuple[str, Claim]], answers: Mapping[str, Answer]) -> Edge:
    asked, surest = max(said, key=lambda one: (one[1].confidence, one[0]))
    other = next(end for end in (triple[0], triple[2]) if end != asked)
    evidence = {
        "basis": "model",
        "model": answers[asked].model,
        "confidence": round(surest.confidence, 2),
        "reason": " ".join(surest.reason.split())[:LONGEST_REASON],
        "said_by": sorted({skill_id for skill_id, _ in said}),
        "proposed_by": answers[asked].candidates[other],
    }
    status: Status = "confirmed" if surest.confidence >= SURE else "candidate"
    return Edge(
        source=triple[0], relation=triple[1], target=triple[2], status=status, provenance="llm", evidence=evidence
    )


def _shares(edges: Iterable[Edge], answers: Iterable[Answer], vectors: Mapping[str, Vector]) -> dict[str, SourceShare]:
    proposed: dict[frozenset[str], set[str]] = defaultdict(set)
    for answer in answers:
        for other, sources in answer.candidates.items():
            proposed[frozenset((answer.skill_id, other))].update(sources)
    joined = Counter(frozenset((e.source, e.target)) for e in edges)
    near = _near(set().union(*joined), vectors) if vectors else None
    return {source: _share(source, proposed, joined, near) for source in SOURCES}


def _near(skills: set[str], vectors: Mapping[str, Vector]) -> set[frozenset[str]]:
    return {frozenset((a, b)) for a, found in neighbourhoods(vectors, skills).items() for b, _ in found}


def _share(
    source: str,
    proposed: Mapping[frozenset[str], set[str]],
    joined: Mapping[frozenset[str], int],
    near: set[frozenset[str]] | None,
) -> SourceShare:
    mine = {pair: number for pair, number in joined.items() if source in proposed[pair]}
    return SourceShare(
        pairs=sum(source in sources for sources in proposed.values()),
        edges=sum(mine.values()),
        only=sum(number for pair, number in mine.items() if proposed[pair] == {source}),
        outside=None if near is None else sum(number for pair, number in mine.items() if pair not in near),
    )
