"""``cowpath erase``: a subject, or what is old, out of every place of this home."""

from __future__ import annotations

import sys
from typing import Any

import click

from cowpath.cli.learn import learn, parse_interval
from cowpath.cli.output import say, settings_of, show, with_home, with_json
from cowpath.errors import InputError, StateError
from cowpath.settings import Settings


@click.command()
@click.option("--actor", default=None, metavar="NAME", help="Everything of this actor, as its agents named it.")
@click.option("--session", default=None, metavar="ID", help="Everything of this session.")
@click.option("--older-than", default=None, metavar="AGE", help="Everything older: 90d, 12h. It may be sent again.")
@click.option("--dry-run", is_flag=True, help="Only count what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_home
@with_json
def erase(
    actor: str | None,
    session: str | None,
    older_than: str | None,
    dry_run: bool,
    yes: bool,
    home: str | None,
    as_json: bool,
) -> None:
    """Erase an actor, a session, or what is older than some age, everywhere in this home, and learn anew.

    An erased actor or session stays away, also when it is imported again.
    """
    given = {"actor": actor, "session": session, "age": older_than}
    chosen = [(kind, value) for kind, value in given.items() if value]
    if len(chosen) != 1:
        raise InputError("say what: one of --actor NAME, --session ID, --older-than 90d")
    ((kind, value),) = chosen
    settings = settings_of(home)
    if not dry_run and not yes:
        _ask(kind, value)
    document = _erase(settings, kind, value, dry_run=dry_run)
    if document["learned"] == "stale":
        document["learned"] = _learn_anew(settings)
    show(document, lambda: _page(document), as_json=as_json)


def _ask(kind: str, value: str) -> None:
    if not sys.stdin.isatty():
        raise InputError("erasing cannot be undone: confirm it with --yes, or look with --dry-run")
    what = f"what is older than {value}" if kind == "age" else f"{kind} {value}"
    click.confirm(f"Erase {what} for ever?", abort=True, err=True)


def _erase(settings: Settings, kind: str, value: str, *, dry_run: bool) -> dict[str, Any]:
    from collector.doors import open_door

    with open_door(settings) as door:
        if kind == "age":
            return door.erase_older(parse_interval(value).total_seconds() / 86_400, dry_run=dry_run)
        return door.erase("actor" if kind == "actor" else "session", value, dry_run=dry_run)


def _learn_anew(settings: Settings) -> str:
    """The next-skill model and the edges without them; where that cannot be done here, nothing is served."""
    try:
        learn(settings)
    except StateError as error:
        say(f"cowpath: {error.message}; run 'cowpath mine'")
    except ModuleNotFoundError as error:
        say(f"cowpath: {error.name} is not installed here; run 'cowpath mine' where it is")
    else:
        return "learned anew"
    return "stale"


def _page(document: dict[str, Any]) -> str:
    verb = "would go" if document["dry_run"] else "erased"
    places = "\n".join(f"  {place:<16} {n:,}" for place, n in document["removed"].items())
    return f"{verb}:\n{places or '  nothing is known of it'}\nlearned: {document['learned']}"
