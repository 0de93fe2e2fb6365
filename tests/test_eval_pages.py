"""What ``cowpath eval`` shows a person: every arm, every status, no JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cowpath.cli.evaluate import edges_page, evaluate_edges, evaluate_retrieval, retrieval_page
from cowpath.settings import Settings


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Every fourth session in one order, two skills to look for."""
    events = [
        {"event_id": f"{n}-{seq}", "session_id": str(n), "seq": seq, "skill_id": skill, "outcome": "success"}
        for n in range(150)
        for seq, skill in enumerate(["alpha", "beta"] if n % 4 == 0 else [f"x{n % 7}", f"y{n % 5}"])
    ]
    skills = [{"skill_id": s, "name": s, "description": f"about {s} things"} for s in ("alpha", "beta")]
    queries = [
        {"query_id": "1", "query": "alpha", "gold": ["alpha"]},
        {"query_id": "2", "query": "x", "gold": ["beta"]},
    ]
    for name, rows in (("events", events), ("catalog", skills), ("queries", queries)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_the_page_of_retrieval_has_a_line_for_every_arm(data: Path) -> None:
    settings = Settings(home=str(data / "home"))

    lines = retrieval_page(evaluate_retrieval(data, settings)).splitlines()

    assert lines[0] == f"{data.name} all: 2 queries, 50.0% refused as off topic"
    assert [line.split()[0] for line in lines[2:]] == ["hybrid", "keyword", "semantic"]
    assert [float(number) for number in lines[2].split()[1:]] == [0.5, 0.5, 0.5, 0.5, 0.5]


def test_the_page_of_edges_has_a_line_for_every_status(data: Path) -> None:
    document = evaluate_edges(data, Settings(home=str(data / "home")))

    lines = edges_page(document).splitlines()

    assert [line.split()[0] for line in lines[2:4]] == ["confirmed", "candidate"]
    assert lines[2].split()[1:] == [
        *(str(document["precedes"]["confirmed"][name]) for name in ("claimed", "judged", "right", "weak", "reversed")),
        f"{document['precedes']['confirmed']['precision']:.3f}",
    ]


def test_where_nothing_is_claimed_there_is_no_precision(data: Path) -> None:
    lines = (data / "events.jsonl").read_text().splitlines(keepends=True)
    (data / "events.jsonl").write_text("".join(lines[:2]))

    page = edges_page(evaluate_edges(data, Settings(home=str(data / "home"))))

    assert page.splitlines()[2].split() == ["confirmed", "0", "0", "0", "0", "0", "-"]
