"""``cowpath sql`` and ``cowpath export``: the analysts' commands."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cowpath.cli.output import settings_of, show, with_home, with_json
from cowpath.errors import InputError, NothingLearned, StateError
from cowpath.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

BEGINNINGS = ("select", "from", "with", "describe", "summarize", "show", "values", "(", "--", "/*", "table")
WIDEST = 48


@click.command("sql")
@click.argument("question", required=False)
@click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="A parameter of the question or query.")
@click.option("--live", is_flag=True, help="Ask the running collector, to the latest event, not the published copy.")
@click.option("--format", "form", type=click.Choice(["table", "json", "csv"]), default=None,
              help="How to print; a table on a terminal, JSON when piped.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), default=10_000, show_default=True, help="Most rows.")
@with_home
@with_json
def sql(
    question: str | None,
    sets: tuple[str, ...],
    live: bool,
    form: str | None,
    limit: int,
    home: str | None,
    as_json: bool,
) -> None:
    """Ask a ready question or run a query over the published tables and views; without either, list the questions."""
    if question is None:
        _list(as_json=as_json or form == "json")
        return
    text, parameters = _read(question, _pairs(sets))
    table = _ask(settings_of(home), text, parameters, live=live, limit=limit)
    _print(table, "json" if as_json else form or ("table" if sys.stdout.isatty() else "json"))


@click.command("export")
@click.argument("directory", required=False, type=click.Path(path_type=Path, file_okay=False))
@with_home
@with_json
def export(directory: Path | None, home: str | None, as_json: bool) -> None:
    """Write the published copy as Parquet, one partition a day; days that have not changed are left alone.

    DIRECTORY is by default exports in the home; erasing reaches no other.
    """
    from collector.analysts.export import export as write

    settings = settings_of(home)
    report = write(_usage(settings), directory or settings.at.exports)
    show(
        report,
        lambda: (
            f"{report['directory']}: {len(report['written'])} days written, {report['unchanged']} unchanged, "
            f"{len(report['removed'])} removed"
        ),
        as_json=as_json,
    )


def _list(*, as_json: bool) -> None:
    from collector.analysts.questions import questions

    document = [
        {
            "question": q.name,
            "about": q.about,
            "parameters": [{"name": p.name, "default": p.default, "help": p.help} for p in q.parameters],
        }
        for q in questions()
    ]
    show(document, lambda: "\n".join(f"{q['question']:20} {q['about']}" for q in document), as_json=as_json)


def _pairs(sets: tuple[str, ...]) -> dict[str, str]:
    for text in sets:
        if "=" not in text:
            raise InputError(f"--set takes NAME=VALUE, not {text!r}")
    return dict(text.split("=", 1) for text in sets)


def _read(text: str, given: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The query and its parameters, whether it was written out or is a question's name."""
    from collector.analysts.questions import question

    if text.lstrip().lower().startswith(BEGINNINGS) and not text.strip().isidentifier():
        return text, dict(given)
    found = question(text)
    return found.sql, found.values(given)


def _ask(settings: Settings, text: str, parameters: dict[str, str], *, live: bool, limit: int) -> pa.Table:
    from cowpath.store import Store

    if live:
        return _ask_live(settings, text, parameters, limit=limit)
    store = Store.open(_usage(settings), read_only=True)
    with store:
        store.lock_down([])
        return store.cursor().read_only(text, parameters, limit=limit, timeout_s=settings.sql_timeout_s)


def _ask_live(settings: Settings, text: str, parameters: dict[str, str], *, limit: int) -> pa.Table:
    import msgspec
    import pyarrow as pa

    from collector.doors import ask_bytes, key_of
    from collector.lock import running

    holder = running(settings.at)
    if holder is None or not holder.url:
        raise StateError("no collector runs on this home; leave --live away, or start one with 'cowpath up'")
    body = {"sql": text, "parameters": parameters, "format": "arrow", "limit": limit}
    answer = ask_bytes(holder.url, "POST", "/v1/sql", msgspec.json.encode(body), key=key_of(settings))
    return pa.ipc.open_stream(answer).read_all()


def _usage(settings: Settings) -> Path:
    usage = settings.at.usage
    if not usage.exists():
        raise NothingLearned(f"nothing was published in {settings.at.root} yet", suggestions=["cowpath publish"])
    return usage


def _print(table: pa.Table, form: str) -> None:
    from collector.analysts.render import rendered

    if form == "table":
        click.echo(_page(table))
    else:
        click.echo(rendered(table, form).decode().rstrip("\n"))


def _page(table: pa.Table) -> str:
    """Columns side by side, numbers to the right."""
    texts = [
        [name, *map(_cell, column.to_pylist())] for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    numeric = [str(field.type).startswith(("int", "uint", "double", "float", "decimal")) for field in table.schema]
    columns = [
        [cell.rjust(width) if right else cell.ljust(width) for cell in cells]
        for cells, right, width in zip(texts, numeric, (max(map(len, cells)) for cells in texts), strict=True)
    ]
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    return "\n".join([*lines, f"({table.num_rows} rows)"])


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
