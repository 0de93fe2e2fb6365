"""Keys: given out once, kept as hashes, each with its scopes and its rate."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Literal

import msgspec

from cowpath.errors import BadFile, InputError
from cowpath.event import utc_now
from cowpath.home import Home, held, write_whole

Scope = Literal["ingest", "read", "admin"]

PREFIX = "cow_"
"""So that people and secret scanners see what it is."""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key as it is kept: everything but the key itself. ``admin`` may do what the other scopes may."""

    name: str
    scopes: tuple[Scope, ...]
    digest: str
    rate: int = 0
    created_at: str = ""

    def reaches(self, scope: Scope) -> bool:
        return scope in self.scopes or "admin" in self.scopes


class _File(msgspec.Struct):
    keys: list[Key] = []


def add_key(home: Home, name: str, scopes: Sequence[Scope], *, rate: int = 0) -> str:
    """Make a key and return it, the only time anybody sees it. ``rate`` is in requests a minute, 0 without limit."""
    if not name.strip():
        raise InputError("a key needs a name, so that it can be revoked")
    token = new_token()
    key = Key(
        name=name,
        scopes=tuple(sorted(set(scopes))),
        digest=digest(token),
        rate=rate,
        created_at=utc_now().isoformat(timespec="seconds"),
    )
    with _alone(home):
        keys = read_keys(home)
        if any(known.name == name for known in keys):
            raise InputError(f"there is a key {name!r} already", suggestions=[f"cowpath keys revoke {name}"])
        _write(home, [*keys, key])
    return token


def revoke_key(home: Home, name: str) -> None:
    """Forget a key; a running collector refuses it from its next request on."""
    with _alone(home):
        keys = read_keys(home)
        left = [key for key in keys if key.name != name]
        if len(left) == len(keys):
            names = ", ".join(key.name for key in keys) or "none"
            raise InputError(f"no key {name!r}; there are: {names}")
        _write(home, left)


def read_keys(home: Home) -> list[Key]:
    """The keys of a home. BadFile where they cannot be read: then nobody is let in, rather than everybody."""
    try:
        return msgspec.json.decode(home.keys.read_bytes(), type=_File).keys
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        raise BadFile(f"{home.keys} cannot be read: {error}; mend it, or remove it and add keys anew") from error


def make_local_key(home: Home) -> Key:
    """A key for the commands of whoever owns this home, written where only they can read it."""
    token = new_token()
    write_whole(home.local_key, token.encode(), mode=0o600)
    return Key(name="local", scopes=("admin",), digest=digest(token))


def local_key(home: Home) -> str:
    """The key of this machine's own commands; empty where there is none or it is not ours to read."""
    with suppress(OSError):
        return home.local_key.read_text()
    return ""


def matching(keys: Sequence[Key], token: str) -> Key | None:
    """The key that this token is; as slow for a wrong one as for a right one."""
    given, found = digest(token), None
    for key in keys:
        if hmac.compare_digest(key.digest, given):
            found = key
    return found


class Keyring:
    """The keys of a home as they are now: read again when their file changes."""

    def __init__(self, home: Home, *, local: Key | None = None) -> None:
        self._home = home
        self._file = home.keys
        self._local = [local] if local else []
        self._look: object = ()
        self._given: list[Key] = []

    @property
    def given(self) -> list[Key]:
        """The keys that were given out."""
        look = _look(self._file)
        if look != self._look:
            self._given = read_keys(self._home)
            self._look = look
        return self._given

    def find(self, token: str) -> Key | None:
        return matching([*self.given, *self._local], token)


def new_token() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """Tokens are 32 random bytes, so that a plain hash cannot be searched."""
    return hashlib.sha256(token.encode()).hexdigest()


def _look(file: Path) -> object:
    """What changes with the file; every request asks."""
    try:
        stat = file.stat()
    except FileNotFoundError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _alone(home: Home) -> AbstractContextManager[None]:
    return held(home.root / "keys.lock", "another command is changing the keys of this home; try again")


def _write(home: Home, keys: list[Key]) -> None:
    write_whole(home.keys, msgspec.json.format(msgspec.json.encode(_File(keys))) + b"\n", mode=0o600)
