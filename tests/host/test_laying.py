"""Laying a tree out over another one, killed or stopped by a full disk at each single operation on a file."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.execute.laying import holds, lay_out, listing_of
from axletree.store.store import Store
from support.faults import KILLED, ends_at

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.core.values import Digest

FIRST = {
    "same.cpp": "same",
    "edited.h": "one",
    "mode.sh": "run",
    "old/gone.cpp": "gone",
    "data/inner": "1",
    "swap": "file",
}
SECOND = {
    "same.cpp": "same",
    "edited.h": "two",
    "mode.sh": "run",
    "new/deep/file.cpp": "new",
    "data": "a file",
    "swap/x": "2",
}
THIRD = {"same.cpp": "other", "edited.h": "three", "link": "->same.cpp", "old/gone.cpp": "back", "new": "no folder"}
MADE = {"build/a.o": "object", "old/gone.o": "object", "egg-info": "made"}
"""What a build leaves among the sources."""

LAID, BUILT = 10**18, 10**18 + 10**9
"""Nanoseconds: when the first tree was laid out, and when something was built from it."""

Places = dict[str, "str | None"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def put(store: Store, folder: Path, files: dict[str, str], *, executable: bool = False) -> Digest:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            path.symlink_to(text[2:])
        else:
            path.write_text(text)
            path.chmod(0o755 if executable and name == "mode.sh" else 0o644)
    (folder / "empty").mkdir(exist_ok=True)
    return store.ingest(folder, adopt=True)


def content(folder: Path) -> Places:
    """What lies in a folder; ``None`` for a folder."""
    found: Places = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"->{os.readlink(path)}"  # noqa: PTH115
        else:
            found[name] = None if path.is_dir() else path.read_text()
    return found


def times(folder: Path) -> dict[str, int]:
    return {p.relative_to(folder).as_posix(): p.lstat().st_mtime_ns for p in folder.rglob("*") if not p.is_dir()}


class Kept:
    """A folder with a build's products, in the state of the first tree, over and over again."""

    def __init__(self, store: Store, root: Path) -> None:
        self.store, self.root = store, root
        self.first = put(store, root / "1", FIRST)
        self.second = put(store, root / "2", SECOND, executable=True)
        self.third = put(store, root / "3", THIRD)
        self.folder = store.workspaces / "one" / "source"
        self.folder.parent.mkdir()

    def begin(self) -> dict[str, int]:
        """As after a build of the first tree, some time ago: the times of all files."""
        shutil.rmtree(self.folder.parent)
        self.folder.parent.mkdir()
        self.lay(self.first)
        listing = msgspec.json.decode(listing_of(self.folder).read_bytes())
        for name in listing["stamps"]:
            os.utime(self.folder / name, ns=(LAID, LAID), follow_symlinks=False)
            listing["stamps"][name][0] = LAID
        listing_of(self.folder).write_bytes(msgspec.json.encode(listing))
        for name, text in MADE.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            os.utime(path, ns=(BUILT, BUILT))
        return times(self.folder)

    def lay(self, digest: Digest) -> None:
        lay_out(self.store, digest, self.folder, scratch=self.store.work / "changed")

    def second_laid(self) -> None:
        self.lay(self.second)

    def expected(self, files: dict[str, str]) -> Places:
        """All files of a tree, and what the build made where the tree has no file in its place."""
        found: Places = {"empty": None, **MADE, **files}
        for name in list(found):
            for parent in itertools.accumulate(name.split("/")[:-1], lambda one, two: f"{one}/{two}"):
                found[parent] = None
        return dict(sorted(found.items()))


def edited(files: dict[str, str], *, executable: bool) -> set[str]:
    """Files that a build tool must see as new or edited, after the first tree."""
    return {name for name, text in files.items() if FIRST.get(name) != text or (executable and name == "mode.sh")}


