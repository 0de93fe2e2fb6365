"""Folders -> the SKILL.md files in them: every real directory once, bounded, with a word for what is left out."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from cowpath.skill import Diagnostic

MOST_DEPTH = 6
MOST_DIRECTORIES = 2000

FILE_NAME = "SKILL.md"
NEVER_ENTERED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv"})
RESOURCES = frozenset({"scripts", "references", "assets", "templates", "examples", "resources"})
"""Folders inside a skill that hold its material; a SKILL.md there is an example, not a skill."""


@dataclass(frozen=True)
class Found:
    """A SKILL.md, the root it was found under and the plugin it belongs to."""

    path: Path
    root: Path
    plugin: str = ""

    @property
    def directory(self) -> str:
        return self.path.parent.name


@dataclass(frozen=True)
class Link:
    """A second way to a directory that was found already: ``path`` leads to ``target``."""

    path: Path
    target: Found


@dataclass(frozen=True)
class Library:
    """What a walk found, the roots in the given order and real directories before links."""

    found: tuple[Found, ...]
    links: tuple[Link, ...]
    directories: int
    diagnostics: tuple[Diagnostic, ...]


def walk(roots: Sequence[Path], *, most_directories: int = MOST_DIRECTORIES) -> Library:
    """Find the skills under each root. A directory is read once, by its real path; loops end, dangling links warn."""
    walker = _Walker(most_directories)
    for root in roots:
        walker.enter(root.resolve())
    return Library(tuple(walker.found), tuple(walker.links), len(walker.seen), tuple(walker.diagnostics))


@dataclass(frozen=True)
class _Place:
    path: Path
    depth: int
    in_skill: bool = False


class _Walker:
    def __init__(self, most_directories: int) -> None:
        self.most_directories = most_directories
        self.found: list[Found] = []
        self.links: list[Link] = []
        self.diagnostics: list[Diagnostic] = []
        self.seen: dict[Path, Found | None] = {}
        self.plugins: dict[Path, str] = {}

    def enter(self, root: Path) -> None:
        """Walk one root: real directories in breadth, then the links met there, then the links met behind those."""
        places = deque([_Place(root, 0)])
        links: deque[_Place] = deque()
        too_deep: list[Path] = []
        budget = self.most_directories
        first = len(self.found)
        while places or links:
            place = places.popleft() if places else links.popleft()
            real = place.path.resolve()
            if real in self.seen:
                self._again(place.path, self.seen[real])
                continue
            if not budget:
                self._warn(
                    "too_many_directories", f"more than {self.most_directories} directories; the rest was left", root
                )
                break
            budget -= 1
            for child in self._read(place, root, real):
                if child.depth > MOST_DEPTH:
                    too_deep.append(child.path)
                else:
                    (links if child.path.is_symlink() else places).append(child)
        self.found[first:] = sorted(self.found[first:], key=lambda found: found.path.is_symlink())
        if too_deep:
            self._warn("too_deep", f"{len(too_deep)} directories below depth {MOST_DEPTH} were not read", too_deep[0])

    def _again(self, path: Path, found: Found | None) -> None:
        if found is not None and path != found.path.parent:
            self.links.append(Link(path, found))

    def _read(self, place: _Place, root: Path, real: Path) -> list[_Place]:
        """Note the skill of one directory and return the directories below it."""
        self.seen[real] = None
        try:
            with os.scandir(place.path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self._warn("unreadable", f"the directory cannot be read: {error.strerror}", place.path)
            return []
        skill_files = [entry for entry in entries if self._is_skill_file(entry)]
        if skill_files:
            found = Found(place.path / FILE_NAME, root, self._plugin(place.path, root))
            self.seen[real] = found
            self.found.append(found)
        in_skill = place.in_skill or (bool(skill_files) and place.depth > 0)
        return [
            _Place(Path(entry.path), place.depth + 1, in_skill)
            for entry in entries
            if self._leads_on(entry) and not (in_skill and entry.name in RESOURCES)
        ]

    def _is_skill_file(self, entry: os.DirEntry[str]) -> bool:
        if entry.name.lower() != FILE_NAME.lower() or not Path(entry.path).is_file():
            return False
        if entry.name != FILE_NAME:
            self._warn("wrong_file_name", f"the file must be named {FILE_NAME}; ignored", Path(entry.path))
        return entry.name == FILE_NAME

    def _leads_on(self, entry: os.DirEntry[str]) -> bool:
        path = Path(entry.path)
        if entry.is_symlink() and not path.exists():
            self._warn("dangling_link", "the link leads nowhere; ignored", path)
            return False
        if not entry.is_dir() or entry.name in NEVER_ENTERED:
            return False
        if entry.is_symlink() and path.parent.resolve().is_relative_to(path.resolve()):
            self._warn("link_loop", "the link leads back to a directory above it; ignored", path)
            return False
        return True

    def _plugin(self, directory: Path, root: Path) -> str:
        """The name in the nearest ``.claude-plugin/plugin.json`` above, looked for up to two levels over the root."""
        inside = [directory, *(parent for parent in directory.parents if parent.is_relative_to(root))]
        for folder in [*inside, *list(root.parents)[:2]]:
            if folder not in self.plugins:
                self.plugins[folder] = self._plugin_name(folder / ".claude-plugin" / "plugin.json")
            if self.plugins[folder]:
                return self.plugins[folder]
        return ""

    def _plugin_name(self, manifest: Path) -> str:
        if not manifest.is_file():
            return ""
        try:
            name = msgspec.json.decode(manifest.read_bytes(), type=dict[str, object]).get("name")
        except (OSError, msgspec.MsgspecError):
            name = None
        if not isinstance(name, str) or not name.strip():
            self._warn("bad_plugin", "the plugin's manifest has no name; its skills are taken without one", manifest)
            return ""
        return name.strip()

    def _warn(self, code: str, message: str, path: Path) -> None:
        self.diagnostics.append(Diagnostic(level="warning", code=code, message=message, path=str(path)))
