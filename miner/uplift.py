"""Uplift: what suggestions change. Sessions that were shown some against the holdout, which was shown none."""

from __future__ import annotations

from typing import Any

from cowpath.edge import Edge, read_layer
from cowpath.errors import StateError
from cowpath.interval import newcombe
from cowpath.settings import Settings
from cowpath.store import Store, sql_names

ENOUGH_SESSIONS = 20
"""Below this on either side a share says next to nothing: its interval is wider than 0.4."""

ENOUGH_CO_USES = 20


def uplift(settings: Settings, *, within: int) -> dict[str, Any]:
    """The follow-through of suggestions over the published copy: ``served`` against ``holdout``.

    A session counts once, by its first list: what comes after may be that list's own doing. It followed where one of
    the list's skills is among its next ``within`` calls, whether or not the call says so. ``difference`` is that of
    the two shares with its 95 % interval, None without sessions on both sides. ``edges`` compares in the same way,
    over all lists, the learned edges whose end was shown after their beginning and called in at least 20 sessions.
    Raises StateError before the first publication.
    """
    if not settings.at.usage.exists():
        raise StateError(f"nothing is published at {settings.at.usage}", suggestions=["cowpath publish"])
    with Store.open() as store:
        store.attach(settings.at.usage, "usage", read_only=True)
        for name in sql_names("uplift"):
            store.run(name, within=within)
        sides = {policy: _side(store, policy) for policy in ("served", "holdout")}
        lists = {policy: _lists(store, policy) for policy in sides}
        offers = store.rows("select * from offers order by asked_after, skill_id")
    found = [_edge(edge, counts) for edge, counts in _offered(read_layer(settings.at.edges, "learned"), offers)]
    told = [edge for edge in found if edge["co_uses"] >= ENOUGH_CO_USES]
    return {
        "within_calls": within,
        "holdout_share": settings.holdout_share,
        **sides,
        **_compared(sides["served"], sides["holdout"]),
        "lists": lists,
        "edges": told,
        "edges_with_too_few": len(found) - len(told),
    }


def _side(store: Store, policy: str) -> dict[str, Any]:
    ((sessions, followed),) = store.rows(
        "select count(*), count(*) filter (took) from first_lists where policy = $policy", {"policy": policy}
    )
    return _share(followed, sessions)


def _lists(store: Store, policy: str) -> dict[str, int]:
    """All lists of a side; ``said`` of the followed are those that a call named as ``suggested_by``."""
    ((lists, followed, said),) = store.rows(
        """
        select
            count(distinct list),
            count(distinct list) filter (skill_id is not null),
            count(distinct list) filter (said)
        from lists
        left join followed using (list)
        where policy = $policy
        """,
        {"policy": policy},
    )
    return {"lists": lists, "followed": followed, "said": said}


def _share(followed: int, sessions: int) -> dict[str, Any]:
    return {"sessions": sessions, "followed": followed, "share": round(followed / sessions, 6) if sessions else None}


def _compared(served: dict[str, Any], holdout: dict[str, Any]) -> dict[str, Any]:
    one, other = ((side["followed"], side["sessions"]) for side in (served, holdout))
    short = [f"{n} {word}" for word, (_, n) in (("served", one), ("held out", other)) if n < ENOUGH_SESSIONS]
    why = f"too few sessions to say: {' and '.join(short)}, at least {ENOUGH_SESSIONS} of each are needed"
    both = one[1] > 0 and other[1] > 0
    return {
        "difference": round(one[0] / one[1] - other[0] / other[1], 6) if both else None,
        "interval": [round(bound, 6) for bound in newcombe(one, other)] if both else None,
        "enough": not short,
        "reason": why if short else None,
    }


def _offered(edges: list[Edge], offers: list[tuple[Any, ...]]) -> list[tuple[Edge, tuple[int, ...]]]:
    """Learned edges with the counts of the offers along them; an edge without direction counts both ways."""
    counts = {(after, shown): numbers for after, shown, *numbers in offers}
    found: list[tuple[Edge, tuple[int, ...]]] = []
    for edge in edges:
        ways = [(edge.source, edge.target)] + [(edge.target, edge.source)] * (edge.relation == "complements")
        there = [counts[way] for way in ways if way in counts]
        if there and edge.relation in ("precedes", "complements"):
            found.append((edge, tuple(map(sum, zip(*there, strict=True)))))
    return found


def _edge(edge: Edge, counts: tuple[int, ...]) -> dict[str, Any]:
    served, served_took, holdout, holdout_took = counts
    sides = {"served": _share(served_took, served), "holdout": _share(holdout_took, holdout)}
    ends = {"source": edge.source, "relation": edge.relation, "target": edge.target}
    compared = _compared(sides["served"], sides["holdout"])
    return ends | {"co_uses": served_took + holdout_took, **sides, **compared}
