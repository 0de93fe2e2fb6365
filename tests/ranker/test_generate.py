"""Generating edges over a socket, against a server that speaks both wire formats, and all that goes wrong there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jsonschema
import numpy as np
import pytest

from cowpath.edge import Edge, read_layer, write_layer
from cowpath.errors import InputError, LanguageModelFailed, NoLanguageModel
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.skill import Catalogue, Skill, read_catalogue, text_hash, write_catalogue
from cowpath.vectors import write_vectors
from ranker.answers import answers_file, read_answers
from ranker.candidates import candidates
from ranker.engine import Ranker
from ranker.generate import generate
from ranker.language_model import LanguageModel
from ranker.layers import build_layers
from ranker.two_views import prerequisites

APIS = ("anthropic", "openai")


class ModelServer:
    """A language model of few words: ``answers`` by the skill asked about, after the ``trouble`` that comes first."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.trouble: list[tuple[int, dict[str, str]]] = []
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # the library's name
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                status, headers, document = server.respond(self.path, body)
                data = json.dumps(document).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *words: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def asked(self) -> list[str]:
        """The skills asked about, in id order."""
        return sorted(skill_asked(body) for _, _, body in self.requests)

    def respond(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, str], dict[str, Any]]:
        if self.trouble:
            status, headers = self.trouble.pop(0)
            return status, headers, {"type": "error", "error": {"type": "some_error", "message": "not this time"}}
        answer = self.answers.get(skill_asked(body), {"needs": "", "edges": []})
        return 200, {}, anthropic(answer, body) if path == "/v1/messages" else openai(answer, body)


def skill_asked(body: dict[str, Any]) -> str:
    (found,) = re.findall(r'<skill id="([^"]+)">', body["messages"][-1]["content"])
    return str(found)


def anthropic(answer: Any, body: dict[str, Any]) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "toolu_1", "name": body["tool_choice"]["name"], "input": answer}
    content, stop = {
        "refuse": ([], "refusal"),
        "truncate": ([{**call, "input": {"needs": "half a"}}], "max_tokens"),
        "words": ([{"type": "text", "text": "They belong together."}], "end_turn"),
        "bad input": ([{**call, "input": {"edges": "none"}}], "tool_use"),
    }.get(answer if isinstance(answer, str) else "", ([{"type": "text", "text": "Well:"}, call], "tool_use"))
    usage = {"input_tokens": 700, "output_tokens": 50, "cache_read_input_tokens": 300, "cache_creation_input_tokens": 0}
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"],
        "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def openai(answer: Any, body: dict[str, Any]) -> dict[str, Any]:
    def call(arguments: str) -> dict[str, Any]:
        function = {"name": body["tool_choice"]["function"]["name"], "arguments": arguments}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": function}],
        }

    message, finish = {
        "refuse": ({"role": "assistant", "content": None, "refusal": "I will not."}, "stop"),
        "truncate": (call('{"needs": "half a'), "length"),
        "words": ({"role": "assistant", "content": "They belong together."}, "stop"),
        "bad input": (call('{"edges": [}'), "tool_calls"),
    }.get(answer if isinstance(answer, str) else "", (call(json.dumps(answer)), "stop"))
    usage = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [choice],
        "usage": usage,
    }


@pytest.fixture
def server() -> Iterator[ModelServer]:
    server = ModelServer()
    yield server
    server.close()


@pytest.fixture
def settings(home: Home, server: ModelServer) -> Settings:
    """Five skills: deploy and roll-out are alike, deploy names build and check, learned ties build to announce."""
    skills = {
        "announce": ("Tell users about a release.", ""),
        "build": ("Make the package.", ""),
        "check": ("Prove that a package works.", ""),
        "deploy": ("Put a package on the servers.", "Run `build`, then the check skill."),
        "roll-out": ("Put a package on some servers.", ""),
    }
    known = Catalogue(Skill(skill_id=i, name=i, description=d, body=b) for i, (d, b) in skills.items())
    write_catalogue(home.catalogue, known)
    angles = {"announce": 0.0, "build": 1.5, "check": 3.0, "deploy": 4.5, "roll-out": 4.6}
    vectors = {text_hash(known.skills[s].text): np.array([np.cos(a), np.sin(a)], np.float32) for s, a in angles.items()}
    write_vectors(home.embeddings, vectors)
    learned = Edge(source="build", relation="precedes", target="announce", status="confirmed", provenance="learned")
    write_layer(home.edges, "learned", [learned])
    return speaking("anthropic", home, server)


