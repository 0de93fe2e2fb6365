"""Libraries of SKILL.md files -> the catalogue: which skill has which id, what became of it, nothing silently."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from collector.library import MOST_DIRECTORIES, Found, Link, walk
from collector.skillmd import Reading, read_skill
from cowpath.errors import BadFile
from cowpath.home import Home
from cowpath.skill import Catalogue, Diagnostic, Skill, recover_catalogue, text_hash, write_catalogue

GENERIC = frozenset({"skills", ".claude", ".agents", ".codex", ".cursor", "plugins", "marketplaces"})
"""Folder names that tell nothing about whose skills lie in them."""


class Rename(msgspec.Struct, frozen=True):
    old: str
    new: str


class Alias(msgspec.Struct, frozen=True):
    """A second place of a skill: ``name`` is what agents call it by there."""

    name: str
    skill_id: str
    path: str


class SyncReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a synchronisation did. ``kept`` counts the skills of other origins, which it leaves alone."""

    directories: int
    files: int
    skills: int
    added: list[str]
    changed: list[str]
    removed: list[str]
    renamed: list[Rename]
    aliases: list[Alias]
    unchanged: int
    kept: int
    skipped: int
    warnings: int
    diagnostics: list[Diagnostic]


def sync(directories: Sequence[Path], home: Home, *, most_directories: int = MOST_DIRECTORIES) -> SyncReport:
    """Bring the catalogue to what lies under the directories; where two claim a name, the earlier directory wins.

    A skill that vanished from these directories is removed; one that came back under another name keeps its
    old name as an alias, so that its history goes on counting. Skills of other origins stay.
    """
    roots = [_existing(directory) for directory in directories]
    before, broken = recover_catalogue(home.catalogue)
    library = walk(roots, most_directories=most_directories)
    shelf = _Shelf(skill for skill in before.skills.values() if _is_elsewhere(skill, roots))
    for found in library.found:
        shelf.put(found, _read(found))
    for link in library.links:
        shelf.link(link)
    renamed = _renames(before, shelf)
    after = _with_aliases(before, shelf, renamed)
    write_catalogue(home.catalogue, after)
    return _report(before, after, shelf, renamed, library.directories, [*broken, *library.diagnostics])


def _existing(directory: Path) -> Path:
    root = directory.expanduser()
    if not root.is_dir():
        raise BadFile(f"there is no directory {directory}; nothing was changed")
    return root.resolve()


def _is_elsewhere(skill: Skill, roots: Sequence[Path]) -> bool:
    return not any(Path(skill.path).is_relative_to(root) for root in roots)


def _read(found: Found) -> Reading:
    try:
        data = found.path.read_bytes()
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        return Reading(None, (Diagnostic(level="error", code="unreadable", message=message, path=str(found.path)),))
    return read_skill(data, directory=found.directory, path=str(found.path), plugin=found.plugin, scope=_scope(found))


def _scope(found: Found) -> str:
    """Whose skill it is, as far as its place tells: plugin, personal, project or library."""
    if found.plugin:
        return "plugin"
    agents = [part for part in found.root.parts if part in {".claude", ".agents", ".codex"}]
    if found.root.parent.parent == Path.home().resolve() and agents:
        return "personal"
    return "project" if agents else "library"


class _Shelf:
    """The catalogue as it grows: who holds an id, where each content lies, which other names it goes by."""

    def __init__(self, elsewhere: Iterable[Skill]) -> None:
        self.kept: dict[str, Skill] = {}
        self.lost: dict[str, Skill] = {}
        self.skills: dict[str, Skill] = {}
        self.aliases: list[Alias] = []
        self.diagnostics: list[Diagnostic] = []
        self.files = 0
        self.skipped = 0
        self._by_content: dict[str, str] = {}
        self._by_path: dict[str, str] = {}
        for skill in elsewhere:
            if skill.path and Path(skill.path).exists():
                self.kept[skill.skill_id] = skill
                self._by_content[skill.content_hash] = skill.skill_id
            else:
                self.lost[skill.skill_id] = skill

    def put(self, found: Found, reading: Reading) -> None:
        """Take in one file: as a skill of its own, or as one more name of a skill with the same content."""
        self.files += 1
        self.diagnostics.extend(reading.diagnostics)
        if reading.skill is None:
            self.skipped += 1
            return
        skill = reading.skill
        twin = self._by_content.get(skill.content_hash)
        if twin is not None:
            self._by_path[skill.path] = twin
            self._alias(skill.skill_id, twin, skill.path)
            self._warn(
                "same_content", f"the same skill as {twin!r}; {skill.skill_id!r} is another name of it", skill.path
            )
            return
        if skill.skill_id in self.skills or skill.skill_id in self.kept:
            skill = self._shadowed(skill, found)
        self.skills[skill.skill_id] = skill
        self._by_content[skill.content_hash] = skill.skill_id
        self._by_path[skill.path] = skill.skill_id

    def _shadowed(self, skill: Skill, found: Found) -> Skill:
        """The skill under a qualified id, with a warning on it and on the one that holds the plain id."""
        name, label, number = skill.skill_id, _label(found), 1
        qualified = f"{name}@{label}"
        while qualified in self.skills or qualified in self.kept:
            number += 1
            qualified = f"{name}@{label}-{number}"
        holders = self.skills if name in self.skills else self.kept
        first = holders[name]
        shadowed = self._warn("shadowed", f"{first.path} holds the name {name!r}; this is {qualified!r}", skill.path)
        shadows = self._warn("shadows", f"{skill.path} has the name {name!r} too; it is {qualified!r}", first.path)
        holders[name] = msgspec.structs.replace(first, diagnostics=_merged(first.diagnostics, shadows))
        return msgspec.structs.replace(skill, skill_id=qualified, diagnostics=_merged(skill.diagnostics, shadowed))

    def link(self, link: Link) -> None:
        """A link to a skill's directory is one more name of that skill."""
        skill_id = self._by_path.get(str(link.target.path))
        if skill_id is not None:
            name = unicodedata.normalize("NFC", link.path.name)
            plugin = link.target.plugin
            self._alias(f"{plugin}:{name}" if plugin else name, skill_id, str(link.path))

    def settled(self) -> dict[str, Skill]:
        """Every skill: those found, those kept, and those whose files are away but that nothing replaced."""
        away = {
            skill_id: skill
            for skill_id, skill in self.lost.items()
            if skill_id not in self.skills and (not skill.path or skill.content_hash not in self._by_content)
        }
        return {**away, **self.kept, **self.skills}

    def holder_of(self, content_hash: str) -> str | None:
        return self._by_content.get(content_hash)

    def _alias(self, name: str, skill_id: str, path: str) -> None:
        self.aliases.append(Alias(name, skill_id, path))

    def _warn(self, code: str, message: str, path: str) -> Diagnostic:
        warning = Diagnostic(level="warning", code=code, message=message, path=path)
        self.diagnostics.append(warning)
        return warning


