"""The lock of a home: one collector writes, everyone else learns where it listens."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import time
from pathlib import Path
from typing import IO, Self

import msgspec

from cowpath.errors import HomeBusy, StateError, StoreDamaged
from cowpath.home import Home, make_folder

PATIENCE_S = 0.5
"""Somebody who only looks whether the lock is held holds it for a moment; wait that long."""

MOUNTS = Path("/proc/mounts")

NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs"})
"""File systems of other machines: their locks and flushes do not hold what a store needs of them."""


class Holder(msgspec.Struct, frozen=True):
    """Who holds a home, and where it listens, once it does."""

    pid: int = 0
    url: str = ""


class HomeLock:
    """Held from construction to release. The operating system frees it when the process dies."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    @classmethod
    def take(cls, home: Home) -> Self:
        """Hold this home. HomeBusy where another process does, StoreDamaged where it cannot be written or locked."""
        refuse_network_file_system(home)
        try:
            make_folder(home.root)
            file = home.lock.open("a+b")
        except OSError as error:
            raise StoreDamaged(
                f"{home.root} cannot be written ({error.strerror}); choose another folder with --home or COWPATH_HOME"
            ) from error
        lock = cls(file)
        if not _locked(file, patience_s=PATIENCE_S):
            file.close()
            raise busy(home, read_holder(home))
        lock.announce("")
        return lock

    def announce(self, url: str) -> None:
        """Write down who holds the home, and where it listens."""
        self._write(msgspec.json.encode(Holder(pid=os.getpid(), url=url)))

    def release(self) -> None:
        self._write(b"")
        self._file.close()

    def _write(self, data: bytes) -> None:
        self._file.truncate(0)
        self._file.write(data)
        self._file.flush()


def running(home: Home) -> Holder | None:
    """The collector that holds this home now, if any. Creates nothing."""
    try:
        with home.lock.open("rb") as file:
            if _locked(file, patience_s=0.0, mode=fcntl.LOCK_SH):
                return None
    except OSError:
        return None
    return read_holder(home)


def read_holder(home: Home) -> Holder:
    try:
        return msgspec.json.decode(home.lock.read_bytes(), type=Holder)
    except (OSError, msgspec.DecodeError):
        return Holder()


def busy(home: Home, holder: Holder) -> HomeBusy:
    """The one sentence for a home that is taken."""
    where = f" and listens on {holder.url}" if holder.url else ""
    return HomeBusy(
        f"{home.root} already has its collector: process {holder.pid or 'unknown'} holds it{where}; "
        "a home has one collector, so send to that one, stop it, or choose another --home"
    )


def refuse_one_of_many(home: Home) -> None:
    """StateError in a process that another one started to serve: it has brothers, or is replaced while it writes."""
    if multiprocessing.parent_process():
        raise StateError(
            f"{home.root} has one writer, and this server was started as one of several processes: "
            "run uvicorn with one worker and without --reload, or use `cowpath up`"
        )


def refuse_network_file_system(home: Home) -> None:
    """StoreDamaged where the home lies on another machine, as far as this system says what is mounted where."""
    kind = file_system_of(home.root.absolute(), mounts())
    if kind in NETWORK:
        raise StoreDamaged(
            f"{home.root} lies on a network file system ({kind}), whose locks cannot keep a second writer out; "
            "choose a folder on a disk of this machine with --home or COWPATH_HOME"
        )


def mounts() -> str:
    """What is mounted where; empty where the system does not say."""
    try:
        return MOUNTS.read_text(errors="replace")
    except OSError:
        return ""


def file_system_of(path: Path, mounted: str) -> str:
    """The type of the file system that holds a path, by the lines of /proc/mounts; the last mount of a place wins."""
    found, depth = "", -1
    real = path.resolve()
    for line in mounted.splitlines():
        _, place, kind, *_ = line.split()
        at = Path(place.replace("\\040", " "))
        if real.is_relative_to(at) and len(at.parts) >= depth:
            found, depth = kind, len(at.parts)
    return found


def _locked(file: IO[bytes], *, patience_s: float, mode: int = fcntl.LOCK_EX) -> bool:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(file, mode | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
