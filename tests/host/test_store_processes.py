"""Several processes on one store, and processes that are killed in the middle."""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import StoreError
from axletree.store import Store, gc, verify
from support.store import Files, read_files, record_of, write_files

if TYPE_CHECKING:
    from collections.abc import Iterator

PRELUDE = """
import os, sys, time
from pathlib import Path
from axletree.store import Store
store = Store.open(Path(sys.argv[1]))
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A process that opens the store at its first argument and runs some code."""
    argv = [sys.executable, "-c", PRELUDE + textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip()


def wait_for(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == line


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


@pytest.fixture
def big(tmp_path: Path) -> Path:
    draw = random.Random(1)
    files: Files = {f"d{n % 9}/f{n}": draw.randbytes(draw.randrange(20_000)) for n in range(600)}
    files |= {f"large{n}": draw.randbytes(3_000_000) for n in range(4)}
    return write_files(tmp_path / "big", files)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [5, pytest.param(20, marks=pytest.mark.proof)])
@pytest.mark.parametrize("adopt", [False, True])
def test_a_kill_at_any_moment_harms_nothing(
    store: Store, tmp_path: Path, big: Path, rounds: int, *, adopt: bool
) -> None:
    expected = Store.open(tmp_path / "reference").ingest(big)
    code = f"""
        print("go", flush=True)
        print(store.ingest(Path(sys.argv[2]), adopt={adopt}))
    """
    draw = random.Random(2)
    longest = 0.4
    interrupted = 0
    for _ in range(rounds):
        shutil.copytree(big, tmp_path / "in")
        process = start(code, store.root, tmp_path / "in")
        wait_for(process, "go")
        time.sleep(draw.random() * longest)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        interrupted += process.returncode == -signal.SIGKILL
        report = verify(store)
        assert report.sound
        assert not any(store.scratches.iterdir())
        shutil.rmtree(tmp_path / "in", ignore_errors=True)
    assert interrupted
    shutil.copytree(big, tmp_path / "in")
    assert store.ingest(tmp_path / "in", adopt=adopt) == expected
    store.materialise(expected, tmp_path / "out")
    assert read_files(tmp_path / "out") == read_files(big)


@pytest.mark.parametrize("rounds", [5, pytest.param(20, marks=pytest.mark.proof)])
def test_a_kill_while_making_a_folder_leaves_no_folder(store: Store, tmp_path: Path, big: Path, rounds: int) -> None:
    digest = store.ingest(big)
    code = """
        print("go", flush=True)
        store.materialise(sys.argv[2], Path(sys.argv[3]))
    """
    draw = random.Random(3)
    for number in range(rounds):
        out = tmp_path / f"outs{number}/out"
        process = start(code, store.root, digest, out)
        wait_for(process, "go")
        time.sleep(draw.random() * 0.15)
        process.kill()
        process.communicate()
        if out.exists():
            assert read_files(out) == read_files(big)
            shutil.rmtree(out)
        store.materialise(digest, out)
        assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_two_processes_store_the_same_at_once(store: Store, tmp_path: Path, big: Path) -> None:
    code = """
        from axletree.core.records import ActionCode, Ingredients, StageRecord
        from axletree.core.values import key_of
        ingredients = Ingredients(action=ActionCode(name="a", revision=1), parameters={})
        print("ready", flush=True)
        while not Path(sys.argv[3]).exists():
            time.sleep(0.001)
        tree = store.ingest(Path(sys.argv[2]))
        record = StageRecord(stage="s", key=key_of("k"), tree=tree, ingredients=ingredients, facts={"by": os.getpid()})
        print(tree, store.put_record(record).facts["by"])
    """
    processes = [start(code, store.root, big, tmp_path / "go") for _ in range(3)]
    for process in processes:
        wait_for(process, "ready")
    (tmp_path / "go").touch()
    assert len({finish(process) for process in processes}) == 1
    assert verify(store).sound
    assert not any(store.scratches.iterdir())


def test_opening_a_new_store_at_once(tmp_path: Path) -> None:
    for _ in range(3):
        root = tmp_path / "new"
        for process in [start("print(store.put_bytes(b'x'))", root) for _ in range(3)]:
            finish(process)
        assert (root / "format").read_text() == "1\n"
        shutil.rmtree(root)


def test_gc_and_ingest_at_once(store: Store, tmp_path: Path, big: Path) -> None:
    """A sweep with no grace at all never takes what an ingest that is running relies on."""
    code = """
        from axletree.core.records import ActionCode, Ingredients, StageRecord
        from axletree.core.values import key_of
        ingredients = Ingredients(action=ActionCode(name="a", revision=1), parameters={})
        for number in range(6):
            lease = store.scratch("run")
            tree = store.ingest(Path(sys.argv[2]))
            record = StageRecord(stage="s", key=key_of(number), tree=tree, ingredients=ingredients)
            assert store.put_record(record) == record
            assert store.get_record(record.key) == record
            store.drop_scratch(lease)
        print("done")
    """
    process = start(code, store.root, big)
    sweeps = 0
    while process.poll() is None:
        gc(store, keep=0, grace=0)
        sweeps += 1
        time.sleep(0.01)
    assert finish(process) == "done"
    assert sweeps > 1
    assert verify(store).sound


def test_a_lock_excludes_other_processes_until_its_holder_dies(store: Store) -> None:
    code = """
        with store.lock(sys.argv[2]):
            print("held", flush=True)
            time.sleep(600)
    """
    name = "workspace of build[py311-cpu]/with a long name" + "x" * 300
    process = start(code, store.root, name)
    wait_for(process, "held")
    with (
        pytest.raises(StoreError, match=rf"is locked by process {process.pid} on "),
        store.lock(name, timeout=0.1),
    ):
        pass
    with store.lock("another", timeout=0):
        pass
    process.kill()
    process.communicate()
    with store.lock(name, timeout=30):
        pass


def test_scratch_folders_of_the_dead_are_cleaned_and_those_of_the_living_stay(store: Store) -> None:
    code = """
        folder = store.scratch("build[py311-cpu] & more")
        (folder / "sub").mkdir()
        (folder / "sub/file").write_text("x")
        (folder / "sub").chmod(0o555)
        print(folder, flush=True)
        time.sleep(600)
    """
    process = start(code, store.root)
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    mine = store.scratch("mine")
    assert store.clean_scratch() == ()
    assert (folder / "sub/file").exists()
    process.kill()
    process.communicate()
    assert store.clean_scratch() == (folder,)
    assert mine.is_dir()
    store.drop_scratch(mine)
    assert not any(store.scratches.iterdir())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB."""
    mount = tmp_path / "small"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", mount], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"mounting a small file system is not allowed here: {done.stderr.strip()}")
    yield mount
    subprocess.run(["umount", mount], check=True)


def test_a_full_disk_is_told_and_leaves_nothing(small_disk: Path, tmp_path: Path) -> None:
    store = Store.open(small_disk / "store")
    draw = random.Random(4)
    files: Files = {f"f{n}": draw.randbytes(300_000) for n in range(20)}
    files |= {f"g{n}": draw.randbytes(100_000) for n in range(60)}
    folder = write_files(tmp_path / "in", files)
    pattern = rf"no space left on {small_disk}: needs 12\.0 MB, has .* free"
    for adopt in (False, True):
        with pytest.raises(StoreError, match=pattern) as caught:
            store.ingest(folder, adopt=adopt)
        assert caught.value.exit_code == 3
        assert "set AXLETREE_STORE to a folder on a larger disk, or run `axletree store gc`" in str(caught.value)
    assert read_files(folder) == files
    with pytest.raises(StoreError, match="no space left on"):
        store.put_bytes(draw.randbytes(9_000_000))
    assert not any(store.scratches.iterdir())
    assert verify(store).blobs == 0
    tree = store.ingest(write_files(tmp_path / "less", {"f": b"x" * 5_000_000}))
    assert store.put_record(record_of(tree)).tree == tree
    with pytest.raises(StoreError, match="no space left on"):
        store.materialise(tree, store.scratches / "out")
    assert not any(store.scratches.iterdir())


def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    """Root may write anywhere, so the store is opened by a user who may not."""
    root = tmp_path / "theirs"
    Store.open(root)
    code = textwrap.dedent("""
        import os, sys
        from pathlib import Path
        from axletree.store import Store
        if os.geteuid() == 0:
            os.setgid(int(sys.argv[3]))
            os.setuid(int(sys.argv[2]))
        try:
            Store.open(Path(sys.argv[1]))
        except Exception as error:
            print(type(error).__name__, error)
    """)
    nobody = pwd.getpwnam("nobody")
    folders = [tmp_path, *tmp_path.parents]
    modes = [(folder, folder.stat().st_mode) for folder in folders if folder.stat().st_uid == os.geteuid()]
    try:
        for folder, mode in modes:
            folder.chmod(mode | 0o055)
        for path in (root, *root.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        argv = [sys.executable, "-c", code, str(root), str(nobody.pw_uid), str(nobody.pw_gid)]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
    finally:
        for folder, mode in modes:
            folder.chmod(mode)
        for path in (root, *root.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert done.stdout.startswith(f"StoreError the store is not writable: {root}\n")
    assert "set AXLETREE_STORE" in done.stdout


def test_a_store_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="cannot use the store: Not a directory"):
        Store.open(tmp_path / "file/store")


def test_a_holder_in_a_namespace_of_its_own_is_not_called_process_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside, that is somebody else, and the one who nobody should end."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with (
        store.lock("name"),
        pytest.raises(StoreError, match="is locked by the first process of a namespace on "),
        store.lock("name", timeout=0),
    ):
        pass


@pytest.mark.parametrize("name", ["my store", "tab\tbed", "a:b"])
def test_a_path_that_compilers_would_take_apart_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="cannot be located at") as caught:
        Store.open(tmp_path / name / "store")
    assert "AXLETREE_STORE" in (caught.value.problems[0].hint or "")
    assert not (tmp_path / name).exists()
