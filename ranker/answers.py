"""What a language model answered about skills: one line for each question, appended, kept whatever it was."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from cowpath.home import make_folder
from cowpath.skill import Catalogue, Skill, text_hash

Outcome = Literal["answered", "refused", "truncated", "invalid"]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One question and what came of it. ``candidates`` are the skills it offered, with who proposed them."""

    skill_id: str
    key: str
    outcome: Outcome
    model: str
    candidates: dict[str, list[str]]
    input: Any = None  # what a model wrote; read_claims judges it
    detail: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


def answers_file(edges: Path) -> Path:
    """Where the answers lie, beside the layers."""
    return edges / "generated.jsonl"


def key_of(skill: Skill) -> str:
    """What makes an answer out of date: another description."""
    return text_hash(skill.description)[:16]


def read_answers(edges: Path) -> list[Answer]:
    """All answers, oldest first. A line that a crash cut short is passed over: its question is asked again."""
    path = answers_file(edges)
    found = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            found.append(msgspec.json.decode(line, type=Answer))
        except msgspec.MsgspecError:
            continue
    return found


def current(answers: Iterable[Answer], catalogue: Catalogue) -> dict[str, Answer]:
    """Skill id -> its last answer, of skills whose description is still the one that was asked about."""
    keys = {skill_id: key_of(skill) for skill_id, skill in catalogue.skills.items()}
    return {a.skill_id: a for a in answers if keys.get(a.skill_id) == a.key}


def needs_told(answers: Mapping[str, Answer]) -> dict[str, str]:
    """Skill id -> what it needs, as the model put it."""
    told = {
        s: a.input.get("needs") for s, a in answers.items() if a.outcome == "answered" and isinstance(a.input, dict)
    }
    return {skill_id: need for skill_id, need in told.items() if isinstance(need, str) and need}


def append(edges: Path, answer: Answer) -> None:
    """Return when the answer is on disk: it was paid for."""
    make_folder(edges)
    with answers_file(edges).open("ab+") as file:
        torn = file.tell() > 0 and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n"
        file.write((b"\n" if torn else b"") + msgspec.json.encode(answer, order="sorted") + b"\n")
        file.flush()
        os.fsync(file.fileno())
