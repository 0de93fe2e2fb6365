"""The demo: post a shipped log over HTTP, learn from it, show what was learned, refused and suggested.

``python -m examples.demo`` uses a home of its own, ``.demo/``, made anew each time.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cowpath.edge import Edge, read_layer
from cowpath.home import Home
from cowpath.skill import read_catalogue
from cowpath.vectors import Vector, read_vectors
from examples.demo import page, world
from examples.demo.server import Cowpath, DemoFailed, post

HOME = Path(".demo")
BATCH = 500

ASKED = (
    ("triage-alert", "query-logs", "query-metrics"),
    ("bump-version", "sign-artifacts"),
    ("clean-columns", "fit-forecast"),
)
"""What an agent has just done, in three sessions."""


def main() -> int:
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir()
    cowpath = Cowpath(home=HOME, log=HOME / "demo.log")
    try:
        story = live_through(cowpath)
    except DemoFailed as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(page.render(story))
    return 0


def live_through(cowpath: Cowpath) -> page.Story:
    """The whole way of the events, from POST to suggestion."""
    say("reading 66 skills from examples/demo/skills (the first time, the sentence encoder is exported too)")
    catalogue = cowpath.ask("catalogue", "sync", str(world.SKILLS))
    say("starting 'cowpath up' on a free port")
    with cowpath.served() as url:
        say(f"posting the log to {url}/v1/events")
        receipts = send(url)
        cowpath.wait_until_drained(sum(r["accepted"] for r in receipts))
        say("publishing, then mining")
        cowpath.ask("publish")
        mined = cowpath.ask("mine", "--no-publish")
        cowpath.ask("publish")  # once more, so that usage.duckdb holds the edges too
    say("asking")
    home = Home(cowpath.home)
    edges = [e for e in read_layer(home.edges, "learned") if e.status == "confirmed"]
    neighbours, outside = compare_with_embedding(home, edges)
    return page.Story(
        url=url,
        catalogue=catalogue,
        receipts=receipts,
        mined=mined,
        edges=strongest(edges),
        refused={name: cowpath.ask("why", *pair) for name, pair in world.truth().traps.items()},
        suggested=[(skills, cowpath.ask("next", *skills), neighbours(skills[-1])) for skills in ASKED],
        outside=outside,
    )


def send(url: str) -> list[dict[str, Any]]:
    """Post the log; each receipt comes back after its events are on disk."""
    lines = world.read_log()
    return [post(url, lines[i : i + BATCH]) for i in range(0, len(lines), BATCH)]


def strongest(edges: list[Edge]) -> list[Edge]:
    return sorted(edges, key=lambda e: (-float(e.evidence.get("z") or 0), e.source, e.target))


Neighbours = Callable[[str], list[tuple[str, float]]]


def compare_with_embedding(home: Home, edges: list[Edge]) -> tuple[Neighbours, page.Outside | None]:
    """What descriptions alone say: a skill's neighbours, and how many learned edges lie beyond them."""
    vectors = embedded(home)
    if not vectors:
        return lambda skill: [], None
    from ranker.neighbours import embedding_neighbours, outside_share

    found = outside_share(edges, vectors, k=page.NEAREST, floor=-1.0)
    outside = page.Outside(found.edges, found.share, found.random) if found.share is not None else None
    return lambda skill: embedding_neighbours(skill, vectors, k=3, floor=-1.0), outside


def embedded(home: Home) -> Mapping[str, Vector]:
    """Skill id -> vector; empty in keyword-only mode."""
    from cowpath.vectors import skill_vectors

    return skill_vectors(read_catalogue(home.catalogue), read_vectors(home.embeddings))


def say(words: str) -> None:
    print(f"demo: {words}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
