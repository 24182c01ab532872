"""Inventories taken of real roots: nothing in them is started, and no link leads out."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import struct
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from axletree.host.image.inventory import take_inventory
from axletree.host.run import output_of
from axletree.package.image.inventory import doubts

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.recipe.image_locks import LockedInventory

STATUS = "Package: {}\nStatus: install ok installed\nArchitecture: all\nVersion: 1\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small root with a compiler behind links, as Debian has it."""
    files = {
        "var/lib/dpkg/status": STATUS.format("libc6"),
        "usr/bin/x86_64-linux-gnu-g++-12": "compiler",
        "usr/lib/gcc/x86_64-linux-gnu/12/cc1plus": "real compiler",
        "usr/local/bin/tool": "tool",
        "usr/local/lib/python3.11/__pycache__/x.cpython-311.pyc": "bytecode",
        "opt/own/include/a b.h": "header",
        "etc/hosts": "noise",
    }
    for name, text in files.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    top = tmp_path / "root"
    (top / "usr/local/bin/tool").chmod(0o755)
    (top / "etc/alternatives").mkdir()
    (top / "usr/bin/c++").symlink_to("/etc/alternatives/c++")
    (top / "etc/alternatives/c++").symlink_to("/usr/bin/x86_64-linux-gnu-g++-12")
    (top / "usr/local/man").symlink_to("share/man")
    (top / "opt/out").symlink_to("/etc")
    return top


def taken(root: Path, *, tools: tuple[str, ...] = ("c++",)) -> LockedInventory:
    return take_inventory(root, variables={"PATH": "/usr/local/bin:/usr/bin"}, tools=tools, whole=True)


def test_packages_files_and_programs_are_in_it(root: Path) -> None:
    found = taken(root, tools=("c++", "swig"))
    assert (found.database, found.packages) == ("dpkg", ("libc6 1 all",))
    assert found.files == {
        "/opt/out": "-> /etc",
        "/opt/own/include/a b.h": "file 6",
        "/usr/local/bin/tool": "program 4",
        "/usr/local/man": "-> share/man",
    }
    assert found.tools == {
        "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus": hashlib.sha256(b"real compiler").hexdigest(),
        "c++": hashlib.sha256(b"compiler").hexdigest(),
        "swig": "",
    }


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("var/lib/dpkg/status", STATUS.format("libc6") + "\n" + STATUS.format("libfoo-dev"), "libfoo-dev 1"),
        ("usr/local/include/extra.h", "x", "1 additional file: /usr/local/include/extra.h"),
        ("usr/bin/x86_64-linux-gnu-g++-12", "another", "1 program differs: c++"),
        ("usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", "another one.", "cc1plus"),
        ("var/lib/dpkg/status", "", "the packages here are not known"),
    ],
)
def test_what_is_changed_is_noticed(root: Path, path: str, text: str, said: str) -> None:
    before = taken(root)
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    (reason,) = doubts(before, taken(root), tools=["c++"])
    assert said in reason


def test_what_every_container_has_of_its_own_does_not_count(root: Path) -> None:
    before = taken(root)
    for name in ("etc/hosts", "etc/resolv.conf", "tmp/x", "usr/local/lib/python3.11/__pycache__/y.cpython-311.pyc"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("other")
    assert doubts(before, taken(root), tools=["c++"]) == ()


def header(name: str) -> bytes:
    entries, data = b"", b""
    for tag, value in {1000: name, 1001: "1", 1002: "2", 1022: "x86_64"}.items():
        entries += struct.pack(">4I", tag, 6, len(data), 1)
        data += value.encode() + b"\0"
    return struct.pack(">2I", 4, len(data)) + entries + data


def test_a_database_of_rpm_is_read_without_rpm(root: Path) -> None:
    (root / "var/lib/dpkg/status").unlink()
    folder = root / "usr/lib/sysimage/rpm"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "rpmdb.sqlite")) as database:
        database.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
        database.execute("INSERT INTO Packages (blob) VALUES (?)", (header("gcc"),))
        database.commit()
    found = taken(root)
    assert (found.database, found.packages) == ("rpm", ("gcc 1-2 x86_64",))


def test_a_database_that_only_rpm_can_read_is_compared_as_a_whole(root: Path) -> None:
    (root / "var/lib/dpkg/status").unlink()
    path = root / "var/lib/rpm/Packages"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"one")
    before = taken(root)
    assert before.database == "rpm"
    assert doubts(before, taken(root)) == ()
    path.write_bytes(b"two")
    (reason,) = doubts(before, taken(root))
    assert "1 package has a different version: /var/lib/rpm/Packages" in reason


def test_a_damaged_database_proves_nothing_by_itself(root: Path) -> None:
    (root / "var/lib/dpkg/status").unlink()
    path = root / "var/lib/rpm/rpmdb.sqlite"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database")
    (line,) = taken(root).packages
    assert line.startswith("/var/lib/rpm/rpmdb.sqlite sha256:")


def test_a_root_without_any_database_is_not_known(root: Path) -> None:
    shutil.rmtree(root / "var")
    found = taken(root)
    assert found.database is None
    (reason, *_) = doubts(found, found)
    assert "not known" in reason


def test_dpkg_agrees_on_this_machine() -> None:
    if shutil.which("dpkg-query") is None:
        pytest.skip("needs dpkg")
    form = "${Package} ${Version} ${Architecture} ${db:Status-Status}\n"
    listed = output_of(["dpkg-query", "-W", "-f", form], environ={"PATH": "/usr/bin:/bin"}, seconds=60)
    installed = {line.removesuffix(" installed") for line in listed.splitlines() if line.endswith(" installed")}
    from pathlib import Path

    found = take_inventory(Path("/"), variables={}, whole=True)
    assert {line for line in found.packages if not line.endswith(")")} == installed
