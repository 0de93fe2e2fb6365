"""The server process: one port, one worker, words about where it listens, and an end without loss."""

from __future__ import annotations

import gc
import logging
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from collector.access.guard import is_loopback
from collector.access.keys import read_keys
from cowpath.errors import InputError, StateError
from cowpath.settings import Settings

log = logging.getLogger("cowpath.collector")

SWITCH_S = 0.0002
"""How long the event loop keeps the interpreter from the thread whose fsync has just come back; 5 ms by default."""


def serve(app: ASGIApp, listener: socket.socket, *, grace_s: float, announce: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM; ``announce`` is called when requests are answered."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(grace_s)),
        lifespan="on",
    )
    sys.setswitchinterval(SWITCH_S)
    # uvicorn raises a signal it was stopped by once more when it is done; ours must outlive that to close the store.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _already_stopping)
    _Announcing(config, announce).run(sockets=[listener])


def listen(settings: Settings) -> socket.socket:
    """A bound socket; refused where others could reach it and there are no keys to tell them apart."""
    if not is_loopback(settings.host) and not read_keys(settings.at):
        raise InputError(
            f"host {settings.host} can be reached by others and there are no keys to tell them apart; "
            "bind 127.0.0.1, ::1 or localhost, or give out keys first",
            suggestions=["cowpath keys add NAME --scope ingest", "--host 127.0.0.1"],
        )
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise StateError(
            f"port {settings.port} of {settings.host} cannot be bound: {error.strerror}", suggestions=["--port 0"]
        ) from error
    return listener


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Child:
    """Runs ``python -m cowpath ...`` again and again, one at a time, and takes it along when it ends."""

    def __init__(self, *arguments: str) -> None:
        self._command = [sys.executable, "-m", "cowpath", *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self) -> None:
        """One run, to its end. What it says on stderr goes where ours goes."""
        if self._stopped:
            return
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        if self._process.wait() not in (0, -signal.SIGTERM):
            log.warning("%s ended with %d", " ".join(self._command[1:]), self._process.returncode)

    def stop(self) -> None:
        """End the run of the moment; begin none any more."""
        self._stopped = True
        if self._process and self._process.poll() is None:
            with suppress(ProcessLookupError):
                self._process.terminate()


class _Announcing(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            # What is loaded by now stays; looking through it again and again for garbage would stop every answer.
            gc.collect()
            gc.freeze()
            self._announce()


def _already_stopping(number: int, frame: FrameType | None) -> None:
    """The first signal began the stop; it ends by itself."""