def speaking(api: str, home: Home, server: ModelServer, **more: Any) -> Settings:
    url = server.url if api == "anthropic" else f"{server.url}/v1"
    return Settings(
        home=str(home.root), llm_api=api, llm_url=url, llm_model="small", llm_key="k-1",
        llm_input_price=1.0, llm_output_price=10.0, **more,
    )  # fmt: skip


def edge(text: str, confidence: float = 0.9) -> dict[str, Any]:
    source, relation, target = text.split()
    return {"source": source, "relation": relation, "target": target, "confidence": confidence, "reason": "It says so."}


def answer(*edges: dict[str, Any], needs: str = "") -> dict[str, Any]:
    return {"needs": needs, "edges": list(edges)}


def served(settings: Settings) -> list[str]:
    return [f"{e.source} {e.relation} {e.target}" for e in read_layer(settings.at.edges, "llm")]


def test_candidates_reach_beyond_the_embedding(settings: Settings) -> None:
    found = candidates(read_catalogue(settings.at.catalogue), {}, settings)

    assert found.of == {
        "announce": {"build": ["learned"]},
        "build": {"announce": ["learned"], "deploy": ["mention"], "check": ["co_mention"]},
        "check": {"deploy": ["mention"], "build": ["co_mention"]},
        "deploy": {"build": ["mention"], "check": ["mention"], "roll-out": ["neighbour"]},
        "roll-out": {"deploy": ["neighbour"]},
    }
    assert found.missing == {"need": "no skill tells what it needs"}


@pytest.mark.parametrize("api", APIS)
def test_a_model_is_asked_once_for_each_skill_and_made_to_call_the_tool(
    api: str, settings: Settings, server: ModelServer
) -> None:
    settings = speaking(api, settings.at, server)
    server.answers = {
        "deploy": answer(edge("deploy requires build"), edge("deploy specializes roll-out", 0.4)),
        "check": answer(edge("check verifies deploy"), needs="A package."),
    }

    report = generate(settings)

    assert served(settings) == ["check verifies deploy", "deploy requires build", "deploy specializes roll-out"]
    assert [e.status for e in read_layer(settings.at.edges, "llm")] == ["confirmed", "confirmed", "candidate"]
    assert server.asked() == ["announce", "build", "check", "deploy", "roll-out"]
    assert report.outcomes == {"answered": 5}
    assert report.cost is not None
    assert (report.cost.calls, report.cost.input_tokens, report.cost.output_tokens) == (5, 5000, 250)
    assert report.cost.dollars == 0.0075
    for path, headers, body in server.requests:
        if api == "anthropic":
            tool, schema = body["tools"][0]["name"], body["tools"][0]["input_schema"]
            assert (path, headers["x-api-key"], headers["anthropic-version"]) == ("/v1/messages", "k-1", "2023-06-01")
            assert body["tool_choice"] == {"type": "tool", "name": tool, "disable_parallel_tool_use": True}
        else:
            tool, schema = body["tools"][0]["function"]["name"], body["tools"][0]["function"]["parameters"]
            assert (path, headers["authorization"]) == ("/v1/chat/completions", "Bearer k-1")
            assert body["tool_choice"] == {"type": "function", "function": {"name": tool}}
        jsonschema.Draft202012Validator.check_schema(schema)
        assert "similar_to" not in schema["properties"]["edges"]["items"]["properties"]["relation"]["enum"]
        jsonschema.validate(server.answers.get(skill_asked(body), answer()), schema)


@pytest.mark.parametrize("api", APIS)
def test_what_is_no_answer_is_counted_kept_and_asked_again_only_by_wish(
    api: str, settings: Settings, server: ModelServer
) -> None:
    settings = speaking(api, settings.at, server)
    server.answers = {"announce": "refuse", "build": "truncate", "check": "words", "deploy": "bad input"}

    first = generate(settings)
    second = generate(settings)

    assert first.outcomes == {"answered": 1, "invalid": 2, "refused": 1, "truncated": 1}
    assert (second.outcomes, second.unchanged, len(server.requests)) == ({}, 5, 5)
    kept = {a.skill_id: a.outcome for a in read_answers(settings.at.edges)}
    assert kept == {
        "announce": "refused", "build": "truncated", "check": "invalid", "deploy": "invalid", "roll-out": "answered",
    }  # fmt: skip

    server.answers = {"deploy": answer(edge("deploy requires build"))}
    third = generate(settings, retry=True)

    assert (third.outcomes, served(settings)) == ({"answered": 4}, ["deploy requires build"])


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("status", [429, 529, 500])
def test_a_busy_server_is_asked_again_after_the_time_it_names(
    api: str, status: int, settings: Settings, server: ModelServer
) -> None:
    settings = speaking(api, settings.at, server, llm_at_once=1)
    server.trouble = [(status, {"Retry-After": "7"}), (status, {})]
    waits: list[float] = []

    with LanguageModel(settings, sleep=waits.append) as model:
        report = generate(settings, model=model, limit=1)

    assert report.outcomes == {"answered": 1}
    assert waits[0] == 7.0
    assert 0 < waits[1] < 7
    assert len(server.requests) == 3


