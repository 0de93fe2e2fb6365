"""``cowpath eval``: measure suggestions and retrieval on a data set, beside what others would have said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cowpath.cli.output import say, settings_of, show, with_home, with_json
from cowpath.errors import ModelMissing
from cowpath.settings import Settings

MEASURES = ("hr@1", "hr@5", "hr@20", "mrr@20")

with_data = click.option(
    "--data",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with events.jsonl, catalog.jsonl, queries.jsonl.",
)


@click.group("eval")
def eval_() -> None:
    """Measure suggestions and retrieval on a data set."""


@eval_.command("next")
@with_data
@click.option("--seed", default=0, show_default=True, help="Which random fifth is tested.")
@click.option("--time-split", is_flag=True, help="Learn from the earlier four fifths instead; needs ts.")
@with_home
@with_json
def next_(data: Path, seed: int, time_split: bool, home: str | None, as_json: bool) -> None:
    """Predict every call of the test sessions: popularity, Markov, sequential rules, MiniLM, ours."""
    document = evaluate_next(data, settings_of(home), seed=seed, time_split=time_split)
    show(document, lambda: next_page(document), as_json=as_json)


@eval_.command("retrieval")
@with_data
@with_home
@with_json
def retrieval(data: Path, home: str | None, as_json: bool) -> None:
    """Find the skills of each query: keyword, semantic and hybrid search."""
    document = evaluate_retrieval(data, settings_of(home))
    show(document, lambda: retrieval_page(document), as_json=as_json)


@eval_.command("edges")
@with_data
@click.option("--seed", default=0, show_default=True, help="How the sessions are dealt into two halves.")
@with_home
@with_json
def edges(data: Path, seed: int, home: str | None, as_json: bool) -> None:
    """Mine one half of the sessions, judge the edges by the order that the other half keeps."""
    document = evaluate_edges(data, settings_of(home), seed=seed)
    show(document, lambda: edges_page(document), as_json=as_json)


@eval_.command("feedback")
@with_home
@with_json
def feedback(home: str | None, as_json: bool) -> None:
    """How often each ranking of this home puts the skill that people preferred above the other."""
    from ranker.engine import Ranker
    from ranker.feedback import judged_pairs, read_feedback
    from ranker.judged import agreement

    settings = settings_of(home)
    document = agreement(Ranker(settings), judged_pairs(read_feedback(settings)))
    show(document, lambda: feedback_page(document), as_json=as_json)


@eval_.command("all")
@with_data
@with_home
@with_json
def all_(data: Path, home: str | None, as_json: bool) -> None:
    """Every evaluation that the data set has files for."""
    settings = settings_of(home)
    wanted = {name: (file, run) for name, (file, run) in EVALUATIONS.items() if (data / file).exists()}
    document: dict[str, Any] = {"data": data.name}
    for name, (_, run) in wanted.items():
        say(f"eval {name} ...")
        document[name] = run(data, settings)
    show(document, lambda: "\n\n".join(PAGES[name](document[name]) for name in wanted), as_json=as_json)


def evaluate_next(data: Path, settings: Settings, *, seed: int = 0, time_split: bool = False) -> dict[str, Any]:
    """The document of ``eval next``; without an encoder its MiniLM row is null and ``absent`` says why."""
    from miner import next_eval

    texts = next_eval.read_texts(data)
    vectors, why_not = _vectors(texts, settings)
    document = next_eval.evaluate_next(data, vectors=vectors, seed=seed, time_split=time_split)
    return document | {"absent": {"minilm": why_not} if why_not else {}}


def evaluate_retrieval(data: Path, settings: Settings) -> Any:
    """The document of ``eval retrieval``."""
    from ranker.evaluate import evaluate_retrieval as evaluate

    return evaluate(data, settings)


def evaluate_edges(data: Path, settings: Settings, *, seed: int = 0) -> dict[str, Any]:
    """The document of ``eval edges``. It reads the data set alone, so no setting matters."""
    from miner.edge_eval import evaluate_edges as evaluate

    return evaluate(data, seed=seed)


EVALUATIONS: dict[str, tuple[str, Callable[[Path, Settings], Any]]] = {
    "next": ("events.jsonl", evaluate_next),
    "retrieval": ("queries.jsonl", evaluate_retrieval),
    "edges": ("events.jsonl", evaluate_edges),
}
"""Evaluation -> the file it needs, and what runs it; ``eval all`` runs those whose file is there."""


def _vectors(texts: dict[str, str], settings: Settings) -> tuple[dict[str, Any], str]:
    """Unit vectors by skill, and why there are none. Best effort: the other models need none."""
    try:
        from ranker import dense

        model = dense.load_reference(dense.weights_folder(settings))
        say(f"embedding {len(texts)} descriptions ...")
        found = dense.encode(model, list(texts.values()))
    except ModelMissing as error:
        return {}, error.message
    except ImportError as error:
        return {}, f"{error.name or 'the ranker extra'} is not installed"
    return dict(zip(texts, found, strict=True)), ""


def next_page(document: dict[str, Any]) -> str:
    """The table a person reads: one line a model, with how far ours is ahead of it."""
    split = document["split"]
    lines = [
        f"{document['data']}: {document['predictions']} calls of {split['test']} sessions predicted, "
        f"learned from {split['train']}; split by {split['by']}",
        f"{'':18}" + "".join(f"{measure:>8}" for measure in MEASURES) + "   ours minus this (mrr@20)",
    ]
    for name, row in document["models"].items():
        if row is None:
            lines.append(f"{name:18}not measured: {document['absent'].get(name, '')}")
            continue
        gain = document["paired"].get(name, {}).get("mrr@20")
        interval = f"   {gain['difference']:+.3f} [{gain['low']:+.3f}, {gain['high']:+.3f}]" if gain else ""
        lines.append(f"{name:18}" + "".join(f"{row[measure]:8.3f}" for measure in MEASURES) + interval)
    return "\n".join(lines)


def retrieval_page(document: dict[str, Any]) -> str:
    """A table a query set: one line an arm, with how far hybrid is ahead of it."""
    if document["reason"]:
        say(document["reason"])
    lines = []
    for name, found in document["sets"].items():
        lines.append(f"{document['data']} {name}: {found['n']} queries, {found['abstained']:.1%} refused as off topic")
        measures = list(next(iter(found["arms"].values())))
        lines.append(f"{'':18}" + "".join(f"{measure:>11}" for measure in measures) + "   hybrid minus this (mrr@10)")
        for arm, row in found["arms"].items():
            gain = found["paired"].get(arm, {}).get("mrr@10")
            interval = (
                f"   {gain['difference']:+.3f} [{gain['interval'][0]:+.3f}, {gain['interval'][1]:+.3f}]" if gain else ""
            )
            lines.append(f"{arm:18}" + "".join(f"{row[measure]:11.3f}" for measure in measures) + interval)
    return "\n".join(lines) if lines else f"{document['data']}: no queries to measure"


def feedback_page(document: dict[str, Any]) -> str:
    """The rankings beside the judged pairs."""
    lines = [f"{document['pairs']} judged pairs"]
    for name, row in document["rankings"].items():
        share = "" if row["share"] is None else f", {row['share']:.0%}"
        lines.append(f"  {name:10} right {row['right']}, wrong {row['wrong']}, undecided {row['undecided']}{share}")
    return "\n".join(lines)


def edges_page(document: dict[str, Any]) -> str:
    """How the claims of one half fare in the other: one line a status."""
    lines = [
        f"{document['data']}: {document['sessions']} sessions, each half judged by the order that the other half keeps",
        f"{'precedes':18}{'claimed':>8}{'judged':>8}{'right':>8}{'weak':>8}{'reversed':>10}{'precision':>11}",
    ]
    for status, row in document["precedes"].items():
        counts = "".join(f"{row[name]:>8}" for name in ("claimed", "judged", "right", "weak"))
        precision = "-" if row["precision"] is None else f"{row['precision']:.3f}"
        lines.append(f"{status:18}{counts}{row['reversed']:>10}{precision:>11}")
    return "\n".join([*lines, f"complements: {document['complements']['confirmed']} confirmed"])


PAGES: dict[str, Callable[[dict[str, Any]], str]] = {
    "next": next_page,
    "retrieval": retrieval_page,
    "edges": edges_page,
}
"""Evaluation -> the page a person reads."""
