"""``cowpath runs`` and ``cowpath diff``: the kept mining runs, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from cowpath.cli.output import settings_of, show, with_home, with_json

MOST_LINES = 20
ARROWS = {"precedes": "→", "complements": "+", "conflicts_with": "✕", "routes_to": "⇒"}


@click.command()
@with_home
@with_json
def runs(home: str | None, as_json: bool) -> None:
    """The mining runs that are kept (COWPATH_KEEP_RUNS), newest first."""
    from miner.runs import runs as kept

    found = kept(settings_of(home).at)
    show({"runs": found}, lambda: "\n".join(map(_line, found)) or "No run is kept yet: cowpath mine", as_json=as_json)


@click.command()
@click.argument("old", metavar="RUN")
@click.argument("new", metavar="RUN")
@with_home
@with_json
def diff(old: str, new: str, home: str | None, as_json: bool) -> None:
    """What the second RUN learned, changed and dropped against the first, and which test failed.

    A run is named by its id (cowpath runs), the beginning of one, or as 'previous' or 'latest'.
    """
    from miner.runs import diff as compare

    document = compare(settings_of(home).at, old, new)
    show(document, lambda: page(document), as_json=as_json)


def page(document: dict[str, Any]) -> str:
    """A comparison as a person reads it."""
    old, new = document["old"], document["new"]
    lines = [f"{old['run_id']} ({old['mined_at']}) → {new['run_id']} ({new['mined_at']})"]
    differing = [*document["log"].items(), *document["parameters"].items()]
    lines += [f"  {name}: {before} → {after}" for name, (before, after) in differing]
    for title in ("learned", "dropped", "changed"):
        found = document[title]
        lines += [f"{title}: {len(found)}", *_some(_PAGES[title](edge) for edge in found)]
    return "\n".join([*lines, f"unchanged: {document['unchanged']}"])


def _line(run: dict[str, Any]) -> str:
    counts = [f"{n} {relation} {status}" for relation, by in run["edges"].items() for status, n in by.items() if n]
    again = f", mined {run['times']} times" if run["times"] > 1 else ""
    return f"{run['run_id']}  {run['mined_at']}  {run['sessions']:,} sessions: {', '.join(counts) or 'no edge'}{again}"


def _some(lines: Iterator[str]) -> list[str]:
    found = [f"  {line}" for line in lines]
    more = [f"  … and {len(found) - MOST_LINES} more: --json"] if len(found) > MOST_LINES else []
    return [*found[:MOST_LINES], *more]


def _claim(edge: dict[str, Any]) -> str:
    return f"{edge['source']} {ARROWS.get(edge['relation'], edge['relation'])} {edge['target']} ({edge['status']})"


def _lacks(case: dict[str, Any]) -> str:
    if "cycle" in case:
        return f"it would close the circle {' → '.join(case['cycle'])}"
    tests = [
        f"{t['test']} {'none' if t['value'] is None else t['value']}, bound {t['bound']:g}" for t in case["failed"]
    ]
    return "; ".join(tests) or str(case["verdict"])


_PAGES = {
    "learned": lambda edge: f"{_claim(edge)}; before: {_lacks(edge['lacked'])}",
    "dropped": lambda edge: f"{_claim(edge)}; now: {_lacks(edge['lacks'])}",
    "changed": lambda edge: f"{_claim(edge['before'])} is now {_claim(edge['after'])}: {_lacks(edge['lacks'])}",
}
