"""Why: the evidence of a pair of skills, also where there is no edge, and which test failed by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from cowpath.edge import LAYERS, Edge, read_layer
from cowpath.errors import BadFile, InputError, NothingLearned
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.skill import read_catalogue, unknown_skill

SAYS: dict[str, str] = {
    "support": "used together in {value:g} sessions; at least {bound:g} are needed",
    "lift": "used together {value:.2f} times as often as chance within like sessions; at least {bound:g} is needed",
    "false_discovery": "that much co-use is expected by chance somewhere among all pairs (q = {value:.2g});"
    " at most {bound:g} is allowed",
    "witnesses": "only {value:g} {witness} vouches for the pair; at least {bound:g} are needed",
    "outside_busiest": "without the busiest {witness} only {value:g} sessions remain; at least {bound:g} are needed",
    "outside_lift": "without one of those who vouch for it, the others use both only {value:.2f} times as often"
    " as chance; at least {bound:g} is needed",
    "outside_z": "without one of those who vouch for it, the others' use of both lies only {value:.1f} standard"
    " deviations above chance; at least {bound:g} are needed",
    "direction": "the share of sessions in this order is surely above {value:.2f} only; {bound:g} is needed",
    "direction_witnesses": "only {value:g} {witness} shows this order; at least {bound:g} are needed",
    "recent_order": "of the latest sessions only {value:.0%} still keep this order",
    "recent_use": "the latest sessions used both less often than was due; were the missing ones undecided, the share in"
    " this order would surely be above {value:.2f} only; {bound:g} is needed",
}
"""How a failed test reads. ``value`` and ``bound`` are the miner's; ``witness`` is who vouches."""

NO_ORDER = "no order could be seen: the two were only ever used in parallel"
UNSEEN = "never used in one session; {expected:.2g} such sessions would be chance"


def why(settings: Settings, a: str, b: str) -> dict[str, Any]:
    """The whole case of a pair, read as "a before b".

    Keys: ``source``, ``target``, ``verdict`` (precedes, complements, undetermined, unrelated,
    unseen), ``status``, ``failed`` (tests between this pair and a confirmed ``a precedes b``),
    ``evidence``, ``edges`` (of every layer between the two), ``text`` (the case in words).

    Raises InputError for a pair of one, UnknownSkill for a name that neither the catalogue nor the log
    knows, NothingLearned before the first mining run.
    """
    home = settings.at
    if not (home.learned / "pairs.parquet").exists():
        raise NothingLearned(f"nothing is learned at {home.root} yet", suggestions=["cowpath mine"])
    learned = _read(home)
    source, target = (_known(home, name, learned.strata) for name in (a, b))
    if source == target:
        raise InputError(f"{a} and {b} are one skill; a pair needs two")
    row = _row(learned.pairs, source, target)
    case = _unseen(learned, source, target) if row is None else _seen(row, source, learned.record)
    edges = [_edge(edge) for edge in _between(home, source, target)]
    document = {"source": source, "target": target, **case, "edges": edges, "run_id": learned.record["run_id"]}
    return document | {"text": _text(document, single_actor=learned.record["single_actor"])}


@dataclass(frozen=True)
class Learned:
    """What the last mining run left about pairs."""

    record: dict[str, Any]
    pairs: pl.DataFrame
    strata: pl.DataFrame
    suggested: pl.DataFrame


def _read(home: Home) -> Learned:
    """Raises BadFile where one of the files is broken."""
    try:
        record = msgspec.json.decode((home.learned / "run.json").read_bytes(), type=dict[str, Any])
        pairs, strata, suggested = (
            pl.read_parquet(home.learned / f"{name}.parquet") for name in ("pairs", "strata", "suggested")
        )
    except (OSError, msgspec.MsgspecError, pl.exceptions.PolarsError) as error:
        raise BadFile(f"{home.learned} cannot be read: {error}", suggestions=["cowpath mine"]) from error
    if not {"run_id", "witness", "single_actor", "parameters"} <= record.keys():
        raise BadFile(f"{home.learned / 'run.json'} is no run record", suggestions=["cowpath mine"])
    return Learned(record, pairs, strata, suggested)


def _known(home: Home, name: str, strata: pl.DataFrame) -> str:
    catalogue = read_catalogue(home.catalogue)
    skill_id = catalogue.resolve(name)
    used = set(strata["skill_id"].unique())
    if skill_id not in catalogue and skill_id not in used:
        raise unknown_skill(name, used | set(catalogue.skills))
    return skill_id


def _row(pairs: pl.DataFrame, source: str, target: str) -> dict[str, Any] | None:
    first, second = sorted((source, target))
    found = pairs.filter(a=first, b=second)
    return found.row(0, named=True) if found.height else None


