"""One SKILL.md file -> one skill: read as leniently as agents do, with a diagnostic for every liberty taken."""

from __future__ import annotations

import codecs
import itertools
import re
import unicodedata
from dataclasses import dataclass
from typing import Any

import msgspec

from collector.frontmatter import BadFrontmatter, Frontmatter, Note, Value, parse
from cowpath.skill import Diagnostic, Skill, text_hash

MOST_BYTES = 2**20
"""Largest file that is read."""

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
MOST_METADATA_BYTES = 16 * 1024

OWN_KEYS = frozenset({"name", "description", "tags", "related", "requires", "metadata"})

BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|<!--|<!\[CDATA\[")
ORDERS = re.compile(r"\b(ignore|disregard|forget)\b.{0,20}\b(previous|prior|above|earlier|all)\b", re.IGNORECASE)
HIDDEN = re.compile("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")


@dataclass(frozen=True)
class Reading:
    """What a file gave: a skill and warnings, or no skill and an error."""

    skill: Skill | None
    diagnostics: tuple[Diagnostic, ...]


def read_skill(data: bytes, *, directory: str, path: str = "", plugin: str = "", scope: str = "") -> Reading:
    """Read the bytes of a SKILL.md that lies in ``directory`` (its last name, which agents call it by).

    A plugin's skill is called ``plugin:directory``. The frontmatter's name becomes an alias.
    """
    try:
        text, notes = normalised(data)
        head, body = split(text)
        front = parse(head) if head is not None else Frontmatter({}, (("no_frontmatter", "there is no frontmatter"),))
        skill, more = _skill(front, body, unicodedata.normalize("NFC", directory), plugin)
    except BadFrontmatter as error:
        return Reading(None, (Diagnostic(level="error", code=error.code, message=error.message, path=path),))
    warnings = tuple(
        Diagnostic(level="warning", code=code, message=message, path=path)
        for code, message in (*notes, *front.notes, *more)
    )
    skill = msgspec.structs.replace(
        skill, scope=scope, plugin=plugin, path=path, content_hash=text_hash(text), diagnostics=warnings
    )
    return Reading(skill, warnings)


def normalised(data: bytes) -> tuple[str, list[Note]]:
    """The text with line ends as LF, without byte order mark, NUL or control characters."""
    if len(data) > MOST_BYTES:
        raise BadFrontmatter("too_large", f"the file has {len(data)} bytes, more than {MOST_BYTES}")
    text, notes = _decoded(data)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    cleaned = CONTROL.sub("", text)
    if cleaned != text:
        notes.append(("control_characters", "NUL or control characters were removed"))
    if not cleaned.strip():
        raise BadFrontmatter("empty", "the file is empty")
    return cleaned, notes


def _decoded(data: bytes) -> tuple[str, list[Note]]:
    for mark, encoding in BOMS:
        if data.startswith(mark):
            notes = [] if encoding == "utf-8" else [("not_utf8", f"the file is {encoding}, not UTF-8")]
            return data[len(mark) :].decode(encoding, errors="replace"), notes
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError:
        return data.decode("latin-1"), [("not_utf8", "the file is not UTF-8; read as Latin-1")]


def split(text: str) -> tuple[str | None, str]:
    """(head, body): the lines between the first ``---`` and the next, and the rest; no head where there is none."""
    lines = text.lstrip("\n").split("\n")
    if lines[0].rstrip() != "---":
        return None, text.strip()
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]).strip()
    raise BadFrontmatter("unclosed_frontmatter", "the frontmatter is opened with '---' and never closed")


def _skill(front: Frontmatter, body: str, directory: str, plugin: str) -> tuple[Skill, list[Note]]:
    notes: list[Note] = []
    values = front.values
    name = _name(values.get("name"), directory, notes)
    description = _description(values.get("description"), body, notes)
    if not description and not body and "name" not in values:
        raise BadFrontmatter("empty", "the file has neither a name, a description nor a body")
    own_names = {f"{plugin}:{name}" if plugin else name}
    skill_id = f"{plugin}:{directory}" if plugin else directory
    metadata = _metadata(values, notes)
    skill = Skill(
        skill_id=skill_id,
        name=name,
        description=description,
        body=body,
        aliases=tuple(sorted(own_names - {skill_id})),
        tags=_names(values.get("tags"), metadata.get("tags")),
        related=_names(values.get("related"), metadata.get("related")),
        requires=_names(values.get("requires"), metadata.get("requires")),
        listed=metadata.get("disable-model-invocation") is not True,
        metadata=metadata,
    )
    return skill, notes


