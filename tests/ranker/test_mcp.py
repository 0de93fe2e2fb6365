"""A real MCP client drives the server over stdio, over HTTP and in process; every answer meets its own schema."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import jsonschema
import pytest
from fastapi.testclient import TestClient
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent, TextResourceContents

from collector.access.keys import Scope, add_key
from cowpath.cli import COMMANDS
from cowpath.event import Event
from cowpath.settings import Settings
from cowpath.skill import Catalogue, Skill, write_catalogue
from miner.transitions import fit
from ranker.app import create_app
from ranker.engine import Ranker
from ranker.mcp import server
from ranker.schema import schema_of
from ranker.tools import MOST, TOOLS, Desk

SCOPES: tuple[Scope, ...] = ("read", "ingest", "admin")
NAMES = [tool.name for tool in TOOLS]


def call(settings: Settings, name: str, arguments: dict[str, Any], taken: list[Event] | None = None) -> CallToolResult:
    """What the server answers, through the client's own validation of the answer."""

    async def ask() -> CallToolResult:
        record = taken.extend if taken is not None else lambda events: None
        async with Client(server(Desk(settings, Ranker(settings, record=record), record))) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(ask())


def words(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


GOOD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search_skills", {"query": "deploy to production"}),
    ("search_skills", {"query": "zxcv qwerty"}),
    ("suggest_next_skills", {"skills": ["run-tests"]}),
    ("suggest_next_skills", {}),
    ("suggest_next_skills", {"skills": ["sql-tuning"], "session": "s1", "query": "deploy"}),
    ("record_skill_call", {"skill": "run-tests", "session": "s1", "outcome": "ok"}),
    ("give_feedback", {"better": "roll-back", "worse": "lint-code", "query": "undo"}),
    ("give_feedback", {"better": "nobody", "worse": "lint-code", "query": "undo"}),
)


@pytest.mark.parametrize(("name", "arguments"), GOOD)
def test_every_answer_meets_the_schema_of_its_tool_and_is_told_as_text_too(
    name: str, arguments: dict[str, Any], learned: Settings
) -> None:
    result = call(learned, name, arguments)

    assert not result.is_error
    jsonschema.validate(result.structured_content, schema(name))
    assert json.loads(words(result)) == result.structured_content


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("search_skills", {"query": " "}, "query"),
        ("search_skills", {}, "missing required field `query`"),
        ("search_skills", {"query": "a", "k": MOST + 1}, "k"),
        ("search_skills", {"query": "a", "arm": "semantic"}, "no search by meaning"),
        ("search_skills", {"query": "a", "colour": "red"}, "unknown field `colour`"),
        ("suggest_next_skills", {"skills": ["run-test"]}, "did you mean 'run-tests'"),
        ("suggest_next_skills", {"skills": "run-tests"}, "Expected `array`"),
        ("record_skill_call", {"skill": "run-tests"}, "missing required field `session`"),
        ("explain", {"before": "run-tests", "after": "deploy-service"}, "cowpath mine"),
        ("forget_everything", {}, "no tool 'forget_everything'"),
    ],
)
def test_an_error_is_words_that_the_model_can_read_and_act_on(
    name: str, arguments: dict[str, Any], says: str, learned: Settings
) -> None:
    result = call(learned, name, arguments)

    assert result.is_error
    assert says in words(result)


@pytest.mark.parametrize("name", ["search_skills", "suggest_next_skills"])
def test_a_home_where_nothing_is_answers_or_says_why(name: str, tmp_path: Any) -> None:
    empty = Settings(home=str(tmp_path / "none"))

    result = call(empty, name, {"query": "anything"})

    if result.is_error:
        assert "nothing is learned" in words(result)
    else:
        jsonschema.validate(result.structured_content, schema(name))


def test_the_largest_answer_is_one_that_agents_take(learned: Settings) -> None:
    """Claude Code refuses more than 25,000 tokens; four characters are about one."""
    names = [f"deploy-{number}" for number in range(40)]
    write_catalogue(
        learned.at.catalogue, Catalogue(Skill(skill_id=n, name=n, description="deploy it " * 1_000) for n in names)
    )
    fit([[name, names[0]] for name in names] * 3).save(learned.at.learned / "next.npz")

    found = call(learned, "search_skills", {"query": "deploy", "k": MOST})
    after = call(learned, "suggest_next_skills", {"skills": [names[0]], "k": MOST})

    assert len(found.structured_content["matches"]) == len(after.structured_content["suggestions"]) == MOST
    for result in (found, after):
        assert 2 * len(words(result)) < 4 * 25_000


