"""What was called so far, by a session or by all, read from the published copy."""

from __future__ import annotations

from cowpath.settings import Settings


def session_calls(settings: Settings, session: str) -> list[str]:
    """The skills a session called, oldest first; empty where the copy does not have the session yet."""
    if not settings.at.usage.exists():
        return []
    from cowpath.store import Store, read_sql  # DuckDB is not needed where only skills are named

    with Store.open(settings.at.usage, read_only=True, threads=1) as store:
        return [skill_id for (skill_id,) in store.rows(read_sql("answer/session_calls"), {"session": session})]


def skill_uses(settings: Settings) -> dict[str, int]:
    """How often each skill was called; empty before the first publication."""
    if not settings.at.usage.exists():
        return {}
    from cowpath.store import Store, read_sql

    with Store.open(settings.at.usage, read_only=True, threads=1) as store:
        return dict(store.rows(read_sql("answer/skill_uses")))
