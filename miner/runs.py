"""Runs: what the last mining runs learned, kept beside the newest, and what differs between two of them.

learned/runs/runs.jsonl           one line a kept run, oldest first: its id, and when it was mined
learned/runs/RUN/run.json         its record
learned/runs/RUN/learned.jsonl.gz its edges
learned/runs/RUN/verdicts.parquet what became of its related pairs, and of every pair that had an edge in a kept run
"""

from __future__ import annotations

import gzip
import io
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import polars as pl

from cowpath.edge import SYMMETRIC, Edge
from cowpath.errors import BadFile, InputError, NothingLearned
from cowpath.event import utc_now
from cowpath.home import Home, write_whole

FAMILIES = {"precedes": "order", "complements": "order"}
"""Relations that are answers to one question: an edge that turns from one into the other has changed."""

SHOWN = ("sessions", "lift", "share", "lower", "q", "witnesses")
"""The evidence a comparison repeats."""

NAMES: dict[str, Literal[-1, -2]] = {"latest": -1, "previous": -2}

Key = tuple[str, str, str]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A line of ``runs.jsonl``: equal logs give equal run ids, so a run may have been mined several times."""

    run_id: str
    first_mined_at: str
    mined_at: str
    times: int = 1


def keep_run(home: Home, *, pairs: pl.DataFrame, keep: int) -> None:
    """Keep the run whose files have just been written, as the latest of at most ``keep``."""
    record = _record(home.learned / "run.json")
    before = [one for one in kept_runs(home) if one.run_id != record["run_id"]]
    if keep:
        folder = home.learned / "runs" / record["run_id"]
        verdicts = _verdicts(home, pairs, before)
        edges = (home.edges / "learned.jsonl").read_bytes()
        write_whole(folder / "learned.jsonl.gz", gzip.compress(edges, mtime=0))
        write_whole(folder / "verdicts.parquet", verdicts)
        write_whole(folder / "run.json", (home.learned / "run.json").read_bytes())
        _list(home, [*before, _mined_now(home, record["run_id"])][-keep:])
    _forget_unlisted(home, keep)


def kept_runs(home: Home) -> list[Kept]:
    """The kept runs, oldest first."""
    path = home.learned / "runs" / "runs.jsonl"
    try:
        return [msgspec.json.decode(line, type=Kept) for line in path.read_bytes().splitlines()]
    except FileNotFoundError:
        return []
    except msgspec.MsgspecError as error:
        raise BadFile(f"{path} is no list of runs", suggestions=[f"rm -r {path.parent}", "cowpath mine"]) from error


def runs(home: Home) -> list[dict[str, Any]]:
    """The kept runs with what each learned, newest first."""
    return [_about(home, one) for one in reversed(kept_runs(home))]


def diff(home: Home, old: str, new: str) -> dict[str, Any]:
    """What the run ``new`` learned, changed and dropped against ``old``, and why.

    A run is named by its id, the beginning of one, or as ``latest`` or ``previous``. Keys: ``old``, ``new`` (the
    runs), ``log`` and ``parameters`` (what differs, as [old, new]), ``learned``, ``dropped``, ``changed``,
    ``unchanged`` (a count). Raises InputError for a run that is not kept.
    """
    one, other = find_run(home, old), find_run(home, new)
    records = [_record(home.learned / "runs" / run.run_id / "run.json") for run in (one, other)]
    before, after = (_edges(home, run) for run in (one, other))
    then, now = (_Reasons(home, run, record) for run, record in zip((one, other), records, strict=True))
    changed = [key for key in before if key in after and _claim(before[key]) != _claim(after[key])]
    return {
        "old": _about(home, one),
        "new": _about(home, other),
        "log": _differing(records[0], records[1], ("events", "calls", "sessions", "skills", "actors", "witness")),
        "parameters": _differing(records[0]["parameters"], records[1]["parameters"]),
        "learned": [_shown(after[key]) | {"lacked": then.of(key)} for key in after if key not in before],
        "dropped": [_shown(before[key]) | {"lacks": now.of(key)} for key in before if key not in after],
        "changed": [
            {"before": _shown(before[key]), "after": _shown(after[key]), "lacks": now.of(key)} for key in changed
        ],
        "unchanged": sum(key in before for key in after) - len(changed),
    }


def find_run(home: Home, name: str) -> Kept:
    """The kept run of that id, beginning of an id, or name."""
    kept = kept_runs(home)
    if not kept:
        raise NothingLearned(f"no run is kept at {home.learned / 'runs'}", suggestions=["cowpath mine"])
    if name in NAMES:
        found = kept[NAMES[name] :][:1] if len(kept) >= -NAMES[name] else []
    else:
        found = [one for one in kept if one.run_id.startswith(name)] if name else []
    if len(found) != 1:
        known = ", ".join(one.run_id for one in kept)
        how = "several runs begin with" if found else "no kept run is"
        raise InputError(f"{how} {name!r}; kept are {known}", suggestions=["cowpath runs"])
    return found[0]


def _mined_now(home: Home, run_id: str) -> Kept:
    now = utc_now().isoformat(timespec="seconds").replace("+00:00", "Z")
    for one in kept_runs(home):
        if one.run_id == run_id:
            return msgspec.structs.replace(one, mined_at=now, times=one.times + 1)
    return Kept(run_id=run_id, first_mined_at=now, mined_at=now)


def _list(home: Home, kept: Iterable[Kept]) -> None:
    write_whole(home.learned / "runs" / "runs.jsonl", b"".join(msgspec.json.encode(one) + b"\n" for one in kept))


def _forget_unlisted(home: Home, keep: int) -> None:
    folder = home.learned / "runs"
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
        return
    listed = {one.run_id for one in kept_runs(home)}
    for path in folder.iterdir():
        if path.is_dir() and path.name not in listed:
            shutil.rmtree(path)


def _verdicts(home: Home, pairs: pl.DataFrame, before: Iterable[Kept]) -> bytes:
    """The verdicts somebody may ask for; unrelated pairs are most of a log and have none to lose."""
    once = {(min(e.source, e.target), max(e.source, e.target)) for run in before for e in _edges(home, run).values()}
    edged = pl.DataFrame(sorted(once), schema={"a": pl.String, "b": pl.String}, orient="row")
    told = pairs.select("a", "b", "source", "target", "verdict", "status", "failed")
    related = told.filter(pl.col("verdict") != "unrelated")
    others = told.filter(pl.col("verdict") == "unrelated").join(edged, on=["a", "b"], how="semi")
    buffer = io.BytesIO()
    pl.concat([related, others]).sort("a", "b").write_parquet(buffer, compression="zstd", statistics=False)
    return buffer.getvalue()


def _about(home: Home, run: Kept) -> dict[str, Any]:
    record = _record(home.learned / "runs" / run.run_id / "run.json")
    told = {name: record.get(name) for name in ("events", "calls", "sessions", "skills", "edges", "parameters_digest")}
    return msgspec.structs.asdict(run) | told


def _record(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (FileNotFoundError, msgspec.MsgspecError) as error:
        raise BadFile(f"{path} is no run record", suggestions=["cowpath mine"]) from error


def _edges(home: Home, run: Kept) -> dict[Key, Edge]:
    """The edges of a run by the question each answers."""
    path = home.learned / "runs" / run.run_id / "learned.jsonl.gz"
    try:
        lines = gzip.decompress(path.read_bytes()).splitlines()
        return {_key(edge): edge for line in lines for edge in [msgspec.json.decode(line, type=Edge)]}
    except (OSError, EOFError, msgspec.MsgspecError) as error:
        raise BadFile(f"{path} is not a file of edges: {error}", suggestions=[f"rm -r {path.parent}"]) from error


def _key(edge: Edge) -> Key:
    family = FAMILIES.get(edge.relation, edge.relation)
    ends = (edge.source, edge.target)
    return (family, min(ends), max(ends)) if family == "order" or edge.relation in SYMMETRIC else (family, *ends)


def _claim(edge: Edge) -> tuple[str, str, str, str]:
    return edge.source, edge.relation, edge.target, edge.status


def _shown(edge: Edge) -> dict[str, Any]:
    claim = {"source": edge.source, "relation": edge.relation, "target": edge.target, "status": edge.status}
    return claim | {name: edge.evidence[name] for name in SHOWN if edge.evidence.get(name) is not None}


def _differing(old: dict[str, Any], new: dict[str, Any], names: Iterable[str] = ()) -> dict[str, list[Any]]:
    chosen = names or sorted({*old, *new})
    return {name: [old.get(name), new.get(name)] for name in chosen if old.get(name) != new.get(name)}


class _Reasons:
    """Why a run has no edge, or no stronger one, between two skills: what its verdict on the pair lacked."""

    def __init__(self, home: Home, run: Kept, record: dict[str, Any]) -> None:
        frame = pl.read_parquet(home.learned / "runs" / run.run_id / "verdicts.parquet")
        self._rows = {(row["a"], row["b"]): row for row in frame.iter_rows(named=True)}
        refused = record["refused_for_a_cycle"]
        self._cycles = {tuple(sorted((one["source"], one["target"]))): one["cycle"] for one in refused}

    def of(self, key: Key) -> dict[str, Any]:
        family, a, b = key
        if family != "order":
            return {"verdict": "no longer told", "failed": []}
        if cycle := self._cycles.get((a, b)):
            return {"verdict": "refused for a cycle", "failed": [], "cycle": cycle}
        row = self._rows.get((a, b))
        return (
            {"verdict": row["verdict"], "failed": list(_asked(row))} if row else {"verdict": "unrelated", "failed": []}
        )


def _asked(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The failed tests, with numbers as short as those of an edge's evidence."""
    for test in row["failed"] or ():
        value = test["value"]
        yield test | {"value": None if value is None else float(f"{value:.6g}")}