def test_a_run_that_fails_keeps_what_was_answered_and_the_next_goes_on(settings: Settings, server: ModelServer) -> None:
    settings = speaking("anthropic", settings.at, server, llm_at_once=1)
    generate(settings, limit=2)
    server.trouble = [(529, {})] * 6

    with (
        LanguageModel(settings, sleep=lambda _: None) as model,
        pytest.raises(LanguageModelFailed, match="529, 6 times; 0 of 3"),
    ):
        generate(settings, model=model)
    report = generate(settings)

    assert (report.unchanged, report.outcomes) == (2, {"answered": 3})


def test_a_refused_key_stops_at_once_and_a_wait_that_is_too_long_too(settings: Settings, server: ModelServer) -> None:
    settings = speaking("anthropic", settings.at, server, llm_at_once=1)
    server.trouble = [(401, {}), (429, {"Retry-After": "3600"})]

    with pytest.raises(LanguageModelFailed, match=r"401: .*not this time"):
        generate(settings)
    with pytest.raises(LanguageModelFailed, match="wants 3600 s of quiet"):
        generate(settings)

    assert len(server.requests) == 2
    assert read_answers(settings.at.edges) == []


def test_only_changed_descriptions_are_asked_about_and_old_answers_go(settings: Settings, server: ModelServer) -> None:
    server.answers = {"deploy": answer(edge("deploy requires build"))}
    generate(settings)
    skills = read_catalogue(settings.at.catalogue).skills
    deploy = skills.pop("deploy")
    changed = Skill(skill_id="deploy", name="deploy", description="Something else.", body=deploy.body)
    write_catalogue(settings.at.catalogue, Catalogue([*skills.values(), changed]))
    server.requests.clear()
    server.answers = {}

    report = generate(settings)

    assert server.asked() == ["deploy"]
    assert report.unchanged == 4
    assert served(settings) == []


def test_nothing_is_asked_without_a_model_and_a_dry_run_needs_none(settings: Settings, server: ModelServer) -> None:
    bare = Settings(home=settings.home)

    with pytest.raises(NoLanguageModel, match="COWPATH_LLM_MODEL, COWPATH_LLM_KEY not set"):
        generate(bare)
    with pytest.raises(NoLanguageModel, match="COWPATH_LLM_URL"):
        generate(Settings(home=settings.home, llm_api="openai", llm_model="small"))
    with pytest.raises(InputError, match="anthropic or openai"):
        generate(Settings(home=settings.home, llm_api="other"))
    report = generate(bare, dry_run=True)

    assert (report.estimate.calls, report.estimate.output_tokens, report.estimate.dollars) == (5, 2000, None)
    assert report.estimate.input_tokens > 2000
    assert (report.cost, report.left, server.requests) == (None, 5, [])
    assert not answers_file(settings.at.edges).exists()


def test_contradictions_are_counted_and_never_served(settings: Settings, server: ModelServer) -> None:
    server.answers = {
        "build": answer(edge("build precedes deploy"), edge("build precedes check"), edge("announce requires build")),
        "check": answer(edge("check precedes deploy"), edge("build precedes check", 0.6)),
        "deploy": answer(
            edge("deploy feeds_into build"),  # against what build said of the order
            edge("deploy conflicts_with roll-out"),
            edge("deploy complements check"),
            edge("check elsewhere deploy"),  # no relation
            edge("build precedes check"),  # not about deploy
            edge("deploy precedes nobody"),
            {"source": "deploy"},
        ),
        "roll-out": answer(edge("roll-out alternative_to deploy")),
    }

    census = generate(settings).built
    assert census is not None
    assert census.census is not None
    found = census.census

    assert served(settings) == [
        "announce requires build",
        "build precedes check",
        "check complements deploy",
        "check precedes deploy",
    ]
    assert (found.claims, found.invalid, found.dropped_direction, found.dropped_conflict) == (13, 4, 2, 2)
    assert (found.pairs, found.one_way, found.both_ways) == (4, 3, 1)
    twice = next(e for e in read_layer(settings.at.edges, "llm") if e.target == "check")
    assert twice.evidence["said_by"] == ["build", "check"]
    assert twice.evidence["confidence"] == 0.9


