"""Keyword retrieval: BM25 over name, description and body (Robertson and Zaragoza 2009), by rank_bm25."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from cowpath.skill import Skill

# chosen on the skillmd set among name:description 1:1 to 5:1, with and without the plural rule;
# `cowpath eval retrieval --data .../skillmd` measures the choice
NAME_WEIGHT = 3
DESCRIPTION_WEIGHT = 1
BODY_WEIGHT = 1
BODY_WORDS = 300
"""A body says at its start what it is for; whole bodies would set every document's length."""

_STOP_TEXT = """
a about an and are as at be been but by can could did do does for from had has have he her his how i if in into is it
its just me my no not of on or our please she so than that the their them then there these they this to too us was
we were what when where which while who why will with would you your
"""
STOP_WORDS = frozenset(_STOP_TEXT.split())

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")


class Keywords:
    """BM25 over skills. A field's weight is how often its words are counted (one length for all fields)."""

    def __init__(self, skills: Iterable[Skill]) -> None:
        ordered = sorted(skills, key=lambda skill: skill.skill_id)
        documents = [document(skill) for skill in ordered]
        self.ids = [skill.skill_id for skill in ordered]
        self._words = {skill_id: frozenset(words) for skill_id, words in zip(self.ids, documents, strict=True)}
        # rank_bm25 divides by the number of documents and of words
        self._bm25 = BM25Okapi(documents) if any(documents) else None
        rows: dict[str, list[int]] = {}
        for row, skill_id in enumerate(self.ids):
            for word in self._words[skill_id]:
                rows.setdefault(word, []).append(row)
        self._rows = {word: np.array(found, dtype=np.int64) for word, found in rows.items()}

    def known(self, query: str) -> list[str]:
        """The query's words that any skill has, each once, in the query's order."""
        return [word for word in dict.fromkeys(words(query)) if word in self._rows]

    def rank(self, known: Sequence[str]) -> list[str]:
        """The skills that have a known word, best first.

        In a catalogue of a few skills rank_bm25's idf can be zero or negative, so equal values are
        ordered by the number of matched words, then by id.
        """
        matched = np.zeros(len(self.ids), dtype=np.int64)
        for word in known:
            matched[self._rows[word]] += 1
        hits = np.flatnonzero(matched)
        order = np.lexsort((hits, -matched[hits], -self.values(known, hits)))
        return [self.ids[row] for row in hits[order]]

    def values(self, known: Sequence[str], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """BM25 of some skills (places in ``ids``), exactly as rank_bm25 gives it."""
        if self._bm25 is None or not len(rows):
            return np.zeros(len(rows))
        return np.array(self._bm25.get_batch_scores(list(known), rows.tolist()))

    def matched(self, skill_id: str, known: Sequence[str]) -> list[str]:
        """Those of the words that this skill has."""
        return [word for word in known if word in self._words.get(skill_id, ())]


def document(skill: Skill) -> list[str]:
    """A skill as one bag of words, its fields repeated by their weight."""
    return (
        words(skill.name) * NAME_WEIGHT
        + words(skill.description) * DESCRIPTION_WEIGHT
        + words(skill.body)[:BODY_WORDS] * BODY_WEIGHT
    )


def words(text: str) -> list[str]:
    """Lower-case singular words; ``-``, ``_``, ``.``, ``:`` and humps part them; stop words are left out."""
    parted = _HUMP.sub(" ", unicodedata.normalize("NFKC", text))
    return [_singular(word) for word in _WORD.findall(parted.casefold()) if word not in STOP_WORDS]


def _singular(word: str) -> str:
    """The plural rules of Harman (1991), "How effective is suffixing?": ies -> y, es -> e, s -> nothing."""
    if len(word) > 4 and word.endswith("ies") and word[-4] not in "ea":
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("es") and word[-3] not in "aeo":
        return word[:-1]
    if len(word) > 3 and word.endswith("s") and word[-2] not in "us":
        return word[:-1]
    return word
