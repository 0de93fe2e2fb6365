"""What importers of files share: find them, leave out the unchanged, read, send, count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from collector.counted import Item
from collector.importers.seen import Seen
from collector.importers.shipment import Shipment, Sink
from cowpath.errors import BadFile
from cowpath.home import Home

Progress = Callable[[Sequence[Path]], Iterable[Path]]
"""Hands the files on, one after the other, and may show how far it is."""

Read = Callable[[Path], Iterable[Item]]
"""A file -> what it tells. A file that is being written is read as far as it is whole; it comes again when it grows."""


def import_files(
    paths: Sequence[Path],
    patterns: Sequence[str],
    read: Read,
    sink: Sink,
    home: Home,
    *,
    variant: str,
    progress: Progress,
) -> dict[str, Any]:
    """Send what the files tell that changed since the last import; returns the counts.

    A changed file is read whole: a call whose result came later is sent again under its id and completes the first.
    """
    files = found(paths, patterns)
    seen = Seen.load(home, variant)
    changed = [file for file in files if not seen.is_unchanged(file)]
    shipment = Shipment(sink)
    for file in progress(changed):
        seen.note(file)
        before = shipment.calls
        for item in read(file):
            shipment.add(item)
        seen.note_calls(file, shipment.calls - before)
    shipment.send()
    seen.save()
    return {
        "files": len(files),
        "unchanged_files": len(files) - len(changed),
        "unchanged_calls": seen.calls(set(files) - set(changed)),
        **shipment.document(),
    }


def found(paths: Sequence[Path], patterns: Sequence[str]) -> list[Path]:
    """The files that were named, and those under the folders that were named, each once."""
    files: dict[Path, None] = {}
    for path in (path.expanduser() for path in paths):
        if path.is_dir():
            below = {file for pattern in patterns for file in path.rglob(pattern) if file.is_file()}
            files |= dict.fromkeys(sorted(below))
        elif path.is_file():
            files[path] = None
        else:
            raise BadFile(f"there is nothing at {path}; name the file or folder to import")
    return list(files)
