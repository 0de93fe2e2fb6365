"""The ranker every face calls: search, next and why over one home, reading files again when they change."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import msgspec

from cowpath.edge import LAYERS
from cowpath.errors import BadFile, NothingLearned
from cowpath.next_model import NextModel
from cowpath.settings import Settings
from cowpath.skill import Catalogue, read_catalogue
from cowpath.vectors import CACHE_NAME, read_vectors, skill_vectors
from ranker.advice import Record, impressions, policy_of, spooled, why_nothing
from ranker.backoff import Likeness
from ranker.bm25 import Keywords
from ranker.encoder import MANIFEST
from ranker.graph import SkillGraph
from ranker.history import session_calls, skill_uses
from ranker.listing import Budget, ListingAnswer, listing
from ranker.next import Next, NextAnswer
from ranker.search import Arm, Meaning, Search, SearchAnswer, check_request, open_meaning

T = TypeVar("T")


class Read(Generic[T]):
    """A value read from files: read at first use, and again when one of the files has changed."""

    def __init__(self, read: Callable[[], T], *files: Path) -> None:
        self._read = read
        self._files = files
        self._stamps: tuple[object, ...] | None = None
        self._lock = Lock()
        self._value: T

    def now(self) -> T:
        with self._lock:
            stamps = tuple(_stamp(path) for path in self._files)
            if stamps != self._stamps:
                self._value = self._read()
                self._stamps = stamps
            return self._value


class Ranker:
    """Answers over one home. Safe to call from several threads; what a call does not need is not loaded.

    ``record`` takes the impressions of lists for named sessions; without it they go into the home's spool.
    """

    def __init__(self, settings: Settings, *, record: Record | None = None) -> None:
        at = settings.at
        vectors, manifest = at.embeddings / CACHE_NAME, at.embeddings / MANIFEST
        run, layers = at.learned / "run.json", [at.edges / f"{layer}.jsonl" for layer in LAYERS]
        self._settings = settings
        self._layers = layers
        self._record = record or spooled(settings)
        self._catalogue = Read(lambda: read_catalogue(at.catalogue), at.catalogue)
        self._keywords = Read(self._read_keywords, at.catalogue)
        self._meaning = Read(self._read_meaning, at.catalogue, vectors, manifest)
        self._likeness = Read(self._read_likeness, at.catalogue, vectors, at.learned / "next.npz")
        self._graph = Read(lambda: SkillGraph.read(at.edges), *layers)
        self._model = Read(self._read_model, at.learned / "next.npz")
        self._versions = Read(self._read_versions, at.catalogue, run, *layers)

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue as it is now."""
        return self._catalogue.now()

    def search(self, query: str, k: int = 10, arm: Arm = "hybrid") -> SearchAnswer:
        """Skills for a request in words."""
        check_request(query, k, arm)
        answer = self._search(arm).search(query, k, arm)
        return msgspec.structs.replace(answer, versions=self._versions.now())

    def next(
        self, context: Sequence[str], *, session: str | None = None, query: str | None = None, k: int = 5
    ) -> NextAnswer:
        """What may come next. Raises NothingLearned before the first mining run, UnknownSkill for a name.

        A list for a named session leaves an impression; a session of the holdout is shown an empty one.
        """
        asked = Next(self._catalogue.now(), self._model.now(), self._graph.now(), self._likeness.now())
        earlier = session_calls(self._settings, session) if session else []
        search = self._search("hybrid") if query is not None else None
        answer = asked.suggest(context, earlier=earlier, session=session, query=query, search=search, k=k)
        unseen = f"session {session!r} has no published calls" if session and not earlier else None
        answer = msgspec.structs.replace(answer, reason=answer.reason or unseen, versions=self._versions.now())
        return self._advised(answer, session) if session else answer

    def listing(self, *, after: Sequence[str] = (), budget: Budget | None = None) -> ListingAnswer:
        """An agent's list of skills under its budget: as it cuts it, and as need would.

        Need goes by the calls of the log; after skills that were called it goes by what the model expects next,
        which raises NothingLearned before the first mining run.
        """
        catalogue, graph, uses = self._catalogue.now(), self._graph.now(), skill_uses(self._settings)
        asked = Next(catalogue, self._model.now(), graph, self._likeness.now()) if after else None
        called = [asked.resolve(name) for name in after] if asked else []
        scores = asked.scores(called) if asked else None
        return listing(
            catalogue.skills.values(),
            uses=uses,
            need=uses if scores is None else scores.values | scores.new,
            graph=graph,
            budget=budget,
            after=called,
            basis="calls" if scores is None else "model",
        )

    def why(self, a: str, b: str) -> dict[str, Any]:
        """The evidence of a pair, also where there is no edge."""
        from ranker.why import why  # reads frames, which no other answer needs

        return why(self._settings, a, b)

    def _advised(self, answer: NextAnswer, session: str) -> NextAnswer:
        """The answer as this session may see it, and the impression of what it shows or would have shown."""
        policy = policy_of(session, self._settings)
        events = impressions(
            [one.skill_id for one in answer.suggestions],
            session=session,
            after=answer.context[-1] if answer.context else None,
            policy=policy,
            run=answer.versions["run"],
            holdout_share=self._settings.holdout_share,
        )
        if events:
            self._record(events)
        if policy == "holdout":
            reason = why_nothing(session, self._settings)
            return msgspec.structs.replace(answer, suggestions=[], left_out=[], reason=reason, policy=policy)
        return msgspec.structs.replace(answer, policy=policy, advice=events[0].event_id if events else None)

    def _search(self, arm: Arm) -> Search:
        meaning, reason = (None, None) if arm == "keyword" else self._meaning.now()
        return Search(self._catalogue.now(), self._keywords.now(), meaning, self._graph.now(), reason)

    def _read_keywords(self) -> Keywords:
        return Keywords(self._catalogue.now().skills.values())

    def _read_meaning(self) -> tuple[Meaning | None, str | None]:
        return open_meaning(self._catalogue.now(), self._settings)

    def _read_likeness(self) -> Likeness:
        vectors = skill_vectors(self._catalogue.now(), read_vectors(self._settings.at.embeddings))
        return Likeness.of(self._model.now(), vectors)

    def _read_model(self) -> NextModel:
        home = self._settings.at
        try:
            model = NextModel.load(home.learned / "next.npz")
        except FileNotFoundError:
            model = None
        if model is None or not model.skills:
            raise NothingLearned(
                f"nothing is learned at {home.root} yet: no calls were mined", suggestions=["cowpath mine"]
            )
        return model

    def _read_versions(self) -> dict[str, str | None]:
        home = self._settings.at
        run = home.learned / "run.json"
        try:
            run_id = msgspec.json.decode(run.read_bytes(), type=dict[str, Any]).get("run_id") if run.exists() else None
        except msgspec.MsgspecError as error:
            raise BadFile(f"{run} is no run record", suggestions=["cowpath mine"]) from error
        return {"run": run_id, "catalogue": _digest(home.catalogue), "edges": _digest(*self._layers)}


def _digest(*files: Path) -> str | None:
    """A short name for what the files hold; None where none of them is there."""
    found = [(path.name, path.read_bytes()) for path in files if path.exists()]
    whole = hashlib.sha256()
    for name, data in found:
        whole.update(f"{name} {len(data)} ".encode() + data)
    return whole.hexdigest()[:12] if found else None


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file is written whole; None where it is not there."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
