"""MCP over HTTP, loaded when the first agent asks: most servers never see one, and loading takes half a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cowpath.errors import CowpathError, StateError
from ranker.tools import Desk

if TYPE_CHECKING:
    from ranker.mcp import OverHttp


class McpRoute:
    """An ASGI endpoint. ``guarded`` where a guard before it checks host, origin and keys."""

    def __init__(self, desk: Desk, *, guarded: bool = False) -> None:
        self._desk = desk
        self._guarded = guarded

    @asynccontextmanager
    async def running(self, app: object) -> AsyncIterator[None]:
        """The lifespan of the app that it is part of."""
        self._wanted, self._loaded, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._endpoint: OverHttp | None = None
        self._error: CowpathError | None = None
        task = asyncio.create_task(self._serve(), name="cowpath-mcp")
        yield
        self._ended.set()
        if not self._wanted.is_set():
            task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._wanted.set()
        await self._loaded.wait()
        if self._endpoint is None:
            error = self._error or StateError("the server is stopping")
            await _document(error)(scope, receive, send)
            return
        await self._endpoint(scope, receive, send)

    async def _serve(self) -> None:
        """One task begins and ends what serves the others, as its task group needs."""
        await self._wanted.wait()
        try:
            endpoint = await asyncio.to_thread(_load, self._desk, guarded=self._guarded)
            async with endpoint.running():
                self._endpoint = endpoint
                self._loaded.set()
                await self._ended.wait()
        except ModuleNotFoundError as error:
            self._error = StateError(f"{error.name} is not installed", suggestions=["pip install 'cowpath[mcp]'"])
        finally:
            self._endpoint = None
            self._loaded.set()


def _load(desk: Desk, *, guarded: bool) -> OverHttp:
    from ranker.mcp import OverHttp

    return OverHttp(desk, guarded=guarded)


def _document(error: CowpathError) -> Response:
    return Response(msgspec.json.encode(error.document()), error.http_status, media_type="application/json")
