"""Where the things at rest lie: one folder, ``$COWPATH_HOME``."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from cowpath.errors import HomeBusy, StoreDamaged


@dataclass(frozen=True)
class Home:
    """The paths of one installation. Nothing is created until it is written."""

    root: Path

    @property
    def journal(self) -> Path:
        return self.root / "journal"

    @property
    def live(self) -> Path:
        return self.root / "live.duckdb"

    @property
    def usage(self) -> Path:
        return self.root / "usage.duckdb"

    @property
    def catalogue(self) -> Path:
        return self.root / "catalogue.jsonl"

    @property
    def edges(self) -> Path:
        return self.root / "edges"

    @property
    def learned(self) -> Path:
        return self.root / "learned"

    @property
    def statistics(self) -> Path:
        """What mining runs counted so far. Derived: without it the next run counts everything anew."""
        return self.root / "statistics.duckdb"

    @property
    def embeddings(self) -> Path:
        return self.root / "embeddings"

    @property
    def spool(self) -> Path:
        """What clients and hooks of this machine have not yet handed to a collector."""
        return self.root / "spool"

    @property
    def lock(self) -> Path:
        """Held by the one collector of this home; holds its pid and address as JSON."""
        return self.root / "collector.lock"

    @property
    def secret(self) -> Path:
        """The installation's key for hashing actors."""
        return self.root / "secret"

    @property
    def keys(self) -> Path:
        """The keys that were given out, hashed."""
        return self.root / "keys.json"

    @property
    def local_key(self) -> Path:
        """The key of this machine's own commands, made anew at every start of a collector that has keys."""
        return self.root / "local.key"

    @property
    def erased(self) -> Path:
        """Keyed hashes of erased subjects, and which erasures are complete."""
        return self.root / "erased.jsonl"

    @property
    def feedback(self) -> Path:
        """What people and agents said about rankings, one statement a line, never rewritten."""
        return self.root / "feedback.jsonl"

    @property
    def declined(self) -> Path:
        """Skills that somebody does not want to be shown unasked."""
        return self.root / "declined.jsonl"

    @property
    def exports(self) -> Path:
        """Parquet for other tools."""
        return self.root / "exports"


def make_folder(path: Path) -> Path:
    """The folder, made for its owner only where it is not there; one that is there stays as open as it is."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    return path


def is_open_to_others(path: Path) -> bool:
    """Whether other users of this machine may look into a folder that is there."""
    try:
        return bool(path.stat().st_mode & 0o077)
    except FileNotFoundError:
        return False


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file that others read: temporary name, flush to disk, rename. Never half a file."""
    try:
        make_folder(path.parent)
        opened = NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False)  # noqa: SIM115  # below
    except OSError as error:
        raise StoreDamaged(f"{path} cannot be written: {error.strerror}") from error
    with opened as file:
        temporary = Path(file.name)
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            temporary.chmod(mode)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def sync_file(path: Path) -> None:
    """Return when a file, or what a folder names, is on disk: a file is only as durable as the entry that names it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_aside(path: Path) -> Path:
    """Rename a file that cannot be read, so that a new one can take its place; nothing is thrown away."""
    number = 1
    while (kept := path.with_name(f"{path.name}.unreadable-{number}")).exists():
        number += 1
    path.replace(kept)
    return kept


@contextmanager
def held(path: Path, busy: str) -> Iterator[None]:
    """Hold the lock file ``path`` for the length of the block; HomeBusy(``busy``) where another process does."""
    make_folder(path.parent)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HomeBusy(busy) from None
        yield
