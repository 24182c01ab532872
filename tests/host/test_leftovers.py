"""What killed processes were writing goes with the next one that writes there; what living ones write stays."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from axletree.app.index_root import staging
from axletree.app.publish import check_writable
from axletree.binary.edits import Put
from axletree.core.trees import Entry, make_tree
from axletree.disk import PART, part_file, part_folder, remove_leftovers
from axletree.execute import variables
from axletree.host import fetch
from axletree.host.archive import write_zip_file
from axletree.host.edit import apply_edits
from axletree.host.facts.access import own_folder
from axletree.host.facts.memory import _make_group
from axletree.host.files import appearing, replace_file
from axletree.host.sdk.layout import lay_out
from axletree.host.wheels import open_wheel, unpack_as_it_is
from axletree.package.sdk.entries import SdkEntry
from axletree.package.wheel.writer import Member
from axletree.store.store import Store
from axletree_runtime._part import replace_text
from support.wheels import wheel_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HEX = "0123456789abcdef"


def plant(folder: Path, name: str) -> list[Path]:
    """What a process leaves in a folder that was killed: a file, and a folder with its owner's file."""
    file, owner = folder / f".{name}.{HEX}{PART}", folder / f".{name}.{HEX[::-1]}{PART}"
    inner = folder / f"{owner.name}.d" / "inner"
    inner.mkdir(parents=True)
    (inner / "half").write_bytes(b"half")
    inner.chmod(0o555)
    file.write_bytes(b"half")
    owner.touch()
    return [file, owner, inner.parent]


def users(folder: Path) -> list[Path]:
    """A user's files of names that come close."""
    names = (f".notes{PART}", f"x.{HEX}{PART}", f".x.{HEX}{PART}.txt", f".x.{HEX[:8]}{PART}", f".x.{HEX}{PART}.d")
    paths = [folder / name for name in (*names, ".x.part", "x.tmp")]
    for path in paths:
        path.write_bytes(b"mine")
    link = folder / f".link.{HEX}{PART}"
    link.symlink_to(paths[0])
    return [*paths, link]


