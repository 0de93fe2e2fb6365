"""The YAML head of a SKILL.md, read leniently and safely: nothing in it runs, nothing in it explodes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import yaml

MOST_CHARACTERS = 64 * 1024
"""Longest head that is parsed."""

MOST_NODES = 10_000
"""Most nodes a value may have once its aliases are written out; msgspec would write them out."""

STRING_TAG = "tag:yaml.org,2002:str"
NULL_TAG = "tag:yaml.org,2002:null"
SAFE_TAGS = frozenset(tag for tag in yaml.SafeLoader.yaml_constructors if tag)

Note = tuple[str, str]
"""A warning: (code, message)."""


class BadFrontmatter(Exception):
    """The head cannot be used at all; ``code`` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Value:
    """One value: as its author wrote it (``text``) and as YAML means it (``data``, JSON types only)."""

    text: str
    data: Any
    is_string: bool
    items: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Frontmatter:
    """The top-level values; a null is left out, of a repeated key the last one counts."""

    values: dict[str, Value]
    notes: tuple[Note, ...]


def parse(text: str) -> Frontmatter:
    """Read the head. Raises BadFrontmatter where it is no mapping, even after quoting, or not safe."""
    if len(text) > MOST_CHARACTERS:
        raise BadFrontmatter("frontmatter_too_long", f"the frontmatter has {len(text)} characters")
    text, node, notes = _composed(text)
    if node is None:
        return Frontmatter({}, notes)
    if not isinstance(node, yaml.MappingNode):
        raise BadFrontmatter("bad_yaml", "the frontmatter is not a list of 'key: value' lines")
    found = _Walk()
    found.size(node)
    if found.unsafe:
        raise BadFrontmatter("unsafe_tag", f"the frontmatter asks for {found.unsafe}, which is never run")
    reader = _Reader(text, found)
    values = {key: value for key, value in reader.pairs(node) if value.data is not None}
    return Frontmatter(values, (*notes, *found.notes(), *reader.notes))


def _composed(text: str) -> tuple[str, yaml.Node | None, tuple[Note, ...]]:
    """The text and its node graph; where YAML refuses it, the same with the offending values quoted."""
    try:
        return text, _compose(text), ()
    except yaml.YAMLError as error:
        problem = _words(error)
    quoted, keys = quote(text)
    try:
        node = _compose(quoted)
    except yaml.YAMLError:
        raise BadFrontmatter("bad_yaml", f"the frontmatter is not YAML, even with values quoted: {problem}") from None
    return quoted, node, (("quoted", f"not YAML ({problem}); read after repairing: {keys}"),)


def _compose(text: str) -> yaml.Node | None:
    loader = yaml.SafeLoader(text)
    try:
        node: yaml.Node | None = loader.get_single_node()
    except RecursionError:
        raise BadFrontmatter("bad_yaml", "the frontmatter is nested too deeply") from None
    finally:
        loader.dispose()
    return node


