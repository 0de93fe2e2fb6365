"""The same stages under a real Prefect server: states, one run, and nothing left behind."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cowpath.errors import HomeBusy, StateError
from cowpath.event import Event
from cowpath.home import held
from cowpath.settings import Settings
from miner.flow import server
from miner.stages import STAGES, mine

pytestmark = pytest.mark.slow

ORDERS = ["plan build"] * 12 + [f"x{i} y{(3 * i) % 11}" for i in range(60)]


def learned(settings: Settings) -> dict[str, bytes]:
    """Every file that a run leaves, by name."""
    found = [*settings.at.learned.iterdir(), *settings.at.edges.iterdir()]
    return {path.name: path.read_bytes() for path in found if path.is_file()}


def test_a_flow_run_on_a_schedule_leaves_the_files_of_a_direct_run_and_no_process(
    publish: Callable[..., Settings], sessions: Callable[..., list[Event]], tmp_path: Path
) -> None:
    direct, scheduled = publish(sessions(ORDERS), name="direct"), publish(sessions(ORDERS), name="scheduled")
    mine(direct)
    environment = {k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"} | {"NO_COLOR": "1"}

    serving = subprocess.Popen(
        [sys.executable, "-m", "cowpath", "mine", "--every", "1s", "--home", scheduled.home],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        wait_for(scheduled.at.learned / "run.json", serving, seconds=120)
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.communicate(timeout=60)

    assert json.loads(learned(scheduled)["run.json"]) == json.loads(learned(direct)["run.json"])
    assert learned(scheduled)["learned.jsonl"] == learned(direct)["learned.jsonl"]
    assert processes_naming(scheduled.home) == []


def test_with_a_server_named_a_run_shows_up_there_with_the_state_of_each_stage(
    publish: Callable[..., Settings], sessions: Callable[..., list[Event]], tmp_path: Path
) -> None:
    settings = publish(sessions(ORDERS))

    with server(Settings(home=str(tmp_path / "server"))) as url:
        ran = subprocess.run(
            [sys.executable, "-m", "cowpath", "mine", "--home", settings.home, "--json"],
            env=os.environ | {"PREFECT_API_URL": url},
            capture_output=True,
            check=True,
            timeout=120,
        )
        flow_runs = ask(f"{url}/flow_runs/filter")
        task_runs = ask(f"{url}/task_runs/filter")

    assert json.loads(ran.stdout)["edges"]["precedes"]["confirmed"] == 1
    assert [run["state_type"] for run in flow_runs] == ["COMPLETED"]
    assert {run["name"].rsplit("-", 1)[0] for run in task_runs} == {stage.__name__ for stage in STAGES}
    assert {run["state_type"] for run in task_runs} == {"COMPLETED"}


def test_runs_that_fell_due_before_another_began_collapse_into_it(
    publish: Callable[..., Settings], sessions: Callable[..., list[Event]], tmp_path: Path
) -> None:
    settings = publish(sessions(ORDERS))

    with server(Settings(home=str(tmp_path / "server"))) as url:
        serving = subprocess.Popen(
            [sys.executable, "-m", "cowpath", "mine", "--every", "1s", "--home", settings.home],
            env=os.environ | {"PREFECT_API_URL": url, "NO_COLOR": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            ended = wait_for_states(url, {"Completed", "Collapsed"}, seconds=120)
        finally:
            serving.send_signal(signal.SIGTERM)
            serving.communicate(timeout=60)

    began = [run["start_time"] for run in ended if run["state_name"] == "Completed"]
    for run in ended:
        if run["state_name"] == "Collapsed":
            assert run["state_type"] == "COMPLETED"
            assert max(began) > run["expected_start_time"]
    running = sorted((run["start_time"], run["end_time"]) for run in ended if run["end_time"])
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(running))


def test_a_busy_home_is_a_state_of_its_own_and_no_stack_trace(
    publish: Callable[..., Settings], sessions: Callable[..., list[Event]], tmp_path: Path
) -> None:
    settings = publish(sessions(ORDERS))

    with server(Settings(home=str(tmp_path / "server"))) as url, held(settings.at.root / "mining.lock", "busy"):
        ran = subprocess.run(
            [sys.executable, "-m", "cowpath", "mine", "--home", settings.home, "--json"],
            env=os.environ | {"PREFECT_API_URL": url},
            capture_output=True,
            text=True,
            timeout=120,
        )
        (flow_run,) = ask(f"{url}/flow_runs/filter")

    assert (ran.returncode, json.loads(ran.stdout)["error"]["code"]) == (91, "home_busy")
    assert (flow_run["state_type"], flow_run["state_name"]) == ("FAILED", "Busy")
    assert "another mining run" in flow_run["state"]["message"]
    assert flow_run["run_count"] == 3
    assert "Traceback" not in ran.stderr


def test_a_direct_run_never_imports_prefect(
    publish: Callable[..., Settings], sessions: Callable[..., list[Event]]
) -> None:
    settings = publish(sessions(ORDERS))
    program = (
        "import sys\n"
        "from cowpath.cli import run\n"
        "try:\n"
        "    run(sys.argv[1:])\n"
        "except SystemExit as done:\n"
        "    assert not done.code, done.code\n"
        "print(sorted({'prefect', 'miner.flow'} & set(sys.modules)), file=sys.stderr)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, "mine", "--home", settings.home, "--json"],
        env={name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(done.stdout)["edges"]["precedes"]["confirmed"] == 1
    assert done.stderr.splitlines()[-1] == "[]"


def test_one_run_at_a_time(publish: Callable[..., Settings], sessions: Callable[..., list[Event]]) -> None:
    settings = publish(sessions(ORDERS))

    with held(settings.at.root / "mining.lock", "busy"), pytest.raises(HomeBusy, match="another mining run"):
        mine(settings)


def test_nothing_published_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="nothing is published"):
        mine(Settings(home=str(tmp_path)))


def ask(url: str) -> list[dict[str, Any]]:
    """All rows of one of the server's filter routes."""
    request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        rows: list[dict[str, Any]] = json.load(answer)
        return rows


def wait_for_states(url: str, names: set[str], *, seconds: int) -> list[dict[str, Any]]:
    """The ended runs, as soon as some ended in each of the named states."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended = [run for run in ask(f"{url}/flow_runs/filter") if run["end_time"]]
        if names <= {run["state_name"] for run in ended}:
            return ended
        time.sleep(0.5)
    raise AssertionError(f"no runs ended as {names} in {seconds} s")


def wait_for(path: Path, process: subprocess.Popen[bytes], *, seconds: int) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if path.exists():
            return
        if process.poll() is not None:
            raise AssertionError(f"ended early: {process.stdout.read().decode() if process.stdout else ''}")
        time.sleep(0.2)
    raise AssertionError(f"{path} did not appear in {seconds} s")


def processes_naming(text: str) -> list[str]:
    """Command lines of living processes that name ``text``."""
    lines = [path.read_bytes().replace(b"\0", b" ").decode() for path in Path("/proc").glob("[0-9]*/cmdline")]
    return [line for line in lines if text in line]
