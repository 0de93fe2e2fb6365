"""Declined: skills that somebody does not want to be told of unasked, in one session or at all."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from cowpath.errors import BadFile, StateError
from cowpath.home import make_folder, write_whole
from cowpath.settings import Settings
from cowpath.skill import read_catalogue, unknown_skill
from ranker.advice import session_digest

MOST_SESSIONS = 10_000
"""What single sessions declined is forgotten past so many, the oldest first; they ended long ago."""

Name = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"\S")]


class DismissRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Do not tell of ``skill`` unasked, in ``session`` or, without one, in any; ``undo`` takes that back."""

    skill: Name
    session: Name | None = None
    undo: bool = False


class DismissAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What is declined now: whether this skill is, and every skill that is declined for all sessions."""

    skill: str
    declined: bool
    everywhere: list[str]


class Declined(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line at rest. ``session`` is a keyed hash; empty means every session."""

    skill: str
    session: str = ""


def dismiss(settings: Settings, asked: DismissRequest) -> DismissAnswer:
    """Remember or forget a refusal. Raises UnknownSkill for a name, StateError where it cannot be written."""
    catalogue = read_catalogue(settings.at.catalogue)
    skill = catalogue.resolve(asked.skill)
    if skill not in catalogue:
        raise unknown_skill(asked.skill, sorted(catalogue.alias_of))
    line = Declined(skill=skill, session=session_digest(asked.session, settings) if asked.session else "")
    with _alone(settings.at.declined):
        kept = [known for known in read_declined(settings) if known != line]
        kept += [] if asked.undo else [line]
        _write(settings.at.declined, kept)
    everywhere = sorted(one.skill for one in kept if not one.session)
    return DismissAnswer(skill=skill, declined=not asked.undo, everywhere=everywhere)


def read_declined(settings: Settings) -> list[Declined]:
    """Everything that is declined, in the order in which it was."""
    path = settings.at.declined
    if not path.exists():
        return []
    try:
        return [msgspec.json.decode(line, type=Declined) for line in path.read_bytes().splitlines()]
    except msgspec.MsgspecError as error:
        raise BadFile(f"{path} is not a file of declined skills: {error}", suggestions=[f"rm {path}"]) from error


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock beside the file, which is renamed into place and so cannot be locked itself."""
    try:
        make_folder(path.parent)
        with path.with_suffix(".lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from error


def _write(path: Path, kept: list[Declined]) -> None:
    of_sessions = [one for one in kept if one.session][-MOST_SESSIONS:]
    lines = [msgspec.json.encode(one) + b"\n" for one in (*(one for one in kept if not one.session), *of_sessions)]
    write_whole(path, b"".join(lines), mode=0o600)
