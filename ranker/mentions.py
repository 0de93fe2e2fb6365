"""Edges from instructions: a body that names another skill sends its reader there."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from cowpath.edge import Edge
from cowpath.skill import Catalogue, Skill
from ranker.declared import resolve_beside

LONGEST_SENTENCE = 240

SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
WORD = re.compile(
    r"""(?:(?P<path>skills/|\.\./)|(?<![\w./:-])(?P<mark>skill:|[`"“*/\[])?)  # a link's path, or where a word begins
        (?P<name>\w(?:[\w:-]*\w)?)
        (?![\w-]|\.\w)                                                      # a whole word, no file's stem
        (?P<after>\s+skill\b)?""",
    re.VERBOSE,
)
PLAIN = re.compile(r"[A-Za-z]+")
"""A name that may be any word of English; it counts only where it is marked as a name."""


def mentions(catalogue: Catalogue) -> list[Edge]:
    """``routes_to`` for every skill that another one's body names, with the first sentence that does."""
    phrases = _phrases(catalogue)
    return [edge for skill in catalogue.skills.values() for edge in _edges_of(skill, catalogue, phrases)]


def _edges_of(skill: Skill, catalogue: Catalogue, phrases: dict[str, list[str]]) -> Iterator[Edge]:
    sentences: dict[str, list[str]] = defaultdict(list)
    for sentence in SENTENCE_END.split(skill.body):
        for other in dict.fromkeys(_skills_in(sentence, skill, catalogue, phrases)):
            sentences[other].append(sentence)
    for other, found in sorted(sentences.items()):
        yield Edge(
            source=skill.skill_id,
            relation="routes_to",
            target=other,
            status="confirmed",
            provenance="derived",
            evidence={"basis": "body", "sentence": _shown(found[0]), "sentences": len(found)},
        )


def _skills_in(sentence: str, skill: Skill, catalogue: Catalogue, phrases: dict[str, list[str]]) -> Iterator[str]:
    """The other skills that a sentence names, as often as it does."""
    for word in WORD.finditer(sentence):
        name = next(
            (p for p in phrases.get(word["name"], ()) if _stands(p, sentence, word.start("name"))), word["name"]
        )
        marked = word["path"] or word["mark"] or word["after"] or not PLAIN.fullmatch(name)
        other = resolve_beside(catalogue, skill, name) if marked else None
        if other is not None and other != skill.skill_id:
            yield other


def _phrases(catalogue: Catalogue) -> dict[str, list[str]]:
    """First word -> the names of several words that begin with it, longest first."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in sorted(catalogue.alias_of, key=lambda name: (-len(name), name)):
        first = WORD.match(name)
        if " " in name and first:
            found[first["name"]].append(name)
    return dict(found)


def _stands(phrase: str, sentence: str, start: int) -> bool:
    """Whether the phrase stands at ``start`` and ends with a word."""
    end = start + len(phrase)
    return sentence.startswith(phrase, start) and not sentence[end : end + 1].isalnum()


def _shown(sentence: str) -> str:
    text = " ".join(sentence.split())
    return text if len(text) <= LONGEST_SENTENCE else f"{text[: LONGEST_SENTENCE - 3]}..."
