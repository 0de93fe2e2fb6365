"""What an exporter is answered: a response or a google.rpc.Status, in the encoding it sent."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from google.protobuf import json_format
from google.rpc.code_pb2 import Code
from google.rpc.status_pb2 import Status
from starlette.responses import Response

from collector.body import bare_type
from collector.otlp.export import EXPORTS, JSON, PROTOBUF, PROTOBUF_TYPES, Export, Read
from collector.receipt import Receipt
from cowpath.errors import CowpathError

CODES = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.UNIMPLEMENTED,
    405: Code.UNIMPLEMENTED,
    413: Code.INVALID_ARGUMENT,
    415: Code.INVALID_ARGUMENT,
    429: Code.RESOURCE_EXHAUSTED,
    503: Code.UNAVAILABLE,
}
"""HTTP status -> gRPC code; anything else is INTERNAL."""

MAX_REASONS = 3
MAX_MESSAGE = 1_000


def error_body(error: CowpathError, path: str, status: int, content_type: str) -> tuple[bytes, str]:
    """An error in the words of whoever asked, and the media type it is in.

    Exporters read a google.rpc.Status, in JSON where their request was in neither encoding; all others our document.
    """
    if path not in EXPORTS:
        return msgspec.json.encode(error.document()), JSON
    code = CODES.get(status, Code.INTERNAL)
    words = ". ".join([error.message, *error.suggestions])[:MAX_MESSAGE]
    if bare_type(content_type) in PROTOBUF_TYPES:
        return Status(code=code, message=words.encode(errors="replace").decode()).SerializeToString(), PROTOBUF
    return msgspec.json.encode({"code": int(code), "message": words.encode(errors="replace").decode()}), JSON


def response_to(export: Export, read: Read, receipt: Receipt, *, protobuf: bool) -> Response:
    """200: all that could be kept is on disk. Partial success is set only where something was refused."""
    response = export.response()
    if receipt.rejected:
        rejected = min(receipt.rejected, read.signals)
        setattr(response.partial_success, export.rejected, rejected)
        response.partial_success.error_message = _words(export, read, receipt, rejected)
    if protobuf:
        return Response(response.SerializeToString(), media_type=PROTOBUF)
    return Response(msgspec.json.encode(_as_json(response)), media_type=JSON)


def _words(export: Export, read: Read, receipt: Receipt, rejected: int) -> str:
    """What was refused and why, the commonest reasons first."""
    examples = {error.code: error.message for error in reversed(receipt.errors)}
    reasons = Counter(error.code for error in receipt.errors).most_common(MAX_REASONS)
    said = "; ".join(f"{code} ({n}): {examples[code]}" for code, n in reasons)
    return f"{rejected} of {read.signals} {export.things} rejected. {said}"[:MAX_MESSAGE]


def _as_json(response: Any) -> dict[str, Any]:  # the generated classes have no common type that says so
    """Protobuf's own mapping: lower-camel keys, 64-bit numbers as text, what is unset left out."""
    document: dict[str, Any] = json_format.MessageToDict(response)
    return document
