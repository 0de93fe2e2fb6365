"""How fast events are taken in, kept and de-duplicated, as ratios to what the machine can do in the same run.

    python -m benchmarks.ingest --json [--seconds 10] [--stored 0 2000000]

A real server in a process of its own. `--stored`: rows that are there before, with random ids, each
measured anew; 60 s and 0, 10000000, 50000000 are the full measurement. The senders share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import uvloop
from starlette.requests import Request
from starlette.responses import Response

from benchmarks.machine import document, finish, peak_rss
from collector.drain import event_table
from collector.private import read_secret
from collector.service import Collector, open_live
from collector.wire import read_events
from cowpath.event import Event, utc_now
from cowpath.home import Home
from cowpath.settings import Settings

BATCH = 500
BATCH_SENDERS = 4
SINGLE_CONNECTIONS = 64
ROUNDS, MOST_ROUNDS = 5, 15
BACKLOG_BYTES = 256 * 2**20

BARS = {
    "batches of 500 / DuckDB's bulk insert of the same rows, worst": 0.5,
    "batches, most stored / none stored": 0.7,
    "single events / no-op posts": 0.6,
    "p99 at 60 % of the no-op posts / 50 fsyncs": 1.0,
    "undisturbed rounds of single events": 3,
    "backlog after the run, in 256 MiB": 1.0,
    "peak memory with a slow disk, in GiB": 1.0,
}
AT_MOST = frozenset(
    {
        "p99 at 60 % of the no-op posts / 50 fsyncs",
        "backlog after the run, in 256 MiB",
        "peak memory with a slow disk, in GiB",
    }
)


def main() -> None:
    """Measure, print the document, exit 1 where a bar is missed."""
    asked = _arguments()
    if asked.serve:
        serve(asked.serve, asked.sync_delay)
        return
    if asked.fsync:
        flush_now_and_then(asked.fsync)
        return
    with tempfile.TemporaryDirectory(prefix="cowpath-ingest-") as folder:
        batches = [measure_batches(Path(folder, str(n)), stored=n, seconds=asked.seconds) for n in asked.stored]
        singles = measure_singles(Path(folder, "singles"), seconds=asked.seconds)
        slow = measure_slow_disk(Path(folder, "slow"), seconds=min(asked.seconds, 10))
    ratios = {
        "batches of 500 / DuckDB's bulk insert of the same rows, worst": min(b["ratio"] for b in batches),
        "batches, most stored / none stored": batches[-1]["events_per_s"] / batches[0]["events_per_s"],
        "single events / no-op posts": singles["rate_ratio"],
        "p99 at 60 % of the no-op posts / 50 fsyncs": singles["p99_in_50_fsyncs"],
        "undisturbed rounds of single events": len(singles["rounds"]) - singles["disturbed_rounds"],
        "backlog after the run, in 256 MiB": max(b["backlog_bytes"] for b in batches) / BACKLOG_BYTES,
        "peak memory with a slow disk, in GiB": slow["peak_rss_bytes"] / 2**30,
    }
    results = {"ratios": ratios, "batches": batches, "singles": singles, "slow_disk": slow}
    finish(
        document("ingest", results=results, bars=[_bar(name, value) for name, value in ratios.items()]),
        as_json=asked.json,
    )


def _bar(name: str, value: float) -> dict[str, Any]:
    met = value <= BARS[name] if name in AT_MOST else value >= BARS[name]
    return {"bar": name, "measured": round(value, 3), "at": BARS[name], "met": met}


def measure_batches(folder: Path, *, stored: int, seconds: float) -> dict[str, Any]:
    """Events a second that reach live.duckdb, from the first request until the backlog is gone."""
    home = Home(folder)
    fill(home, stored)
    own = bulk_insert(folder / "bulk.duckdb")
    with server(home) as (process, port):
        began, deadline = time.monotonic(), time.monotonic() + seconds
        counts = in_parallel(BATCH_SENDERS, lambda place: send_batches(port, f"{stored}-{place}", deadline))
        took = time.monotonic() - began
        backlog = waiting(port)
        answer = get(port, "/v1/status")
        drained = answer["since_start"]["stored"]
        while get(port, "/v1/status")["since_start"]["stored"] < sum(counts) and time.monotonic() < deadline + seconds:
            time.sleep(0.05)
        kept_s = time.monotonic() - began
        peak = peak_rss(process.pid)
    kept_per_s = sum(counts) / kept_s
    return {
        "stored_before": stored,
        "sent": sum(counts),
        "acknowledged_per_s": round(sum(counts) / took),
        "drained_when_sending_ended": drained,
        "events_per_s": round(kept_per_s),
        "backlog_bytes": backlog,
        "duckdb": own,
        "ratio": round(kept_per_s / own["durable_batches_of_500_per_s"], 3),
        "peak_rss_bytes": peak,
    }


def bulk_insert(path: Path, batches: int = 400) -> dict[str, float]:
    """DuckDB's own insert of the same rows, ready in memory: 500 a commit, 10,000 a commit, all at once.

    Until they are folded into the file, as the collector's are again and again while it takes in more.
    """
    bodies = [body_of(f"bulk-{n}", 0) for n in range(batches)]
    tables = [event_table(list(enumerate(_events(body)))) for body in bodies]
    rates: dict[str, float] = {}
    for name, size in (("durable_batches_of_500", 1), ("durable_batches_of_10000", 20), ("one_commit", batches)):
        home = Home(path.with_name(name))
        home.root.mkdir()
        with open_live(home)[0] as store:
            merged = [pa.concat_tables(tables[n : n + size]) for n in range(0, batches, size)]
            began = time.monotonic()
            for table in merged:
                with store.visible("fresh_batch", table):
                    store.run("drain/events")
            store.checkpoint()
            rates[f"{name}_per_s"] = round(batches * BATCH / (time.monotonic() - began))
    return rates


def _events(body: bytes) -> list[Event]:
    items = read_events(body, as_lines=False, limit=BATCH)
    return [msgspec.structs.replace(item, stored_at=utc_now()) for item in items if isinstance(item, Event)]


def measure_singles(folder: Path, *, seconds: float) -> dict[str, Any]:
    """One event a request from 64 connections, against a POST to the same server that does nothing.

    In rounds, so that each ratio compares the same moments. Where others share the machine, some rounds measure them:
    one in which the POST that does nothing or the bare disk misses the bar by itself is shown and not counted. The
    ratios are the medians of the counted rounds.
    """
    home = Home(folder)
    rounds: list[dict[str, Any]] = []
    with server(home) as (_, port):
        while sum(not one["disturbed"] for one in rounds) < ROUNDS and len(rounds) < MOST_ROUNDS:
            rounds.append(one_round(folder, port, seconds=seconds / ROUNDS))
        failed = get(port, "/v1/status")["since_start"]["rejected"]
    counted = [one for one in rounds if not one["disturbed"]] or rounds
    return {
        "rate_ratio": round(statistics.median(one["events_per_s"] / one["no_op_per_s"] for one in counted), 3),
        "p99_in_50_fsyncs": round(statistics.median(one["paced"]["p99_ms"] / one["bar_ms"] for one in counted), 3),
        "disturbed_rounds": sum(one["disturbed"] for one in rounds),
        "rounds": rounds,
        "rejected": failed,
    }


def one_round(folder: Path, port: int, *, seconds: float) -> dict[str, Any]:
    """As fast as answers come, for the rate; then at 60 % of the no-op's rate, for what an answer takes: without a
    free moment it takes 64 times one request's share, whatever the server does."""
    no_op, _ = hammer(port, "/v1/nothing", _nothing, seconds=seconds / 2)
    rate, took = hammer(port, "/v1/events", single_body, seconds=seconds)
    control, control_took = hammer(port, "/v1/nothing", _nothing, seconds=seconds / 2, rate=0.6 * no_op)
    bare = fsync_times(folder, seconds=seconds / 5)
    with fsyncs_beside(folder) as fsyncs:
        paced, paced_took = hammer(port, "/v1/events", single_body, seconds=seconds, rate=0.6 * no_op)
    bar_ms = 50 * fsyncs["median_ms"]
    slow = sum(each for each in bare if each * 1000 > bar_ms) / sum(bare)
    return {
        "no_op_per_s": round(no_op),
        "events_per_s": round(rate),
        **_took(took),
        "paced": {"events_per_s": round(paced), **_took(paced_took), "fsync_ms": fsyncs["median_ms"]},
        "bar_ms": round(bar_ms, 2),
        "no_op_paced": {"events_per_s": round(control), **_took(control_took)},
        "time_in_fsyncs_past_the_bar": round(slow, 4),
        "disturbed": _took(control_took)["p99_ms"] > bar_ms or slow > 0.01,
    }


