"""A request body: its type, its encoding, its size; what is left is plain JSON or JSON lines."""

from __future__ import annotations

import zlib

from cowpath.errors import InputError, TooLarge, UnsupportedMedia

JSON_TYPES = frozenset({"application/json", "text/json"})
LINE_TYPES = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"})

GZIP = 16 + zlib.MAX_WBITS


def holds_lines(content_type: str) -> bool:
    """Whether a content type means one JSON document a line. UnsupportedMedia for types we do not take."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in LINE_TYPES:
        return True
    if kind in JSON_TYPES:
        return False
    raise UnsupportedMedia(
        f"content type {kind or '(none)'!r} is not taken", suggestions=["application/json", "application/x-ndjson"]
    )


def unpacked(body: bytes, encoding: str, *, limit: int) -> bytes:
    """The body without its content encoding, at most ``limit`` bytes of it."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise UnsupportedMedia(f"content encoding {encoding!r} is not taken", suggestions=["gzip", "identity"])
    try:
        plain = _gunzipped(body, limit)
    except zlib.error as error:
        raise InputError(f"the body is not gzip: {error}") from None
    if len(plain) > limit:
        raise too_large(limit)
    return plain


def too_large(limit: int) -> TooLarge:
    return TooLarge(f"the body is larger than {limit} bytes; send fewer events at once")


def _gunzipped(body: bytes, limit: int) -> bytes:
    """All members of a gzip body, but never more than one byte past the limit."""
    plain = b""
    while body and len(plain) <= limit:
        member = zlib.decompressobj(wbits=GZIP)
        plain += member.decompress(body, limit + 1 - len(plain))
        if not member.eof and len(plain) <= limit:
            raise zlib.error("it ends too early")
        body = member.unused_data
    return plain
