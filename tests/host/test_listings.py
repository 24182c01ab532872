"""What an index root lists once something of the same name and other content is published: refused, or replaced."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from axletree.app.listings import LINKS_PAGE, channel_pages, listed, listing, wheel_pages
from axletree.core.errors import PublishError
from axletree.package.checksums import CHECKSUMS, read_checksums, render_checksums
from axletree.package.conda.repodata import CHANNEL, ChannelFile, read_repodata
from axletree.package.index import IndexFile, read_index
from axletree.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OLD, NEW, OTHER = "1" * 64, "2" * 64, "3" * 64


def write(root: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def wheel(name: str, sha256: str) -> IndexFile:
    return IndexFile(filename=f"{name}-1.0-py3-none-any.whl", size=1, sha256=sha256)


def package(name: str, sha256: str) -> ChannelFile:
    record = {"name": name, "version": "1.0", "build": "0", "build_number": 0, "depends": [], "sha256": sha256}
    return ChannelFile(filename=f"{name}-1.0-0.conda", subdir="linux-64", record=record)


def test_wheels(tmp_path: Path) -> None:
    there = [wheel("gizmo", OLD), wheel("other", OTHER)]
    write(tmp_path, wheel_pages(tmp_path, there, links_page=True))
    write(tmp_path, {each.filename: b"x" for each in there})
    with pytest.raises(PublishError, match="the file is already in the index with different content"):
        wheel_pages(tmp_path, [wheel("gizmo", NEW)])
    pages = wheel_pages(tmp_path, [wheel("gizmo", NEW)], replace=True)
    assert [line.sha256 for line in read_index(pages["simple/gizmo/index.json"])] == [NEW]
    assert [line.sha256 for line in read_index(pages["simple/other/index.json"])] == [OTHER]
    assert NEW.encode() in pages[LINKS_PAGE]
    assert OLD.encode() not in pages[LINKS_PAGE]


def test_conda_packages(tmp_path: Path) -> None:
    there = [package("gizmo", OLD), package("other", OTHER)]
    write(tmp_path, channel_pages(tmp_path, there).pages)
    write(tmp_path, {f"{CHANNEL}/linux-64/{each.filename}": b"x" for each in there})
    with pytest.raises(PublishError, match="the package is already in the channel with different content"):
        channel_pages(tmp_path, [package("gizmo", NEW)])
    pages = channel_pages(tmp_path, [package("gizmo", NEW)], replace=True).pages
    lines = read_repodata(pages[f"{CHANNEL}/linux-64/repodata.json"], subdir="linux-64")
    assert {line.filename: line.sha256 for line in lines} == {
        "gizmo-1.0-0.conda": NEW,
        "other-1.0-0.conda": OTHER,
    }


def test_archives(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    write(tmp_path, {"gizmo.zip": b"old", "other.zip": b"other"})
    sums = {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("gizmo.zip", "other.zip")}
    write(tmp_path, {CHECKSUMS: render_checksums(sums)})
    made = tmp_path / "made"
    write(made, {"gizmo.zip": b"new", CHECKSUMS: render_checksums({"gizmo.zip": NEW})})
    tree = store.get_tree(store.ingest(made)).entries
    with pytest.raises(PublishError, match="the file already exists with different content"):
        listing("archives", tmp_path, [tree], store)
    pages = listing("archives", tmp_path, [tree], store, replace=True).pages
    assert read_checksums(pages[CHECKSUMS]) == {"gizmo.zip": NEW, "other.zip": sums["other.zip"]}
    assert listed("archives", tmp_path) == sums
