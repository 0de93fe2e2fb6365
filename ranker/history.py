"""What was called so far, by a session or by all, read from the published copy."""

from __future__ import annotations

from typing import Any

from cowpath.settings import Settings


def session_calls(settings: Settings, session: str) -> list[str]:
    """The skills a session called, oldest first; empty where the copy does not have the session yet."""
    return [skill_id for (skill_id,) in _rows(settings, "answer/session_calls", session=session)]


def session_shown(settings: Settings, session: str) -> set[str]:
    """The skills a session was shown, asked or unasked."""
    return {skill_id for (skill_id,) in _rows(settings, "answer/session_shown", session=session)}


def skill_uses(settings: Settings) -> dict[str, int]:
    """How often each skill was called; empty before the first publication."""
    return dict(_rows(settings, "answer/skill_uses"))


def _rows(settings: Settings, name: str, **parameters: object) -> list[Any]:
    if not settings.at.usage.exists():
        return []
    from cowpath.store import Store, read_sql  # DuckDB is not needed where only skills are named

    with Store.open(settings.at.usage, read_only=True, threads=1) as store:
        return store.rows(read_sql(name), parameters)
