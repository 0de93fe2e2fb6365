"""Our hooks in a Claude Code settings file: put in and taken out without touching anything else."""

from __future__ import annotations

import difflib
import json
import re
import sys
from pathlib import Path
from typing import Any

from cowpath.errors import BadFile, HomeBusy
from cowpath.home import write_whole

PATH = "/v1/hooks/claude-code"
COMMAND = ["-m", "cowpath.hook", "claude-code"]
TIMEOUT_S = 2
BACKUP = ".before-cowpath"

EVENTS: dict[str, str | None] = {
    "PostToolUse": "Skill",
    "PostToolUseFailure": "Skill",
    "PermissionDenied": "Skill",
    "PostToolBatch": None,
    "UserPromptExpansion": None,
}
"""Event -> matcher. Each is reported over HTTP and by a command in the background; the ids make that one call."""

SHIPPED_AT = "SessionStart"
"""Takes commands only; used to ship what an earlier session left in the spool."""


def settings_file(scope: str, path: Path | None) -> Path:
    """The file to edit; behind a link, the file it leads to."""
    if path is None:
        path = (Path.home() if scope == "user" else Path.cwd()) / ".claude" / "settings.json"
    return path.expanduser().resolve()


def install(path: Path, url: str, *, with_key: bool = False, dry_run: bool = False) -> dict[str, Any]:
    """Add our hooks; installing again changes nothing, with another address only ours change."""
    old = _read(path)
    new = _with_ours(path, old, url, with_key)
    backup = path.with_name(path.name + BACKUP)
    if not dry_run and new != old:
        if not _has_ours(_parse(path, old)):
            _keep(backup, old)
        _replace(path, old, new)
    return _report(path, old, new, backup=backup, dry_run=dry_run)


def uninstall(path: Path, *, dry_run: bool = False) -> dict[str, Any]:
    """Remove our hooks. Where nothing else changed since, the file becomes what it was, or goes if there was none."""
    old = _read(path)
    backup = path.with_name(path.name + BACKUP)
    new, untouched = old, False
    if _has_ours(_parse(path, old)):
        before = _read(backup)
        untouched = any(_with_ours(path, before, url, with_key) == old for url, with_key in _ours_in(_parse(path, old)))
        new = before if untouched else _dump(_without_ours(_parse(path, old)), old)
    if not dry_run and new != old:
        _replace(path, old, new)
        if untouched:
            backup.unlink(missing_ok=True)
    return _report(path, old, new, backup=backup, dry_run=dry_run)


def status(path: Path) -> dict[str, Any]:
    """Which events report to us, and how."""
    hooks = _parse(path, _read(path)).get("hooks", {})
    events = {
        event: [hook["type"] for group in groups for hook in group["hooks"] if _is_ours(hook)]
        for event, groups in sorted(hooks.items())
    }
    events = {event: kinds for event, kinds in events.items() if kinds}
    return {"settings": str(path), "installed": set(EVENTS) <= set(events), "events": events}


def groups(url: str, *, with_key: bool = False) -> dict[str, dict[str, Any]]:
    """Event -> our matcher group."""
    http: dict[str, Any] = {"type": "http", "url": url.rstrip("/") + PATH, "timeout": TIMEOUT_S}
    if with_key:
        http |= {"headers": {"Authorization": "Bearer $COWPATH_KEY"}, "allowedEnvVars": ["COWPATH_KEY"]}
    command = {"type": "command", "command": sys.executable, "args": COMMAND, "timeout": TIMEOUT_S}
    made: dict[str, dict[str, Any]] = {}
    for event, matcher in EVENTS.items():
        group = {"matcher": matcher} if matcher else {}
        made[event] = {**group, "hooks": [http, {**command, "async": True}]}
    made[SHIPPED_AT] = {"hooks": [{**command, "async": True}]}
    return made


def _with_ours(path: Path, text: str | None, url: str, with_key: bool) -> str:
    """The file with our hooks in it, last of each event, and no older ones of ours."""
    document = _parse(path, text)
    if _ours_in(document) == [(url.rstrip("/"), with_key)] and _current(document, url, with_key):
        return text or ""
    document = _without_ours(document)
    hooks = document.setdefault("hooks", {})
    for event, group in groups(url, with_key=with_key).items():
        hooks.setdefault(event, []).append(group)
    return _dump(document, text)


