"""``unpack``, ``pack`` and ``retag`` against what the ``wheel`` package does, and against pip and uv."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from axletree.app.epoch import source_date_epoch
from axletree.app.pack import pack
from axletree.app.retag import retag
from axletree.app.unpack import unpack
from axletree.cli.main import main
from axletree.core.errors import HostError, IntegrityError, UsageError
from axletree.package.wheel.retag import Wishes
from support.inputs import wheel
from support.wheels import make_elf

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

STEM = "demo_app-1.0"
INFO = f"{STEM}.dist-info"
FILENAME = f"{STEM}-py3-none-any.whl"
FILES: dict[str, bytes] = {
    "demo_app/__init__.py": b"def main():\n    print(42)\n" * 20,
    "demo_app/libx.so": make_elf(soname="libx.so", exported=("x",)),
    "demo_app/big.bin": random.Random(1).randbytes(200_000) + bytes(200_000) + b"text " * 90_000,
    "demo_app/é, with comma.txt": b"x" * 5000,
    f"{STEM}.data/scripts/demo-script": b"#!python\nprint(43)\n",
    f"{STEM}.data/data/share/demo.txt": b"data",
    f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: demo-app\nVersion: 1.0\nX-Unknown: kept\n\nA demo.\n",
    f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\nX-Mine: 1\n",
    f"{INFO}/entry_points.txt": b"[console_scripts]\ndemo = demo_app:main\n",
    f"{INFO}/licenses/LICENSE": b"MIT\n",
    f"{INFO}/sboms/demo.cdx.json": b"{}",
}
EXECUTABLE = {f"{STEM}.data/scripts/demo-script"}


def run(*command: str | Path, **options: str) -> str:
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_", "PYTHON"))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ | options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def peer(*arguments: str | Path) -> str:
    """The command of the ``wheel`` package."""
    return run(sys.executable, "-W", "ignore", "-m", "wheel", *arguments)


def write_files(folder: Path, files: dict[str, bytes], executable: Iterable[str] = EXECUTABLE) -> Path:
    for path, data in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(0o755 if path in executable else 0o644)
    return folder


def contents(path: Path, *, without: Iterable[str] = ("RECORD",)) -> dict[str, bytes]:
    """What is in a wheel, without some files of its metadata folder."""
    with zipfile.ZipFile(path) as archive:
        return {
            name: archive.read(name)
            for name in archive.namelist()
            if not (".dist-info/" in name and name.rpartition("/")[2] in without)
        }


def tree(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """Files below a folder: content, and whether they can be executed."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), os.access(path, os.X_OK))
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A wheel that the ``wheel`` package packed."""
    folder = write_files(tmp_path / "source" / STEM, FILES)
    peer("pack", folder, "--dest-dir", tmp_path)
    return tmp_path / FILENAME


def install(client: str, path: Path, home: Path) -> Path:
    """Install a wheel into a new environment with a client's strict checks; returns its Python."""
    run(sys.executable, "-m", "uv", "venv", "--offline", "--python", sys.executable, home)
    python = home / "bin" / "python"
    if client == "pip":
        run(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", path)
    else:
        cache = home / "cache"
        run(sys.executable, "-m", "uv", "pip", "install", "--offline", "--cache-dir", cache, "--python", python, path)
    return python


def test_unpack_does_what_wheel_unpack_does(made: Path, tmp_path: Path) -> None:
    peer("unpack", made, "--dest", tmp_path / "theirs")
    done = unpack(made, out=tmp_path / "ours")
    assert done.folder == tmp_path / "ours" / STEM
    assert tree(done.folder) == tree(tmp_path / "theirs" / STEM)
    assert done.files == len(FILES) + 1
    assert list((tmp_path / "ours").iterdir()) == [done.folder]


def test_dates_are_those_of_the_archive(made: Path, tmp_path: Path) -> None:
    folder = unpack(made, out=tmp_path).folder
    packed = pack(folder, out=tmp_path / "out", epoch=1_700_000_000).wheel
    shutil.rmtree(folder)
    again = unpack(packed, out=tmp_path).folder
    assert {path.stat().st_mtime for path in again.rglob("*") if path.is_file()} == {1_700_000_000}


def test_unpack_overwrites_nothing(made: Path, tmp_path: Path) -> None:
    (tmp_path / STEM).mkdir()
    with pytest.raises(IntegrityError, match="exists"):
        unpack(made, out=tmp_path)
    assert not list((tmp_path / STEM).iterdir())


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("demo_app/__init__.py", "the file has hash sha256="),
        ("demo_app/extra.py", "the file is in the wheel, but not listed in RECORD"),
    ],
)
def test_a_wheel_that_is_not_what_its_record_says_leaves_nothing(
    made: Path, tmp_path: Path, path: str, message: str
) -> None:
    other = tmp_path / "other" / FILENAME
    other.parent.mkdir()
    files = contents(made, without=()) | {path: b"changed"}
    with zipfile.ZipFile(other, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with pytest.raises(IntegrityError, match=f"{path}: {message}"):
        unpack(other, out=tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_damaged_member_leaves_nothing(made: Path, tmp_path: Path) -> None:
    data = bytearray(made.read_bytes())
    with zipfile.ZipFile(made) as archive:
        entry = archive.getinfo("demo_app/big.bin")
    data[entry.header_offset + 100_000] ^= 0xFF
    made.write_bytes(data)
    with pytest.raises(IntegrityError, match=r"demo_app/big\.bin"):
        unpack(made, out=tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_hash_other_than_sha256_is_a_note(made: Path, tmp_path: Path) -> None:
    files = contents(made, without=())
    record = files[f"{INFO}/RECORD"].decode().splitlines()
    files[f"{INFO}/RECORD"] = "\n".join(
        line.replace("sha256=", "sha512=") if line.startswith("demo_app/__init__") else line for line in record
    ).encode()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    assert unpack(made, out=tmp_path / "out").unchecked == ("demo_app/__init__.py",)


@pytest.mark.parametrize("threads", [1, 3])
def test_pack_does_what_wheel_pack_does(made: Path, tmp_path: Path, threads: int) -> None:
    done = pack(tmp_path / "source" / STEM, out=tmp_path / "out", threads=threads)
    assert done.wheel.name == made.name
    assert contents(done.wheel) == contents(made)
    assert done.wheel.read_bytes() == pack(tmp_path / "source" / STEM, out=tmp_path / "b").wheel.read_bytes()
    with zipfile.ZipFile(done.wheel) as archive:
        executable = {info.filename for info in archive.infolist() if info.external_attr >> 16 & 0o100}
    assert executable == EXECUTABLE
    peer("unpack", done.wheel, "--dest", tmp_path / "again")  # it checks each hash
    assert "Done testing" in run(sys.executable, "-m", "zipfile", "-t", done.wheel)


def test_what_did_not_change_is_not_compressed_again(made: Path, tmp_path: Path) -> None:
    folder = unpack(made, out=tmp_path).folder
    (folder / "demo_app" / "__init__.py").write_bytes(b"# another\n" * 30)
    (folder / "demo_app" / "big.bin").rename(folder / "demo_app" / "moved.bin")
    done = pack(folder, out=tmp_path / "out", older=made)
    assert done.files - done.reused == 4  # METADATA, WHEEL and RECORD are made anew
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(done.wheel) as new:
        assert new.testzip() is None
        assert new.getinfo("demo_app/moved.bin").compress_size == old.getinfo("demo_app/big.bin").compress_size
        assert new.read("demo_app/__init__.py") == b"# another\n" * 30


def test_build_tags(made: Path, tmp_path: Path) -> None:
    folder = unpack(made, out=tmp_path).folder
    done = pack(folder, out=tmp_path / "out", build="7")
    assert done.wheel.name == f"{STEM}-7-py3-none-any.whl"
    assert b"Build: 7\n" in contents(done.wheel)[f"{INFO}/WHEEL"]
    with pytest.raises(UsageError, match="'seven' is not a valid build tag"):
        pack(folder, out=tmp_path / "out", build="seven")


def test_a_version_that_was_edited_renames_the_folders(made: Path, tmp_path: Path) -> None:
    folder = unpack(made, out=tmp_path).folder
    metadata = folder / INFO / "METADATA"
    metadata.write_bytes(metadata.read_bytes().replace(b"Version: 1.0", b"Version: 1.1"))
    done = pack(folder, out=tmp_path / "out")
    assert done.wheel.name == "demo_app-1.1-py3-none-any.whl"
    tops = {name.partition("/")[0] for name in contents(done.wheel)}
    assert tops == {"demo_app", "demo_app-1.1.data", "demo_app-1.1.dist-info"}
    python = install("uv", done.wheel, tmp_path / "env")
    assert run(python.with_name("demo-script")) == "43\n"


def test_what_tells_of_an_installation_is_left_out(tmp_path: Path) -> None:
    folder = write_files(tmp_path / STEM, FILES | {f"{INFO}/INSTALLER": b"pip", f"{INFO}/RECORD.jws": b"{}"})
    done = pack(folder, out=tmp_path / "out")
    assert done.left_out == (f"{INFO}/INSTALLER", f"{INFO}/RECORD.jws")
    assert contents(done.wheel).keys() == FILES.keys()


def test_links_to_files_are_packed_as_those(tmp_path: Path) -> None:
    folder = write_files(tmp_path / STEM, FILES)
    (folder / "demo_app" / "libx.so.1").symlink_to("libx.so")
    done = pack(folder, out=tmp_path / "out")
    assert contents(done.wheel)["demo_app/libx.so.1"] == FILES["demo_app/libx.so"]


def test_all_that_a_wheel_can_not_hold_is_named(tmp_path: Path) -> None:
    folder = write_files(tmp_path / STEM, FILES)
    (folder / "out").symlink_to(tmp_path)
    (folder / "gone").symlink_to("nowhere")
    (folder / "far").symlink_to("/etc/hostname")
    os.mkfifo(folder / "pipe")
    (folder / "back\\slash").touch()
    with pytest.raises(IntegrityError) as error:
        pack(folder, out=tmp_path / "wheels")
    assert len(error.value.problems) == 5
    assert not (tmp_path / "wheels").exists()


def test_folders_that_are_no_wheels(tmp_path: Path) -> None:
    folder = tmp_path / STEM
    folder.mkdir()
    with pytest.raises(IntegrityError, match=r"has no \*\.dist-info folder"):
        pack(folder, out=tmp_path)
    write_files(folder, {f"{INFO}/METADATA": b"what\n"})
    with pytest.raises(IntegrityError) as error:
        pack(folder, out=tmp_path)
    assert "METADATA:1: the line is not a valid header field" in str(error.value)
    assert "WHEEL: the file is missing" in str(error.value)
    write_files(folder, {"other-1.dist-info/METADATA": b""})
    with pytest.raises(IntegrityError, match=r"has 2 \*\.dist-info folders"):
        pack(folder, out=tmp_path)
    with pytest.raises(UsageError, match="is inside the folder to pack"):
        pack(folder, out=folder / "dist")


@pytest.mark.parametrize(
    ("wishes", "options"),
    [
        (Wishes(python="py2.py3"), ["--python-tag", "py2.py3"]),
        (
            Wishes(python="+cp311", platform="linux_x86_64"),
            ["--python-tag", "+cp311", "--platform-tag", "linux_x86_64"],
        ),
        (Wishes(abi="abi3", build="1local"), ["--abi-tag", "abi3", "--build", "1local"]),
    ],
)
def test_retag_does_what_wheel_tags_does(made: Path, tmp_path: Path, wishes: Wishes, options: list[str]) -> None:
    done = retag(made, wishes, out=tmp_path / "source")
    name = peer("tags", *options, made).split()[-1]
    theirs = made.with_name(name)
    assert done.wheel.name == name
    assert contents(done.wheel, without=("RECORD", "WHEEL")) == contents(theirs, without=("RECORD", "WHEEL"))
    mine, others = (contents(path)[f"{INFO}/WHEEL"].decode().splitlines() for path in (done.wheel, theirs))
    assert sorted(mine) == sorted(line for line in others if line)
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(done.wheel) as new:
        before = {info.filename: info.compress_size for info in old.infolist()}
        same = [info for info in new.infolist() if not info.filename.endswith(("/RECORD", "/WHEEL", "/METADATA"))]
        assert all(before[info.filename] == info.compress_size for info in same)


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_clients_install_a_wheel_with_another_version(made: Path, tmp_path: Path, client: str) -> None:
    done = retag(made, Wishes(local="cu130", build="2"))
    assert done.wheel == tmp_path / "demo_app-1.0+cu130-2-py3-none-any.whl"
    python = install(client, done.wheel, tmp_path / "env")
    assert run(python.with_name("demo")) == "42\n"
    assert run(python.with_name("demo-script")) == "43\n"
    assert run(python, "-c", "import importlib.metadata as m; print(m.version('demo-app'))") == "1.0+cu130\n"
    assert (tmp_path / "env" / "share" / "demo.txt").read_bytes() == b"data"


def test_retag_refuses(made: Path) -> None:
    with pytest.raises(UsageError, match="already has the requested tags and version"):
        retag(made, Wishes(python="py3"))
    renamed = made.rename(made.with_name("other-1.0-py3-none-any.whl"))
    with pytest.raises(IntegrityError, match=r"has METADATA for demo-app 1\.0"):
        retag(renamed, Wishes(python="py2"))
    with pytest.raises(HostError, match="cannot be written"):
        retag(renamed.rename(made), Wishes(python="py2"), out=made / "below-a-file")


def test_a_record_that_lies_is_not_carried_on(made: Path, tmp_path: Path) -> None:
    files = contents(made, without=()) | {"demo_app/__init__.py": FILES["demo_app/__init__.py"].replace(b"42", b"41")}
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with pytest.raises(IntegrityError, match=r"demo_app/__init__\.py"):
        retag(made, Wishes(python="py2"), out=tmp_path / "source")
    assert [path.name for path in (tmp_path / "source").iterdir()] == [STEM]


def test_the_commands(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        return int(ended.value.code or 0), *capsys.readouterr()

    code, out, _ = call("unpack", made.name, "--out", "un")
    assert (code, out) == (0, f"un/{STEM}\n")
    code, out, notes = call("pack", f"un/{STEM}", "--out", "new", "--from", made.name, "--threads", "2")
    assert (code, out) == (0, f"new/{FILENAME}\n")
    assert f"{len(FILES) - 2} of them copied from {made.name}" in notes
    with zipfile.ZipFile(tmp_path / "new" / FILENAME) as archive:
        assert archive.infolist()[0].date_time == (2023, 11, 14, 22, 13, 20)
    code, out, _ = call("retag", made.name, "--python", "+py2", "--abi=abi3", "--out", "new")
    assert (code, out) == (0, f"new/{STEM}-py2.py3-abi3-any.whl\n")
    assert call("unpack", made.name, "--out", "un")[0] == 2
    code, out, message = call("unpack", made.name, made.name, "--out", "two")
    assert (code, out) == (2, f"two/{STEM}\n"), "what was done before the error is said"
    assert "error: " in message
    for command in ("audit", "repair", "retag", "sizes", "split", "thin", "unpack"):
        code, _, message = call(command, "absent.whl")
        assert (code, "'absent.whl' does not exist" in message) == (2, True)
    assert call("retag", made.name)[0] == 2


def test_a_reader_that_is_gone_is_no_answer(made: Path) -> None:
    """Exit code 1 would mean that the audit found something."""
    for command in ("audit", "sizes"):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [sys.executable, "-m", "axletree.cli.main", command, made],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
        os.close(writing)
        assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.network
def test_an_official_wheel(tmp_path: Path) -> None:
    """What is not compressed again is the same to the byte, and all of it is what the ``wheel`` package finds."""
    official = wheel("torchvision==0.29.1")
    folder = unpack(official, out=tmp_path).folder
    peer("unpack", official, "--dest", tmp_path / "theirs")
    assert tree(folder) == tree(tmp_path / "theirs" / folder.name)
    kept = pack(folder, out=tmp_path / "kept", older=official)
    assert kept.reused == kept.files - 3
    anew = pack(folder, out=tmp_path / "anew", threads=2)
    assert contents(kept.wheel) == contents(anew.wheel)
    assert anew.size < official.stat().st_size * 1.05


@pytest.mark.parametrize(
    ("text", "epoch"), [("", 315532800), ("0", 315532800), ("1700000000", 1700000000), ("9" * 18, 10**18 - 1)]
)
def test_the_date_that_the_environment_asks_for(text: str, epoch: int) -> None:
    assert source_date_epoch({"SOURCE_DATE_EPOCH": text}) == epoch


@pytest.mark.parametrize("text", ["now", "-1", "1.5", "²", "9" * 5000])
def test_what_is_no_date(text: str) -> None:
    with pytest.raises(UsageError, match="is not a valid number of seconds since 1970"):
        source_date_epoch({"SOURCE_DATE_EPOCH": text})