@contextmanager
def lives(path: Path) -> Iterator[list[Path]]:
    """What a living process writes beside a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with part_file(path) as file, part_folder(path) as folder:
        (folder / "inner").mkdir()
        yield [file, folder, folder / "inner"]


def _wheel(folder: Path) -> Path:
    path = folder / "in" / "demo-1.0-py3-none-any.whl"
    path.parent.mkdir()
    path.write_bytes(wheel_bytes({"demo.py": b"pass"}))
    return path


def _edit(target: Path, tmp_path: Path) -> None:
    target.write_bytes(b"x" * 99)
    (target.parent / "other").hardlink_to(target)  # so it is not written to in place
    apply_edits(target, [Put(0, b"abc")])


def _appear(target: Path, tmp_path: Path) -> None:
    with appearing(target) as temporary:
        temporary.write_bytes(b"x")


def _lay_out(target: Path, tmp_path: Path) -> None:
    entry = SdkEntry(
        path="lib/x", artifact="a", component="lib", target="generic", kind="file", source=__file__, size=1
    )
    lay_out([entry], target)


def _materialise(target: Path, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    tree = make_tree([Entry(path="x", blob=store.put_bytes(b"x"), size=1)])
    store.materialise(store.put_tree(tree), target)


def _put(target: Path, tmp_path: Path) -> None:
    """A download whose partial file lies on another disk."""
    partial = tmp_path / "x.partial"
    partial.write_bytes(b"x")
    with pytest.MonkeyPatch.context() as patch:
        real = type(partial).replace

        def replace(self: Path, other: Path) -> Path:
            if self == partial:
                raise OSError(errno.EXDEV, "another disk")
            return real(self, other)

        patch.setattr(type(partial), "replace", replace)
        fetch._put(partial, target)


def _links(target: Path, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    tools = store.cache / "tools"
    tools.parent.mkdir(exist_ok=True)
    tools.symlink_to(target.parent)
    variables._links(store, {"c++": "/usr/bin/c++"})


def _unpack(target: Path, tmp_path: Path) -> None:
    unpack_as_it_is(open_wheel(_wheel(tmp_path)), target)


def _stage(target: Path, tmp_path: Path) -> None:
    with staging(target.parent):
        pass


def _probe(target: Path, tmp_path: Path) -> None:
    with own_folder(target.parent):
        pass


MAKERS: dict[str, Callable[[Path, Path], object]] = {
    "a file": lambda target, _: replace_file(target, b"x"),
    "a file of the runtime": lambda target, _: replace_text(target, "x"),
    "what appears": _appear,
    "an archive": lambda target, _: write_zip_file(target, [Member(path="x", data=b"x")]),
    "an edited file": _edit,
    "an unpacked wheel": _unpack,
    "artifacts": _lay_out,
    "a tree of the store": _materialise,
    "a download": _put,
    "links to tools": _links,
    "a probe": _probe,
    "an index root": _stage,
    "an output folder": lambda target, _: check_writable(target.parent),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_each_place_is_cleaned_by_who_writes_there_next(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "place" / "result"
    with lives(target) as living:
        file, *folder = plant(target.parent, "result")
        mine = users(target.parent)
        MAKERS[kind](target, tmp_path)
        assert not file.exists()
        # The runtime makes no folders, and leaves those of others to them.
        assert [path.exists() for path in folder] == [kind == "a file of the runtime"] * 2
        assert all(path.exists() for path in living)
        assert all(os.path.lexists(path) for path in mine)
    assert not any(path.exists() for path in living)


def test_an_output_folder_is_cleaned_all_the_way_down(tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "dist", tmp_path / "elsewhere"
    places = ["", "logs", "torch2.13-cpu", "torch2.13-cpu/simple/demo", "torch2.13-cpu/conda/noarch", "a/b/c/d"]
    for place in (*places, ".git"):
        (out / place).mkdir(parents=True, exist_ok=True)
    elsewhere.mkdir()
    (out / "link").symlink_to(elsewhere)
    left = [path for place in places for path in plant(out / place, "x")]
    others = [*plant(out / ".git", "x"), *plant(elsewhere, "x")]
    with lives(out / "logs" / "py311.log") as living:
        check_writable(out)
        assert all(path.exists() for path in (*living, *others))
    assert not any(path.exists() for path in left)


KILLED = """
import os, signal, sys
from pathlib import Path
from axletree.disk import part_file, part_folder
place = Path(sys.argv[1])
with part_file(place / "x") as file, part_folder(place / "y") as folder:
    file.write_bytes(b"half")
    (folder / "half").write_bytes(b"half")
    print("made", flush=True)
    sys.stdin.read()
"""


def test_a_process_holds_what_it_makes_until_it_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        made = set(tmp_path.rglob("*"))
        assert len(made) == 4
        remove_leftovers(tmp_path)
        assert set(tmp_path.rglob("*")) == made
        process.kill()
    assert set(tmp_path.rglob("*")) == made
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_locks_all_stays_and_writing_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    left = plant(tmp_path, "x")
    monkeypatch.setattr(fcntl, "flock", flock)
    replace_file(tmp_path / "x", b"x")
    with part_folder(tmp_path / "y") as folder:
        (folder / "z").touch()
    assert (tmp_path / "x").read_bytes() == b"x"
    assert all(path.exists() for path in left)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_very_long_name(tmp_path: Path) -> None:
    for letter in ("x", "\N{SNOWMAN}"):
        name = letter * (255 // len(letter.encode()))
        plant(tmp_path, name[:60])
        replace_file(tmp_path / name, b"x")
        assert [path.name for path in tmp_path.iterdir()] == [name]
        (tmp_path / name).unlink()


def test_groups_that_a_killed_probe_made(tmp_path: Path) -> None:
    """A control group is a folder, and that is what is locked: it holds no files of ours."""
    (tmp_path / "axletree-probe-01234567").mkdir()
    (tmp_path / "axletree-probes").mkdir()
    group, held = _make_group(tmp_path)
    other, also_held = _make_group(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {group.name, other.name, "axletree-probes"}
    os.close(held)
    os.close(also_held)
