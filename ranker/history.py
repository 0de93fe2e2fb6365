"""What was called so far, by a session or by all, read from the published copy."""

from __future__ import annotations

from typing import Any

from cowpath.settings import Settings


def session_calls(settings: Settings, session: str) -> list[str]:
    """The skills a session called, oldest first; empty where the copy does not have the session yet."""
    (calls,) = _rows(settings, "answer/session_calls", session=session)
    return [skill_id for (skill_id,) in calls]


def session_past(settings: Settings, session: str) -> tuple[list[str], set[str]]:
    """The skills a session called, oldest first, and those it was shown, asked or unasked."""
    calls, shown = _rows(settings, "answer/session_calls", "answer/session_shown", session=session)
    return [skill_id for (skill_id,) in calls], {skill_id for (skill_id,) in shown}


def skill_uses(settings: Settings) -> dict[str, int]:
    """How often each skill was called; empty before the first publication."""
    (uses,) = _rows(settings, "answer/skill_uses")
    return dict(uses)


def _rows(settings: Settings, *names: str, **parameters: object) -> list[list[Any]]:
    """The rows of each statement; none before the first publication."""
    if not settings.at.usage.exists():
        return [[] for _ in names]
    from cowpath.store import Store, read_sql  # DuckDB is not needed where only skills are named

    with Store.open(settings.at.usage, read_only=True, threads=1) as store:
        return [store.rows(read_sql(name), parameters) for name in names]
