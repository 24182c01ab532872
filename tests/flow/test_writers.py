"""Many writers of one index root: nothing is lost, and what killed ones leave is an index that clients install from."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import pytest

from axletree.disk import PART
from support import writers


def start(out: Path, store: Path, numbers: int, rounds: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", writers.__name__, str(out), str(store), str(numbers), str(rounds)]
    tests = Path(writers.__file__).parents[1]
    return subprocess.Popen(command, cwd=tests, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def pages(root: Path) -> dict[str, dict[str, str]]:
    """Project -> file -> SHA-256, as its page says."""
    found = {}
    for page in root.glob("simple/*/index.json"):
        files = json.loads(page.read_bytes())["files"]
        found[page.parent.name] = {each["filename"]: each["hashes"]["sha256"] for each in files}
    return found


def check_that_all_is_there(root: Path) -> None:
    """Each file that a page names, of either form, is there with that content."""
    named = {name: digest for files in pages(root).values() for name, digest in files.items()}
    for page in root.glob("simple/*/index.html"):
        links = re.findall(r'href="\.\./\.\./([^"#]+)#sha256=([0-9a-f]+)', page.read_text(encoding="utf-8"))
        named |= {unquote(name): digest for name, digest in links}
    for name, digest in named.items():
        assert hashlib.sha256((root / name).read_bytes()).hexdigest() == digest


def leftovers(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if PART in path.name]


def test_twenty_writers_at_once_lose_no_line(tmp_path: Path) -> None:
    out, root = tmp_path / "dist", tmp_path / "dist" / writers.ROOT
    process = start(out, tmp_path / "store", 20, 2)
    _, complained = process.communicate(timeout=300)
    assert process.returncode == 0, complained.decode()
    found = pages(root)
    wanted = {f"demo-{number}.{round_}-py3-none-any.whl" for number in range(20) for round_ in range(2)}
    assert found["demo"].keys() == wanted
    assert {name: len(files) for name, files in found.items() if name != "demo"} == {
        f"own{number}": 2 for number in range(20)
    }
    listed = (root / "simple" / "index.html").read_text(encoding="utf-8")
    assert listed.count("<a ") == 21
    check_that_all_is_there(root)
    assert leftovers(root) == []
    assert (root / ".axletree.lock").read_bytes() == b""


def kill_writers(folder: Path, *, rounds: int, seed: int) -> None:
    """Kill writers at random moments. What pages name is there after each kill, and the next writer makes all whole."""
    out, root, store = folder / "dist", folder / "dist" / writers.ROOT, folder / "store"
    choose = random.Random(seed)
    known: set[str] = set()
    for _ in range(rounds):
        process = start(out, store, 4, 100)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(choose.uniform(0.05, 0.6))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        check_that_all_is_there(root)
        listed = {name for files in pages(root).values() for name in files}
        assert listed >= known
        known = listed
    assert known
    process = start(out, store, 2, 1)
    _, complained = process.communicate(timeout=300)
    assert process.returncode == 0, complained.decode()
    assert leftovers(root) == []
    html = (root / "simple" / "demo" / "index.html").read_text(encoding="utf-8")
    assert all(name in html for name in pages(root)["demo"])
    install(root, pages(root), folder / "site")


def install(root: Path, named: dict[str, dict[str, str]], site: Path) -> None:
    """pip gets something of each project that the index names."""
    command = [sys.executable, "-I", "-m", "pip", "--isolated", "install", "-q", "--no-deps", "--no-cache-dir"]
    command += [f"--index-url={(root / 'simple').as_uri()}", f"--target={site}", *named]
    environ = {**os.environ, "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {path.name.partition("-")[0] for path in site.glob("*.dist-info")} == set(named)


def test_killed_writers_leave_an_index(tmp_path: Path) -> None:
    kill_writers(tmp_path, rounds=5, seed=1)


@pytest.mark.proof
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(2, 6))
def test_writers_killed_two_hundred_times(seed: int, tmp_path: Path) -> None:
    kill_writers(tmp_path, rounds=50, seed=seed)
