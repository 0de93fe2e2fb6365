"""The pages say what the code does: generated ones are fresh, and nothing public is left out."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cowpath.settings import HELP, Settings, variable

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/*.md", "benchmarks/**/*.md")
    for path in REPOSITORY.glob(pattern)
)

GLOSSARY = """
    event, session, stream, sequence, steps, directly-follows, eventually-follows, window, co-occurrence, support,
    confidence, lift, NPMI, Wilson lower bound, direction ratio, false discovery rate, watermark, late event, journal,
    drain, acknowledge, publish, rejection reason, dead letter, impression, exposure, spontaneous, skill, catalogue,
    edge, relation, provenance, edge layer, precedence, reach, component, wired node, topology bound,
    out-of-neighbourhood share, cold start, query, hit, retriever, fusion (RRF), suggestion, entry retrieval (pull),
    push, hit rate@k, MRR@k, nDCG@k, recall@k, full coverage@k, popularity baseline, time split, author-echo,
    non-echo, McNemar, matched budget
"""


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """``tools/docs.py``, which is no package."""
    spec = importlib.util.spec_from_file_location("docs_generator", REPOSITORY / "tools" / "docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(generator: ModuleType) -> dict[str, str]:
    made: dict[str, str] = generator.pages()
    return made


@pytest.mark.parametrize("name", ["cli.md", "settings.md"])
def test_a_generated_page_is_what_its_generator_writes(name: str, pages: dict[str, str]) -> None:
    assert (DOCS / name).read_text() == pages[name], "run 'make docs'"


def test_every_command_and_option_stands_in_the_command_line_page(generator: ModuleType) -> None:
    text = (DOCS / "cli.md").read_text()
    described = list(walk(generator.describe()["command"]))
    assert len(described) > 10
    for path, command in described:
        assert f"`{path}" in text, path
        for parameter in command["parameters"]:
            for option in parameter["options"]:
                assert option in text, (path, option)


def test_every_command_and_option_has_a_line_of_help(generator: ModuleType) -> None:
    silent = [
        (path, parameter["name"])
        for path, command in walk(generator.describe()["command"])
        for parameter in command["parameters"]
        if parameter["kind"] == "option" and not parameter["help"]
    ]
    assert silent == []
    assert [path for path, command in walk(generator.describe()["command"]) if not command["help"]] == []


def walk(command: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    path = f"{prefix} {command['name']}".strip()
    if prefix:
        yield path, command
    for child in command.get("commands", ()):
        yield from walk(child, path)


def test_every_setting_stands_in_the_settings_page() -> None:
    text = (DOCS / "settings.md").read_text()
    assert set(HELP) == set(Settings.__dataclass_fields__)
    for name in Settings.__dataclass_fields__:
        assert f"| `{name}` | `{variable(name)}` |" in text


def test_every_route_stands_in_the_http_page(tmp_path: Path) -> None:
    from collector.app import create_app
    from ranker.app import create_router

    settings = Settings(home=str(tmp_path / "home"))
    app = create_app(settings)
    app.include_router(create_router(settings))
    text = (DOCS / "http.md").read_text()
    routes = {f"{method.upper()} {path}" for path, methods in app.openapi()["paths"].items() for method in methods}
    assert len(routes) > 5
    assert {route for route in routes if f"`{route}`" not in text} == set()


def test_every_table_and_view_stands_in_the_data_dictionary() -> None:
    text = (DOCS / "data-dictionary.md").read_text()
    made = re.compile(r"create (?:or replace )?(?:table|view) (?:if not exists )?(?:usage\.)?(\w+)")
    files = [path for folder in ("schema", "publish", "views") for path in (REPOSITORY / "sql" / folder).glob("*.sql")]
    names = {name for path in files for name in made.findall(path.read_text())}
    assert {"events", "rejected", "skills", "skill_alias", "edges", "transitions"} <= names
    assert {name for name in names if f"`{name}`" not in text} == set()


def test_every_column_of_an_event_stands_in_the_data_dictionary() -> None:
    schema = (REPOSITORY / "sql" / "schema" / "002_events.sql").read_text()
    table = schema.partition("create table if not exists events (")[2].partition(");")[0]
    columns = re.findall(r"^\s+(\w+) (?:text|bigint|double|timestamp)", table, re.MULTILINE)
    assert {"event_id", "suggested_by", "arrival"} <= set(columns)
    section = (DOCS / "data-dictionary.md").read_text().partition("### `events`")[2].partition("### ")[0]
    assert [column for column in columns if f"`{column}`" not in section] == []


def test_the_glossary_has_every_word_of_the_house() -> None:
    glossary = re.sub(r"\n  +", " ", (DOCS / "glossary.md").read_text())
    defined = set(re.findall(r"\*\*([^*]+)\*\*", glossary))
    wanted = {" ".join(word.split()) for word in GLOSSARY.split(",")}
    assert wanted - defined == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor and linked.suffix == ".md":
            assert anchor in anchors(linked.read_text()), f"{page.name} links to {target}"


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as code forges make them."""
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_the_compose_file_and_the_image_agree() -> None:
    import yaml

    compose = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
    server = compose["services"]["cowpath"]
    assert server["network_mode"] == "host"
    assert server["environment"]["COWPATH_HOST"] == "127.0.0.1"
    image = (REPOSITORY / "Dockerfile").read_text()
    assert "ENV COWPATH_HOME=/data" in image
    assert "\nUSER cowpath\n" in image
    assert all(volume.endswith(":/data") for service in compose["services"].values() for volume in service["volumes"])
