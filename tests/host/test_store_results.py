"""Records, requests, what was last; verify, gc and du."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec
import pytest
from click.testing import CliRunner
from filelock import FileLock

from axletree.cli.main import cli
from axletree.core.errors import StoreError, UsageError
from axletree.core.values import Digest, Key, StageId, digest_of, key_of
from axletree.store import STORE_VARIABLE, Store, du, gc, verify
from support.envelopes import result_of
from support.requests import MadeUpParameters, request_of
from support.store import damage, record_of, write_files

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86400.0
HOUR = 3600.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def a_tree(store: Store, tmp_path: Path, *contents: str) -> Digest:
    folder = write_files(tmp_path / "in", {f"file-{content}": content.encode() for content in contents})
    return store.ingest(folder, adopt=True)


def disk_clock(folder: Path) -> float:
    """A time after all that was written until now and not after what is written next, by the clock of the disk.

    Ages are taken from change times, which a test cannot set, and which the kernel counts in ticks.
    """
    time.sleep(0.05)
    (folder / "clock").touch()
    return (folder / "clock").stat().st_ctime


def test_a_record_comes_back(store: Store, tmp_path: Path) -> None:
    record = record_of(a_tree(store, tmp_path, "alpha"))
    assert store.get_record(record.key) is None
    assert store.put_record(record) == record
    assert store.get_record(record.key) == record


def test_the_first_record_of_a_key_wins(store: Store, tmp_path: Path) -> None:
    first = record_of(a_tree(store, tmp_path, "alpha"))
    second = msgspec.structs.replace(first, tree=a_tree(store, tmp_path, "beta"))
    store.put_record(first)
    assert store.put_record(second) == first
    assert store.get_record(first.key) == first


def test_a_record_whose_tree_lacks_something_is_none_and_gives_way(store: Store, tmp_path: Path) -> None:
    first = store.put_record(record_of(a_tree(store, tmp_path, "alpha", "beta")))
    store.blob_path(digest_of(b"beta")).unlink()
    assert store.get_record(first.key) is None
    second = msgspec.structs.replace(first, tree=a_tree(store, tmp_path, "gamma"))
    assert store.put_record(second) == second
    assert store.get_record(first.key) == second


def test_a_record_needs_its_tree(store: Store, tmp_path: Path) -> None:
    tree = a_tree(store, tmp_path, "alpha")
    store.blob_path(digest_of(b"alpha")).unlink()
    with pytest.raises(StoreError, match=r"result of build\[py311-cpu\] is incomplete"):
        store.put_record(record_of(tree))


@pytest.mark.parametrize("part", ["blob size", "listing", "listing damaged", "record", "record of another key"])
def test_every_damage_makes_a_record_none(store: Store, tmp_path: Path, part: str) -> None:
    record = store.put_record(record_of(a_tree(store, tmp_path, "alpha")))
    path = store.record_path(record.key)
    match part:
        case "blob size":
            blob = store.blob_path(digest_of(b"alpha"))
            blob.chmod(0o644)
            blob.write_bytes(b"alph")
        case "listing":
            store.blob_path(record.tree).unlink()
        case "listing damaged":
            damage(store, record.tree)
        case "record":
            path.write_bytes(path.read_bytes()[:50])
        case _:
            path.write_bytes(path.read_bytes().replace(record.key.encode(), b"0" * 64))
    assert store.get_record(record.key) is None
    report = verify(store)
    assert len(report.incomplete) == 1
    assert not path.exists()
    assert verify(store).sound


def test_what_a_stage_was_last_is_kept_by_recipe(store: Store, tmp_path: Path) -> None:
    record = store.put_record(record_of(a_tree(store, tmp_path, "alpha")))
    store.remember_last(record, "one")
    assert store.last_record(record.stage, "one") == record
    assert store.last_record(record.stage, "two") is None
    newer = msgspec.structs.replace(record, key=key_of("newer"))
    store.remember_last(newer, "one")
    assert store.last_record(record.stage, "one") == newer


def test_requests(store: Store) -> None:
    request = request_of("fetch", MadeUpParameters(name="x"), inputs={"x": digest_of(b"")}, axes={"a": "1"})
    assert store.put_request(request).is_relative_to(store.requests)
    assert store.get_request(request.key) == request
    with pytest.raises(UsageError, match="no request for key"):
        store.get_request(key_of("y"))


def test_verify_finds_and_mends(store: Store, tmp_path: Path) -> None:
    broken = store.put_record(record_of(a_tree(store, tmp_path, "alpha", "beta")))
    whole = store.put_record(record_of(a_tree(store, tmp_path, "alpha"), "other"))
    damage(store, digest_of(b"beta"))
    (store.blobs / "ab").mkdir(exist_ok=True)
    (store.blobs / "ab/stray").write_bytes(b"x")
    report = verify(store)
    assert report.corrupt == (digest_of(b"beta"),)
    assert report.strays == ("blobs/ab/stray",)
    assert report.incomplete == (f"build[py311-cpu] ({broken.key})",)
    assert not report.sound
    assert {path.name.partition(".")[0] for path in store.quarantine.iterdir()} == {
        digest_of(b"beta"),
        "blobs-ab-stray",
    }
    assert store.get_record(whole.key) == whole
    assert verify(store).sound


def test_gc_keeps_what_was_used_and_sweeps_the_rest(store: Store, tmp_path: Path) -> None:
    now = time.time()
    old = store.put_record(record_of(a_tree(store, tmp_path, "old", "shared"), "old"))
    assert gc(store, keep=DAY, grace=HOUR, now=now + HOUR / 2).records == ()
    plan = gc(store, keep=DAY, grace=HOUR, now=now + 2 * DAY, dry_run=True)
    assert plan.records == (f"old ({old.key})",)
    assert (plan.blobs, plan.kept_blobs, plan.dry_run) == (3, 0, True)
    assert store.get_record(old.key) == old
    report = gc(store, keep=DAY, grace=HOUR, now=now + 2 * DAY)
    assert (report.records, report.blobs, report.kept_blobs) == (plan.records, 3, 0)
    assert report.freed == plan.freed > 0
    assert store.get_record(old.key) is None
    assert du(store).kinds[0].files == 0


def test_gc_sweeps_only_what_no_kept_record_needs(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ages are taken from change times, which a test cannot set: so the clock of the files is read through a shift."""
    gone = store.put_record(record_of(a_tree(store, tmp_path, "gone", "shared"), "gone"))
    kept = store.put_record(record_of(a_tree(store, tmp_path, "kept", "shared"), "kept"))
    store.remember_last(kept, "recipe")
    now = disk_clock(tmp_path)
    store.remember_last(kept, "recipe")
    report = gc(store, keep=0, grace=0, now=now)
    assert report.records == (f"gone ({gone.key})",)
    assert store.get_record(kept.key) == kept
    assert not store.has_blob(digest_of(b"gone"))
    assert verify(store).sound


