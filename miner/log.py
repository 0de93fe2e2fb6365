"""A log as the next-skill model reads it: sessions as numbers, in an order that owes nothing to names or arrival."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

ROUNDS = 3
"""Rounds of colour refinement. Skills that still look alike have equal surroundings three steps far."""


@dataclass(frozen=True)
class Log:
    """Sessions without direct repeats. ``groups[i]`` numbers the group that session i belongs to.

    ``skills`` are ordered by use, most used first, then by their surroundings, last by name; sessions by
    their skills' numbers. So a permuted log is the same log, and a renamed one differs in ``skills`` only.
    """

    skills: tuple[str, ...]
    sessions: tuple[tuple[int, ...], ...]
    groups: tuple[int, ...]

    @cached_property
    def number(self) -> dict[str, int]:
        return {skill: i for i, skill in enumerate(self.skills)}

    @cached_property
    def flat(self) -> Ints:
        """All calls, session after session."""
        return np.array([skill for session in self.sessions for skill in session], dtype=np.int64)

    @cached_property
    def place(self) -> Ints:
        """The place of each call of ``flat`` in its session, from 0."""
        return np.array([i for session in self.sessions for i in range(len(session))], dtype=np.int64)

    @cached_property
    def left(self) -> Ints:
        """How many calls of its session follow each call of ``flat``."""
        return np.array([i for s in self.sessions for i in range(len(s) - 1, -1, -1)], dtype=np.int64)

    def names(self, session: int) -> tuple[str, ...]:
        return tuple(self.skills[skill] for skill in self.sessions[session])

    def where(self, kept: frozenset[int]) -> Log:
        """The log of those sessions whose group is kept, with a vocabulary of its own."""
        chosen = [i for i, group in enumerate(self.groups) if group in kept]
        return read_log([self.names(i) for i in chosen], [self.groups[i] for i in chosen])


def read_log(sequences: Sequence[Sequence[str]], groups: Sequence[Hashable] | None = None) -> Log:
    """The log of ``sequences``; without ``groups`` each session is its own."""
    collapsed = [collapse(sequence) for sequence in sequences]
    owners: Sequence[Hashable] = range(len(collapsed)) if groups is None else groups
    pairs = [(session, owner) for session, owner in zip(collapsed, owners, strict=True) if session]
    skills = _ordered_skills([session for session, _ in pairs])
    number = {skill: i for i, skill in enumerate(skills)}
    numbered = [(tuple(number[skill] for skill in session), owner) for session, owner in pairs]
    order = _ordered_groups(numbered)
    rows = sorted((session, order[owner]) for session, owner in numbered)
    return Log(skills, tuple(session for session, _ in rows), tuple(group for _, group in rows))


def collapse(sequence: Sequence[str]) -> tuple[str, ...]:
    """The sequence with direct repeats of a skill folded into one call."""
    return tuple(skill for skill, _ in groupby(sequence))


def _ordered_groups(numbered: Sequence[tuple[tuple[int, ...], Hashable]]) -> dict[Hashable, int]:
    """Groups numbered in the order of their sessions, so that the names of groups do not matter."""
    members: dict[Hashable, list[tuple[int, ...]]] = {}
    for session, owner in numbered:
        members.setdefault(owner, []).append(session)
    ranked = sorted(members, key=lambda owner: sorted(members[owner]))
    return {owner: i for i, owner in enumerate(ranked)}


def _ordered_skills(sessions: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    names = sorted({skill for session in sessions for skill in session})
    number = {skill: i for i, skill in enumerate(names)}
    flat = np.array([number[skill] for session in sessions for skill in session], dtype=np.int64)
    place = np.array([i for session in sessions for i in range(len(session))], dtype=np.int64)
    calls = np.bincount(flat, minlength=len(names))
    colours = _surroundings(flat, place, calls.astype(np.uint64))
    order = sorted(range(len(names)), key=lambda i: (-calls[i], colours[i], names[i]))
    return tuple(names[i] for i in order)


def _surroundings(flat: Ints, place: Ints, colours: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A number for each skill from where it stands and beside what: equal surroundings, equal number.

    Colour refinement (Weisfeiler and Lehman 1968); sums over the calls, so their order does not matter.
    """
    for _ in range(ROUNDS):
        own = colours[flat]
        before, after = np.zeros_like(own), np.zeros_like(own)
        before[1:] = np.where(place[1:] > 0, own[:-1], 0)
        after[:-1] = np.where(place[1:] > 0, own[1:], 0)
        mixed = _mix(_mix(_mix(own + _mix(place.astype(np.uint64))) + before) + np.uint64(2) * after)
        fresh = np.zeros_like(colours)
        np.add.at(fresh, flat, mixed)
        colours = fresh
    return colours


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatter 64 bits (the finaliser of SplitMix64, Steele, Lea and Flood 2014)."""
    x = (x + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
