"""What was read and told of no call: agents report all they do at one door, and most of it is nothing of ours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from threading import Lock

MOST_NAMES = 64
"""Different names under one door; what comes after them is counted together, so that no sender fills the memory."""

OTHER = "other"
UNNAMED = "unnamed"

_NAME = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)


class Ignored:
    """Counts of ignored payloads since the start, by the door they came through and the event they named."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = Lock()

    def add(self, door: str, events: Iterable[str]) -> None:
        """Count one for each event name; ``""`` where a payload names none."""
        with self._lock:
            for event in events:
                self._counts[door, self._label(door, event)] += 1

    def counts(self) -> dict[tuple[str, str], int]:
        """(door, event) -> how many, in order."""
        with self._lock:
            return dict(sorted(self._counts.items()))

    def by_door(self) -> dict[str, int]:
        """Door -> how many."""
        doors: Counter[str] = Counter()
        for (door, _), n in self.counts().items():
            doors[door] += n
        return dict(doors)

    def _label(self, door: str, event: str) -> str:
        if not event:
            return UNNAMED
        known = (door, event) in self._counts or sum(d == door for d, _ in self._counts) < MOST_NAMES
        return event if known and _NAME.fullmatch(event) else OTHER