def _merged(diagnostics: Sequence[Diagnostic], new: Diagnostic) -> tuple[Diagnostic, ...]:
    return tuple(dict.fromkeys((*diagnostics, new)))


def _label(found: Found) -> str:
    """A word for where a skill lies: the nearest telling folder name above it."""
    inside = found.path.parent.parent.relative_to(found.root).parts if _is_below(found) else ()
    if not any(part not in GENERIC for part in inside) and _scope(found) == "personal":
        return "personal"
    names = [part for part in (*found.root.parts[1:], *inside) if part not in GENERIC]
    return names[-1] if names else "other"


def _is_below(found: Found) -> bool:
    return found.path.parent.parent.is_relative_to(found.root)


def _renames(before: Catalogue, shelf: _Shelf) -> list[Rename]:
    """Where the skills went that no longer hold their id: equal content, else equal words under a new name."""
    after = shelf.settled()
    gone = [skill for skill_id, skill in before.skills.items() if skill_id not in after]
    fresh = [skill for skill_id, skill in after.items() if skill_id not in before]
    gone_words, fresh_words = _by_words(gone), _by_words(fresh)
    renames = []
    for skill in gone:
        words = _words_of(skill)
        new = shelf.holder_of(skill.content_hash)
        if new is None and len(gone_words[words]) == len(fresh_words.get(words, [])) == 1:
            new = fresh_words[words][0].skill_id
        if new is not None:
            renames.append(Rename(skill.skill_id, new))
    return renames


def _by_words(skills: Iterable[Skill]) -> dict[str, list[Skill]]:
    groups: dict[str, list[Skill]] = {}
    for skill in skills:
        groups.setdefault(_words_of(skill), []).append(skill)
    return groups


def _words_of(skill: Skill) -> str:
    """What stays when a skill is renamed: its description and body."""
    return text_hash(f"{skill.description}\0{skill.body}")


def _with_aliases(before: Catalogue, shelf: _Shelf, renamed: Sequence[Rename]) -> Catalogue:
    """The new catalogue; a name that ever meant a skill goes on meaning it, unless another skill holds it now."""
    skills = shelf.settled()
    names: dict[str, set[str]] = {skill_id: set(skill.aliases) for skill_id, skill in skills.items()}
    for skill_id, skill in before.skills.items():
        if skill_id in names:
            names[skill_id] |= set(skill.aliases)
    for rename in renamed:
        names[rename.new] |= {rename.old, *before.skills[rename.old].aliases}
    for alias in shelf.aliases:
        names[alias.skill_id].add(alias.name)
    return Catalogue(
        msgspec.structs.replace(skill, aliases=tuple(sorted(names[skill_id] - skills.keys())))
        for skill_id, skill in skills.items()
    )


def _report(
    before: Catalogue,
    after: Catalogue,
    shelf: _Shelf,
    renamed: list[Rename],
    directories: int,
    walked: Sequence[Diagnostic],
) -> SyncReport:
    moved = {rename.new for rename in renamed}
    was = before.skills
    diagnostics = [*walked, *shelf.diagnostics]
    known = [skill for skill_id, skill in shelf.skills.items() if skill_id in was]
    changed = sorted(skill.skill_id for skill in known if was[skill.skill_id].content_hash != skill.content_hash)
    return SyncReport(
        directories=directories,
        files=shelf.files,
        skills=len(after),
        added=sorted(shelf.skills.keys() - was.keys() - moved),
        changed=changed,
        removed=sorted(was.keys() - after.skills.keys() - {rename.old for rename in renamed}),
        renamed=renamed,
        aliases=sorted((a for a in shelf.aliases if a.name != a.skill_id), key=lambda alias: (alias.name, alias.path)),
        unchanged=len(known) - len(changed),
        kept=len(after) - len(shelf.skills),
        skipped=shelf.skipped,
        warnings=sum(d.level == "warning" for d in diagnostics),
        diagnostics=sorted(diagnostics, key=lambda d: (d.path, d.code, d.message)),
    )
