"""Kills at random moments: every acknowledged event is there, exactly once.

    python -m benchmarks.crash --json [--kills 12] [--seed 0]

A real server on a home of its own, four senders that send everything twice, and SIGKILL: while they
send, and while it also publishes, folds its log into the file, or erases sessions. Then the same home
with a torn segment and with a write-ahead log that cannot be replayed, a held database file, and a
full disk (a small tmpfs; needs root, and says so where it is left out).
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.machine import document, finish
from collector.segments import numbers, segment_path
from collector.service import Collector
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.store import Store

SENDERS = 4
BATCH = 25
LONGEST_S = {"sending": 0.6, "publish": 2.0, "checkpoint": 0.6, "erase": 6.0}
"""Moments to kill at, and how long a life may last until then: long enough for some of each to end before."""

MOMENTS = tuple(LONGEST_S)

SMALL = {
    "COWPATH_SEGMENT_BYTES": "60000",
    "COWPATH_DRAIN_BATCH_EVENTS": "300",
    "COWPATH_MAX_BACKLOG_BYTES": "1000000",
    "COWPATH_PUBLISH_EVERY_S": "0",
}
"""Settings under which segments, checkpoints and publications come often, and senders are told to wait."""

BARS: dict[str, float] = {"lost": 0, "duplicated": 0, "erased but there": 0, "special cases that failed": 0}


@dataclass
class Told:
    """What the server acknowledged: ids that must be there, sessions that must not."""

    ids: set[str] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)


def main() -> None:
    """Kill, count, print the document, exit 1 where anything is lost or doubled."""
    asked = _arguments()
    with tempfile.TemporaryDirectory(prefix="cowpath-crash-") as folder:
        home, told, began = Home(Path(folder, "home")), Told(), time.monotonic()
        killed = kill_often(home, told, kills=asked.kills, seed=asked.seed)
        kills_s = round(time.monotonic() - began, 1)
        counted = count(home, told)
        special = special_cases(home, told, Path(folder))
    measured = {
        **{name: counted[name] for name in ("lost", "duplicated", "erased but there")},
        "special cases that failed": sum(case not in ("ok", LEFT_OUT) for case in special.values()),
    }
    results = {"kills": dict(killed), "kills_s": kills_s, **counted, "answers": dict(told.answers), "special": special}
    bars = [{"bar": name, "measured": n, "at": BARS[name], "met": n <= BARS[name]} for name, n in measured.items()]
    finish(document("crash", results=results, bars=bars), as_json=asked.json)


def kill_often(home: Home, told: Told, *, kills: int, seed: int) -> Counter[str]:
    """Start, load, kill, again and again; how often at which kind of moment."""
    chance, killed = random.Random(seed), Counter[str]()
    for life in range(kills):
        moment = MOMENTS[life % len(MOMENTS)]
        with server(home) as (process, port):
            others = [threading.Thread(target=send, args=(port, f"{life}-{n}", told)) for n in range(SENDERS)]
            if moment in ("publish", "erase"):
                others.append(threading.Thread(target=disturb, args=(port, moment, life, told)))
            for thread in others:
                thread.start()
            time.sleep(chance.uniform(0.02, LONGEST_S[moment]))
            process.kill()
            for thread in others:
                thread.join()
        killed[moment] += 1
    return killed


def send(port: int, name: str, told: Told) -> None:
    """Until the server dies: a batch, the same again, and the one before; ids count once a receipt named them."""
    before: list[dict[str, object]] = []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for number in range(1_000_000):
        batch = [event(name, number * BATCH + n) for n in range(BATCH)]
        for body in (batch, batch, before):
            status = ask(connection, "POST", "/v1/events", {"events": body})
            told.answers[str(status)] += 1
            if status is None:
                return
            if status == 503:
                time.sleep(0.02)
            if status == 200:
                told.ids.update(str(e["event_id"]) for e in body)
        before = batch


def disturb(port: int, moment: str, life: int, told: Told) -> None:
    """Until the server dies: publish, or send a session and erase it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for number in range(1_000_000):
        if moment == "publish":
            status = ask(connection, "POST", "/v1/publish", None)
        else:
            session = f"erased-{life}-{number}"
            batch = {"events": [event(session, n) for n in range(5)]}
            while (sent := ask(connection, "POST", "/v1/events", batch)) == 503:
                time.sleep(0.02)
            status = sent and ask(connection, "DELETE", f"/v1/subjects/session/{session}", None)
            if status == 200:
                told.erased.add(session)
        told.answers[f"{moment} {status}"] += 1
        if status is None:
            return


def event(session: str, number: int) -> dict[str, object]:
    """Every fifth without a time, every seventh with one that no clock shows."""
    at = None if number % 5 == 0 else -5 if number % 7 == 0 else 1_796_000_000 + number
    return {"event_id": f"{session}/{number}", "session_id": session, "skill_id": f"skill-{number % 9}", "ts": at}


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: object) -> int | None:
    """The status of an answer; None where there is nobody to give one."""
    data = None if body is None else json.dumps(body).encode()
    try:
        connection.request(method, path, data, {"Content-Type": "application/json"} if data else {})
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        return None
    return answer.status


