"""Which pairs a language model is asked about: not only embedding neighbours, whose graph knows what they know."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations

import msgspec

from cowpath.edge import Edge, read_layer
from cowpath.settings import Settings
from cowpath.skill import Catalogue
from cowpath.vectors import NEAREST, read_vectors, skill_vectors
from ranker.declared import declared
from ranker.mentions import mentions
from ranker.neighbours import similar
from ranker.two_views import need_pairs

Pair = tuple[str, str]

SOURCES = ("declared", "mention", "learned", "need", "co_mention", "neighbour")
"""Where a candidate comes from, the surest first."""

MOST_EACH = NEAREST
MOST_NAMED = 12
"""A body that names more skills is an index, and says little about any two of them."""


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """Skill id -> other skill -> the sources that propose the pair. ``missing`` says what gave nothing, and why."""

    of: dict[str, dict[str, list[str]]]
    missing: dict[str, str]


def candidates(catalogue: Catalogue, needs: Mapping[str, str], settings: Settings) -> Candidates:
    """For every skill at most eight others by each source, the best founded first."""
    named = mentions(catalogue)
    needed, why = need_pairs(catalogue, needs, settings)
    learned = [e for e in read_layer(settings.at.edges, "learned") if {e.source, e.target} <= catalogue.skills.keys()]
    alike = similar(skill_vectors(catalogue, read_vectors(settings.at.embeddings)))
    pairs: dict[str, dict[Pair, float]] = {
        "declared": _weights(declared(catalogue)),
        "mention": _weights(named, "sentences"),
        "learned": _weights(learned, "z"),
        "need": needed,
        "co_mention": _named_together(named),
        "neighbour": _weights(alike, "cosine"),
    }
    found: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for source in SOURCES:
        for skill_id, others in _best(pairs[source]).items():
            for other in others:
                found[skill_id].setdefault(other, []).append(source)
    reasons = {"need": why, "neighbour": None if alike else "no embeddings: cowpath mine makes them"}
    return Candidates(of=dict(found), missing={source: reason for source, reason in reasons.items() if reason})


def _weights(edges: Iterable[Edge], key: str = "") -> dict[Pair, float]:
    return {(e.source, e.target): float(e.evidence.get(key) or 0.0) for e in edges}


def _named_together(named: Iterable[Edge]) -> dict[Pair, float]:
    """How many bodies name both skills of a pair."""
    by_body: dict[str, list[str]] = defaultdict(list)
    for edge in named:
        by_body[edge.source].append(edge.target)
    counted: dict[Pair, float] = defaultdict(float)
    for others in by_body.values():
        for pair in combinations(sorted(others), 2) if len(others) <= MOST_NAMED else ():
            counted[pair] += 1
    return counted


def _best(weights: Mapping[Pair, float]) -> dict[str, list[str]]:
    """The heaviest pairs of each skill, told from both its ends."""
    both: dict[str, dict[str, float]] = defaultdict(dict)
    for (a, b), weight in weights.items():
        for one, other in ((a, b), (b, a)):
            both[one][other] = max(weight, both[one].get(other, weight))
    return {one: sorted(others, key=lambda o: (-others[o], o))[:MOST_EACH] for one, others in both.items()}
