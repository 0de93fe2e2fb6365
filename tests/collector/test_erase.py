"""Erasure: a subject is gone from every file, stays away, and leaves nothing behind that was learned from it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from collector.erase import STEPS, erase, erase_older
from collector.service import Collector
from cowpath.event import Event, Rejected
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.spool import Spool
from cowpath.store import Store
from miner.stages import mine

SECRET = "session-of-somebody-in-particular"


@pytest.fixture
def world(event: Any) -> list[Event | Rejected]:
    """Bea's sessions and Ann's, a call that names nobody, dead letters, a note about her session."""
    of_bea = [
        event(f"b{n}{skill}", session_id=f"{SECRET}-{n}", skill=skill, actor="bea", seq=seq, minute=n)
        for n in range(4)
        for seq, skill in enumerate(("plan", "test"))
    ]
    of_ann = [
        event(f"a{n}{skill}", session_id=f"ann-{n}", skill=skill, actor="ann", seq=seq, minute=n)
        for n in range(4)
        for seq, skill in enumerate(("plan", "ship"))
    ]
    return [
        *of_bea,
        *of_ann,
        event("unnamed", session_id=f"{SECRET}-0", skill="tidy"),
        event("noted", session_id="ann-0", skill="tidy", actor="ann", extra={"forked_from": f"{SECRET}-0"}),
        event("bad", session_id=f"{SECRET}-0", skill="custom_skill", actor="bea"),
        Rejected(code="bad_json", message="no", body=json.dumps({"session_id": f"{SECRET}-1", "skill": 7})),
    ]


def files_with(home: Home, text: str) -> list[str]:
    return [
        str(path.relative_to(home.root))
        for path in sorted(home.root.rglob("*"))
        if path.is_file() and text.encode() in path.read_bytes()
    ]


@contextmanager
def published(home: Home) -> Iterator[Store]:
    with Store.open(home.usage, read_only=True) as store:
        yield store


def test_b14_an_erased_actors_sessions_stand_in_no_file_of_the_home(
    collector: Collector, home: Home, world: list[Event | Rejected]
) -> None:
    collector.take_in(world)
    collector.publish()
    home.spool.mkdir()
    (home.spool / "1-1.spool").write_bytes(
        b'event {"session_id":"%b-9","skill_id":"plan","actor":"bea"}\nevent {"session_id":"ann-9","skill_id":"plan"}\n'
        % SECRET.encode()
    )
    (home.root / "imports.json").write_text(json.dumps({"files": {}, "typed": {"typed:p:plan": f"{SECRET}-2"}}))
    (home.journal / "0000000001.5.torn").write_text(f'{{"session_id":"{SECRET}-3","sk')
    assert len(files_with(home, SECRET)) >= 4

    document = erase(collector, "actor", "bea")

    assert files_with(home, SECRET) == []
    assert document["removed"]["events"] == 9
    assert document["removed"]["rejected"] == 2
    assert b"ann-9" in (home.spool / "1-1.spool").read_bytes()
    with published(home) as usage:
        assert usage.rows("select distinct session_id from events order by 1") == [(f"ann-{n}",) for n in range(4)]


def test_a_session_is_erased_and_the_actors_other_sessions_stay(
    collector: Collector, world: list[Event | Rejected]
) -> None:
    collector.take_in(world)
    assert erase(collector, "session", f"{SECRET}-0")["removed"]["events"] == 3
    with collector.cursor() as store:
        assert store.rows("select count(*) from events where session_id like $s", {"s": SECRET + "%"}) == [(6,)]


def test_an_event_that_only_a_later_copy_named_is_erased_with_its_actor(collector: Collector, event: Any) -> None:
    collector.take_in([event("e1"), event("e1", actor="bea"), event("e2", session_id="s2", actor="ann")])
    collector.flush()

    erase(collector, "actor", "bea")

    with collector.cursor() as store:
        assert store.rows("select event_id from completed_events") == [("e2",)]
        assert store.rows("select count(*) from completions") == [(0,)]


def test_b14_what_was_erased_stays_away_when_it_is_sent_again(
    settings: Settings, home: Home, world: list[Event | Rejected]
) -> None:
    with Collector(settings) as collector:
        collector.take_in(world)
        erase(collector, "actor", "bea")

    with Collector(settings) as collector:
        receipt = collector.take_in(world)
        collector.publish()

    assert {error.code for error in receipt.errors} >= {"erased"}
    assert files_with(home, SECRET) == ["usage.duckdb"] or files_with(home, SECRET) == []
    with published(home) as usage:
        assert usage.rows("select count(*) from events where session_id like 'session-of%'") == [(0,)]
        assert usage.rows("select distinct body from rejected where code = 'erased'") == [("",)]


def test_b14_the_audit_row_says_how_much_went_and_not_whose_it_was(
    collector: Collector, home: Home, world: list[Event | Rejected]
) -> None:
    collector.take_in(world)
    erase(collector, "session", f"{SECRET}-0")
    with collector.cursor() as store:
        ((kind, subject, removed),) = store.rows("select kind, subject, removed from erasures")
    assert (kind, len(subject)) == ("session", 64)
    assert json.loads(removed)["events"] == 3
    assert files_with(home, f"{SECRET}-0") == []


def test_a_dry_run_counts_and_changes_nothing(collector: Collector, world: list[Event | Rejected]) -> None:
    collector.take_in(world)
    assert erase(collector, "actor", "bea", dry_run=True)["removed"] == {"events": 8, "rejected": 1}
    assert not collector.erased
    with collector.cursor() as store:
        assert store.rows("select count(*) from events") == [(18,)]


def test_events_go_on_being_taken_in_after_an_erasure(
    settings: Settings, home: Home, event: Any, kept_ids: Callable[[Path], list[str]]
) -> None:
    with Collector(settings) as collector:
        collector.take_in([event("gone"), event("stays", session_id="s2")])
        erase(collector, "session", "s1")
        collector.take_in([event("new", session_id="s3"), event("stays", session_id="s2")])
    assert kept_ids(home.live) == ["new", "stays"]


def test_b14_what_is_older_goes_by_the_agents_clock_or_else_by_ours(collector: Collector, event: Any) -> None:
    collector.take_in([event("old", minute=-60 * 24 * 300), event("new"), event("untimed", called_at=None)])
    assert erase_older(collector, 200)["removed"] == {"events": 1}
    with collector.cursor() as store:
        assert store.rows("select event_id from events order by 1") == [("new",), ("untimed",)]
        assert store.rows("select kind, subject from erasures") == [("age", "")]


KILLED = """
import os, signal, sys
import collector.erase as e
from collector.service import Collector
from cowpath.settings import Settings

