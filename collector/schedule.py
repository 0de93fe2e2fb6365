"""Work that recurs: one thread, one piece of work at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger("cowpath.collector")

SHARE = 10
"""Rest at least so many times as long as the work took: it must never be most of what the machine does."""


class Every:
    """Does ``work`` about every ``seconds`` until stopped. A failure is logged and the schedule goes on."""

    def __init__(self, seconds: float, work: Callable[[], object], *, name: str) -> None:
        self._seconds = seconds
        self._work = work
        self._name = name
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"cowpath-{name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Return when the work of the moment is done; nothing more is begun."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        rest_s = self._seconds
        while not self._stopped.wait(rest_s):
            began = time.monotonic()
            try:
                self._work()
            # A schedule outlives what goes wrong once; the status document shows the failure.
            except Exception:
                log.exception("%s failed; the next try comes in its turn", self._name)
            rest_s = max(self._seconds, SHARE * (time.monotonic() - began))
