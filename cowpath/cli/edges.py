"""``cowpath edges``: the layers of the graph, built, generated and corrected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cowpath.cli.output import say, settings_of, show, with_home, with_json
from cowpath.errors import NoLanguageModel

if TYPE_CHECKING:
    from ranker.generate import Cost, GenerateReport
    from ranker.layers import BuildReport


@click.group()
def edges() -> None:
    """Build the layers of the graph of skills."""


@edges.command()
@with_home
@with_json
def build(home: str | None, as_json: bool) -> None:
    """Write the edges that authors declare, that bodies name, that likeness gives and that a language model answered.

    Edges made by hand stay. Equal catalogues, embeddings and answers give equal bytes.
    """
    from ranker.layers import build_layers

    report = build_layers(settings_of(home))
    show(report, lambda: "\n".join(_built(report)), as_json=as_json)


@edges.command()
@click.option("--dry-run", is_flag=True, help="Tell what would be asked and what it may cost; ask nothing.")
@click.option("--retry", is_flag=True, help="Ask again where the model refused, was cut short or answered badly.")
@click.option("--limit", type=click.IntRange(1), default=None, metavar="N", help="Ask about at most N skills.")
@with_home
@with_json
def generate(dry_run: bool, retry: bool, limit: int | None, home: str | None, as_json: bool) -> None:
    """Ask a language model how skills belong together: one call for each new or changed description.

    Nothing is asked before COWPATH_LLM_MODEL is set. A run that stops goes on where it stopped.
    """
    try:
        from ranker.generate import generate as ask
    except ImportError as error:
        raise NoLanguageModel(f"{error.name} is not installed", suggestions=["pip install 'cowpath[llm]'"]) from error

    settings = settings_of(home)
    report = ask(settings, dry_run=dry_run, retry=retry, limit=limit, told=_said)
    show(report, lambda: _generated(report), as_json=as_json)


def _said(done: int, of: int) -> None:
    if done % 10 == 0 or done == of:
        say(f"{done} of {of} skills asked about")


def _generated(report: GenerateReport) -> str:
    lines = [
        f"{report.skills:,} skills, {report.unchanged:,} answered before,"
        f" {report.without_candidates:,} with nothing to ask; {report.left:,} left",
        f"estimated: {_price(report.estimate)}",
    ]
    if report.cost is not None:
        outcomes = ", ".join(f"{count} {name}" for name, count in report.outcomes.items()) or "nothing asked"
        lines += [f"paid: {_price(report.cost)}", f"outcomes: {outcomes}"]
    lines += [f"no candidates by {source}: {why}" for source, why in report.missing.items()]
    return "\n".join([*lines, *(_built(report.built) if report.built else [])])


def _price(cost: Cost) -> str:
    dollars = "" if cost.dollars is None else f", {cost.dollars:.2f} dollars"
    return f"{cost.calls:,} calls, {cost.input_tokens:,} tokens in, {cost.output_tokens:,} out{dollars}"


def _built(report: BuildReport) -> list[str]:
    lines = [f"{name:<10} {layer.edges:>8,} edges" for name, layer in report.layers.items()]
    left_out = sum(layer.left_out for layer in report.layers.values())
    lines += [f"{left_out} left out: they contradict others"] if left_out else []
    if (census := report.census) is not None:
        lines.append(
            f"of {census.claims:,} claims {census.invalid:,} were invalid, {census.dropped_direction:,} contradicted in"
            f" direction ({census.both_ways:,} of {census.pairs:,} pairs), {census.dropped_conflict:,} stood beside a"
            f" conflict, {census.dropped_cycle:,} closed a cycle"
        )
        lines += [
            f"  {name:<12} {share.pairs:>7,} pairs asked {share.edges:>6,} edges {share.only:>6,} by it alone"
            + ("" if share.outside is None else f" {share.outside:>6,} outside the embedding's neighbourhood")
            for name, share in census.sources.items()
        ]
    return lines
