"""``cowpath help-json``: the command line described for programs."""

from __future__ import annotations

from typing import Any

import click

from cowpath import __version__
from cowpath.cli.output import show


@click.command("help-json")
@click.pass_context
def help_json(ctx: click.Context) -> None:
    """Every command, argument and option as one JSON document."""
    root = ctx.find_root()
    document = {"version": __version__, "command": _describe(root.command, root)}
    show(document, lambda: str(document), as_json=True)


def _describe(command: click.Command, ctx: click.Context) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": command.name,
        "help": (command.help or "").strip(),
        "parameters": [_parameter(p, ctx) for p in command.get_params(ctx) if p.name != "help"],
    }
    if isinstance(command, click.Group):
        children = [command.get_command(ctx, name) for name in command.list_commands(ctx)]
        described["commands"] = [_describe(c, click.Context(c, parent=ctx)) for c in children if c is not None]
    return described


def _parameter(parameter: click.Parameter, ctx: click.Context) -> dict[str, Any]:
    info = parameter.to_info_dict()
    return {
        "name": parameter.name,
        "kind": info["param_type_name"],
        "type": info["type"]["name"],
        "required": parameter.required,
        "repeatable": parameter.nargs == -1 or parameter.multiple,
        "options": list(parameter.opts) if info["param_type_name"] == "option" else [],
        "help": info.get("help") or "",
    }
