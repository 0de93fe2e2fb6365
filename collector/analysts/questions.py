"""Questions: the files of sql/questions, each a query with its parameters named in its first lines."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from cowpath.errors import InputError
from cowpath.store import read_sql, sql_names

PARAMETER = re.compile(r"^-- \$(\w+)( = ([^:]*))?: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Parameter:
    """``default`` is None where a value must be given."""

    name: str
    default: str | None
    help: str


@dataclass(frozen=True)
class Question:
    name: str
    about: str
    parameters: tuple[Parameter, ...]
    sql: str

    def values(self, given: Mapping[str, str]) -> dict[str, str]:
        """Every parameter's value. InputError where one is missing, or unknown."""
        known = {p.name: p.default for p in self.parameters}
        for name in given.keys() - known.keys():
            raise InputError(f"{self.name} has no parameter {name!r}; it has {', '.join(known) or 'none'}")
        values = known | dict(given)
        missing = [name for name, value in values.items() if value is None]
        if missing:
            raise InputError(
                f"{self.name} needs {' and '.join(missing)}",
                suggestions=[f"cowpath sql {self.name} " + " ".join(f"--set {name}=..." for name in missing)],
            )
        return {name: value for name, value in values.items() if value is not None}


def questions() -> list[Question]:
    """All questions by name."""
    return [question(name.partition("/")[2]) for name in sql_names("questions")]


def question(name: str) -> Question:
    """One question; InputError with the nearest names where there is none."""
    names = [n.partition("/")[2] for n in sql_names("questions")]
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
        raise InputError(
            f"there is no question {name!r}; 'cowpath sql' lists them, and a query begins with select, from or with",
            suggestions=[f"cowpath sql {n}" for n in near],
        )
    sql = read_sql(f"questions/{name}")
    about = sql.partition("\n")[0].partition("-> ")[2]
    found = tuple(
        Parameter(m[1], (m[3] or "").strip() if m[2] is not None else None, m[4]) for m in PARAMETER.finditer(sql)
    )
    return Question(name, about, found, sql)
