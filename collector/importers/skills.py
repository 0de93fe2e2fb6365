"""JSON lines -> catalogue: one skill a line, ``skill_id, name, description, tags?, ...``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from cowpath.home import Home
from cowpath.skill import Catalogue, Diagnostic, Skill, recover_catalogue, text_hash, write_catalogue

FIELDS = frozenset(
    {"skill_id", "name", "description", "body", "aliases", "tags", "related", "requires", "scope", "plugin", "listed"}
)


class MergeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a merge did. ``kept`` skills come from a synchronised file, which says more than a line."""

    skills: int
    added: int
    changed: int
    unchanged: int
    kept: int
    skipped: int
    diagnostics: list[Diagnostic]


def merge_skills(lines: Iterable[bytes], home: Home) -> MergeReport:
    """Put the skills of a catalogue file into the catalogue; lines that are no skill are skipped with an error."""
    catalogue, broken = recover_catalogue(home.catalogue)
    skills = dict(catalogue.skills)
    counts = {"added": 0, "changed": 0, "unchanged": 0, "kept": 0, "skipped": 0}
    diagnostics = [*broken]
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        skill = _skill(line)
        if isinstance(skill, str):
            counts["skipped"] += 1
            diagnostics.append(Diagnostic(level="error", code="bad_line", message=f"line {number}: {skill}"))
            continue
        known = skills.get(skill.skill_id)
        fate = _fate(skill, known)
        counts[fate] += 1
        if fate != "kept":
            skills[skill.skill_id] = _with_history(skill, known)
    merged = Catalogue(skills.values())
    write_catalogue(home.catalogue, merged)
    return MergeReport(skills=len(merged), diagnostics=diagnostics, **counts)


def _fate(skill: Skill, known: Skill | None) -> str:
    if known is None:
        return "added"
    if known.path:
        return "kept"
    return "unchanged" if _with_history(skill, known) == known else "changed"


def _with_history(skill: Skill, known: Skill | None) -> Skill:
    """The skill with every alias it ever had."""
    aliases = {*skill.aliases, *(known.aliases if known else ())} - {skill.skill_id}
    return msgspec.structs.replace(skill, aliases=tuple(sorted(aliases)))


def _skill(line: bytes) -> Skill | str:
    """The skill of a line, or what is wrong with the line."""
    try:
        row = msgspec.json.decode(line, type=dict[str, Any])
        values = {key: value for key, value in row.items() if key in FIELDS and value is not None}
        metadata = {key: value for key, value in row.items() if key not in FIELDS}
        values.setdefault("name", values.get("skill_id"))
        skill = msgspec.convert({**values, "metadata": metadata}, Skill)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return str(error)
    if not skill.skill_id.strip():
        return "the skill_id is empty"
    words = "\0".join((skill.name, skill.description, skill.body))
    return msgspec.structs.replace(skill, content_hash=text_hash(words))
