"""Sufficient statistics: what a log says about every pair of skills, kept as sums so that a run reads only what is new.

Everything counted is a sum over sequences. A run recounts the sessions of which something arrived or was completed:
it adds what they say now and takes back what they said before, as one more segment. What the sums depend on beside
the log (who is a witness, thresholds of reading, the catalogue's names) is their identity: where that changes, or
the log lost events, everything is counted anew. The result is the same, to the byte.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from cowpath.errors import HomeBusy, InputError
from cowpath.store import Store, sql_names
from miner.parameters import Parameters

log = logging.getLogger("cowpath.miner")

FORMAT = 2
"""Rises when what is kept changes its meaning."""

MOST_SEGMENTS = 8
MEMORY = Path(":memory:")
NOTHING = -(2**62)
"""A watermark before everything."""

LOOKS = ("statistics/00_tables", "statistics/10_changed", "statistics/20_sessions", "statistics/25_profile")
"""What is run before it is known whether, and how, anything is counted."""

TABLES = (
    "mark", "skills", "witnesses", "sessions", "sequences", "steps", "circumstances",
    "cells", "cell_skills", "pairs", "adjacent", "suggested",
)  # fmt: skip

Witness = Literal["actor", "day", "session"]


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """What one update did. ``sessions`` were counted; ``anew`` where that was all of them for a changed identity."""

    profile: dict[str, Any]
    witness: Witness
    sessions: int
    anew: bool


def keep_in(store: Store, path: Path = MEMORY) -> None:
    """Attach the kept statistics as ``kept``; a file that cannot be read is begun anew."""
    try:
        store.attach(path, "kept")
    except HomeBusy as error:
        log.warning("%s; the statistics are counted anew", error.message)
        path.unlink()
        store.attach(path, "kept")
    store.run("statistics/00_tables")


def update(store: Store, parameters: Parameters, *, names: str = "") -> Update:
    """Bring ``kept`` up to the ``events`` of this store. ``names`` stands for how names are resolved (a digest)."""
    with store.transaction():
        watermark, before = _mark(store)
        profile, witness = _look(store, watermark)
        identity = _identity(parameters, witness, names)
        anew = identity != before or _lost_events(store)
        if anew and watermark != NOTHING:
            log.info("what was counted does not fit any more; everything is counted anew")
            _forget(store)
            profile, witness = _look(store, NOTHING)
            identity = _identity(parameters, witness, names)
        ((sessions,),) = store.rows("select count(*) from changed")
        if sessions or anew:
            _count(store, parameters, witness)
            _set_mark(store, identity)
    return Update(profile=profile, witness=witness, sessions=sessions, anew=anew)


def merge(store: Store, shards: Sequence[Path]) -> Update:
    """Take the place of ``kept`` with the sums of several logs, in memory: as one log with all their sessions.

    InputError where two of them share a session, or were counted differently.
    """
    store.detach("kept")
    keep_in(store)
    identities: set[str] = set()
    for path in shards:
        _attach_shard(store, path)
        with store.transaction():
            _refuse_shared_sessions(store, path)
            store.run("compact/merge")
        identities.add(store.rows("select identity from shard.mark")[0][0])
        store.detach("shard")
    if len(identities) > 1:
        raise InputError(
            "these statistics were counted differently (format : thresholds of reading : witness : names of skills): "
            + ", ".join(sorted(identities)),
            suggestions=["mine each home by this version, with the same catalogue, and try again"],
        )
    with store.transaction():
        store.execute("create or replace temp table changed (session_id text)")
        store.execute("create or replace temp table fresh_sessions as from kept.sessions limit 0")
        profile, witness = _profile(store)
    return Update(profile=profile, witness=witness, sessions=0, anew=False)


def _attach_shard(store: Store, path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path} is no file; a home keeps its statistics in statistics.duckdb once it was mined")
    store.attach(path, "shard", read_only=True)
    tables = store.rows("select count(*) from duckdb_tables() where database_name = 'shard' and table_name = 'mark'")
    if tables == [(0,)] or store.rows("select count(*) from shard.mark") == [(0,)]:
        raise InputError(f"{path} holds no statistics", suggestions=["cowpath mine"])


def _refuse_shared_sessions(store: Store, path: Path) -> None:
    shared = store.rows("select session_id from kept.sessions semi join shard.sessions using (session_id) limit 3")
    if shared:
        names = ", ".join(session_id for (session_id,) in shared)
        raise InputError(f"{path} holds sessions that are counted already, {names} among them; a session counts once")


def choose_witness(*, actors: int, days: int, named_share: float) -> Witness:
    """Whose agreement counts: different actors; failing these different days, failing these sessions.

    Actors count where at least half of the sessions name theirs: all the others are one witness, and a
    few named sessions must not silence a log that never named anybody.
    """
    if actors > 1 and named_share >= 0.5:
        return "actor"
    return "day" if days > 1 else "session"


def _identity(parameters: Parameters, witness: Witness, names: str) -> str:
    """What the sums depend on beside the log."""
    return f"{FORMAT}:{parameters.reading}:{witness}:{names}"


def _mark(store: Store) -> tuple[int, str]:
    """Up to which change the log is counted, and under which identity."""
    rows = store.rows("select watermark, identity from kept.mark")
    return rows[0] if rows else (NOTHING, "")


def _set_mark(store: Store, identity: str) -> None:
    store.execute("delete from kept.mark")
    store.execute(
        "insert into kept.mark select coalesce(max(changed), $nothing), $identity from events",
        {"identity": identity, "nothing": NOTHING},
    )


def _look(store: Store, watermark: int) -> tuple[dict[str, Any], Witness]:
    """Which sessions changed since, what the whole log holds now, and who vouches in it."""
    store.run("statistics/10_changed", watermark=watermark)
    store.run("statistics/20_sessions")
    return _profile(store)


def _profile(store: Store) -> tuple[dict[str, Any], Witness]:
    store.run("statistics/25_profile")
    profile = store.frame("select * from profile").row(0, named=True)
    share = profile["named_sessions"] / max(1, profile["sessions"])
    return profile, choose_witness(actors=profile["actors"], days=profile["days"], named_share=share)


def _lost_events(store: Store) -> bool:
    """Whether a session that did not change lacks an event that was counted, as after an erasure."""
    there = store.rows(
        "select count(*), coalesce(bit_xor(hash(event_id)), 0) from events anti join changed using (session_id)"
    )
    counted = store.rows(
        "select coalesce(sum(events), 0)::bigint, coalesce(bit_xor(ids), 0) "
        "from kept.sessions anti join changed using (session_id)"
    )
    return there != counted


def _forget(store: Store) -> None:
    for table in TABLES:
        store.execute(f"delete from kept.{table}")


def _count(store: Store, parameters: Parameters, witness: Witness) -> None:
    """Run the numbered SQL files: from the calls of the changed sessions to one more segment of sums."""
    if len(_segments(store)) > MOST_SEGMENTS:
        store.run("compact/segments")
    given = msgspec.structs.asdict(parameters) | {"witness": witness, "segment": max(_segments(store), default=-1) + 1}
    for name in sql_names("statistics"):
        if name not in LOOKS:
            store.run(name, **given)


def _segments(store: Store) -> list[int]:
    return [segment for (segment,) in store.rows("select distinct segment from kept.cells order by segment")]
