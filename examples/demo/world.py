"""The demo's world: a seeded log of a dozen people's agents, and the truth that was planted in it.

``python -m examples.demo.world --write`` writes ``events.jsonl.gz``, the log that the demo posts.
Nothing here reads the clock or the machine: equal seeds give equal lines.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations, groupby, product
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SKILLS = HERE / "skills"
EVENTS = HERE / "events.jsonl.gz"

SEED = 20
SESSIONS = 1_500
DAYS = 70
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
ADVICE_FROM = 2 / 3
"""Share of the log after which agents follow our own advice for the pair ``ADVISED``."""

ACTORS = ("dana", "eli", "farah", "goran", "hana", "ivo", "jun", "kemi", "lars", "mei", "noor", "otto")
"""From the busiest to the quietest: volumes fall like 1/rank."""

Task = tuple[tuple[str, ...], ...]
"""Steps in order; the skills of one step come in any order, in PARALLEL steps as one batch."""

TASKS: dict[str, Task] = {
    "repair": (("reproduce-fault",), ("bisect-history",), ("write-failing-test",), ("draft-changelog",)),
    "schema": (("profile-table",), ("migrate-schema",), ("backfill-rows",), ("refresh-dashboards",)),
    "outage": (("triage-alert",), ("query-logs", "query-metrics"), ("roll-back-release",), ("write-postmortem",)),
    "forecast": (("pull-extract",), ("clean-columns",), ("fit-forecast",), ("build-slide-deck",)),
    "refund": (("sort-inbox",), ("look-up-customer",), ("issue-refund",), ("draft-reply",)),
    "review": (
        ("search-literature",),
        ("read-paper",),
        ("tabulate-findings",),
        ("check-citations",),
        ("export-bibliography",),
    ),
    "scan": (("convert-scan",), ("extract-tables",), ("fill-spreadsheet",)),
    "release": (("bump-version",), ("sign-artifacts",), ("publish-package",), ("announce-release",)),
    "advisories": (("scan-dependencies",), ("rank-vulnerabilities",), ("pin-upgrade",)),
    "page": (("sketch-wireframe",), ("build-component",), ("check-contrast", "take-screenshots")),
    "newcomer": (("provision-account",), ("schedule-intro-call",)),
    "contract": (("redline-contract",), ("compare-clauses",), ("request-signature",)),
    "costs": (("collect-billing",), ("find-idle-machines",), ("resize-cluster",)),
    "language": (("harvest-strings",), ("translate-copy",), ("proof-layout",)),
    "meeting": (("transcribe-recording",), ("pull-action-items",), ("file-tickets",)),
    "plan": (("estimate-effort", "list-risks"),),
}

PARALLEL = ("query-logs", "query-metrics")
"""Always called in one batch: used together, without an order."""

HUB = "read-project-notes"
STARTERS = ("clarify-request", "load-workspace")
ENDERS = ("summarise-outcome", "hand-over")

TWINS = {
    "draft-reply": "compose-email",
    "write-failing-test": "generate-unit-tests",
    "build-slide-deck": "make-presentation",
    "translate-copy": "localise-text",
}
"""Skills that read alike and are never used together: embedding neighbours without a path."""

HABIT_ACTOR, HABIT = "eli", ("issue-refund", "draft-reply")
"""One actor writes to the customer first and pays afterwards: the planted order, reversed."""

PRIVATE_ACTOR, PRIVATE = "farah", ("compose-email", "rename-files")
"""One actor's routine with no meaning for anyone else."""

ADVISED = ("publish-package", "refresh-dashboards")
"""Never used together on anybody's own accord; followed because we suggested it."""

LONERS = (*TWINS.values(), "rename-files")
"""Skills outside every task; they appear as noise, one at a time."""


@dataclass(frozen=True)
class Truth:
    """What a miner should find, and what it should refuse."""

    precedes: frozenset[tuple[str, str]]
    complements: frozenset[tuple[str, str]]
    traps: dict[str, tuple[str, str]]


@dataclass
class Call:
    """One call before it has a time."""

    skill: str
    stream: str = ""
    batch: str | None = None
    advised: bool = False
    outcome: str = "ok"


@dataclass
class Actor:
    """A person's agent: how much it works and on what."""

    name: str
    volume: float
    taste: list[float] = field(default_factory=list)


