"""Export: usage.duckdb -> Parquet files, events by the UTC day they happened on, for every tool that reads Parquet."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cowpath.store import Store

MARK = b"cowpath_content"
"""Key of a file's metadata under which the fingerprint of its rows lies."""

DAYS = """
    select
        strftime(case when clock = 'ok' then called_at else stored_at end, '%Y-%m-%d') as dt,
        count(*) || '-' || bit_xor(hash(e)) as content
    from events as e
    group by dt
    order by dt
"""

DAY = """
    select *
    from events
    where strftime(case when clock = 'ok' then called_at else stored_at end, '%Y-%m-%d') = $dt
    order by arrival
"""

WHOLE = ("skills", "skill_alias", "edges")
"""Tables that are written as one file each."""


def export(usage: Path, directory: Path) -> dict[str, Any]:
    """Bring ``directory`` to what the copy holds. A partition is replaced whole, and only where its rows changed.

    Days that are gone from the copy, because their events were erased, are removed.
    """
    events = directory / "events"
    events.mkdir(parents=True, exist_ok=True)
    with Store.open(usage, read_only=True) as store:
        days = dict(store.rows(DAYS))
        changed = [dt for dt, content in days.items() if _content_of(_file(events, dt)) != content]
        for dt in changed:
            _write(_file(events, dt), store.arrow(DAY, {"dt": dt}), content=days[dt])
        for name in WHOLE:
            _write(directory / f"{name}.parquet", store.arrow(f"select * from {name} order by all"), content="")
    removed = _remove_others(events, days)
    return {
        "directory": str(directory),
        "written": changed,
        "unchanged": len(days) - len(changed),
        "removed": removed,
    }


def _file(events: Path, dt: str) -> Path:
    return events / f"dt={dt}" / "events.parquet"


def _content_of(path: Path) -> str | None:
    """The fingerprint a file was written with; None where there is no whole file."""
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowInvalid):
        return None
    mark = metadata.get(MARK)
    return mark.decode() if mark else None


def _write(path: Path, table: pa.Table, *, content: str) -> None:
    """Temporary name, flush, rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    marked = table.replace_schema_metadata({MARK: content.encode()} if content else None)
    try:
        with temporary.open("wb") as file:
            pq.write_table(marked, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _remove_others(events: Path, days: Mapping[str, str]) -> list[str]:
    gone = [p for p in sorted(events.glob("dt=*")) if p.name.removeprefix("dt=") not in days]
    for partition in gone:
        shutil.rmtree(partition)
    return [p.name.removeprefix("dt=") for p in gone]
