"""The tail of the journal, still in memory: a drain that keeps up reads nothing back from the disk."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from collector.segments import Batch, Lines, Position

TAIL_BYTES = 8 * 2**20
"""Longer than what arrives while the drain waits and commits; a drain that lags further reads the segments."""


class _Piece(NamedTuple):
    """One write: where the journal ended before it, where it begins, what it says."""

    after: Position
    start: Position
    lines: Lines


class Tail:
    """The last writes, at most ``max_bytes`` of them. Whoever shares it brings the lock."""

    def __init__(self, max_bytes: int = TAIL_BYTES) -> None:
        self._pieces: deque[_Piece] = deque()
        self._bytes = 0
        self._max_bytes = max_bytes

    def add(self, after: Position, start: Position, lines: Lines) -> None:
        """Remember what is on disk now; the oldest goes where there is no room."""
        self._pieces.append(_Piece(after, start, lines))
        self._bytes += len(lines.data)
        while self._bytes > self._max_bytes:
            self._drop()

    def take(self, position: Position, *, limit: int) -> Batch | None:
        """What follows ``position``, whole writes until ``limit`` is reached; None where only the disk has it."""
        while self._pieces and self._pieces[0].after < position:
            self._drop()
        batch = Batch(end=position)
        while self._pieces and self._pieces[0].after == batch.end and len(batch) < limit:
            _add(self._drop(), batch)
        return batch if batch.end > position else None

    def _drop(self) -> _Piece:
        piece = self._pieces.popleft()
        self._bytes -= len(piece.lines.data)
        return piece


def _add(piece: _Piece, batch: Batch) -> None:
    segment, offset = piece.start
    for item, length in zip(piece.lines.items, piece.lines.lengths, strict=True):
        batch.add(segment << 32 | offset, item)
        offset += length
    batch.end = Position(segment, piece.start.offset + len(piece.lines.data))
