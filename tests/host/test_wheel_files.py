"""Wheels on disk: written whole or not at all, and accepted by unzip, zipfile, pip and uv."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest

from axletree.binary.zip.directory import STORED
from axletree.core.errors import HostError, IntegrityError
from axletree.host import archive
from axletree.host.archive import WheelFile, map_file, write_wheel_file
from axletree.host.wheels import open_wheel
from axletree.package.wheel import writer
from axletree.package.wheel.record import encode_hash
from axletree.package.wheel.repack import packed_members
from axletree.package.wheel.writer import Member, Packed
from support.wheels import demo_info, demo_metadata, demo_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BODY = b"ANSWER = 42\n\n\ndef main():\n    print(ANSWER)\n"
VERSION = "1.0+torch.2.13.cpu"
FOLDER = f"demo-{VERSION}.dist-info"
MEMBERS = [
    Member(path="demo/__init__.py", data=BODY),
    Member(path="demo/data/é, with comma.txt", data=b"x" * 100_000),
    Member(path="demo/big.bin", data=lambda: (bytes([n]) * (1 << 20) for n in range(10)), size=10 << 20),
    Member(path=f"{FOLDER}/entry_points.txt", data=b"[console_scripts]\ndemo = demo:main\n"),
    Member(path=f"{FOLDER}/licenses/LICENSE", data=b"MIT\n"),
]


def write(folder: Path, *, threads: int = 1) -> WheelFile:
    metadata = demo_metadata(VERSION, summary="A demo", requires_python=">=3.9")
    return write_wheel_file(
        folder, demo_name(version=VERSION), MEMBERS, metadata=metadata, wheel_info=demo_info(), threads=threads
    )


def run(*command: str | Path) -> str:
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_", "PYTHON"))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_same_bytes_for_any_number_of_threads(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    first, second = write(one, threads=1), write(two, threads=2)
    assert first.path.read_bytes() == second.path.read_bytes()
    assert first.sha256 == second.sha256
    assert first.path.name == f"demo-{VERSION}-py3-none-any.whl"
    assert first.size == first.path.stat().st_size


def test_other_readers_find_nothing_wrong(tmp_path: Path) -> None:
    path = write(tmp_path).path
    assert "Done testing" in run(sys.executable, "-m", "zipfile", "-t", path)
    with zipfile.ZipFile(path) as opened:
        assert opened.read("demo/__init__.py") == BODY
    if shutil.which("unzip"):
        assert "No errors detected" in run("unzip", "-tq", path)


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_clients_install_it(tmp_path: Path, client: str) -> None:
    path = write(tmp_path).path
    home = tmp_path / "env"
    run(sys.executable, "-m", "uv", "venv", "--offline", "--python", sys.executable, home)
    python = home / "bin" / "python"
    if client == "pip":
        run(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", path)
    else:
        cache = tmp_path / "cache"
        run(sys.executable, "-m", "uv", "pip", "install", "--offline", "--cache-dir", cache, "--python", python, path)
    assert run(home / "bin" / "demo") == "42\n"
    code = "import importlib.metadata as m; d = m.distribution('demo'); print(d.version, d.metadata['Summary'])"
    assert run(python, "-c", code) == f"{VERSION} A demo\n"
    installed = next(home.rglob(FOLDER))
    assert (installed / "licenses" / "LICENSE").read_bytes() == b"MIT\n"


def test_a_wheel_of_that_name_is_replaced(tmp_path: Path) -> None:
    first = write(tmp_path)
    first.path.write_bytes(b"old")
    assert write(tmp_path).sha256 == first.sha256
    assert list(tmp_path.iterdir()) == [first.path]


def test_nothing_is_left_when_the_source_fails(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield bytes(1 << 20)
        raise OSError(28, "No space left on device")

    members = [Member(path="a", data=broken, size=2 << 20)]
    with pytest.raises(HostError, match="cannot be written: No space left on device"):
        write_wheel_file(tmp_path, demo_name(), members, metadata=demo_metadata(), wheel_info=demo_info())
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_when_what_was_written_is_not_what_was_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = writer.write_wheel

    def flips_a_bit(sink, *args, **options):  # type: ignore[no-untyped-def]
        written = real(sink, *args, **options)
        sink.seek(60)  # inside the content of the first member
        sink.write(b"\xff")
        return written

    monkeypatch.setattr(archive, "write_wheel", flips_a_bit)
    with pytest.raises(IntegrityError):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("level", [0, 5])
def test_a_damaged_block_of_a_large_member_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: int
) -> None:
    real = writer.write_wheel
    noise = random.Random(1).randbytes(9 << 20)

    def flips_a_bit(sink, *args, **options):  # type: ignore[no-untyped-def]
        written = real(sink, *args, **options)
        sink.seek(6 << 20)
        sink.write(bytes([noise[6 << 20] ^ 1, *noise[1:64]]))
        return written

    monkeypatch.setattr(archive, "write_wheel", flips_a_bit)
    members = [Member(path="demo/noise", data=lambda: iter([noise]), size=len(noise))]
    options = {"metadata": demo_metadata(), "wheel_info": demo_info(), "level": level}
    with pytest.raises(IntegrityError, match="CRC"):
        write_wheel_file(tmp_path, demo_name(), members, **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_hash_that_another_archive_said_is_not_believed(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(9 << 20)
    packed = Packed(data=noise, method=STORED, crc=zlib.crc32(noise), size=len(noise), hash=encode_hash(bytes(32)))
    options = {"metadata": demo_metadata(), "wheel_info": demo_info()}
    with pytest.raises(IntegrityError, match="the archive was not written correctly"):
        write_wheel_file(tmp_path, demo_name(), [Member(path="demo/noise", data=packed)], **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match="cannot be written: Not a directory"):
        write(tmp_path / "file" / "folder")


def test_files_that_can_not_be_mapped(tmp_path: Path) -> None:
    (tmp_path / "empty.whl").touch()
    with pytest.raises(IntegrityError, match="is empty"):
        map_file(tmp_path / "empty.whl")
    with pytest.raises(HostError, match="cannot be read: No such file"):
        map_file(tmp_path / "none.whl")


def test_the_digest_taken_on_the_way_is_that_of_the_file(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes((8 << 20) + 1)  # more than is copied at once
    members = [*MEMBERS, Member(path="demo/noise", data=noise)]
    options = {"metadata": demo_metadata(VERSION), "wheel_info": demo_info(), "digest": True}
    first = write_wheel_file(tmp_path, demo_name(version=VERSION), members, **options)  # type: ignore[arg-type]
    made = open_wheel(first.path)
    taken = packed_members(made.view, made.entries, made.record, folder=made.folder)
    copy = write_wheel_file(tmp_path / "copy", demo_name(version=VERSION), taken, **options)  # type: ignore[arg-type]
    assert first.digest is None  # headers were written over
    assert copy.digest == copy.sha256 == hashlib.sha256(copy.path.read_bytes()).hexdigest()
    assert first.sha256 == copy.sha256
