"""Write ``requirements.lock`` from what ``.venv`` holds: what ``make lock`` runs after a change of dependencies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).resolve().parent.parent / "requirements.lock"
OURS = ("cowpath", "pip", "setuptools")


def main() -> None:
    lines = subprocess.run(
        [sys.executable, "-m", "pip", "freeze"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    LOCK.write_text("".join(f"{name}=={version}\n" for name, version in pins(lines)))


def pins(lines: list[str]) -> list[tuple[str, str]]:
    """Sorted (name, version) pairs; a version without its local label means the same on every machine."""
    found = [line.partition("==") for line in lines if "==" in line and not line.startswith(("#", "-"))]
    kept = [(name, version.partition("+")[0]) for name, _, version in found if name.lower() not in OURS]
    return sorted(kept, key=lambda pin: pin[0].lower())


if __name__ == "__main__":
    main()
