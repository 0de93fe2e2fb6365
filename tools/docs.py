"""Write the generated pages: ``docs/cli.md`` from the commands and ``docs/settings.md`` from the settings table."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from cowpath.settings import HELP, Settings, variable

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
NOTE = "<!-- Written by tools/docs.py ('make docs'); change the code, not this page. -->\n"

CLI_HEAD = """\
# The command line

Every command prints one JSON document on stdout with `--json`, and also without it when stdout is not a
terminal. Words, warnings and progress go to stderr. A failure prints
`{"error": {"code", "type", "message", "retryable", "suggestions"}}` and exits with the code of its class
([errors](#errors)). `cowpath help-json` prints this page's content for programs.
"""

SETTINGS_HEAD = """\
# Settings

A flag of a command wins over the environment, the environment over the default. Settings are read once, when
a command starts.

| Setting | Environment | Default | What it is |
|---|---|---|---|
"""


def main() -> None:
    for name, text in pages().items():
        (DOCS / name).write_text(text)
        print(f"docs/{name}", file=sys.stderr)


def pages() -> dict[str, str]:
    """File name -> text of every generated page."""
    return {"cli.md": cli_page(describe()), "settings.md": settings_page()}


def describe() -> dict[str, Any]:
    """The document of ``cowpath help-json``, from the command itself."""
    command = [sys.executable, "-c", "from cowpath.cli import run; run(['help-json'])"]
    document: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return document


def cli_page(document: dict[str, Any]) -> str:
    parts = [NOTE + CLI_HEAD]
    for command in document["command"]["commands"]:
        parts += command_parts(command, "cowpath", level=2)
    return "\n".join([*parts, errors_part()])


def command_parts(command: dict[str, Any], prefix: str, level: int) -> list[str]:
    """A heading, the help and a table of parameters; then the same for each sub-command."""
    name = f"{prefix} {command['name']}"
    arguments = [argument_text(p) for p in command["parameters"] if p["kind"] == "argument"]
    options = [p for p in command["parameters"] if p["kind"] == "option"]
    parts = [f"{'#' * level} `{' '.join([name, *arguments])}`\n", f"{command['help']}\n"]
    if options:
        rows = [f"| `{', '.join(p['options'])}` | {p['type']} | {cell(p['help'])} |" for p in options]
        parts.append("\n".join(["| Option | Type | What it does |", "|---|---|---|", *rows, ""]))
    for child in command.get("commands", ()):
        parts += command_parts(child, name, level + 1)
    return parts


def argument_text(parameter: dict[str, Any]) -> str:
    text = parameter["name"].upper() + ("..." if parameter["repeatable"] else "")
    return text if parameter["required"] else f"[{text}]"


def errors_part() -> str:
    from cowpath import errors

    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.CowpathError)]
    rows = [
        f"| `{c.__name__}` | `{c.code}` | {c.exit_code} | {c.http_status} | {'yes' if c.retryable else 'no'} |"
        for c in sorted(classes, key=lambda c: (c.exit_code, c.__name__))
    ]
    head = ["## Errors\n", "| Class | Code | Exit code | HTTP status | Retryable |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def settings_page() -> str:
    rows = [
        f"| `{field.name}` | `{variable(field.name)}` | {shown(field.default)} | {cell(HELP[field.name])} |"
        for field in fields(Settings)
    ]
    return NOTE + SETTINGS_HEAD + "\n".join(rows) + "\n"


def shown(default: object) -> str:
    return f"`{default}`" if default != "" else "(empty)"


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
