"""``cowpath import`` and ``cowpath catalogue``: what was there before cowpath, calls and skills."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from cowpath.cli.embed import embed
from cowpath.cli.output import progress, settings_of, show, with_home, with_json
from cowpath.errors import BadFile, InputError

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
SHOWN = 20


@click.group("import")
def import_() -> None:
    """Import calls that were made before: agent history, JSON lines, CSV. Importing twice adds nothing."""


@import_.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option(
    "--include",
    multiple=True,
    type=click.Choice(["tools"]),
    help="Also take ordinary tool, MCP and subagent calls, as tool:NAME, mcp:SERVER/TOOL and agent:TYPE.",
)
@with_home
@with_json
def claude(path: Path | None, include: tuple[str, ...], home: str | None, as_json: bool) -> int:
    """Import a person's own Claude Code history, by default ~/.claude/projects.

    Names, ids, times and outcomes are taken; prompts, arguments, results and paths are not.
    """
    from collector.doors import open_door
    from collector.importers.claude import DEFAULT_FOLDER, EVERYTHING, SKILLS, import_claude

    settings = settings_of(home)
    history = path or Path(DEFAULT_FOLDER)
    with open_door(settings) as door:
        document = import_claude(
            history,
            door,
            settings.at,
            sorts=EVERYTHING if include else SKILLS,
            progress=partial(progress, label="transcripts"),
        )
    return _shown(document, as_json=as_json)


@import_.command()
@click.argument("events", type=FILE)
@click.option("--catalogue", "skills", type=FILE, help="Skills of these calls: skill_id, name, description, tags.")
@with_home
@with_json
def jsonl(events: Path, skills: Path | None, home: str | None, as_json: bool) -> int:
    """Import calls from JSON lines: session_id, seq, skill_id, and ts, actor, outcome, group where known."""
    from collector.doors import open_door
    from collector.importers.jsonl import import_jsonl
    from collector.importers.skills import merge_skills

    settings = settings_of(home)
    catalogue: dict[str, Any] = {}
    if skills is not None:
        report = merge_skills(_lines(skills, "skills"), settings.at)
        catalogue = {"catalogue": msgspec.to_builtins(report), "embeddings": embed(settings)}
    with open_door(settings) as door:
        document = import_jsonl(_lines(events, "calls"), door) | catalogue
    return _shown(document, as_json=as_json)


@import_.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@with_home
@with_json
def codex(paths: tuple[Path, ...], home: str | None, as_json: bool) -> int:
    """Import Codex rollouts, by default ~/.codex/sessions.

    Skills named with $NAME are certain; a SKILL.md that a command read is taken with confidence 0.7.
    """
    from collector.importers.codex import DEFAULT_FOLDER, import_codex

    return _import(partial(import_codex, paths or (Path(DEFAULT_FOLDER),)), "rollouts", home, as_json=as_json)


@import_.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@with_home
@with_json
def gemini(paths: tuple[Path, ...], home: str | None, as_json: bool) -> int:
    """Import Gemini CLI chats, by default ~/.gemini/tmp, or its telemetry written to a file."""
    from collector.importers.gemini import DEFAULT_FOLDER, import_gemini

    return _import(partial(import_gemini, paths or (Path(DEFAULT_FOLDER),)), "files", home, as_json=as_json)


@import_.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@with_home
@with_json
def otlp(paths: tuple[Path, ...], home: str | None, as_json: bool) -> int:
    """Import OTLP files: requests in JSON, one a line, as the OpenTelemetry Collector's file exporter writes them."""
    from collector.importers.otlp import import_otlp

    return _import(partial(import_otlp, paths), "files", home, as_json=as_json)


@import_.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--include", multiple=True, type=click.Choice(["tools"]), help="Also take ordinary tools, as tool:NAME.")
@with_home
@with_json
def terminus(paths: tuple[Path, ...], include: tuple[str, ...], home: str | None, as_json: bool) -> int:
    """Import trajectories of benchmark runs (ATIF, as Harbor and Terminal-Bench write them)."""
    from collector.importers.terminus import import_terminus

    return _import(partial(import_terminus, paths, tools=bool(include)), "trajectories", home, as_json=as_json)


