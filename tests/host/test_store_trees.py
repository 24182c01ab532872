"""Folders into the store and out again, on a real disk."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from axletree.core.errors import HostError, IntegrityError, PublishError, StoreError
from axletree.core.trees import Entry, make_tree
from axletree.core.values import Digest, digest_of
from axletree.store import CorruptBlob, Store, verify
from support.store import Files, damage, file_trees, read_files, write_files

SAMPLE: Files = {
    "a.txt": b"alpha",
    "again.txt": b"alpha",
    "bin/tool!": b"#!/bin/sh\n",
    "bin/same-content": b"#!/bin/sh\n",
    "deep/er/large.bin": b"0123456789abcdef" * 60_000,
    "empty": None,
    "empty-file": b"",
    "link": "bin/tool",
    "out": "../outside",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return write_files(tmp_path / "sample", SAMPLE)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(file_trees())
def test_what_comes_out_is_what_went_in(files: Files) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = Store.open(folder / "store")
        source = write_files(folder / "in", files)
        digest = store.ingest(source)
        for number, options in enumerate(({}, {"writable": False}, {"link": True})):
            store.materialise(digest, folder / f"out{number}", **options)
            assert read_files(folder / f"out{number}") == files
        assert store.ingest(folder / "out2", adopt=True) == digest
        assert not (folder / "out2").exists()
        assert Store.open(folder / "other").ingest(source, adopt=True) == digest
        assert not source.exists()
        assert verify(store).sound
        assert verify(Store.open(folder / "other")).sound


def test_the_digest_is_the_content_whatever_the_time_owner_and_order(
    store: Store, tmp_path: Path, sample: Path
) -> None:
    other = write_files(tmp_path / "other", dict(reversed(SAMPLE.items())))
    os.utime(other / "a.txt", (0, 0))
    (other / "a.txt").chmod(0o600)
    assert store.ingest(other) == store.ingest(sample)
    assert store.blob_path(digest_of(b"alpha")).stat().st_mode & 0o777 == 0o444


def test_diff_sees_no_difference(store: Store, tmp_path: Path, sample: Path) -> None:
    store.materialise(store.ingest(sample), tmp_path / "out")
    command: list[str | Path] = ["diff", "-r", "--no-dereference", sample, tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    (tmp_path / "out/deep/er/large.bin").unlink()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


def test_modes_of_what_comes_out(store: Store, tmp_path: Path, sample: Path) -> None:
    digest = store.ingest(sample)
    mask = os.umask(0o022)
    try:
        for name, options, expected in (
            ("writable", {}, (0o644, 0o755)),
            ("read-only", {"writable": False}, (0o444, 0o555)),
            ("linked", {"link": True}, (0o444, 0o555)),
        ):
            store.materialise(digest, tmp_path / name, **options)
            modes = tuple((tmp_path / name / file).stat().st_mode & 0o777 for file in ("a.txt", "bin/tool"))
            assert modes == expected
    finally:
        os.umask(mask)
    assert (tmp_path / "linked/a.txt").samefile(store.blob_path(digest_of(b"alpha")))
    assert not (tmp_path / "read-only/a.txt").samefile(store.blob_path(digest_of(b"alpha")))


def test_adopting_moves_files_without_a_copy(store: Store, tmp_path: Path, sample: Path) -> None:
    inode = (sample / "deep/er/large.bin").stat().st_ino
    digest = store.ingest(sample, adopt=True)
    large = store.get_tree(digest).find("deep/er/large.bin")
    assert large is not None
    assert large.blob is not None
    status = store.blob_path(large.blob).stat()
    assert status.st_ino == inode
    assert status.st_mode & 0o777 == 0o444
    assert not sample.exists()


def test_a_file_with_another_name_is_copied_rather_than_adopted(store: Store, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "in", {"a": b"alpha", "b": b"B" * 400_000})
    for name in ("a", "b"):
        os.link(folder / name, tmp_path / name)
    store.ingest(folder, adopt=True)
    for name in ("a", "b"):
        with (tmp_path / name).open("ab") as file:
            file.write(b" changed later")
    assert verify(store).sound


def test_one_file(store: Store, tmp_path: Path) -> None:
    path = write_files(tmp_path / "in", {"a": b"alpha"}) / "a"
    expected = (digest_of(b"alpha"), 5)
    assert store.put_file(path) == expected
    assert store.put_file(path, adopt=True) == expected
    assert not path.exists()
    assert store.put_bytes(b"alpha") == expected[0]
    assert store.has_blob(expected[0])
    assert store.blob_ok(expected[0])
    assert store.read_blob(expected[0]) == b"alpha"
    with pytest.raises(HostError, match="No such file"):
        store.put_file(path)


def test_a_link_is_not_adopted_in_place_of_its_target(store: Store, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "in", {"a": b"alpha", "link": "a"})
    with pytest.raises(HostError, match="symbolic links"):
        store.put_file(folder / "link", adopt=True)
    assert store.put_file(folder / "link") == (digest_of(b"alpha"), 5)
    assert read_files(folder) == {"a": b"alpha", "link": "a"}


def test_what_is_excluded_stays_out(store: Store, tmp_path: Path) -> None:
    files: Files = {
        ".git/config": b"x",
        "docs/_build/x": b"x",
        "docs/index": b"kept",
        "_build": b"kept",
        "a/.git": b"kept",
        "a/b.pyc": b"x",
        "a/b": b"kept",
        "notes/x": b"x",
        "notes/deep/x": b"x",
        "empty": None,
    }
    folder = write_files(tmp_path / "in", files)
    tree = store.get_tree(store.ingest(folder, exclude=(".git", "**/*.pyc", "docs/_build", "notes/**")))
    assert [entry.path for entry in tree.entries] == ["_build", "a/.git", "a/b", "docs/index", "empty"]


def test_everything_that_cannot_be_stored_is_named_at_once(store: Store, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "in", {"fine": b"x", "absolute": "/etc/passwd", "back\\slash": b"x"})
    os.mkfifo(folder / "pipe")
    (folder / os.fsdecode(b"no-text-\xff")).write_bytes(b"x")
    here = Path.cwd()
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(folder)  # a socket's path may only be short
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
    for adopt in (False, True):
        with pytest.raises(IntegrityError) as caught:
            store.ingest(folder, adopt=adopt)
        assert [(Path(str(problem.file)).name, problem.message) for problem in caught.value.problems] == [
            ("absolute", "the file cannot be stored: the link's target is absolute: '/etc/passwd'"),
            ("back\\slash", "the file cannot be stored: its name is not allowed on all systems"),
            ("no-text-\\xff", "the file cannot be stored: its name is not allowed on all systems"),
            ("pipe", "the file cannot be stored: it is not a file, folder or link"),
            ("socket", "the file cannot be stored: it is not a file, folder or link"),
        ]
    assert (folder / "fine").exists()
    assert not any(store.blobs.iterdir())


def test_a_folder_that_is_not_there(store: Store, tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"No such file or directory: .*/absent"):
        store.ingest(tmp_path / "absent")


def test_unsafe_listings_are_refused(store: Store, tmp_path: Path) -> None:
    listing = store.put_bytes(b'{"entries":[{"path":"../evil","blob":"%b","size":5}],"format":1}' % (b"a" * 64))
    with pytest.raises(IntegrityError, match=r"unsafe path in a tree: '\.\./evil'"):
        store.materialise(listing, tmp_path / "out")
    with pytest.raises(IntegrityError, match="not a digest"):
        store.read_blob(Digest("../../etc/passwd"))
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "evil").exists()


def test_a_folder_that_holds_something_is_left_alone(store: Store, tmp_path: Path, sample: Path) -> None:
    digest = store.ingest(sample)
    taken = write_files(tmp_path / "taken", {"mine": b"x"})
    with pytest.raises(PublishError, match="taken already exists"):
        store.materialise(digest, taken)
    assert read_files(taken) == {"mine": b"x"}
    (tmp_path / "empty").mkdir()
    store.materialise(digest, tmp_path / "empty")
    assert read_files(tmp_path / "empty") == SAMPLE


@pytest.mark.parametrize("link", [False, True])
def test_corrupt_and_missing_contents_are_all_named_and_nothing_is_left(
    store: Store, tmp_path: Path, sample: Path, *, link: bool
) -> None:
    digest = store.ingest(sample)
    large = store.get_tree(digest).find("deep/er/large.bin")
    assert large is not None
    assert large.blob is not None
    damage(store, large.blob)
    store.blob_path(digest_of(b"alpha")).unlink()
    with pytest.raises(CorruptBlob) as caught:
        store.materialise(digest, tmp_path / "out/folder", link=link)
    assert set(caught.value.digests) == {large.blob, digest_of(b"alpha")}
    assert caught.value.exit_code == 2
    assert "is missing" in str(caught.value)
    assert "is corrupt" in str(caught.value)
    assert not any((tmp_path / "out").iterdir())
    assert not store.has_blob(large.blob)
    assert len(list(store.quarantine.iterdir())) == 1
    assert store.ingest(sample) == digest
    store.materialise(digest, tmp_path / "out/folder", link=link)
    assert read_files(tmp_path / "out/folder") == SAMPLE


def test_a_corrupt_content_is_found_when_it_is_read(store: Store) -> None:
    digest = store.put_bytes(b"alpha")
    damage(store, digest)
    with pytest.raises(CorruptBlob) as caught:
        store.read_blob(digest)
    assert caught.value.digest == digest
    assert str(store.quarantine) in str(caught.value)
    damage_again = store.put_bytes(b"alpha")
    damage(store, damage_again)
    assert not store.blob_ok(digest)
    assert not store.has_blob(digest)
    assert store.put_bytes(b"alpha") == digest
    assert store.read_blob(digest) == b"alpha"


def test_a_truncated_content_is_replaced_when_it_comes_again(store: Store, sample: Path) -> None:
    digest = store.ingest(sample)
    path = store.blob_path(digest_of(b"alpha"))
    path.chmod(0o644)
    os.truncate(path, 2)
    path.chmod(0o444)
    assert store.ingest(sample) == digest
    assert store.read_blob(digest_of(b"alpha")) == b"alpha"


def test_a_tree_put_by_hand(store: Store, tmp_path: Path) -> None:
    blob = store.put_bytes(b"alpha")
    store.materialise(store.put_tree(make_tree([Entry(path="x/y", blob=blob, size=5)])), tmp_path / "out")
    assert read_files(tmp_path / "out") == {"x/y": b"alpha"}


def test_other_formats_and_other_folders_are_refused(store: Store, tmp_path: Path) -> None:
    for text, said in (
        (
            "2",
            "the file has format 2, which a newer version",
        ),
        (
            "0",
            "the file has format 0, ",
        ),
        (
            "\x00damaged",
            "the file has a format that Axletree does not recognize: '\\x00damaged'\n  hint: use the version",
        ),
    ):
        (store.root / "format").write_text(f"{text}\n")
        with pytest.raises(StoreError) as raised:
            Store.open(store.root)
        assert str(raised.value).startswith(f"{store.root}: {said}")
        assert "AXLETREE_STORE" in str(raised.value)
    write_files(tmp_path / "home", {"letters/x": b"x"})
    with pytest.raises(StoreError, match="is not an Axletree store and is not empty: it contains letters"):
        Store.open(tmp_path / "home")
    assert read_files(tmp_path / "home") == {"letters/x": b"x"}
