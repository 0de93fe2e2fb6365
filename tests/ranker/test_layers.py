"""The layers that follow from catalogue and embeddings: what is declared, what bodies name, what is alike."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from cowpath.edge import Edge, Relation, read_layer, write_layer
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.skill import Catalogue, Skill, text_hash, write_catalogue
from cowpath.vectors import write_vectors
from ranker.declared import declared
from ranker.graph import SkillGraph
from ranker.layers import build_layers
from ranker.mentions import mentions


def catalogue(*skills: Skill) -> Catalogue:
    return Catalogue(skills)


def skill(skill_id: str, body: str = "", **fields: object) -> Skill:
    return Skill(skill_id=skill_id, name=skill_id, body=body, **fields)  # type: ignore[arg-type]  # words of the test


def triples(edges: list[Edge]) -> set[tuple[str, Relation, str]]:
    return {(e.source, e.relation, e.target) for e in edges}


def test_frontmatter_declares_edges_and_unknown_names_are_passed_over() -> None:
    known = catalogue(
        skill("deploy", requires=("build", "nobody"), related=("announce",)),
        skill("build", metadata={"next-skill": "deploy", "conflicts_with": ["announce"]}),
        skill("announce", metadata={"pairs-with": [{"skill": "deploy", "reason": "told together"}]}),
    )

    assert triples(declared(known)) == {
        ("deploy", "requires", "build"),
        ("announce", "complements", "deploy"),
        ("build", "precedes", "deploy"),
        ("announce", "conflicts_with", "build"),
    }


def test_a_name_means_the_skill_of_the_same_plugin_first() -> None:
    known = catalogue(skill("ops:deploy", requires=("build",)), skill("ops:build"), skill("web:build"), skill("build"))

    assert triples(declared(known)) == {("ops:deploy", "requires", "ops:build")}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("First use lint-code. Then go on.", {"lint-code"}),
        ("Plan the work and plan it well.", set()),
        ("Start with `plan`, or call the plan skill.", {"plan"}),
        ("See [the steps](../plan/SKILL.md) and ~/.agents/skills/lint-code/SKILL.md.", {"plan", "lint-code"}),
        ("Run lint-code.py, relint-code and lint-code-all from /usr/lint-code/bin.", set()),
        ("Type /plan when Fill Forms is done.", {"plan", "forms"}),
        ("Fill Formsets are something else; this is me: `me`.", set()),
    ],
)
def test_a_body_names_whole_words_and_plain_words_only_where_they_are_marked(body: str, named: set[str]) -> None:
    known = catalogue(
        skill("me", body), skill("lint-code"), skill("plan"), Skill(skill_id="forms", name="x", aliases=("Fill Forms",))
    )

    assert triples(mentions(known)) == {("me", "routes_to", name) for name in named}


def test_the_sentence_that_names_a_skill_is_the_evidence() -> None:
    known = catalogue(
        skill("me", "Read on.\nThen run lint-code twice! Again lint-code.", related=()), skill("lint-code")
    )

    (edge,) = mentions(known)

    assert edge.evidence == {"basis": "body", "sentence": "Then run lint-code twice!", "sentences": 2}
    assert edge.provenance == "derived"


@pytest.fixture
def built(home: Home) -> Settings:
    """Three skills, two of them alike, one naming and requiring another; and a conflict made by hand."""
    known = catalogue(
        skill("deploy", "Run lint-code first.", requires=("build",), related=("freeze",)),
        skill("build"),
        skill("lint-code"),
        skill("freeze"),
    )
    write_catalogue(home.catalogue, known)
    angles = {"deploy": 0.0, "build": 0.3, "lint-code": 1.5, "freeze": 3.0}
    vectors = {
        text_hash(known.skills[name].text): np.array([np.cos(angle), np.sin(angle)], np.float32)
        for name, angle in angles.items()
    }
    write_vectors(home.embeddings, vectors)
    write_layer(home.edges, "curated", [edge("deploy", "conflicts_with", "freeze")])
    return Settings(home=str(home.root))


def edge(source: str, relation: Relation, target: str) -> Edge:
    return Edge(source=source, relation=relation, target=target, status="confirmed", provenance="curated")


def test_building_writes_three_layers_and_keeps_what_was_made_by_hand(built: Settings) -> None:
    report = build_layers(built).layers

    at = built.at.edges
    assert triples(read_layer(at, "curated")) == {
        ("deploy", "conflicts_with", "freeze"),
        ("deploy", "requires", "build"),
    }
    assert triples(read_layer(at, "derived")) == {("deploy", "routes_to", "lint-code")}
    assert [(e.source, e.target, e.evidence["cosine"]) for e in read_layer(at, "similar")] == [
        ("build", "deploy", 0.9553)
    ]
    assert (report["curated"].by_hand, report["curated"].left_out) == (1, 1)


def test_building_again_gives_the_same_bytes(built: Settings) -> None:
    build_layers(built)
    first = {path.name: path.read_bytes() for path in built.at.edges.iterdir()}

    build_layers(built)

    assert {path.name: path.read_bytes() for path in built.at.edges.iterdir()} == first
    assert set(first) == {"curated.jsonl", "derived.jsonl", "similar.jsonl"}


def test_what_is_declared_no_longer_goes_and_a_declared_cycle_loses_an_edge(built: Settings) -> None:
    build_layers(built)
    write_catalogue(
        built.at.catalogue, catalogue(skill("deploy"), skill("build", requires=("deploy",)), skill("freeze"))
    )
    write_layer(built.at.edges, "curated", [edge("deploy", "requires", "build")])

    report = build_layers(built).layers

    assert triples(read_layer(built.at.edges, "curated")) == {("deploy", "requires", "build")}
    assert report["curated"].left_out == 1


def test_layers_are_served_by_precedence_and_the_most_alike_first(built: Settings) -> None:
    build_layers(built)

    graph = SkillGraph.read(built.at.edges)

    assert [(s.skill_id, s.provenance) for s in graph.walk(["deploy"], max_distance=1)] == [
        ("build", "curated"),
        ("lint-code", "derived"),
    ]
    alike = [
        msgspec.structs.replace(edge("a", "similar_to", o), evidence={"cosine": c}) for o, c in (("b", 0.6), ("c", 0.9))
    ]
    assert [s.skill_id for s in SkillGraph(alike).walk(["a"])] == ["c", "b"]
