"""OTLP that was written to files: requests in JSON, one a line, as the OpenTelemetry Collector's file exporter writes
them, or one in a file. The same dialects and ids as over HTTP, so what arrived that way too is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from collector.counted import Item
from collector.hooks.payload import Known
from collector.importers.files import Progress, import_files
from collector.importers.shipment import Sink
from collector.otlp.export import KEYS, read_document
from collector.otlp.from_json import Json, document_of
from cowpath.errors import Undecodable
from cowpath.event import Rejected, utc_now
from cowpath.home import Home

SOURCE = "otlp-file"
PATTERNS = ("*.json", "*.jsonl", "*.ndjson")


def import_otlp(paths: Sequence[Path], sink: Sink, home: Home, *, progress: Progress = iter) -> dict[str, Any]:
    """Send the skill calls and counts of every file that changed since the last import; returns the counts."""
    return import_files(paths, PATTERNS, read_file, sink, home, variant="otlp", progress=progress)


def read_file(path: Path) -> Iterator[Item]:
    """What one file tells; a line that is no request is a dead letter, a last one that is being written waits."""
    known = Known(now=utc_now())
    for number, document in _documents(path):
        if isinstance(document, Undecodable):
            yield _refused(number, document.message)
        elif not KEYS.keys() & document.keys():
            yield _refused(number, f"an object without {', '.join(KEYS)}")
        else:
            try:
                yield from read_document(document, known)
            except Undecodable as error:
                yield _refused(number, error.message)


def _documents(path: Path) -> Iterator[tuple[int, Json | Undecodable]]:
    """The requests of a file, each with its line: one a line, else one over all lines."""
    with path.open("rb") as file:
        if file.readline().strip() == b"{":
            # Written for people to read: one document over many lines.
            yield 1, _document(path.read_bytes())
            return
        file.seek(0)
        for number, line in enumerate(file, start=1):
            document = _document(line)
            half_written = isinstance(document, Undecodable) and not line.endswith(b"\n")
            if line.strip() and not half_written:
                yield number, document


def _document(line: bytes) -> Json | Undecodable:
    try:
        return document_of(line)
    except Undecodable as error:
        return error


def _refused(number: int, message: str) -> Rejected:
    return Rejected(code="bad_json", message=f"line {number}: {message}", index=number - 1, source=SOURCE)