@import_.command("csv")
@click.argument("path", metavar="FILE", type=FILE)
@click.option("--column", "columns", multiple=True, metavar="FIELD=HEADER", help="Where a field stands; repeatable.")
@click.option("--delimiter", default="", help="Between two cells; by default what the header has most of.")
@with_home
@with_json
def csv_(path: Path, columns: tuple[str, ...], delimiter: str, home: str | None, as_json: bool) -> int:
    """Import calls from CSV with a header: session_id, skill_id, and the other fields of JSON lines."""
    from collector.doors import open_door
    from collector.importers.csv import import_csv

    pairs = [column.partition("=") for column in columns]
    if not all(field and header for field, _, header in pairs):
        raise click.BadParameter("give FIELD=HEADER, as in session_id=conversation", param_hint="--column")
    if len(delimiter) > 1:
        raise click.BadParameter("give one character", param_hint="--delimiter")
    with open_door(settings_of(home)) as door:
        texts = (line.decode("utf-8-sig", errors="replace") for line in _lines(path, "calls"))
        document = import_csv(texts, door, columns={f: header for f, _, header in pairs}, delimiter=delimiter)
    return _shown(document, as_json=as_json)


def _import(run: Callable[..., dict[str, Any]], label: str, home: str | None, *, as_json: bool) -> int:
    """Import files into a home, with a progress bar, and show the counts; the exit code."""
    from collector.doors import open_door

    settings = settings_of(home)
    with open_door(settings) as door:
        document = run(door, settings.at, progress=partial(progress, label=label))
    return _shown(document, as_json=as_json)


@click.group()
def catalogue() -> None:
    """Read libraries of SKILL.md files into the catalogue."""


@catalogue.command()
@click.argument("directories", nargs=-1, required=True)
@click.option("--most-directories", default=2000, show_default=True, help="Most directories read under each root.")
@with_home
@with_json
def sync(directories: tuple[str, ...], most_directories: int, home: str | None, as_json: bool) -> None:
    """Bring the catalogue to the skills under these directories; of two with one name the earlier wins."""
    from collector.catalogue import sync as synchronise

    settings = settings_of(home)
    if not all(directories):
        raise InputError("a directory with an empty name was given (is a variable unset?)")
    report = synchronise([Path(directory) for directory in directories], settings.at, most_directories=most_directories)
    document = {**msgspec.to_builtins(report), "embeddings": embed(settings)}
    show(document, lambda: _sync_page(document), as_json=as_json)


@catalogue.command("show")
@click.argument("skill_id", metavar="ID")
@with_home
@with_json
def show_skill(skill_id: str, home: str | None, as_json: bool) -> None:
    """One skill, by its id or any of its names."""
    from cowpath.skill import read_catalogue, unknown_skill

    known = read_catalogue(settings_of(home).at.catalogue)
    skill = known.skills.get(known.resolve(skill_id))
    if skill is None:
        raise unknown_skill(skill_id, known.alias_of)
    document = msgspec.to_builtins(skill)
    show(document, lambda: _skill_page(document), as_json=as_json)


@catalogue.command("list")
@with_home
@with_json
def list_skills(home: str | None, as_json: bool) -> None:
    """Every skill of the catalogue, without its body."""
    from cowpath.skill import read_catalogue

    skills = read_catalogue(settings_of(home).at.catalogue).skills.values()
    rows = [
        {
            "skill_id": skill.skill_id,
            "name": skill.name,
            "description": skill.description,
            "aliases": skill.aliases,
            "scope": skill.scope,
            "plugin": skill.plugin,
            "warnings": len(skill.diagnostics),
        }
        for skill in skills
    ]
    document = {"count": len(rows), "skills": rows}
    show(document, lambda: _list_page(rows), as_json=as_json)


