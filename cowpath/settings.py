"""One table of settings: name, default, help. Read once at start, then frozen and passed in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from cowpath.errors import InputError
from cowpath.home import Home

DEFAULT_HOME = "~/.local/share/cowpath"

MOST_PUSHED = 3
"""More than this unasked is noise."""

SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
"""What a setting that is on or off may say."""

HELP: dict[str, str] = {
    "home": "folder of everything at rest",
    "host": "address the server binds; only loopback without keys (cowpath keys add)",
    "port": "port the server binds; 0 picks a free one",
    "url": "collector that clients and hooks send to; empty: the one at host and port",
    "key": "key that clients and hooks send along; empty: none",
    "publish_every_s": "seconds between two publications of usage.duckdb; 0 switches the schedule off",
    "max_body_bytes": "largest request body, before and after decompression",
    "max_otlp_bytes": "largest OTLP request, before and after decompression",
    "max_batch_events": "most events in one request",
    "max_pending_bytes": "bytes that may wait for the journal before new requests get 503",
    "max_backlog_bytes": "acknowledged bytes that may wait for live.duckdb before new requests get 503",
    "segment_bytes": "size at which a journal segment is closed and the next one begun",
    "drain_batch_events": "most events in one commit to live.duckdb",
    "drain_grace_s": "seconds a stopping collector may spend on emptying its queue",
    "sql_timeout_s": "seconds after which a query over the live store is stopped",
    "sql_max_rows": "most rows in the answer to a query over the live store",
    "sql_queries": "queries over the live store that may run at once; more get 503",
    "retain_days": "events older than so many days are removed once a day; 0 keeps them for ever",
    "quack_port": "port of DuckDB's remote protocol on loopback; 0: it is not served",
    "mining_memory_gb": "gigabytes that the tables of a mining run may take; the rest goes to disk, into the home",
    "gru": "1: mining also trains a small recurrent network and keeps it where it wins; needs the model extra",
    "keep_runs": "mining runs kept in learned/runs, to be compared; 0 keeps none",
    "holdout_share": "share of sessions that are shown no suggestions, to measure what these change; 0: none",
    "push_most": "facts about the next skill that a hook's answer may carry unasked, at most 3; 0: none",
    "push_min_sessions": "sessions that must prove such a fact",
    "prefect_api_url": "Prefect server that mining runs report to (PREFECT_API_URL); empty: none",
    "llm_api": "how the language model is spoken to: anthropic (Messages API) or openai (any compatible server)",
    "llm_url": "its base address, such as http://localhost:11434/v1; empty: Anthropic's",
    "llm_model": "its name; empty: no language model is asked",
    "llm_key": "the key it takes; a server of your own may do without",
    "llm_max_tokens": "most tokens in one of its answers",
    "llm_at_once": "questions it may work on at once",
    "llm_input_price": "dollars for a million tokens that it reads; 0: costs are told in tokens only",
    "llm_output_price": "dollars for a million tokens that it writes",
    "model_dir": "folder of the sentence encoder's weights; empty: the installed weights package",
}


@dataclass(frozen=True)
class Settings:
    """Every setting with its default. ``COWPATH_<NAME>`` in the environment sets one (see ``variable``)."""

    home: str = DEFAULT_HOME
    host: str = "127.0.0.1"
    port: int = 8710
    url: str = ""
    key: str = ""
    publish_every_s: float = 30.0
    max_body_bytes: int = 16 * 2**20
    max_otlp_bytes: int = 64 * 2**20
    max_batch_events: int = 10_000
    max_pending_bytes: int = 64 * 2**20
    max_backlog_bytes: int = 2**30
    segment_bytes: int = 64 * 2**20
    drain_batch_events: int = 10_000
    drain_grace_s: float = 10.0
    sql_timeout_s: float = 30.0
    sql_max_rows: int = 100_000
    sql_queries: int = 4
    quack_port: int = 0
    retain_days: float = 0.0
    mining_memory_gb: float = 1.0
    gru: bool = False
    keep_runs: int = 20
    holdout_share: float = 0.05
    push_most: int = 0
    push_min_sessions: int = 5
    prefect_api_url: str = ""
    llm_api: str = "anthropic"
    llm_url: str = ""
    llm_model: str = ""
    llm_key: str = ""
    llm_max_tokens: int = 4096
    llm_at_once: int = 4
    llm_input_price: float = 0.0
    llm_output_price: float = 0.0
    model_dir: str = ""

    @property
    def at(self) -> Home:
        """The paths below the home folder."""
        return Home(Path(self.home).expanduser())

    @property
    def sends_to(self) -> str:
        """The address that clients and hooks send to."""
        return self.url or f"http://{self.host}:{self.port}"


def read_settings(environment: Mapping[str, str] | None = None, **flags: Any) -> Settings:
    """Settings from flags (where not None), then ``COWPATH_*``, then the defaults."""
    environment = os.environ if environment is None else environment
    types = get_type_hints(Settings)
    values: dict[str, Any] = {}
    for field in fields(Settings):
        given = flags.get(field.name)
        text = environment.get(variable(field.name))
        if given is not None:
            values[field.name] = given
        elif text:
            values[field.name] = _parse(field.name, types[field.name], text)
    settings = Settings(**values)
    _check(settings)
    return settings


def _check(settings: Settings) -> None:
    """Raise InputError for a value that nothing could run with."""
    if not settings.home.strip():
        raise InputError("the home is an empty name; leave it out for the default, or name a folder")
    if settings.at.root.exists() and not settings.at.root.is_dir():
        raise InputError(f"{settings.at.root} is no folder; the home must be one")
    if not 0 <= settings.port <= 65535:
        raise InputError(f"port {settings.port} does not exist; ports are 0 to 65535")
    if settings.holdout_share > 1:
        raise InputError(f"{variable('holdout_share')} is {settings.holdout_share}; it is a share, so at most 1")
    if settings.push_most > MOST_PUSHED:
        raise InputError(f"{variable('push_most')} is {settings.push_most}; at most {MOST_PUSHED} facts are told")
    for field in fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, int | float) and not (0 <= value < float("inf")):
            raise InputError(f"{variable(field.name)} is {value}; {HELP[field.name]}: it cannot be below 0")


def variable(name: str) -> str:
    """The environment variable of a setting; Prefect's address keeps the name its users know."""
    return "PREFECT_API_URL" if name == "prefect_api_url" else f"COWPATH_{name.upper()}"


def _parse(name: str, kind: type, text: str) -> Any:
    try:
        return SWITCHES[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        raise InputError(f"{variable(name)} is {text!r}, which is not {kind.__name__}: {HELP[name]}") from None
