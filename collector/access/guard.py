"""The guard: every request of the server passes here first, whatever app answers it."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from collector.access.keys import Key, Keyring
from collector.access.limits import Limits
from collector.access.scopes import scope_of
from collector.otlp.answer import error_body
from cowpath.errors import BadFile, CowpathError, Forbidden, RateLimited, StoreDamaged, Unauthorized


class Guard:
    """Lets through who may pass; answers everybody else with an error document.

    With keys, each request names one that reaches far enough. Without any, and bound to loopback, everybody on this
    machine may do everything, but no web page: neither under a name that was bent to this machine nor from another
    origin. Without any but bound to more than loopback, nobody may.
    """

    def __init__(self, app: ASGIApp, keyring: Keyring, *, loopback: bool, limits: Limits | None = None) -> None:
        self._app = app
        self._keyring = keyring
        self._loopback = loopback
        self._limits = limits or Limits()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                key = self.check(scope["method"], scope["path"], _headers(scope))
            except CowpathError as error:
                await _answer(scope, send, error)
                return
            if key:
                # One path may hold tools of several scopes; whoever serves it can look.
                scope["cowpath.scopes"] = key.scopes
        await self._app(scope, receive, send)

    def check(self, method: str, path: str, headers: dict[str, str]) -> Key | None:
        """The key a request may pass with, None where it needs none; else Unauthorized, Forbidden or RateLimited."""
        try:
            keys = self._keyring.given
        except BadFile as error:
            raise StoreDamaged(error.message) from error
        if not keys and self._loopback:
            _from_this_machine(headers)
            return None
        needed = scope_of(method, path)
        if needed is None:
            return None
        key = self._keyring.find(_token(headers))
        if key is None:
            raise Unauthorized("this key is not known here, or was revoked", suggestions=["cowpath keys list"])
        if not key.reaches(needed):
            raise Forbidden(f"key {key.name!r} is for {' and '.join(key.scopes)}; {method} {path} takes {needed}")
        wait_s = self._limits.wait_s(key.name, key.rate)
        if wait_s:
            raise RateLimited(f"key {key.name!r} may ask {key.rate} times a minute", retry_after_s=wait_s)
        return key


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    """Whether an address or name means this machine and cannot be reached from another."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _from_this_machine(headers: dict[str, str]) -> None:
    """A browser always says which name it asked for and which page asks (DNS rebinding, cross-site requests)."""
    host = headers.get("host", "")
    if host and not is_loopback(_name(f"//{host}")):
        raise Forbidden(f"this collector has no keys and answers under loopback names only, not {host[:100]!r}")
    origin = headers.get("origin", "")
    if origin and not is_loopback(_name(origin)):
        raise Forbidden(f"this collector has no keys and takes nothing from the pages of {origin[:100]!r}")


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _token(headers: dict[str, str]) -> str:
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise Unauthorized(
            "a key is needed: Authorization: Bearer cow_...", suggestions=["cowpath keys add NAME --scope ingest"]
        )
    return token.strip()


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


CHALLENGES = {401: 'Bearer realm="cowpath"', 403: 'Bearer realm="cowpath", error="insufficient_scope"'}


async def _answer(scope: Scope, send: Send, error: CowpathError) -> None:
    content_type = _headers(scope).get("content-type", "")
    body, media_type = error_body(error, scope["path"], error.http_status, content_type)
    headers = [(b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode())]
    if error.http_status in CHALLENGES:
        headers.append((b"www-authenticate", CHALLENGES[error.http_status].encode()))
    if error.http_status in (429, 503):
        headers.append((b"retry-after", str(getattr(error, "retry_after_s", 1)).encode()))
    await send({"type": "http.response.start", "status": error.http_status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
