"""Keys: who is let in, how far, how often, and who only looks like this machine."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from collector.access.guard import Guard
from collector.access.keys import Keyring, add_key, read_keys, revoke_key
from collector.access.limits import Limits
from collector.access.scopes import SCOPES, scope_of
from collector.app import create_app
from collector.server import listen
from cowpath.errors import CowpathError, InputError
from cowpath.home import Home
from cowpath.settings import Settings

EVENT = {"event_id": "e1", "session_id": "s1", "skill_id": "plan"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def guard(home: Home) -> Guard:
    async def nothing(*_: object) -> None: ...

    home.root.mkdir()
    return Guard(nothing, Keyring(home), loopback=True)


def status_of(guard: Guard, method: str, path: str, **headers: str) -> int:
    """What the guard answers; 200 where it lets the request through."""
    try:
        guard.check(method, path, {name.replace("_", "-"): value for name, value in headers.items()})
    except CowpathError as error:
        return error.http_status
    return 200


def test_b15_a_key_is_kept_as_a_hash_in_a_file_of_its_owner_only(home: Home) -> None:
    token = add_key(home, "agent", ["ingest"])

    assert token.startswith("cow_")
    assert token.encode() not in home.keys.read_bytes()
    assert stat.S_IMODE(home.keys.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("scope", "answers"),
    [("ingest", [200, 403, 403]), ("read", [403, 200, 403]), ("admin", [200, 200, 200])],
)
def test_b15_a_key_reaches_as_far_as_its_scope(guard: Guard, home: Home, scope: Any, answers: list[int]) -> None:
    authorization = f"Bearer {add_key(home, 'k', [scope])}"
    asked = [("POST", "/v1/events"), ("POST", "/v1/search"), ("DELETE", "/v1/subjects/actor/bea")]
    assert [status_of(guard, *request, authorization=authorization) for request in asked] == answers


def test_without_a_known_key_nothing_but_health_is_answered(guard: Guard, home: Home) -> None:
    add_key(home, "k", ["admin"])
    assert status_of(guard, "GET", "/healthz") == 200
    assert status_of(guard, "GET", "/metrics") == 401
    assert status_of(guard, "GET", "/v1/status", authorization="Bearer cow_wrong") == 401
    assert status_of(guard, "GET", "/v1/status", authorization="Basic eDp5") == 401


def test_a_revoked_key_is_refused_from_the_next_request_on(guard: Guard, home: Home) -> None:
    add_key(home, "other", ["read"])
    authorization = f"Bearer {add_key(home, 'k', ['read'])}"
    assert status_of(guard, "GET", "/v1/status", authorization=authorization) == 200
    revoke_key(home, "k")
    assert status_of(guard, "GET", "/v1/status", authorization=authorization) == 401


def test_keys_that_cannot_be_read_let_nobody_in(guard: Guard, home: Home) -> None:
    home.keys.write_text("{")
    assert status_of(guard, "GET", "/v1/status") == 503


def test_two_keys_of_one_name_and_a_key_that_is_not_there_are_refused(home: Home) -> None:
    add_key(home, "k", ["read"])
    with pytest.raises(InputError, match="already"):
        add_key(home, "k", ["read"])
    with pytest.raises(InputError, match="there are: k"):
        revoke_key(home, "nobody")


def test_a_path_nobody_thought_of_needs_admin() -> None:
    assert scope_of("POST", "/v1/something-new") == "admin"
    assert scope_of("HEAD", "/healthz") is None


def test_every_route_has_a_scope_of_its_own(settings: Settings) -> None:
    """Guards the table: a new route must be decided on, not fall to admin."""
    from ranker.app import create_router

    app = create_app(settings)
    app.include_router(create_router(settings))
    routes = [(method, path) for path, methods in app.openapi()["paths"].items() for method in map(str.upper, methods)]
    assert len(routes) > 5
    listed = {(method, pattern.rstrip("*")) for method, pattern, _ in SCOPES}
    unlisted = [
        (method, path)
        for method, path in routes
        if not any(m == method and (path == p or (p.endswith("/") and path.startswith(p))) for m, p in listed)
    ]
    assert unlisted == []


def test_b15_a_rate_is_a_minutes_worth_at_once_then_one_more_as_each_falls_due() -> None:
    now = [0.0]
    limits = Limits(clock=lambda: now[0])
    assert [limits.wait_s("k", 2) for _ in range(3)] == [0, 0, 30]
    now[0] = 29.0
    assert limits.wait_s("k", 2) == 1
    now[0] = 30.5
    assert limits.wait_s("k", 2) == 0
    assert limits.wait_s("other", 2) == 0
    assert limits.wait_s("k", 0) == 0


def test_b15_without_keys_only_loopback_names_and_pages_are_answered(guard: Guard) -> None:
    assert status_of(guard, "GET", "/v1/status", host="127.0.0.1:8710") == 200
    assert status_of(guard, "GET", "/v1/status", host="[::1]:8710") == 200
    assert status_of(guard, "GET", "/v1/status", host="localhost") == 200
    assert status_of(guard, "GET", "/v1/status", host="rebound.example:8710") == 403
    assert status_of(guard, "POST", "/v1/publish", host="localhost", origin="https://elsewhere.example") == 403
    assert status_of(guard, "POST", "/v1/publish", host="localhost", origin="http://localhost:8710") == 200


def test_the_last_key_revoked_closes_a_server_that_others_can_reach(home: Home) -> None:
    async def nothing(*_: object) -> None: ...

    guard = Guard(nothing, Keyring(home), loopback=False)
    assert status_of(guard, "GET", "/v1/status", host="127.0.0.1") == 401


def test_others_may_reach_the_server_only_where_there_are_keys(settings: Settings) -> None:
    everywhere = replace(settings, host="0.0.0.0", port=0)
    with pytest.raises(InputError, match="no keys"):
        listen(everywhere)
    add_key(settings.at, "k", ["ingest"])
    listen(everywhere).close()


def test_a_server_with_keys_answers_with_typed_documents_and_its_own_commands_still_work(
    start_server: Callable[..., Any], home: Home
) -> None:
    agent = add_key(home, "agent", ["ingest"], rate=2)
    reader = add_key(home, "reader", ["read"])
    server = start_server()
    events = f"{server.url}/v1/events"

    missing = httpx.post(events, json=EVENT)
    assert missing.status_code == 401
    assert missing.headers["www-authenticate"].startswith("Bearer")
    assert missing.json()["error"]["code"] == "unauthorized"
    wrong = httpx.post(events, json=EVENT, headers=bearer(reader))
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (403, "forbidden")
    assert [httpx.post(events, json=EVENT, headers=bearer(agent)).status_code for _ in range(2)] == [200, 200]
    over = httpx.post(events, json=EVENT, headers=bearer(agent))
    assert (over.status_code, over.json()["error"]["retryable"]) == (429, True)
    assert int(over.headers["retry-after"]) in (29, 30)

    from collector.doors import open_door

    with open_door(Settings(home=str(home.root))) as door:
        door.publish()
    assert home.usage.exists()
    assert stat.S_IMODE(home.local_key.stat().st_mode) == 0o600
    assert [key.name for key in read_keys(home)] == ["agent", "reader"]
