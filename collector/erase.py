"""Erase: everything of a subject, or older than some age, out of every place of a home.

    tombstone (durable) -> STEPS, each harmless to repeat -> complete

A kill in between leaves the tombstone, and the next start goes through all steps again. The live store is not
deleted from but copied without the subject and put in place by one rename: DuckDB leaves deleted bytes in its file.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from collector.erased import Erased, Kind
from collector.importers.seen import FILE_NAME
from collector.segments import remove_covered
from cowpath.event import utc_now
from cowpath.home import write_whole
from cowpath.spool import Spool
from cowpath.store import Store

if TYPE_CHECKING:
    from collector.service import Collector

log = logging.getLogger("cowpath.collector")

MOST_REDACTED = 50
"""More erased sessions than this are not looked for in the notes (``extra``) of other sessions' events."""


@dataclass
class Sweep:
    """One erasure under way: what it is for, and what it removed where."""

    kind: str
    subject: str = ""
    before: datetime | None = None
    removed: dict[str, int] = field(default_factory=dict)


def erase(collector: Collector, kind: Kind, value: str, *, dry_run: bool = False) -> dict[str, Any]:
    """Erase a subject everywhere and keep it away; with ``dry_run`` only count. The document says what went where."""
    erased = collector.erased
    if dry_run:
        collector.flush()
        return _document(Sweep(kind, removed=_count(collector, erased.only(kind, value), None)), dry_run=True)
    # Before the tombstone: what the drain drops because of it would not be counted.
    collector.flush()
    erased.bury(kind, [value])
    return _document(sweep(collector, Sweep(kind, erased.subject(kind, value))))


def erase_older(collector: Collector, days: float, *, dry_run: bool = False) -> dict[str, Any]:
    """Remove what is older than so many days; it may come again, if somebody sends it."""
    before = (utc_now() - timedelta(days=days)).replace(tzinfo=None)
    if dry_run:
        collector.flush()
        return _document(Sweep("age", removed=_count(collector, collector.erased.nobody(), before)), dry_run=True)
    return _document(sweep(collector, Sweep("age", before=before)))


def finish(collector: Collector) -> None:
    """Complete what a kill interrupted."""
    log.warning("an erasure was interrupted; it is completed now")
    sweep(collector, Sweep("resumed"))


def sweep(collector: Collector, task: Sweep) -> Sweep:
    """Go through every place."""
    with collector.alone():
        collector.flush()
        collector.erased.bury("session", _sessions_of(collector, collector.erased))
        task.removed = _count(collector, collector.erased, task.before)
        for step in STEPS:
            step(collector, task)
        if collector.erased.pending:
            collector.erased.complete()
    return task


def forget_learned(collector: Collector, task: Sweep) -> None:
    """Evidence of an erased subject is not served; the next mining run learns without it, and counts anew."""
    if not task.removed.get("events"):
        return
    home = collector.home
    files = list(home.root.glob(f"{home.statistics.name}*"))
    if task.kind != "age":
        files += [home.edges / "learned.jsonl", *home.learned.rglob("*")]
    task.removed["learned"] = sum(_removed(path) for path in files)
    if task.kind != "age":
        shutil.rmtree(home.learned, ignore_errors=True)


def forget_exports(collector: Collector, task: Sweep) -> None:
    """The next export writes what is left."""
    if collector.home.exports.is_dir() and task.removed.get("events"):
        task.removed["exports"] = sum(path.is_file() for path in collector.home.exports.rglob("*"))
        shutil.rmtree(collector.home.exports)


def forget_spool(collector: Collector, task: Sweep) -> None:
    """Lines of clients that ended; what a living client holds is refused when it arrives."""
    removed = 0
    for file in Spool(collector.home.spool).left_behind():
        with file:
            lines = file.path.read_bytes().splitlines(keepends=True)
            kept = [line for line in lines if not collector.erased.names(line.decode(errors="replace"))]
            if len(kept) < len(lines):
                removed += len(lines) - len(kept)
                write_whole(file.path, b"".join(kept), mode=0o600)
    task.removed["spool"] = removed


def forget_imports(collector: Collector, task: Sweep) -> None:
    """What the import remembers of typed calls names their sessions."""
    path = collector.home.root / FILE_NAME
    if not collector.erased or not path.exists():
        return
    try:
        record = json.loads(path.read_bytes())
        typed: dict[str, str] = record.get("typed", {})
    except (ValueError, AttributeError):
        # Losing it is harmless: files are read again.
        path.unlink()
        return
    gone = [key for key, value in typed.items() if collector.erased.names(json.dumps([key, value]))]
    if gone:
        record["typed"] = {key: value for key, value in typed.items() if key not in gone}
        write_whole(path, msgspec.json.encode(record, order="sorted"))
    task.removed["imports"] = len(gone)


def forget_unreadable(collector: Collector, task: Sweep) -> None:
    """Torn lines that name the subject, and write-ahead logs that were set aside: nobody can read what they hold."""
    torn = [p for p in collector.home.journal.glob("*.torn") if collector.erased.names(p.read_text(errors="replace"))]
    logs = list(collector.home.root.glob(f"{collector.home.live.name}*.unreadable-*"))
    task.removed["unreadable"] = sum(_removed(path) for path in [*torn, *logs])


def rewrite_live(collector: Collector, task: Sweep) -> None:
    """The live store without them, with the audit row inside: both or neither."""
    collector.replace_store(lambda store, fresh: _copy_without(store, fresh, collector.erased, task))


def forget_segments(collector: Collector, task: Sweep) -> None:
    """The new store is whole and on disk, so the journal up to it is not needed."""
    remove_covered(collector.home.journal, collector.drain.position, keep=collector.journal.open_segment)


