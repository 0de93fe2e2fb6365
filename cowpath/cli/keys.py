"""``cowpath keys``: who may send, ask and administer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click
import msgspec

from cowpath.cli.output import settings_of, show, with_home, with_json

if TYPE_CHECKING:
    from collector.access.keys import Scope


@click.group()
def keys() -> None:
    """Give out keys, list them, revoke them. With one, the server may bind more than loopback."""


@keys.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(["ingest", "read", "admin"]),
    help="What it may do; more than once for more. admin may do everything.",
)
@click.option("--rate", type=click.IntRange(0), default=0, metavar="PER_MINUTE", help="Most requests a minute; 0: any.")
@with_home
@with_json
def add(name: str, scopes: tuple[str, ...], rate: int, home: str | None, as_json: bool) -> None:
    """Make a key and print it. It is shown this once; only its hash is kept."""
    from collector.access.keys import add_key

    token = add_key(settings_of(home).at, name, cast("tuple[Scope, ...]", scopes), rate=rate)
    document = {"name": name, "scopes": sorted(set(scopes)), "rate": rate, "key": token}
    show(document, lambda: token, as_json=as_json)


@keys.command("list")
@with_home
@with_json
def list_(home: str | None, as_json: bool) -> None:
    """The names of the keys, what each may do, and since when."""
    from collector.access.keys import read_keys

    rows = [
        {name: value for name, value in msgspec.to_builtins(key).items() if name != "digest"}
        for key in read_keys(settings_of(home).at)
    ]
    show({"count": len(rows), "keys": rows}, lambda: _page(rows), as_json=as_json)


@keys.command()
@click.argument("name")
@with_home
@with_json
def revoke(name: str, home: str | None, as_json: bool) -> None:
    """Forget a key; a running server refuses it from the next request on."""
    from collector.access.keys import revoke_key

    revoke_key(settings_of(home).at, name)
    show({"revoked": name}, lambda: f"revoked {name}", as_json=as_json)


def _page(rows: list[dict[str, Any]]) -> str:
    lines = [
        f"{row['name']:<24} {','.join(row['scopes']):<20} {row['rate'] or 'any'}/min  since {row['created_at']}"
        for row in rows
    ]
    return "\n".join(lines) or "No keys: everybody on this machine may do everything, and nobody else anything."
