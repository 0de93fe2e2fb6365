"""Direction: which of two related skills comes first, whether no order holds, and what failed."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from miner.association import Test, association_tests, at_least
from miner.parameters import Parameters

FAILED = pl.List(pl.Struct({"test": pl.String, "value": pl.Float64, "bound": pl.Float64}))
"""Type of the column ``failed``: each test that stands between a pair and an edge."""


def direct(pairs: pl.DataFrame, parameters: Parameters) -> pl.DataFrame:
    """Turn each pair so that it reads ``source`` before ``target`` and give it a ``verdict``.

    ``verdict`` is precedes, complements, undetermined (related, but nothing to claim) or unrelated;
    ``status`` is confirmed or candidate where there is an edge, else null; ``failed`` lists the
    tests that were missed with their value and bound, in the order in which they are asked.
    """
    turned = _turn(pairs, _reversed_by_drift(parameters))
    doubted = turned.with_columns(vetoed=_vetoed(parameters), stale=_stale(parameters))
    judged = doubted.with_columns(verdict=_verdict(parameters))
    return judged.with_columns(failed=_failed(judged, parameters)).with_columns(
        status=pl.when(pl.col("verdict") == "candidate")
        .then(pl.lit("candidate"))
        .when(pl.col("verdict").is_in(["precedes", "complements"]))
        .then(pl.lit("confirmed")),
        verdict=pl.col("verdict").replace("candidate", "precedes"),
    )


def _reversed_by_drift(parameters: Parameters) -> pl.Expr:
    """The latest sequences alone prove the other order: their counts replace the whole history's."""
    forward_before = pl.col("capped_forward") > pl.col("capped_backward")
    backward_before = pl.col("capped_backward") > pl.col("capped_forward")
    enough = pl.col("recent_forward") + pl.col("recent_backward") >= parameters.recent_reverse_min
    opposes = (forward_before & (pl.col("recent_upper") < 0.5)) | (backward_before & (pl.col("recent_lower") > 0.5))
    return (enough & opposes).fill_null(False)


def _turn(pairs: pl.DataFrame, drifted: pl.Expr) -> pl.DataFrame:
    """Choose the counts that decide, then put the more frequent first skill at ``source``."""
    chosen = pairs.with_columns(drifted=drifted).with_columns(
        capped_forward=pl.when("drifted").then("recent_forward").otherwise("capped_forward").cast(pl.Float64),
        capped_backward=pl.when("drifted").then("recent_backward").otherwise("capped_backward").cast(pl.Float64),
        lower=pl.when("drifted").then("recent_lower").otherwise("lower"),
        upper=pl.when("drifted").then("recent_upper").otherwise("upper"),
        steady_lower=pl.when("drifted").then("recent_lower").otherwise("steady_lower"),
        steady_upper=pl.when("drifted").then("recent_upper").otherwise("steady_upper"),
        candidate_lower=pl.when("drifted").then("recent_lower").otherwise("candidate_lower"),
        candidate_upper=pl.when("drifted").then("recent_upper").otherwise("candidate_upper"),
    )
    swap = pl.col("capped_backward") > pl.col("capped_forward")
    swapped = [
        expression
        for one, other in (
            ("n_a", "n_b"),
            ("forward", "backward"),
            ("capped_forward", "capped_backward"),
            ("forward_witnesses", "backward_witnesses"),
            ("recent_forward", "recent_backward"),
            ("adjacent_forward", "adjacent_backward"),
        )
        for expression in (
            pl.when(swap).then(other).otherwise(one).alias(one),
            pl.when(swap).then(one).otherwise(other).alias(other),
        )
    ]
    mirrored = [
        expression
        for low, high in (
            ("lower", "upper"),
            ("steady_lower", "steady_upper"),
            ("candidate_lower", "candidate_upper"),
        )
        for expression in (
            pl.when(swap).then(1 - pl.col(high)).otherwise(low).alias(low),
            pl.when(swap).then(1 - pl.col(low)).otherwise(high).alias(high),
        )
    ]
    ends = [
        pl.when(swap).then("b").otherwise("a").alias("source"),
        pl.when(swap).then("a").otherwise("b").alias("target"),
    ]
    return (
        chosen.with_columns(*ends, *swapped, *mirrored)
        .rename({"n_a": "n_source", "n_b": "n_target"})
        .with_columns(share=pl.col("capped_forward") / (pl.col("capped_forward") + pl.col("capped_backward")))
    )


def _vetoed(parameters: Parameters) -> pl.Expr:
    """The latest sequences mostly go the other way: no direction is claimed."""
    recent = pl.col("recent_forward") + pl.col("recent_backward")
    return (recent >= parameters.recent_min) & (pl.col("recent_backward") > pl.col("recent_forward"))


def _stale(parameters: Parameters) -> pl.Expr:
    """Too few walked this way of late: were those that should have come undecided, the order would not be sure."""
    return ((pl.col("lower") >= parameters.tau) & (pl.col("steady_lower") < parameters.tau)).fill_null(False)


def _verdict(parameters: Parameters) -> pl.Expr:
    witnessed = (pl.col("forward_witnesses") >= parameters.min_witnesses) & ~pl.col("vetoed")
    parallel = pl.col("parallel") > pl.col("forward") + pl.col("backward")
    no_order = (pl.col("candidate_lower") >= parameters.complement_low) & (
        pl.col("candidate_upper") <= parameters.complement_high
    )
    return (
        pl.when(~pl.col("related"))
        .then(pl.lit("unrelated"))
        .when(parallel)
        .then(pl.lit("complements"))
        .when((pl.col("lower") >= parameters.tau) & witnessed & ~pl.col("stale"))
        .then(pl.lit("precedes"))
        .when(no_order)
        .then(pl.lit("complements"))
        .when((pl.col("candidate_lower") >= parameters.candidate_tau) & witnessed)
        .then(pl.lit("candidate"))
        .otherwise(pl.lit("undetermined"))
    )


def _failed(judged: pl.DataFrame, parameters: Parameters) -> pl.Series:
    """What stands between each pair and a confirmed ``precedes``.

    Built as one flat array of all answers with the place where each pair's begin: as expressions, a list a row,
    it took longer than everything before it together.
    """
    later = pl.col("recent_forward") / (pl.col("recent_forward") + pl.col("recent_backward"))
    asked = [
        *association_tests(parameters),
        at_least("direction", "lower", parameters.tau),
        at_least("direction_witnesses", "forward_witnesses", parameters.min_witnesses),
        Test("recent_order", later, 0.5, pl.col("vetoed")),
        Test("recent_use", pl.col("steady_lower"), parameters.tau, pl.col("stale")),
    ]
    missed = judged.select(test.missed.alias(test.name) for test in asked).to_numpy()
    values = judged.select(test.value.cast(pl.Float64).alias(test.name) for test in asked).to_numpy()
    pair, number = np.nonzero(missed)
    answers = pa.StructArray.from_arrays(
        [
            pa.array([test.name for test in asked]).take(pa.array(number)),
            pa.array(values[pair, number], from_pandas=True),
            pa.array(np.array([float(test.bound) for test in asked])[number]),
        ],
        names=["test", "value", "bound"],
    )
    starts = np.concatenate([[0], np.cumsum(missed.sum(axis=1))])
    return pl.Series(pl.from_arrow(pa.LargeListArray.from_arrays(pa.array(starts), answers))).cast(FAILED)
