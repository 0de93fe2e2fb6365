"""The exported encoder equals the reference, and is thrown away with its weights."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from cowpath.errors import ModelMissing
from cowpath.settings import Settings
from cowpath.skill import text_hash
from cowpath.vectors import read_vectors
from ranker.dense import embed_texts, encode, load_reference, weights_folder
from ranker.encoder import MANIFEST, ONNX, Encoder, read_manifest

TEXTS = [
    "deploy",
    "Fill in the fields of a PDF form and flatten it.",
    "",
    "   \n\t ",
    "naïve Straße, 日本語の文書, العربية, 🚀🚀",
    "snake_case-and.dots:everywhere CamelCase",
    "word " * 2_000,
    "a sentence of ordinary length about tests and releases. " * 12,
    "\u0000 control \u200b characters",
    "x" * 5_000,
]


def test_a_home_without_an_export_says_what_to_install(settings: Settings) -> None:
    with pytest.raises(ModelMissing) as raised:
        Encoder.open(settings.at.embeddings)

    assert "cowpath catalogue sync DIR or cowpath mine" in raised.value.suggestions[0]


def test_a_weights_folder_without_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"holds no model\.safetensors"):
        weights_folder(Settings(model_dir=str(tmp_path)))


def test_a_damaged_manifest_is_no_export(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("{")

    with pytest.raises(ModelMissing, match="no exported sentence encoder"):
        Encoder.open(tmp_path)


@pytest.mark.model
def test_an_export_that_was_cut_or_spoilt_is_made_anew(embedded: Settings, tmp_path: Path) -> None:
    for spoil in (lambda data: data[:1000], lambda data: b"\0" * len(data)):
        folder = tmp_path / "embeddings"
        shutil.copytree(embedded.at.embeddings, folder)
        graph = folder / ONNX
        graph.write_bytes(spoil(graph.read_bytes()))

        with pytest.raises(ModelMissing):
            Encoder.open(folder)
        shutil.rmtree(folder)

    shutil.copytree(embedded.at.embeddings, folder)
    graph.write_bytes(b"cut")
    assert embed_texts([], folder, embedded).exported
    Encoder.open(folder)


@pytest.mark.model
def test_the_exported_encoder_equals_the_reference(embedded: Settings) -> None:
    reference = encode(load_reference(weights_folder(embedded)), TEXTS)
    exported = Encoder.open(embedded.at.embeddings)

    assert np.abs(exported.encode(TEXTS) - reference).max() <= 1e-5
    alone = np.concatenate([exported.encode([text]) for text in TEXTS])
    assert np.abs(alone - reference).max() <= 1e-5
    np.testing.assert_allclose(np.linalg.norm(reference, axis=1), 1, atol=1e-5)
    assert exported.encode([]).shape == (0, 384)


@pytest.mark.model
def test_vectors_of_other_weights_are_embedded_anew(embedded: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "embeddings"
    shutil.copytree(embedded.at.embeddings, folder)
    manifest = read_manifest(folder)
    assert manifest is not None
    other = msgspec.structs.replace(manifest, weights_sha256="0" * 64)
    (folder / MANIFEST).write_bytes(msgspec.json.encode(other))

    report = embed_texts(["test"], folder, embedded)

    assert (report.embedded, report.cached, report.exported) == (1, 0, True)
    assert set(read_vectors(folder)) == {text_hash("test")}


@pytest.mark.model
def test_a_search_leaves_nothing_in_the_users_own_folder(embedded: Settings, tmp_path: Path) -> None:
    """The runtime of the encoder would keep an id of the user there and report use."""
    ran = subprocess.run(
        [sys.executable, "-m", "cowpath", "search", "deploy", "--home", embedded.home, "--json"],
        env=os.environ | {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert json.loads(ran.stdout)["mode"] == "hybrid"
    assert list(tmp_path.rglob("*")) == []
