"""The command line: parse, call, render. Each room's commands lie in a file of their own."""

from __future__ import annotations

import importlib
import sys
import traceback
from typing import Any

import click

from cowpath import __version__
from cowpath.cli.output import fail
from cowpath.errors import CowpathError, InputError

COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("cowpath.cli.serve:up", "Serve the collector and the ranker on one port."),
    "import": ("cowpath.cli.intake:import_", "Import calls that were made before: agent history, JSON lines, CSV."),
    "catalogue": ("cowpath.cli.intake:catalogue", "Read libraries of SKILL.md files into the catalogue."),
    "publish": ("cowpath.cli.serve:publish", "Publish usage.duckdb, the copy that analysts and the miner read."),
    "status": ("cowpath.cli.serve:status", "What this installation holds, and whether its collector runs."),
    "hook": ("cowpath.cli.hooks:hook", "What an agent's command hook runs: spool one payload, ship what waits."),
    "hooks": ("cowpath.cli.hooks:hooks", "Tell Claude Code to report its skill calls."),
    "keys": ("cowpath.cli.keys:keys", "Give out keys, list them, revoke them."),
    "erase": ("cowpath.cli.erase:erase", "Erase an actor, a session, or what is older than some days, everywhere."),
    "mine": ("cowpath.cli.learn:mine", "Learn edges and the next-skill model from the published calls."),
    "runs": ("cowpath.cli.runs:runs", "The mining runs that are kept, newest first."),
    "diff": ("cowpath.cli.runs:diff", "What one mining run learned, changed and dropped against another, and why."),
    "uplift": ("cowpath.cli.uplift:uplift", "What suggestions change: sessions shown some against the holdout."),
    "search": ("cowpath.cli.ask:search", "Find skills for a request in words."),
    "next": ("cowpath.cli.ask:next_", "What comes next after these skills, and why."),
    "listing": ("cowpath.cli.listing:listing", "What an agent's list of skills loses to its budget, and what to do."),
    "edges": ("cowpath.cli.edges:edges", "The layers of the graph: build them, generate them, correct them."),
    "why": ("cowpath.cli.why:why", "The evidence of a pair, also where there is no edge."),
    "feedback": ("cowpath.cli.feedback:feedback", "Say which of two skills should stand higher; list what was said."),
    "mcp": ("cowpath.cli.mcp:mcp", "Serve the tools for agents (Model Context Protocol) on stdin and stdout."),
    "eval": ("cowpath.cli.evaluate:eval_", "Measure suggestions, retrieval and edges on a data set."),
    "sql": ("cowpath.cli.sql:sql", "Ask ready questions, or run queries, over the published tables and views."),
    "export": ("cowpath.cli.sql:export", "Write the published copy as Parquet, one partition a day."),
    "doctor": ("cowpath.cli.doctor:doctor", "Check this installation; send a test event through every path."),
    "help-json": ("cowpath.cli.describe:help_json", "Every command, argument and option as one JSON document."),
}
"""Command -> (where it lives, its line of help). Nothing is imported until a command is called."""


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, name="cowpath", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cowpath")
def main() -> None:
    """Pave the paths your agents already walk."""


def run(arguments: list[str] | None = None) -> None:
    """Run a command line and exit: 0, or the exit code of the error's class."""
    as_json = "--json" in (sys.argv[1:] if arguments is None else arguments) or not sys.stdout.isatty()
    try:
        result: Any = main.main(args=arguments, standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        fail(InputError(error.format_message(), suggestions=_help_of(error)), as_json=as_json)
    except CowpathError as error:
        fail(error, as_json=as_json)
    except BrokenPipeError:
        sys.exit(0)
    except Exception as error:
        traceback.print_exc()
        fail(CowpathError(f"{type(error).__name__}: {error}; this is a fault of ours"), as_json=as_json)
    else:
        sys.exit(result if isinstance(result, int) else 0)


def _help_of(error: click.ClickException) -> list[str]:
    context = getattr(error, "ctx", None)
    return [f"{context.command_path} --help"] if context else ["cowpath --help"]
