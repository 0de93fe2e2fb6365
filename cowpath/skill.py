"""A skill, and the catalogue: the skills an installation knows, one JSON object a line."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from cowpath.errors import BadFile, UnknownSkill
from cowpath.home import set_aside, write_whole


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """Something noticed about a skill file. ``level``: warning (loaded) or error (skipped)."""

    level: str
    code: str
    message: str
    path: str = ""


class Skill(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One capability. ``skill_id`` is what agents call it by; ``aliases`` are its other names."""

    skill_id: str
    name: str
    description: str = ""
    body: str = ""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    scope: str = ""
    plugin: str = ""
    path: str = ""
    content_hash: str = ""
    listed: bool = True
    metadata: Mapping[str, Any] = {}
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def text(self) -> str:
        """What the sentence encoder reads: name and description."""
        return f"{self.name}. {self.description}" if self.description else self.name


def text_hash(text: str) -> str:
    """sha256 of a text in hex: the key of the embedding cache and of content equality."""
    return hashlib.sha256(text.encode()).hexdigest()


class Catalogue:
    """The known skills in id order, with the alias table that resolves raw names."""

    def __init__(self, skills: Iterable[Skill] = ()) -> None:
        self.skills: dict[str, Skill] = {s.skill_id: s for s in sorted(skills, key=lambda s: s.skill_id)}

    def __len__(self) -> int:
        return len(self.skills)

    def __contains__(self, skill_id: object) -> bool:
        return skill_id in self.skills

    @cached_property
    def alias_of(self) -> dict[str, str]:
        """Raw name -> skill id. An id always means itself; an alias two skills claim means neither."""
        claims: dict[str, set[str]] = {}
        for skill in self.skills.values():
            for alias in skill.aliases:
                claims.setdefault(alias, set()).add(skill.skill_id)
        one = {alias: ids.pop() for alias, ids in sorted(claims.items()) if len(ids) == 1}
        return one | {skill_id: skill_id for skill_id in self.skills}

    def resolve(self, name: str) -> str:
        """The skill id behind a raw name; a name nobody claims stands for itself."""
        return self.alias_of.get(name, name)


def read_catalogue(path: Path) -> Catalogue:
    """The catalogue at ``path``; a missing file is an empty catalogue."""
    if not path.exists():
        return Catalogue()
    skills = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            skills.append(msgspec.json.decode(line, type=Skill))
        except msgspec.MsgspecError as error:
            raise BadFile(f"{path}, line {number}: {error}; run 'cowpath catalogue sync' to write it anew") from error
    return Catalogue(skills)


def recover_catalogue(path: Path) -> tuple[Catalogue, tuple[Diagnostic, ...]]:
    """The catalogue for whoever writes it anew: a file that cannot be read is set aside, and that is said."""
    try:
        return read_catalogue(path), ()
    except BadFile as error:
        kept = set_aside(path)
        said = f"{error.message.split(';')[0]}; it was set aside as {kept.name} and the catalogue begun anew"
        return Catalogue(), (Diagnostic(level="error", code="unreadable_catalogue", message=said, path=str(path)),)


def write_catalogue(path: Path, catalogue: Catalogue) -> None:
    """Write the whole catalogue, sorted by id; equal skills give equal bytes."""
    lines = [msgspec.json.encode(skill, order="deterministic") + b"\n" for skill in catalogue.skills.values()]
    write_whole(path, b"".join(lines))


def unknown_skill(name: str, known: Iterable[str]) -> UnknownSkill:
    """The error for a name nobody knows, with the nearest known names."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    shown = name if len(name) <= 80 else f"{name[:77]}..."
    return UnknownSkill(f"no skill {shown!r}{hint}", suggestions=near)