def _seen(row: dict[str, Any], source: str, run: dict[str, Any]) -> dict[str, Any]:
    """The case of a pair with co-uses; a pair learned the other way round fails at its direction."""
    forward = row["source"] == source
    failed = list(row["failed"])
    if not forward:
        failed = [f for f in failed if f["test"] not in ("direction", "direction_witnesses", "recent_order")]
        opposite = None if row["upper"] is None else 1 - row["upper"]
        failed.append({"test": "direction", "value": opposite, "bound": run["parameters"]["tau"]})
    verdict = row["verdict"]
    return {
        "verdict": "reversed" if verdict == "precedes" and not forward else verdict,
        "status": row["status"],
        "failed": [{**f, "says": _says(f, run["witness"])} for f in failed],
        "evidence": _evidence(row, forward=forward),
    }


def _unseen(learned: Learned, source: str, target: str) -> dict[str, Any]:
    """The case of a pair without any co-use: what chance would have given."""
    one, other = (learned.strata.filter(skill_id=skill) for skill in (source, target))
    both = one.join(other, on="stratum", suffix="_other")
    expected = float((both["n"] * both["n_other"] / both["size"]).sum())
    suggested = _row(learned.suggested, source, target)
    says = UNSEEN.format(expected=expected)
    return {
        "verdict": "unseen",
        "status": None,
        "failed": [{"test": "support", "value": 0.0, "bound": 1.0, "says": says}],
        "evidence": {
            "sessions": 0,
            "expected": float(f"{expected:.6g}"),
            "sessions_of_source": int(one["n"].sum()),
            "sessions_of_target": int(other["n"].sum()),
            "suggested_excluded": 0 if suggested is None else suggested["suggested"],
        },
    }


def _evidence(row: dict[str, Any], *, forward: bool) -> dict[str, Any]:
    """The counts of a pair, read in the asked direction."""
    there, back = ("forward", "backward") if forward else ("backward", "forward")
    lower, upper = row["lower"], row["upper"]
    if not forward and lower is not None:
        lower, upper = 1 - upper, 1 - lower
    numbers = {
        "sessions": row["o"],
        "expected": row["expected"],
        "lift": row["lift"],
        "q": row["q"],
        "sessions_of_source": row["n_source" if forward else "n_target"],
        "sessions_of_target": row["n_target" if forward else "n_source"],
        "this_order": row[there],
        "other_order": row[back],
        "parallel": row["parallel"],
        "lower": lower,
        "upper": upper,
        "witnesses": row["witnesses"],
        "witnesses_this_order": row[f"{there}_witnesses"],
        "outside_busiest": row["outside_busiest"],
        "outside_lift": row["outside_lift"],
        "outside_z": row["outside_z"],
        "recent_this_order": row[f"recent_{there}"],
        "recent_other_order": row[f"recent_{back}"],
        "suggested_excluded": row["suggested"],
    }
    return {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in numbers.items()}


def _says(failed: dict[str, Any], witness: str) -> str:
    if failed["value"] is None:
        return NO_ORDER
    return SAYS[failed["test"]].format(value=failed["value"], bound=failed["bound"], witness=witness)


def _between(home: Home, source: str, target: str) -> list[Edge]:
    ends = {source, target}
    return [edge for layer in LAYERS for edge in read_layer(home.edges, layer) if {edge.source, edge.target} == ends]


def _edge(edge: Edge) -> dict[str, Any]:
    return {
        "source": edge.source,
        "relation": edge.relation,
        "target": edge.target,
        "status": edge.status,
        "provenance": edge.provenance,
    }


def _text(case: dict[str, Any], *, single_actor: bool) -> str:
    """The case in two or three plain sentences."""
    source, target, evidence = case["source"], case["target"], case["evidence"]
    head = {
        "precedes": f"{source} comes before {target} ({case['status']}).",
        "reversed": f"It is the other way round: {target} comes before {source} ({case['status']}).",
        "complements": f"{source} and {target} are used together, in no fixed order.",
        "undetermined": f"{source} and {target} are used together more than chance, but no order holds.",
        "unrelated": f"{source} and {target} are not tied to each other.",
        "unseen": f"{source} and {target} were never used together.",
    }[case["verdict"]]
    lines = [head]
    if evidence["sessions"]:
        lines.append(
            f"Together in {evidence['sessions']} sessions where {evidence['expected']:.1f} would be chance; this order"
            f" {evidence['this_order']}, the other {evidence['other_order']}, in parallel {evidence['parallel']}."
        )
    if case["status"] != "confirmed" or case["verdict"] == "reversed":
        lines += [f"Missing: {failed['says']}." for failed in case["failed"]]
    if evidence.get("suggested_excluded"):
        lines.append(f"{evidence['suggested_excluded']} co-uses followed our own advice and do not count.")
    if single_actor and case["status"]:
        lines.append("Only one actor is known here: it may be nothing but a habit.")
    return " ".join(lines)
