"""CloudEvents 1.0 in structured and batch form -> events; ``data`` holds the fields of a native event."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from collector.identity import cloud_event
from collector.loose import Unusable, text_of
from collector.wire import Item, dead_letter, loosely, read_object, too_deep
from cowpath.errors import InputError, TooLarge
from cowpath.event import Rejected

SOURCE = "cloudevents"

ENVELOPE = frozenset(
    {"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data", "data_base64"}
)


class CloudEvent(msgspec.Struct, kw_only=True):
    """An event in the envelope of CloudEvents 1.0. ``source`` and ``id`` make repeats harmless."""

    specversion: Annotated[str, Meta(pattern=r"^1\.")]
    id: Annotated[str, Meta(min_length=1)]
    source: Annotated[str, Meta(min_length=1)]
    type: Annotated[str, Meta(min_length=1)]
    subject: Annotated[str | None, Meta(description="The skill, where data names none.")] = None
    time: Annotated[str | None, Meta(description="The call's time, where data has none.")] = None
    data: Annotated[dict[str, Any] | None, Meta(description="The fields of a native event.")] = None


def read_cloud_events(body: bytes, *, as_batch: bool, limit: int) -> list[Item]:
    """The items of a body in their order. InputError where it is not JSON, TooLarge past ``limit`` items."""
    try:
        document = loosely(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is not JSON: {error}") from None
    if not as_batch:
        return [_item(document)]
    if not isinstance(document, list):
        raise InputError("application/cloudevents-batch+json is a list of CloudEvents; it may be empty")
    if len(document) > limit:
        raise TooLarge(f"{len(document)} events in one request; send at most {limit} at once")
    return [_item(found) for found in document]


def _item(found: object) -> Item:
    if not isinstance(found, dict):
        return Rejected(code="not_an_object", message=f"an event is a JSON object, not {type(found).__name__}")
    try:
        return read_object(_native(found))
    except Unusable as problem:
        return Rejected(
            code=problem.code, field=problem.field, message=problem.message, source=SOURCE, body=dead_letter(found)
        )
    except RecursionError:
        return too_deep()


def _native(found: dict[str, Any]) -> dict[str, Any]:
    """The envelope as one native event: what data says goes first, the identity is the envelope's."""
    if not _required(found, "specversion").startswith("1."):
        raise Unusable("unknown_version", "specversion", "only CloudEvents 1.x are taken")
    event_id = cloud_event(_required(found, "source"), _required(found, "id"))
    data = _data(found)
    named = {"skill_id", "skill"} & data.keys()
    timed = {"called_at", "ts"} & data.keys()
    return (
        {key: value for key, value in found.items() if key not in ENVELOPE}
        | {"cloudevent_type": _required(found, "type")}
        | ({} if named else {"skill_id": found.get("subject")})
        | ({} if timed else {"called_at": found.get("time")})
        | data
        | {"event_id": event_id, "source": SOURCE}
    )


def _required(found: dict[str, Any], name: str) -> str:
    value = text_of(name, found.get(name))
    if not value:
        raise Unusable("missing_field", name, f"a CloudEvent has {name}")
    return value


def _data(found: dict[str, Any]) -> dict[str, Any]:
    data: Any = found.get("data", {})
    if "data_base64" in found:
        try:
            data = msgspec.json.decode(base64.b64decode(text_of("data_base64", found["data_base64"]) or ""))
        except (binascii.Error, ValueError, RecursionError):
            raise Unusable("bad_value", "data_base64", "data_base64 is not JSON in base64") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise Unusable("bad_type", "data", f"data must be an object, not {type(data).__name__}")
    return data
