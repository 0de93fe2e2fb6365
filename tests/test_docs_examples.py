"""Every example of the pages that people copy from is run, in the order of its page, beside a collector on a demo home.

What is done with a fenced block follows from its language. A comment before it may say more:

    <!-- example: post PATH TYPE -->          the body of a request, which is stored
    <!-- example: hooks -->                   an agent's settings: each URL and command in them is tried
    <!-- example: answer -->                  what the block before it was told, to the letter
    <!-- example: without a collector -->     run while none holds the home
    <!-- example: not run: REASON -->         counted and listed below
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from cowpath.errors import InputError
from cowpath.home import Home
from cowpath.store import Store

REPOSITORY = Path(__file__).parent.parent
PAGES = ("sql", "http", "integrations", "operations", "mcp", "listing", "edges")
EXAMPLE = re.compile(r"(?:<!-- example: (?P<how>.+?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
NOT_RUN: tuple[str, ...] = ()
"""Page and reason of every example that no test runs."""

HOOK_CALLS: dict[str, dict[str, Any]] = {
    "claude-code": {
        "session_id": "s-doc", "hook_event_name": "PostToolUse", "tool_name": "Skill", "tool_use_id": "toolu_{n}",
        "tool_input": {"skill": "triage-alert"}, "tool_response": {"success": True, "commandName": "triage-alert"},
    },
    "codex": {
        "session_id": "s-doc", "hook_event_name": "PostToolUse", "turn_id": "t", "tool_name": "Bash",
        "tool_use_id": "call_{n}", "tool_input": {"command": "cat skills/triage-alert/SKILL.md"},
    },
    "cursor": {
        "conversation_id": "s-doc", "hook_event_name": "postToolUse", "generation_id": "g", "tool_name": "Read",
        "tool_use_id": "call_{n}", "tool_input": {"path": "/p/.cursor/skills/triage-alert/SKILL.md"},
    },
    "gemini": {
        "session_id": "s-doc-{n}", "hook_event_name": "AfterTool", "timestamp": "2026-11-30T12:00:00Z",
        "tool_name": "activate_skill", "tool_input": {"name": "triage-alert"}, "tool_response": {"llmContent": ""},
    },
    "copilot": {
        "sessionId": "s-doc-{n}", "timestamp": 1788627189374.0, "toolName": "skill",
        "toolArgs": {"skill": "triage-alert"},
    },
}  # fmt: skip
"""Harness -> what its hook sends when a skill is called; ``{n}`` makes each call another one."""

FILES = {"calls.csv": "conversation,tool,started\nc1,triage-alert,2026-11-30T12:00:00Z\n"}
"""Files that examples read from the folder they are run in."""

OPEN_CODE = """
import {{ Cowpath }} from "./cowpath.mjs";
const hooks = await Cowpath();
await hooks["tool.execute.after"]({{ tool: "skill", sessionID: "s", callID: "c", args: {{ name: "triage-alert" }} }});
await hooks["command.execute.before"]({{ command: "query-logs", sessionID: "s" }});
"""


@dataclass(frozen=True)
class Example:
    page: str
    line: int
    how: str
    language: str
    text: str

    def __str__(self) -> str:
        return f"docs/{self.page}.md:{self.line}"


def examples(page: str) -> list[Example]:
    text = (REPOSITORY / "docs" / f"{page}.md").read_text()
    found = [
        Example(page, text.count("\n", 0, m.start("text")) + 1, m["how"] or "", m["language"], m["text"])
        for m in EXAMPLE.finditer(text)
    ]
    assert text.count("```") == 2 * len(found), f"{page}: a block that does not end or is indented"
    assert text.count("<!-- example:") == sum(bool(e.how) for e in found), f"{page}: a comment before no block"
    return found


def test_what_no_test_runs_is_known_and_has_a_reason() -> None:
    reasons = [(e, e.how.removeprefix("not run: ")) for page in PAGES for e in examples(page) if "not run" in e.how]
    assert tuple(f"{example.page}: {reason}" for example, reason in reasons) == NOT_RUN
    assert sum(len(examples(page)) for page in PAGES) > 25


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_do_what_it_says(page: str, demo_home: Home, tmp_path: Path) -> None:
    with Reader.at_work(demo_home, tmp_path) as reader:
        for example in examples(page):
            reader.do(example)


@pytest.fixture(scope="module")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The demo's log, taken in, published and mined, with one event that was refused."""
    folder = tmp_path_factory.mktemp("demo")
    log = gzip.decompress((REPOSITORY / "examples" / "demo" / "events.jsonl.gz").read_bytes())
    (folder / "events.jsonl").write_bytes(log + b'{"event_id": "refused", "skill_id": "triage-alert"}\n')
    for words in (
        ["catalogue", "sync", str(REPOSITORY / "examples" / "demo" / "skills")],
        ["import", "jsonl", str(folder / "events.jsonl")],
        ["mine"],
        ["publish"],
    ):
        command = [sys.executable, "-m", "cowpath", *words, "--home", str(folder / "home")]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment())
        assert ran.returncode == 0, (words, ran.stdout, ran.stderr)
    return Home(folder / "home")


