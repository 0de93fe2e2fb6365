"""The data dictionary and the published schema say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from collector.service import Collector
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.store import Store, sql_names

PAGE = (Path(__file__).parent.parent / "docs" / "data-dictionary.md").read_text()


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Table or view -> its columns, as they are published."""
    settings = Settings(home=str(tmp_path_factory.mktemp("dictionary")), publish_every_s=0)
    with Collector(settings) as collector:
        collector.publish()
    with Store.open(settings.at.usage, read_only=True) as usage:
        found: dict[str, set[str]] = {}
        for table, column in usage.rows("select table_name, column_name from duckdb_columns() where not internal"):
            found.setdefault(table, set()).add(column)
    return found


def described() -> dict[str, str]:
    """Table or view -> what the page says of it."""
    tables = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL))
    views = dict(re.findall(r"^\| `(\w+)` \|(.*\|.*)\|$", PAGE.partition("## Views of")[2], re.MULTILINE))
    return tables | views


def test_every_published_table_and_view_is_described(columns: dict[str, set[str]]) -> None:
    assert set(columns) - set(described()) == set()


@pytest.mark.parametrize("name", ["events", "counted", "rejected", "skills", "skill_alias", "edges"])
def test_every_column_of_a_published_table_is_described(name: str, columns: dict[str, set[str]]) -> None:
    named = set(re.findall(r"`(\w+)`", described()[name]))
    assert columns[name] - named == set()


def test_the_page_names_every_column_of_every_view_and_no_other(columns: dict[str, set[str]]) -> None:
    pages = described()
    pages["skill_calls"] += pages["events"]
    pages["edge_evidence"] += PAGE.partition("The evidence of a learned edge")[2]
    views = {name.partition("_")[2] for name in sql_names("views")}
    named = {view: set(re.findall(r"`(\w+)`", pages[view])) for view in views}
    assert {view: columns[view] - named[view] for view in views if columns[view] - named[view]} == {}
    more = {view: named[view] - columns[view] for view in views - {"skill_calls", "edge_evidence"}}
    assert {view: names for view, names in more.items() if names} == {}


def test_every_path_of_a_home_is_described() -> None:
    paths = [value.fget(Home(Path())) for value in vars(Home).values() if isinstance(value, property) and value.fget]
    table = PAGE.partition("## Tables of")[0]
    assert len(paths) > 10
    assert [path.name for path in paths if f"`{path.name}`" not in table and f"`{path.name}/" not in table] == []
