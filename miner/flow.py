"""The mining run as a Prefect flow: the same stages, with states, retries and a schedule. The one home of prefect.

``cowpath mine`` runs the stages directly, without an orchestrator. This file is for those who have
one (``PREFECT_API_URL``), and for ``cowpath mine --every``, which brings a server of its own and
takes it along when it ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

# Telemetry off; prefect reads its settings when it is imported.
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("DO_NOT_TRACK", "1")

from prefect import flow, get_client, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterStartTime,
    FlowRunFilterState,
    FlowRunFilterStateName,
)
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Completed, Failed
from prefect.types.entrypoint import EntrypointType

from cowpath.errors import HomeBusy, StateError
from cowpath.settings import Settings, read_settings
from miner.stages import STAGES, Mining, opened, record_of

SERVER_START_S = 60.0


BUSY = "Busy"
"""The state of a run that found another process at work on its home; Prefect tries it again twice."""

COLLAPSED = "Collapsed"
"""The state of a late run that has nothing left to do: one that began after it was due has read the whole log."""


# Async, because a sync flow joins a heartbeat thread that sleeps for a second at every run.
@flow(name="cowpath-mine", retries=2, retry_delay_seconds=10, validate_parameters=False)
async def mine_flow(home: str | None = None, gru: bool | None = None) -> dict[str, Any] | State[Any]:
    """One mining run of a home; each stage is a task. A busy home and a late run have states of their own."""
    if await _mined_since_due():
        return Completed(name=COLLAPSED, message="a run that began after this one was due has read the whole log")
    try:
        with opened(read_settings(home=home, gru=gru)) as mining:
            for stage in STAGES:
                mining = await run_stage.with_options(name=stage.__name__)(stage, mining)
            return record_of(mining)
    except HomeBusy as error:
        return Failed(name=BUSY, message=error.message)


# Async too: a sync task opens a client of its own, and loading the certificates for it takes longer than the rest.
@task(cache_policy=NO_CACHE)
async def run_stage(stage: Callable[[Mining], Mining], mining: Mining) -> Mining:
    """One stage as a task, which has the stage's name."""
    return stage(mining)


def run_once(settings: Settings) -> dict[str, Any]:
    """One flow run against the server that ``PREFECT_API_URL`` names; returns the run record."""
    return asyncio.run(_run_once(settings))


async def _run_once(settings: Settings) -> dict[str, Any]:
    state = await mine_flow(home=settings.home, gru=settings.gru, return_state=True)
    if state.name == BUSY:
        raise HomeBusy(state.message or f"{settings.at.root} is busy")
    return cast(dict[str, Any], await state.aresult())


async def _mined_since_due() -> bool:
    """Whether a run of the same deployment that began after this one was due has completed."""
    context = FlowRunContext.get()
    due = context.flow_run if context else None
    if due is None or due.deployment_id is None or due.expected_start_time is None:
        return False
    since = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(any_=[due.deployment_id]),
        state=FlowRunFilterState(name=FlowRunFilterStateName(any_=["Completed"])),
        start_time=FlowRunFilterStartTime(after_=due.expected_start_time),
    )
    async with get_client() as client:
        return bool(await client.read_flow_runs(flow_run_filter=since, limit=1))


def run_every(settings: Settings, interval: timedelta) -> None:
    """Serve a deployment that mines on a schedule, one run at a time, until SIGINT or SIGTERM.

    Where a run takes longer than the interval, those that fell due meanwhile collapse into the next one.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with server(settings) as url, temporary_settings({PREFECT_API_URL: url}):
        # The runs are children of their own: they find the server by the environment.
        os.environ["PREFECT_API_URL"] = url
        mine_flow.serve(
            name="every",
            interval=interval,
            limit=1,
            parameters={"home": str(settings.at.root.absolute()), "gru": settings.gru},
            entrypoint_type=EntrypointType.MODULE_PATH,
            print_starting_message=False,
        )


@contextmanager
def server(settings: Settings) -> Iterator[str]:
    """The API to use: the configured one, else a server of our own that ends with the block."""
    configured = PREFECT_API_URL.value()
    if configured:
        yield configured
        return
    port = _free_port()
    folder = settings.at.root / "prefect"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "server.log").open("ab") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "prefect", "server", "start", "--no-ui", "--host", "127.0.0.1", "--port", str(port)],
            env=os.environ | {"PREFECT_HOME": str(folder.absolute())},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}/api"
        _wait_until_up(url, server, folder / "server.log")
        yield url
    finally:
        _end(server)


def _wait_until_up(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SERVER_START_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise StateError(f"the Prefect server did not come up within {SERVER_START_S:.0f} s; its words are in {log}")


def _end(server: subprocess.Popen[bytes]) -> None:
    """End the server and whatever it started: it leads a process group of its own."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, sign)
        except ProcessLookupError:
            return
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            continue
        return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