def truth() -> Truth:
    """The planted pairs: every order inside a task, also over several steps, and every orderless pair."""
    precedes: set[tuple[str, str]] = set()
    complements: set[tuple[str, str]] = set()
    for task in TASKS.values():
        for earlier, later in combinations(task, 2):
            precedes.update(product(earlier, later))
        for step in task:
            complements.update((min(pair), max(pair)) for pair in combinations(step, 2))
    traps = {
        "hub": (HUB, "write-postmortem"),
        "one actor's routine": PRIVATE,
        "one actor's reversed order": (HABIT[1], HABIT[0]),
        "our own advice": ADVISED,
        "parallel calls": PARALLEL,
        "twins that only read alike": ("build-slide-deck", "make-presentation"),
    }
    return Truth(frozenset(precedes), frozenset(complements), traps)


def generate(seed: int = SEED, sessions: int = SESSIONS) -> Iterator[dict[str, Any]]:
    """The log in the order of its sessions, each event as ``POST /v1/events`` takes it."""
    rng = random.Random(seed)
    actors = _actors(rng)
    for number, begin in enumerate(_begins(rng, sessions)):
        actor = rng.choices(actors, [a.volume for a in actors])[0]
        calls = _session(rng, actor, late=number >= sessions * ADVICE_FROM)
        yield from _timed(rng, calls, f"demo-{number:04d}", actor.name, begin)


def _actors(rng: random.Random) -> list[Actor]:
    actors = [Actor(name, 1 / rank) for rank, name in enumerate(ACTORS, start=1)]
    for actor in actors:
        actor.taste = [rng.gammavariate(0.8, 1) + 0.15 for _ in TASKS]
        actor.taste[list(TASKS).index("refund")] += 0.6
    return actors


def _begins(rng: random.Random, sessions: int) -> list[datetime]:
    """Starts on working days between eight and six, in order."""
    workdays = [d for d in range(DAYS) if (BEGIN + timedelta(days=d)).weekday() < 5]
    return sorted(
        BEGIN + timedelta(days=rng.choice(workdays), seconds=rng.randrange(8 * 3600, 18 * 3600))
        for _ in range(sessions)
    )


def _session(rng: random.Random, actor: Actor, *, late: bool) -> list[Call]:
    names = _choose_tasks(rng, actor)
    runs = [_walk(rng, name, actor) for name in names]
    if len(runs) > 1 and rng.random() < 0.15:
        runs[-1] = [Call(c.skill, "helper", c.batch) for c in runs[-1]]
    calls = _interleave(rng, runs)
    calls = _add_noise(rng, calls, names)
    if actor.name == PRIVATE_ACTOR and rng.random() < 0.15 and not _clashes(PRIVATE[0], calls):
        calls += [Call(skill) for skill in PRIVATE]
    if rng.random() < 0.6:
        calls.insert(rng.randrange(len(calls) + 1), Call(HUB))
    if rng.random() < 0.3:
        calls.insert(0, Call(rng.choice(STARTERS)))
    if rng.random() < 0.3:
        calls.append(Call(rng.choice(ENDERS)))
    calls = _add_failures(rng, _keep_batches_together(calls))
    return _follow_advice(rng, calls) if late else calls


def _choose_tasks(rng: random.Random, actor: Actor) -> list[str]:
    """One to three tasks. Those of the advised pair never meet, so its own co-use stays zero."""
    apart = {"release", "schema"}
    names: list[str] = []
    for _ in range(rng.choices((1, 2, 3), (65, 28, 7))[0]):
        name = rng.choices(list(TASKS), actor.taste)[0]
        if name not in names and not (name in apart and apart & set(names)):
            names.append(name)
    return names


def _walk(rng: random.Random, name: str, actor: Actor) -> list[Call]:
    """One run of a task: steps are left out now and then, and two neighbours swapped."""
    calls: list[Call] = []
    for step in TASKS[name]:
        skills = rng.sample(step, len(step))
        batch = f"{name}-{rng.randrange(10**6)}" if set(step) == set(PARALLEL) else None
        if batch or rng.random() > 0.06:
            calls += [Call(skill, batch=batch) for skill in skills]
    if len(calls) > 2 and rng.random() < 0.05:
        at = rng.randrange(len(calls) - 1)
        if not calls[at].batch and not calls[at + 1].batch:
            calls[at], calls[at + 1] = calls[at + 1], calls[at]
    if actor.name == HABIT_ACTOR and [c.skill for c in calls[-2:]] == list(HABIT):
        calls[-2:] = reversed(calls[-2:])
    return calls


