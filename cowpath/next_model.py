"""The next-skill model at rest: what the miner learned about what follows what, ready to answer."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from cowpath.errors import BadFile
from cowpath.home import write_whole
from cowpath.next_parts import KINDS, Alike, Floats, NGrams, Part, as_distribution

BUCKETS = ("1", "2-3", "4+", "new")
"""Weights differ by the prefix's length, and where the current skill has a description but no history."""

FLOOR = 1e-6
"""Added to a part's probability before its logarithm, so that one part alone never rules a skill out."""


@dataclass(frozen=True)
class Blend:
    """How the parts are put together: a weighted ``mean`` or a weighted ``product`` of their distributions.

    ``weights`` has one row a bucket, one number a part.
    """

    kind: str
    weights: Mapping[str, Mapping[str, float]]

    def join(self, parts: Mapping[str, Floats], bucket: str) -> Floats:
        """One distribution from those of the parts; a part that knows nothing (all zero) has no say."""
        weights = self.weights[bucket]
        known = [(weights[name], scores) for name, scores in parts.items() if name in weights and scores.any()]
        if not known:
            return np.zeros_like(next(iter(parts.values())))
        if self.kind == "mean":
            return sum((w * scores for w, scores in known[1:]), known[0][0] * known[0][1])
        logs = sum((w * np.log(scores + FLOOR) for w, scores in known[1:]), known[0][0] * np.log(known[0][1] + FLOOR))
        product: Floats = np.exp(logs - logs.max())
        return product


@dataclass(frozen=True)
class NextModel:
    """Answers what comes next after a prefix of skills.

    ``skills`` are those with history, the most used first; ``new_skills`` have only a description.
    ``record`` says how the model was chosen and how well it did on calls held out from its fitting.
    """

    skills: tuple[str, ...]
    kept: Mapping[str, Part]
    blend: Blend
    new_skills: tuple[str, ...] = ()
    new_share: float = 0.0
    record: dict[str, Any] = field(default_factory=dict)

    def predict(self, prefix: Sequence[str]) -> Floats:
        """Probabilities of the next skill, shape (len(skills),); the current skill has none.

        Unknown skills in the prefix are passed over. An empty prefix asks how a session starts.
        """
        ids, current = self._read(prefix)
        weights = self.weights(prefix)
        if not weights:
            return np.zeros(len(self.skills))
        parts = {n: as_distribution(self.kept[n].scores(_known(n, ids, len(self.skills))), current) for n in weights}
        return as_distribution(self.blend.join(parts, self.bucket(prefix)) if prefix else parts["ngrams"], current)

    def predict_new(self, prefix: Sequence[str]) -> Floats:
        """Scores of ``new_skills`` on the scale of ``predict``, by what is probable among their neighbours."""
        alike = self.kept.get("alike")
        if not isinstance(alike, Alike) or not self.new_skills:
            return np.zeros(len(self.new_skills))
        scores = alike.transfer(self.predict(prefix)) * self.new_share
        place = self._number.get(prefix[-1], -1) - len(self.skills) if prefix else -1
        if place >= 0:
            scores[place] = 0.0
        return scores

    def parts(self, prefix: Sequence[str]) -> dict[str, Floats]:
        """What each part alone would say, each shaped like ``predict``."""
        ids, current = self._read(prefix)
        size = len(self.skills)
        return {n: as_distribution(p.scores(_known(n, ids, size)), current) for n, p in self.kept.items()}

    def weights(self, prefix: Sequence[str]) -> dict[str, float]:
        """The parts that have a say after this prefix, and how much."""
        if not self.skills:
            return {}
        if not prefix:
            return {"ngrams": 1.0}
        row = self.blend.weights[self.bucket(prefix)]
        return {name: row[name] for name in self.kept if name in row}

    def bucket(self, prefix: Sequence[str]) -> str:
        """The row of weights for a prefix (not empty)."""
        if self._number.get(prefix[-1], -1) >= len(self.skills):
            return "new"
        return "1" if len(prefix) == 1 else "2-3" if len(prefix) < 4 else "4+"

    def count(self, a: str, b: str) -> int:
        """How often ``b`` was called directly after ``a``."""
        ngrams, size = self.kept.get("ngrams"), len(self.skills)
        i, j = self._number.get(a, size), self._number.get(b, size)
        return ngrams.count(i, j) if isinstance(ngrams, NGrams) and i < size and j < size else 0

    def save(self, path: Path) -> None:
        """Write the model whole; equal models give equal bytes."""
        write_whole(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The model as an npz file without pickles and without a clock."""
        about = {
            "skills": self.skills,
            "new_skills": self.new_skills,
            "new_share": self.new_share,
            "kind": self.blend.kind,
            "weights": self.blend.weights,
            "record": self.record,
        }
        arrays = {f"{name}.{key}": array for name, part in self.kept.items() for key, array in part.arrays().items()}
        arrays["about"] = np.frombuffer(msgspec.json.encode(about, order="sorted"), dtype=np.uint8)
        return _npz(arrays)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a model. Raises BadFile where the file is not one."""
        try:
            with np.load(path, allow_pickle=False) as file:
                return cls.of_arrays({name: file[name] for name in file.files})
        except FileNotFoundError:
            raise
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, msgspec.MsgspecError) as error:
            raise BadFile(f"{path} is not a next-skill model", suggestions=["cowpath mine"]) from error

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        about = msgspec.json.decode(arrays["about"].tobytes())
        kept: dict[str, Part] = {}
        for name, kind in KINDS.items():
            own = {key.partition(".")[2]: array for key, array in arrays.items() if key.startswith(f"{name}.")}
            if own:
                kept[name] = kind.of(own)
        return cls(
            skills=tuple(about["skills"]),
            kept=kept,
            blend=Blend(about["kind"], about["weights"]),
            new_skills=tuple(about["new_skills"]),
            new_share=about["new_share"],
            record=about["record"],
        )

    @cached_property
    def _number(self) -> dict[str, int]:
        return {skill: i for i, skill in enumerate(self.skills + self.new_skills)}

    def _read(self, prefix: Sequence[str]) -> tuple[list[int], int | None]:
        """The known skills of the prefix as numbers, and the number of the current one where it is known."""
        number = self._number
        ids = [number[skill] for skill in prefix if skill in number]
        return ids, number.get(prefix[-1]) if prefix else None


EMPTY = NextModel(skills=(), kept={}, blend=Blend("mean", {bucket: {} for bucket in BUCKETS}))
"""The model of the first day: knows nothing and says so without an error."""


def _known(part: str, ids: list[int], size: int) -> list[int]:
    """What a part can read of the prefix: skills without history mean something to descriptions only."""
    return ids if part in ("alike", "similar") else [i for i in ids if i < size]


def _npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """An npz file with sorted names and a fixed date, which ``np.savez`` does not promise."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        for name in sorted(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(arrays[name], order="C"), allow_pickle=False)
            file.writestr(zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0)), member.getvalue())
    return buffer.getvalue()
