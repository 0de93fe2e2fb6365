"""Judged pairs: how often each ranking puts the skill that people preferred above the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cowpath.interval import wilson
from ranker.engine import Ranker
from ranker.feedback import JudgedPair
from ranker.search import ARMS, MAX_K, Arm

Ranking = Callable[[JudgedPair], list[str]]


def agreement(ranker: Ranker, pairs: Sequence[JudgedPair]) -> dict[str, Any]:
    """The document of ``eval feedback``: per ranking n, right, wrong, undecided, and the share right of those decided.

    A pair is undecided where neither skill is among the first hundred. The interval is Wilson's, 95 %.
    """
    by_query = [pair for pair in pairs if pair.query is not None]
    by_skill = [pair for pair in pairs if pair.after is not None]
    rows: dict[str, dict[str, Any]] = {
        arm: judged(_search(ranker, arm), by_query) for arm in ARMS if not _without_meaning(ranker, arm)
    }
    if by_skill:
        rows["next"] = judged(lambda pair: _next(ranker, pair), by_skill)
    return {"pairs": len(pairs), "rankings": rows}


def judged(ranking: Ranking, pairs: Sequence[JudgedPair]) -> dict[str, Any]:
    """How one ranking agrees with the pairs; each pair counts once, however many said it."""
    right = wrong = 0
    for pair in pairs:
        found = ranking(pair)
        better, worse = (found.index(s) if s in found else MAX_K for s in (pair.better, pair.worse))
        right += better < worse
        wrong += worse < better
    decided = right + wrong
    return {
        "n": len(pairs),
        "right": right,
        "wrong": wrong,
        "undecided": len(pairs) - decided,
        "share": round(right / decided, 4) if decided else None,
        "interval": [round(bound, 4) for bound in wilson(right, decided)] if decided else None,
    }


def _search(ranker: Ranker, arm: Arm) -> Ranking:
    return lambda pair: [match.skill_id for match in ranker.search(pair.query or "", MAX_K, arm).matches]


def _next(ranker: Ranker, pair: JudgedPair) -> list[str]:
    return [one.skill_id for one in ranker.next([pair.after or ""], k=MAX_K).suggestions]


def _without_meaning(ranker: Ranker, arm: Arm) -> bool:
    """Whether an arm could not compare by meaning: then its row would be keyword's under another name."""
    return arm != "keyword" and ranker.search("a", 1, "hybrid").mode == "keyword"
