"""The shipper: hands lines of a spool to a collector over HTTP."""

from __future__ import annotations

import http.client
import json
from itertools import groupby
from urllib.parse import urlsplit

from cowpath.spool import DROPPED, EVENTS, addressed, documents

REFUSED = frozenset({400, 413, 415, 422})
"""What the collector will say again, however often it is asked. Everything else may become better."""

MOST_WAIT_S = 300.0


class NotNow(Exception):
    """The collector does not take anything now; the lines stay where they are."""

    def __init__(self, reason: str, *, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class Shipper:
    """Sends lines; keeps its connection. ``refused`` counts what the collector keeps as dead letters or never takes."""

    def __init__(self, url: str, *, key: str = "", timeout_s: float = 10.0) -> None:
        self.refused = 0
        self._place = urlsplit(url)
        self._timeout_s = timeout_s
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._connection: http.client.HTTPConnection | None = None

    def send(self, lines: list[bytes]) -> None:
        """Return when a collector has them all on disk, or said that it will never take them; else NotNow."""
        for path, bodies in groupby(map(addressed, lines), key=lambda pair: pair[0]):
            if path:
                self._send_to(path, [body for _, body in bodies])
            else:
                self.refused += sum(1 for _ in bodies)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send_to(self, path: str, bodies: list[bytes]) -> None:
        for document in documents(path, bodies):
            status, answer = self._post(EVENTS if path == DROPPED else path, document)
            if status < 300:
                self.refused += 0 if path == DROPPED else _rejected(answer)
            elif len(bodies) > 1 and path == EVENTS:
                # One of them spoils the rest: each for itself.
                for body in bodies:
                    self._send_to(path, [body])
            else:
                self.refused += 1

    def _post(self, path: str, document: bytes) -> tuple[int, bytes]:
        """The answer, where it is a final one. Not through urllib: that would ask a proxy for the way."""
        try:
            if self._connection is None:
                kind = http.client.HTTPSConnection if self._place.scheme == "https" else http.client.HTTPConnection
                host = self._place.hostname or "127.0.0.1"
                self._connection = kind(host, self._place.port, timeout=self._timeout_s)
            self._connection.request("POST", self._place.path.rstrip("/") + path, document, self._headers)
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise NotNow(f"the collector does not answer: {error}") from error
        if response.status < 300 or response.status in REFUSED:
            return response.status, answer
        wait_s = _seconds(response.getheader("Retry-After"))
        raise NotNow(f"the collector answered {response.status}", wait_s=wait_s)


def _rejected(answer: bytes) -> int:
    try:
        return int(json.loads(answer).get("rejected", 0))
    except (ValueError, AttributeError, TypeError):
        return 0


def _seconds(header: str | None) -> float:
    """Retry-After in seconds; dates and nonsense are 0, which leaves the waiting to our own back-off."""
    try:
        return min(MOST_WAIT_S, max(0.0, float(header or 0)))
    except ValueError:
        return 0.0
