"""Aside: events that this process itself makes, taken in by a thread of their own, so that nothing waits for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from queue import Full, Queue
from threading import Thread

from cowpath.event import Event

log = logging.getLogger("cowpath.collector")

ROOM = 10_000


class Aside:
    """Called with events, it returns at once; they are taken in soon. Where too many wait, or the intake fails, they
    are lost, counted (``lost``) and logged: they are our own notes, and no answer is worth less than one.
    """

    def __init__(self, take_in: Callable[[Sequence[Event]], object], *, room: int = ROOM) -> None:
        self.lost = 0
        self._take_in = take_in
        self._waiting: Queue[list[Event] | None] = Queue(room)
        self._thread = Thread(target=self._run, name="cowpath-aside", daemon=True)
        self._thread.start()

    def __call__(self, events: list[Event]) -> None:
        try:
            self._waiting.put_nowait(events)
        except Full:
            self._lose(events, "too many wait")

    def close(self) -> None:
        """Return when what waits is taken in."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (events := self._waiting.get()) is not None:
            try:
                self._take_in(events)
            # Overload, a full disk: whatever it is, the next ones get their try.
            except Exception as error:
                self._lose(events, str(error))

    def _lose(self, events: list[Event], why: str) -> None:
        self.lost += len(events)
        log.warning("%d events of our own are lost: %s", len(events), why)
