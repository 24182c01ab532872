"""Is this machine the image? Package databases, listings and tools, compared without a machine."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest

from axletree.check.rules.image_proof import UNPROVED, proof_findings
from axletree.core.records import ActionCode, Ingredients, StageRecord
from axletree.core.values import Digest, Key, StageId
from axletree.package.image.inventory import NO_INVENTORY, collapsed, doubts, fitting
from axletree.package.image.packages import apk_packages, dpkg_packages, rpm_packages
from axletree.recipe.image_locks import LockedDeb, LockedImage, LockedInventory, parse_image_lock, render_image_lock

A, B = "a" * 64, "b" * 64
KNOWN = LockedInventory(
    database="dpkg",
    packages=("g++ 12.2.0-3 amd64", "libc6 2.36-9 amd64", "libx 1 amd64", "libx 1 i386"),
    files={"/usr/local/lib/liba.so": "file 10", "/usr/local/man": "-> share/man", "/opt/tool": "program 5"},
    tools={"c++": A, "swig": ""},
)


def found(**changes: Any) -> LockedInventory:
    return msgspec.structs.replace(KNOWN, **changes)


def with_packages(*changed: str, without: str = "") -> LockedInventory:
    names = {line.split()[0] for line in changed}
    kept = [line for line in KNOWN.packages if line.split()[0] not in {*names, without}]
    return found(packages=(*kept, *changed))


def test_the_same_is_proved() -> None:
    assert doubts(KNOWN, KNOWN, tools=["c++", "swig"]) == ()


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (with_packages("libfoo-dev 1.2 all"), "1 additional package: libfoo-dev 1.2"),
        (with_packages(without="libc6"), "1 missing package: libc6 2.36-9"),
        (with_packages("libc6 2.36-10 amd64"), "1 package has a different version: libc6 2.36-10 instead of 2.36-9"),
        (with_packages("libx 1 amd64"), "1 missing package: libx:i386 1"),
        (
            with_packages("libc6 2.36-9 amd64 (half-configured)"),
            "1 package has a different version: libc6 2.36-9 (half-configured) instead of 2.36-9",
        ),
        (found(database=None, packages=()), "the packages here are not known: dpkg has no database that can be read"),
        (found(database="rpm"), "the packages here are those of rpm, and the image has those of dpkg"),
        (found(files={**KNOWN.files, "/opt/b": "file 1"}), "1 additional file: /opt/b"),
        (found(files={**KNOWN.files, "/opt/tool": "program 6"}), "1 file differs: /opt/tool"),
        (found(files={**KNOWN.files, "/usr/local/man": "-> /x"}), "1 file differs: /usr/local/man"),
        (found(files={}), "3 missing files: /usr/local/lib/liba.so, /usr/local/man, /opt/tool"),
        (found(tools={"c++": B, "swig": ""}), "1 program differs: c++"),
        (found(tools={"c++": A, "swig": B}), "1 additional program: swig"),
        (found(tools={"c++": A, "swig": "", "cmake": B}), "1 additional program: cmake"),
        (found(tools={"c++": "", "swig": ""}), "1 missing program: c++"),
    ],
)
def test_each_difference_is_named(now: LockedInventory, said: str) -> None:
    assert doubts(KNOWN, now, tools=["c++"]) == (said,)


@pytest.mark.parametrize(
    ("locked", "said"),
    [
        (None, NO_INVENTORY),
        (found(database=None, packages=()), "the packages of the image are not known"),
        (found(tools={"swig": ""}), "the inventory in the lock lacks c++: lock the recipe again"),
    ],
)
def test_what_is_not_known_is_not_proved(locked: LockedInventory | None, said: str) -> None:
    (first, *_) = doubts(locked, KNOWN, tools=["c++"])
    assert first.startswith(said)


def test_many_files_are_listed_by_their_folders_and_a_change_in_one_is_noticed() -> None:
    files = {f"/opt/python/cp{version}/lib/module{number}.py": "file 3" for version in "123" for number in range(99)}
    files["/usr/local/bin/x"] = "program 1"
    listed, depth = fitting(files, most=100)
    assert len(listed) == 4
    assert depth is not None
    locked = found(files=listed, depth=depth)
    assert doubts(locked, found(files=files)) == ()
    other = {**files, "/opt/python/cp2/lib/module7.py": "file 4"}
    assert doubts(locked, found(files=other)) == ("1 file differs: /opt/python/cp2/lib",)


def test_few_files_have_a_line_each() -> None:
    assert fitting({"/opt/b": "file 1", "/opt/a": "file 2"}) == ({"/opt/a": "file 2", "/opt/b": "file 1"}, None)
    assert collapsed({"/opt/a/b/c": "file 1"}, 4) == {"/opt/a/b/c": "file 1"}


DPKG = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9
Description: x
 Package: not-a-package

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1

Package: broken
Status: install ok half-configured
Architecture: all
Version: 2
"""


