"""The receipt: what a sender is told once its events are on disk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from threading import Lock

import msgspec

from collector.counted import Item
from cowpath.event import Rejected

MAX_ERRORS = 1_000
"""More refused items than this are counted but not listed; all of them are dead letters."""


class ItemError(msgspec.Struct, frozen=True, kw_only=True):
    """One refused item, by its place in the request."""

    index: int
    event_id: str | None
    code: str
    field: str | None
    message: str
    retryable: bool


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """Everything counted here is on disk. ``duplicates`` is best effort: see RecentIds."""

    accepted: int = 0
    duplicates: int = 0
    rejected: int = 0
    errors: tuple[ItemError, ...] = ()
    generated_ids: int = 0


def errors_of(items: Sequence[Item]) -> tuple[ItemError, ...]:
    """The refused items among these, in order."""
    refused = ((place, item) for place, item in enumerate(items) if isinstance(item, Rejected))
    return tuple(_error(place, item) for place, item in islice(refused, MAX_ERRORS))


def _error(place: int, item: Rejected) -> ItemError:
    return ItemError(
        index=place if item.index is None else item.index,
        event_id=item.event_id,
        code=item.code,
        field=item.field,
        message=item.message,
        retryable=item.retryable,
    )


class RecentIds:
    """The last so many event ids, at least half the limit: a receipt names repeats without asking the store.

    Best effort: a repeat of something older is acknowledged as accepted. It does no harm, because
    the drain, which decides what is kept, looks at everything.
    """

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._older: set[str] = set()
        self._newer: set[str] = set()
        self._lock = Lock()

    def add(self, event_ids: Sequence[str]) -> int:
        """Remember these ids; how many of them were known before or came twice."""
        with self._lock:
            new = set(event_ids) - self._newer - self._older
            self._newer |= new
            if len(self._newer) >= self._half:
                self._older, self._newer = self._newer, set()
            return len(event_ids) - len(new)
