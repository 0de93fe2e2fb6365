"""The ranker's HTTP face: parse, call, answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from msgspec import Meta
from starlette.routing import Route

from cowpath import __version__
from cowpath.client import Client
from cowpath.errors import CowpathError, InputError, TooLarge
from cowpath.settings import Settings
from ranker.advice import recorder, spooled
from ranker.declined import DismissAnswer, DismissRequest, dismiss
from ranker.engine import Ranker
from ranker.feedback import FeedbackAnswer, FeedbackRequest, give_quietly
from ranker.mcp_route import McpRoute
from ranker.next import NextAnswer
from ranker.schema import schema_of
from ranker.search import MAX_K, Arm, SearchAnswer
from ranker.tools import Desk

MAX_BODY_BYTES = 256 * 1024

R = TypeVar("R")

PAGE = Path(__file__).parent / "page" / "index.html"
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
"""It loads nothing from anywhere and speaks to its own server only."""


class SearchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request for skills in words."""

    query: Annotated[str, Meta(min_length=1, pattern=r"\S")]
    k: Annotated[int, Meta(ge=1, le=MAX_K)] = 10
    arm: Arm = "hybrid"


class DocumentedRoute(APIRoute):
    """A route whose errors are our documents, whatever app it is included in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def answer_or_document(request: Request) -> Response:
            try:
                return await answer(request)
            except CowpathError as error:
                return _json(error.document(), error.http_status)
            except RequestValidationError as error:
                found = InputError("; ".join(_complaint(e) for e in error.errors()), suggestions=["GET /openapi.json"])
                return _json(found.document(), found.http_status)

        return answer_or_document


def create_router(settings: Settings, *, desk: Desk | None = None, guarded: bool = False) -> APIRouter:
    """The ranker's routes over one home, to be included in an app; without a desk, one is made that spools its events.

    ``guarded`` where a guard in front of the app checks host, origin and keys.
    """
    desk = desk or Desk.over(settings, spooled(settings))
    mcp = McpRoute(desk, guarded=guarded)
    router = APIRouter(route_class=DocumentedRoute, lifespan=mcp.running)
    router.routes.append(Route("/mcp", mcp))

    @router.get("/", include_in_schema=False)
    async def page() -> Response:
        """The page for people: asks next and search, shows the reasons."""
        return Response(PAGE.read_bytes(), media_type="text/html", headers=PAGE_HEADERS)

    _add_questions(router, desk.ranker)
    _add_opinions(router, settings)
    return router


def create_app(settings: Settings) -> FastAPI:
    """The ranker alone, for a home that another process collects and mines."""
    app = FastAPI(title="cowpath ranker", version=__version__, docs_url=None, redoc_url=None)
    client = Client(settings.sends_to, settings.at.spool, settings.key)
    app.include_router(create_router(settings, desk=Desk.over(settings, recorder(client))))

    @app.get("/healthz")
    def healthz() -> Response:
        """The process answers."""
        return _json({"status": "ok"})

    return app


def _add_questions(router: APIRouter, ranker: Ranker) -> None:
    """The routes that answer."""

    @router.post("/v1/search", responses=_responses(SearchAnswer), openapi_extra=_body(SearchRequest))
    async def search(request: Request) -> Response:
        """Find skills for a request in words: matches, their neighbors, their conflicts."""
        asked = _decoded(await _bounded(request), SearchRequest)
        return _json(await run_in_threadpool(ranker.search, asked.query, asked.k, asked.arm))

    @router.get("/v1/next", responses=_responses(NextAnswer))
    def next_(
        skill: Annotated[list[str] | None, Query(description="called so far, oldest first; repeatable")] = None,
        session: Annotated[str | None, Query(description="its published calls come before the skills")] = None,
        query: Annotated[str | None, Query(description="what is to be done, in words")] = None,
        k: int = 5,
    ) -> Response:
        """What comes next after these skills, and why."""
        return _json(ranker.next(skill or [], session=session, query=query, k=k))

    @router.get("/v1/why", responses=ERRORS)
    def why(a: str, b: str) -> Response:
        """The evidence that ``a`` comes before ``b``, also where there is no edge."""
        return _json(ranker.why(a, b))


def _add_opinions(router: APIRouter, settings: Settings) -> None:
    """The routes that keep what somebody thinks of the answers."""

    @router.post("/v1/feedback", responses=_responses(FeedbackAnswer), openapi_extra=_body(FeedbackRequest))
    async def feedback(request: Request) -> Response:
        """Say which of two skills should stand higher. What cannot be kept is told in the answer, not as an error."""
        asked = _decoded(await _bounded(request), FeedbackRequest)
        return _json(await run_in_threadpool(give_quietly, settings, asked, source="http"))

    @router.post("/v1/dismiss", responses=_responses(DismissAnswer), openapi_extra=_body(DismissRequest))
    async def decline(request: Request) -> Response:
        """Do not tell of a skill unasked any more, in one session or in all."""
        asked = _decoded(await _bounded(request), DismissRequest)
        return _json(await run_in_threadpool(dismiss, settings, asked))


async def _bounded(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise TooLarge(f"the body is larger than {MAX_BODY_BYTES} bytes; a request is a few words")
    return body


def _decoded(body: bytes, kind: type[R]) -> R:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        what = kind.__name__.removesuffix("Request").lower()
        raise InputError(f"the body is not a {what}: {error}", suggestions=["GET /openapi.json"]) from error


def _complaint(error: Any) -> str:  # one of pydantic's error dictionaries
    return f"{'.'.join(str(part) for part in error['loc'])}: {error['msg']}"


def _json(document: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(document), status_code=status, media_type="application/json")


def _body(kind: type) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema_of(kind)}}}}


ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"description": "No such skill; the document names near ones."},
    409: {"description": "Nothing is learned yet, or the sentence encoder is missing."},
    422: {"description": "The request cannot be used; the document says why."},
}


def _responses(kind: type) -> dict[int | str, dict[str, Any]]:
    answer = {"description": "The answer.", "content": {"application/json": {"schema": schema_of(kind)}}}
    return {200: answer, **ERRORS}
