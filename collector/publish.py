"""Publish: live.duckdb and the files at rest -> usage.duckdb, the copy everyone else reads.

The copy is made inside one read transaction, under a temporary name, and then renamed: a reader
sees the old one or the new one, whole, and keeps reading the one it opened.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa

from cowpath.edge import LAYERS, Edge, Provenance, read_layer
from cowpath.errors import BadFile, HomeBusy
from cowpath.home import Home, sync_file
from cowpath.skill import Catalogue, read_catalogue
from cowpath.store import Store, sql_names

log = logging.getLogger("cowpath.collector")

T = TypeVar("T")

PATIENCE_S = 60.0
"""How long a publication waits for a query to let go of it."""

SKILL_COLUMNS = pa.schema(
    [
        ("skill_id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("scope", pa.string()),
        ("plugin", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("content_hash", pa.string()),
    ]
)
ALIAS_COLUMNS = pa.schema([("name", pa.string()), ("skill_id", pa.string())])
EDGE_COLUMNS = pa.schema(
    [(name, pa.string()) for name in ("source", "relation", "target", "status", "provenance", "evidence")]
)


def publish(live: Store, home: Home) -> Path:
    """Write usage.duckdb anew from one moment of the live store. Only the home's collector calls this."""
    for left_over in home.root.glob(f".{home.usage.name}.*"):
        left_over.unlink()
    temporary = temporary_of(home)
    try:
        _copy(live, home, temporary)
        _add_views(temporary)
        _put_in_place(temporary, home.usage)
    finally:
        temporary.unlink(missing_ok=True)
    return home.usage


def temporary_of(home: Home) -> Path:
    """Where this process writes the copy before it has its name."""
    return home.root / f".{home.usage.name}.{os.getpid()}"


def _copy(live: Store, home: Home, path: Path) -> None:
    catalogue = _readable(lambda: read_catalogue(home.catalogue), Catalogue())
    live.attach(path, "usage")
    try:
        with (
            live.visible("catalogue_rows", skill_table(catalogue)),
            live.visible("alias_rows", alias_table(catalogue)),
            live.visible("edge_rows", edge_table(home.edges)),
            live.transaction(),
        ):
            for name in sql_names("publish"):
                live.run(name)
    finally:
        live.detach("usage")


def _add_views(path: Path) -> None:
    """The views, made inside the copy itself so that they name nothing outside of it."""
    with _let_go(path) as usage:
        for name in ["schema/001_formulas", *sql_names("views")]:
            usage.run(name)


def _let_go(path: Path) -> Store:
    """The copy in a database of its own. A query that lists the tables of all databases holds it as long as it runs."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return Store.open(path)
        except HomeBusy:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def _put_in_place(temporary: Path, usage: Path) -> None:
    sync_file(temporary)
    # Left by a tool that opened the published copy for writing; beside the new copy it would be poison.
    usage.with_name(usage.name + ".wal").unlink(missing_ok=True)
    temporary.replace(usage)


def skill_table(catalogue: Catalogue) -> pa.Table:
    """The known skills as rows."""
    rows = [{name: _plain(getattr(s, name)) for name in SKILL_COLUMNS.names} for s in catalogue.skills.values()]
    return pa.Table.from_pylist(rows, schema=SKILL_COLUMNS)


def alias_table(catalogue: Catalogue) -> pa.Table:
    """Every name that resolves, ids included, as rows."""
    rows = [{"name": name, "skill_id": skill_id} for name, skill_id in catalogue.alias_of.items()]
    return pa.Table.from_pylist(rows, schema=ALIAS_COLUMNS)


def edge_table(folder: Path) -> pa.Table:
    """The edges of every layer as rows, their evidence as JSON text."""
    rows = [
        {
            "source": edge.source,
            "relation": edge.relation,
            "target": edge.target,
            "status": edge.status,
            "provenance": edge.provenance,
            "evidence": msgspec.json.encode(edge.evidence, order="sorted").decode(),
        }
        for layer in LAYERS
        for edge in _layer(folder, layer)
    ]
    return pa.Table.from_pylist(rows, schema=EDGE_COLUMNS)


def _layer(folder: Path, layer: Provenance) -> list[Edge]:
    return _readable(lambda: read_layer(folder, layer), [])


def _readable(read: Callable[[], T], otherwise: T) -> T:
    """What a file at rest holds; a broken one costs its own rows, never the publication of the calls."""
    try:
        return read()
    except BadFile as error:
        log.warning("published without it: %s", error.message)
        return otherwise


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