def _current(document: dict[str, Any], url: str, with_key: bool) -> bool:
    return all(group in document["hooks"].get(event, []) for event, group in groups(url, with_key=with_key).items())


def _without_ours(document: dict[str, Any]) -> dict[str, Any]:
    """The document without our hooks, and without what only held them."""
    if not _has_ours(document):
        return document
    hooks: dict[str, Any] = {}
    for event, groups_of in document["hooks"].items():
        kept = []
        for group in groups_of:
            foreign = [hook for hook in group["hooks"] if not _is_ours(hook)]
            if foreign or not group["hooks"]:
                kept.append({**group, "hooks": foreign})
        if kept or not groups_of:
            hooks[event] = kept
    rest = {key: value for key, value in document.items() if key != "hooks"}
    return {key: hooks if key == "hooks" else rest[key] for key in document} if hooks else rest


def _is_ours(hook: dict[str, Any]) -> bool:
    return (hook.get("type") == "http" and str(hook.get("url", "")).endswith(PATH)) or (
        hook.get("type") == "command" and hook.get("args") == COMMAND
    )


def _has_ours(document: dict[str, Any]) -> bool:
    return any(_is_ours(hook) for of in document.get("hooks", {}).values() for group in of for hook in group["hooks"])


def _ours_in(document: dict[str, Any]) -> list[tuple[str, bool]]:
    """(address, with key) of every http hook of ours, each pair once."""
    found = [
        (str(hook["url"]).removesuffix(PATH), "headers" in hook)
        for of in document.get("hooks", {}).values()
        for group in of
        for hook in group["hooks"]
        if _is_ours(hook) and hook["type"] == "http"
    ]
    return list(dict.fromkeys(found))


def _read(path: Path) -> str | None:
    """The text of the file, None where there is none."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{path} cannot be read: {error}; nothing was changed") from error


def _parse(path: Path, text: str | None) -> dict[str, Any]:
    """The document; BadFile for anything that we would not give back as it was."""
    if text is None or not text.strip():
        return {}
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats)
    except ValueError as error:
        raise BadFile(f"{path} is not valid JSON: {error}; nothing was changed, correct it first") from error
    hooks = document.get("hooks", {}) if isinstance(document, dict) else None
    well_formed = isinstance(hooks, dict) and all(
        isinstance(of, list) and all(isinstance(group, dict) and _are_hooks(group.get("hooks")) for group in of)
        for of in hooks.values()
    )
    if not well_formed:
        raise BadFile(f"{path} does not have the form of a settings file with hooks; nothing was changed")
    assert isinstance(document, dict)
    return document


def _are_hooks(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(hook, dict) for hook in value)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return document


def _dump(document: dict[str, Any], like: str | None) -> str:
    """The document, indented and ended as the text it replaces."""
    found = re.search(r"^([ \t]+)\S", like or "", re.MULTILINE)
    indent: int | str = (found[1] if "\t" in found[1] else len(found[1])) if found else 2
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    text += "\n" if like is None or like.endswith("\n") else ""
    return text.replace("\n", "\r\n") if like and "\r\n" in like else text


def _keep(backup: Path, text: str | None) -> None:
    """What the file was; no backup where there was none."""
    if text is None:
        backup.unlink(missing_ok=True)
    else:
        write_whole(backup, text.encode())
        backup.chmod(0o600)


def _replace(path: Path, old: str | None, new: str | None) -> None:
    """Write or remove the file, unless somebody changed it since it was read; its permissions stay."""
    if _read(path) != old:
        raise HomeBusy(f"{path} was changed meanwhile; nothing was done, try again")
    if new is None:
        path.unlink()
        return
    mode = path.stat().st_mode & 0o777 if old is not None else 0o600
    write_whole(path, new.encode())
    path.chmod(mode)


def _report(path: Path, old: str | None, new: str | None, *, backup: Path, dry_run: bool) -> dict[str, Any]:
    before, after = ((text or "").splitlines(keepends=True) for text in (old, new))
    diff = "".join(difflib.unified_diff(before, after, fromfile=str(path), tofile=str(path)))
    return {
        "settings": str(path),
        "changed": old != new,
        "dry_run": dry_run,
        "diff": diff,
        "backup": str(backup) if backup.exists() else None,
    }
