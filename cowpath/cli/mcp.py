"""``cowpath mcp``: the tools for agents over stdio."""

from __future__ import annotations

import logging
import sys

import click

from cowpath.cli.output import settings_of, with_home
from cowpath.errors import StateError


@click.command()
@with_home
def mcp(home: str | None) -> None:
    """Serve the tools for agents (Model Context Protocol) on stdin and stdout, until the client hangs up.

    It reads the home itself, so no server has to run; calls that are recorded wait in the spool until one does.
    A running server has the same tools at /mcp.
    """
    settings = settings_of(home)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        from ranker.mcp import serve_stdio
    except ModuleNotFoundError as error:
        raise StateError(f"{error.name} is not installed", suggestions=["pip install 'cowpath[mcp]'"]) from error
    from cowpath.client import Client
    from ranker.advice import recorder
    from ranker.tools import Desk

    with Client(settings.sends_to, settings.at.spool, settings.key) as client:
        serve_stdio(Desk.over(settings, recorder(client)))
