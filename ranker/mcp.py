"""The MCP face: the tools of ``ranker.tools`` over stdio and streamable HTTP."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

import anyio
import anyio.to_thread
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp_types import Tool as ListedTool
from starlette.types import Receive, Scope, Send

from cowpath import __version__
from cowpath.errors import CowpathError, Forbidden, InputError
from cowpath.skill import unknown_skill
from ranker.schema import schema_of
from ranker.tools import TOOLS, Desk, Tool

log = logging.getLogger("cowpath.ranker")

INSTRUCTIONS = (
    "cowpath knows the skills of this installation and in which order agents use them. Ask search_skills for a "
    "skill by what is to be done, suggest_next_skills for what usually follows the skills you called. What it answers "
    "is evidence, not an order."
)

SCHEME = "skill://"
SKILL = ResourceTemplate(
    uri_template=SCHEME + "{skill_id}",
    name="skill",
    description="The instructions of one skill, by its id or another of its names.",
    mime_type="text/markdown",
)

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LOCAL_ONLY = TransportSecuritySettings(
    allowed_hosts=[name for host in LOOPBACK for name in (host, f"{host}:*")],
    allowed_origins=[f"http://{host}{port}" for host in LOOPBACK for port in ("", ":*")],
)
"""Against pages from elsewhere under a name that was bent to this machine (DNS rebinding)."""

ANY_HOST = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""For a server whose guard has looked at the request already."""


class OverHttp:
    """Streamable HTTP as an ASGI endpoint: no session, one JSON answer a request.

    ``guarded`` where a guard before it checks host, origin and keys.
    """

    def __init__(self, desk: Desk, *, guarded: bool = False) -> None:
        self._server = server(desk)
        self._security = ANY_HOST if guarded else LOCAL_ONLY
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Requests are answered for the length of the block."""
        manager = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True, security_settings=self._security
        )
        async with manager.run():
            self._manager = manager
            yield
        self._manager = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._manager, "requests are answered inside of running() only"
        await self._manager.handle_request(scope, receive, send)


def serve_stdio(desk: Desk) -> None:
    """Serve one client on stdin and stdout until it hangs up. Nothing else is written to stdout."""

    async def serve() -> None:
        app = server(desk)
        async with stdio_server() as (read, write):
            await app.run(read, write, app.create_initialization_options())

    anyio.run(serve)


def server(desk: Desk) -> Server[Any]:
    """An MCP server over a desk, ready for any transport."""
    tools = {tool.name: tool for tool in TOOLS}

    async def list_tools(context: ServerRequestContext[Any], params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_listed(tool) for tool in tools.values()])

    async def call_tool(context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        try:
            tool = tools.get(params.name)
            if tool is None:
                raise InputError(f"no tool {params.name!r}", suggestions=list(tools))
            _check_scope(tool, _scopes(context.request))
            asked = _request(tool, params.arguments or {})
            return _result(await anyio.to_thread.run_sync(tool.run, desk, asked))
        except CowpathError as error:
            return _failed(error)
        except Exception as error:
            log.exception("the tool %s failed", params.name)
            return _failed(CowpathError(f"{type(error).__name__}: {error}; this is a fault of ours"))

    async def list_templates(
        context: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[SKILL])

    async def read_skill(context: ServerRequestContext[Any], params: ReadResourceRequestParams) -> ReadResourceResult:
        text = await anyio.to_thread.run_sync(_skill_text, desk, params.uri)
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, text=text, mime_type="text/markdown")])

    return Server(
        "cowpath",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resource_templates=list_templates,
        on_read_resource=read_skill,
    )


def _listed(tool: Tool) -> ListedTool:
    changes = tool.scope != "read"
    return ListedTool(
        name=tool.name,
        description=tool.says,
        input_schema=schema_of(tool.asks),
        output_schema=schema_of(tool.answers) if tool.answers else {"type": "object"},
        annotations=ToolAnnotations(read_only_hint=not changes, destructive_hint=False, open_world_hint=False),
    )


def _skill_text(desk: Desk, uri: str) -> str:
    """The body of a skill; MCPError where the catalogue has no such skill."""
    name = unquote(uri.removeprefix(SCHEME))
    catalogue = desk.ranker.catalogue
    skill = catalogue.skills.get(catalogue.resolve(name)) if uri.startswith(SCHEME) else None
    if skill is None:
        error = unknown_skill(name, sorted(catalogue.alias_of))
        raise MCPError(code=INVALID_PARAMS, message=error.message, data={"uri": uri})
    return skill.body or skill.text


def _scopes(request: Any) -> Collection[str] | None:
    """What the key of a request may do, as the server's guard left it; None where no key was asked for."""
    found: Collection[str] | None = getattr(request, "scope", {}).get("cowpath.scopes")
    return found


def _check_scope(tool: Tool, scopes: Collection[str] | None) -> None:
    if scopes is not None and not {tool.scope, "admin"} & set(scopes):
        raise Forbidden(f"{tool.name} takes a key of scope {tool.scope}; this one is for {' and '.join(scopes)}")


def _request(tool: Tool, arguments: dict[str, Any]) -> Any:
    """The arguments as the tool's own request, or words about the one that cannot be used."""
    try:
        return msgspec.convert(arguments, tool.asks)
    except msgspec.ValidationError as error:
        raise InputError(f"{tool.name}: {error}") from None


def _result(answer: object) -> CallToolResult:
    """The answer twice, as data and as text: clients show one or the other to their model."""
    text = msgspec.json.encode(answer).decode()
    return CallToolResult(content=[TextContent(text=text)], structured_content=msgspec.json.decode(text))


def _failed(error: CowpathError) -> CallToolResult:
    """An error as words for the model: what happened, and what to try."""
    tries = f" Try: {'; '.join(error.suggestions)}" if error.suggestions else ""
    return CallToolResult(content=[TextContent(text=f"{error.message}.{tries}")], is_error=True)
