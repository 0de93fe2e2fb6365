"""What the served OpenAPI document says is what the server does (schemathesis, bounded examples)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck
from hypothesis import settings as bounded
from schemathesis import Case
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from collector.app import create_app
from cowpath.settings import Settings
from ranker.app import create_router

BY_DESIGN = (
    # a bad item costs only itself, and a hook never disturbs its agent
    (negative_data_rejection, ("/v1/events", "/v1/cloudevents", "/v1/hooks/", "/v1/logs", "/v1/traces", "/v1/metrics")),
    # no schema says which texts are SQL, formats such as date-time are only remarks there, and 87.0 is an integer to it
    (positive_data_acceptance, ("/v1/sql", "/v1/events", "/v1/search")),
)
"""Check -> where a promise of ours says otherwise."""

_app = create_app(Settings())
_app.include_router(create_router(Settings()))
schema = schemathesis.openapi.from_dict(_app.openapi())


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server."""
    home = tmp_path_factory.mktemp("openapi") / "home"
    server = subprocess.Popen(
        [sys.executable, "-m", "cowpath", "up", "--home", str(home), "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"COWPATH_PUBLISH_EVERY_S": "0", "COWPATH_SQL_TIMEOUT_S": "2"},
    )
    assert server.stdout is not None
    yield json.loads(server.stdout.readline())["url"]
    server.terminate()
    server.wait(timeout=30)
    server.stdout.close()


@schema.parametrize()
@bounded(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_route_keeps_what_its_description_says(case: Case[Any], url: str) -> None:
    case.call_and_validate(base_url=url, excluded_checks=[check for check, paths in BY_DESIGN if _is_in(case, paths)])


def _is_in(case: Case[Any], paths: tuple[str, ...]) -> bool:
    path: str = case.operation.path
    return path.startswith(paths)
