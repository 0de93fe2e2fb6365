"""A cowpath of the demo's own: the commands on one home, and its server as a child process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).with_name("cowpath")
PATIENCE_S = 120
"""How long anything may take before the demo gives up and says so."""


class DemoFailed(Exception):
    """Something did not work; the message says what, the log holds the rest."""


@dataclass(frozen=True)
class Cowpath:
    """The commands of cowpath on one home. What they say on stderr goes to ``log``."""

    home: Path
    log: Path

    def ask(self, *arguments: str) -> dict[str, Any]:
        """Run a command and return its JSON document."""
        command = [str(COMMAND), *arguments, "--home", str(self.home), "--json"]
        with self.log.open("a") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, env=environment(), check=False)
        if done.returncode:
            words = " ".join(["cowpath", *arguments])
            raise DemoFailed(f"'{words}' ended with {done.returncode}: {done.stdout.decode().strip()} (see {self.log})")
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    @contextmanager
    def served(self) -> Iterator[str]:
        """``cowpath up`` on a free port for the length of the block; gives its address. Always ended."""
        command = [str(COMMAND), "up", "--port", "0", "--home", str(self.home)]
        with self.log.open("a") as log:
            server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment())
        try:
            yield self._address(server)
        finally:
            server.terminate()
            try:
                server.wait(timeout=30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()

    def _address(self, server: subprocess.Popen[bytes]) -> str:
        """The server's address, once it says that it is ready."""
        for _ in patiently():
            if server.poll() is not None:
                raise DemoFailed(f"'cowpath up' ended with {server.returncode} (see {self.log})")
            url = read_url(self.home / "collector.lock")
            if url and is_ready(url):
                return url
        raise DemoFailed(f"'cowpath up' was not ready within {PATIENCE_S} s (see {self.log})")

    def wait_until_drained(self, events: int) -> None:
        """Return when the store holds so many events: acknowledged comes first, stored follows."""
        for _ in patiently():
            if self.ask("status")["events"] >= events:
                return
        raise DemoFailed(f"the collector did not store {events} events within {PATIENCE_S} s (see {self.log})")


def post(url: str, lines: Sequence[bytes]) -> dict[str, Any]:
    """Post events as NDJSON; the receipt counts what is on disk."""
    request = urllib.request.Request(
        f"{url}/v1/events",
        data=b"\n".join(lines),
        headers={"Content-Type": "application/x-ndjson"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        receipt: dict[str, Any] = json.load(answer)
    return receipt


def environment() -> dict[str, str]:
    """This process's environment without its own cowpath settings: the demo is the same for everyone."""
    return {k: v for k, v in os.environ.items() if not k.startswith("COWPATH_") and k != "PREFECT_API_URL"}


def patiently() -> Iterator[None]:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        yield
        time.sleep(0.2)


def read_url(lock: Path) -> str:
    try:
        return str(json.loads(lock.read_text())["url"] or "").rstrip("/")
    except (OSError, ValueError, KeyError):
        return ""


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False
