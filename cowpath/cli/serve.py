"""``cowpath up``, ``publish``, ``status``: the collector's commands."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from cowpath.cli.output import say, settings_of, show, with_home, with_json
from cowpath.errors import HomeBusy, StateError
from cowpath.settings import HELP, Settings

if TYPE_CHECKING:
    import socket

    from fastapi import FastAPI

    from collector.service import Collector
    from ranker.advice import Record

HISTORY = Path("~/.claude/projects")


@click.command("up")
@with_home
@click.option("--host", default=None, help=HELP["host"])
@click.option("--port", type=click.IntRange(0, 65535), default=None, help=HELP["port"])
@click.option("--publish-every", type=float, default=None, metavar="S", help=HELP["publish_every_s"])
@click.option("--quack", type=click.IntRange(1, 65535), default=None, metavar="PORT", help=HELP["quack_port"])
@click.option("--mine-every", type=float, default=None, metavar="S", help="Also mine every so many seconds.")
@with_json
def up(
    home: str | None,
    host: str | None,
    port: int | None,
    publish_every: float | None,
    quack: int | None,
    mine_every: float | None,
    as_json: bool,
) -> None:
    """Serve the collector and the ranker on one port until SIGINT or SIGTERM."""
    settings = settings_of(home, host=host, port=port, publish_every_s=publish_every, quack_port=quack)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    _need_collector()
    from collector.server import listen
    from collector.service import Collector

    with listen(settings) as listener, Collector(settings) as collector:
        _serve(collector, listener, mine_every=mine_every, as_json=as_json)
    say("cowpath: stopped; everything acknowledged is kept")


@click.command("publish")
@with_home
@with_json
def publish(home: str | None, as_json: bool) -> None:
    """Publish usage.duckdb, the copy that analysts and the miner read."""
    from collector.doors import open_door

    settings = settings_of(home)
    with open_door(settings) as door:
        door.publish()
    usage = str(settings.at.usage)
    show({"published": usage}, lambda: f"published {usage}", as_json=as_json)


@click.command("status")
@with_home
@with_json
def status(home: str | None, as_json: bool) -> None:
    """What this installation holds, and whether its collector runs."""
    document = _status(settings_of(home))
    show(document, lambda: _page(document), as_json=as_json)


def _serve(collector: Collector, listener: socket.socket, *, mine_every: float | None, as_json: bool) -> None:
    from collector.access.guard import Guard, is_loopback
    from collector.access.keys import Keyring, make_local_key
    from collector.app import create_app
    from collector.aside import Aside
    from collector.schedule import Every
    from collector.server import Child, serve, url_of

    settings, url = collector.settings, url_of(listener)
    app = create_app(settings, collector)
    aside = Aside(collector.take_in)
    answers = _include_ranker(app, settings, record=aside)
    guard = Guard(
        app, Keyring(collector.home, local=make_local_key(collector.home)), loopback=is_loopback(settings.host)
    )
    _hint_at_history(collector)

    def announce() -> None:
        collector.lock.announce(url)
        if settings.quack_port:
            say(
                f"cowpath: quack:localhost:{settings.quack_port} answers keys that may read, or {settings.at.local_key}"
            )
        _say_where(url, settings, answers=answers, as_json=as_json)

    miner = Child("mine", "--home", settings.home, "--json")
    mining = Every(mine_every, miner.run, name="mine") if mine_every else None
    try:
        serve(guard, listener, grace_s=settings.drain_grace_s, announce=announce)
    finally:
        aside.close()
        miner.stop()
        if mining:
            mining.stop()


def _need_collector() -> None:
    try:
        import fastapi  # noqa: F401  # only whether it is there
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise StateError(f"{error.name} is not installed", suggestions=["pip install 'cowpath[collector]'"]) from error


def _include_ranker(app: FastAPI, settings: Settings, *, record: Record) -> bool:
    """Answer questions on the same port too, and hooks if that is wanted, where what that takes is installed."""
    try:
        from ranker.app import create_router
        from ranker.push import Push
        from ranker.tools import Desk
    except ModuleNotFoundError as error:
        say(f"cowpath: the collector runs alone, {error.name} is not installed; pip install 'cowpath[ranker]'")
        return False
    desk = Desk.over(settings, record)
    app.include_router(create_router(settings, desk=desk, guarded=True))
    if settings.push_most:
        app.state.advise = Push(settings, desk.ranker, record)
    return True


def _say_where(url: str, settings: Settings, *, answers: bool, as_json: bool) -> None:
    """One line on stdout, for a program or a person that waits for it."""
    document = {"url": url, "home": str(settings.at.root), "pid": os.getpid(), "ranker": answers}
    words = f"cowpath listens on {url} and keeps everything in {settings.at.root}; its description: {url}/openapi.json"
    click.echo(msgspec.json.encode(document).decode() if as_json or not sys.stdout.isatty() else words)


def _hint_at_history(collector: Collector) -> None:
    """A person with an agent history and an empty store is told how to import it; nothing is imported unasked."""
    if sys.stdout.isatty() and HISTORY.expanduser().is_dir() and not collector.counts()["events"]:
        say(f"cowpath: {HISTORY} holds an agent's history; in another terminal: cowpath import claude")


def _status(settings: Settings) -> dict[str, Any]:
    from collector import status as numbers
    from collector.doors import HttpDoor, key_of
    from collector.lock import running

    holder = running(settings.at)
    if holder and holder.url:
        return HttpDoor(holder.url, key=key_of(settings)).status() | {"url": holder.url}
    if holder:
        return {"running": True, "pid": holder.pid, **numbers.at_rest(settings.at)}
    try:
        return numbers.of_stopped(settings.at)
    except HomeBusy:
        # Another command has the store for a moment.
        return {"running": False, **numbers.at_rest(settings.at)}


def _page(document: dict[str, Any]) -> str:
    running = f"runs at {document['url']}" if document.get("url") else "runs" if document["running"] else "does not run"
    rejected = ", ".join(f"{n} {code}" for code, n in document.get("rejected", {}).items()) or "none"
    published = document["published"]
    edges = ", ".join(f"{n} {layer}" for layer, n in document["edges"].items() if n) or "none yet"
    shared = ", open to other users of this machine" if document["open_to_others"] else ""
    return "\n".join(
        [
            f"home       {document['home']}{shared}",
            f"collector  {running}",
            f"events     {document.get('events', 'unknown while another process holds the home')}",
            f"rejected   {rejected}",
            f"published  {published['age_s']:.0f} s ago, {published['bytes']} bytes"
            if published
            else "published  never",
            f"edges      {edges}",
        ]
    )
