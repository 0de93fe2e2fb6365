"""Expected co-uses: the product of matrices says what the sum over strata says."""

from __future__ import annotations

import random

import polars as pl
import pytest

from miner import expected
from miner.expected import expected_pairs


def table(seed: int) -> pl.DataFrame:
    chance = random.Random(seed)
    sizes = {number: chance.randint(5, 50) for number in range(1, 8)}
    return pl.DataFrame(
        [
            {"skill": skill, "number": number, "n": chance.randint(1, size), "size": size}
            for number, size in sizes.items()
            for skill in chance.sample(range(1, 200, 7), 12)
        ]
    )


@pytest.mark.parametrize("block", [4, 1_024])
def test_expected_and_strata_are_the_sums_over_strata(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected, "BLOCK", block)
    skills = table(3)
    by_sum = (
        skills.join(skills, on="number", suffix="_b")
        .filter(pl.col("skill") < pl.col("skill_b"))
        .group_by(a="skill", b="skill_b")
        .agg(expected=(pl.col("n") * pl.col("n_b") / pl.col("size")).sum(), strata=pl.len())
        .sort("a", "b")
    )

    found = expected_pairs(skills, by_sum.select("a", "b"))

    assert by_sum.height > 50
    assert found["strata"].to_list() == by_sum["strata"].to_list()
    assert found["expected"].to_list() == pytest.approx(by_sum["expected"].to_list(), rel=1e-8)


def test_no_pairs_and_no_skills_expect_nothing() -> None:
    nothing = pl.DataFrame(schema={"skill": pl.Int32, "number": pl.Int64, "n": pl.Int64, "size": pl.Int64})

    assert expected_pairs(nothing, pl.DataFrame(schema={"a": pl.Int32, "b": pl.Int32})).height == 0
