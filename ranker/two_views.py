"""Two views of a skill: what it does (name and description) and what it needs."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from cowpath.errors import ModelMissing
from cowpath.settings import Settings
from cowpath.skill import Catalogue, Skill, text_hash
from cowpath.vectors import NEAREST, Vector, read_vectors, skill_vectors, write_vectors
from ranker.encoder import Encoder

LONGEST_NEED = 1_000
NEED_FLOOR = 0.4
"""A need and what would serve it share fewer words than two skills that do the same, so less than ``vectors.FLOOR``."""

HEADING = re.compile(r"^#+[ \t]*(?P<title>.+?)[ \t]*#*$", re.MULTILINE)
NEEDS = re.compile(r"\b(prerequisites?|requirements?|requires|depends|dependencies|before you (?:start|begin))\b", re.I)


def needs_of(skill: Skill, generated: Mapping[str, str]) -> str:
    """What a skill needs: as a language model put it, else the body's own section on prerequisites; or nothing."""
    return generated.get(skill.skill_id) or prerequisites(skill.body)


def prerequisites(body: str) -> str:
    """The text of the first section whose heading tells of prerequisites."""
    heads = list(HEADING.finditer(body))
    ends = [*(head.start() for head in heads[1:]), len(body)]
    for head, end in zip(heads, ends, strict=False):  # without a heading there is one end too many
        if NEEDS.search(head["title"]):
            return " ".join(body[head.end() : end].split())[:LONGEST_NEED]
    return ""


def need_pairs(
    catalogue: Catalogue, generated: Mapping[str, str], settings: Settings
) -> tuple[dict[tuple[str, str], float], str | None]:
    """(needing, serving) -> cosine of the one's need and what the other does; and why there are none, where so."""
    needs = {s.skill_id: text for s in catalogue.skills.values() if (text := needs_of(s, generated))}
    does = skill_vectors(catalogue, read_vectors(settings.at.embeddings))
    if not needs or not does:
        return {}, "no skill tells what it needs" if does else "no embeddings: cowpath mine makes them"
    try:
        vectors = _embedded(needs, settings)
    except ModelMissing as error:
        return {}, error.message
    names = sorted(does)
    cosines = np.stack([vectors[n] for n in needs]) @ np.stack([does[n] for n in names]).T
    found: dict[tuple[str, str], float] = {}
    for needing, row in zip(needs, cosines, strict=True):
        others = [i for i in np.argsort(-row, kind="stable")[: NEAREST + 1] if names[i] != needing]
        found |= {(needing, names[i]): float(row[i]) for i in others[:NEAREST] if row[i] >= NEED_FLOOR}
    return found, None


def _embedded(needs: Mapping[str, str], settings: Settings) -> dict[str, Vector]:
    """Skill id -> unit vector of its need, from a cache by text hash."""
    folder = settings.at.embeddings / "needs"
    cache = read_vectors(folder)
    missing = {h: text for text in needs.values() if (h := text_hash(text)) not in cache}
    if missing:
        encoder = Encoder.open(settings.at.embeddings)
        cache |= dict(zip(missing, encoder.encode(list(missing.values())), strict=True))
        write_vectors(folder, cache)
    return {skill_id: cache[text_hash(text)] for skill_id, text in needs.items()}
