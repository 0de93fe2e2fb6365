"""The page for people asks the server's own questions and shows names, descriptions and reasons as text only."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cowpath.settings import Settings
from ranker.app import PAGE, create_app

SCRIPT = re.search(r"<script>(.*)</script>", PAGE.read_text(), re.DOTALL)

BROWSER = """
class Element {
  constructor(tag) { Object.assign(this, { tag, children: [], textContent: "", value: "" }); }
  append(...more) { this.children.push(...more); }
  replaceChildren(...more) { this.children = more; }
  get text() { return [this.textContent, ...this.children.map(child => child.text)].filter(Boolean).join("\\n"); }
  set innerHTML(markup) { throw new Error("markup of a skill was read: " + markup); }
  buttons() { return this.children.flatMap(child => [...(child.tag === "button" ? [child] : []), ...child.buttons()]); }
}
const place = new Element("main"), asked = [];
globalThis.document = {
  getElementById: id => (id === "answer" ? place : new Element("input")),
  createElement: tag => new Element(tag),
  forms: { next: { skills: new Element("input") }, search: { query: new Element("input") } },
};
globalThis.sessionStorage = { getItem: () => "", setItem: () => {} };
globalThis.fetch = async (path, options) => {
  asked.push([options.method || "GET", path, options.body || ""]);
  return { json: async () => ANSWERS[path.split("?")[0]] };
};
const settled = () => new Promise(resolve => setTimeout(resolve, 5));
"""

PLAY = """
(async () => {
  const seen = {};
  document.forms.search.query.value = "deploy";
  document.forms.search.onsubmit({ preventDefault() {}, target: document.forms.search });
  await settled();
  seen.search = place.text;
  document.forms.next.skills.value = "lint-code, run-tests";
  document.forms.next.onsubmit({ preventDefault() {} });
  await settled();
  seen.next = place.text;
  place.buttons()[0].onclick();
  await settled();
  ANSWERS["/v1/next"] = { error: { message: "no skill 'x'", suggestions: ["y"] } };
  document.forms.next.onsubmit({ preventDefault() {} });
  await settled();
  console.log(JSON.stringify({ seen, asked, error: place.text }));
})();
"""


def test_the_page_is_served_with_nothing_from_elsewhere(learned: Settings) -> None:
    with TestClient(create_app(learned)) as client:
        page = client.get("/")

    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert re.findall(r"(?:src|href)=\"(?!data:)", page.text) == []


def test_a_person_asks_reads_the_reasons_and_follows_a_suggestion(learned: Settings) -> None:
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    with TestClient(create_app(learned)) as client:
        answers = {
            "/v1/search": client.post("/v1/search", json={"query": "deploy"}).json(),
            "/v1/next": client.get("/v1/next", params={"skill": ["lint-code", "run-tests"]}).json(),
        }
    answers["/v1/next"]["suggestions"][0]["description"] = "<img src=x onerror=alert(1)>"

    played = play(answers)

    assert "deploy-service\nRoll a new build out to the production cluster." in played["seen"]["search"]
    assert "words: deploy" in played["seen"]["search"]
    assert "freeze-releases and deploy-service (curated)" in played["seen"]["search"]
    assert "After lint-code → run-tests" in played["seen"]["next"]
    assert "run-tests precedes deploy-service in 18 of 20 sessions with both" in played["seen"]["next"]
    assert "<img src=x onerror=alert(1)>" in played["seen"]["next"], "as text: markup would have failed the play"
    assert played["asked"] == [
        ["POST", "/v1/search", '{"query":"deploy"}'],
        ["GET", "/v1/next?skill=lint-code&skill=run-tests", ""],
        ["GET", "/v1/next?skill=lint-code&skill=run-tests&skill=deploy-service", ""],
        ["GET", "/v1/next?skill=lint-code&skill=run-tests&skill=deploy-service", ""],
    ]
    assert played["error"] == "no skill 'x'\nTry: y"


def play(answers: dict[str, Any]) -> dict[str, Any]:
    """What a person would see, with a document of the test's own around the page's script."""
    assert SCRIPT is not None
    program = (
        f"const ANSWERS = {json.dumps(answers)};\n{BROWSER}{SCRIPT.group(1).replace('const place', 'const _')}{PLAY}"
    )
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    played: dict[str, Any] = json.loads(done.stdout)
    return played