def test_gc_keeps_what_the_last_run_of_a_root_needed(store: Store, tmp_path: Path) -> None:
    for recipe in ("kept", "gone"):
        old, new = (store.put_record(record_of(a_tree(store, tmp_path, recipe + age), recipe, age=age)) for age in "12")
        for record in (old, new):
            store.remember_last(record, recipe)
    report = gc(store, keep=0, grace=0, roots=("kept",), now=time.time() + 100 * DAY)
    assert (len(report.records), report.kept_records) == (3, 1)
    kept = store.last_record(StageId("kept"), "kept")
    assert kept is not None
    assert store.get_record(kept.key) == kept
    assert kept.ingredients.axes["age"] == "2"
    assert store.last_record(StageId("gone"), "gone") is None
    assert verify(store).sound


def test_getting_a_record_is_a_use(store: Store, tmp_path: Path) -> None:
    record = store.put_record(record_of(a_tree(store, tmp_path, "alpha")))
    now = disk_clock(tmp_path)
    assert store.get_record(record.key) == record
    assert gc(store, keep=0, grace=0, now=now).records == ()
    assert store.get_record(record.key) == record


def test_content_that_comes_again_is_young_again(store: Store, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "in", {"a": b"alpha"})
    tree = store.ingest(folder)
    now = disk_clock(tmp_path)
    assert store.ingest(folder) == tree
    store.put_bytes(b"never again")
    assert gc(store, keep=0, grace=0, now=now).blobs == 0
    assert store.has_blob(digest_of(b"alpha"))


def test_an_adopted_file_is_young_however_old_it_is(store: Store, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "in", {"a": b"alpha"})
    os.utime(folder / "a", (0, 0))
    store.ingest(folder, adopt=True)
    assert gc(store, keep=0, grace=HOUR).blobs == 0


def test_gc_keeps_what_a_living_scratch_folder_protects(store: Store, tmp_path: Path) -> None:
    lease = store.scratch("run")
    record = store.put_record(record_of(a_tree(store, tmp_path, "alpha")))
    later = time.time() + 100 * DAY
    report = gc(store, keep=0, grace=0, now=later)
    assert (report.records, report.blobs, report.folders) == ((), 0, ())
    assert lease.is_dir()
    assert store.get_record(record.key) == record
    store.drop_scratch(lease)
    assert gc(store, keep=0, grace=0, now=later).records == (f"build[py311-cpu] ({record.key})",)


def test_gc_sweeps_old_folders_and_files_and_leaves_the_cache(store: Store) -> None:
    for name in ("workspaces/a/b/file", "environments/e/bin/python", "logs/x/y.log", "requests/r.json", "cache/c"):
        path = store.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 10)
    later = time.time() + 2 * DAY
    assert gc(store, keep=3 * DAY, grace=0, now=later).folders == ()
    report = gc(store, keep=DAY, grace=0, now=later)
    assert report.folders == ("workspaces/a", "environments/e")
    assert report.files == 2
    assert report.freed == 40
    assert (store.cache / "c").exists()
    assert not (store.root / "logs/x/y.log").exists()


