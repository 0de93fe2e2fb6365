"""What a run leaves at rest: edges, judged pairs, strata, bundles, recoveries, the model, the run record."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping

import msgspec
import polars as pl

from cowpath.edge import Edge, write_layer
from cowpath.home import Home, write_whole
from cowpath.next_model import NextModel
from miner.itemsets import Bundle


def write_learned(
    home: Home,
    *,
    edges: Iterable[Edge],
    pairs: pl.DataFrame,
    bundles: Iterable[Bundle],
    recoveries: Iterable[Mapping[str, object]],
    strata: pl.DataFrame,
    suggested: pl.DataFrame,
    model: NextModel | None,
    record: Mapping[str, object],
) -> None:
    """Write all files of a run; the run record last, so that a reader who sees it sees the rest."""
    write_layer(home.edges, "learned", edges)
    write_whole(home.learned / "pairs.parquet", _parquet(pairs))
    write_whole(home.learned / "strata.parquet", _parquet(strata))
    write_whole(home.learned / "suggested.parquet", _parquet(suggested))
    write_whole(home.learned / "bundles.jsonl", b"".join(msgspec.json.encode(b) + b"\n" for b in bundles))
    write_whole(home.learned / "recoveries.jsonl", b"".join(msgspec.json.encode(r) + b"\n" for r in recoveries))
    if model is not None:
        model.save(home.learned / "next.npz")
    write_whole(home.learned / "run.json", msgspec.json.format(msgspec.json.encode(record, order="sorted")) + b"\n")


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", statistics=False)
    return buffer.getvalue()