def _nothing(place: int, number: int) -> bytes:
    return b"{}"


def _took(seconds: list[float]) -> dict[str, float]:
    quantiles = statistics.quantiles(seconds, n=100)
    return {"p50_ms": round(quantiles[49] * 1000, 2), "p99_ms": round(quantiles[98] * 1000, 2)}


def measure_slow_disk(folder: Path, *, seconds: float) -> dict[str, Any]:
    """Memory and answers while every flush takes half a second and four senders do not stop."""
    with server(Home(folder), "--sync-delay", "0.5") as (process, port):
        deadline = time.monotonic() + seconds
        counts = in_parallel(16, lambda place: send_batches(port, f"slow-{place}", deadline, pause_s=0.01))
        peak = peak_rss(process.pid)
    return {"acknowledged": sum(counts), "peak_rss_bytes": peak}


def send_batches(port: int, name: str, deadline: float, *, pause_s: float = 0.0) -> int:
    """Post batches until the deadline; how many events were acknowledged. What is refused is sent again."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    number = sent = 0
    while time.monotonic() < deadline:
        connection.request("POST", "/v1/events", body_of(name, number), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        if answer.status == 200:
            sent, number = sent + BATCH, number + 1
        elif answer.status != 503:
            raise SystemExit(f"unexpected answer {answer.status}")
        time.sleep(pause_s)
    return sent


TEMPLATE = (
    '{"event_id":"%s","session_id":"%s","skill_id":"skill-%d","seq":%d,"ts":%.3f,"trigger":"agent","outcome":"ok",'
    '"duration_ms":%d,"actor":"actor-%d","agent":"bench","agent_version":"1.0"}'
)


def body_of(name: str, number: int) -> bytes:
    """A batch with random ids (version 4), about 230 bytes an event."""
    now = time.time()
    ids = os.urandom(16 * BATCH).hex()
    events = (
        TEMPLATE % (ids[32 * n : 32 * n + 32], f"{name}-{number}-{n // 10}", n % 97, n % 10, now + n / 1000, n, n % 13)
        for n in range(BATCH)
    )
    return b'{"events":[' + ",".join(events).encode() + b"]}"


def single_body(place: int, number: int) -> bytes:
    values = (uuid.uuid4().hex, f"{place}-{number // 10}", number % 97, number % 10, time.time(), number, place % 13)
    return (TEMPLATE % values).encode()


HEAD = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


def hammer(
    port: int, path: str, body: Callable[[int, int], bytes], *, seconds: float, rate: float = 0
) -> tuple[float, list[float]]:
    """Requests a second over 64 connections that each wait for their answer, and how long each took.

    With a ``rate`` each connection keeps to its times, and what waited for a late answer counts from its own time.
    """

    async def one(place: int, began: float, took: list[float]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        pause_s = SINGLE_CONNECTIONS / rate if rate else 0
        number, due = 0, began + pause_s * place / SINGLE_CONNECTIONS
        while due < began + seconds:
            if rate:
                await asyncio.sleep(max(0, due - time.perf_counter()))
            data = body(place, number)
            writer.write(HEAD % (path.encode(), len(data)) + data)
            answer = await reader.readuntil(b"\r\n\r\n")
            if not answer.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"unexpected answer {answer[:60]!r}")
            length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            took.append(time.perf_counter() - due)
            number, due = number + 1, due + pause_s if rate else time.perf_counter()
        writer.close()

    async def everyone() -> tuple[float, list[float]]:
        took: list[float] = []
        began = time.perf_counter()
        await asyncio.gather(*(one(place, began, took) for place in range(SINGLE_CONNECTIONS)))
        return len(took) / (time.perf_counter() - began), took

    return uvloop.run(everyone())


def fsync_times(folder: Path, *, seconds: float, pause_s: float = 0) -> list[float]:
    """How long flushes of 300 bytes take, in seconds, one after the other for so long."""
    times: list[float] = []
    deadline = time.monotonic() + seconds
    with (folder / f"fsync-{os.getpid()}").open("ab", buffering=0) as file:
        while time.monotonic() < deadline:
            file.write(b"x" * 300)
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
            time.sleep(pause_s)
    return times


@contextmanager
def fsyncs_beside(folder: Path) -> Iterator[dict[str, float]]:
    """What one fsync takes while the block runs: the same disk under the same load, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.ingest", "--fsync", str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = {}
    try:
        yield found
    finally:
        found["median_ms"] = round(float(process.communicate(timeout=60)[0]), 3)


