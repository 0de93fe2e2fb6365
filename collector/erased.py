"""Tombstones: keyed hashes of everybody who was erased, so that they stay away and nobody can read who they were."""

from __future__ import annotations

import copy
import hmac
import json
import os
import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from collector.counted import Counted, Item
from collector.private import hashed_actor
from cowpath.event import Event, Rejected, utc_now
from cowpath.home import Home

Kind = Literal["actor", "session"]

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


class _Line(msgspec.Struct, omit_defaults=True):
    """One line of the file: a tombstone, or that everything before it is erased everywhere."""

    kind: str = ""
    subject: str = ""
    at: str = ""
    done: bool = False


class Erased:
    """The tombstones of a home. ``pending`` while an erasure was begun and is not complete."""

    def __init__(self, home: Home, secret: bytes) -> None:
        self._path = home.erased
        self._secret = secret
        self._subjects: set[str] = set()
        self.pending = False
        for line in _lines(home):
            self._note(line)

    def nobody(self) -> Erased:
        """As if nobody had been erased; for counting only."""
        other = copy.copy(self)
        other._subjects = set()
        return other

    def only(self, kind: Kind, value: str) -> Erased:
        """As if this were the only erased subject; for counting only."""
        other = self.nobody()
        other._subjects.add(self.subject(kind, value))
        return other

    def __bool__(self) -> bool:
        return bool(self._subjects)

    def bury(self, kind: Kind, values: Iterable[str]) -> None:
        """Remember these subjects; on disk when it returns. From then on nothing of them is taken in."""
        at = utc_now().isoformat(timespec="seconds")
        new = [value for value in values if not self.has(kind, value)]
        self._write([_Line(kind=kind, subject=self.subject(kind, value), at=at) for value in new])

    def complete(self) -> None:
        """Remember that all of it is gone from every place."""
        self._write([_Line(done=True)])

    def subject(self, kind: Kind, value: str) -> str:
        """What is kept of a subject: its hash under the installation's key. Actors are hashed a second time."""
        value = hashed_actor(value, self._secret) if kind == "actor" else value
        return hmac.digest(self._secret, f"{kind}:{value}".encode(), "sha256").hex()

    def has(self, kind: Kind, value: str | None) -> bool:
        return bool(value and self._subjects) and self.subject(kind, value or "") in self._subjects

    def of_event(self, event: Event | Counted) -> bool:
        """Whether an event, or a count, which knows no session, is of an erased subject."""
        return self.has("actor", event.actor) or (isinstance(event, Event) and self.has("session", event.session_id))

    def names(self, text: str) -> bool:
        """Whether a string in this JSON, or in what is left of it, is an erased session or actor."""
        return bool(self._subjects) and any(
            self.has("session", value) or self.has("actor", value) for value in map(_decoded, _STRING.findall(text))
        )

    def checked(self, item: Item) -> Item:
        """The item, or its refusal without a word of what it said."""
        if not self._subjects:
            return item
        if isinstance(item, Rejected):
            if not self.names(item.body) and not self.has("session", item.event_id):
                return item
            return msgspec.structs.replace(item, body="", event_id=None)
        if not self.of_event(item):
            return item
        message = "its session or actor was erased here and stays away"
        return Rejected(code="erased", message=message, source=item.source, stored_at=item.stored_at)

    def _write(self, lines: list[_Line]) -> None:
        if not lines:
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            # The line break first ends a line that a kill tore; empty lines are none.
            file.write(b"\n" + b"".join(b"%b\n" % msgspec.json.encode(line) for line in lines))
            file.flush()
            os.fsync(file.fileno())
        for line in lines:
            self._note(line)

    def _note(self, line: _Line) -> None:
        self.pending = not line.done
        if line.subject:
            self._subjects.add(line.subject)


def _lines(home: Home) -> list[_Line]:
    try:
        text = home.erased.read_bytes()
    except FileNotFoundError:
        return []
    lines = []
    for line in text.splitlines():
        try:
            lines.append(msgspec.json.decode(line, type=_Line))
        except msgspec.DecodeError:
            # The end of a line that a kill tore: its erasure was not begun.
            continue
    return lines


def _decoded(literal: str) -> str:
    try:
        return str(json.loads(literal))
    except ValueError:
        return ""
