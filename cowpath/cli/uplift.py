"""``cowpath uplift``: what suggestions change."""

from __future__ import annotations

from typing import Any

import click

from cowpath.cli.output import settings_of, show, with_home, with_json

MOST_EDGES = 20


@click.command()
@click.option(
    "--within", type=click.IntRange(1, 100), default=5, show_default=True, help="How many calls later still follow."
)
@with_home
@with_json
def uplift(within: int, home: str | None, as_json: bool) -> None:
    """What suggestions change: sessions that were shown some against the holdout, in the published copy.

    A session followed where a skill of its first list is among its next calls. For the holdout
    (COWPATH_HOLDOUT_SHARE) that list is what would have been shown.
    """
    from miner.uplift import uplift as measure

    document = measure(settings_of(home), within=within)
    show(document, lambda: page(document), as_json=as_json)


def page(document: dict[str, Any]) -> str:
    """The comparison as a person reads it."""
    within = document["within_calls"]
    lines = [
        f"A skill of the first list was among the next {within} calls",
        f"  shown    {_share(document['served'])}",
        f"  held out {_share(document['holdout'])}",
        _difference(document),
    ]
    lines += [
        f"  {edge['source']} → {edge['target']}: shown {_share(edge['served'])}, held out {_share(edge['holdout'])}; "
        + _difference(edge)
        for edge in document["edges"][:MOST_EDGES]
    ]
    if document["edges_with_too_few"]:
        lines.append(f"{document['edges_with_too_few']} more edges were offered and used too seldom to say.")
    return "\n".join(lines)


def _share(side: dict[str, Any]) -> str:
    share = "" if side["share"] is None else f" ({side['share']:.0%})"
    return f"in {side['followed']:,} of {side['sessions']:,} sessions{share}"


def _difference(case: dict[str, Any]) -> str:
    if not case["enough"]:
        return str(case["reason"])
    low, high = case["interval"]
    return f"difference {case['difference']:+.1%} (95 % interval {low:+.1%} to {high:+.1%})"
