"""A request body: its type, its encoding, its size; what is left is plain JSON or JSON lines."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import zstandard

from cowpath.errors import InputError, TooLarge, UnsupportedMedia

JSON_TYPES = frozenset({"application/json", "text/json"})
LINE_TYPES = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"})

EVENT_TYPES = {"application/cloudevents+json": False, "application/cloudevents-batch+json": True}
"""Content types of CloudEvents, and whether such a body is a batch."""

GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS

ZSTD_WINDOW = 8 * 2**20
"""The largest window a sender may ask memory for (RFC 9659)."""


def holds_lines(content_type: str) -> bool:
    """Whether a content type means one JSON document a line. UnsupportedMedia for types we do not take."""
    kind = bare_type(content_type)
    if kind in LINE_TYPES:
        return True
    if kind in JSON_TYPES:
        return False
    raise UnsupportedMedia(
        f"content type {kind or '(none)'!r} is not taken",
        suggestions=["application/json", "application/x-ndjson", *EVENT_TYPES],
    )


def bare_type(content_type: str) -> str:
    """A content type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def unpacked(body: bytes, encoding: str, *, limit: int) -> bytes:
    """The body without its content encoding, at most ``limit`` bytes of it."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    unpack = UNPACK.get(encoding)
    if unpack is None:
        raise UnsupportedMedia(
            f"content encoding {encoding!r} is not taken", suggestions=["gzip", "zstd", "deflate", "identity"]
        )
    try:
        plain = unpack(body, limit)
    except (zlib.error, zstandard.ZstdError) as error:
        raise InputError(f"the body is not {encoding}: {error}") from None
    if len(plain) > limit:
        raise too_large(limit)
    return plain


def too_large(limit: int) -> TooLarge:
    return TooLarge(f"the body is larger than {limit} bytes; send fewer events at once")


def _gunzipped(body: bytes, limit: int) -> bytes:
    """All members of a gzip body, or a deflated one, but never more than one byte past the limit."""
    plain = b""
    while body and len(plain) <= limit:
        member = zlib.decompressobj(wbits=GZIP_OR_ZLIB)
        plain += member.decompress(body, limit + 1 - len(plain))
        if not member.eof and len(plain) <= limit:
            raise zlib.error("it ends too early")
        body = member.unused_data
    return plain


def _unzstd(body: bytes, limit: int) -> bytes:
    """All frames of a zstd body, but never more than one byte past the limit."""
    packed = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
    plain: bytes = packed.stream_reader(body, read_across_frames=True).read(limit + 1)
    # The reader says nothing of a frame that was cut; what fits may be unpacked once more by one that does.
    while body and len(plain) <= limit:
        frame = packed.decompressobj()
        frame.decompress(body)
        if not frame.eof:
            raise zstandard.ZstdError("it ends too early")
        body = frame.unused_data
    return plain


UNPACK: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gunzipped,
    "x-gzip": _gunzipped,
    "deflate": _gunzipped,
    "zstd": _unzstd,
}
"""Content encoding -> what undoes it."""