def republish(collector: Collector, task: Sweep) -> None:
    """The published copy, where there is one."""
    if collector.home.usage.exists():
        collector.publish_alone()


STEPS: tuple[Callable[[Collector, Sweep], None], ...] = (
    forget_learned,
    forget_exports,
    forget_spool,
    forget_imports,
    forget_unreadable,
    rewrite_live,
    forget_segments,
    republish,
)
"""Every place, in its order. Learned evidence goes first: whether it was touched is known only while the rows exist."""


def _sessions_of(collector: Collector, erased: Erased) -> list[str]:
    """Sessions in which erased actors are named and nobody else: calls there that name nobody are theirs too."""
    with collector.cursor() as store:
        rows = store.rows(
            "select session_id, min(actor) from completed_events group by session_id having count(distinct actor) = 1"
        )
    return [session_id for session_id, actor in rows if erased.has("actor", actor)]


def _count(collector: Collector, erased: Erased, before: datetime | None) -> dict[str, int]:
    """Rows that go, by table."""
    with collector.cursor() as store, _marked(store, erased, before) as conditions:
        counts = {name: store.rows(f"select count(*) from {name} where {gone}") for name, gone in conditions.items()}
        return {name: int(n) for name, ((n,),) in counts.items()}


def _copy_without(store: Store, fresh: Path, erased: Erased, task: Sweep) -> None:
    """Every table with the rows that stay, in a file of its own."""
    ((name,),) = store.rows("select current_database()")
    store.attach(fresh, "fresh")
    try:
        with _marked(store, erased, task.before) as conditions:
            store.execute(f"copy from database {name} to fresh (schema)")
            with store.transaction():
                for table in _tables(store):
                    columns = _kept_columns(store, table, erased)
                    gone = conditions.get(table, "false")
                    store.execute(f"insert into fresh.main.{table} select {columns} from {table} where not ({gone})")
                store.execute(
                    "insert into fresh.main.erasures values ($at, $kind, $subject, $removed)",
                    {
                        "at": utc_now().replace(tzinfo=None),
                        "kind": task.kind,
                        "subject": task.subject,
                        "removed": json.dumps(task.removed, sort_keys=True),
                    },
                )
        # Detaching does it too, but not while a query looks into all databases; the log is not renamed with the file.
        store.execute("checkpoint fresh")
    finally:
        store.detach("fresh")


@contextmanager
def _marked(store: Store, erased: Erased, before: datetime | None) -> Iterator[dict[str, str]]:
    """Table -> the condition under which one of its rows goes, for the length of the block.

    Tables are found by their columns, so that a new one with a session, an actor or an event is reached too.
    """
    sessions = [s for (s,) in store.rows("select distinct session_id from events") if erased.has("session", s)]
    named = store.rows("select distinct actor from completed_events union select distinct actor from counted")
    actors = [a for (a,) in named if erased.has("actor", a)]
    letters = [n for n, body in store.rows("select arrival, body from rejected") if erased.names(body)]
    with (
        store.visible("erased_sessions", pa.table({"value": pa.array(sessions, pa.string())})),
        store.visible("erased_actors", pa.table({"value": pa.array(actors, pa.string())})),
        store.visible("erased_letters", pa.table({"value": pa.array(letters, pa.int64())})),
    ):
        store.run("erase/marked", before=before)
        try:
            yield {table: c for table in _tables(store) if (c := _condition(table, _columns(store, table)))}
        finally:
            store.execute("drop table temp.erased_events")


CONDITIONS = {
    "session_id": "coalesce(session_id in (select value from erased_sessions), false)",
    "actor": "coalesce(actor in (select value from erased_actors), false)",
    "event_id": "coalesce(event_id in (select event_id from erased_events), false)",
}


def _condition(table: str, columns: list[str]) -> str:
    conditions = [words for column, words in CONDITIONS.items() if column in columns]
    if table == "rejected":
        conditions.append("arrival in (select value from erased_letters)")
    if table in ("rejected", "counted"):
        conditions.append("coalesce(stored_at < (select before from erased_before), false)")
    return " or ".join(conditions)


def _tables(store: Store) -> list[str]:
    rows = store.rows(
        "select table_name from duckdb_tables()"
        " where database_name = current_database() and schema_name = 'main' and not temporary order by table_name"
    )
    return [name for (name,) in rows]


def _columns(store: Store, table: str) -> list[str]:
    rows = store.rows(
        "select column_name from duckdb_columns()"
        " where database_name = current_database() and schema_name = 'main' and table_name = $table",
        {"table": table},
    )
    return [name for (name,) in rows]


def _kept_columns(store: Store, table: str, erased: Erased) -> str:
    """``*``; where others' notes name an erased session, without the name."""
    if "extra" not in _columns(store, table):
        return "*"
    sessions = store.rows("select value from erased_sessions order by value")
    if not 0 < len(sessions) <= MOST_REDACTED:
        return "*"
    extra = "extra"
    for (session_id,) in sessions:
        quoted = session_id.replace("'", "''")
        extra = f"replace({extra}, '{quoted}', '')"
    return f"* replace ({extra} as extra)"


def _removed(path: Path) -> int:
    if not path.is_file():
        return 0
    path.unlink()
    return 1


def _document(task: Sweep, *, dry_run: bool = False) -> dict[str, Any]:
    removed = {place: n for place, n in sorted(task.removed.items()) if n}
    return {
        "kind": task.kind,
        "dry_run": dry_run,
        "removed": removed,
        "learned": "stale" if removed.get("learned") else "unchanged",
    }
