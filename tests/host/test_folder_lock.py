"""One writer at a time in a folder, whatever it is called, and no circle of waiting."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from axletree.app.index_root import Addition, add_to_roots, staging
from axletree.core.errors import HostError, PublishError
from axletree.host.folder_lock import LOCK, folder_locks
from support import writers
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import sys
from pathlib import Path
from axletree.host.folder_lock import folder_locks
with folder_locks([Path(each) for each in sys.argv[1:]], lambda text: print(text, flush=True)):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(*folders: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, *map(str, folders)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_whoever_waits_says_for_whom(tmp_path: Path) -> None:
    with folder_locks([tmp_path], lambda _: None), holder(tmp_path) as process:
        expected = f"({os.getpid()} on {os.uname().nodename})"
        text = said(process)
        assert text == f"waiting for another axletree process that is writing to {tmp_path} (process {expected[1:]}"
        assert process.stdin is not None
        waiting = process
        threading.Thread(target=waiting.kill).start()
    assert (tmp_path / LOCK).read_bytes() == b""


def test_one_folder_under_several_names_is_one_lock(tmp_path: Path) -> None:
    folder = tmp_path / "dist"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    spellings = [folder, tmp_path / "link", folder / ".." / "dist", folder / "."]
    with folder_locks(spellings, pytest.fail), holder(tmp_path / "link") as process:
        assert said(process).startswith("waiting for another axletree process that is writing to ")
        process.kill()


def test_nobody_waits_in_a_circle(tmp_path: Path) -> None:
    code = HOLD.replace("sys.stdin.read()", "pass").replace('print("held", flush=True)', "pass")
    code = code.replace("with folder_locks", "for _ in range(300):\n  with folder_locks")
    folders = [str(tmp_path / name) for name in "abc"]
    orders = [folders, folders[::-1], [folders[1], folders[0], folders[2]]]
    running = [
        subprocess.Popen([sys.executable, "-c", code, *order], stdout=subprocess.DEVNULL, text=True) for order in orders
    ]
    try:
        assert [process.wait(timeout=120) for process in running] == [0, 0, 0]
    finally:
        for process in running:
            process.kill()
            process.wait()


def test_a_folder_that_is_made_anew_meanwhile(tmp_path: Path) -> None:
    """Whoever waited for the old one must not hold a lock that nobody else knows."""
    folder = tmp_path / "dist"
    with folder_locks([folder], lambda _: None):
        process = holder(folder)
        assert said(process).startswith("waiting for")
        folder.rename(tmp_path / "old")
    with process:
        assert said(process) == "held"
        with holder(folder) as other:
            assert said(other).startswith("waiting for")
            other.kill()
        process.kill()


def test_a_killed_holder_keeps_nobody_out(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        assert said(process) == "held"
        process.kill()
    until(lambda: process.poll() is not None, process)
    assert (tmp_path / LOCK).read_bytes() != b""  # what is left of it means nothing
    with folder_locks([tmp_path], pytest.fail):
        pass
    assert (tmp_path / LOCK).read_bytes() == b""


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(HostError, match="cannot be locked because its file system does not support locks") as caught:
        add_to_roots([tmp_path], list, durable=False, note=pytest.fail)
    assert "mount this file system with support for locks" in str(caught.value.problems[0].hint)


def test_a_lock_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / LOCK).symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic links"), folder_locks([tmp_path / "dist"], pytest.fail):
        pass
    assert (tmp_path / "mine").read_bytes() == b"mine"


def test_two_roots_that_are_one_folder(tmp_path: Path) -> None:
    out, link = tmp_path / "dist", tmp_path / "dist" / "at-install"
    out.mkdir()
    link.symlink_to(out)
    with staging(out) as folder:
        wheels = [writers.make_wheel(folder, "demo", "1.0"), writers.make_wheel(folder, "demo", "2.0")]
        additions = [Addition(out=root, staged=[wheel]) for root, wheel in zip((out, link), wheels, strict=True)]
        with pytest.raises(PublishError, match="the folder is the same as"):
            add_to_roots([out, link], lambda: additions, durable=False, note=pytest.fail)
    assert [path.name for path in out.iterdir() if path != link] == [LOCK]
