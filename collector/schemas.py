"""JSON Schemas of what is decoded and encoded here, exact because they come from the decoders' own types."""

from __future__ import annotations

from typing import Any

import msgspec

from collector.cloudevents import CloudEvent
from collector.native import NativeBatch, NativeEvent
from collector.receipt import Receipt

PLACE = "#/components/schemas/"


class ErrorBody(msgspec.Struct):
    """What went wrong, for programs and for people."""

    code: str
    type: str
    message: str
    retryable: bool
    suggestions: list[str]


class ErrorDocument(msgspec.Struct):
    """Every error of every endpoint."""

    error: ErrorBody


def ref(name: str) -> dict[str, str]:
    """A reference to a component of the OpenAPI document."""
    return {"$ref": PLACE + name}


ONE_OR_MANY = {
    "anyOf": [
        ref("NativeEvent"),
        ref("NativeBatch"),
        {"type": "array", "items": ref("NativeEvent")},
    ]
}
"""What one JSON body may be."""


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": words,
        "content": {"application/json": {"schema": ref("ErrorDocument")}},
    }
    for status, words in {
        413: "The body, before or after decompression, or the batch is over its limit.",
        415: "A content type or encoding that is not taken.",
        422: "Not JSON at all. A bad item among good ones is no error: the receipt names it.",
        429: "Too many requests; Retry-After says when to try again.",
        503: "Too much waits for the disk, or the collector is stopping; nothing was stored; see Retry-After.",
    }.items()
}
"""The errors of every route that takes events in."""


def native_schema() -> dict[str, Any]:
    """The native event as JSON Schema 2020-12."""
    _, components = msgspec.json.schema_components([NativeEvent], ref_template="#/$defs/{name}")
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "schema_version": 1, **_named(components["NativeEvent"])}


def component_schemas() -> dict[str, Any]:
    """Every schema the OpenAPI document refers to, by name."""
    types = [NativeEvent, NativeBatch, CloudEvent, Receipt, ErrorDocument]
    _, components = msgspec.json.schema_components(types, ref_template=PLACE + "{name}")
    return components | {"NativeEvent": _named(components["NativeEvent"])}


def _named(event: dict[str, Any]) -> dict[str, Any]:
    """The rule no type can say: a skill, under either name."""
    return event | {"anyOf": [{"required": ["skill_id"]}, {"required": ["skill"]}]}
