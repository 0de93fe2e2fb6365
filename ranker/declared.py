"""Edges that authors declare: what a skill's frontmatter says about other skills."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args

from cowpath.edge import SYMMETRIC, Edge, Relation
from cowpath.skill import Catalogue, Skill

BASIS = "declared"
"""The ``basis`` in the evidence of a declared edge; edges of the curated layer without it were made by hand."""

RELATIONS: tuple[Relation, ...] = get_args(Relation)

FIELDS: dict[str, Relation] = {
    **{relation: relation for relation in RELATIONS if relation != "similar_to"},
    "related": "complements",
    "pairs-with": "complements",
    "next-skill": "precedes",
}
"""Key of the frontmatter -> the relation it declares, from the skill that has the key to the one it names."""


def declared(catalogue: Catalogue) -> list[Edge]:
    """One edge for each skill that another one's frontmatter names; names that nobody has are passed over."""
    found: dict[tuple[str, str, str], Edge] = {}
    for skill in catalogue.skills.values():
        for field, name in _named(skill):
            other = resolve_beside(catalogue, skill, name)
            if other is not None and other != skill.skill_id:
                edge = _edge(skill.skill_id, FIELDS[field], other, field)
                found.setdefault((edge.source, edge.relation, edge.target), edge)
    return list(found.values())


def resolve_beside(catalogue: Catalogue, skill: Skill, name: str) -> str | None:
    """The skill a name means when it stands in ``skill``: one of the same plugin first; None where nobody has it."""
    prefix = skill.skill_id[: max(skill.skill_id.rfind(":"), skill.skill_id.rfind("/")) + 1]
    near = f"{prefix}{name}"
    return near if near in catalogue else catalogue.alias_of.get(name)


def _named(skill: Skill) -> Iterator[tuple[str, str]]:
    """(field, name) of everything that a skill's frontmatter declares."""
    own: dict[str, Any] = {"requires": skill.requires, "related": skill.related}
    for field in FIELDS:
        for name in dict.fromkeys(_names(own.get(field) or skill.metadata.get(field))):
            yield field, name


def _names(value: Any) -> Iterable[str]:
    """Names in a YAML value: a list of them, one, or several between commas."""
    if isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    if isinstance(value, list | tuple):
        return [name for item in value for name in _names(item)]
    if isinstance(value, dict):
        return _names(value.get("skill") or value.get("name"))
    return []


def _edge(source: str, relation: Relation, target: str, field: str) -> Edge:
    first, second = sorted((source, target)) if relation in SYMMETRIC else (source, target)
    evidence = {"basis": BASIS, "field": field, "said_by": source}
    return Edge(
        source=first, relation=relation, target=second, status="confirmed", provenance="curated", evidence=evidence
    )
