"""Archives beyond 4 GiB. They are written sparse: zeros take no disk space."""

from __future__ import annotations

import hashlib
import io
import random
import shutil
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from axletree.binary.zip.directory import read_directory
from axletree.host.archive import map_file, write_wheel_file
from axletree.host.wheels import open_wheel
from axletree.package.wheel.record import encode_hash
from axletree.package.wheel.repack import packed_members
from axletree.package.wheel.writer import Member, write_wheel
from support.wheels import demo_info, demo_metadata, demo_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZE = (4 << 30) + 12345
ZEROS = bytes(1 << 20)


class Sparse(io.FileIO):
    """A file that skips over zeros instead of writing them."""

    def write(self, data) -> int:  # type: ignore[no-untyped-def]
        view = memoryview(data)
        for start in range(0, len(view), 1 << 16):
            piece = view[start : start + (1 << 16)]
            if piece == ZEROS[: len(piece)]:
                self.seek(len(piece), io.SEEK_CUR)
            else:
                super().write(piece)
        return len(view)


def chunks() -> Iterator[bytes]:
    whole, rest = divmod(SIZE, len(ZEROS))
    for _ in range(whole):
        yield ZEROS
    yield ZEROS[:rest]


def peers(path: Path) -> None:
    """Readers of other makers test every member."""
    commands: list[list[str | Path]] = [[sys.executable, "-m", "zipfile", "-t", path]]
    if shutil.which("unzip"):
        commands.append(["unzip", "-tqq", path])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-500:] + done.stderr[-500:]


def clients(path: Path, home: Path, *, files: int) -> None:
    """uv installs it, and pip says that it would: the one reads all of it, the other its directory."""
    uv: tuple[str | Path, ...] = (sys.executable, "-m", "uv")
    subprocess.run([*uv, "venv", "-q", "--offline", "--python", sys.executable, home], check=True)
    python = home / "bin" / "python"
    target: tuple[str | Path, ...] = ("--python", python)
    install = ("pip", "install", "-q", "--offline", "--cache-dir", home / "cache")
    subprocess.run([*uv, *install, *target, path], check=True)
    site = next((home / "lib").glob("python*/site-packages"))
    lines = (site / "demo-1.0.dist-info" / "RECORD").read_text().splitlines()
    paths = {line.partition(",")[0] for line in lines if ".dist-info/" not in line}
    assert len(paths) == files
    assert all((site / name).is_file() for name in paths)
    pip: tuple[str | Path, ...] = (sys.executable, "-m", "pip", *target)
    words: tuple[str | Path, ...] = ("install", "--no-index", "--dry-run", "--no-deps", "--force-reinstall", path)
    done = subprocess.run([*pip, *words], check=True, capture_output=True, text=True)
    assert "Would install demo-1.0" in done.stdout


@pytest.mark.slow
def test_a_member_and_an_archive_beyond_4_gib(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    members = [Member(path="a/zeros", data=chunks, size=SIZE), Member(path="b/after", data=b"here")]
    with Sparse(str(path), "w") as sink:
        written = write_wheel(sink, members, metadata=demo_metadata(), wheel_info=demo_info(), level=0)
    assert written.size == path.stat().st_size > SIZE
    entries = {entry.name: entry for entry in read_directory(map_file(path))}
    assert entries["a/zeros"].size == SIZE
    assert entries["b/after"].offset > SIZE
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("a/zeros").file_size == SIZE
        assert archive.read("b/after") == b"here"
        digest = hashlib.sha256()
        with archive.open("a/zeros") as member:
            while chunk := member.read(1 << 20):
                digest.update(chunk)
    lines = {entry.path: entry.hash for entry in written.record}
    assert lines["a/zeros"] == encode_hash(digest.digest())


def many(folder: Path) -> Path:
    path = folder / "demo-1.0-py3-none-any.whl"
    members = [Member(path=f"demo/{number}", data=b"") for number in range(65_536)]
    with path.open("wb") as sink:
        write_wheel(sink, members, metadata=demo_metadata(), wheel_info=demo_info())
    return path


def test_more_members_than_zip_can_count(tmp_path: Path) -> None:
    path = many(tmp_path)
    assert len(read_directory(map_file(path))) == 65_539
    peers(path)


@pytest.mark.proof
def test_more_members_than_zip_can_count_are_installed(tmp_path: Path) -> None:
    clients(many(tmp_path), tmp_path / "env", files=65_536)


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_what_is_beyond_4_gib_can_be_deflated_copied_and_installed(tmp_path: Path) -> None:
    """Members with a size, with both sizes and with an offset of 64 bits; also taken over into another wheel."""
    noise = random.Random(1).randbytes(1 << 20)
    members = [
        Member(path="a/zeros", data=chunks, size=SIZE),
        Member(path="b/noise", data=lambda: (noise for _ in range(4097)), size=4097 << 20),
        Member(path="c/after", data=b"here"),
    ]
    options = {"metadata": demo_metadata(), "wheel_info": demo_info()}
    first = write_wheel_file(tmp_path, demo_name(), members, **options, threads=2)  # type: ignore[arg-type]
    wheel = open_wheel(first.path)
    sizes = {entry.name: (entry.compressed, entry.size, entry.offset) for entry in wheel.entries}
    assert sizes["a/zeros"][0] < 1 << 26 < 1 << 32 < sizes["a/zeros"][1]
    assert min(sizes["b/noise"][:2]) > 1 << 32
    assert sizes["c/after"][2] > 1 << 32
    peers(first.path)
    clients(first.path, tmp_path / "env", files=3)
    taken = packed_members(wheel.view, wheel.entries, wheel.record, folder=wheel.folder)
    (tmp_path / "copy").mkdir()
    copy = write_wheel_file(tmp_path / "copy", demo_name(), taken, **options)  # type: ignore[arg-type]
    assert copy.sha256 == first.sha256
