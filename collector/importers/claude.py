"""A person's own Claude Code history -> events: each call once, in the session that first made it.

Forks and resumed sessions copy earlier rows into a new file under a new session id. The file whose own
rows begin first owns the copied calls, whatever order the folder lists them in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from collector.identity import claude_call, claude_typed
from collector.importers.seen import Seen
from collector.importers.shipment import Shipment, Sink
from collector.importers.transcript import Call, Sort, Transcript, moment, read_transcript, rows
from cowpath.errors import BadFile
from cowpath.event import Event, Trigger
from cowpath.home import Home

SOURCE = "claude-transcript"
AGENT = "claude-code"
DEFAULT_FOLDER = "~/.claude/projects"

SKILLS: frozenset[Sort] = frozenset({"skill"})
EVERYTHING: frozenset[Sort] = frozenset({"skill", "tool", "mcp", "agent"})

Progress = Callable[[Sequence[Path]], Iterable[Path]]
"""Hands the files on, one after the other, and may show how far it is."""

LONG_AGO = datetime.min.replace(tzinfo=UTC)


def import_claude(
    path: Path, sink: Sink, home: Home, *, sorts: frozenset[Sort] = SKILLS, progress: Progress = iter
) -> dict[str, Any]:
    """Send the calls of every transcript under ``path`` that changed since the last import; returns the counts.

    Importing again is harmless: the ids are the calls' own.
    """
    files = transcript_files(path)
    seen = Seen.load(home, "+".join(sorted(sorts)))
    changed = [file for file in files if not seen.is_unchanged(file)]
    transcripts = []
    for file in progress(changed):
        seen.note(file)
        transcripts.append(read_transcript(file))
    told = [transcript for transcript in transcripts if transcript.rows]
    if files == changed == [path.expanduser()] and not told and files[0].stat().st_size:
        raise BadFile(f"{path} has no row of a Claude Code transcript; name one, or the folder that holds them")
    calls = owned(transcripts)
    shipment = Shipment(sink)
    for event in events(calls, sorts, seen.typed):
        shipment.add(event)
    shipment.send()
    held = Counter(n.path for n in calls if n.call.sort in sorts and n.call.name)
    for file in changed:
        seen.note_calls(file, held[file])
    seen.save()
    return {
        "files": len(files),
        "unchanged_files": len(files) - len(changed),
        "unchanged_calls": seen.calls(set(files) - set(changed)),
        "other_files": len(transcripts) - len(told),
        **shipment.document(),
        "copied": sum(len(transcript.calls) for transcript in transcripts) - len(calls),
        "built_in_commands": sum(transcript.built_in for transcript in transcripts),
        "unreadable_lines": sum(transcript.bad_lines for transcript in told),
        "left_out": dict(sorted(Counter(n.call.sort for n in calls if n.call.sort not in sorts).items())),
    }


def transcript_files(path: Path) -> list[Path]:
    """The ``.jsonl`` files under a folder, or the one file that was named."""
    path = path.expanduser()
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise BadFile(f"there is no agent history at {path}; name the folder that holds it")
    return sorted(file for file in path.rglob("*.jsonl") if file.is_file())


class Numbered(msgspec.Struct, frozen=True):
    """A call with its place in its stream, the batch it was made in and the transcript that owns it."""

    path: Path
    call: Call
    seq: int
    batch_id: str | None


def owned(transcripts: Sequence[Transcript]) -> list[Numbered]:
    """Every call once, numbered in its stream; independent of the order of the transcripts."""
    ordered = sorted(transcripts, key=lambda t: (t.first_at or LONG_AGO, t.path.stem, str(t.path)))
    seqs = _seqs(ordered)
    owners = _owners(ordered)
    sizes = Counter((t.path, call.message) for t in ordered for call in t.calls.values() if call.message)
    return [
        Numbered(t.path, call, seqs[t.path, call_id], _batch(call) if sizes[t.path, call.message] > 1 else None)
        for t in ordered
        for call_id, call in t.calls.items()
        if owners[call_id] is t
    ]


def _batch(call: Call) -> str:
    """The message that a call was made in, without what tells reused ids apart."""
    return call.message.split("/")[0]


def _seqs(ordered: Iterable[Transcript]) -> dict[tuple[Path, str], int]:
    """Positions inside each stream. They count every call, also those left out, so that a later import fits in."""
    lengths: Counter[tuple[str, str]] = Counter()
    seqs = {}
    for transcript in ordered:
        for call_id, call in transcript.calls.items():
            stream = (call.session_id, call.stream_id)
            seqs[transcript.path, call_id] = lengths[stream]
            lengths[stream] += 1
    return seqs


def _owners(ordered: Iterable[Transcript]) -> dict[str, Transcript]:
    """Call id -> the transcript it was first made in."""
    holders: dict[str, list[Transcript]] = defaultdict(list)
    for transcript in ordered:
        for call_id in transcript.calls:
            holders[call_id].append(transcript)

    @cache
    def own_rows_begin(path: Path, among: frozenset[Path]) -> datetime:
        shared = frozenset.intersection(*(frozenset(row_times(other)) for other in among))
        return min((at for uuid, at in row_times(path).items() if uuid not in shared), default=LONG_AGO)

    row_times = cache(_row_times)

    def order(call_id: str, transcript: Transcript) -> tuple[bool, bool, datetime, datetime]:
        call = transcript.calls[call_id]
        among = frozenset(other.path for other in holders[call_id])
        # Sidechains replay rows of the main conversation; a fork has copied its first rows.
        return (
            call.stream_id != "",
            call.copied,
            transcript.first_at or LONG_AGO,
            own_rows_begin(transcript.path, among),
        )

    return {
        call_id: among[0] if len(among) == 1 else min(among, key=partial(order, call_id))
        for call_id, among in holders.items()
    }


def _row_times(path: Path) -> dict[str, datetime]:
    """When each row of a transcript was written, by its uuid."""
    return {str(row.get("uuid")): at for row in rows(path) if (at := moment(row.get("timestamp"))) is not None}


def events(calls: Iterable[Numbered], sorts: frozenset[Sort], typed: dict[str, str]) -> Iterable[Event]:
    """The calls as events. ``typed`` remembers which session a typed call belongs to, over imports."""
    for numbered in calls:
        call = numbered.call
        if call.sort not in sorts or not call.name:
            continue
        session_id = typed.setdefault(call.call_id, call.session_id) if call.typed else call.session_id
        yield Event(
            event_id=_id(call, session_id),
            session_id=session_id,
            stream_id=call.stream_id,
            seq=numbered.seq,
            skill=call.name,
            called_at=call.called_at,
            trigger=_trigger(call),
            outcome=call.outcome,
            duration_ms=call.duration_ms,
            batch_id=numbered.batch_id,
            agent=AGENT,
            agent_version=call.version,
            source=SOURCE,
            extra={"caller": call.caller} if call.caller else {},
        )


def _id(call: Call, session_id: str) -> str:
    """The id that other sources of the same call derive too."""
    if not call.typed:
        return claude_call(call.call_id)
    prompt = call.call_id.removeprefix("typed:").removesuffix(f":{call.name}")
    return claude_typed(session_id, prompt, call.name)


def _trigger(call: Call) -> Trigger:
    if call.typed:
        return "user"
    return "nested" if call.caller else "agent"
