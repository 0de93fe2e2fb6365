"""``make demo``, from an empty folder to its page."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.demo import world

REPOSITORY = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.model
def test_the_demo_finds_what_was_planted_and_nothing_else_and_leaves_nothing_running(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    page = ran.stdout
    heads = re.findall(r"^[A-Z]{4}[A-Z ,]*", page, re.MULTILINE)
    assert [head.split(",")[0].strip() for head in heads] == [
        "TAKEN IN", "LEARNED", "REFUSED", "WHAT COMES NEXT", "BEYOND WHAT READS ALIKE", "LOOK AROUND",
    ]  # fmt: skip
    assert len(page.splitlines()) <= 72

    home = tmp_path / ".demo"
    edges = [json.loads(line) for line in (home / "edges" / "learned.jsonl").read_bytes().splitlines()]
    confirmed = {(e["relation"], e["source"], e["target"]) for e in edges if e["status"] == "confirmed"}
    truth = world.truth()
    assert confirmed == {("precedes", *pair) for pair in truth.precedes} | {
        ("complements", *pair) for pair in truth.complements
    }

    with (home / "collector.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while a collector holds the home
