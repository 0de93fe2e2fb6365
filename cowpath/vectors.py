"""Skill embeddings at rest: unit vectors by text hash, written by the ranker, read by the miner too."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cowpath.home import write_whole

Vector = NDArray[np.float32]

CACHE_NAME = "skills.npz"


def read_vectors(folder: Path) -> dict[str, Vector]:
    """Text hash -> unit vector, shape (dimensions,). Empty where nothing was embedded yet."""
    path = folder / CACHE_NAME
    if not path.exists():
        return {}
    with np.load(path) as file:
        return dict(zip(file["hashes"].tolist(), file["vectors"], strict=True))


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
