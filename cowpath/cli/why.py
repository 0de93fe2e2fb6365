"""``cowpath why``: the evidence of a pair."""

from __future__ import annotations

import click

from cowpath.cli.output import settings_of, show, with_home, with_json


@click.command()
@click.argument("source")
@click.argument("target")
@with_home
@with_json
def why(source: str, target: str, home: str | None, as_json: bool) -> None:
    """The evidence that SOURCE comes before TARGET, also where there is no edge: which test failed, by how much."""
    from ranker.why import why as explain

    case = explain(settings_of(home), source, target)
    show(case, lambda: str(case["text"]), as_json=as_json)
