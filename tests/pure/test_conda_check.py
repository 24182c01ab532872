"""What the checks of existing conda packages find, and that they are silent otherwise."""

import bz2
import io
import json
import tarfile
import zipfile
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError
from axletree.package.conda.check import check_conda, check_siblings, clobbers
from axletree.package.conda.info import PathEntry
from axletree.package.conda.model import CondaFile, RunExports
from axletree.package.conda.names import pin_exact
from axletree.package.conda.reader import CondaFacts, CondaMember, scan_conda
from support.conda import PREFIX, conda_bytes, demo, scanned, text, unpacked

FILES = [text("lib/a", b"12"), CondaFile(path="lib/b", link="a"), text("etc/c", PREFIX.encode())]
NAME = "demo-1.0-h1234567_0.conda"
DATA = conda_bytes(demo(placeholder=PREFIX), FILES)
SOUND = scan_conda(DATA, filename=NAME)


def kinds(facts: CondaFacts) -> list[tuple[str, str]]:
    return [(issue.kind, issue.path) for issue in check_conda(facts)]


def with_path(path: str, /, **changes: object) -> CondaFacts:
    """The sound package, with another line in ``paths.json``."""
    lines = SOUND.paths or ()
    return msgspec.structs.replace(
        SOUND, paths=tuple(msgspec.structs.replace(line, **changes) if line.path == path else line for line in lines)
    )


def with_member(member: CondaMember) -> CondaFacts:
    line = PathEntry(path=member.path, path_type="softlink" if member.kind == "link" else "hardlink")
    return msgspec.structs.replace(
        SOUND, members=(*SOUND.members, member), paths=(*(SOUND.paths or ()), line), files=None
    )


def test_a_sound_package_has_no_issue() -> None:
    assert check_conda(SOUND) == ()
    assert {member.path: member.prefix for member in SOUND.members}["etc/c"] == "text"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (with_path("lib/a", size_in_bytes=3), [("size", "lib/a")]),
        (with_path("lib/a", sha256="0" * 64), [("hash", "lib/a")]),
        (with_path("lib/a", path_type="softlink"), [("type", "lib/a")]),
        (
            with_path("lib/a", path="lib/x"),
            [("missing", "lib/x"), ("extra", "lib/a"), ("files", "lib/a"), ("files", "lib/x")],
        ),
        (with_path("etc/c", prefix_placeholder=None, file_mode=None), [("prefix", "etc/c")]),
        (with_path("lib/a", prefix_placeholder=PREFIX, file_mode="text"), [("prefix", "lib/a")]),
        (with_member(CondaMember(path="../x", kind="file", size=0)), [("unsafe", "../x"), ("unsafe", "../x")]),
        (with_member(CondaMember(path="l", kind="link", size=0, target="/etc")), [("link", "l")]),
        (with_member(CondaMember(path="lib/b/x", kind="file", size=0)), [("unsafe", "lib/b/x")]),
        (with_member(CondaMember(path="h", kind="hardlink", size=0, target="no")), [("link", "h")]),
        (
            with_member(CondaMember(path="lib/python3.11/__pycache__/a.cpython-39.pyc", kind="file", size=0)),
            [("pyc", "lib/python3.11/__pycache__/a.cpython-39.pyc")],
        ),
        (msgspec.structs.replace(SOUND, name="other"), [("name", "name")]),
        (msgspec.structs.replace(SOUND, paths=None), [("unreadable", "")]),
        (msgspec.structs.replace(SOUND, files=("lib/a",)), [("files", "etc/c"), ("files", "lib/b")]),
    ],
)
def test_what_does_not_hold_is_named(facts: CondaFacts, expected: list[tuple[str, str]]) -> None:
    assert kinds(facts) == expected


def test_paths_that_differ_in_case_only() -> None:
    files = [text("Lib/a"), text("lib/A")]
    assert check_conda(scanned(demo(), files)) == ()
    found = check_conda(scanned(demo(subdir="osx-arm64"), files))
    assert [(issue.kind, issue.path) for issue in found] == [("case", "lib/A")]


def test_packages_that_hold_the_same_path() -> None:
    one = scanned(demo(), [text("include/pybind11.h"), text("lib/python3.11/site-packages/a.py"), text("x/y")])
    two = scanned(
        demo(name="other", subdir="noarch", noarch="python"), [text("site-packages/a.py"), text("python-scripts/t")]
    )
    three = scanned(demo(name="third"), [text("include/pybind11.h"), text("bin/t"), text("x")])
    found = clobbers([one, two, three])
    assert [issue.path for issue in found] == ["bin/t", "include/pybind11.h", "site-packages/a.py", "x"]
    assert found[-1].detail == f"the path is a folder in another package: {one.filename}"
    assert clobbers([one]) == ()


