"""Rates: how often a key may ask, as one token bucket a key."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Limits:
    """A minute's worth may come at once, then one more as each falls due."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait_s(self, name: str, rate: int) -> int:
        """0 and one request is counted, or whole seconds until there may be one. ``rate`` 0 is without limit."""
        if rate <= 0:
            return 0
        now = self._clock()
        left, since = self._buckets.get(name, (float(rate), now))
        left = min(float(rate), left + (now - since) * rate / 60)
        granted = left >= 1
        self._buckets[name] = (left - 1 if granted else left, now)
        return 0 if granted else max(1, math.ceil((1 - left) * 60 / rate))
