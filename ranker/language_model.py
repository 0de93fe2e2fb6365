"""Asking a language model for one tool call: the Anthropic Messages API, or any OpenAI-compatible server."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Protocol, Self

import httpx
import msgspec
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from cowpath.errors import InputError, LanguageModelFailed, NoLanguageModel
from cowpath.settings import Settings
from ranker.answers import Outcome

ATTEMPTS = 6
LONGEST_WAIT_S = 120.0
TIMEOUT_S = 120.0
AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
"""Statuses of a server that is busy or broken for now; 529 is Anthropic's "overloaded"."""

BACKOFF = wait_random_exponential(multiplier=1.0, max=30.0)


@dataclass(frozen=True)
class Question:
    """What is asked: the rules, the case, and the tool that the model must call with its answer."""

    rules: str
    case: str
    tool: str
    tool_help: str
    schema: Mapping[str, Any]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. ``input`` is the tool's input where the outcome is ``answered``, not yet checked."""

    outcome: Outcome
    input: Any = None  # what a model wrote
    detail: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


class Dialect(Protocol):
    """How one kind of server is spoken to."""

    path: str

    def headers(self, key: str) -> dict[str, str]: ...
    def body(self, question: Question, settings: Settings) -> dict[str, Any]: ...
    def reply(self, data: bytes, tool: str) -> Reply: ...


