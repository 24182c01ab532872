"""Projects read from archives and folders: the same value, and what hostile archives are refused for."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import HostError, IntegrityError, UsageError
from axletree.host import project_tree
from axletree.host.project_tree import read_archive, read_folder
from axletree.package.project.tree import LARGEST_TEXT
from support.projects import SETUPTOOLS, sdist_bytes, tree_of, write_tree

if TYPE_CHECKING:
    from pathlib import Path


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def tar_with(path: Path, *members: tarfile.TarInfo) -> Path:
    """An sdist with a harmless file and some members of any kind."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        first = tarfile.TarInfo("top/setup.py")
        tar.addfile(first, io.BytesIO())
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    return put(path, out.getvalue())


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = kind, target
    return found


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz", ""])
def test_every_archive_and_the_folder_give_the_same(tmp_path: Path, compression: str) -> None:
    archive = put(tmp_path / "a", sdist_bytes("gizmo-1.2", SETUPTOOLS, compression=compression))
    folder = write_tree(tmp_path / "gizmo", SETUPTOOLS)
    assert read_archive(archive) == read_folder(folder) == tree_of(SETUPTOOLS)


def test_a_zip_gives_the_same(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        for name, text in SETUPTOOLS.items():
            made.writestr(f"gizmo-1.2/{name}", text)
    assert read_archive(tmp_path / "a.zip") == tree_of(SETUPTOOLS)


def test_an_archive_without_a_top_folder_is_read_as_it_is(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name in ("./setup.py", "./a/b.py"):
            tar.addfile(member(name), io.BytesIO())
    assert set(read_archive(put(tmp_path / "a.tar.gz", out.getvalue())).sizes) == {"setup.py", "a/b.py"}


def test_a_folder_without_what_is_no_part_of_it(tmp_path: Path) -> None:
    write_tree(tmp_path, {"setup.py": "", ".git/config": "", ".venv/a.py": "", "build/x.c": "", "a/build/y.c": ""})
    (tmp_path / "link.c").symlink_to("setup.py")
    assert set(read_folder(tmp_path).sizes) == {"setup.py", "a/build/y.c"}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (member("/etc/passwd"), "the path is invalid or leads outside the folder"),
        (member("top/../../x"), "the path is invalid or leads outside the folder"),
        (member("top/a", tarfile.SYMTYPE, "../../x"), "the entry is a link to a path outside the archive"),
        (member("top/a", tarfile.SYMTYPE, "/etc/passwd"), "the entry is a link to a path outside the archive"),
        (member("top/a", tarfile.LNKTYPE, "/etc/passwd"), "the entry is a link to a file that is not in the archive"),
        (member("top/a", tarfile.LNKTYPE, "top/gone"), "the entry is a link to a file that is not in the archive"),
        (member("top/a", tarfile.CHRTYPE), "type b'3'"),
        (member("top/a", tarfile.BLKTYPE), "type b'4'"),
        (member("top/a", tarfile.FIFOTYPE), "type b'6'"),
    ],
)
def test_hostile_members_are_refused_by_name(tmp_path: Path, bad: tarfile.TarInfo, message: str) -> None:
    with pytest.raises(IntegrityError) as caught:
        read_archive(tar_with(tmp_path / "evil.tar.gz", bad))
    problem = caught.value.problems[0]
    assert message in problem.message
    assert (problem.file, problem.key) == ("evil.tar.gz", bad.name)


def test_links_inside_are_no_files_and_hard_links_are(tmp_path: Path) -> None:
    archive = tar_with(
        tmp_path / "a.tar.gz",
        member("top/a/link.c", tarfile.SYMTYPE, "../setup.py"),
        member("top/setup.cfg", tarfile.LNKTYPE, "top/setup.py"),
    )
    tree = read_archive(archive)
    assert set(tree.sizes) == {"setup.py", "setup.cfg"}
    assert "setup.cfg" in tree.texts


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_tree, "_ALWAYS_ALLOWED", 1 << 16)
    large = member("top/large")
    large.size = 1 << 22
    with pytest.raises(IntegrityError, match=r"bomb\.tar\.gz: unsupported archive: it would unpack to more than"):
        read_archive(tar_with(tmp_path / "bomb.tar.gz", large))
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("top/large", bytes(1 << 22))
    with pytest.raises(IntegrityError, match=r"bomb\.zip: unsupported archive: it would unpack to more than"):
        read_archive(tmp_path / "bomb.zip")


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_tree, "MOST_MEMBERS", 3)
    many = [member(f"top/{number}") for number in range(4)]
    with pytest.raises(IntegrityError, match="has more than 3 files"):
        read_archive(tar_with(tmp_path / "many.tar.gz", *many))


def test_a_text_that_is_too_large_is_not_kept(tmp_path: Path) -> None:
    folder = write_tree(tmp_path, {"setup.py": "#" * (LARGEST_TEXT + 1), "setup.cfg": ""})
    tree = read_folder(folder)
    assert (tree.sizes["setup.py"], set(tree.texts)) == (LARGEST_TEXT + 1, {"setup.cfg"})


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive at all", gzip.compress(b"nor this"), b"PK\x03\x04 nor this"],
    ids=["empty", "text", "gzip", "zip"],
)
def test_what_is_no_archive_is_told(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(IntegrityError, match=r"a\.tar\.gz"):
        read_archive(put(tmp_path / "a.tar.gz", data))


def test_every_cut_is_told(tmp_path: Path) -> None:
    whole = sdist_bytes("gizmo-1.2", SETUPTOOLS)
    for end in range(1, len(whole) - 1, 97):
        with pytest.raises(IntegrityError):
            read_archive(put(tmp_path / "cut.tar.gz", whole[:end]))


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="cannot be read"):
        read_archive(tmp_path / "gone.tar.gz")
    with pytest.raises(UsageError, match="no such folder"):
        read_folder(tmp_path / "gone")
