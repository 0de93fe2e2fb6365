"""Single values, read with good will: text for numbers, several notations of a moment."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)

INT64 = range(-(2**63), 2**63)


class Unusable(Exception):
    """A value that cannot be read as what its field holds."""

    def __init__(self, code: str, field: str, message: str) -> None:
        super().__init__(message)
        self.code, self.field, self.message = code, field, message


def text_of(field: str, value: object) -> str | None:
    """Text; whole numbers are common as ids and are taken as their digits. Half a character could be any: with
    something in its place, two different ids might become one."""
    if value is None:
        return None
    if isinstance(value, str):
        if whole_text(value) != value:
            raise Unusable("bad_text", field, f"{field} holds half a character (a lone surrogate)")
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise _wrong_type(field, "text", value)


def whole_text(value: T) -> T:
    """The value, at any depth with a mark in the place of each half of a character, which no file can hold."""
    mended: Any = value
    if isinstance(value, str):
        mended = value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    elif isinstance(value, dict):
        mended = {whole_text(key): whole_text(inner) for key, inner in value.items()}
    elif isinstance(value, list):
        mended = [whole_text(inner) for inner in value]
    return cast(T, mended)


def whole_of(field: str, value: object) -> int | None:
    """A whole number that fits 64 bits."""
    number = number_of(field, value, least=-math.inf)
    if number is None:
        return None
    exact = value if isinstance(value, int) else int(number) if number.is_integer() else None
    # None is asked for apart: looking for it in a range would walk through all 2**64 numbers.
    if exact is None or exact not in INT64:
        raise Unusable("bad_value", field, f"{field} is {str(value)[:40]}, not a whole number of 64 bits")
    return exact


def number_of(field: str, value: object, *, least: float = 0.0, most: float = math.inf) -> float | None:
    """A number within bounds."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _wrong_type(field, "a number", value)
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise _wrong_type(field, "a number", value) from None
    if not least <= number <= most or math.isinf(number):
        raise Unusable("bad_value", field, f"{field} is {str(value)[:40]}, outside of {least:g} to {most:g}")
    return number


def moment_of(field: str, value: object) -> datetime | None:
    """A moment from ISO 8601 or a number since 1970, also where that came as text."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _wrong_type(field, "a time", value)
    if isinstance(value, str):
        with suppress(ValueError):
            return utc_of(datetime.fromisoformat(value.strip()))
        with suppress(ValueError):
            return utc_of(float(value))
        raise Unusable("bad_time", field, f"{field} is {value[:40]!r}, neither ISO 8601 nor a number since 1970")
    return utc_of(value)


def utc_of(moment: datetime | float) -> datetime | None:
    """The moment in UTC. What no calendar holds becomes its first or last moment, for the clock check to flag."""
    if isinstance(moment, datetime):
        try:
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except OverflowError:
            return moment.replace(tzinfo=UTC)
    try:
        if math.isnan(moment):
            return None
        return EPOCH + timedelta(seconds=moment / _units_per_second(moment))
    except OverflowError:
        return LAST if moment > 0 else FIRST


def _units_per_second(since_1970: float) -> float:
    """Seconds, milliseconds, microseconds or nanoseconds: the one that gives a year near ours."""
    size = abs(since_1970)
    return 1.0 if size < 1e11 else 1e3 if size < 1e14 else 1e6 if size < 1e17 else 1e9 if size < 1e20 else 1.0


def _wrong_type(field: str, wanted: str, value: object) -> Unusable:
    return Unusable("bad_type", field, f"{field} must be {wanted}, not {type(value).__name__}")
