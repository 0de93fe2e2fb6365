"""What the tests share: a home of their own, the measured data, the model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cowpath.home import Home

REPOSITORY = Path(__file__).parent.parent


def _absent(what: str) -> None:
    """Skip loudly; where CI forbids skipping, fail instead."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is absent and CI forbids skipping")
    pytest.skip(f"{what} is absent")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home of the test's own."""
    return Home(tmp_path / "home")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of measured data sets: ``COWPATH_DATA``, default ``../shared/data``."""
    folder = Path(os.environ.get("COWPATH_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        _absent(f"the data folder {folder} (COWPATH_DATA)")
    return folder


@pytest.fixture(scope="session")
def samples(data: Path) -> Path:
    """The folder of sample payloads, beside the data sets."""
    folder = data.parent / "samples"
    if not folder.is_dir():
        _absent(f"the samples folder {folder}")
    return folder
