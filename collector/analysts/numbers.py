"""Numbers that are counted while the collector works: how long syncs took, which requests were answered how."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable

BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds of the buckets in seconds: from a cheap virtual flush to a disk in distress."""


class Durations:
    """A histogram of seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.sum_s = 0.0
        self._lock = threading.Lock()

    def observe(self, seconds: float) -> None:
        with self._lock:
            self.counts[bisect_left(BOUNDS, seconds)] += 1
            self.sum_s += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulated counts by upper bound, as Prometheus wants them."""
        with self._lock:
            counts = list(self.counts)
        names = [*map(str, BOUNDS), "+Inf"]
        return [(name, float(sum(counts[: i + 1]))) for i, name in enumerate(names)]

    def timing(self, sync: Callable[[int], None]) -> Callable[[int], None]:
        """``sync`` that is timed."""

        def timed(file: int) -> None:
            began = time.monotonic()
            try:
                sync(file)
            finally:
                self.observe(time.monotonic() - began)

        return timed


Answers = Counter[tuple[str, str, int]]
"""Method, route and status of answered requests -> how many."""
