"""Planted worlds: logs whose truth is known, with the traps that real logs hold.

A world has task templates (ordered steps, some made in parallel, satellites at any place), hubs that
stand everywhere, session starters and enders, actors with habits of their own that reverse a step or
add a meaningless pair, interleaved tasks, retries, noise, swaps, calls that followed advice, and a
drift of templates after 60 % of the time. ``truth`` is what a clean simulation with equal actors
says: ``precedes`` where one skill comes first in at least 70 % of the tasks that hold both,
``complements`` between 30 % and 70 %.

Two things come on top where they are asked for, and leave the calls as they are: ``unthreaded``
makes the log of a client that does not say which calls followed advice, only what was shown;
``with_outcomes`` lets sessions fail, more often where two skills that do not go together met.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby

import msgspec
import numpy as np
from numpy.random import Generator

from cowpath.event import Event

Pair = tuple[str, str]
START = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True)
class Template:
    """One kind of task: steps in order (a step of several skills is parallel) and loose satellites."""

    steps: tuple[tuple[str, ...], ...]
    satellites: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stubborn:
    """An actor with ways of its own: a step it always reverses, by task, and pairs of skills that mean nothing."""

    reversed_at: dict[int, int]
    routines: tuple[Pair, ...]


@dataclass(frozen=True)
class World:
    """What is planted. ``drifted`` replaces ``templates`` after ``drift_at`` of the time."""

    templates: tuple[Template, ...]
    drifted: tuple[Template, ...]
    hubs: tuple[str, ...]
    starters: tuple[str, ...]
    enders: tuple[str, ...]
    skills: tuple[str, ...]
    swap: float
    habits: dict[str, tuple[int, int]]
    private_pairs: dict[str, Pair]
    advice: tuple[Pair, ...]
    preference: dict[str, np.ndarray] = field(repr=False)
    volume: np.ndarray = field(repr=False)
    stubborn: dict[str, Stubborn] = field(default_factory=dict, repr=False)
    drift_at: float = 0.6


def plant(
    seed: int,
    *,
    skills: int = 300,
    templates: int = 64,
    actors: int = 24,
    drift: bool = True,
    advised: int = 12,
    stubborn: int = 0,
) -> World:
    """A world with everything in it. Advice, once there is any, follows ``advised`` of the skills.

    So many of the eight busiest actors are ``stubborn``; with any, swaps are up to 20 %.
    """
    rng = np.random.default_rng(seed)
    names = [f"skill-{i:03d}" for i in rng.permutation(skills)]
    hubs, starters, enders, pool = names[:6], names[6:8], names[8:10], names[10:]
    made = tuple(_template(rng, pool) for _ in range(templates))
    later = tuple(_drifted(rng, t, pool) if drift and rng.random() < 0.15 else t for t in made)
    who = [f"actor-{i:02d}" for i in range(actors)]
    habitual = [str(a) for a in rng.choice(who[: max(4, actors // 2)], size=min(4, actors), replace=False)]
    long_enough = [i for i, t in enumerate(made) if len(t.steps) > 2]
    volume = 1 / np.arange(1, actors + 1) ** 0.9
    return World(
        templates=made,
        drifted=later,
        hubs=tuple(hubs),
        starters=tuple(starters),
        enders=tuple(enders),
        skills=tuple(names),
        swap=_swap(seed, milder=float(rng.choice([0.03, 0.1])), any_stubborn=stubborn > 0),
        habits={a: (int(rng.choice(long_enough)), 0) for a in habitual},
        private_pairs={a: _two(rng, pool) for a in habitual},
        advice=(*(_two(rng, pool) for _ in range(12)), *_more_advice(seed, pool, advised - 12)),
        preference={a: rng.dirichlet(np.full(templates, 0.4)) for a in who},
        volume=volume / volume.sum(),
        stubborn=_stubborn(seed, who[:8], made, pool, stubborn),
    )


def _swap(seed: int, *, milder: float, any_stubborn: bool) -> float:
    return float(np.random.default_rng([seed, 15]).choice([0.03, 0.1, 0.2])) if any_stubborn else milder


def _stubborn(seed: int, who: list[str], made: Sequence[Template], pool: list[str], number: int) -> dict[str, Stubborn]:
    """Each reverses a step of two tasks in five, and has four routines."""
    rng = np.random.default_rng([seed, 14])
    long = [(index, len(task.steps)) for index, task in enumerate(made) if len(task.steps) > 2]
    return {
        str(actor): Stubborn(
            reversed_at={index: int(rng.integers(steps - 1)) for index, steps in long if rng.random() < 0.4},
            routines=tuple(_two(rng, pool) for _ in range(4)),
        )
        for actor in rng.choice(who, size=number, replace=False)
    }


def _more_advice(seed: int, pool: list[str], pairs: int) -> list[Pair]:
    """Drawn apart: a world differs from one with less advice in nothing else."""
    rng = np.random.default_rng([seed, 11])
    return [_two(rng, pool) for _ in range(pairs)]


def plant_nothing(seed: int, *, skills: int = 300, actors: int = 24) -> World:
    """The null world: hubs, habits of length and popularity, but no task at all."""
    world = plant(seed, skills=skills, actors=actors, drift=False)
    singles = tuple(Template(steps=((skill,),)) for skill in world.skills[10:])
    rng = np.random.default_rng(seed + 1)
    return World(
        templates=singles,
        drifted=singles,
        hubs=world.hubs,
        starters=(),
        enders=(),
        skills=world.skills,
        swap=0.0,
        habits={},
        private_pairs={},
        advice=(),
        preference={a: rng.dirichlet(np.full(len(singles), 0.4)) for a in world.preference},
        volume=world.volume,
    )


def live(world: World, *, sessions: int, seed: int, advice: bool = True) -> list[Event]:
    """Let the agents of a world work: the events of so many sessions, in order of time."""
    rng = np.random.default_rng(seed)
    who = list(world.preference)
    events: list[Event] = []
    for number in range(sessions):
        at = number / sessions
        actor = who[int(rng.choice(len(who), p=world.volume))]
        calls = _session(rng, world, actor, world.drifted if at >= world.drift_at else world.templates)
        if advice and at > 0.5:
            calls = _advised(rng, world, calls)
        began = START + timedelta(days=84 * at)
        events.extend(_events(number, actor, began, calls))
    return events


def unthreaded(world: World, events: Sequence[Event]) -> list[Event]:
    """The same log from a client that names no ``suggested_by``: all that is known is which skill was shown when."""
    advised = dict(world.advice)
    half = START + timedelta(days=42)
    log: list[Event] = []
    for event in events:
        assert event.called_at is not None
        log.append(msgspec.structs.replace(event, suggested_by=None))
        if event.skill in advised and event.called_at >= half and not event.suggested_by:
            shown_at = event.called_at + timedelta(seconds=1)
            log.append(
                Event(
                    event_id=f"{event.event_id}-shown",
                    session_id=event.session_id,
                    skill=advised[event.skill],
                    called_at=shown_at,
                    seq=event.seq,
                    kind="impression",
                    actor=event.actor,
                    source="planted",
                )
            )
    return log


@dataclass(frozen=True)
class Failures:
    """Why sessions of a world fail: each a shift of the log odds. ``conflicts`` do not go together."""

    conflicts: tuple[Pair, ...]
    skills: dict[str, float]
    actors: dict[str, float]
    tasks: tuple[tuple[frozenset[str], float], ...]
    base: float = -2.6
    clash: float = 1.8
    length: float = 0.4


def failures(world: World, seed: int) -> Failures:
    """Twelve pairs of skills that share no task (half of them with a hub), frail skills, actors and hard tasks."""
    rng = np.random.default_rng([seed, 12])
    uses: Counter[str] = Counter(s for t in world.templates for s in _skills(t))
    popular = [skill for skill, _ in sorted(uses.items(), key=lambda item: (-item[1], item[0]))[:30]]
    together = {frozenset((a, b)) for t in (*world.templates, *world.drifted) for a in _skills(t) for b in _skills(t)}
    apart = [(a, b) for a in popular for b in popular if a < b and frozenset((a, b)) not in together]
    chosen = [apart[i] for i in rng.choice(len(apart), size=6, replace=False)]
    hubbed = [(hub, str(rng.choice(popular))) for hub in world.hubs[:6]]
    return Failures(
        conflicts=tuple(sorted((min(p), max(p)) for p in chosen + hubbed)),
        skills={skill: float(rng.normal(0, 0.5)) for skill in world.skills},
        actors={actor: float(rng.normal(0, 0.5)) for actor in world.preference},
        tasks=tuple((frozenset(_skills(t)), float(rng.normal(0, 0.7))) for t in world.templates),
    )


def with_outcomes(events: Sequence[Event], why: Failures, seed: int) -> list[Event]:
    """Every call gets an outcome: ``ok``, or in a session that fails ``error`` at one call."""
    rng = np.random.default_rng([seed, 13])
    told: list[Event] = []
    for _, session in groupby(events, key=lambda event: event.session_id):
        calls = list(session)
        failed = rng.random() < 1 / (1 + np.exp(-_log_odds(calls, why)))
        at = int(rng.integers(len(calls))) if failed else -1
        told += [
            msgspec.structs.replace(call, outcome="error" if place == at else "ok") for place, call in enumerate(calls)
        ]
    return told


def _log_odds(calls: Sequence[Event], why: Failures) -> float:
    skills = {call.skill for call in calls}
    clashes = sum(a in skills and b in skills for a, b in why.conflicts)
    hard = sum(shift for task, shift in why.tasks if len(task & skills) * 2 > len(task))
    frail = sum(why.skills[skill] for skill in sorted(skills)) / 3
    actor = why.actors[str(calls[0].actor)]
    return float(why.base + why.clash * clashes + hard + frail + actor + why.length * (np.log(len(calls)) - 2))


def _skills(template: Template) -> list[str]:
    return [skill for step in template.steps for skill in step] + list(template.satellites)


@dataclass(frozen=True)
class Truth:
    """What a world really holds at its end. ``retired`` pairs were once true and are judged neither way.

    ``first`` is the share of tasks holding both in which the smaller id comes first.
    """

    precedes: set[Pair]
    complements: set[Pair]
    retired: set[Pair]
    first: dict[Pair, float]


def truth(world: World, *, samples: int = 400, seed: int = 0) -> Truth:
    """Who comes first in a clean simulation with equal actors; undirected pairs are smaller id first."""
    now = _shares(world.drifted, world.swap, samples, np.random.default_rng(seed))
    before = _shares(world.templates, world.swap, samples, np.random.default_rng(seed))
    precedes = {p for p, s in now.items() if s >= 0.7} | {(b, a) for (a, b), s in now.items() if s <= 0.3}
    return Truth(
        precedes=precedes,
        complements={p for p, s in now.items() if 0.3 < s < 0.7},
        retired={p for p in before if p not in now},
        first=now,
    )


def _shares(templates: tuple[Template, ...], swap: float, samples: int, rng: Generator) -> dict[Pair, float]:
    """Share of the walks holding both skills in which the smaller id comes first."""
    first: dict[Pair, float] = defaultdict(float)
    both: dict[Pair, float] = defaultdict(float)
    for template in templates:
        for _ in range(samples):
            order = [skill for turn in _walk(rng, template, swap=swap) for skill in turn]
            for i, a in enumerate(order):
                for b in order[i + 1 :]:
                    pair = (a, b) if a < b else (b, a)
                    both[pair] += 1
                    first[pair] += a < b
    return {pair: first[pair] / n for pair, n in both.items()}


@dataclass(frozen=True)
class Call:
    skill: str
    batch: int | None = None
    suggested: bool = False


def _template(rng: Generator, pool: list[str]) -> Template:
    weights = 1 / np.arange(1, len(pool) + 1) ** 0.6
    length = int(rng.integers(2, 7))
    loose = int(rng.integers(0, 3))
    chosen = [str(s) for s in rng.choice(pool, size=length + loose, replace=False, p=weights / weights.sum())]
    steps: list[tuple[str, ...]] = []
    ordered = chosen[:length]
    while ordered:
        wide = 2 if len(ordered) > 1 and len(steps) > 0 and rng.random() < 0.15 else 1
        steps.append(tuple(ordered[:wide]))
        ordered = ordered[wide:]
    return Template(steps=tuple(steps), satellites=tuple(chosen[length:]))


def _drifted(rng: Generator, template: Template, pool: list[str]) -> Template:
    if rng.random() < 0.5:
        return _template(rng, pool)
    return Template(steps=template.steps[::-1], satellites=template.satellites)


def _two(rng: Generator, pool: list[str]) -> Pair:
    a, b = rng.choice(pool, size=2, replace=False)
    return str(a), str(b)


def _walk(rng: Generator, template: Template, *, swap: float, reverse_at: int | None = None) -> list[tuple[str, ...]]:
    """One run through a template: turns of one or more parallel skills."""
    turns = [tuple(rng.permutation(step)) if len(step) > 1 else step for step in template.steps]
    if reverse_at is not None and reverse_at + 1 < len(turns):
        turns[reverse_at], turns[reverse_at + 1] = turns[reverse_at + 1], turns[reverse_at]
    for i in range(len(turns) - 1):
        if rng.random() < swap:
            turns[i], turns[i + 1] = turns[i + 1], turns[i]
    for satellite in template.satellites:
        if rng.random() < 0.6:
            turns.insert(int(rng.integers(0, len(turns) + 1)), (satellite,))
    return [tuple(str(s) for s in turn) for turn in turns]


def _session(rng: Generator, world: World, actor: str, templates: tuple[Template, ...]) -> list[Call]:
    kinds = rng.choice([1, 2, 3], p=[0.65, 0.30, 0.05])
    chosen = rng.choice(len(templates), size=kinds, p=world.preference[actor])
    walks = []
    own = world.stubborn.get(actor)
    for index in chosen:
        habit = world.habits.get(actor)
        reverse_at = habit[1] if habit and habit[0] == index else None
        if own is not None:
            reverse_at = own.reversed_at.get(int(index), reverse_at)
        walks.append(_walk(rng, templates[index], swap=world.swap, reverse_at=reverse_at))
    calls = _as_calls(rng, _interleave(rng, walks))
    calls = _with_noise(rng, world, calls)
    if actor in world.private_pairs and rng.random() < 0.25:
        calls += [Call(skill) for skill in world.private_pairs[actor]]
    if own is not None and rng.random() < 0.4:
        calls += [Call(skill) for skill in own.routines[int(rng.integers(len(own.routines)))]]
    if world.starters and rng.random() < 0.5:
        calls.insert(0, Call(world.starters[int(rng.integers(len(world.starters)))]))
    if world.enders and rng.random() < 0.5:
        calls.append(Call(world.enders[int(rng.integers(len(world.enders)))]))
    return calls


def _interleave(rng: Generator, walks: list[list[tuple[str, ...]]]) -> list[tuple[str, ...]]:
    left = [list(walk) for walk in walks]
    merged: list[tuple[str, ...]] = []
    while any(left):
        sizes = np.array([len(walk) for walk in left], dtype=float)
        merged.append(left[int(rng.choice(len(left), p=sizes / sizes.sum()))].pop(0))
    return merged


def _as_calls(rng: Generator, turns: list[tuple[str, ...]]) -> list[Call]:
    calls: list[Call] = []
    for number, turn in enumerate(turns):
        batch = number if len(turn) > 1 else None
        made = [Call(skill, batch=batch) for skill in turn]
        calls += made * (2 if batch is None and rng.random() < 0.05 else 1)
    return calls


def _with_noise(rng: Generator, world: World, calls: list[Call]) -> list[Call]:
    noisy: list[Call] = []
    for call in calls:
        if rng.random() < 0.08:
            noisy.append(Call(world.skills[int(rng.integers(len(world.skills)))]))
        if rng.random() < 0.25:
            noisy.append(Call(world.hubs[int(rng.integers(len(world.hubs)))]))
        noisy.append(call)
    return noisy


def _advised(rng: Generator, world: World, calls: list[Call]) -> list[Call]:
    follow = dict(world.advice)
    advised: list[Call] = []
    for call in calls:
        advised.append(call)
        if call.skill in follow and rng.random() < 0.8:
            advised.append(Call(follow[call.skill], suggested=True))
    return advised


def _events(number: int, actor: str, began: datetime, calls: list[Call]) -> list[Event]:
    return [
        Event(
            event_id=f"w{number:06d}-{seq:03d}",
            session_id=f"w{number:06d}",
            skill=call.skill,
            seq=seq,
            called_at=began + timedelta(seconds=20 * seq),
            actor=actor,
            batch_id=None if call.batch is None else f"w{number:06d}-{call.batch}",
            suggested_by="cowpath" if call.suggested else None,
            source="planted",
        )
        for seq, call in enumerate(calls)
    ]
