"""The store: the one home of DuckDB. SQL lives in ``sql/``; this runs it."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import duckdb

from cowpath.errors import HomeBusy, InputError, QueryRefused, QueryStopped, StoreDamaged

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


SPILL_LIMIT = "4GB"
"""Most disk that queries may take for what does not fit into memory."""


IN_USE = "already attached"
"""What DuckDB says of a file that another database of this process holds; its class differs between 1.5 and 2.0."""

CLOSED = "the store is closed, for good or while its file is replaced; try again"

# 2.0 recommends a call that takes fifteen times as long on 1.5 where there are parameters.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)


class Store:
    """One DuckDB database, or an in-memory one, with the project's macros loaded."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, cursor_of: Store | None = None) -> None:
        self._connection = connection
        self._is_cursor = cursor_of is not None
        self._calls: _Calls = cursor_of._calls if cursor_of else _Calls()

    @classmethod
    def open(cls, path: Path | str = ":memory:", *, read_only: bool = False, threads: int | None = None) -> Self:
        """Open a database file, or memory.

        Raises HomeBusy where another process has the file open for writing or another database of this one still
        holds it, StoreDamaged where DuckDB cannot open it (its write-ahead log cannot be replayed, say).
        """
        # nothing is fetched at run time: an extension is loaded by whoever asks for it, never by itself
        config: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        if threads:
            config["threads"] = threads
        try:
            connection = duckdb.connect(str(path), read_only=read_only, config=config)
        except duckdb.IOException as error:
            if "lock" in str(error).lower():
                raise HomeBusy(
                    f"{path} is open for writing in another process; read usage.duckdb, the published copy, instead"
                ) from error
            raise StoreDamaged(f"{path} cannot be opened: {error}") from error
        except duckdb.Error as error:
            if IN_USE in str(error):
                raise HomeBusy(f"{path} is still in use in this process: {error}; try again") from error
            raise StoreDamaged(f"{path} cannot be opened: {error}") from error
        return cls(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this connection; where it is no cursor, all of its cursors too, after the calls that are under way."""
        if not self._is_cursor:
            self._calls.end()
        self._connection.close()

    def interrupt(self) -> None:
        """End what runs on this connection with QueryStopped; may be called from any thread."""
        # Where the connection was closed meanwhile, nothing runs on it.
        with suppress(duckdb.ConnectionException):
            self._connection.interrupt()

    def execute(self, sql: str, parameters: Mapping[str, object] | None = None) -> None:
        """Run one statement. Parameters are named: ``$name`` in the SQL."""
        with self._calls:
            self._connection.execute(sql, dict(parameters) if parameters else None)

    def run(self, name: str, **parameters: object) -> None:
        """Run the statements of ``sql/<name>.sql``; each gets those parameters that it names."""
        for statement in _script(name):
            self.execute(statement, {k: v for k, v in parameters.items() if re.search(rf"\${k}\b", statement)})

    def rows(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._calls:
            return self._connection.execute(sql, dict(parameters) if parameters else None).fetchall()

    def arrow(self, sql: str, parameters: Mapping[str, object] | None = None) -> pa.Table:
        """All rows of a query as an Arrow table."""
        with self._calls:
            return self._connection.execute(sql, dict(parameters) if parameters else None).to_arrow_table()

    def frame(self, sql: str, parameters: Mapping[str, object] | None = None) -> pl.DataFrame:
        """All rows of a query as a polars frame."""
        import polars as pl

        frame = pl.from_arrow(self.arrow(sql, parameters))
        if not isinstance(frame, pl.DataFrame):
            raise TypeError("an Arrow table always gives a frame")
        return frame

    @contextmanager
    def visible(self, name: str, table: pa.Table | pl.DataFrame) -> Iterator[None]:
        """Make a frame readable in SQL under ``name`` for the length of the block."""
        with self._calls:
            self._connection.register(name, table)
        try:
            yield
        finally:
            with self._calls:
                self._connection.unregister(name)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit at the end of the block, roll back where it raises."""
        self.execute("begin transaction")
        try:
            yield
        except BaseException:
            self.execute("rollback")
            raise
        self.execute("commit")

    def checkpoint(self) -> bool:
        """Fold the write-ahead log into the file; False where another transaction is in the way."""
        try:
            self.execute("checkpoint")
        except duckdb.TransactionException:
            return False
        return True

    def attach(self, path: Path, name: str, *, read_only: bool = False) -> None:
        """Attach another database file under ``name``."""
        mode = " (read_only)" if read_only else ""
        quoted = str(path).replace("'", "''")
        try:
            self.execute(f"attach '{quoted}' as {name}{mode}")
        except duckdb.Error as error:
            if not isinstance(error, duckdb.IOException) and IN_USE not in str(error):
                raise
            raise HomeBusy(f"{path} cannot be opened now: {error}; try again") from error

    def limit_memory(self, gigabytes: float, spill: Path) -> None:
        """Hold at most about so much in memory, in tables too; what does not fit goes into the folder ``spill``."""
        self.execute(f"set memory_limit = '{gigabytes:g}GB'")
        self.execute("set temp_directory = $spill", {"spill": str(spill)})

    def detach(self, name: str) -> None:
        self.execute(f"detach {name}")

    def load_quack(self) -> None:
        """Load DuckDB's remote protocol. Before ``lock_down`` only.

        InputError where the extensions are neither installed as packages nor by DuckDB's INSTALL.
        """
        try:
            for name in ("httpfs", "quack"):
                self.execute(f"load {_extension(name)}")
        except duckdb.Error as error:
            raise InputError(
                f"quack cannot be loaded: {str(error).partition(chr(10))[0]}",
                suggestions=["duckdb -c 'install httpfs; install quack'"],
            ) from error

    def guard_quack(self, *, may_connect: Callable[[str, str, str], bool], may_run: Callable[[str, str], bool]) -> None:
        """Who may connect (connection, client's token, server's token) and what may run (connection, SQL).

        They are called on quack's own threads. Before ``lock_down`` only.
        """
        for purpose, function, takes in (("authentication", may_connect, 3), ("authorization", may_run, 2)):
            name = f"cowpath_quack_{purpose}"
            # Called for every query anew: what it answers changes while the SQL stays the same.
            self._connection.create_function(name, function, ["VARCHAR"] * takes, "BOOLEAN", side_effects=True)
            self.execute(f"set global quack_{purpose}_function = '{name}'")

    def serve_quack(self, *, port: int, token: str) -> None:
        """Answer DuckDB's remote protocol on this machine's loopback address."""
        try:
            self.rows(f"call quack_serve('{_quack(port)}', token = $token)", {"token": token})
        except duckdb.Error as error:
            raise InputError(f"quack cannot serve on port {port}: {error}") from error

    def stop_quack(self, *, port: int) -> None:
        """Take no more connections; what runs at this moment ends by itself, and keeps the database open until then."""
        self.rows(f"call quack_stop('{_quack(port)}')")

    def lock_down(self, databases: Sequence[Path]) -> None:
        """From here on no statement reaches a file but the database's own and these databases; no setting changes.

        It holds for every connection to this database, for its whole life.
        """
        self.execute("set python_enable_replacements = false")
        self.execute(f"set max_temp_directory_size = '{SPILL_LIMIT}'")
        self.execute("set allowed_paths = $paths", {"paths": _files_of(databases)})
        self.execute("set enable_external_access = false")
        self.execute("set lock_configuration = true")

    def read_only(
        self, sql: str, parameters: Mapping[str, object] | None = None, *, limit: int, timeout_s: float
    ) -> pa.Table:
        """At most ``limit`` rows of one query that can write nothing and is stopped after ``timeout_s``.

        The store is used up by it: give it a cursor of its own. QueryRefused where it is no query, cannot be
        run, or wants to write; QueryStopped where its time is over.
        """
        query = f"select * from (\n{one_statement(sql)}\n) limit {int(limit)}"
        timer = threading.Timer(timeout_s, self._connection.interrupt)
        try:
            with self._calls:
                self._connection.execute("begin transaction read only")
                timer.start()
                return self._connection.execute(query, dict(parameters) if parameters else None).to_arrow_table()
        except QueryStopped:
            raise QueryStopped(
                f"the query was stopped after {timeout_s:g} s; narrow it, or read the published copy"
            ) from None
        except (duckdb.Error, RuntimeError) as error:
            raise QueryRefused(str(error).partition("\n")[0]) from error
        finally:
            timer.cancel()
            self.close()

    def cursor(self) -> Store:
        """A second connection to the same database, for another thread. HomeBusy while its file is being replaced."""
        with self._calls:
            return Store(self._connection.cursor(), cursor_of=self)


class _Calls:
    """The calls into one database that are under way, over all of its connections.

    Closing a connection closes its cursors, and DuckDB hangs for ever where one of them is inside a query: its
    context then ends under its own lock. A cursor that is used after that raises HomeBusy.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way = 0
        self._ended = False

    def __enter__(self) -> None:
        with self._changed:
            if self._ended:
                raise HomeBusy(CLOSED)
            self._under_way += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        with self._changed:
            self._under_way -= 1
            self._changed.notify_all()
        if isinstance(error, duckdb.ConnectionException):
            raise HomeBusy(CLOSED) from error
        if isinstance(error, duckdb.InterruptException):
            raise QueryStopped("the query was stopped from outside") from error

    def end(self) -> None:
        """Let no more begin, and return when the last has come back."""
        with self._changed:
            self._ended = True
            self._changed.wait_for(lambda: self._under_way == 0)


def sql_folder() -> Path:
    """Where the SQL files lie: inside the installed package, or beside it in a checkout."""
    inside = Path(__file__).parent / "sql"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "sql"


def read_sql(name: str) -> str:
    """The text of ``sql/<name>.sql``."""
    path = sql_folder() / f"{name}.sql"
    if not path.is_file():
        raise InputError(f"no SQL file {name!r} under {sql_folder()}")
    return path.read_text()


@lru_cache(maxsize=256)
def _script(name: str) -> tuple[str, ...]:
    """The statements of a file of ours, read and parsed once: some are run ten times a second."""
    return tuple(statements(read_sql(name)))


def sql_names(folder: str) -> list[str]:
    """The names of a folder's SQL files in running order: ``["mine/10_steps", ...]``."""
    return [f"{folder}/{path.stem}" for path in sorted((sql_folder() / folder).glob("*.sql"))]


def statements(sql: str) -> list[str]:
    """The statements of a script, parsed by DuckDB itself."""
    return [s.query for s in duckdb.extract_statements(sql)]


def _extension(name: str) -> str:
    """An extension's file where its package is installed, else its name, which DuckDB looks up."""
    found = find_spec(f"duckdb_extension_{name}")
    folder = Path(found.origin).parent if found and found.origin else Path()
    path = folder / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
    return f"'{path}'" if path.is_file() else name


def _quack(port: int) -> str:
    return f"quack:localhost:{int(port)}"


def _files_of(databases: Sequence[Path]) -> list[str]:
    """Every name that DuckDB gives to a file of these databases."""
    return [f"{path}{suffix}" for path in databases for suffix in ("", ".wal", ".wal.checkpoint", ".wal.recovery")]


def one_statement(sql: str) -> str:
    """The text of the only statement of ``sql``, as DuckDB's own parser finds it; QueryRefused where it is not one."""
    try:
        found = statements(sql)
    except duckdb.Error as error:
        raise QueryRefused(str(error).partition("\n")[0]) from None
    if len(found) != 1:
        raise QueryRefused(f"exactly one statement is taken, not {len(found)}")
    return found[0].strip().removesuffix(";")
