"""Advice: who is shown suggestions, and the event (an impression) that says what was shown.

A log that cannot tell our advice from an agent's own accord would teach us our own words. So each list for a named
session leaves an event, and a share of the sessions is shown nothing: what they call says what advice changes.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from cowpath.client import Client
from cowpath.event import Event, utc_now
from cowpath.settings import Settings
from cowpath.shipper import NotNow, Shipper
from cowpath.spool import Spool

log = logging.getLogger("cowpath.ranker")

Policy = Literal["served", "holdout"]

Record = Callable[[list[Event]], object]
"""Takes the impressions of one list. It returns at once, whatever becomes of them."""

SOURCE = "cowpath-ranker"
MAX_LIST = 480
"""Most characters of one event's list of skills: the intake keeps no longer value."""

SHIP_S = 0.3
"""How long a command that has answered already may try to hand over what it spooled."""


def policy_of(session: str, settings: Settings) -> Policy:
    """Whether a session is shown suggestions: by a keyed hash, so always the same and not to be guessed."""
    drawn = _keyed(b"holdout:", session, settings)
    return "holdout" if int.from_bytes(drawn[:8], "big") < settings.holdout_share * 2**64 else "served"


def session_digest(session: str, settings: Settings) -> str:
    """A name for a session that tells nobody which one it is."""
    return _keyed(b"session:", session, settings).hex()[:32]


def why_nothing(session: str, settings: Settings) -> str:
    """The words of an empty list."""
    return (
        f"session {session!r} is one of the {settings.holdout_share:.0%} that are shown no suggestions, "
        "so that what these change can be measured (COWPATH_HOLDOUT_SHARE)"
    )


def impressions(
    shown: Sequence[str], *, session: str, after: str | None, policy: Policy, run: str | None, holdout_share: float
) -> list[Event]:
    """The events of one list, first rank first: one, or a few where the names are too long for one.

    The first one's id is the list's id, which calls that follow it name as ``suggested_by``.
    ``propensity`` is the probability with which a session gets this policy.
    """
    list_id, now = str(uuid.uuid4()), utc_now()
    about: dict[str, Any] = {"policy": policy, "propensity": round(_propensity(policy, holdout_share), 6)}
    about |= {key: value for key, value in (("after", after), ("run", run)) if value}
    return [
        Event(
            event_id=list_id if rank == 1 else f"{list_id}/{rank}",
            session_id=session,
            skill=skills[0],
            called_at=now,
            kind="impression",
            source=SOURCE,
            extra={"list": list_id, "rank": rank, "shown": skills, **about},
        )
        for rank, skills in _parts(shown)
    ]


def recorder(client: Client) -> Record:
    """Records through a client, which ships from a thread of its own."""

    def record(events: list[Event]) -> None:
        for event in events:
            client.record(event.skill, event.session_id, **_fields(event))

    return record


def spooled(settings: Settings) -> Record:
    """Records into this machine's spool, for whoever ships it next. Losing an impression costs no answer."""

    def record(events: list[Event]) -> None:
        spool = Spool(settings.at.spool, brief=True)
        try:
            for event in events:
                fields = {"session_id": event.session_id, "skill_id": event.skill, **_fields(event)}
                spool.append(b"event " + msgspec.json.encode(fields) + b"\n")
        except (OSError, ValueError) as error:
            log.warning("an impression was not recorded: %s", error)
        finally:
            spool.close()

    return record


def ship(settings: Settings) -> None:
    """Hand over what waits in the spool if that can be done at once; else it waits for the next client or hook."""
    shipper = Shipper(settings.sends_to, key=settings.key, timeout_s=SHIP_S)
    spool = Spool(settings.at.spool, brief=True)
    try:
        spool.ship(shipper.send)
    except (NotNow, OSError) as error:
        log.info("%s; the spool keeps what it holds", error)
    finally:
        spool.close()
        shipper.close()


def _keyed(purpose: bytes, session: str, settings: Settings) -> bytes:
    """A hash under the home's secret; without key where that is not there, or not for this process to read."""
    try:
        key = settings.at.secret.read_bytes()
    except OSError:
        key = b""
    return hmac.new(key, purpose + session.encode(errors="surrogatepass"), hashlib.sha256).digest()


def _fields(event: Event) -> dict[str, Any]:
    """What an event says beside its session and skill, as senders write it."""
    said: dict[str, Any] = msgspec.to_builtins(event)
    return {name: value for name, value in said.items() if name not in ("session_id", "skill")}


def _propensity(policy: Policy, holdout_share: float) -> float:
    return holdout_share if policy == "holdout" else 1 - holdout_share


def _parts(shown: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The list in parts that an event can hold, each with the rank of its first skill."""
    rank, part = 1, list[str]()
    for number, skill in enumerate(shown, start=1):
        if part and len(msgspec.json.encode({"shown": [*part, skill]}).decode()) > MAX_LIST:
            yield rank, part
            rank, part = number, []
        part.append(skill)
    if part:
        yield rank, part
