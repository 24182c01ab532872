"""``axletree sizes`` of wheels, folders and single files."""

from __future__ import annotations

import os
import zipfile
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from axletree.app.sizes import measure_path
from axletree.cli.main import cli
from axletree.core.errors import HostError, IntegrityError
from support.envelopes import result_of
from support.wheels import make_elf, wheel_bytes

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "demo/__init__.py": b"x = 1\n" * 500,
    "demo/lib/a.so": make_elf(symtab=4096),
    "demo/lib/deep/b.so": make_elf(),
    "demo/lib/c.so": b"\x7fELF damaged",
}


def run(*arguments: object) -> str:
    result = CliRunner().invoke(cli, ["sizes", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_the_parts_of_a_wheel_add_up_to_it(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_bytes(wheel_bytes(FILES))
    report = result_of(run(path, "--json"))["inputs"][0]
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
    assert report["files"] == len(infos)
    assert report["size"] == sum(info.file_size for info in infos) == sum(part["size"] for part in report["parts"])
    assert sum(part["compressed"] for part in report["parts"]) == sum(info.compress_size for info in infos)
    assert report["compressed"] == path.stat().st_size
    parts = {part["path"]: part["files"] for part in report["parts"]}
    assert parts == {"demo": 1, "demo/lib": 3, "demo-1.0.dist-info": 3}
    (unloaded,) = report["unloaded"]
    assert (unloaded["path"], unloaded["symbols"] > 4096 - 1, unloaded["debug"]) == ("demo/lib/a.so", True, 8)
    assert {section["name"]: section["files"] for section in report["sections"]}[".dynstr"] == 2
    assert any("demo/lib/c.so" in text for text in report["damaged"])
    text = run(path)
    assert "strip would save about 4.10 kB" in text
    assert "could not be read: demo/lib/c.so" in text


def test_a_folder_counts_files_once_and_follows_no_links(tmp_path: Path) -> None:
    for name, data in FILES.items():
        file = tmp_path / "tree" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (tmp_path / "tree" / "link").symlink_to("/")
    os.link(tmp_path / "tree" / "demo/lib/a.so", tmp_path / "tree" / "again.so")
    report = result_of(run(tmp_path / "tree", "--json"))["inputs"][0]
    assert report["files"] == len(FILES)
    assert report["size"] == sum(map(len, FILES.values()))
    assert not report["packed"]


def test_one_file_and_what_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    path.write_bytes(make_elf())
    text = run(path)
    assert "in 1 file\n" in text
    assert ".dynamic" in text
    with pytest.raises(HostError, match="cannot be read"):
        measure_path(tmp_path / "none.so")
    (tmp_path / "bad-1.0-py3-none-any.whl").write_bytes(b"no archive")
    with pytest.raises(IntegrityError):
        run(tmp_path / "bad-1.0-py3-none-any.whl")
