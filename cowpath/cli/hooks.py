"""``cowpath hook`` and ``cowpath hooks``: what an agent runs, and the settings file that tells it to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from cowpath.cli.output import settings_of, show, with_home, with_json

F = TypeVar("F", bound=Callable[..., Any])


@click.command()
@click.argument("dialect", type=click.Choice(["claude-code"]))
def hook(dialect: str) -> None:
    """Take a hook's JSON from stdin into the spool and ship what waits. Says nothing, never fails.

    'python -m cowpath.hook' is the same and starts faster.
    """
    from cowpath.hook import main

    main([dialect])


@click.group()
def hooks() -> None:
    """Tell Claude Code to report its skill calls: edit its settings file, safely and reversibly."""


def _of_a_file(command: F) -> F:
    place = click.option(
        "--settings", "path", type=click.Path(dir_okay=False, path_type=Path), help="The settings file itself."
    )
    scope = click.option(
        "--scope",
        type=click.Choice(["user", "project"]),
        default="user",
        show_default=True,
        help="Your own settings, or those of the project in this folder.",
    )
    return place(scope(command))


_dry_run = click.option("--dry-run", is_flag=True, help="Show what would change, change nothing.")


@hooks.command()
@_of_a_file
@click.option("--url", default=None, help="Collector to report to (COWPATH_URL).")
@_dry_run
@with_home
@with_json
def install(path: Path | None, scope: str, url: str | None, dry_run: bool, home: str | None, as_json: bool) -> None:
    """Add the hooks to a settings file. What else is in it stays; a backup is kept beside it."""
    from cowpath.hooks import install, settings_file

    settings = settings_of(home, url=url)
    document = install(settings_file(scope, path), settings.sends_to, with_key=bool(settings.key), dry_run=dry_run)
    show(document, lambda: _change_page(document), as_json=as_json)


@hooks.command()
@_of_a_file
@_dry_run
@with_json
def uninstall(path: Path | None, scope: str, dry_run: bool, as_json: bool) -> None:
    """Take the hooks out again. A file that was not edited meanwhile gets back what it was, byte by byte."""
    from cowpath.hooks import settings_file, uninstall

    document = uninstall(settings_file(scope, path), dry_run=dry_run)
    show(document, lambda: _change_page(document), as_json=as_json)


@hooks.command("status")
@_of_a_file
@with_home
@with_json
def status(path: Path | None, scope: str, home: str | None, as_json: bool) -> None:
    """Which events the settings file reports, and what waits in the spool."""
    from cowpath.hooks import settings_file, status
    from cowpath.spool import Spool

    files, size = Spool(settings_of(home).at.spool).waiting()
    document = status(settings_file(scope, path)) | {"spool": {"files": files, "bytes": size}}
    show(document, lambda: _status_page(document), as_json=as_json)


def _change_page(document: Mapping[str, Any]) -> str:
    if not document["changed"]:
        return f"{document['settings']}: nothing to change."
    if document["dry_run"]:
        return str(document["diff"])
    backup = document["backup"]
    return f"{document['settings']}: changed." + (f" What it was lies in {backup}." if backup else "")


def _status_page(document: Mapping[str, Any]) -> str:
    spool = document["spool"]
    lines = [f"{document['settings']}: {'installed' if document['installed'] else 'not installed'}"]
    lines += [f"  {event}: {', '.join(kinds)}" for event, kinds in document["events"].items()]
    lines.append(f"spool: {spool['bytes']:,} bytes wait in {spool['files']:,} files")
    return "\n".join(lines)
