"""``cowpath edges``: the layers of the graph, built, generated and corrected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cowpath.cli.output import settings_of, show, with_home, with_json

if TYPE_CHECKING:
    from ranker.layers import LayerReport


@click.group()
def edges() -> None:
    """Build the layers of the graph of skills."""


@edges.command()
@with_home
@with_json
def build(home: str | None, as_json: bool) -> None:
    """Write the edges that authors declare, that bodies name and that likeness gives.

    Edges made by hand stay. Equal catalogues and embeddings give equal bytes.
    """
    from ranker.layers import build_layers

    layers = build_layers(settings_of(home))
    show({"layers": layers}, lambda: _page(layers), as_json=as_json)


def _page(layers: dict[str, LayerReport]) -> str:
    lines = [f"{name:<10} {report.edges:>8,} edges" for name, report in layers.items()]
    left_out = sum(report.left_out for report in layers.values())
    return "\n".join([*lines, *([f"{left_out} left out: they contradict others"] if left_out else [])])
