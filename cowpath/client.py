"""The client: an agent says which skill it called; this gets it to the collector without ever standing in its way.

from cowpath.client import Client

client = Client()
client.record("write-tests", session_id="s-07", outcome="ok")
"""

from __future__ import annotations

import atexit
import logging
import os
import random
import threading
import time
import uuid
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import msgspec

from cowpath.errors import CowpathError
from cowpath.settings import Settings, read_settings
from cowpath.shipper import NotNow, Shipper
from cowpath.spool import MAX_BYTES, Spool

log = logging.getLogger("cowpath.client")

EVERY_S = 0.5
"""Pause between two shipments: what was recorded meanwhile goes together."""

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
AT_EXIT_S = 1.0
MAX_LINE_BYTES = 64 * 1024

_encoder = msgspec.json.Encoder(enc_hook=str)


class Client:
    """Records events in a spool on this machine and ships them from a thread of its own.

    What ``record`` returned an id for is delivered exactly once, also where this process is killed or the collector
    is down: the next client or hook on the same spool sends it. The spool is bounded (``max_bytes``); past that the
    oldest events go and their number is reported. Nothing here raises into the agent or waits for the network.
    Several processes and threads may share a spool; after a fork the child goes on with a file of its own.
    """

    def __init__(
        self,
        url: str | None = None,
        spool: str | os.PathLike[str] | None = None,
        key: str | None = None,
        *,
        max_bytes: int = MAX_BYTES,
        fsync: bool = False,
    ) -> None:
        settings = _settings()
        self.url = url or settings.sends_to
        self._key = settings.key if key is None else key
        self._spool = Spool(Path(spool) if spool else settings.at.spool, max_bytes=max_bytes, fsync=fsync)
        self._recorded = self._failed = self._refused = 0
        self._begin()
        _clients.add(self)
        # What an earlier process left is sent now, not when somebody records something.
        self._start()

    def record(self, skill: str, session_id: str, **fields: Any) -> str | None:
        """Keep one event and return its id; None where it could not be kept, which is counted and logged.

        ``fields`` are those of the native event: ``seq, stream_id, outcome, duration_ms, batch_id, actor, agent, ...``.
        """
        try:
            event_id = str(fields.pop("event_id", None) or uuid.uuid4())
            fields.setdefault("called_at", datetime.now(UTC))
            event = {"event_id": event_id, "session_id": session_id, "skill_id": skill, **fields}
            line = b"event " + _encoder.encode(event) + b"\n"
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(f"an event of {len(line)} bytes; at most {MAX_LINE_BYTES} are taken")
            self._spool.append(line)
        except Exception as error:
            # Whatever it is, the agent's work is worth more than our record of it.
            self._failed += 1
            log.warning("an event was not recorded: %s", error)
            return None
        self._recorded += 1
        self._start()
        return event_id

    def flush(self, timeout: float = 5.0) -> bool:
        """Whether everything in the spool reached the collector within ``timeout`` seconds."""
        with self._news:
            self._asked += 1
            asked = self._asked
            self._start()
            self._wake.set()
            return self._news.wait_for(lambda: self._done >= asked, timeout)

    def close(self, timeout: float = AT_EXIT_S) -> None:
        """Ship what can be shipped within ``timeout`` seconds; the rest waits in the spool for the next client."""
        _clients.discard(self)
        if not self._stop.is_set() and self._waits():
            self.flush(timeout)
        self._stop.set()
        self._wake.set()
        self._spool.close()

    def stats(self) -> dict[str, int]:
        """What became of the events so far: recorded, failed, dropped (spool full), refused (collector), waiting."""
        files, waiting = self._spool.waiting()
        return {
            "recorded": self._recorded,
            "failed": self._failed,
            "dropped": self._spool.dropped,
            "refused": self._refused,
            "waiting_files": files,
            "waiting_bytes": waiting,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _begin(self) -> None:
        self._asked = self._done = 0
        self._news = threading.Condition()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def _start(self) -> None:
        """The shipping thread, where there is none yet; a thread that cannot be had leaves the spool to others."""
        if self._thread is not None or self._stop.is_set():
            return
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=_ship, args=(weakref.ref(self),), name="cowpath", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError as error:
                    log.warning("no shipping thread: %s", error)

    def _waits(self) -> bool:
        try:
            return self._spool.waiting()[0] > 0
        except OSError:
            return False

    def _forked(self) -> None:
        self._spool.forked()
        self._begin()


def _settings() -> Settings:
    """The settings; a mistake in them must not stop an agent."""
    try:
        return read_settings()
    except CowpathError as error:
        log.warning("%s; the defaults are used", error.message)
        return Settings()


def _ship(reference: weakref.ref[Client]) -> None:
    """The shipping thread: send, pause, and back off while the collector does not answer."""
    client = reference()
    if client is None:
        return
    shipper = Shipper(client.url, key=client._key)
    wake, stop, wait_s = client._wake, client._stop, FIRST_WAIT_S
    while client is not None and not stop.is_set():
        wake.clear()
        asked, pause_s = client._asked, EVERY_S
        try:
            client._spool.ship(shipper.send)
            wait_s = FIRST_WAIT_S
            with client._news:
                client._done = max(client._done, asked)
                client._news.notify_all()
        except NotNow as error:
            log.info("%s; trying again", error)
            pause_s = max(error.wait_s, wait_s * random.uniform(0.5, 1.0))
            wait_s = min(LONGEST_WAIT_S, wait_s * 2)
        except OSError as error:
            log.warning("the spool cannot be read: %s", error)
            pause_s = LONGEST_WAIT_S
        client._refused = shipper.refused
        del client
        wake.wait(pause_s)
        client = reference()
    shipper.close()


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _close_all() -> None:
    deadline = time.monotonic() + AT_EXIT_S
    for client in list(_clients):
        client.close(max(0.0, deadline - time.monotonic()))


def _forked_all() -> None:
    for client in list(_clients):
        client._forked()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forked_all)
