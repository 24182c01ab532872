"""What the store and the host do to files alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from axletree.disk import clone, remove_tree, sync_files, sync_path, write_new

SOURCE = Path(__file__).parents[2] / "src/axletree"


def test_a_new_file_is_written_whole_and_replaces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new"
    write_new(str(path), b"x" * 100_000, mode=0o400, durable=True)
    assert path.read_bytes() == b"x" * 100_000
    assert path.stat().st_mode & 0o777 == 0o400
    with pytest.raises(FileExistsError):
        write_new(str(path), b"y", mode=0o400, durable=False)


def test_files_and_folders_are_brought_to_the_disk_and_what_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    sync_path(tmp_path)
    sync_path(tmp_path / "file")
    sync_files(str(tmp_path), [str(tmp_path / "file")])
    with pytest.raises(FileNotFoundError):
        sync_path(tmp_path / "nothing")


def test_a_clone_is_the_whole_file_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"x" * 65536)
    with (tmp_path / "one").open("rb") as source, (tmp_path / "two").open("wb") as target:
        done = clone(source.fileno(), target.fileno())
    assert (tmp_path / "two").read_bytes() == (b"x" * 65536 if done else b"")


def test_a_folder_goes_with_what_is_read_only_and_links_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("x")
    inner = tmp_path / "gone" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    (inner / "link").symlink_to(tmp_path / "kept")
    inner.chmod(0o500)
    remove_tree(tmp_path / "gone")
    remove_tree(tmp_path / "gone")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_there_is_one_place_for_each_of_them() -> None:
    texts = {path.relative_to(SOURCE): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    for what in (r"0x40049409", r"os\.open\([^\n]*\n\s+try:\s+os\.fsync"):
        assert [str(path) for path, text in texts.items() if re.search(what, text)] == ["disk.py"], what