def flush_now_and_then(folder: Path) -> None:
    """Be that process, until its input ends: seldom enough not to hold up what it is measured beside."""
    waiting = threading.Thread(target=sys.stdin.read, daemon=True)
    waiting.start()
    times: list[float] = []
    while not times or waiting.is_alive():
        times += fsync_times(folder, seconds=0.2, pause_s=0.2)
    print(statistics.median(times) * 1000)


def fill(home: Home, rows: int) -> None:
    """So many events with random ids, spread over a year, as if they had been there for long."""
    home.root.mkdir(parents=True)
    read_secret(home.secret)
    with open_live(home)[0] as store:
        if rows:
            store.execute(
                "insert into events select md5(random()::text || i), 's' || (i // 10), '', i % 10, 'skill-' || i % 97, "
                "timestamp '2025-11-01' + to_milliseconds(i * 31536000000 // $rows), now()::timestamp, 'activated', "
                "'agent', 'ok', 1.0, null, null, 'bench', null, 'http', 1.0, null, 'ok', '{}', i "
                "from range($rows) as t(i)",
                {"rows": rows},
            )
            store.checkpoint()


def in_parallel(n: int, work: Callable[[int], int]) -> list[int]:
    counts = [0] * n

    def run(place: int) -> None:
        counts[place] = work(place)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return counts


