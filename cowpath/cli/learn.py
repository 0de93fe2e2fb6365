"""``cowpath mine``: publish what was collected, embed what is new, learn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from cowpath.cli.embed import embed
from cowpath.cli.output import say, settings_of, show, with_home, with_json
from cowpath.errors import InputError
from cowpath.settings import Settings

SHOWN = 10


@click.command()
@click.option("--every", default=None, metavar="INTERVAL", help="Serve it on a schedule: 90s, 15m, 2h.")
@click.option("--no-publish", is_flag=True, help="Mine the published copy as it is.")
@click.option(
    "--with",
    "others",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Learn from another home too, by its statistics.duckdb; may be given more than once.",
)
@click.option(
    "--gru/--no-gru",
    default=None,
    help="Train a small recurrent network too, kept where it wins on sessions held out; needs the model extra.",
)
@with_home
@with_json
def mine(
    every: str | None, no_publish: bool, others: tuple[Path, ...], gru: bool | None, home: str | None, as_json: bool
) -> None:
    """Learn edges and the next-skill model from the published calls.

    Runs in this process. With PREFECT_API_URL set it is a flow run there; with --every it is a
    deployment on a schedule until it is stopped. Only sessions that are new or changed are counted;
    homes that share no session learn together by --with, as if their logs were one.
    """
    settings = settings_of(home, gru=gru)
    if others and (every is not None or settings.prefect_api_url):
        raise InputError("--with works in a direct run only", suggestions=["cowpath mine --with FILE"])
    if every is not None:
        from miner.flow import run_every

        interval = parse_interval(every)
        say(f"mining {settings.at.root} every {every}; stop with Ctrl-C")
        run_every(settings, interval)
        return
    if not no_publish:
        _publish(settings)
    embeddings = embed(settings)
    record = learn(settings, others)
    document = record | {"embeddings": embeddings, "top": _top(settings)}
    show(document, lambda: _page(document), as_json=as_json)


def parse_interval(text: str) -> timedelta:
    """``90s``, ``15m``, ``2h`` or ``1d`` as a length of time."""
    match = re.fullmatch(r"(\d+)([smhd])", text.strip())
    if not match or int(match[1]) == 0:
        raise InputError(f"{text!r} is not an interval", suggestions=["90s", "15m", "2h", "1d"])
    unit = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}[match[2]]
    return timedelta(**{unit: int(match[1])})


def _publish(settings: Settings) -> None:
    from collector.doors import open_door

    with open_door(settings) as door:
        door.publish()


def learn(settings: Settings, others: Sequence[Path] = ()) -> dict[str, Any]:
    """One mining run, here or under the Prefect server that was named."""
    if settings.prefect_api_url:
        from miner.flow import run_once

        return run_once(settings)
    from miner.stages import mine

    return mine(settings, others=others)


def _top(settings: Settings) -> list[dict[str, Any]]:
    """The strongest confirmed edges, with the evidence a person wants to see first."""
    from cowpath.edge import read_layer

    edges = [e for e in read_layer(settings.at.edges, "learned") if e.status == "confirmed"]
    edges.sort(key=lambda e: (-(e.evidence["z"] or 0), e.source, e.target))
    return [
        {
            "source": e.source,
            "relation": e.relation,
            "target": e.target,
            **{k: e.evidence.get(k) for k in ("sessions", "witnesses", "lift", "share", "lower", "q")},
        }
        for e in edges[:SHOWN]
    ]


def _page(document: dict[str, Any]) -> str:
    if not document["calls"]:
        return "No calls yet: import some (cowpath import claude) or post them to cowpath up, then mine again."
    edges = document["edges"]
    lines = [
        f"{document['calls']:,} calls of {document['skills']:,} skills in {document['sessions']:,} sessions"
        f" ({_vouched(document)}); {document['pairs_tested']:,} pairs tested.",
        f"precedes: {edges['precedes']['confirmed']} confirmed, {edges['precedes']['candidate']} candidates"
        f" · complements: {edges['complements']['confirmed']} · bundles: {document['bundles']}",
    ]
    if document["suggested_calls"]:
        lines.append(f"{document['suggested_calls']} calls followed our own advice and are kept out of the evidence.")
    if not document["top"]:
        lines.append("No edge holds yet: too few sessions agree. 'cowpath why A B' says what a pair lacks.")
    for edge in document["top"]:
        arrow = "→" if edge["relation"] == "precedes" else "+"
        lines.append(
            f"  {edge['source']} {arrow} {edge['target']}"
            f"   ({edge['sessions']} sessions, {edge['lift']:.1f} x expected"
            + (f", this order in {edge['share']:.0%}" if edge["share"] is not None else "")
            + ")"
        )
    return "\n".join(lines)


def _vouched(document: dict[str, Any]) -> str:
    if document["witness"] == "actor":
        return f"{document['actors']} actors"
    return f"one actor, so {document['witness']}s must agree instead of actors"
