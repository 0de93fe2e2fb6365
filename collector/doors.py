"""Doors: the one way for other programs to hand events to a home, whether its collector runs or not."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

import msgspec

from collector.access.keys import local_key
from collector.counted import Counted, Item
from collector.erase import erase, erase_older
from collector.erased import Kind
from collector.lock import Holder, busy, running
from collector.receipt import Receipt
from collector.service import Collector
from cowpath import errors
from cowpath.errors import CowpathError, HomeBusy, Overloaded, RateLimited
from cowpath.event import Event, Rejected
from cowpath.home import Home
from cowpath.settings import Settings

PATIENCE_S = 30.0
"""How long a door keeps trying while the collector starts or is overloaded."""


class Door(Protocol):
    """Where importers and the miner send."""

    def send(self, events: Sequence[Item]) -> Receipt: ...

    def publish(self) -> None: ...

    def erase(self, kind: Kind, value: str, *, dry_run: bool = False) -> dict[str, Any]: ...

    def erase_older(self, days: float, *, dry_run: bool = False) -> dict[str, Any]: ...


@contextmanager
def open_door(settings: Settings) -> Iterator[Door]:
    """A door to the running collector of this home, or to one that runs here as long as the block."""
    holder = _listening(settings.at)
    if holder:
        yield HttpDoor(holder.url, key=key_of(settings))
    else:
        with Collector(replace(settings, publish_every_s=0, quack_port=0)) as collector:
            yield LocalDoor(collector)


def key_of(settings: Settings) -> str:
    """The key to send along: the one that was set, or that of this machine's own commands."""
    return settings.key or local_key(settings.at)


class LocalDoor:
    """A door to a collector in this process; its receipts are exact."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def send(self, events: Sequence[Item]) -> Receipt:
        """Store, and wait until the drain has said which were repeats."""
        before = self._collector.drain.duplicates
        receipt = self._collector.take_in(events)
        self._collector.flush()
        duplicates = self._collector.drain.duplicates - before
        return msgspec.structs.replace(
            receipt, duplicates=duplicates, accepted=receipt.accepted + receipt.duplicates - duplicates
        )

    def publish(self) -> None:
        self._collector.publish()

    def erase(self, kind: Kind, value: str, *, dry_run: bool = False) -> dict[str, Any]:
        return erase(self._collector, kind, value, dry_run=dry_run)

    def erase_older(self, days: float, *, dry_run: bool = False) -> dict[str, Any]:
        return erase_older(self._collector, days, dry_run=dry_run)


class HttpDoor:
    """A door to a collector in another process; tries again while that says it is busy."""

    def __init__(self, url: str, *, key: str = "") -> None:
        self.url = url
        self._key = key

    def send(self, events: Sequence[Item]) -> Receipt:
        counted = [item for item in events if isinstance(item, Counted)]
        body = msgspec.json.encode(
            {
                "schema_version": 1,
                "events": [_as_sent(item) for item in events if isinstance(item, Event)],
                "rejected": [item for item in events if isinstance(item, Rejected)],
                **({"counted": counted} if counted else {}),
            }
        )
        return msgspec.convert(self._patiently("POST", "/v1/events", body), Receipt)

    def publish(self) -> None:
        self._patiently("POST", "/v1/publish")

    def erase(self, kind: Kind, value: str, *, dry_run: bool = False) -> dict[str, Any]:
        subject = quote(value, safe="")
        return self._patiently("DELETE", f"/v1/subjects/{kind}/{subject}?dry_run={str(dry_run).lower()}")

    def erase_older(self, days: float, *, dry_run: bool = False) -> dict[str, Any]:
        return self._patiently("DELETE", f"/v1/events?older_than_days={days}&dry_run={str(dry_run).lower()}")

    def status(self) -> dict[str, Any]:
        """The collector's status document."""
        return self._patiently("GET", "/v1/status")

    def _patiently(self, method: str, path: str, body: bytes = b"") -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return ask(self.url, method, path, body, key=self._key)
            except (Overloaded, RateLimited) as error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(error.retry_after_s)


def ask(
    url: str, method: str, path: str, body: bytes = b"", *, key: str = "", timeout_s: float = 600.0
) -> dict[str, Any]:
    """One request to a collector on this machine; its error documents come back as our errors."""
    answer = ask_bytes(url, method, path, body, key=key, timeout_s=timeout_s)
    try:
        return msgspec.json.decode(answer, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise CowpathError("the collector answered without a JSON document") from error


def ask_bytes(url: str, method: str, path: str, body: bytes = b"", *, key: str = "", timeout_s: float = 600.0) -> bytes:
    """The same, and the answer as it came.

    Not through urllib: that would ask a proxy from the environment for the way to this machine.
    """
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "127.0.0.1", place.port, timeout=timeout_s)
    headers = {"Content-Type": "application/json"} if body else {}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    try:
        connection.request(method, path, body or None, headers)
        response = connection.getresponse()
        answer = response.read()
    except OSError as error:
        raise HomeBusy(f"the collector at {url} does not answer: {error}; try again") from error
    finally:
        connection.close()
    if response.status >= 400:
        raise _refusal(response, answer)
    return answer


def _refusal(response: http.client.HTTPResponse, answer: bytes) -> CowpathError:
    try:
        document = msgspec.json.decode(answer, type=dict[str, Any])
    except msgspec.DecodeError:
        return CowpathError(f"the collector answered {response.status} without a JSON document")
    if not isinstance(document.get("error"), dict):
        # A google.rpc.Status, as exporters are told.
        return CowpathError(f"the collector answered {response.status}: {document.get('message', 'no word why')}")
    document = document["error"]
    return _error_of(document, retry_after=response.getheader("Retry-After"))


def _error_of(document: dict[str, Any], *, retry_after: str | None) -> CowpathError:
    """The error a document stands for, as if it had been raised here."""
    message, code = str(document.get("message", "")), document.get("code")
    for busy_kind in (Overloaded, RateLimited):
        if code == busy_kind.code:
            return busy_kind(message, retry_after_s=int(retry_after or 1))
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, CowpathError)]
    kind = next((c for c in classes if c.code == code), CowpathError)
    return kind(message, suggestions=document.get("suggestions", []))


def _as_sent(event: Event) -> Event:
    """Without what the collector decides itself; defaults are not sent."""
    return msgspec.structs.replace(event, stored_at=None, clock="ok")


def _listening(home: Home) -> Holder | None:
    """The running collector with its address; None where none runs. Waits for one that is starting or ending."""
    deadline = time.monotonic() + PATIENCE_S
    while holder := running(home):
        if holder.url:
            return holder
        if time.monotonic() > deadline:
            raise busy(home, holder)
        time.sleep(0.1)
    return None
