"""What can go wrong, as one small tree.

    CowpathError            500  exit 110  a fault of ours
    ├── InputError          422  exit 80   what was given cannot be used
    │   ├── UnknownSkill    404  exit 81   no such skill; names the nearest ones
    │   ├── BadFile         422  exit 82   a file that cannot be read as what it should be
    │   ├── TooLarge        413  exit 83   a body, batch or text over its limit
    │   ├── UnsupportedMedia 415 exit 84   a content type or encoding we do not take
    │   ├── Undecodable     400  exit 87   a body that is not the OTLP it says it is
    │   ├── QueryRefused    422  exit 85   SQL that is no query, cannot be run, or wants to write
    │   └── QueryStopped    422  exit 86   a query that took longer than it may
    ├── Unauthorized        401  exit 100   no key, or one that nobody gave out
    ├── Forbidden           403  exit 101  the key's scope does not reach this far, or the request comes from elsewhere
    ├── RateLimited         429  exit 102  a key asks more often than it may; try again
    └── StateError          409  exit 90   the installation is not in the state this needs
        ├── HomeBusy        503  exit 91   another process holds the home; try again
        ├── NothingLearned  409  exit 92   no mining run has written anything yet
        ├── ModelMissing    409  exit 93   the sentence encoder is not installed
        ├── StoreDamaged    503  exit 94   the store or the home cannot be used as it is
        ├── Overloaded      503  exit 95   a bounded queue is full; try again
        ├── NoLanguageModel 409  exit 96   no language model is configured, so none is asked
        └── LanguageModelFailed 503 exit 97  the language model's server gave no answer; try again

Every message says what happened, to which thing, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


class CowpathError(Exception):
    """Base of all our errors: a message for people, a code for programs."""

    code: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 110
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, suggestions: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.suggestions = list(suggestions)

    def document(self) -> dict[str, Any]:
        """The error as every face prints it: ``{"error": {...}}``."""
        return {
            "error": {
                "code": self.code,
                "type": type(self).__name__,
                "message": self.message,
                "retryable": self.retryable,
                "suggestions": self.suggestions,
            }
        }


class InputError(CowpathError):
    code = "bad_input"
    http_status = 422
    exit_code = 80


class UnknownSkill(InputError):
    code = "unknown_skill"
    http_status = 404
    exit_code = 81


class BadFile(InputError):
    code = "bad_file"
    exit_code = 82


class TooLarge(InputError):
    code = "too_large"
    http_status = 413
    exit_code = 83


class UnsupportedMedia(InputError):
    code = "unsupported_media"
    http_status = 415
    exit_code = 84


class QueryRefused(InputError):
    code = "query_refused"
    exit_code = 85


class QueryStopped(InputError):
    code = "query_stopped"
    exit_code = 86


class Undecodable(InputError):
    """OTLP names the status: 400, so that no exporter tries the same bytes again."""

    code = "undecodable"
    http_status = 400
    exit_code = 87


class Unauthorized(CowpathError):
    code = "unauthorized"
    http_status = 401
    exit_code = 100


class Forbidden(CowpathError):
    code = "forbidden"
    http_status = 403
    exit_code = 101


class RateLimited(CowpathError):
    code = "rate_limited"
    http_status = 429
    exit_code = 102
    retryable = True

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message, suggestions=[f"send the same request again in {retry_after_s} s"])
        self.retry_after_s = retry_after_s


class StateError(CowpathError):
    code = "wrong_state"
    http_status = 409
    exit_code = 90


class HomeBusy(StateError):
    code = "home_busy"
    http_status = 503
    exit_code = 91
    retryable = True


class NothingLearned(StateError):
    code = "nothing_learned"
    exit_code = 92


class ModelMissing(StateError):
    code = "model_missing"
    exit_code = 93


class StoreDamaged(StateError):
    code = "store_damaged"
    http_status = 503
    exit_code = 94


class Overloaded(StateError):
    code = "overloaded"
    http_status = 503
    exit_code = 95
    retryable = True

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message, suggestions=[f"send the same request again in {retry_after_s} s"])
        self.retry_after_s = retry_after_s


class NoLanguageModel(StateError):
    code = "no_language_model"
    exit_code = 96


class LanguageModelFailed(StateError):
    code = "language_model_failed"
    http_status = 503
    exit_code = 97
    retryable = True