def _words(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f" in line {mark.line + 1} of the frontmatter" if mark else ""
    return f"{getattr(error, 'problem', None) or 'cannot be read'}{where}"


ENTRY = re.compile(r"^(?P<head>(?P<indent> *)(?:- +)*(?:[A-Za-z_][\w.-]*:[ \t]+)?)(?P<value>\S.*)$")


def quote(text: str) -> tuple[str, str]:
    """The text with tab indents made spaces and every value YAML cannot read quoted; names what changed.

    Values with a tag are left alone: quoting must not turn what would be refused into a harmless text.
    """
    lines = [re.sub(r"^[ \t]+", lambda m: m.group().replace("\t", "  "), line) for line in text.split("\n")]
    changed = ["tabs"] if "\n".join(lines) != text else []
    out: list[str] = []
    at = 0
    while at < len(lines):
        entry = ENTRY.match(lines[at])
        end = at + 1
        if entry and entry["head"].strip() and entry["value"][0] not in "|>!#":
            while end < len(lines) and lines[end].strip() and _indent(lines[end]) > len(entry["indent"]):
                end += 1
            if _is_broken("\n".join(lines[at:end])):
                value = " ".join([entry["value"].strip(), *(line.strip() for line in lines[at + 1 : end])])
                out.append(entry["head"] + json.dumps(_unquoted(value), ensure_ascii=False))
                changed.append(entry["head"].strip(" -:\t") or "a list item")
                at = end
                continue
        out.append(lines[at])
        at += 1
    return "\n".join(out), ", ".join(dict.fromkeys(changed)) or "nothing"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_broken(entry: str) -> bool:
    try:
        _compose(entry)
    except yaml.YAMLError:
        return True
    return False


def _unquoted(value: str) -> str:
    whole = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if whole else value


class _Walk:
    """One walk over the node graph: sizes with aliases written out, tags, aliases, repeated keys."""

    def __init__(self) -> None:
        self.sizes: dict[int, float] = {}
        self.unsafe = ""
        self.shared = False
        self.repeated: list[str] = []

    def size(self, node: yaml.Node) -> float:
        """How many nodes this is once written out; infinite where it holds itself."""
        known = self.sizes.get(id(node))
        if known is not None:
            self.shared = True
            return known
        self.sizes[id(node)] = math.inf
        if node.tag not in SAFE_TAGS and not node.tag.startswith("!"):
            self.unsafe = self.unsafe or node.tag
        self.sizes[id(node)] = total = 1 + sum(self.size(child) for child in self._children(node))
        return total

    def _children(self, node: yaml.Node) -> Iterator[yaml.Node]:
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen:
                        self.repeated.append(key.value)
                    seen.add(key.value)
                yield key
                yield value
        elif isinstance(node, yaml.SequenceNode):
            yield from node.value

    def notes(self) -> Iterator[Note]:
        if self.shared:
            yield "yaml_alias", "YAML aliases in the frontmatter"
        for key in self.repeated:
            yield "repeated_key", f"{key!r} is given more than once; the last one counts"


class _Reader:
    """Turns the checked nodes into values."""

    def __init__(self, text: str, found: _Walk) -> None:
        self.text = text
        self.found = found
        self.loader = yaml.SafeLoader("")
        self.notes: list[Note] = []

    def pairs(self, node: yaml.MappingNode) -> Iterator[tuple[str, Value]]:
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.notes.append(("odd_key", f"the key {self._source(key)!r} is not a text; ignored"))
            elif self.found.sizes[id(value)] > MOST_NODES:
                self.notes.append(("yaml_bomb", f"{key.value!r} grows beyond {MOST_NODES} nodes; ignored"))
            else:
                yield key.value, self._value(key.value, value)

    def _value(self, key: str, node: yaml.Node) -> Value:
        if isinstance(node, yaml.ScalarNode) and node.tag == STRING_TAG:
            return Value(node.value, node.value, is_string=True)
        if node.tag.startswith("!"):
            self.notes.append(("unknown_tag", f"{key!r} starts with a YAML tag; read as text"))
            return Value(self._source(node), self._source(node), is_string=True)
        try:
            data = plain(self.loader.construct_object(node, deep=True))
        except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError):
            self.notes.append(("bad_value", f"{key!r} is not a valid YAML value; read as text"))
            data = self._source(node)
        return Value(self._words(node), data, is_string=False, items=self._items(node))

    def _items(self, node: yaml.Node) -> tuple[str, ...] | None:
        return tuple(self._words(item) for item in node.value) if isinstance(node, yaml.SequenceNode) else None

    def _words(self, node: yaml.Node) -> str:
        if isinstance(node, yaml.ScalarNode):
            return "" if node.tag == NULL_TAG else node.value
        return ", ".join(self._items(node) or ()) or self._source(node)

    def _source(self, node: yaml.Node) -> str:
        return " ".join(self.text[node.start_mark.index : node.end_mark.index].split())


def plain(data: Any) -> Any:
    """The same in JSON types: dates and odd numbers as text, sets and tuples as lists."""
    if isinstance(data, dict):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple | set):
        return [plain(value) for value in data]
    if isinstance(data, date):
        return data.isoformat()
    if isinstance(data, bytes):
        return data.hex()
    if (isinstance(data, float) and not math.isfinite(data)) or (isinstance(data, int) and abs(data) >= 2**63):
        return str(data)
    return data