def test_the_least_confident_edge_of_a_cycle_is_dropped(settings: Settings, server: ModelServer) -> None:
    server.answers = {
        "build": answer(edge("build precedes check", 0.8)),
        "check": answer(edge("check precedes deploy", 0.6)),
        "deploy": answer(edge("deploy precedes build", 0.7)),
    }

    report = generate(settings).built

    assert report is not None
    assert report.census is not None
    assert report.census.dropped_cycle == 1
    assert served(settings) == ["build precedes check", "deploy precedes build"]


def test_every_source_tells_what_it_brought_outside_the_embedding(settings: Settings, server: ModelServer) -> None:
    server.answers = {
        "build": answer(edge("build precedes check"), edge("build precedes announce")),
        "deploy": answer(edge("deploy alternative_to roll-out"), edge("deploy requires build")),
    }

    report = generate(settings).built

    assert report is not None
    assert report.census is not None
    brought = {name: (s.pairs, s.edges, s.only, s.outside) for name, s in report.census.sources.items()}
    assert brought == {
        "declared": (0, 0, 0, 0),
        "mention": (2, 1, 1, 1),
        "learned": (1, 1, 1, 1),
        "need": (0, 0, 0, 0),
        "co_mention": (1, 1, 1, 1),
        "neighbour": (1, 1, 1, 0),
    }


def test_answers_in_any_order_build_equal_bytes(settings: Settings, server: ModelServer) -> None:
    server.answers = {
        s: answer(edge("build precedes deploy"), edge("check precedes deploy")) for s in ("build", "check")
    }
    generate(settings)
    built = {path.name: path.read_bytes() for path in settings.at.edges.glob("*.jsonl")}
    lines = answers_file(settings.at.edges).read_bytes().splitlines(keepends=True)

    answers_file(settings.at.edges).write_bytes(b"".join(lines[::-1]))
    build_layers(settings)

    rebuilt = {path.name: path.read_bytes() for path in settings.at.edges.glob("*.jsonl")}
    layers = {"curated.jsonl", "derived.jsonl", "learned.jsonl", "llm.jsonl", "similar.jsonl"}
    assert {name: rebuilt[name] for name in layers} == {name: built[name] for name in layers}


def test_a_line_that_a_crash_cut_short_is_asked_again(settings: Settings, server: ModelServer) -> None:
    generate(settings)
    path = answers_file(settings.at.edges)
    path.write_bytes(path.read_bytes()[:-20])

    assert generate(settings).outcomes == {"answered": 1}
    assert len(read_answers(settings.at.edges)) == 5


def test_a_running_ranker_serves_generated_edges_below_learned_ones(settings: Settings, server: ModelServer) -> None:
    ranker = Ranker(settings)
    before = ranker.search("tell users about a release", arm="keyword")
    server.answers = {"deploy": answer(edge("deploy requires build"))}

    generate(settings)
    after = ranker.search("tell users about a release", arm="keyword")

    assert [(n.skill_id, n.relation, n.provenance) for n in before.neighbors] == [("build", "precedes", "learned")]
    assert [(n.skill_id, n.relation, n.provenance) for n in after.neighbors] == [
        ("build", "precedes", "learned"),
        ("deploy", "requires", "llm"),
    ]


def test_what_a_skill_needs_is_its_own_section_on_prerequisites() -> None:
    body = "# Deploy\nPut it there.\n## Prerequisites\nA package\nthat works.\n## Steps\nRequires care."

    assert prerequisites(body) == "A package that works."
    assert prerequisites("# Deploy\nRequires care.") == ""


@pytest.mark.model
def test_what_a_model_said_a_skill_needs_finds_what_serves_it(embedded: Settings) -> None:
    known = read_catalogue(embedded.at.catalogue)

    found = candidates(known, {"write-changelog": "A slow database query whose indexes were proposed."}, embedded)

    assert "need" in found.of["write-changelog"]["sql-tuning"]
    assert "need" not in found.of.get("lint-code", {}).get("sql-tuning", [])
    assert found.missing == {}