def test_a_fault_of_ours_is_told_without_breaking_the_connection(
    learned: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Ranker, *arguments: object, **named: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(Ranker, "search", broken)

    result = call(learned, "search_skills", {"query": "deploy"})

    assert result.is_error
    assert "RuntimeError: boom; this is a fault of ours" in words(result)


def test_a_recorded_call_is_an_event_and_a_repeat_is_the_same_one(learned: Settings) -> None:
    taken: list[Event] = []
    asked = {"skill": "ops:run-tests", "session": "s1", "outcome": "ok", "suggested_by": "l1", "call_id": "c1"}

    first, again = (call(learned, "record_skill_call", asked, taken) for _ in range(2))

    assert first.structured_content == again.structured_content
    assert first.structured_content["known"]
    assert [(e.skill, e.session_id, e.kind, e.outcome, e.suggested_by) for e in taken] == [
        ("ops:run-tests", "s1", "activated", "ok", "l1")
    ] * 2
    assert taken[0].event_id == taken[1].event_id


def test_what_a_named_session_is_shown_leaves_an_impression(learned: Settings) -> None:
    taken: list[Event] = []

    result = call(learned, "suggest_next_skills", {"skills": ["run-tests"], "session": "s1"}, taken)

    assert [event.kind for event in taken] == ["impression"]
    assert result.structured_content["policy"] in ("served", "holdout")


def test_every_tool_is_listed_with_words_and_both_schemas(learned: Settings) -> None:
    async def ask() -> Any:
        async with Client(server(Desk(learned, Ranker(learned), lambda events: None))) as client:
            return await client.list_tools()

    listed = {tool.name: tool for tool in asyncio.run(ask()).tools}

    assert list(listed) == NAMES
    for tool in TOOLS:
        said = listed[tool.name]
        assert len(said.description or "") > 40
        assert said.input_schema["type"] == said.output_schema["type"] == "object"
        jsonschema.Draft202012Validator.check_schema(said.input_schema)
        jsonschema.Draft202012Validator.check_schema(said.output_schema)
        assert said.annotations.read_only_hint == (tool.scope == "read")


def test_a_skill_is_a_resource_by_any_of_its_names_and_one_nobody_knows_is_told(learned: Settings) -> None:
    async def read(uri: str) -> str:
        async with Client(server(Desk(learned, Ranker(learned), lambda events: None))) as client:
            (template,) = (await client.list_resource_templates()).resource_templates
            assert template.uri_template == "skill://{skill_id}"
            try:
                (content,) = (await client.read_resource(uri)).contents
            except MCPError as error:
                return f"error: {error.message}"
            assert isinstance(content, TextResourceContents)
            return content.text

    assert asyncio.run(read("skill://ops%3Arun-tests")).startswith("run-tests. Run the project's test suite")
    assert asyncio.run(read("skill://run-test")).startswith("error: no skill 'run-test'; did you mean 'run-tests'")


def test_every_tool_stands_in_the_page_with_its_scope_and_its_command_is_ours() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| `(\w+)` \|$", page, re.MULTILINE))
    (config,) = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", page, re.DOTALL) if "command" in text)

    assert rows == {tool.name: tool.scope for tool in TOOLS}
    assert config["mcpServers"]["cowpath"] == {"command": "cowpath", "args": ["mcp"]}
    assert COMMANDS["mcp"][0] == "cowpath.cli.mcp:mcp"


def test_over_stdio_nothing_but_the_protocol_is_on_stdout(learned: Settings) -> None:
    async def ask() -> Any:
        parameters = StdioServerParameters(
            command=sys.executable, args=["-m", "cowpath", "mcp", "--home", learned.home], env=dict(os.environ)
        )
        async with Client(stdio_client(parameters)) as client:
            return await client.call_tool("suggest_next_skills", {"skills": ["run-tests"]})

    result = asyncio.run(ask())
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}}  # fmt: skip
    raw = subprocess.run(
        [sys.executable, "-m", "cowpath", "mcp", "--home", learned.home],
        input=json.dumps(hello).encode() + b"\n",
        capture_output=True,
        check=True,
    )

    assert result.structured_content["suggestions"][0]["skill_id"] == "deploy-service"
    assert [json.loads(line)["id"] for line in raw.stdout.splitlines()] == [1]


def schema(name: str) -> dict[str, Any]:
    (kind,) = (tool.answers for tool in TOOLS if tool.name == name)
    return schema_of(kind) if kind else {"type": "object"}


@pytest.fixture
def keyed(learned: Settings) -> Iterator[tuple[str, dict[str, str]]]:
    """A real server over a home with keys, and a key for each scope."""
    keys: dict[str, str] = {scope: add_key(learned.at, scope, (scope,)) for scope in SCOPES}
    server = subprocess.Popen(
        [sys.executable, "-m", "cowpath", "up", "--home", learned.home, "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    yield json.loads(server.stdout.readline())["url"], keys
    server.terminate()
    assert server.wait(timeout=30) == 0
    server.stdout.close()


def test_over_http_a_key_reaches_the_tools_of_its_scope(keyed: tuple[str, dict[str, str]], learned: Settings) -> None:
    url, keys = keyed
    asked: dict[str, dict[str, Any]] = {
        "search_skills": {"query": "deploy"},
        "record_skill_call": {"skill": "run-tests", "session": "over-mcp"},
    }

    async def ask(key: str, tool: str) -> CallToolResult:
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            return await client.call_tool(tool, asked[tool])

    failed = {
        (scope, tool): asyncio.run(ask(keys[scope], tool)).is_error for scope in ("read", "admin") for tool in asked
    }

    assert failed == {
        ("read", "search_skills"): False,
        ("read", "record_skill_call"): True,
        ("admin", "search_skills"): False,
        ("admin", "record_skill_call"): False,
    }
    assert httpx.post(f"{url}/mcp", json={}).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Host": "evil.example"}, 421), ({"Host": "localhost:8710", "Origin": "http://evil.example"}, 403)],
)
def test_a_page_from_elsewhere_is_refused(headers: dict[str, str], status: int, learned: Settings) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}

    with TestClient(create_app(learned)) as client:
        accept = {"Accept": "application/json, text/event-stream"}
        answer = client.post("/mcp", json=hello, headers=accept | headers)
        fine = client.post("/mcp", json=hello, headers=accept | {"Host": "localhost:8710"})

    assert answer.status_code == status
    assert fine.status_code not in (403, 421)
