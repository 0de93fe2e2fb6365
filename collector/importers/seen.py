"""What an import has read before: ``imports.json`` in the home, so that an unchanged file is not read again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from cowpath.home import Home, write_whole
from cowpath.skill import text_hash

FILE_NAME = "imports.json"
PROBE_BYTES = 4096


class _File(msgspec.Struct, frozen=True):
    """How a file looked when it was read, its size and a digest of its beginning and its end; and its calls."""

    size: int
    digest: str
    calls: int = 0

    def looks_like(self, other: _File) -> bool:
        return (self.size, self.digest) == (other.size, other.digest)


class _Record(msgspec.Struct):
    files: dict[str, _File] = {}
    typed: dict[str, str] = {}


@dataclass
class Seen:
    """The record of one home. Losing it is harmless: files are read again and their events are repeats."""

    path: Path
    variant: str
    record: _Record = field(default_factory=_Record)

    @classmethod
    def load(cls, home: Home, variant: str) -> Seen:
        """The record for a variant of import (skills only, or tools too), which read the same files apart."""
        path = home.root / FILE_NAME
        try:
            return cls(path, variant, msgspec.json.decode(path.read_bytes(), type=_Record))
        except (FileNotFoundError, msgspec.MsgspecError):
            return cls(path, variant)

    @property
    def typed(self) -> dict[str, str]:
        """Typed call -> session: a copy under another session id is still the same call."""
        return self.record.typed

    def is_unchanged(self, file: Path) -> bool:
        known = self.record.files.get(self._key(file))
        return known is not None and known.looks_like(_look(file))

    def note(self, file: Path) -> None:
        """Remember how a file looks; call it before reading, so that what is written meanwhile is read next time."""
        self.record.files[self._key(file)] = _look(file)

    def note_calls(self, file: Path, calls: int) -> None:
        """Remember how many calls a noted file held, to say so when it comes again."""
        key = self._key(file)
        self.record.files[key] = msgspec.structs.replace(self.record.files[key], calls=calls)

    def calls(self, files: Iterable[Path]) -> int:
        """How many calls these files held when they were read."""
        known = (self.record.files.get(self._key(file)) for file in files)
        return sum(file.calls for file in known if file)

    def save(self) -> None:
        write_whole(self.path, msgspec.json.encode(self.record, order="sorted"))

    def _key(self, file: Path) -> str:
        """Paths tell about people; only their hash is kept."""
        return text_hash(f"{self.variant}:{file.resolve()}")


def _look(file: Path) -> _File:
    size = file.stat().st_size
    with file.open("rb") as stream:
        beginning = stream.read(PROBE_BYTES)
        stream.seek(max(0, size - PROBE_BYTES))
        return _File(size, hashlib.sha256(beginning + stream.read(PROBE_BYTES)).hexdigest())
