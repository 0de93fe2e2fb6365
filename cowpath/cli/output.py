"""How commands speak: one JSON document or a page for people on stdout, everything else on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

import click
import msgspec

from cowpath.errors import CowpathError
from cowpath.settings import Settings, read_settings

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def with_json(command: F) -> F:
    """Give a command ``--json``; without it a pipe gets JSON too and a terminal gets a page."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document (the default when piped).")(
        command
    )


def with_home(command: F) -> F:
    """Give a command ``--home``."""
    return click.option("--home", default=None, metavar="DIR", help="Folder of everything at rest (COWPATH_HOME).")(
        command
    )


def settings_of(home: str | None, **flags: Any) -> Settings:
    """The settings of a command line: its flags, then ``COWPATH_*``, then the defaults."""
    return read_settings(home=home, **flags)


def show(document: Any, page: Callable[[], str], *, as_json: bool) -> None:
    """Print the document as JSON where it was asked for or stdout is piped, else the page."""
    if as_json or not sys.stdout.isatty():
        click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        click.echo(page())


def say(words: str) -> None:
    """A line for people, on stderr."""
    click.echo(words, err=True)


def progress(items: Sequence[T], label: str) -> Iterable[T]:
    """The items, with a progress bar on stderr where that is a terminal."""
    with click.progressbar(items, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        yield from bar


def fail(error: CowpathError, *, as_json: bool) -> NoReturn:
    """Print the error (JSON on stdout for programs, words on stderr for people) and exit with its code."""
    if as_json:
        click.echo(msgspec.json.encode(error.document()).decode())
    click.echo(f"cowpath: {error.message}", err=True)
    for suggestion in error.suggestions:
        click.echo(f"  try: {suggestion}", err=True)
    sys.exit(error.exit_code)