def count(home: Home, told: Told) -> dict[str, int]:
    """What is there after the last restart, in the live store and in the published copy alike."""
    with Collector(Settings(home=str(home.root), publish_every_s=0)) as collector:
        collector.publish()
    copies = [kept(home.live), kept(home.usage)]
    there = copies[0]
    return {
        "acknowledged": len(told.ids),
        "kept": len(there),
        "sessions erased": len(told.erased),
        "lost": max(len(told.ids - copy.keys()) for copy in copies),
        "duplicated": max(sum(n > 1 for n in copy.values()) for copy in copies),
        "erased but there": len({i.partition("/")[0] for copy in copies for i in copy} & told.erased),
    }


def kept(path: Path) -> dict[str, int]:
    with Store.open(path, read_only=True) as store:
        return dict(store.rows("select event_id, count(*) from events group by event_id"))


LEFT_OUT = "left out: needs root to mount a small tmpfs"


def special_cases(home: Home, told: Told, folder: Path) -> dict[str, str]:
    """``ok``, or what went wrong, for each."""
    return {
        "torn segment": _nothing_lost(home, told, tear),
        "corrupted write-ahead log": _nothing_lost(home, told, corrupt),
        "held database file": held_file(home, told),
        "full disk": full_disk(folder),
    }


def tear(home: Home) -> None:
    """Half a line at the end of the last segment, as a power cut leaves it."""
    last = max(numbers(home.journal), default=1)
    with segment_path(home.journal, last).open("ab") as file:
        file.write(b'0badcafe {"event":{"event_id":"half')


def corrupt(home: Home) -> None:
    """Bytes in the middle of the write-ahead log that mean nothing."""
    wal = log_of(home)
    data = bytearray(wal.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 200] = b"\xff" * 200
    wal.write_bytes(data)


def log_of(home: Home) -> Path:
    return home.live.with_name("live.duckdb.wal")


def _nothing_lost(home: Home, told: Told, damage: Callable[[Home], None]) -> str:
    """Send, kill, damage, count. A kill right after a checkpoint leaves no log to damage: once more then."""
    load_and_kill(home, told, damage.__name__)
    while not log_of(home).exists():
        load_and_kill(home, told, damage.__name__)
    damage(home)
    with server(home):
        pass
    counted = count(home, told)
    wrong = {name: counted[name] for name in ("lost", "duplicated") if counted[name]}
    return f"wrong: {wrong}" if wrong else "ok"


def load_and_kill(home: Home, told: Told, name: str) -> None:
    with server(home) as (process, port):
        life = time.monotonic()
        threads = [threading.Thread(target=send, args=(port, f"{name}-{life}-{n}", told)) for n in range(SENDERS)]
        for thread in threads:
            thread.start()
        time.sleep(0.7)
        process.kill()
        for thread in threads:
            thread.join()


def held_file(home: Home, told: Told) -> str:
    """While another process has live.duckdb open, the start is refused in one sentence; afterwards all is there."""
    code = f"import duckdb,sys; c=duckdb.connect({str(home.live)!r}); print('open',flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert holder.stdout
    holder.stdout.readline()
    refused = subprocess.run(up(home), capture_output=True, text=True, timeout=60)
    holder.communicate(timeout=30)
    counted = count(home, told)
    if refused.returncode != 91 or "Traceback" in refused.stderr or counted["lost"] or counted["duplicated"]:
        return f"exit {refused.returncode}: {refused.stderr[-200:]}, lost {counted['lost']}"
    return "ok"


def full_disk(folder: Path) -> str:
    """On a disk that fills up, sending gets 503, never 500; with room again everything acknowledged is there."""
    place = folder / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", place], capture_output=True).returncode:
        return LEFT_OUT
    try:
        return _fill(Home(place / "home"), place / "filler", rescue=folder / "rescued")
    finally:
        subprocess.run(["umount", place], check=False)


def _fill(home: Home, filler: Path, *, rescue: Path) -> str:
    told = Told()
    with server(home) as (process, port):
        first = ask(http.client.HTTPConnection("127.0.0.1", port, timeout=30), "GET", "/healthz", None)
        sender = threading.Thread(target=send, args=(port, "full", told))
        sender.start()
        time.sleep(0.5)
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(b"\0" * 65_536) == 65_536:
                pass
        time.sleep(1.5)
        filler.unlink()
        time.sleep(1.0)
        process.kill()
        sender.join()
    shutil.copytree(home.root, rescue)
    counted = count(Home(rescue), told)
    wrong = {name: counted[name] for name in ("lost", "duplicated") if counted[name]}
    if first != 200 or told.answers["503"] == 0 or told.answers["500"] or wrong:
        return f"answers {dict(told.answers)}, wrong {wrong}"
    return "ok"


@contextmanager
def server(home: Home) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A real ``cowpath up``; killed at the end of the block where it still runs."""
    process = subprocess.Popen(
        up(home), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ | SMALL
    )
    try:
        assert process.stdout
        said = json.loads(process.stdout.readline())
        if "url" not in said:
            raise SystemExit(f"the server did not start: {said}")
        yield process, int(said["url"].rpartition(":")[2])
    finally:
        process.kill()
        process.communicate()


def up(home: Home) -> list[str]:
    return [sys.executable, "-m", "cowpath", "up", "--home", str(home.root), "--port", "0", "--json"]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
