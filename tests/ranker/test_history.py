"""What a session has called so far is read from the published copy, in the agent's own order."""

from __future__ import annotations

from cowpath.settings import Settings
from cowpath.store import Store
from ranker.engine import Ranker
from ranker.history import session_calls, session_past, skill_uses


def publish(settings: Settings, events: str) -> None:
    """A published copy with these events: session, stream, seq, minute, skill, kind, outcome."""
    with Store.open(settings.at.usage) as store:
        store.run("schema/002_events")
        store.execute("alter table events add column skill_id text")
        for arrival, line in enumerate(events.strip().splitlines()):
            session, stream, seq, minute, skill, kind, outcome = line.split()
            store.execute(
                """
                insert into events by name
                select $arrival as arrival, $arrival::text as event_id, $session as session_id, $stream as stream_id,
                    $seq as seq, timestamp '2026-01-01' + to_minutes($minute::bigint) as called_at,
                    timestamp '2026-01-02' as stored_at, $skill as skill, $skill as skill_id, $kind as kind,
                    $outcome as outcome, 'unknown' as trigger, 'test' as source, 1.0 as confidence, 'ok' as clock,
                    '{}' as extra
                """,
                {
                    "arrival": arrival,
                    "session": session,
                    "stream": "" if stream == "-" else stream,
                    "seq": None if seq == "-" else int(seq),
                    "minute": int(minute),
                    "skill": skill,
                    "kind": kind,
                    "outcome": outcome,
                },
            )


def test_calls_come_in_order_of_the_stream_that_was_called_in_last(learned: Settings) -> None:
    publish(
        learned,
        """
        s1  -    1  5  run-tests       activated   ok
        s1  -    0  1  lint-code       activated   ok
        s1  sub  0  2  sql-tuning      activated   ok
        s1  -    2  6  pdf-forms       impression  unknown
        s1  -    3  7  roll-back       activated   denied
        s2  -    0  9  deploy-service  activated   ok
        """,
    )

    assert session_calls(learned, "s1") == ["lint-code", "run-tests"]
    assert session_calls(learned, "s2") == ["deploy-service"]
    assert session_calls(learned, "s3") == []


def test_without_numbers_the_agents_clock_orders(learned: Settings) -> None:
    publish(
        learned,
        """
        s1  -  -  5  run-tests  activated  ok
        s1  -  -  1  lint-code  activated  ok
        """,
    )

    assert session_calls(learned, "s1") == ["lint-code", "run-tests"]


def test_a_session_is_a_context_and_named_skills_come_after_it(learned: Settings) -> None:
    publish(learned, "s1  -  0  1  lint-code  activated  ok")
    ranker = Ranker(learned)

    assert ranker.next([], session="s1").context == ["lint-code"]
    assert ranker.next(["run-tests"], session="s1").suggestions == ranker.next(["lint-code", "run-tests"]).suggestions


def test_a_session_that_is_not_published_begins_anew_and_says_so(learned: Settings) -> None:
    answer = Ranker(learned).next([], session="yesterday")

    assert (answer.session, answer.context, answer.basis) == ("yesterday", [], "start")
    assert answer.reason == "session 'yesterday' has no published calls"


def test_what_a_session_was_shown_is_told_too_unless_it_was_held_out(learned: Settings) -> None:
    publish(
        learned,
        """
        s1  -  0  1  run-tests       activated   ok
        s1  -  1  2  deploy-service  impression  unknown
        s1  -  2  3  roll-back       impression  unknown
        s2  -  0  9  pdf-forms       impression  unknown
        """,
    )
    with Store.open(learned.at.usage) as store:
        store.execute(
            """
            update events
            set extra = json_object('shown', [skill, 'lint-code'],
                'policy', if(skill = 'roll-back', 'holdout', 'served'))
            where kind = 'impression'
            """
        )

    assert session_past(learned, "s1") == (["run-tests"], {"deploy-service", "lint-code"})
    assert session_past(learned, "nobody") == ([], set())


def test_a_home_without_a_publication_has_no_past(learned: Settings) -> None:
    assert session_past(learned, "s1") == ([], set())
    assert skill_uses(learned) == {}