def get(port: int, path: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    return json.loads(connection.getresponse().read())


def waiting(port: int) -> int:
    """Bytes that are acknowledged and not yet drained."""
    queue = get(port, "/v1/status")["queue"]
    (segment, offset), (at, done) = queue["acknowledged"], queue["drained"]
    return int((segment - at) * Settings().segment_bytes + offset - done)


@contextmanager
def server(home: Home, *more: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The collector over HTTP with one route more, that does nothing, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.ingest", "--serve", str(home.root), *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield process, int(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate(timeout=60)


def serve(home: str, sync_delay_s: float) -> None:
    """Be that process."""
    from collector.access.guard import Guard
    from collector.access.keys import Keyring, make_local_key
    from collector.app import create_app
    from collector.server import listen, url_of
    from collector.server import serve as serve_app

    def slow(file: int) -> None:
        time.sleep(sync_delay_s)
        os.fsync(file)

    async def nothing(request: Request) -> Response:
        await request.body()
        return Response(b"{}", media_type="application/json")

    settings = Settings(home=home, port=0, publish_every_s=0)
    with listen(settings) as listener, Collector(settings, sync=slow if sync_delay_s else os.fsync) as collector:
        app = create_app(settings, collector)
        guard = Guard(app, Keyring(collector.home, local=make_local_key(collector.home)), loopback=True)
        app.add_api_route("/v1/nothing", nothing, methods=["POST"], response_model=None)
        port = url_of(listener).rpartition(":")[2]
        serve_app(guard, listener, grace_s=5, announce=lambda: print(port, flush=True))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingest", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument(
        "--stored", type=int, nargs="+", default=[0, 2_000_000], help="rows there before, smallest first"
    )
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--fsync", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--sync-delay", type=float, default=0.0, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
