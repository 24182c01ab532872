"""Debian packages and install prefixes as the files of an SDK."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import HostError, IntegrityError
from axletree.host.sdk.prefix import read_debs, read_prefix
from axletree.package.sdk.manifest import Debs
from support.artifacts import content_of, special
from support.inputs import debian_archives

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

REAL = ("hipcc", "rocminfo", "libhsa-runtime64-1", "libhsa-runtime-dev", "librocm-smi64-1", "rocm-cmake", "libhsakmt1")
DEBS = Debs(
    artifacts={"hipcc": "core-hip", "libhsa*": "core-runtime", "roc*": "base", "lib*": "smi"},
    components={"doc": ("share/man/**", "share/lintian/**")},
)
ANY = Debs(artifacts={"*": "base"})


def make_deb(
    place: Path,
    package: str,
    files: Sequence[tarfile.TarInfo | tuple[str, bytes]],
    *,
    architecture: str = "amd64",
    compress: str = "xz",
) -> Path:
    """A package of members as they are given, made without dpkg."""
    control = f"Package: {package}\nVersion: 1.0\nArchitecture: {architecture}\nDescription: x\n more\n"
    suffix = f".{compress}" if compress else ""
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": pack([("./control", control.encode())], "gz"),
        f"data.tar{suffix}": pack(files, compress),
    }
    data = b"!<arch>\n"
    for name, content in parts.items():
        data += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        data += content + b"\n" * (len(content) % 2)
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{package}_1.0_{architecture}.deb"
    path.write_bytes(data)
    return path


def pack(members: Sequence[tarfile.TarInfo | tuple[str, bytes]], compress: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for member in members:
            info = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(member[0])
            content = b"" if isinstance(member, tarfile.TarInfo) else member[1]
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    tool = {"xz": "xz", "zst": "zstd", "gz": "gzip", "bz2": "bzip2", "": "cat"}[compress]
    return subprocess.run(
        [tool, *(["-c"] if compress else [])], input=buffer.getvalue(), check=True, capture_output=True
    ).stdout


def test_real_packages_are_what_dpkg_makes_of_them(tmp_path: Path) -> None:
    debs = debian_archives("sdk-inputs", "bookworm", REAL)
    root = tmp_path / "root"
    for deb in sorted(debs.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
    notes: list[str] = []
    entries = read_debs(debs, DEBS, cache=tmp_path / "cache", note=notes.append, threads=2)
    expected = read_prefix(root / "usr", components=DEBS.components)
    bare = {path: value[:1] + value[2:] for path, value in content_of(entries).items() if isinstance(value, tuple)}
    assert bare == {
        path: value[:1] + value[2:] for path, value in content_of(expected).items() if isinstance(value, tuple)
    }
    by = {entry.path: entry for entry in entries}
    library = next(path for path in by if path.endswith("libhsa-runtime64.so.1"))
    assert (by[library].kind, by[library].artifact, by[library].component) == ("link", "core-runtime", "lib")
    assert (by["bin/hipcc"].artifact, by["bin/hipcc"].component, by["bin/hipcc"].executable) == (
        "core-hip",
        "run",
        True,
    )
    assert by["include/hsa/hsa.h"].component == "dev"
    assert {entry.component for path, entry in by.items() if path.startswith("share/man/")} == {"doc"}
    assert {entry.target for entry in entries} == {"generic"}


def test_unpacked_trees_are_the_same_as_packages(tmp_path: Path) -> None:
    debs = debian_archives("sdk-inputs", "bookworm", REAL)
    trees = tmp_path / "trees"
    trees.mkdir()
    for deb in sorted(debs.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", deb, trees / deb.stem], check=True)
    with_control = next(trees.glob("hipcc_*"))
    subprocess.run(["dpkg-deb", "-e", next(debs.glob("hipcc_*")), with_control / "DEBIAN"], check=True)
    with_control.rename(trees / "renamed")
    cache = tmp_path / "cache"
    assert content_of(read_debs(trees, DEBS, cache=cache)) == content_of(read_debs(debs, DEBS, cache=cache))


@pytest.mark.parametrize("compress", ["xz", "zst", "gz", "bz2", ""])
def test_every_compression_of_packages(tmp_path: Path, compress: str) -> None:
    content = os.urandom(1 << 21)
    deb = make_deb(tmp_path / "debs", "liba", [("./usr/lib/liba.so", content), ("./usr/x", b"")], compress=compress)
    told = subprocess.run(["dpkg-deb", "-f", deb, "Package"], check=True, capture_output=True, text=True).stdout
    assert told == "liba\n"
    entries = read_debs(tmp_path / "debs", ANY, cache=tmp_path / "cache")
    assert [(entry.path, entry.size) for entry in entries] == [("lib/liba.so", 1 << 21), ("x", 0)]
    for size in (20, 100, deb.stat().st_size // 2, deb.stat().st_size - 1500):
        os.truncate(deb, size)
        with pytest.raises(IntegrityError, match=r"liba_1\.0"):
            read_debs(tmp_path / "debs", ANY, cache=tmp_path / "other")


def test_links_and_files_that_leave_the_prefix_are_left_out_and_noted(tmp_path: Path) -> None:
    make_deb(
        tmp_path / "debs",
        "liba",
        [
            ("./lib/udev/rules", b"merged"),
            ("./etc/a.conf", b"conf"),
            ("./usr/lib/x/liba.so.1", b"a"),
            special("./usr/lib/x/liba.so", tarfile.SYMTYPE, "/usr/lib/x/liba.so.1"),
            special("./usr/bin/deep", tarfile.SYMTYPE, "/lib/udev/rules"),
            special("./usr/bin/conf", tarfile.SYMTYPE, "/etc/a.conf"),
            special("./usr/bin/up", tarfile.SYMTYPE, "../../etc/a.conf"),
        ],
    )
    notes: list[str] = []
    entries = read_debs(tmp_path / "debs", ANY, cache=tmp_path / "cache", note=notes.append)
    assert {entry.path: entry.link for entry in entries} == {
        "bin/deep": "../lib/udev/rules",
        "lib/udev/rules": "",
        "lib/x/liba.so": "liba.so.1",
        "lib/x/liba.so.1": "",
    }
    both = "bin/conf -> /etc/a.conf, bin/up -> ../../etc/a.conf"
    assert notes == [
        "liba_1.0_amd64.deb: left out files outside usr: etc/a.conf",
        "liba_1.0_amd64.deb: left out links that lead out of the tree: " + both,
    ]


def test_another_prefix(tmp_path: Path) -> None:
    make_deb(tmp_path / "debs", "a", [("./opt/rocm-6.0/lib/a.so", b""), ("./usr/share/doc/a", b"")])
    notes: list[str] = []
    debs = Debs(artifacts={"*": "base"}, prefix="/opt/rocm-6.0/")
    entries = read_debs(tmp_path / "debs", debs, cache=tmp_path / "cache", note=notes.append)
    assert [entry.path for entry in entries] == ["lib/a.so"]
    assert notes == ["a_1.0_amd64.deb: left out files outside opt/rocm-6.0: usr/share/doc/a"]


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ([("../../evil", b"")], "leads out of the archive"),
        ([("/etc/evil", b"")], "leads out of the archive"),
        ([special("./usr/l", tarfile.SYMTYPE, "../../../../x")], "leads out of the archive"),
        ([special("./usr/d", tarfile.BLKTYPE)], "which packages cannot contain"),
        ([special("./usr/l", tarfile.SYMTYPE, "/etc"), ("./usr/l/x", b"")], "but contains other entries"),
    ],
)
def test_hostile_packages(members: list[tarfile.TarInfo | tuple[str, bytes]], told: str, tmp_path: Path) -> None:
    make_deb(tmp_path / "debs", "evil", members)
    with pytest.raises(IntegrityError, match=told):
        read_debs(tmp_path / "debs", ANY, cache=tmp_path / "cache")
    assert [place.name for place in (tmp_path / "cache").iterdir() if place.is_dir()] == []


def test_sets_that_do_not_go_together(tmp_path: Path) -> None:
    folder = tmp_path / "debs"
    make_deb(folder, "liba", [("./usr/a", b"1")])
    make_deb(folder, "libb", [("./usr/b", b"1")], architecture="arm64")
    make_deb(folder, "other", [])
    (folder / "copy").mkdir()
    make_deb(folder / "x", "liba", []).rename(folder / "liba-again.deb")
    (folder / "x").rmdir()
    (folder / "copy").rmdir()
    with pytest.raises(IntegrityError) as caught:
        read_debs(folder, Debs(artifacts={"lib?": "base"}), cache=tmp_path / "cache")
    assert [problem.message for problem in caught.value.problems] == [
        "package liba is in two files: liba-again.deb and liba_1.0_amd64.deb",
        "the manifest does not assign package other to an artifact",
        "the folder contains packages for several architectures: amd64 (liba-again.deb), arm64 (libb_1.0_arm64.deb)",
    ]
    assert '"other" = "NAME"' in str(caught.value)


def test_two_packages_with_one_path(tmp_path: Path) -> None:
    make_deb(tmp_path / "debs", "a", [("./usr/x", b"1")])
    make_deb(tmp_path / "debs", "b", [("./usr/x", b"2")])
    debs = Debs(artifacts={"a": "one", "b": "two"})
    with pytest.raises(IntegrityError, match="x: the file is in both one_run_generic and two_run_generic"):
        read_debs(tmp_path / "debs", debs, cache=tmp_path / "cache")


def test_what_is_no_package(tmp_path: Path) -> None:
    folder = tmp_path / "debs"
    folder.mkdir()
    with pytest.raises(IntegrityError, match="contains no Debian packages"):
        read_debs(folder, ANY, cache=tmp_path)
    for data in (b"", b"zip", b"!<arch>\n", b"!<arch>\n" + b"x" * 60):
        (folder / "a.deb").write_bytes(data)
        with pytest.raises(IntegrityError, match=r"a\.deb"):
            read_debs(folder, ANY, cache=tmp_path)
    with pytest.raises(HostError, match="cannot be read"):
        read_debs(tmp_path / "none", ANY, cache=tmp_path)


def test_a_prefix_with_all_that_may_be_in_it(tmp_path: Path) -> None:
    prefix = tmp_path / "opt" / "sdk-1.0"
    for path in ("lib/liba.so.1", "include/a.h", "bin/a", "share/doc/a"):
        (prefix / path).parent.mkdir(parents=True, exist_ok=True)
        (prefix / path).write_bytes(b"x")
    (tmp_path / "opt" / "sdk").symlink_to("sdk-1.0")
    (prefix / "lib/liba.so").symlink_to(prefix / "lib/liba.so.1")
    (prefix / "lib64").symlink_to(tmp_path / "opt" / "sdk" / "lib")
    (prefix / "bin/python").symlink_to("/usr/bin/python3")
    notes: list[str] = []
    entries = read_prefix(tmp_path / "opt" / "sdk", note=notes.append)
    assert {entry.path: (entry.component, entry.link) for entry in entries} == {
        "bin/a": ("run", ""),
        "include/a.h": ("dev", ""),
        "lib/liba.so": ("lib", "liba.so.1"),
        "lib/liba.so.1": ("lib", ""),
        "lib64": ("run", "lib"),
        "share/doc/a": ("doc", ""),
    }
    assert {entry.artifact for entry in entries} == {"prefix"}
    (note,) = notes
    assert note.endswith("left out links that lead out of the tree: bin/python -> /usr/bin/python3")
    os.mkfifo(prefix / "pipe")
    with pytest.raises(IntegrityError, match="pipe: the entry is not a file, link or folder"):
        read_prefix(prefix)
    (tmp_path / "empty").mkdir()
    with pytest.raises(IntegrityError, match="is empty"):
        read_prefix(tmp_path / "empty" / "")