def _name(given: Value | None, directory: str, notes: list[Note]) -> str:
    if given is None or not given.text.strip():
        notes.append(("no_name", f"there is no name; the directory's name {directory!r} is used"))
        return directory
    name = " ".join(given.text.split())
    if not given.is_string:
        notes.append(("name_not_text", f"the name is not a text in YAML; read as {name!r}"))
    if len(name) > LONGEST_NAME:
        notes.append(("long_name", f"the name has {len(name)} characters, more than {LONGEST_NAME}"))
    if not well_formed(name):
        notes.append(("name_format", f"the name {name!r} is not lower-case letters, digits and single hyphens"))
    if _folded(name) != _folded(directory):
        notes.append(
            ("name_differs", f"the name {name!r} differs from the directory {directory!r}, which agents call it by")
        )
    return name


def well_formed(name: str) -> bool:
    """Whether a name keeps the form of the Agent Skills specification (any alphabet, NFKC)."""
    folded = _folded(name)
    words = folded.split("-")
    return folded == folded.lower() and all(word and all(c.isalnum() for c in word) for word in words)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name)


def _description(given: Value | None, body: str, notes: list[Note]) -> str:
    if given is None or not given.text.strip():
        paragraph = first_paragraph(body)
        notes.append(
            ("no_description", f"there is no description; {'the first paragraph' if paragraph else 'nothing'} is used")
        )
        return paragraph[:LONGEST_DESCRIPTION]
    description = " ".join(given.text.split())
    if not given.is_string:
        notes.append(("description_not_text", "the description is not a text in YAML; read as one"))
    if len(description) > LONGEST_DESCRIPTION:
        notes.append(
            ("long_description", f"the description has {len(description)} characters, more than {LONGEST_DESCRIPTION}")
        )
    if MARKUP.search(description) or ORDERS.search(description) or HIDDEN.search(description):
        notes.append(("suspicious_description", "the description holds markup, hidden characters or orders to agents"))
    return description


def first_paragraph(body: str) -> str:
    """The first paragraph of a Markdown text that is not a heading; the heading where there is nothing else."""
    lines = [line.strip() for line in body.split("\n")]
    paragraph = itertools.takewhile(_is_prose, itertools.dropwhile(lambda line: not _is_prose(line), lines))
    heading = next((line.lstrip("# ") for line in lines if line.startswith("#")), "")
    return " ".join(" ".join(paragraph).split()) or heading


def _is_prose(line: str) -> bool:
    return bool(line) and not line.startswith(("#", "```", "---", "<!--"))


def _names(*given: Value | Any) -> tuple[str, ...]:
    """Names from a YAML list, or from a text with commas; the first source that has any."""
    for source in given:
        if isinstance(source, Value):
            names = source.items if source.items is not None else tuple(source.text.split(","))
        elif isinstance(source, list):
            names = tuple(str(item) for item in source)
        elif isinstance(source, str):
            names = tuple(source.split(","))
        else:
            continue
        kept = dict.fromkeys(" ".join(name.split()) for name in names)
        return tuple(name for name in kept if name)
    return ()


def _metadata(values: dict[str, Value], notes: list[Note]) -> dict[str, Any]:
    """Every key that is not ours, and the entries of ``metadata`` beside them."""
    own = {key: value.data for key, value in values.items() if key not in OWN_KEYS}
    nested = values["metadata"].data if "metadata" in values else {}
    metadata = {**own, **nested} if isinstance(nested, dict) else {**own, "metadata": nested}
    if len(msgspec.json.encode(metadata)) > MOST_METADATA_BYTES:
        notes.append(("large_metadata", f"the metadata has more than {MOST_METADATA_BYTES} bytes; ignored"))
        return {}
    return metadata
