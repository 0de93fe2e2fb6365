"""Path -> scope, as data: what a key must be allowed to do for a request."""

from __future__ import annotations

from collector.access.keys import Scope

ANYBODY = None

SCOPES: tuple[tuple[str, str, Scope | None], ...] = (
    ("GET", "/", ANYBODY),
    ("GET", "/healthz", ANYBODY),
    ("GET", "/readyz", ANYBODY),
    ("GET", "/openapi.json", ANYBODY),
    ("GET", "/docs", ANYBODY),
    ("GET", "/docs/*", ANYBODY),
    ("GET", "/redoc", ANYBODY),
    ("GET", "/v1/schema", ANYBODY),
    ("POST", "/v1/events", "ingest"),
    ("POST", "/v1/events/*", "ingest"),
    ("POST", "/v1/cloudevents", "ingest"),
    ("POST", "/v1/hooks/*", "ingest"),
    ("POST", "/v1/logs", "ingest"),
    ("POST", "/v1/traces", "ingest"),
    ("POST", "/v1/metrics", "ingest"),
    ("GET", "/metrics", "read"),
    ("GET", "/v1/status", "read"),
    ("GET", "/v1/next", "read"),
    ("GET", "/v1/why", "read"),
    ("POST", "/v1/search", "read"),
    ("GET", "/mcp", "read"),
    ("POST", "/mcp", "read"),
    ("DELETE", "/mcp", "read"),
    ("POST", "/v1/feedback", "ingest"),
    ("POST", "/v1/dismiss", "ingest"),
    ("GET", "/v1/sql", "read"),
    ("POST", "/v1/sql", "read"),
    ("GET", "/v1/export", "read"),
    ("POST", "/v1/export", "read"),
    ("GET", "/v1/export/*", "read"),
    ("POST", "/v1/publish", "admin"),
    ("DELETE", "/v1/events", "admin"),
    ("DELETE", "/v1/subjects/*", "admin"),
)
"""Method, path (``*`` at the end for anything behind it), scope; the first that fits decides."""

UNLISTED: Scope = "admin"
"""What nobody thought of is not for everybody."""


def scope_of(method: str, path: str) -> Scope | None:
    """The scope a request needs; None where anybody may."""
    method = "GET" if method == "HEAD" else method
    for of_method, pattern, scope in SCOPES:
        if of_method == method and _fits(pattern, path):
            return scope
    return UNLISTED


def _fits(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern
