"""Codex's counter of injected skills: it names no session and no order, so it tells of popularity only."""

from __future__ import annotations

from collector.counted import Counted
from collector.hooks.codex import AGENT
from collector.hooks.payload import Known, text
from collector.otlp.signals import Point, moment_of_ns
from cowpath.event import OUTCOME_ALIASES, Outcome, Trigger, derived_id

SOURCE = "codex-otel"
METRIC = "codex.skill.injected"

TRIGGERS: dict[str, Trigger] = {"explicit": "user", "implicit": "agent"}
OUTCOMES: dict[str, Outcome] = {"ok": "ok", "error": "error", **OUTCOME_ALIASES}

MOST = 2**53
"""A larger number counts nothing that happened."""


def read(point: Point, known: Known) -> list[Counted]:
    """The count in a data point, where it is one."""
    if point.metric != METRIC or not 0 < point.value < MOST:
        return []
    series = derived_id(
        SOURCE,
        *(f"{name}={value}" for held in (point.resource, point.attributes) for name, value in sorted(held.items())),
    )
    return [
        Counted(
            count_id=derived_id(series, point.start_ns, point.time_ns, point.value),
            series=series,
            skill=text(point.attributes, "skill"),
            n=round(point.value),
            cumulative=point.cumulative,
            began_at=moment_of_ns(point.start_ns),
            counted_at=moment_of_ns(point.time_ns),
            trigger=TRIGGERS.get(text(point.attributes, "invoke_type"), "unknown"),
            outcome=OUTCOMES.get(text(point.attributes, "status"), "unknown"),
            actor=known.actor or text(point.facts, "user.id") or None,
            agent=AGENT,
            agent_version=point.version,
            source=SOURCE,
        )
    ]
