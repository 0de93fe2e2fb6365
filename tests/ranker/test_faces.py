"""HTTP and the command line give the engine's own answer, and errors as documents."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cowpath.cli import run
from cowpath.cli.ask import next_page, search_page
from cowpath.settings import Settings
from ranker.app import MAX_BODY_BYTES, create_app
from ranker.engine import Ranker


@pytest.fixture
def client(learned: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(learned)) as client:
        yield client


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[Any, int]:
    """(the JSON document, the exit code) of a command line."""
    with pytest.raises(SystemExit) as done:
        run([*arguments, "--json"])
    return json.loads(capsys.readouterr().out), int(done.value.code or 0)


def test_errors_are_the_same_document_with_the_class_own_codes(
    learned: Settings, client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    over_http = client.get("/v1/next", params={"skill": "deploi-service"})
    in_terminal, code = said(capsys, "next", "deploi-service", "--home", learned.home)

    assert (over_http.status_code, code) == (404, 81)
    assert over_http.json() == in_terminal
    assert in_terminal["error"]["code"] == "unknown_skill"
    assert "deploy-service" in in_terminal["error"]["suggestions"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 422),
        (b'{"k": 3}', 422),
        (b'{"query": "a", "unknown": 1}', 422),
        (b'{"query": "a", "arm": "psychic"}', 422),
        (b'{"query": "a", "arm": "semantic"}', 409),
        (b'{"query": "\xff"}', 422),
        (b'{"query": "' + b"a" * MAX_BODY_BYTES + b'"}', 413),
    ],
)
def test_a_search_that_cannot_be_used_is_a_document(client: TestClient, body: bytes, status: int) -> None:
    answer = client.post("/v1/search", content=body)

    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"code", "type", "message", "retryable", "suggestions"}


def test_a_parameter_of_the_wrong_kind_is_a_document_too(client: TestClient) -> None:
    assert client.get("/v1/next", params={"k": "many"}).json()["error"]["code"] == "bad_input"
    assert client.get("/v1/next", params={"k": 0}).json()["error"]["code"] == "bad_input"
    assert client.get("/v1/why").json()["error"]["code"] == "bad_input"


def test_why_without_a_mining_run_says_so(client: TestClient) -> None:
    answer = client.get("/v1/why", params={"a": "run-tests", "b": "deploy-service"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "nothing_learned")


def test_the_openapi_document_describes_what_is_sent_and_answered(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    body = paths["/v1/search"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    answer = paths["/v1/next"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]

    assert set(body["properties"]) == {"query", "k", "arm"}
    because = answer["properties"]["suggestions"]["items"]["properties"]["because"]
    assert "followed" in because["properties"]
    assert "$ref" not in json.dumps([body, answer])


def test_next_and_keyword_search_in_a_terminal_never_import_torch(learned: Settings) -> None:
    program = (
        "import sys\n"
        "from cowpath.cli import run\n"
        "try:\n"
        f"    run([*sys.argv[1:], '--json', '--home', {learned.home!r}])\n"
        "except SystemExit as done:\n"
        "    assert not done.code, done.code\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'prefect', 'fastapi', 'pandas'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    for arguments in (["next", "run-tests"], ["next", "run-tests", "--query", "deploy"], ["search", "deploy"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr.strip() == "[]"
        assert json.loads(done.stdout)


@pytest.mark.model
def test_hybrid_answers_in_a_terminal_never_import_torch(embedded: Settings) -> None:
    program = (
        "import sys\n"
        "from cowpath.settings import Settings\n"
        "from ranker.engine import Ranker\n"
        "ranker = Ranker(Settings(home=sys.argv[1]))\n"
        "assert ranker.search('deploy').mode == 'hybrid'\n"
        "assert ranker.next(['run-tests'], query='deploy').suggestions\n"
        "print(sorted({'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)))\n"
    )

    done = subprocess.run([sys.executable, "-c", program, embedded.home], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_the_pages_for_people_show_the_reasons(learned: Settings) -> None:
    ranker = Ranker(learned)
    found, after = search_page(ranker.search("deploy", k=1)), next_page(ranker.next(["run-tests"], k=1))

    assert found.splitlines()[0].startswith("keyword search only: ")
    assert "  1. deploy-service  (words: deploy)" in found
    assert "  run-tests  (it precedes deploy-service)" in found
    assert "  deploy-service and freeze-releases (curated)" in found
    assert after.splitlines()[0] == "After run-tests:"
    assert "       because run-tests precedes deploy-service in 18 of 20 sessions with both" in after
    assert search_page(ranker.search("zxcv")).endswith("No known skill is about this.")
