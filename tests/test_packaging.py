"""The wheel that people install, and what each part of it drags along."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parent.parent
HEAVY = ("torch", "sentence_transformers", "transformers", "duckdb", "polars", "pandas", "numpy", "scipy", "pyarrow",
         "mlxtend", "prefect", "fastapi", "uvicorn", "onnxruntime", "networkx", "rank_bm25")  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of the files in a wheel built from this checkout."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(REPOSITORY)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = out.glob("cowpath-*-py3-none-any.whl")
    return zipfile.ZipFile(path).namelist()


@pytest.mark.slow
def test_the_wheel_holds_the_four_packages_and_the_sql(wheel: list[str]) -> None:
    tops = {name.split("/", maxsplit=1)[0] for name in wheel if ".dist-info/" not in name}
    assert tops == {"cowpath", "collector", "miner", "ranker"}
    shipped = {name.removeprefix("cowpath/") for name in wheel if name.endswith(".sql")}
    assert shipped == {path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "sql").rglob("*.sql")}


@pytest.mark.slow
def test_the_wheel_holds_every_module_and_the_page(wheel: list[str]) -> None:
    modules = {
        path.relative_to(REPOSITORY).as_posix()
        for package in ("cowpath", "collector", "miner", "ranker")
        for path in (REPOSITORY / package).rglob("*.py")
    }
    assert modules | {"ranker/page/index.html"} <= set(wheel)


def test_the_collector_alone_needs_no_model_and_no_miner() -> None:
    needed = closure("cowpath", "collector")
    assert {"click", "duckdb", "fastapi", "uvicorn", "starlette"} <= needed
    assert needed & {"torch", "transformers", "sentence-transformers", "onnxruntime", "prefect", "pandas"} == set()


def test_everything_but_the_model_extra_does_without_torch() -> None:
    assert "torch" in closure("cowpath", "model")
    for extra in ("collector", "miner", "ranker"):
        assert "torch" not in closure("cowpath", extra), extra


def closure(distribution: str, extra: str) -> set[str]:
    """Names of all distributions that ``distribution[extra]`` needs here, as the installed metadata say."""
    needed: set[str] = set()
    waiting = [(distribution, extra)]
    seen = set(waiting)
    while waiting:
        name, with_extra = waiting.pop()
        for requirement in needs(name):
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": with_extra}):
                continue
            needed.add(requirement.name.lower().replace("_", "-"))
            found = {(requirement.name.lower(), e) for e in (requirement.extras or {""})} | {(requirement.name, "")}
            waiting += found - seen
            seen |= found
    return needed


def needs(distribution: str) -> list[Requirement]:
    try:
        return [Requirement(line) for line in requires(distribution) or []]
    except PackageNotFoundError:  # an optional one that is not installed here drags nothing along
        return []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_loads_none_of_the_heavy_libraries(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from cowpath.cli import run\n"
        f"try:\n    run({arguments!r})\n"
        f"finally:\n    print('LOADED', sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "LOADED []"


def test_the_lock_pins_whole_public_versions_only() -> None:
    """No local path, no address, no local version label: the lock means the same on every machine."""
    lines = (REPOSITORY / "requirements.lock").read_text().splitlines()
    names = [line.split("==", maxsplit=1)[0].lower() for line in lines]
    assert [line for line in lines if line.count("==") != 1 or set(line) & set("/@+:; ")] == []
    assert names == sorted(names)
    assert not {"cowpath", "pip", "setuptools"} & set(names)
