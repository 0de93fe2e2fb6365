"""What our ranker shows reaches the miner: calls of a shown list leave the evidence, those of a holdout stay in it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from cowpath.event import Event
from miner.stages import Mining

NINE = datetime(2026, 3, 1, 9, tzinfo=UTC)


def asked(number: int, policy: str, shown: list[str]) -> list[Event]:
    """A session that plans, is shown a list (or would have been), and builds; the client numbers its calls."""
    session = f"s{number:03d}"
    calls = [
        Event(
            event_id=f"{session}-{skill}",
            session_id=session,
            skill=skill,
            seq=seq,
            called_at=NINE + timedelta(seconds=60 * seq),
            actor=("ann", "bob", "cid")[number % 3],
        )
        for seq, skill in enumerate(("plan", "build"))
    ]
    impression = Event(
        event_id=f"{session}-shown",
        session_id=session,
        skill=shown[0],
        called_at=NINE + timedelta(seconds=10),
        kind="impression",
        extra={"shown": shown, "policy": policy},
    )
    return [*calls, impression]


@pytest.mark.parametrize(
    ("policy", "shown", "excluded"),
    [
        ("served", ["test", "build"], 20),
        ("served", ["test", "ship"], 0),
        ("holdout", ["test", "build"], 0),
        ("served", ["build"], 20),
    ],
)
def test_any_skill_of_a_list_that_was_shown_is_no_evidence(
    policy: str, shown: list[str], excluded: int, mined: Callable[..., Mining]
) -> None:
    mining = mined([event for number in range(20) for event in asked(number, policy, shown)])

    ((shown_calls,),) = mining.store.rows("select coalesce(sum(shown_calls), 0)::bigint from kept.circumstances")
    used = mining.store.rows("select count(*) from kept.steps where suggested")
    assert (shown_calls, used) == (excluded, [(excluded,)])
