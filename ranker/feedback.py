"""Feedback: somebody says that for a query, or after a skill, one skill should stand above another.

It is kept and can be listed, and evaluation reads it as judged pairs. It moves no ranking by itself.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cowpath.errors import BadFile, CowpathError, InputError, StateError
from cowpath.event import derived_id, utc_now
from cowpath.home import make_folder
from cowpath.settings import Settings
from cowpath.skill import Catalogue, read_catalogue, unknown_skill

log = logging.getLogger("cowpath.ranker")

MAX_TEXT = 2_000
MAX_BYTES = 64 * 2**20
"""Past this much feedback nobody reads it any more, and more is refused."""

Text = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT, pattern=r"\S")]
Name = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"\S")]


class FeedbackRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For this query, or after this skill, ``better`` should stand above ``worse``. Exactly one of the two is given.

    ``key`` makes a repeat harmless; without one, equal words are one statement.
    """

    better: Annotated[Name, Meta(description="the skill that should stand higher")]
    worse: Annotated[Name, Meta(description="the skill that should stand lower")]
    query: Annotated[Text | None, Meta(description="the request in words that it is about")] = None
    after: Annotated[Name | None, Meta(description="the skill called before, that it is about")] = None
    key: Annotated[Name | None, Meta(description="idempotency key: the same key is kept once")] = None


class Feedback(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One statement as it is kept. Skills are ids of the catalogue."""

    key: str
    better: str
    worse: str
    query: str | None = None
    after: str | None = None
    stored_at: str = ""
    source: str = ""


class FeedbackAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a statement. ``reason`` says why nothing was stored."""

    stored: bool
    duplicate: bool
    key: str | None
    reason: str | None = None


class JudgedPair(msgspec.Struct, frozen=True, kw_only=True):
    """What the statements about two skills in one place come to: more are ``votes`` than ``against``."""

    better: str
    worse: str
    votes: int
    against: int
    query: str | None = None
    after: str | None = None


def give(settings: Settings, asked: FeedbackRequest, *, source: str) -> FeedbackAnswer:
    """Keep a statement. Raises InputError where it says nothing, UnknownSkill for a name, StateError for the disk."""
    stated = _stated(asked, read_catalogue(settings.at.catalogue), source)
    path = settings.at.feedback
    try:
        make_folder(path.parent)
        fresh = _append(path, stated)
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from error
    return FeedbackAnswer(stored=fresh, duplicate=not fresh, key=stated.key)


def give_quietly(settings: Settings, asked: FeedbackRequest, *, source: str) -> FeedbackAnswer:
    """Like ``give``, but what goes wrong is told in the answer: no agent stops its work for an opinion."""
    try:
        return give(settings, asked, source=source)
    except CowpathError as error:
        log.warning("feedback was not stored: %s", error.message)
        return FeedbackAnswer(stored=False, duplicate=False, key=asked.key, reason=error.message)


def read_feedback(settings: Settings) -> list[Feedback]:
    """All statements, oldest first; empty where nobody said anything."""
    path = settings.at.feedback
    return list(_lines(path, path.read_bytes())) if path.exists() else []


def judged_pairs(given: Iterable[Feedback]) -> list[JudgedPair]:
    """One pair for each place and two skills; where as many say the one as the other, none."""
    votes = Counter((f.query or "", f.after or "", f.better, f.worse) for f in given)
    pairs = []
    for (query, after, better, worse), count in sorted(votes.items()):
        against = votes.get((query, after, worse, better), 0)
        if count > against:
            pair = JudgedPair(
                better=better, worse=worse, votes=count, against=against, query=query or None, after=after or None
            )
            pairs.append(pair)
    return pairs


def _stated(asked: FeedbackRequest, catalogue: Catalogue, source: str) -> Feedback:
    if (asked.query is None) == (asked.after is None):
        raise InputError("feedback is about a query or about what comes after a skill; say one of the two")
    better, worse = (_known(name, catalogue) for name in (asked.better, asked.worse))
    after = None if asked.after is None else _known(asked.after, catalogue)
    if better == worse:
        raise InputError(f"{better} cannot stand above itself; name two skills")
    key = asked.key or derived_id("feedback", asked.query, after, better, worse)
    stored_at = utc_now().isoformat(timespec="seconds")
    return Feedback(
        key=key, better=better, worse=worse, query=asked.query, after=after, stored_at=stored_at, source=source
    )


def _known(name: str, catalogue: Catalogue) -> str:
    skill_id = catalogue.resolve(name)
    if skill_id not in catalogue:
        raise unknown_skill(name, sorted(catalogue.alias_of))
    return skill_id


def _append(path: Path, stated: Feedback) -> bool:
    """Whether the statement was new; then it is on disk. Several processes may do this at once."""
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        kept = file.read()
        if len(kept) > MAX_BYTES:
            raise StateError(
                f"{path} holds {len(kept)} bytes of feedback; more is not taken", suggestions=[f"mv {path}"]
            )
        for earlier in _lines(path, kept):
            if earlier.key == stated.key:
                _same(earlier, stated)
                return False
        file.write(msgspec.json.encode(stated) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return True


def _same(earlier: Feedback, stated: Feedback) -> None:
    about: tuple[Literal["better", "worse", "query", "after"], ...] = ("better", "worse", "query", "after")
    if any(getattr(earlier, name) != getattr(stated, name) for name in about):
        raise InputError(f"the key {stated.key!r} was used for another statement; use a new one")


def _lines(path: Path, data: bytes) -> Iterable[Feedback]:
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            yield msgspec.json.decode(line, type=Feedback)
        except msgspec.MsgspecError as error:
            raise BadFile(f"{path}, line {number}: {error}", suggestions=[f"mv {path} {path}.broken"]) from error
