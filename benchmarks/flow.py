"""What orchestration costs: a mining run under a Prefect server against the same run without one.

    python -m benchmarks.flow --json

Both run in one process that has imported everything, on one log, in turn, so that the difference is the
orchestration: states, task runs, the way to the server and back. What the first flow run of a process pays on top
(importing prefect, connecting) is told beside it, without a bar.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.machine import document, finish
from benchmarks.worlds import live, plant
from collector.doors import open_door
from cowpath.settings import Settings
from miner.stages import mine

FLOW_ADDS_S = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", dest="as_json")
    parser.add_argument("--sessions", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), sessions=given.sessions, runs=given.runs)
    adds, imported = result["flow_adds_s"], result["direct_run_imports_prefect"]
    bars = [
        {"bar": "a flow run adds seconds", "measured": adds, "at": FLOW_ADDS_S, "met": adds < FLOW_ADDS_S},
        {"bar": "a direct run imports prefect", "measured": imported, "at": False, "met": imported is False},
    ]
    finish(document("flow", results=result, bars=bars), as_json=given.as_json)


def measure(folder: Path, *, sessions: int, runs: int) -> dict[str, Any]:
    """Median seconds of direct runs and of flow runs, in turn."""
    settings = Settings(home=str(folder / "home"))
    with open_door(settings) as door:
        events = live(plant(31), sessions=sessions, seed=31)
        for start in range(0, len(events), 5_000):
            door.send(events[start : start + 5_000])
        door.publish()
    mine(settings)
    imported = "prefect" in sys.modules

    began = time.perf_counter()
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from miner.flow import run_once, server

    import_s = time.perf_counter() - began
    with server(Settings(home=str(folder / "server"))) as url, temporary_settings({PREFECT_API_URL: url}):
        os.environ["PREFECT_API_URL"] = url
        first_s = seconds(lambda: run_once(settings))
        taken = [(seconds(lambda: mine(settings)), seconds(lambda: run_once(settings))) for _ in range(runs)]
    direct, flow = (statistics.median(times) for times in zip(*taken, strict=True))
    return {
        "sessions": sessions,
        "runs": runs,
        "direct_s": round(direct, 3),
        "flow_s": round(flow, 3),
        "flow_adds_s": round(statistics.median(flow - direct for direct, flow in taken), 3),
        "ratio": round(flow / direct, 3),
        "first_flow_run_of_a_process_s": round(first_s, 3),
        "import_prefect_s": round(import_s, 3),
        "direct_run_imports_prefect": imported,
    }


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