@pytest.mark.parametrize("error", [0, errno.ENOSPC])
def test_each_single_kill_and_full_disk_is_repaired_and_costs_nothing(error: int, store: Store, tmp_path: Path) -> None:
    sweep(store, tmp_path, store.workspaces, error)


@pytest.mark.proof
@pytest.mark.parametrize("error", [0, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.EACCES])
def test_each_single_kill_and_error_anywhere_in_the_store(error: int, store: Store, tmp_path: Path) -> None:
    sweep(store, tmp_path, store.root, error)


def sweep(store: Store, tmp_path: Path, below: Path, error: int) -> None:
    """Stop the laying out of the second tree at each operation; whatever tree is wanted then, it comes out right."""
    kept = Kept(store, tmp_path)
    kept.begin()
    kept.second_laid()  # from now on the store has the listing of what differs
    operations = 0
    while kept.begin() and ends_at(below, operations + 1, kept.second_laid) == KILLED:
        operations += 1
    assert operations > 12
    for digest, files in ((kept.first, FIRST), (kept.second, SECOND), (kept.third, THIRD)):
        for at in range(1, operations + 1):
            before = kept.begin()
            code = ends_at(below, at, kept.second_laid, error)
            there = holds(store, kept.second, kept.folder)
            assert there or code == (1 if error else KILLED)
            assert not there or content(kept.folder) == kept.expected(SECOND)
            assert {name: times(kept.folder)[name] for name in MADE} == dict.fromkeys(MADE, BUILT)
            kept.lay(digest)
            after = times(kept.folder)
            assert content(kept.folder) == kept.expected(files), at
            assert {name: after[name] for name in MADE} == dict.fromkeys(MADE, BUILT)
            assert holds(store, digest, kept.folder)
            assert sorted(path.name for path in kept.folder.parent.iterdir()) == ["source", "source.json"]
            if not there or files is SECOND:
                fresh = {path for path in files if after[path] != before.get(path)}
                assert fresh == edited(files, executable=files is SECOND), at
                assert all(after[path] > BUILT for path in fresh)


def test_what_a_build_edited_is_new_again_even_after_a_kill(store: Store, tmp_path: Path) -> None:
    """Its time may not come back: what was compiled since was compiled of something else."""
    kept = Kept(store, tmp_path)
    for at in itertools.count(1):
        kept.begin()
        (kept.folder / "same.cpp").write_text("edited by the build")
        (kept.folder / "edited.h").unlink()
        code = ends_at(store.workspaces, at, kept.second_laid)
        kept.lay(kept.first)
        after = times(kept.folder)
        assert content(kept.folder) == kept.expected(FIRST)
        assert min(after["same.cpp"], after["edited.h"]) > BUILT
        if code == 0:
            break


def test_an_error_says_what_and_what_to_do(store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = Kept(store, tmp_path)
    for number, words in (
        (errno.ENOSPC, ("no space left on", "free")),
        (errno.EIO, ("Input/output error: ", "dmesg")),
        (errno.EMFILE, ("Too many open files: ", "ulimit -n")),
    ):
        kept.begin()
        assert ends_at(store.root, 8, kept.second_laid, number) == 1
        said = capfd.readouterr().err
        assert said.startswith("StoreError: ")
        assert all(word in said for word in words), said


def test_what_a_build_put_in_the_place_of_a_folder_is_not_followed(store: Store, tmp_path: Path) -> None:
    kept = Kept(store, tmp_path)
    kept.begin()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "gone.cpp").write_text("not ours")
    shutil.rmtree(kept.folder / "old")
    (kept.folder / "old").symlink_to(outside)
    kept.lay(kept.second)
    assert (outside / "gone.cpp").read_text() == "not ours"
    kept.lay(kept.first)
    assert (outside / "gone.cpp").read_text() == "not ours"
    assert not (kept.folder / "old").is_symlink()
    assert (kept.folder / "old" / "gone.cpp").read_text() == "gone"