def _lines(path: Path, label: str) -> Iterator[bytes]:
    """The lines of a file, with a progress bar on stderr where that is a terminal."""
    size = path.stat().st_size
    steps = max(1, size // 100)
    bar = click.progressbar(
        length=size, label=label, file=sys.stderr, hidden=not sys.stderr.isatty(), update_min_steps=steps
    )
    with path.open("rb") as file, bar:
        for line in file:
            bar.update(len(line))
            yield line


def _shown(document: Mapping[str, Any], *, as_json: bool) -> int:
    """Show an import; its exit code: files of which nothing at all could be taken were no files of calls."""
    show(document, lambda: _import_page(document), as_json=as_json)
    taken = document["accepted"] or document["duplicates"] or document.get("unchanged_files") or document.get("counts")
    return BadFile.exit_code if document["rejected"] and not taken else 0


def _import_page(document: Mapping[str, Any]) -> str:
    known = document["duplicates"] + document.get("unchanged_calls", 0)
    lines = [
        f"{document['accepted']:,} new calls, {known:,} already known, {document['rejected']:,} rejected;"
        f" read were {document['skills']:,} skills in {document['sessions']:,} sessions; {document['files']:,} files."
    ]
    if document.get("unchanged_files"):
        lines.append(f"  unchanged since the last import and not read again: {document['unchanged_files']:,} files")
    lines += [f"  rejected {code}: {number:,}" for code, number in document["reasons"].items()]
    if document.get("counts"):
        lines.append(f"  among them data points of counters, which are no calls: {document['counts']:,}")
    if document.get("unreadable_lines"):
        lines.append(f"  unreadable lines: {document['unreadable_lines']:,}")
    if document.get("left_out"):
        left = ", ".join(f"{number:,} {sort}" for sort, number in document["left_out"].items())
        lines.append(f"  left out: {left} calls; --include tools takes them too")
    if "catalogue" in document:
        merged = document["catalogue"]
        lines.append(
            f"  skills: {merged['added']:,} added, {merged['changed']:,} changed, {merged['skipped']:,} skipped"
        )
        lines += _diagnostics(merged["diagnostics"])
    lines.append("Next: cowpath mine")
    return "\n".join(lines)


def _sync_page(document: Mapping[str, Any]) -> str:
    lines = [
        f"{document['skills']:,} skills: {len(document['added'])} added, {len(document['changed'])} changed,"
        f" {len(document['removed'])} removed, {len(document['renamed'])} renamed, {document['unchanged']} unchanged,"
        f" {document['kept']} of other origins kept; {document['skipped']} files skipped."
    ]
    lines += [f"  renamed {rename['old']} -> {rename['new']}" for rename in document["renamed"]]
    lines += [f"  removed {skill_id}" for skill_id in document["removed"]]
    return "\n".join([*lines, *_diagnostics(document["diagnostics"])])


def _diagnostics(diagnostics: Iterable[Mapping[str, str]]) -> list[str]:
    said = [
        f"  {d['level']} {d['code']}: {d['message']}" + (f" ({d['path']})" if d.get("path") else "")
        for d in diagnostics
    ]
    return said if len(said) <= SHOWN else [*said[:SHOWN], f"  and {len(said) - SHOWN} more; --json lists them all"]


def _skill_page(skill: Mapping[str, Any]) -> str:
    lines = [skill["skill_id"], f"  {skill.get('description', '')}"]
    for key in ("name", "aliases", "tags", "related", "requires", "scope", "plugin", "path"):
        value = skill.get(key)
        if value:
            lines.append(f"  {key}: {value if isinstance(value, str) else ', '.join(value)}")
    return "\n".join([*lines, *_diagnostics(skill.get("diagnostics", ()))])


def _list_page(rows: Iterable[Mapping[str, Any]]) -> str:
    lines = [f"{row['skill_id']:<32} {row['description'][:80]}" for row in rows]
    return "\n".join(lines) or "The catalogue is empty: cowpath catalogue sync DIR reads a library."
