"""Promises about broken disks and files: nothing acknowledged is lost, a start that cannot be is refused in words."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from collector.lock import NETWORK, file_system_of
from collector.segments import numbers, segment_path
from collector.service import Collector
from cowpath.errors import Overloaded, StoreDamaged
from cowpath.event import Event
from cowpath.home import Home
from cowpath.settings import Settings

MakeEvent = Callable[..., Event]
KeptIds = Callable[[Path], list[str]]

PROC_MOUNTS = """\
/dev/vda / ext4 rw,relatime 0 0
server:/export /srv/nfs nfs4 rw 0 0
//nas/share /srv/win\\040share cifs rw 0 0
me@host: /srv/ssh fuse.sshfs rw 0 0
/dev/vdb /srv/nfs/local ext4 rw 0 0
drive /srv/nine 9p rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/bea", "ext4"),
        ("/srv/nfs/home", "nfs4"),
        ("/srv/nfs/local/home", "ext4"),
        ("/srv/nfsish", "ext4"),
        ("/srv/win share/home", "cifs"),
        ("/srv/ssh", "fuse.sshfs"),
        ("/srv/nine/x", "9p"),
    ],
)
def test_report_36_the_file_system_of_a_home_is_the_deepest_mount_that_holds_it(folder: str, kind: str) -> None:
    assert file_system_of(Path(folder), PROC_MOUNTS) == kind


@pytest.mark.parametrize("kind", sorted(NETWORK))
def test_report_36_a_home_on_a_network_file_system_is_refused_in_one_sentence(
    settings: Settings, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.lock.mounts", lambda: f"/dev/vda / ext4 rw 0 0\nserver:/x / {kind} rw 0 0\n")

    with pytest.raises(StoreDamaged, match="network file system") as refusal:
        Collector(settings)

    assert "\n" not in refusal.value.message
    assert not settings.at.root.exists()


@pytest.mark.parametrize("option", [["--workers", "2"], ["--reload"]], ids=["workers", "reload"])
def test_b20_report_31_a_server_of_several_processes_is_refused_in_one_sentence(
    tmp_path: Path, home: Home, option: list[str]
) -> None:
    (tmp_path / "served.py").write_text(
        "from collector.app import create_app\n"
        "from cowpath.settings import Settings\n"
        f"app = create_app(Settings(home={str(home.root)!r}, publish_every_s=0))\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    server = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "served:app", "--port", "0", *option],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    patience = threading.Timer(60, server.kill)
    patience.start()
    try:
        assert server.stderr is not None
        said = next((line for line in server.stderr if "one writer" in line), "nothing")
    finally:
        patience.cancel()
        server.terminate()
        server.communicate(timeout=30)

    assert "run uvicorn with one worker and without --reload" in said
    assert not home.live.exists()


def test_a_torn_last_line_is_cut_kept_and_counted(settings: Settings, event: MakeEvent, kept_ids: KeptIds) -> None:
    collector = Collector(settings)
    collector.take_in([event(f"e{n}") for n in range(5)])
    leave_as_killed(collector)
    last = segment_path(settings.at.journal, max(numbers(settings.at.journal)))
    with last.open("ab") as file:
        file.write(b'0badcafe {"event":{"event_id":"half')

    with Collector(settings) as collector:
        collector.flush()
        collector.take_in([event("e5")])
        assert collector.counts()["since_start"]["torn_bytes_cut"] == 35

    assert kept_ids(settings.at.live) == [f"e{n}" for n in range(6)]
    assert [path.read_bytes() for path in settings.at.journal.glob("*.torn")] == [
        b'0badcafe {"event":{"event_id":"half'
    ]


def leave_as_killed(collector: Collector) -> None:
    """Let go of the home as a killed process does: nothing flushed, nothing folded, no segment removed."""
    collector.journal.close()
    collector.drain._fold = lambda: None  # type: ignore[method-assign]  # a dead process does not fold
    collector.drain._remove_covered = lambda: None  # type: ignore[method-assign]  # nor remove
    collector.drain.close(grace_s=0)
    collector._store.close()
    collector.lock.release()


def test_report_31_32_a_held_database_file_refuses_the_start_and_loses_nothing(
    start_server: Callable[..., Any], home: Home, settings: Settings, kept_ids: KeptIds
) -> None:
    server = start_server()
    httpx.post(f"{server.url}/v1/events", json={"event_id": "e1", "session_id": "s", "skill_id": "plan"})
    server.kill()
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import duckdb, sys; c = duckdb.connect({str(home.live)!r}); print('open', flush=True); sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout
    holder.stdout.readline()

    refused = subprocess.run(
        [sys.executable, "-m", "cowpath", "up", "--home", str(home.root), "--port", "0"], capture_output=True, text=True
    )
    holder.communicate()

    assert refused.returncode == 91
    assert "live.duckdb is open" in refused.stderr
    assert "Traceback" not in refused.stderr
    with Collector(settings) as collector:
        collector.flush()
    assert kept_ids(home.live) == ["e1"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB."""
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", place]).returncode:
        pytest.skip("NOT TESTED: a full disk; mounting a small tmpfs needs root")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_refuses_what_it_cannot_store_and_loses_nothing(
    small_disk: Path, event: MakeEvent, kept_ids: KeptIds
) -> None:
    settings = Settings(home=str(small_disk / "home"), publish_every_s=0)
    with Collector(settings) as collector:
        collector.take_in([event("before")])
        collector.flush()
        filler = small_disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(b"\0" * 4096) == 4096:
                pass

        with pytest.raises(Overloaded, match="No space left") as refusal:  # noqa: PT012  # how many fit is unknown
            for n in range(50):
                collector.take_in([event(f"full-{n}-{m}", extra={"note": "x" * 200}) for m in range(50)])
        assert refusal.value.retryable
        stored = n * 50
        filler.unlink()
        collector.take_in([event("after")])

    kept = kept_ids(settings.at.live)
    assert len(kept) == len(set(kept))
    assert {"before", "after", *(f"full-{a}-{b}" for a in range(stored // 50) for b in range(50))} <= set(kept)
