"""Archives of sources: what comes out of them, and what is refused."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
import zipfile
from typing import TYPE_CHECKING, Literal

import pytest

from axletree.core.errors import IntegrityError, StageError
from axletree.execute.actions.fetch import unpack
from support.store import read_files

if TYPE_CHECKING:
    from pathlib import Path

HUGE = 2 << 30


def tar_of(path: Path, *members: tuple[str, int, bytes]) -> Path:
    """A tar archive; each member is a name, the size that its header claims, and its content."""
    data = io.BytesIO()
    for name, size, content in members:
        header = tarfile.TarInfo(name)
        header.size = size
        data.write(header.tobuf())
        data.write(content + bytes(-len(content) % 512))
    path.write_bytes(gzip.compress(data.getvalue() + bytes(1024)))
    return path


def test_a_tar_and_a_zip_give_the_same(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "a.tar.gz", ("top/a", 1, b"a"), ("top/b/c", 0, b""))
    unpack(archive, tmp_path / "tar", name="a.tar.gz")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr("top/a", "a")
        made.writestr("top/b/c", "")
    unpack(tmp_path / "a.zip", tmp_path / "zip", name="a.zip")
    assert read_files(tmp_path / "tar") == read_files(tmp_path / "zip") == {"a": b"a", "b/c": b""}


def test_read_only_folders_are_filled(tmp_path: Path) -> None:
    source = tmp_path / "top"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "a").write_bytes(b"a")
    (source / "deep").chmod(0o555)
    subprocess.run(["tar", "-czf", tmp_path / "a.tar.gz", "-C", tmp_path, "top"], check=True)
    unpack(tmp_path / "a.tar.gz", tmp_path / "out", name="a.tar.gz")
    assert (tmp_path / "out" / "deep" / "a").read_bytes() == b"a"


def test_an_archive_that_would_fill_the_disk_is_refused_before_it_does(tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "a.tar.gz", ("a", 1, b"a"), ("b", HUGE, b"x"))
    with pytest.raises(StageError, match=r"bomb\.tar\.gz \(\d+ B\) would unpack to more than 1\.07 GB"):
        unpack(archive, tmp_path / "tar", name="bomb.tar.gz")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr("a", "a")
        made.filelist[0].file_size = HUGE
    with pytest.raises(StageError, match=r"bomb\.zip"):
        unpack(tmp_path / "a.zip", tmp_path / "zip", name="bomb.zip")
    assert not (tmp_path / "tar").exists()
    assert not (tmp_path / "zip").exists()


def test_many_empty_members_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axletree.host.project_tree._ALWAYS_ALLOWED", 100_000)
    archive = tar_of(tmp_path / "a.tar.gz", *((str(number), 0, b"") for number in range(1000)))
    with pytest.raises(StageError, match="would unpack to more than"):
        unpack(archive, tmp_path / "out", name="a.tar.gz")


@pytest.mark.parametrize("name", ["../a", "/a"])
def test_members_outside(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr(name, "a")
    with pytest.raises(IntegrityError, match="leads out of its folder"):
        unpack(tmp_path / "a.zip", tmp_path / "zip", name="a.zip")


def test_what_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"no archive")
    with pytest.raises(IntegrityError, match=r"cannot unpack a\.tar"):
        unpack(tmp_path / "a", tmp_path / "out", name="a.tar")


def test_what_is_at_the_top_of_an_archive_stays_or_must_be_one_folder(tmp_path: Path) -> None:
    for name, members in (("one", ("a/x", "a/y")), ("two", ("include/x", "lib/y", "z")), ("none", ())):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            for member in members:
                archive.writestr(member, "")

    def unpacked(name: str, top: Literal["keep", "strip"]) -> list[str]:
        folder = tmp_path / f"{name}-{top}"
        unpack(tmp_path / f"{name}.zip", folder, name=f"{name}.zip", top=top)
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())

    assert unpacked("one", "strip") == ["x", "y"]
    assert unpacked("one", "keep") == ["a/x", "a/y"]
    assert unpacked("two", "keep") == ["include/x", "lib/y", "z"]
    with pytest.raises(StageError, match=r"two.zip does not have a single folder at its top, but include/, lib/, z"):
        unpacked("two", "strip")
    with pytest.raises(StageError, match="but nothing"):
        unpacked("none", "strip")