def siblings(depends: str, *, back: tuple[str, ...], exports: bool = True) -> list[str]:
    lib = demo(name="libdemo", constrains=back, run_exports=RunExports(weak=("libdemo >=1.0,<1.1.0a0",)))
    own = RunExports(weak=("demo >=1.0", "libdemo >=1.0,<1.1.0a0")) if exports else RunExports(weak=("demo >=1.0",))
    user = demo(depends=(depends,), run_exports=own)
    meta = demo(name="demo-gpu", depends=(pin_exact(user),))
    packages = [scanned(lib, [text("lib/l")]), scanned(user, [text("lib/d")]), scanned(meta, [])]
    return [issue.kind for issue in check_siblings(packages)]


def test_siblings_hold_each_other() -> None:
    exact = "libdemo 1.0 h1234567_0"
    assert siblings(exact, back=("demo 1.0 h1234567_0",)) == []
    assert siblings("libdemo >=1.0", back=("demo 1.0.* *",)) == ["pin"]
    assert siblings(exact, back=()) == ["pin"]
    assert siblings(exact, back=("demo 1.0",), exports=False) == ["run-exports"]


def old_package(change: Callable[[dict[str, bytes]], object] = lambda files: None) -> bytes:
    """A ``.tar.bz2`` as conda-build made them, with a hard link in it."""
    info = {
        "info/index.json": json.dumps(
            {"name": "demo", "version": "1.0", "build": "0", "build_number": 0, "depends": []}
        ),
        "info/files": "lib/a\nlib/h\n",
        "info/paths.json": json.dumps(
            {
                "paths": [{"_path": f"lib/{name}", "path_type": "hardlink", "size_in_bytes": 2} for name in "ah"],
                "paths_version": 1,
            }
        ),
    }
    files = {name: content.encode() for name, content in info.items()}
    change(files)
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in [("lib/a", b"12"), *files.items()]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("lib/h")
        link.type, link.linkname = tarfile.LNKTYPE, "lib/a"
        tar.addfile(link)
    return bz2.compress(sink.getvalue())


def test_the_old_format_is_read() -> None:
    facts = scan_conda(old_package(), filename="demo-1.0-0.tar.bz2")
    assert check_conda(facts) == ()
    assert [(member.path, member.kind) for member in facts.members] == [("lib/a", "file"), ("lib/h", "hardlink")]


def test_damaged_metadata_is_a_fact() -> None:
    facts = scan_conda(
        old_package(lambda files: files.update({"info/index.json": b"{"})), filename="demo-1.0-0.tar.bz2"
    )
    assert [issue.kind for issue in check_conda(facts)] == ["unreadable"]
    facts = scan_conda(old_package(lambda files: files.pop("info/index.json")), filename="demo-1.0-0.tar.bz2")
    assert "info/index.json is missing" in facts.unreadable


def repacked(change: Callable[[dict[str, bytes]], object], method: int = zipfile.ZIP_STORED) -> bytes:
    with zipfile.ZipFile(io.BytesIO(DATA)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return sink.getvalue()


PKG = "pkg-demo-1.0-h1234567_0.tar.zst"
DAMAGED = {
    "no zip": b"PK",
    "empty": b"",
    "cut": DATA[:-30],
    "another member": repacked(lambda members: members.update(other=b"")),
    "no readable info": repacked(lambda members: members.pop(PKG.replace("pkg", "info"))),
    "version 3": repacked(lambda members: members.update({"metadata.json": b'{"conda_pkg_format_version": 3}'})),
    "metadata": repacked(lambda members: members.update({"metadata.json": b"[]"})),
    "deflated": repacked(lambda members: None, zipfile.ZIP_DEFLATED),
    "frame cut": repacked(lambda members: members.update({PKG: members[PKG][:-40]})),
    "frame damaged": repacked(lambda members: members.update({PKG: members[PKG][:30] + b"xxxx" + members[PKG][34:]})),
    "no frame": repacked(lambda members: members.update({PKG: b"x" * 100})),
    "not compressed": repacked(lambda members: members.update({PKG: unpacked(members[PKG])})),
    "more after the frame": repacked(lambda members: members.update({PKG: members[PKG] + b"hidden"})),
    "second frame": repacked(lambda members: members.update({PKG: members[PKG] * 2})),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_archives_are_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError, match=r"demo-1\.0"):
        scan_conda(data, filename=NAME)


def test_a_later_format_is_told_with_the_version_that_is_read() -> None:
    message = "metadata.json: unsupported archive: conda_pkg_format_version is 3, but only version 2 is supported"
    with pytest.raises(IntegrityError, match=message):
        scan_conda(DAMAGED["version 3"], filename=NAME)


@pytest.mark.parametrize("data", [b"", b"BZh9", old_package()[:-20], old_package() + b"x", b"x" * 50])
def test_damaged_old_archives_are_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        scan_conda(data, filename="demo-1.0-0.tar.bz2")


@given(st.integers(0, len(DATA) - 1), st.binary(min_size=1, max_size=8))
def test_any_damage_gives_an_answer(at: int, new: bytes) -> None:
    data = DATA[:at] + new + DATA[at + len(new) :]
    try:
        facts = scan_conda(data, filename=NAME)
    except IntegrityError:
        return
    assert {member.path for member in facts.members} == {file.path for file in FILES}
