"""CSV with a header -> events: one call a row, columns named as in JSON lines or mapped to those names."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import msgspec

from collector.importers.jsonl import read_events
from collector.importers.shipment import Shipment, Sink
from cowpath.errors import BadFile, InputError

SOURCE = "csv"
DELIMITERS = ",;\t|"
"""The one that the header has most of is taken."""


def import_csv(lines: Iterable[str], sink: Sink, *, columns: Mapping[str, str], delimiter: str = "") -> dict[str, Any]:
    """Send every row as an event, or as a dead letter that says what is wrong with it; returns the counts."""
    shipment = Shipment(sink)
    for item in read_events(rows(lines, columns, delimiter), source=SOURCE):
        shipment.add(item)
    shipment.send()
    return {"files": 1, **shipment.document()}


def rows(lines: Iterable[str], columns: Mapping[str, str], delimiter: str = "") -> Iterator[bytes]:
    """Each row as a line of JSON. ``columns``: field -> the header it stands under; empty cells are left out."""
    remaining = iter(lines)
    first = next(remaining, "")
    reader = csv.reader(chain([first], remaining), delimiter=delimiter or max(DELIMITERS, key=first.count))
    try:
        header = [name.strip() for name in next(reader, [])]
        names = _fields(header, columns)
        for row in reader:
            if row:
                yield _line(dict(zip(names, row, strict=False)), too_many=len(row) > len(names))
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadFile(
            f"row {reader.line_num} cannot be read as CSV: {error}; what came before it was imported"
        ) from error


def _fields(header: list[str], columns: Mapping[str, str]) -> list[str]:
    """The field of each column."""
    absent = sorted(set(columns.values()) - set(header))
    if absent:
        known = ", ".join(header) or "none"
        raise InputError(f"no column {', '.join(absent)}; the header has {known}")
    field_of = {name: field for field, name in columns.items()}
    names = [field_of.get(name, name if name not in columns else f"column {name}") for name in header]
    if "session_id" not in names or not {"skill_id", "skill"} & set(names):
        raise InputError(
            f"the header needs session_id and skill_id, it has {', '.join(header) or 'nothing'}",
            suggestions=["--column session_id=HEADER --column skill_id=HEADER"],
        )
    return names


def _line(values: Mapping[str, str], *, too_many: bool) -> bytes:
    if too_many:
        return b'"more cells than the header has"'
    return msgspec.json.encode({name: text for name, text in values.items() if name and text.strip()})
