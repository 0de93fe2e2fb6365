"""The sentence encoder for queries: the exported ONNX model through onnxruntime, without torch."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from cowpath.errors import ModelMissing
from cowpath.vectors import Vector

ONNX = "minilm.onnx"
TOKENIZER = "tokenizer.json"
MANIFEST = "minilm.json"
BATCH = 32


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What was exported, from which weights."""

    weights_sha256: str
    opset: int
    max_tokens: int
    dimensions: int
    onnx_bytes: int


class Encoder:
    """Texts to unit vectors, equal to the reference encoder's within 1e-5 (a test holds them together)."""

    def __init__(self, session: Any, tokenizer: Any, manifest: Manifest) -> None:
        self._session = session  # onnxruntime and tokenizers come without types
        self._tokenizer = tokenizer
        self.manifest = manifest

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Load the export in ``folder``. Raises ModelMissing where there is none."""
        manifest = read_manifest(folder)
        if manifest is None:
            raise ModelMissing(
                f"no exported sentence encoder in {folder}",
                suggestions=[_how_to_export()],
            )
        # onnxruntime reads this when it is imported; without it, it keeps an id in the user's cache and reports use
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ModelMissing(
                f"{error.name} is not installed", suggestions=["pip install 'cowpath[ranker]'"]
            ) from error
        try:
            tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            session = _session(onnxruntime, folder / ONNX)
        except Exception as error:  # both libraries raise types of their own that share no base
            raise ModelMissing(
                f"the exported sentence encoder in {folder} cannot be loaded",
                suggestions=[f"remove {folder}, then cowpath mine exports it anew"],
            ) from error
        tokenizer.enable_truncation(max_length=manifest.max_tokens)
        tokenizer.enable_padding()
        return cls(session, tokenizer, manifest)

    def encode(self, texts: Sequence[str]) -> Vector:
        """Unit vectors, shape (len(texts), dimensions)."""
        rows = [self._batch(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        return np.concatenate(rows) if rows else np.zeros((0, self.manifest.dimensions), np.float32)

    def _batch(self, texts: Sequence[str]) -> Vector:
        encoded = self._tokenizer.encode_batch([text.strip() for text in texts])
        feed = {
            "input_ids": np.array([e.ids for e in encoded], dtype=np.int64),
            "attention_mask": np.array([e.attention_mask for e in encoded], dtype=np.int64),
            "token_type_ids": np.array([e.type_ids for e in encoded], dtype=np.int64),
        }
        found: Vector = self._session.run(["embedding"], feed)[0]
        return found


def _how_to_export() -> str:
    make = "cowpath catalogue sync DIR or cowpath mine"
    installed = importlib.util.find_spec("sentence_transformers") is not None
    return f"{make} exports it" if installed else f"pip install 'cowpath[model]', then {make}"


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a whole export, or None where there is none: what is missing or cut is exported anew."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
        whole = (folder / TOKENIZER).is_file() and (folder / ONNX).stat().st_size == manifest.onnx_bytes
    except (OSError, msgspec.MsgspecError):
        return None
    return manifest if whole else None


def _session(onnxruntime: Any, path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    # one thread: a query takes about 3 ms, and the collector may share the machine
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
