"""DuckDB's remote protocol beside a live store: who may connect and what may run is decided here.

Quack runs by itself what it was allowed to run: without a time limit, and nobody can end it. So every query runs here
first, behind the locks of ``POST /v1/sql``, and only one that came to its end within its time and its rows runs there.
"""

from __future__ import annotations

import logging
import secrets
from collections import OrderedDict
from contextlib import suppress

from collector.access.keys import Key, Keyring, digest, local_key, matching
from collector.access.limits import Limits
from collector.analysts.live import LiveViews
from cowpath.errors import CowpathError, HomeBusy, RateLimited, Unauthorized
from cowpath.home import Home
from cowpath.settings import Settings
from cowpath.store import Store

log = logging.getLogger("cowpath.collector")

MOST_CONNECTIONS = 10_000
"""Quack does not say when a client has gone; the oldest connection past this number must connect again."""


class Quack:
    """Serves one store after another on one port of the loopback address."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._readers = Readers(settings.at)

    def load(self, store: Store) -> None:
        """Before the store is locked down. InputError where the extensions are not installed."""
        store.load_quack()
        store.guard_quack(may_connect=self._may_connect, may_run=self._may_run)

    def serve(self, store: Store, live: LiveViews) -> None:
        """After the store was locked down."""
        self._store, self._live = store, live
        # The server's own token opens nothing: ``_may_connect`` decides.
        store.cursor().serve_quack(port=self._settings.quack_port, token=secrets.token_urlsafe(24))

    def stop(self) -> None:
        """Before the store is closed. A query that quack runs keeps the old file open until it ends."""
        with suppress(HomeBusy):
            self._store.cursor().stop_quack(port=self._settings.quack_port)

    def _may_connect(self, connection: str, token: str, _: str) -> bool:
        return self._readers.connect(connection, token)

    def _may_run(self, connection: str, sql: str) -> bool:
        rows = self._settings.sql_max_rows
        try:
            self._readers.check(connection)
            found = self._live.query(sql, limit=rows + 1, timeout_s=self._settings.sql_timeout_s, bare_names=False)
        except CowpathError as error:
            log.info("refused over quack: %s", error.message)
            return False
        return bool(found.num_rows <= rows)


class Readers:
    """Who reads over quack: keys with the scope ``read`` by the connection they opened, and this machine's own key."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._keyring = Keyring(home)
        self._limits = Limits()
        self._tokens: OrderedDict[str, str] = OrderedDict()

    def connect(self, connection: str, token: str) -> bool:
        """Whether a token opens a connection."""
        if self._reader(token) is None:
            return False
        self._tokens[connection] = token
        if len(self._tokens) > MOST_CONNECTIONS:
            self._tokens.popitem(last=False)
        return True

    def check(self, connection: str) -> None:
        """Before each query: Unauthorized where the key was revoked meanwhile, RateLimited above its rate."""
        key = self._reader(self._tokens.get(connection, ""))
        if key is None:
            raise Unauthorized("this connection has no key, or one that was revoked")
        wait_s = self._limits.wait_s(key.name, key.rate)
        if wait_s:
            raise RateLimited(f"key {key.name!r} may ask {key.rate} times a minute", retry_after_s=wait_s)

    def _reader(self, token: str) -> Key | None:
        """The key that this token is, if it may read."""
        own = local_key(self._home)
        local = [Key(name="local", scopes=("admin",), digest=digest(own))] if own else []
        key = matching([*self._keyring.given, *local], token)
        return key if key and key.reaches("read") else None
