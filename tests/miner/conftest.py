"""What the miner's tests share: small logs written as tables, published for real, and mined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collector.doors import open_door
from cowpath.event import Event
from cowpath.settings import Settings
from miner.parameters import Parameters
from miner.stages import STAGES, Mining, opened

UNTIL_EDGES = STAGES[:6]
"""The stages that decide edges and bundles; the next-skill model has tests of its own."""

Publish = Callable[..., Settings]
Mine = Callable[..., Mining]


@pytest.fixture
def publish(tmp_path: Path) -> Publish:
    """Send events through a real collector into a new home, publish, and give its settings."""

    def send(events: Sequence[Event], *, name: str = "home") -> Settings:
        settings = Settings(home=str(tmp_path / name))
        with open_door(settings) as door:
            for start in range(0, len(events), 5_000):
                door.send(list(events[start : start + 5_000]))
            door.publish()
        return settings

    return send


@pytest.fixture
def mined(publish: Publish) -> Iterator[Mine]:
    """Publish events and run the stages up to the edges; the run's store stays open for questions."""
    with ExitStack() as stack:

        def run(events: Sequence[Event], *, parameters: Parameters | None = None, name: str = "home") -> Mining:
            settings = publish(events, name=name)
            mining = stack.enter_context(opened(settings, parameters))
            for stage in UNTIL_EDGES:
                mining = stage(mining)
            return mining

        yield run


@pytest.fixture
def table() -> Callable[[str], list[Event]]:
    """Events from a table: first row the field names, then one event a row; ``-`` is nothing."""
    return _table


@pytest.fixture
def sessions() -> Callable[..., list[Event]]:
    """One session per order ("plan build test"), dealt to the actors and days in turn."""
    return _sessions


def _table(text: str) -> list[Event]:
    header, *rows = [line.split() for line in text.strip().splitlines()]
    return [_event(number, dict(zip(header, row, strict=True))) for number, row in enumerate(rows)]


def _event(number: int, cells: dict[str, str]) -> Event:
    def cell(name: str) -> str | None:
        return None if cells.get(name, "-") == "-" else cells[name]

    seq, called_at = cell("seq"), cell("at")
    return Event(
        event_id=cells.get("id", f"e{number:04d}"),
        session_id=cells["session"],
        stream_id=cell("stream") or "",
        skill=cells["skill"],
        seq=None if seq is None else int(seq),
        called_at=None if called_at is None else datetime.fromisoformat(called_at).replace(tzinfo=UTC),
        batch_id=cell("batch"),
        actor=cell("actor"),
        suggested_by=cell("suggested_by"),
        outcome="denied" if cell("outcome") == "denied" else "ok",
    )


def _sessions(
    orders: Sequence[str], *, actors: Sequence[str | None] = ("ann", "bob", "cid"), days: int = 1
) -> list[Event]:
    return [
        Event(
            event_id=f"s{number:04d}-{seq}",
            session_id=f"s{number:04d}",
            skill=skill,
            seq=seq,
            called_at=datetime(2026, 3, 1, 9, tzinfo=UTC) + timedelta(days=number % days),
            actor=actors[number % len(actors)],
        )
        for number, order in enumerate(orders)
        for seq, skill in enumerate(order.split())
    ]