def test_gc_sweeps_cut_downloads_git_repositories_and_locks_that_nobody_holds(store: Store) -> None:
    for name in ("cache/downloads/a.partial", "cache/downloads/a.lock", "cache/git/r.git/HEAD", "cache/ccache/0/x"):
        path = store.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 10)
    with store.lock("free"), store.lock("held"):
        pass
    later = time.time() + 2 * DAY
    assert gc(store, keep=3 * DAY, grace=0, now=later).files == 0
    with store.lock("held"):
        assert gc(store, keep=DAY, grace=0, now=later, dry_run=True).files == 3
        report = gc(store, keep=DAY, grace=0, now=later)
        with pytest.raises(StoreError, match="held is locked"), store.lock("held", timeout=0):
            pass
    assert (report.files, report.folders, report.freed) == (3, ("cache/git/r.git",), 30)
    assert (store.cache / "ccache/0/x").exists()
    assert sorted(path.name for path in store.locks.iterdir()) == [".sweep", "held.lock"]


def test_gc_leaves_a_download_that_is_going_on(store: Store) -> None:
    folder = store.cache / "downloads"
    folder.mkdir(parents=True)
    for name in ("busy.partial", "busy.lock", "cut.partial", "cut.lock", "old.partial"):
        (folder / name).write_bytes(b"x")
    later = time.time() + 2 * DAY
    with FileLock(folder / "busy.lock"):
        assert gc(store, keep=DAY, grace=0, now=later).files == 3
        assert sorted(path.name for path in folder.iterdir()) == ["busy.lock", "busy.partial"]
    assert gc(store, keep=DAY, grace=0, now=later).files == 2
    assert list(folder.iterdir()) == []


def test_a_lock_whose_file_gc_removes_is_one_lock_still(store: Store) -> None:
    """Who waits for a file that is removed meanwhile must not hold another lock than who comes after it."""
    inside: list[str] = []

    def work(name: str) -> None:
        for _ in range(200):
            with store.lock("one"):
                inside.append(name)
                assert inside == [name]
                inside.remove(name)

    with ThreadPoolExecutor(max_workers=3) as pool:
        workers = [pool.submit(work, name) for name in ("a", "b")]
        while not all(worker.done() for worker in workers):
            gc(store, keep=0, grace=0, now=time.time() + DAY)
        for worker in workers:
            worker.result()


def test_du_tells_the_caches_of_tools_apart(store: Store) -> None:
    for name in ("cache/ccache/0/x", "cache/ccache/y", "cache/uv/z", "cache/tools.json"):
        path = store.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 10)
    found = {usage.kind: usage.files for usage in du(store).kinds if usage.files}
    assert found == {"cache": 1, "cache/ccache": 2, "cache/uv": 1}


def test_du_counts_shared_content_once(store: Store, tmp_path: Path) -> None:
    one = store.put_record(record_of(a_tree(store, tmp_path, "alone", "shared"), "one"))
    two = store.put_record(record_of(a_tree(store, tmp_path, "shared"), "two"))
    store.put_bytes(b"nobody needs this")
    report = du(store)
    assert [(record.stage, record.files) for record in report.records] == [("one", 2), ("two", 1)]
    listings = {record.tree: store.blob_path(record.tree).stat().st_size for record in (one, two)}
    assert report.records[0].size == len("alone" + "shared") + listings[one.tree]
    assert report.records[0].own == len("alone") + listings[one.tree]
    assert report.records[1].own == listings[two.tree]
    assert report.unused == len("nobody needs this")
    store.materialise(one.tree, store.environments / "linked", link=True)
    assert du(store).size == report.size


@pytest.fixture
def command(store: Store) -> CliRunner:
    return CliRunner(env={STORE_VARIABLE: str(store.root)})


def test_the_commands_say_what_they_did(store: Store, tmp_path: Path, command: CliRunner) -> None:
    store.put_record(record_of(a_tree(store, tmp_path, "alpha")))
    result = command.invoke(cli, ["store", "verify"])
    assert result.exit_code == 0
    assert "the store is intact" in result.output
    result = command.invoke(cli, ["store", "du"])
    assert "build[py311-cpu]" in result.output
    result = command.invoke(cli, ["store", "gc", "--keep", "0", "--grace", "0", "--dry-run"])
    assert result.output.startswith("would remove 1 results, 2 blobs")
    result = command.invoke(cli, ["store", "gc", "--root", "torch-scatter", "--dry-run"])
    assert result.exit_code == 0
    for name in ("verify", "du", "gc"):
        result = command.invoke(cli, ["store", name, "--json"])
        assert result.exit_code == 0
        assert result_of(result.output)


def test_verify_says_no_when_it_found_damage(store: Store, tmp_path: Path) -> None:
    record = store.put_record(record_of(a_tree(store, tmp_path, "alpha")))
    damage(store, digest_of(b"alpha"))
    argv = [sys.executable, "-m", "axletree.cli.main", "store", "verify"]
    environ = {**os.environ, STORE_VARIABLE: str(store.root)}
    for code in (1, 0):
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert (digest_of(b"alpha") in done.stdout) == (code == 1)
    assert store.get_record(record.key) is None


def test_keys_are_checked_before_they_become_paths(store: Store) -> None:
    for call in (store.get_record, store.get_request):
        with pytest.raises(Exception, match="not a key"):
            call(Key("../../etc/passwd"))
