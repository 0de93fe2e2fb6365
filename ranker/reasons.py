"""Why a skill is suggested: tested edges, direct follows, the model's parts, likeness; as data and as words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from cowpath.edge import SYMMETRIC, Edge
from cowpath.next_model import NextModel
from ranker.graph import CONFLICT, SkillGraph

NEVER_BACKWARDS = frozenset({"precedes", "feeds_into", "routes_to"})
"""Relations that speak for the target after the source, and not the other way round."""


class EdgeReason(msgspec.Struct, frozen=True, kw_only=True):
    """An edge between a skill of the context and the suggested one, with its evidence in short.

    ``forward`` of ``sessions`` had the source first; ``share`` is that after no actor counted for
    more than a few, ``lower`` its lower bound; ``lift`` is observed over expected sessions.
    """

    source: str
    relation: str
    target: str
    status: str
    provenance: str
    sessions: int | None = None
    forward: int | None = None
    share: float | None = None
    lower: float | None = None
    lift: float | None = None
    single_actor: bool = False


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """How often the suggestion was called directly after the current skill."""

    after: str
    times: int


class Similar(msgspec.Struct, frozen=True, kw_only=True):
    """A skill with history that a skill without history resembles."""

    skill_id: str
    resembles: str
    cosine: float


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that speaks for one suggestion. ``parts``: each model part's share of its probability."""

    words: list[str]
    edges: list[EdgeReason]
    followed: Followed | None
    parts: dict[str, float]
    similar: list[Similar]
    search_rank: int | None = None


def edge_reasons(context: Sequence[str], skill_id: str, graph: SkillGraph) -> list[EdgeReason]:
    """The edges that speak for a skill after this context, those of the latest skill first."""
    latest_first = dict.fromkeys(reversed(context))
    found = [edge for other in latest_first for edge in graph.between(other, skill_id)]
    return [_edge_reason(edge) for edge in found if edge.relation != CONFLICT and _speaks_for(edge, skill_id)]


def part_shares(prefix: Sequence[str], skill_id: str, model: NextModel) -> dict[str, float]:
    """Each model part's share of a skill's probability, largest first; under one percent is left out."""
    known = {*model.skills, *model.new_skills}
    if skill_id not in model.skills or (prefix and prefix[-1] not in known):
        return {}
    place = model.skills.index(skill_id)
    parts = model.parts(prefix)
    carried = {name: weight * float(parts[name][place]) for name, weight in model.weights(prefix).items()}
    total = sum(carried.values())
    shares = {name: round(value / total, 3) for name, value in carried.items() if total and value / total >= 0.01}
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))


def in_words(reason: Reason) -> list[str]:
    """The reasons as plain sentences, the strongest kind first; never empty."""
    sentences = [edge_words(edge) for edge in reason.edges]
    if reason.followed:
        times = "once" if reason.followed.times == 1 else f"{reason.followed.times} times"
        sentences.append(f"called directly after {reason.followed.after} {times}")
    sentences.extend(
        f"{s.skill_id} has no history yet; its description is close to that of {s.resembles} (cosine {s.cosine:.2f})"
        for s in reason.similar[:1]
    )
    if reason.search_rank is not None:
        sentences.append(f"number {reason.search_rank} for the query")
    return sentences or ["the model's estimate alone; no tested edge says so"]


def edge_words(edge: EdgeReason) -> str:
    """One edge as a sentence. What no second actor confirms is told as that, and a candidate as not proven."""
    pair = f"{edge.source} {edge.relation.replace('_', ' ')} {edge.target}"
    if edge.provenance != "learned":
        return f"{pair} ({edge.provenance})"
    return " ".join([pair, *_proof(edge)]).rstrip() + _modesty(edge)


def _proof(edge: EdgeReason) -> Iterable[str]:
    if edge.relation == "precedes" and edge.forward is not None and edge.sessions is not None:
        yield f"in {edge.forward} of {edge.sessions} sessions with both"
        if edge.lower is not None:
            yield f"(share at least {edge.lower:.2f})"
    elif edge.sessions is not None:
        yield f"in {edge.sessions} sessions, no fixed order"
    if edge.lift is not None:
        yield f"- together {edge.lift:.1f} times as often as by chance"


def _modesty(edge: EdgeReason) -> str:
    doubts = ["a candidate, not proven"] if edge.status == "candidate" else []
    doubts += ["no second actor confirms it"] if edge.single_actor else []
    return f" ({'; '.join(doubts)})" if doubts else ""


def _speaks_for(edge: Edge, skill_id: str) -> bool:
    return edge.relation in SYMMETRIC or edge.relation not in NEVER_BACKWARDS or edge.target == skill_id


def _edge_reason(edge: Edge) -> EdgeReason:
    evidence = edge.evidence
    return EdgeReason(
        source=edge.source,
        relation=edge.relation,
        target=edge.target,
        status=edge.status,
        provenance=edge.provenance,
        sessions=evidence.get("sessions"),
        forward=evidence.get("forward"),
        share=evidence.get("share"),
        lower=evidence.get("lower"),
        lift=evidence.get("lift"),
        single_actor=bool(evidence.get("single_actor", False)),
    )