class LanguageModel:
    """A configured model. Safe to ask from several threads; busy servers are asked again as late as they want."""

    def __init__(self, settings: Settings, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._settings = settings
        self._dialect, base = _configured(settings)
        self._client = httpx.Client(
            base_url=base.rstrip("/"), headers=self._dialect.headers(settings.llm_key), timeout=TIMEOUT_S
        )
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def ask(self, question: Question) -> Reply:
        """The model's tool call, or what it did instead. Raises LanguageModelFailed where the server gives none."""
        body = self._dialect.body(question, self._settings)
        again = Retrying(
            retry=retry_if_exception_type(_Busy),
            wait=_wait,
            stop=stop_after_attempt(ATTEMPTS),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return self._dialect.reply(again(self._post, body), question.tool)
        except _Busy as error:
            raise _failed(f"{error}, {ATTEMPTS} times") from error

    def _post(self, body: dict[str, Any]) -> bytes:
        try:
            answer = self._client.post(self._dialect.path, json=body)
        except httpx.TransportError as error:
            raise _Busy(f"{self._client.base_url} cannot be reached: {error or type(error).__name__}") from error
        if answer.status_code in AGAIN:
            busy = _Busy(f"{self._client.base_url} answered {answer.status_code}", wait_s=_retry_after(answer))
            if busy.wait_s > LONGEST_WAIT_S:
                raise _failed(f"{busy} and wants {busy.wait_s:.0f} s of quiet")
            raise busy
        if not answer.is_success:
            raise _failed(f"{answer.url} answered {answer.status_code}: {' '.join(answer.text.split())[:300]}")
        return answer.content


class _Busy(Exception):
    """The server may answer the same question later."""

    def __init__(self, words: str, *, wait_s: float = 0.0) -> None:
        super().__init__(words)
        self.wait_s = wait_s


class Anthropic:
    """The Messages API (https://docs.anthropic.com/en/api/messages): a forced call of one tool."""

    path = "/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def body(self, question: Question, settings: Settings) -> dict[str, Any]:
        tool = {"name": question.tool, "description": question.tool_help, "input_schema": question.schema}
        return {
            "model": settings.llm_model,
            "max_tokens": settings.llm_max_tokens,
            "system": question.rules,
            "messages": [{"role": "user", "content": question.case}],
            "tools": [tool],
            "tool_choice": {"type": "tool", "name": question.tool, "disable_parallel_tool_use": True},
        }

    def reply(self, data: bytes, tool: str) -> Reply:
        try:
            message = msgspec.json.decode(data, type=_Message)
        except msgspec.MsgspecError as error:
            return Reply(outcome="invalid", detail=f"not a message: {error}")
        usage = message.usage
        read = usage.input_tokens + (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
        words = " ".join(block.text for block in message.content)
        calls = [block.input for block in message.content if block.type == "tool_use" and block.name == tool]
        reply = Reply(outcome="answered", input_tokens=read, output_tokens=usage.output_tokens)
        if message.stop_reason == "refusal":
            return _instead(reply, "refused", words)
        if message.stop_reason in ("max_tokens", "model_context_window_exceeded"):
            return _instead(reply, "truncated", message.stop_reason)
        return _called(reply, calls, words)


class OpenAI:
    """Chat completions, as OpenAI, vLLM, llama.cpp, Ollama and others serve them: a forced call of one function."""

    path = "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, question: Question, settings: Settings) -> dict[str, Any]:
        function = {"name": question.tool, "description": question.tool_help, "parameters": question.schema}
        # OpenAI's newer models take the second name only, other servers know the first
        limit = "max_completion_tokens" if "api.openai.com" in settings.llm_url else "max_tokens"
        return {
            "model": settings.llm_model,
            limit: settings.llm_max_tokens,
            "messages": [{"role": "system", "content": question.rules}, {"role": "user", "content": question.case}],
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": question.tool}},
        }

    def reply(self, data: bytes, tool: str) -> Reply:
        try:
            completion = msgspec.json.decode(data, type=_Completion)
            choice = completion.choices[0]
        except (msgspec.MsgspecError, IndexError) as error:
            return Reply(outcome="invalid", detail=f"not a completion: {error}")
        usage, message = completion.usage or _OpenAIUsage(), choice.message
        reply = Reply(outcome="answered", input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens)
        if message.refusal or choice.finish_reason == "content_filter":
            return _instead(reply, "refused", message.refusal or "content_filter")
        if choice.finish_reason == "length":
            return _instead(reply, "truncated", "length")
        try:
            calls = [_arguments(c.function) for c in message.tool_calls or () if c.function.name == tool]
        except msgspec.DecodeError as error:
            return _instead(reply, "invalid", f"arguments that are no JSON: {error}")
        return _called(reply, calls, message.content or "")


DIALECTS: dict[str, tuple[Dialect, str]] = {
    "anthropic": (Anthropic(), "https://api.anthropic.com"),
    "openai": (OpenAI(), ""),
}
"""``llm_api`` -> how to speak, and the address where none is set."""


class _Block(msgspec.Struct, frozen=True):
    type: str
    name: str = ""
    text: str = ""
    input: Any = None  # what a model wrote


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Message(msgspec.Struct, frozen=True):
    content: list[_Block]
    stop_reason: str | None = None
    usage: _Usage = _Usage()


class _Function(msgspec.Struct, frozen=True):
    name: str
    arguments: str | dict[str, Any] = ""  # some local servers send the object itself


class _Call(msgspec.Struct, frozen=True):
    function: _Function


class _Said(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Said
    finish_reason: str | None = None


class _OpenAIUsage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Completion(msgspec.Struct, frozen=True):
    choices: list[_Choice]
    usage: _OpenAIUsage | None = None


def _configured(settings: Settings) -> tuple[Dialect, str]:
    """(dialect, base address); NoLanguageModel where a setting is missing."""
    if settings.llm_api not in DIALECTS:
        raise InputError(f"COWPATH_LLM_API is {settings.llm_api!r}; it is anthropic or openai")
    dialect, usual = DIALECTS[settings.llm_api]
    needed = {
        "COWPATH_LLM_MODEL": settings.llm_model,
        "COWPATH_LLM_URL": settings.llm_url or usual,
        # a server of one's own may do without a key
        "COWPATH_LLM_KEY": settings.llm_key or settings.llm_url,
    }
    missing = [name for name, value in needed.items() if not value]
    if missing:
        raise NoLanguageModel(
            f"no language model is configured, so none is asked: {', '.join(missing)} not set",
            suggestions=[
                "COWPATH_LLM_MODEL=NAME COWPATH_LLM_KEY=...",
                "COWPATH_LLM_API=openai COWPATH_LLM_URL=http://localhost:11434/v1 COWPATH_LLM_MODEL=NAME",
            ],
        )
    return dialect, settings.llm_url or usual


def _wait(state: RetryCallState) -> float:
    """As long as the server asked for, else longer each time."""
    error = state.outcome.exception() if state.outcome else None
    return (error.wait_s if isinstance(error, _Busy) else 0.0) or BACKOFF(state)


def _retry_after(answer: httpx.Response) -> float:
    """Seconds that ``Retry-After`` asks for, as a number or a date; 0 where it does not."""
    text = answer.headers.get("retry-after", "")
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except ValueError:
        return 0.0


def _failed(words: str) -> LanguageModelFailed:
    return LanguageModelFailed(words, suggestions=["the same command again goes on where this one stopped"])


def _instead(reply: Reply, outcome: Outcome, detail: str) -> Reply:
    return msgspec.structs.replace(reply, outcome=outcome, detail=detail[:300])


def _called(reply: Reply, calls: list[Any], words: str) -> Reply:
    if not calls:
        return _instead(reply, "invalid", f"no call of the tool: {words}")
    return msgspec.structs.replace(reply, input=calls[0])


def _arguments(function: _Function) -> Any:
    given = function.arguments
    return msgspec.json.decode(given) if isinstance(given, str) else given