step = int(sys.argv[2])
e.STEPS = (*e.STEPS[:step], lambda *_: os.kill(os.getpid(), signal.SIGKILL))
e.erase(Collector(Settings(home=sys.argv[1], publish_every_s=0)), "actor", "bea")
"""


@pytest.mark.parametrize("step", range(len(STEPS) + 1))
def test_an_erasure_that_is_killed_is_completed_at_the_next_start(
    step: int, settings: Settings, home: Home, world: list[Event | Rejected]
) -> None:
    with Collector(settings) as collector:
        collector.take_in(world)
        collector.publish()

    killed = subprocess.run([sys.executable, "-c", KILLED, str(home.root), str(step)], capture_output=True)
    assert killed.returncode == -signal.SIGKILL

    with Collector(settings) as collector:
        assert not collector.erased.pending
        with collector.cursor() as store:
            assert store.rows("select count(*) from events") == [(9,)]
    assert files_with(home, SECRET) == []


def test_erasing_an_actor_equals_never_having_seen_it(tmp_path: Path, event: Any) -> None:
    """Evidence, run id and every other file of a mining run are the same, byte for byte."""
    others = [
        event(f"{actor}{n}{skill}", session_id=f"{actor}-{n}", skill=skill, actor=actor, seq=seq, minute=n * 60)
        for actor in ("ann", "cid", "dee")
        for n in range(12)
        for seq, skill in enumerate(("plan", "test") if n % 3 else ("tidy", "ship"))
    ]
    of_bea = [
        event(f"bea{n}{skill}", session_id=f"bea-{n}", skill=skill, actor="bea", seq=seq, minute=n * 60)
        for n in range(12)
        for seq, skill in enumerate(("ship", "plan"))
    ]
    with_bea, without = Home(tmp_path / "with"), Home(tmp_path / "without")
    without.root.mkdir()
    with Collector(Settings(home=str(with_bea.root), publish_every_s=0)) as collector:
        collector.take_in([*of_bea[:12], *others, *of_bea[12:]])
        collector.publish()
        mine(collector.settings)
        document = erase(collector, "actor", "bea")
        assert document["learned"] == "stale"
        assert not (with_bea.edges / "learned.jsonl").exists()
        mine(collector.settings)
    (without.root / "secret").write_bytes(with_bea.secret.read_bytes())
    with Collector(Settings(home=str(without.root), publish_every_s=0)) as collector:
        collector.take_in(others)
        collector.publish()
        mine(collector.settings)

    assert learned(with_bea) == learned(without)
    assert json.loads((with_bea.edges / "learned.jsonl").read_text().splitlines()[0])["evidence"]["sessions"] > 0


def learned(home: Home) -> dict[str, bytes]:
    files = [home.edges / "learned.jsonl", *sorted(home.learned.glob("*.*"))]
    return {path.name: path.read_bytes() for path in files}


def test_an_actor_is_erased_over_http_and_by_the_command_line(start_server: Callable[..., Any], home: Home) -> None:
    server = start_server()
    events = [
        {"event_id": f"{actor}-{n}", "session_id": f"s-{actor}", "skill_id": f"skill-{n}", "actor": actor, "seq": n}
        for actor in ("ann/x", "bea", "cid")
        for n in range(3)
    ]
    httpx.post(f"{server.url}/v1/events", json=events).raise_for_status()

    over_http = httpx.delete(f"{server.url}/v1/subjects/actor/ann%2Fx").raise_for_status().json()
    assert over_http == {"kind": "actor", "dry_run": False, "removed": {"events": 3}, "learned": "unchanged"}

    asked = run(home, "--actor", "bea")
    assert (asked.returncode, json.loads(asked.stdout)["error"]["code"]) == (80, "bad_input")
    by_command = run(home, "--actor", "bea", "--yes")
    assert json.loads(by_command.stdout)["removed"] == {"events": 3}

    again = httpx.post(f"{server.url}/v1/events", json=events).json()
    assert (again["rejected"], again["accepted"] + again["duplicates"]) == (6, 3)
    assert httpx.get(f"{server.url}/v1/status").json()["events"] == 3


def run(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cowpath", "erase", *arguments, "--home", str(home.root), "--json"]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def test_a_line_that_a_living_client_holds_is_left_to_be_refused(collector: Collector, home: Home, event: Any) -> None:
    spool = Spool(home.spool)
    spool.append(b'event {"session_id":"s1","skill_id":"plan"}\n')
    collector.take_in([event("e1")])
    erase(collector, "session", "s1")
    assert files_with(home, '"s1"') == [next(home.spool.glob("*")).relative_to(home.root).as_posix()]
    spool.close()
