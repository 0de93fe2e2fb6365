"""The README's story, executed: one event from its POST to the suggestion that it makes possible.

POST -> intake -> journal -> drain -> events -> publish -> mine -> edge -> suggestion, with because
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cowpath.home import Home
from cowpath.store import Store

EVENT = {
    "event_id": "the-one",
    "session_id": "s-07",
    "skill_id": "write-tests",
    "seq": 1,
    "ts": "2026-11-23T10:00:20Z",
    "actor": "bea",
}
"""The event that is followed: Bea, who has just planned a change, writes its tests."""

SKILLS = {
    "plan-change": "Turn a request into a list of small steps.",
    "write-tests": "Pin the wanted behaviour before the code exists.",
    "ship-release": "Tag, build and publish a version.",
    "tidy-desk": "Sort stray files into folders.",
}


@pytest.fixture
def url(home: Home, tmp_path: Path) -> Iterator[str]:
    """A server on a home whose catalogue knows four skills."""
    for name, description in SKILLS.items():
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n")
    cowpath(home, "catalogue", "sync", str(tmp_path / "skills"))
    server = subprocess.Popen(
        [sys.executable, "-m", "cowpath", "up", "--home", str(home.root), "--port", "0", "--publish-every", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["url"]
    finally:
        server.terminate()
        server.communicate(timeout=30)
    assert server.returncode == 0


def test_one_event_from_post_to_suggestion(url: str, home: Home) -> None:
    # Others have worked before: ten more sessions of three actors in which planning came before the tests,
    # and some about other things.
    post(url, others())

    # 1. The agent posts the event. The answer means: it is on disk.
    receipt = post(url, [EVENT])
    assert receipt["accepted"] == 1
    journalled = b"".join(path.read_bytes() for path in sorted(home.journal.iterdir()))
    assert b'"the-one"' in journalled

    # 2. Posting it again harms nothing: a repeat is acknowledged and counted, never kept twice.
    assert post(url, [EVENT])["duplicates"] == 1

    # 3. The drain moves it into live.duckdb, which is the collector's alone; publishing makes the copy that
    #    everyone may read. There the event stands once, its actor only as a keyed hash.
    request(f"{url}/v1/publish", {})
    with Store.open(home.usage, read_only=True) as usage:
        ((session, skill, actor),) = usage.rows(
            "select session_id, skill_id, actor from events where event_id = 'the-one'"
        )
    assert (session, skill) == ("s-07", "write-tests")
    assert "bea" not in actor

    # 4. Mining counts in how many sessions one skill came before the other, and tests it.
    record = cowpath(home, "mine")
    assert record["edges"]["precedes"] == {"confirmed": 1, "candidate": 0}
    (edge,) = [json.loads(line) for line in (home.edges / "learned.jsonl").read_bytes().splitlines()]
    assert (edge["source"], edge["relation"], edge["target"]) == ("plan-change", "precedes", "write-tests")
    assert (edge["evidence"]["forward"], edge["evidence"]["backward"]) == (11, 0)

    # 5. The next agent that plans a change is told what comes next, and why.
    answer = get(f"{url}/v1/next?" + urllib.parse.urlencode({"skill": "plan-change"}))
    first = answer["suggestions"][0]
    assert first["skill_id"] == "write-tests"
    assert first["because"]["followed"] == {"after": "plan-change", "times": 11}
    assert first["because"]["edges"][0]["relation"] == "precedes"

    # 6. And whoever doubts it may ask for the whole case, also where there is none.
    assert "comes before" in get(f"{url}/v1/why?a=plan-change&b=write-tests")["text"]
    assert get(f"{url}/v1/why?a=plan-change&b=tidy-desk")["verdict"] in ("unseen", "unrelated")


def others() -> list[dict[str, Any]]:
    """Bea's own planning step, ten more sessions that plan and then test, and thirty about other things."""
    planned = [EVENT | {"event_id": "before-the-one", "skill_id": "plan-change", "seq": 0}]
    for number in range(10):
        planned += session(f"p-{number}", ("ann", "bea", "cid")[number % 3], ["plan-change", "write-tests"])
    for number in range(30):
        planned += session(
            f"o-{number}", ("ann", "bea", "cid")[number % 3], [("ship-release", "tidy-desk")[number % 2]]
        )
    return planned


def session(name: str, actor: str, skills: list[str]) -> list[dict[str, Any]]:
    return [
        {"event_id": f"{name}-{seq}", "session_id": name, "skill_id": skill, "seq": seq, "actor": actor}
        for seq, skill in enumerate(skills)
    ]


def post(url: str, events: list[dict[str, Any]]) -> dict[str, Any]:
    return request(f"{url}/v1/events", {"schema_version": 1, "events": events})


def request(url: str, body: dict[str, Any]) -> dict[str, Any]:
    asked = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        document: dict[str, Any] = json.load(answer)
        return document


def get(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=30) as answer:
        document: dict[str, Any] = json.load(answer)
        return document


def cowpath(home: Home, *words: str) -> dict[str, Any]:
    """A command's JSON document."""
    ran = subprocess.run(
        [sys.executable, "-m", "cowpath", *words, "--home", str(home.root), "--json"],
        capture_output=True,
        check=True,
        timeout=120,
    )
    document: dict[str, Any] = json.loads(ran.stdout)
    return document
