"""The walls of the house, read from the source: directions, cycles, homes, the environment. Nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
ROOMS = ("collector", "miner", "ranker")
PACKAGES = ("cowpath", *ROOMS)
COMMAND_LINE = ("cowpath/cli/", "cowpath/__main__.py")

HOMES: dict[str, tuple[str, ...]] = {
    "duckdb": ("cowpath/store.py",),
    "prefect": ("miner/flow.py",),
    "mlxtend": ("miner/itemsets.py",),
    "pandas": ("miner/itemsets.py",),
    "sentence_transformers": ("ranker/dense.py",),
    "torch": ("miner/gru.py", "ranker/dense.py"),
    "onnx": ("ranker/dense.py",),
    "rank_bm25": ("ranker/bm25.py",),
    "networkx": ("ranker/graph.py",),
    "httpx": ("ranker/language_model.py",),
    "tenacity": ("ranker/language_model.py",),
    "mcp": ("ranker/mcp.py",),
    "mcp_types": ("ranker/mcp.py",),
    "fastapi": ("app.py", "cowpath/cli/serve.py"),  # the last one joins the two apps
}
"""Heavy library -> the only files that may import it."""

TOUCHES_ENVIRONMENT: dict[str, str] = {
    "cowpath/settings.py": "reads it: the one table of settings",
    "cowpath/hook.py": "reads four variables: at every call, loading the settings would take longer than its work",
    "miner/flow.py": "sets what prefect reads while it is imported: no telemetry",
    "ranker/encoder.py": "sets what onnxruntime looks for while it is imported: no telemetry",
    "ranker/dense.py": "sets what the model libraries look for while they are imported: no network",
}
"""File -> why it may touch the environment."""

FROM_OS = {"environ", "getenv", "putenv"}


@dataclass(frozen=True)
class Import:
    """One imported module as it stands in a file."""

    file: str
    line: int
    module: str
    deferred: bool
    """Inside a function, or for the type checker only: not run when the file is imported."""

    @property
    def package(self) -> str:
        return self.module.split(".")[0]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py"))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def imports_in(path: Path) -> Iterator[Import]:
    """Every import of a file, also those inside functions; ``from a import b`` gives ``a.b`` where that is a module."""
    file = path.relative_to(REPOSITORY).as_posix()

    def walk(node: ast.AST, deferred: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            yield from (Import(file, node.lineno, alias.name, deferred) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield Import(file, node.lineno, inner if is_module(inner) else node.module, deferred)
        later = deferred or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_typing(node)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, later)

    yield from walk(tree_of(path), False)


def is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def is_module(name: str) -> bool:
    path = REPOSITORY.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def all_imports() -> list[Import]:
    return [found for path in sources() for found in imports_in(path)]


def is_command_line(module: str) -> bool:
    return f"{module}.".startswith("cowpath.cli.")


def room_of(file: str) -> str:
    return file.split("/", maxsplit=1)[0]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_the_nouns_and_no_other_room(room: str) -> None:
    others = set(ROOMS) - {room}
    wrong = [str(i) for i in all_imports() if room_of(i.file) == room and i.package in others]
    assert wrong == []


def test_no_room_reaches_into_the_command_line() -> None:
    wrong = [str(i) for i in all_imports() if room_of(i.file) in ROOMS and is_command_line(i.module)]
    assert wrong == []


def test_the_nouns_import_no_room_and_no_command() -> None:
    nouns = [i for i in all_imports() if room_of(i.file) == "cowpath" and not i.file.startswith(COMMAND_LINE)]
    wrong = [str(i) for i in nouns if i.package in ROOMS or is_command_line(i.module)]
    assert wrong == []


def test_commands_import_rooms_and_heavy_libraries_only_when_they_run() -> None:
    commands = [i for i in all_imports() if i.file.startswith(COMMAND_LINE) and not i.deferred]
    wrong = [
        str(i) for i in commands if i.package in {*ROOMS, *HOMES, "uvicorn", "polars", "numpy", "scipy", "pyarrow"}
    ]
    assert wrong == []


@pytest.mark.parametrize("library", HOMES)
def test_a_heavy_library_has_one_home(library: str) -> None:
    wrong = [str(i) for i in all_imports() if i.package == library and not is_home(i.file, library)]
    assert wrong == []


def is_home(file: str, library: str) -> bool:
    """A listed file; a bare name stands for every file of that name."""
    return any(home == (file if "/" in home else Path(file).name) for home in HOMES[library])


def test_no_import_cycle_when_modules_load() -> None:
    def module_of(file: str) -> str:
        return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    graph: dict[str, set[str]] = {module_of(p.relative_to(REPOSITORY).as_posix()): set() for p in sources()}
    for found in all_imports():
        if not found.deferred and found.module in graph and found.module != module_of(found.file):
            graph[module_of(found.file)].add(found.module)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def test_only_listed_files_touch_the_environment() -> None:
    files = {path.relative_to(REPOSITORY).as_posix(): tree_of(path) for path in sources()}
    touching = {file: lines for file, tree in files.items() if (lines := environment_lines(tree))}
    assert {f: lines for f, lines in touching.items() if f not in TOUCHES_ENVIRONMENT} == {}
    assert set(TOUCHES_ENVIRONMENT) <= set(touching), "an entry of the list is out of date"


def environment_lines(tree: ast.Module) -> list[int]:
    """Lines that name ``os.environ`` or ``os.getenv``, or import them by name."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.getenv", "os.putenv"))
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and {a.name for a in node.names} & FROM_OS)
    ]


def test_the_checks_see_the_imports_they_judge() -> None:
    """Guards the tests above: a reader that finds nothing would pass them all."""
    found = {(i.file, i.module, i.deferred) for i in all_imports()}
    assert ("cowpath/store.py", "duckdb", False) in found
    assert ("cowpath/store.py", "polars", True) in found
    assert ("cowpath/settings.py", "cowpath.home", False) in found