def _interleave(rng: random.Random, runs: list[list[Call]]) -> list[Call]:
    """Mix runs without changing the order inside any of them."""
    turns = [i for i, run in enumerate(runs) for _ in run]
    rng.shuffle(turns)
    left = [iter(run) for run in runs]
    return [next(left[i]) for i in turns]


def _add_noise(rng: random.Random, calls: list[Call], names: list[str]) -> list[Call]:
    """Skills of nobody's task, at any place."""
    strangers = [s for name, task in TASKS.items() if name not in names for step in task for s in step]
    strangers = [s for s in (*strangers, *LONERS * 3) if s not in ADVISED and s not in PARALLEL]
    noisy = list(calls)
    while rng.random() < 0.3:
        skill = rng.choice(strangers)
        if not _clashes(skill, noisy):
            noisy.insert(rng.randrange(len(noisy) + 1), Call(skill))
    return noisy


def _clashes(skill: str, calls: list[Call]) -> bool:
    """Whether it was called already, or a skill that must not meet it: its twin, its half of the private pair."""
    apart = {s for pair in (*TWINS.items(), PRIVATE) if skill in pair for s in pair} | {skill}
    return any(call.skill in apart for call in calls)


def _keep_batches_together(calls: list[Call]) -> list[Call]:
    """Move the members of a batch to its first one: one message made them all."""
    first: dict[str | int, int] = {}
    for at, call in enumerate(calls):
        first.setdefault(call.batch or at, at)
    return [call for _, call in sorted(enumerate(calls), key=lambda pair: (first[pair[1].batch or pair[0]], pair[0]))]


def _add_failures(rng: random.Random, calls: list[Call]) -> list[Call]:
    """Some calls fail and are tried again; a few are never known to have ended."""
    tried: list[Call] = []
    for call in calls:
        if not call.batch and rng.random() < 0.05:
            tried.append(Call(call.skill, call.stream, outcome="error"))
        call.outcome = rng.choices(("ok", "unknown", "abandoned"), (93, 5, 2))[0]
        tried.append(call)
    return tried


def _follow_advice(rng: random.Random, calls: list[Call]) -> list[Call]:
    followed: list[Call] = []
    for call in calls:
        followed.append(call)
        if call.skill == ADVISED[0] and call.outcome != "error" and rng.random() < 0.85:
            followed.append(Call(ADVISED[1], call.stream, advised=True))
    return followed


def _timed(
    rng: random.Random, calls: list[Call], session: str, actor: str, begin: datetime
) -> Iterator[dict[str, Any]]:
    """Give the calls ids, times and their number inside the stream."""
    seqs: dict[str, int] = {}
    now, number = begin, 0
    for _, group in groupby(enumerate(calls), key=lambda pair: pair[1].batch or pair[0]):
        now += timedelta(seconds=rng.randrange(20, 400))
        for _, call in group:
            seq = seqs[call.stream] = seqs.get(call.stream, -1) + 1
            event: dict[str, Any] = {
                "event_id": f"{session}-{number:02d}",
                "session_id": session,
                "stream_id": call.stream,
                "seq": seq,
                "skill": call.skill,
                "called_at": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "actor": actor,
                "agent": "demo",
                "trigger": "agent",
                "outcome": call.outcome,
                "batch_id": f"{session}-{call.batch}" if call.batch else None,
                "suggested_by": "cowpath" if call.advised else None,
            }
            number += 1
            yield {name: value for name, value in event.items() if value not in (None, "")}


def to_lines(events: Iterator[dict[str, Any]]) -> bytes:
    """One JSON object a line."""
    return b"".join(json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in events)


def read_log() -> list[bytes]:
    """The shipped log, one encoded event each."""
    return gzip.decompress(EVENTS.read_bytes()).splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {EVENTS.name}; else print the log")
    lines = to_lines(generate())
    if parser.parse_args().write:
        EVENTS.write_bytes(gzip.compress(lines, mtime=0))
        print(f"{EVENTS.name}: {len(lines.splitlines()):,} events, {EVENTS.stat().st_size // 1024} KiB")
    else:
        print(lines.decode(), end="")


if __name__ == "__main__":
    main()
