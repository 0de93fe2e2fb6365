"""The promise everything else rests on: what was acknowledged is there after any kill, exactly once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from collector.service import Collector
from cowpath.home import Home
from cowpath.settings import Settings

KILLS = 4
SENDERS = 4


def test_b1_report_23_every_acknowledged_event_is_there_exactly_once_after_several_kills(
    start_server: Callable[..., Any], home: Home, settings: Settings, kept_ids: Callable[[Path], list[str]]
) -> None:
    acknowledged: set[str] = set()
    chance = random.Random(0)
    for life in range(KILLS):
        server = start_server(COWPATH_SEGMENT_BYTES="200000", COWPATH_DRAIN_BATCH_EVENTS="500")
        senders = [
            threading.Thread(target=send_until_it_dies, args=(server.url, f"{life}-{n}", acknowledged))
            for n in range(SENDERS)
        ]
        for sender in senders:
            sender.start()
        time.sleep(chance.uniform(0.1, 1.0))
        server.kill()
        for sender in senders:
            sender.join()

    with Collector(settings) as collector:
        collector.flush()

    kept = kept_ids(home.live)
    assert len(kept) == len(set(kept))
    assert acknowledged <= set(kept)
    assert len(acknowledged) > KILLS * SENDERS * 20


def send_until_it_dies(url: str, name: str, acknowledged: set[str]) -> None:
    """Send batches, each one twice and the one before again; note an id only when a receipt named it stored."""
    number, before = 0, list[dict[str, Any]]()
    with httpx.Client(base_url=url, timeout=30) as client:
        while True:
            batch: list[dict[str, Any]] = [
                {
                    "event_id": f"{name}-{number}-{n}",
                    "session_id": name,
                    "skill_id": f"skill-{n % 7}",
                    "seq": number * 20 + n,
                    "ts": 1796072400 + number if n % 5 else None,
                }
                for n in range(20)
            ]
            try:
                for body in (batch, batch, before):
                    client.post("/v1/events", json=body).raise_for_status()
            except httpx.HTTPError:
                return
            acknowledged.update(event["event_id"] for event in batch)
            number, before = number + 1, batch