class Reader:
    """Somebody who does what a page says: a home, a collector, a shell in a folder of their own."""

    def __init__(self, home: Home, folder: Path) -> None:
        self.home = home
        self.folder = folder
        self.port, self.quack_port = free_port(), free_port()
        self.said = ""
        self._calls = 0
        self._server: subprocess.Popen[str] | None = None
        self._environment = environment() | {
            "COWPATH_HOME": str(home.root),
            "COWPATH_URL": self.url,
            "COWPATH_PORT": str(self.port),
            "HOME": str(folder / "user"),
            "USER": "dana",
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY),
            "NO_PROXY": "localhost,127.0.0.1",
        }

    @classmethod
    @contextmanager
    def at_work(cls, demo: Home, folder: Path) -> Iterator[Reader]:
        if shutil.which("curl") is None:
            pytest.fail("the examples use curl; install it")
        for name in ("bin", "curl", "user", "work"):
            (folder / name).mkdir()
        command = folder / "bin" / "cowpath"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m cowpath "$@"\n')
        command.chmod(0o755)
        # Where the page's curl would print an error document and end well, it ends with 22.
        (folder / "curl" / ".curlrc").write_text("fail-with-body\n")
        for name, text in FILES.items():
            (folder / "work" / name).write_text(text)
        shutil.copytree(demo.root, folder / "home")
        reader = cls(Home(folder / "home"), folder)
        reader.start()
        try:
            yield reader
        finally:
            reader.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        quack = {"COWPATH_QUACK_PORT": str(self.quack_port)} if quack_loads() else {}
        self._server = subprocess.Popen(
            [sys.executable, "-m", "cowpath", "up", "--json"],
            cwd=self.folder,
            env=self._environment | quack,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._server.stdout is not None
        assert json.loads(self._server.stdout.readline())["url"] == self.url

    def stop(self) -> None:
        if self._server:
            self._server.terminate()
            self._server.communicate(timeout=60)
        self._server = None

    def do(self, example: Example) -> None:
        """Run one example; the test fails where it does not do what the page says."""
        text = self._here(example.text)
        kind = example.how.partition(" ")[0] or example.language
        actions: dict[str, Callable[[], None]] = {
            "not": lambda: None,
            "answer": lambda: self._expect_answer(example, text),
            "post": lambda: self._post(example, text),
            "hooks": lambda: self._try_hooks(example, json.loads(text)),
            "without": lambda: self._without_a_collector(example, text),
            "sh": lambda: self._shell(example, text),
            "python": lambda: self._python(example, text),
            "sql": lambda: self._sql(example, text),
            "js": lambda: self._node(example, text),
            "json": lambda: json.loads(text),
        }
        if kind not in actions:
            pytest.fail(f"{example}: a block in {kind or 'no language'} says neither how it is run nor why not")
        actions[kind]()

    def _here(self, text: str) -> str:
        """The page's ports and token, as they are here."""
        token = self.home.local_key.read_text() if self.home.local_key.exists() else ""
        here = {"8710": str(self.port), "9494": str(self.quack_port), "token = '...'": f"token = '{token}'"}
        for there, value in here.items():
            text = text.replace(there, value)
        return text

    def _run(self, example: Example, command: list[str], *, stdin: str = "", **variables: str) -> str:
        ran = subprocess.run(
            command,
            cwd=self.folder / "work",
            env=self._environment | variables,
            input=stdin,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, f"{example} ended with {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def _shell(self, example: Example, text: str) -> None:
        bash = ["bash", "-eu", "-o", "pipefail", "-c", text]
        self.said = self._run(example, bash, CURL_HOME=str(self.folder / "curl"))
        assert '"rows":[]' not in self.said, f"{example}: a question about nothing\n{self.said}"

    def _without_a_collector(self, example: Example, text: str) -> None:
        self.stop()
        self._shell(example, text)
        self.start()

    def _expect_answer(self, example: Example, text: str) -> None:
        assert json.loads(self.said) == json.loads(text), example

    def _python(self, example: Example, text: str) -> None:
        with self._more_events(text.count(".record(")):
            self._run(example, [sys.executable, "-c", text])

    def _node(self, example: Example, text: str) -> None:
        if shutil.which("node") is None:
            warnings.warn(f"{example} was not run: there is no node here", stacklevel=1)
            return
        (self.folder / "work" / "cowpath.mjs").write_text(text)
        (self.folder / "work" / "run.mjs").write_text(OPEN_CODE.format())
        with self._more_events(2):
            self._run(example, ["node", "run.mjs"])

    def _sql(self, example: Example, text: str) -> None:
        """In a DuckDB of the reader's own."""
        if "quack_query" in text and not quack_loads():
            warnings.warn(f"{example} was not run: quack cannot be loaded here", stacklevel=1)
            return
        program = f"from cowpath.store import Store\nstore = Store.open()\n{'store.load_quack()' * ('quack' in text)}\n"
        self.said = self._run(example, [sys.executable, "-c", f"{program}print(store.rows({text!r}))"])
        assert self.said != "[]\n", example

    def _post(self, example: Example, text: str) -> None:
        _, path, media = example.how.split()
        with self._more_events(1):
            answer = httpx.post(f"{self.url}{path}", content=text, headers={"Content-Type": media}, trust_env=False)
            assert answer.status_code == 200, (str(example), answer.text)

    def _try_hooks(self, example: Example, settings: object) -> None:
        """Every URL is posted a call, every command is given one."""
        tried = 0
        for key, value in entries(settings):
            if key not in ("url", "command", "bash"):
                continue
            (harness,) = re.findall(r"/v1/hooks/([\w-]+)", value)
            self._calls += 1
            call = json.dumps(HOOK_CALLS[harness]).replace("{n}", str(self._calls))
            with self._more_events(1):
                if key == "url":
                    httpx.post(value, content=call, trust_env=False).raise_for_status()
                else:
                    self._run(example, ["sh", "-c", value], stdin=call)
            tried += 1
        assert tried, f"{example} has neither a URL nor a command"

    @contextmanager
    def _more_events(self, n: int) -> Iterator[None]:
        """What is done in the block brings so many events, no fewer and no more."""
        before = self._events()
        yield
        deadline = time.monotonic() + 10
        while self._events() < before + n and time.monotonic() < deadline:
            time.sleep(0.05)
        assert self._events() == before + n

    def _events(self) -> int:
        answer = httpx.post(f"{self.url}/v1/sql", json={"sql": "select count(*) from events"}, headers=self._key())
        ((n,),) = answer.raise_for_status().json()["rows"]
        return int(n)

    def _key(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.home.local_key.read_text()}"}


def entries(document: object) -> Iterator[tuple[str, str]]:
    """Every text of a JSON document with the key it stands under."""
    if isinstance(document, dict):
        for key, value in document.items():
            if isinstance(value, str):
                yield key, value
            yield from entries(value)
    elif isinstance(document, list):
        for value in document:
            yield from entries(value)


def environment() -> dict[str, str]:
    """This process's environment without its own cowpath settings."""
    return {k: v for k, v in os.environ.items() if not k.startswith("COWPATH_") and k != "PREFECT_API_URL"}


def quack_loads() -> bool:
    with suppress(InputError), Store.open() as store:
        store.load_quack()
        return True
    return False


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
