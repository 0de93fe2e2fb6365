"""What every benchmark says about itself: the machine, the command, the bars, and whether they are met."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec


def document(name: str, *, results: dict[str, Any], bars: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The document of a benchmark; ``met`` where every bar is."""
    return {
        "benchmark": name,
        "command": " ".join(["python", "-m", f"benchmarks.{name}", *sys.argv[1:]]),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "results": results,
        "bars": list(bars),
        "met": all(bar["met"] for bar in bars),
    }


def peak_rss(pid: int) -> int:
    """Most bytes a running process had in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def finish(result: dict[str, Any], *, as_json: bool) -> None:
    """Print the document and exit: 0 where every bar is met, else 1."""
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
    else:
        for bar in result["bars"]:
            print(f"{'met   ' if bar['met'] else 'MISSED'} {bar['bar']}: {bar['measured']} (bar {bar['at']})")
    sys.exit(0 if result["met"] else 1)
