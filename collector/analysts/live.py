"""The live store as analysts see it: the tables and views of the published copy, to the latest event, read-only.

They live in a database in memory, so that nothing of them is ever written into live.duckdb.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from collector.publish import alias_table, edge_table, skill_table
from cowpath.errors import HomeBusy, Overloaded, QueryRefused, QueryStopped
from cowpath.home import Home
from cowpath.skill import read_catalogue
from cowpath.store import CLOSED, Store, read_sql, sql_names, statements

MADE = "create table usage."
"""How every statement of sql/publish begins to say what it makes. ``usage`` is a database there, the copy that is being
made; here what comes from files lies in a schema of another name, or DuckDB 2.0 could not tell the two apart."""

LIVE_NAMES = """
    select table_name from information_schema.tables where table_catalog = 'live' and table_schema = 'main'
"""


class LiveViews:
    """Answers queries over a live store. Make it once a store; ``query`` may be called from any thread."""

    def __init__(self, store: Store, home: Home, *, queries: int) -> None:
        self._store = store
        self._home = home
        self._places = threading.BoundedSemaphore(queries)
        self._refreshing = threading.Lock()
        self._state: object = None
        self._running: set[Store] = set()
        self._stopped = False
        store.execute("attach ':memory:' as analysts")
        store.execute("create schema analysts.base")
        store.execute("create schema analysts.files")
        for name in sql_names("live"):
            store.run(name)
        for (table,) in store.rows(LIVE_NAMES):
            store.execute(f'create view analysts.base."{table}" as select * from live.main."{table}"')
        self._refresh()
        _run_here(store.cursor(), ["schema/001_formulas", *sql_names("views")])

    def query(
        self,
        sql: str,
        parameters: Mapping[str, object] | None = None,
        *,
        limit: int,
        timeout_s: float,
        bare_names: bool = True,
    ) -> pa.Table:
        """At most ``limit`` rows of one query. ``bare_names``: tables may be named without ``analysts`` before them.

        QueryRefused, QueryStopped, Overloaded where all places are taken, HomeBusy where the store was stopped.
        """
        with self._place() as cursor:
            self._refresh()
            cursor.execute("use analysts")
            ((refusal,),) = cursor.rows("select refusal($sql, $bare)", {"sql": sql, "bare": bare_names})
            if refusal:
                raise QueryRefused(f"one SELECT over the published tables and views is taken: {refusal}")
            return cursor.read_only(sql, parameters, limit=limit, timeout_s=timeout_s)

    def stop(self) -> None:
        """Answer no more and end the queries that run: the store below is about to be closed."""
        self._stopped = True
        for cursor in list(self._running):
            cursor.interrupt()

    @contextmanager
    def _place(self) -> Iterator[Store]:
        """A connection of its own for one query, while there are places."""
        if not self._places.acquire(blocking=False):
            raise Overloaded("as many queries as may run at once are running", retry_after_s=2)
        try:
            with self._store.cursor() as cursor:
                self._running.add(cursor)
                try:
                    if self._stopped:
                        raise HomeBusy(CLOSED)
                    yield cursor
                finally:
                    self._running.discard(cursor)
        except QueryStopped as error:
            raise (HomeBusy(CLOSED) if self._stopped else error) from None
        finally:
            self._places.release()

    def _refresh(self) -> None:
        """Take over catalogue and edges where their files have changed."""
        with self._refreshing:
            state = _state_of(self._home)
            if state != self._state:
                self._read_files()
                self._state = state

    def _read_files(self) -> None:
        catalogue = read_catalogue(self._home.catalogue)
        with (
            self._store.cursor() as cursor,
            cursor.visible("catalogue_rows", skill_table(catalogue)),
            cursor.visible("alias_rows", alias_table(catalogue)),
            cursor.visible("edge_rows", edge_table(self._home.edges)),
            cursor.transaction(),
        ):
            for statement in _published_statements():
                _make(cursor, statement)


def _published_statements() -> list[str]:
    return [s for name in sql_names("publish") for s in statements(read_sql(name)) if MADE in s]


def _make(cursor: Store, statement: str) -> None:
    """What publishing makes: rows of files as a table, rows of the live store as a view over it."""
    name = statement.partition(MADE)[2].split()[0]
    of_files = "_rows" in statement
    kind, place = ("table", f"files.{name}") if of_files else ("view", f"base.published_{name}")
    made = statement.replace(MADE + name, f"create or replace {kind} analysts.{place}").replace(
        " usage.", " analysts.files."
    )
    cursor.execute(made)
    cursor.execute(f"create or replace view analysts.main.{name} as select * from analysts.{place}")


def _run_here(cursor: Store, names: list[str]) -> None:
    with cursor:
        cursor.execute("use analysts")
        for name in names:
            cursor.run(name)


def _state_of(home: Home) -> object:
    files = [home.catalogue, *sorted(home.edges.glob("*.jsonl"))]
    return [(f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in files if f.exists()]
