"""A skill that was used by reading its file: which skill a shell command reads, if any."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

CONFIDENCE = 0.7
"""Of a call inferred from a read: agents read these files also to look, or to edit them."""

READERS = frozenset({"cat", "sed", "head", "tail", "less", "more", "bat", "nl", "awk", "type", "get-content", "gc"})
STARTERS = frozenset({"sudo", "env", "time", "command", "rtk"})
FILE = re.compile(r"(?:^|[/\\])([^/\\]+)[/\\]SKILL\.md$", re.IGNORECASE)


def skills_read(command: str) -> Iterator[str]:
    """The skills whose SKILL.md the command reads, each once, in order; writing, listing and copying is no use."""
    seen: set[str] = set()
    for words in _simple_commands(command):
        while words and (words[0] in STARTERS or re.fullmatch(r"\w+=.*", words[0])):
            words = words[1:]
        if not words or words[0].rsplit("/", 1)[-1].lower() not in READERS or _edits(words):
            continue
        for before, word in pairwise(words):
            name = skill_of(word)
            if name and not before.startswith(">") and name not in seen:
                seen.add(name)
                yield name


def skill_of(path: str) -> str | None:
    """The skill a path belongs to: the folder that holds its SKILL.md."""
    match = FILE.search(path.strip("'\""))
    name = match.group(1) if match else None
    return name if name and name not in {".", "..", "~"} and not set(name) & set("*?${}") else None


def _simple_commands(command: str) -> Iterator[list[str]]:
    """The commands of a line, as words; a line that no shell would read gives its words as they stand."""
    for line in command.splitlines():
        lexer = shlex.shlex(line, posix="\\" not in line, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:
            words = line.split()
        begin = 0
        for place, word in enumerate([*words, ";"]):
            if set(word) <= set("();|&"):
                yield [part.strip("'\"") for part in words[begin:place]]
                begin = place + 1


def _edits(words: list[str]) -> bool:
    return words[0].endswith("sed") and any(word.startswith(("-i", "--in-place")) for word in words[1:])
