"""One file of golden questions, asked through every face: the same answers, to the letter."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import TextContent

from cowpath.errors import CowpathError
from cowpath.settings import Settings
from ranker.engine import Ranker

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())
Document = dict[str, Any]


@dataclass(frozen=True)
class Face:
    """How one face is asked. An error is ``{"error": ...}`` everywhere, or its words where a face has words only."""

    search: Callable[[Document], Document]
    next: Callable[[Document], Document]


@pytest.fixture(scope="module")
def url(golden: Settings) -> Iterator[str]:
    """A real server over the golden home that tells its hooks facts."""
    server = subprocess.Popen(
        [sys.executable, "-m", "cowpath", "up", "--home", golden.home, "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"COWPATH_PUSH_MOST": "1", "COWPATH_HOLDOUT_SHARE": "0", "COWPATH_PUBLISH_EVERY_S": "0"},
    )
    assert server.stdout is not None
    yield json.loads(server.stdout.readline())["url"]
    server.terminate()
    assert server.wait(timeout=30) == 0
    server.stdout.close()


@pytest.fixture
def faces(golden: Settings, url: str) -> dict[str, Face]:
    stdio = StdioServerParameters(
        command=sys.executable, args=["-m", "cowpath", "mcp", "--home", golden.home], env=dict(os.environ)
    )
    return {
        "engine": engine(Ranker(golden)),
        "http": over_http(url),
        "command line": on_the_command_line(golden),
        "mcp over stdio": over_mcp(lambda: Client(stdio_client(stdio))),
        "mcp over http": over_mcp(lambda: Client(f"{url}/mcp")),
    }


@pytest.mark.parametrize("question", GOLDEN["search"], ids=lambda q: q["ask"]["query"])
def test_a_search_is_the_same_through_every_face(question: Document, faces: dict[str, Face]) -> None:
    answers = {name: face.search(question["ask"]) for name, face in faces.items()}

    answer = answers["engine"]
    assert [match["skill_id"] for match in answer["matches"]][:1] == [question["first"]][: question["matches"]]
    assert len(answer["matches"]) == question["matches"]
    assert [step["skill_id"] for step in answer["neighbors"]] == question["neighbors"]
    assert [conflict["skill_id"] for conflict in answer["conflicts"]] == question["conflicts"]
    assert dict.fromkeys(answers, answer) == answers


@pytest.mark.parametrize("question", GOLDEN["next"], ids=lambda q: ",".join(q["ask"]["skills"]) or "start")
def test_a_suggestion_is_the_same_through_every_face(question: Document, faces: dict[str, Face]) -> None:
    answers = {name: face.next(question["ask"]) for name, face in faces.items()}

    first = answers["engine"]["suggestions"][0]
    assert first["skill_id"] == question["first"]
    assert first["because"]["words"][0].startswith(question["because"])
    assert dict.fromkeys(answers, answers["engine"]) == answers


@pytest.mark.parametrize("question", GOLDEN["errors"], ids=lambda q: q["code"])
def test_an_error_says_the_same_through_every_face(question: Document, faces: dict[str, Face]) -> None:
    errors = {name: face.next(question["ask"])["error"] for name, face in faces.items()}

    assert {name: error["code"] for name, error in errors.items() if "code" in error} == dict.fromkeys(
        ("engine", "http", "command line"), question["code"]
    )
    assert [name for name, error in errors.items() if question["says"] not in error["message"]] == []


@pytest.mark.parametrize("question", GOLDEN["next"], ids=lambda q: ",".join(q["ask"]["skills"]) or "start")
def test_a_hook_is_told_the_same_skill_where_use_proves_it(question: Document, url: str) -> None:
    session = f"golden {question['ask']['skills']}"
    answers = [told(url, session, skill) for skill in question["ask"]["skills"]]

    wanted = question["told"]
    assert [text for text in answers if text] == (
        [f"Recorded use of skills here (cowpath): {wanted}."] if wanted else []
    )


def engine(ranker: Ranker) -> Face:
    def plain(ask: Callable[[], object]) -> Document:
        try:
            answer: Document = msgspec.json.decode(msgspec.json.encode(ask()))
        except CowpathError as error:
            return error.document()
        return answer

    return Face(
        search=lambda asked: plain(lambda: ranker.search(asked["query"], asked["k"])),
        next=lambda asked: plain(lambda: ranker.next(asked["skills"], k=asked["k"])),
    )


def over_http(url: str) -> Face:
    def next_(asked: Document) -> Document:
        found: Document = httpx.get(f"{url}/v1/next", params={"skill": asked["skills"], "k": asked["k"]}).json()
        return found

    def search(asked: Document) -> Document:
        found: Document = httpx.post(f"{url}/v1/search", json=asked).json()
        return found

    return Face(search, next_)


def on_the_command_line(home: Settings) -> Face:
    def run(*arguments: str) -> Document:
        command = [sys.executable, "-m", "cowpath", *arguments, "--home", home.home, "--json"]
        found: Document = json.loads(subprocess.run(command, capture_output=True).stdout)
        return found

    return Face(
        search=lambda asked: run("search", asked["query"], "-k", str(asked["k"])),
        next=lambda asked: run("next", *asked["skills"], "-k", str(asked["k"])),
    )


def over_mcp(connect: Callable[[], Client]) -> Face:
    def call(tool: str, asked: Document) -> Document:
        async def ask() -> Document:
            async with connect() as client:
                result = await client.call_tool(tool, asked)
            (block,) = result.content
            assert isinstance(block, TextContent)
            if result.is_error:
                return {"error": {"message": block.text}}
            assert json.loads(block.text) == result.structured_content
            found: Document = result.structured_content
            return found

        return asyncio.run(ask())

    return Face(lambda asked: call("search_skills", asked), lambda asked: call("suggest_next_skills", asked))


def told(url: str, session: str, skill: str) -> str:
    """What Claude Code's hook of one call is answered; asked again until the server has warmed up."""
    payload = {
        "session_id": session,
        "hook_event_name": "PostToolUse",
        "tool_name": "Skill",
        "tool_use_id": f"{session} {skill}",
        "tool_input": {"skill": skill},
        "tool_response": {"success": True},
    }
    for _ in range(5):
        answer = httpx.post(f"{url}/v1/hooks/claude-code", json=payload).json()
        if answer:
            return str(answer["hookSpecificOutput"]["additionalContext"])
    return ""