def test_dpkg_knows_what_is_installed() -> None:
    assert dpkg_packages(DPKG) == ("broken 2 all (half-configured)", "libc6 2.36-9 amd64")
    assert dpkg_packages("") == ()


def test_apk_knows_what_is_installed() -> None:
    text = "C:Q1\nP:musl\nV:1.2.5-r0\nA:x86_64\nF:lib\n\nP:busybox\nV:1.36\nA:x86_64\n\n"
    assert apk_packages(text) == ("busybox 1.36 x86_64", "musl 1.2.5-r0 x86_64")


def header(values: dict[int, str], *, epoch: int | None = None) -> bytes:
    """An RPM header."""
    data, entries = b"", b""
    for tag, value in values.items():
        entries += struct.pack(">4I", tag, 6, len(data), 1)
        data += value.encode() + b"\0"
    if epoch is not None:
        entries += struct.pack(">4I", 1003, 4, len(data), 1)
        data += struct.pack(">I", epoch)
    return struct.pack(">2I", len(values) + (epoch is not None), len(data)) + entries + data


RPM = {1000: "gcc", 1001: "14.2", 1002: "3.el10", 1022: "x86_64", 1004: "summary"}


def test_rpm_knows_what_is_installed() -> None:
    assert rpm_packages([header(RPM), header({**RPM, 1000: "vim"}, epoch=2)]) == (
        "gcc 14.2-3.el10 x86_64",
        "vim 2:14.2-3.el10 x86_64",
    )


@pytest.mark.parametrize("cut", [0, 4, 7, 20, 60, -1])
def test_a_damaged_header_is_no_package(cut: int) -> None:
    with pytest.raises(ValueError, match="header"):
        rpm_packages([header(RPM)[:cut]])


def locked(inventory: LockedInventory) -> LockedImage:
    deb = LockedDeb(name="libc6", version="2.36-9", architecture="amd64", sha256=A)
    image = LockedImage(
        name="x", kind="debian", reference="debian x", id=A, platform="linux/amd64", layers=(A,), debs=(deb,)
    )
    return image.with_inventory(inventory)


def test_a_lock_does_not_list_the_packages_of_a_debian_image_twice() -> None:
    same = locked(found(packages=("libc6 2.36-9 amd64",)))
    assert same.inventory is not None
    assert same.inventory.packages == ()
    assert same.known_inventory == found(packages=("libc6 2.36-9 amd64",))
    more = locked(KNOWN)
    assert more.inventory == KNOWN
    for each in (same, more):
        assert parse_image_lock(render_image_lock([each]), file="x") == {"x": each}


def test_a_result_without_proof_says_so_and_one_with_it_says_nothing() -> None:
    (finding,) = proof_findings("bookworm", ("1 missing package: a 1", "1 missing file: /opt/x"))
    assert (finding.rule, finding.severity) == (UNPROVED, "warning")
    assert "1 missing package: a 1; and 1 more difference" in finding.message
    assert proof_findings("bookworm", ()) == ()


def test_records_of_earlier_versions_are_read() -> None:
    record = StageRecord(
        stage=StageId("x"),
        key=Key(A),
        tree=Digest(A),
        ingredients=Ingredients(action=ActionCode(name="run", revision=1), parameters={}),
    )
    data = msgspec.to_builtins(record)
    del data["unproved"]
    assert msgspec.convert(data, StageRecord) == record
