"""Skill embeddings at rest: unit vectors by text hash, written by the ranker, read by the miner too."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cowpath.home import write_whole
from cowpath.skill import Catalogue, text_hash

Vector = NDArray[np.float32]

CACHE_NAME = "skills.npz"

NEAREST = 8
FLOOR = 0.5
"""An embedding neighbour is one of the eight nearest with at least this cosine."""

ROWS_AT_ONCE = 1024


def read_vectors(folder: Path) -> dict[str, Vector]:
    """Text hash -> unit vector, shape (dimensions,). Empty where nothing was embedded yet, or the cache is broken."""
    path = folder / CACHE_NAME
    if not path.exists():
        return {}
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(zip(file["hashes"].tolist(), file["vectors"], strict=True))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        # It is a cache: what it held is embedded again.
        return {}


def write_vectors(folder: Path, vectors: Mapping[str, Vector]) -> None:
    """Write the whole cache, sorted by hash."""
    hashes = sorted(vectors)
    matrix = np.stack([vectors[h] for h in hashes]).astype(np.float32) if hashes else np.zeros((0, 0), np.float32)
    buffer = io.BytesIO()
    np.savez(buffer, hashes=np.array(hashes, dtype="U64"), vectors=matrix)
    write_whole(folder / CACHE_NAME, buffer.getvalue())


def matrix_of(hashes: Sequence[str], vectors: Mapping[str, Vector]) -> tuple[Vector, NDArray[np.bool_]]:
    """Rows for ``hashes`` (zero where unknown), shape (n, dimensions), and which are known, shape (n,)."""
    dimensions = next((len(v) for v in vectors.values()), 0)
    matrix = np.zeros((len(hashes), dimensions), dtype=np.float32)
    known = np.array([h in vectors for h in hashes], dtype=np.bool_)
    for row, text in enumerate(hashes):
        if known[row]:
            matrix[row] = vectors[text]
    return matrix, known


def skill_vectors(catalogue: Catalogue, vectors: Mapping[str, Vector]) -> dict[str, Vector]:
    """Skill id -> unit vector, from vectors by text hash; skills not embedded are left out."""
    hashes = {skill_id: text_hash(skill.text) for skill_id, skill in catalogue.skills.items()}
    return {skill_id: vectors[h] for skill_id, h in hashes.items() if h in vectors}


def neighbourhoods(
    vectors: Mapping[str, Vector], of: Iterable[str] | None = None, k: int = NEAREST, floor: float = FLOOR
) -> dict[str, list[tuple[str, float]]]:
    """(name, cosine) of the k nearest with a cosine of at least ``floor``, nearest first, ties by name.

    ``vectors`` are unit vectors by name; ``of`` names those to look from (default: all of them).
    """
    names = sorted(vectors)
    asked = sorted(vectors if of is None else set(of) & set(vectors))
    if not asked:
        return {}
    matrix = np.stack([vectors[name] for name in names])
    found: dict[str, list[tuple[str, float]]] = {}
    for start in range(0, len(asked), ROWS_AT_ONCE):
        rows = asked[start : start + ROWS_AT_ONCE]
        cosines = np.stack([vectors[name] for name in rows]) @ matrix.T
        for name, cosine in zip(rows, cosines, strict=True):
            order = np.argsort(-cosine, kind="stable")[: k + 1]
            near = [(names[i], float(cosine[i])) for i in order if names[i] != name]
            found[name] = [(other, value) for other, value in near[:k] if value >= floor]
    return found
