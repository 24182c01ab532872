"""Conda packages on disk: rattler indexes, solves and installs them, conda's tools unpack them, Python imports them."""

import asyncio
import hashlib
import json
import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conda_package_handling import api  # type: ignore[import-untyped]
from conda_package_streaming import package_streaming  # type: ignore[import-untyped]
from rattler.package_streaming import PackageArchive

from axletree.binary.zip import records as zip_records
from axletree.binary.zip.directory import read_directory
from axletree.core.errors import AxletreeError, HostError, IntegrityError, Problem
from axletree.host.archive import map_file
from axletree.host.conda import read_conda, write_conda_file
from axletree.host.conda_pyc import compile_pyc
from axletree.host.interpreters import find_interpreter
from axletree.package import tar
from axletree.package.conda.check import check_conda
from axletree.package.conda.dist import conda_package_from_dist
from axletree.package.conda.model import CondaFile, RunExports
from axletree.package.conda.names import pin_exact
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.repack import packed_members
from axletree.package.wheel.scan import scan_wheel
from axletree.package.wheel.writer import Member
from support.conda import PREFIX, demo, install, put, put_python, solve, text
from support.inputs import wheel
from support.wheels import demo_metadata

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
CACHE_TAG = f"cpython-{sys.version_info[0]}{sys.version_info[1]}"


@pytest.fixture
def channel(tmp_path: Path) -> Path:
    folder = tmp_path / "channel"
    folder.mkdir()
    put_python(folder, PYTHON)
    return folder


def with_compiled(files: tuple[CondaFile, ...], threads: int = 2) -> tuple[CondaFile, ...]:
    interpreter = find_interpreter(PYTHON, environ=os.environ)
    return (*files, *compile_pyc(files, interpreter, python=PYTHON, environ=os.environ, threads=threads).files)


def run_python(prefix: Path, code: str) -> str:
    """Run code by the prefix's Python, which is this test's and so must be told where the prefix's modules are."""
    site = prefix / "lib" / f"python{PYTHON}" / "site-packages"
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [prefix / "bin" / "python", "-S", "-c", code], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_wheel_becomes_a_package_that_rattler_installs_and_python_imports(channel: Path, tmp_path: Path) -> None:
    points = b"[console_scripts]\ndemo = demo.cli:main\n"
    members = [
        Member(path="demo/__init__.py", data=b"x = 1\n"),
        Member(path="demo/cli.py", data=b"def main():\n    print('hello')\n"),
        Member(path="demo-1.0.dist-info/entry_points.txt", data=points),
        Member(path="demo-1.0.data/data/etc/demo.cfg", data=b"a = 1\n"),
    ]
    info = WheelInfo(tags=(f"{TAG}-{TAG}-manylinux_2_17_x86_64",), purelib=False)
    package, files = conda_package_from_dist(members, demo_metadata(), info, subdir="linux-64", python=PYTHON)
    put(channel, package, with_compiled(files))
    prefix = tmp_path / "prefix"
    assert install(channel, prefix, "demo", cache=tmp_path / "cache") == ["demo", "python", "python_abi"]
    assert run_python(prefix, "import demo.cli; demo.cli.main(); print(demo.__cached__)").splitlines()[0] == "hello"
    assert (
        run_python(prefix, "import importlib.metadata as m; print(m.distribution('demo').read_text('INSTALLER'))")
        == "conda"
    )
    script = prefix / "bin" / "demo"
    assert script.read_text().splitlines()[0] == f"#!{prefix}/bin/python{PYTHON}"
    assert script.stat().st_mode & stat.S_IXUSR
    record = json.loads(next((prefix / "conda-meta").glob("demo-*.json")).read_text())
    assert "bin/demo" in record["files"]


def test_compiled_files_hold_whatever_date_the_installer_gives_the_source(channel: Path, tmp_path: Path) -> None:
    members = [Member(path="demo/__init__.py", data=b"x = 'source'\n")]
    info = WheelInfo(tags=("py3-none-any",), purelib=True)
    package, files = conda_package_from_dist(members, demo_metadata(), info, subdir="linux-64", python=PYTHON)
    put(channel, package, with_compiled(files), epoch=1_600_000_000)
    prefix = tmp_path / "prefix"
    install(channel, prefix, "demo", cache=tmp_path / "cache")
    source = prefix / "lib" / f"python{PYTHON}" / "site-packages" / "demo" / "__init__.py"
    compiled = source.parent / "__pycache__" / f"__init__.{CACHE_TAG}.pyc"
    data = compiled.read_bytes()
    assert data[4:8] == b"\3\0\0\0"  # PEP 552: a hash, to be checked
    assert data.count(b"source") == 1
    compiled.unlink()
    compiled.write_bytes(data.replace(b"source", b"cached"))  # now it can be told which of the two answers
    for date in (0, 1_600_000_000, 2_000_000_000):
        os.utime(source, (date, date))
        assert run_python(prefix, "import demo; print(demo.x)") == "cached"
    source.unlink()
    source.write_text("x = 'edited'\n")
    assert run_python(prefix, "import demo; print(demo.x)") == "edited"


def test_one_package_for_every_python(channel: Path, tmp_path: Path) -> None:
    members = [Member(path="torch/lib/libtorch.so", data=b"\x7fELF"), Member(path="demo.py", data=b"x = 5\n")]
    info = WheelInfo(tags=("py3-none-manylinux_2_17_x86_64",), purelib=False)
    package, files = conda_package_from_dist(members, demo_metadata(), info, subdir="linux-64")
    put(channel, package, files)
    prefix = tmp_path / "prefix"
    install(channel, prefix, "demo", cache=tmp_path / "cache")
    assert (prefix / "lib" / f"python{PYTHON}" / "site-packages" / "torch" / "lib" / "libtorch.so").is_file()
    assert run_python(prefix, "import demo; print(demo.x)") == "5"


def test_entry_points_of_noarch_packages_become_scripts(channel: Path, tmp_path: Path) -> None:
    members = [
        Member(path="demo.py", data=b"def main():\n    print('hello')\n"),
        Member(path="demo-1.0.dist-info/entry_points.txt", data=b"[console_scripts]\ndemo = demo:main\n"),
        Member(path="demo-1.0.data/scripts/tool", data=b"#!python\nprint('tool')\n"),
    ]
    info = WheelInfo(tags=("py3-none-any",), purelib=True)
    package, files = conda_package_from_dist(members, demo_metadata(), info, subdir="noarch")
    put(channel, package, files)
    prefix = tmp_path / "prefix"
    install(channel, prefix, "demo", cache=tmp_path / "cache")
    assert (prefix / "bin" / "demo").is_file()
    assert str(prefix) in (prefix / "bin" / "tool").read_text()


def test_prefixes_are_replaced_in_texts_and_binaries(channel: Path, tmp_path: Path) -> None:
    binary = b"\0" + PREFIX.encode() + b"/share\0next\0"
    files = [
        text("etc/demo.cfg", f"root = {PREFIX}/etc\n".encode()),
        text("lib/demo.so", binary),
        text("etc/with space", PREFIX.encode()),
        CondaFile(path="lib/demo.so.1", link="demo.so"),
    ]
    put(channel, demo(placeholder=PREFIX, binary_prefix=("lib/*",)), files)
    prefix = tmp_path / "prefix"
    install(channel, prefix, "demo", cache=tmp_path / "cache")
    assert (prefix / "etc" / "demo.cfg").read_text() == f"root = {prefix}/etc\n"
    assert (prefix / "etc" / "with space").read_text() == str(prefix)
    found = (prefix / "lib" / "demo.so").read_bytes()
    assert len(found) == len(binary)
    assert found.startswith(b"\0" + os.fsencode(prefix) + b"/share\0")
    assert found.endswith(b"next\0")
    assert (prefix / "lib" / "demo.so.1").readlink() == Path("demo.so")


def test_the_solver_sees_what_is_asked_of_the_system_and_of_siblings(channel: Path) -> None:
    for cuda, number in (("129", 0), ("130", 10)):
        lib = demo(
            name="libdemo",
            build=f"cuda{cuda}_h1111111_{number}",
            build_number=number,
            depends=(f"__cuda >={cuda[:2]}",),
            run_exports=RunExports(weak=("libdemo >=1.0,<1.1.0a0",)),
        )
        put(channel, lib, [text("lib/l")])
        put(channel, demo(build=f"cuda{cuda}_h2222222_{number}", build_number=number, depends=(pin_exact(lib),)), [])

    def chosen(cuda: str) -> list[str]:
        return sorted(str(record.build) for record in solve(channel, "demo", virtual={"__cuda": cuda}))

    assert chosen("12.9") == ["cuda129_h1111111_0", "cuda129_h2222222_0"]
    assert chosen("13.1") == ["cuda130_h1111111_10", "cuda130_h2222222_10"]
    repodata = json.loads((channel / "linux-64" / "repodata.json").read_text())["packages.conda"]
    assert len(repodata) == 5


def test_other_tools_read_the_same(tmp_path: Path) -> None:
    content = {"lib/long/" + "name" * 60: b"1", "lib/ä": b"2", "bin/run": b"#!/bin/sh\n"}
    files = [text(path, data, executable=path.startswith("bin")) for path, data in content.items()]
    exports = RunExports(weak=("demo >=1.0",), strong=("demo",))
    package = demo(run_exports=exports, about=demo().about, depends=("a >=1",), track_features=("x", "y"))
    written = write_conda_file(tmp_path, package, files, epoch=1_700_000_000)
    folder = tmp_path / "unpacked"
    api.extract(str(written.path), str(folder))
    assert {path: (folder / path).read_bytes() for path in content} == content
    assert (folder / "bin" / "run").stat().st_mode & 0o777 == 0o755
    assert (folder / "bin" / "run").stat().st_mtime == 1_700_000_000

    async def read() -> tuple[list[str], object, object]:
        archive = await PackageArchive.from_path(written.path)
        paths, index, run_exports = (
            await archive.paths_json(),
            await archive.index_json(),
            await archive.run_exports_json(),
        )
        return [str(entry.relative_path) for entry in paths.paths], index, run_exports

    names, index, run_exports = asyncio.run(read())
    assert names == sorted(content)
    assert str(index.build) == package.build  # type: ignore[attr-defined]
    assert index.track_features == ["x", "y"]  # type: ignore[attr-defined]
    assert run_exports.weak == ["demo >=1.0"]  # type: ignore[attr-defined]


def test_packages_of_condas_own_tools_are_read_and_found_sound(tmp_path: Path) -> None:
    mine = write_conda_file(tmp_path, demo(), [text("lib/a"), CondaFile(path="lib/b", link="a")])
    folder = tmp_path / "unpacked"
    api.extract(str(mine.path), str(folder))
    for extension in (".conda", ".tar.bz2"):
        out = tmp_path / f"out{extension}"
        out.mkdir()
        api.create(str(folder), None, str(out / f"{demo().stem}{extension}"))
        facts = read_conda(out / f"{demo().stem}{extension}")
        assert check_conda(facts) == ()
        assert {m.path: m.sha256 for m in facts.members} == {m.path: m.sha256 for m in read_conda(mine.path).members}


def test_what_is_read_only_when_its_turn_comes(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"1" * 3_000_000)

    def read() -> Iterator[bytes]:
        with (tmp_path / "large").open("rb") as file:
            while data := file.read(1 << 20):
                yield data

    files = (
        CondaFile(path="opt/.hidden", data=read, size=3_000_000),
        CondaFile(path="opt/bin/run", data=b"#!/bin/sh\n", executable=True),
        CondaFile(path="opt/link", link="bin"),
    )
    one = write_conda_file(tmp_path, demo(), files, threads=1)
    assert [(path.path, path.size_in_bytes) for path in one.facts.paths or ()] == [
        ("opt/.hidden", 3_000_000),
        ("opt/bin/run", 10),
        ("opt/link", 3),
    ]
    data = one.path.read_bytes()
    assert one.sha256 == hashlib.sha256(data).hexdigest()
    write_conda_file(tmp_path, demo(), files, threads=3)
    assert one.path.read_bytes() == data


def test_nothing_half_written_stays(tmp_path: Path) -> None:
    def gone() -> Iterator[bytes]:
        yield b"12"
        raise HostError(Problem(message="gone"))

    for read in (gone, lambda: iter([b"123"]), lambda: iter([b"123456"])):
        with pytest.raises(AxletreeError):
            write_conda_file(tmp_path, demo(), [CondaFile(path="a", data=read, size=5)])
        assert list(tmp_path.iterdir()) == []


def test_what_is_on_disk_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    first = write_conda_file(tmp_path, demo(), [text("a")])
    data = first.path.read_bytes()
    with pytest.raises(IntegrityError):
        write_conda_file(tmp_path, demo(), [CondaFile(path="a", data=lambda: [b"1"], size=2)])
    assert first.path.read_bytes() == data


def test_compiling_gives_the_same_bytes_however_many_at_once() -> None:
    site = f"lib/python{PYTHON}/site-packages"
    files = [
        text(f"{site}/m{number}.py", f"def f(a, b={number}):\n    return {{'x', 'y', {number}}}, a.name\n".encode())
        for number in range(8)
    ]
    files += [text(f"{site}/broken.py", b"print 'x'\n"), text(f"{site}/placed.py", f"p = '{PREFIX}'\n".encode())]
    files += [text(f"{site}/null.py", b"a = 1\0"), text(f"{site}/latin.py", b"# -*- coding: latin-1 -*-\nx = '\xe4'\n")]
    interpreter = find_interpreter(PYTHON, environ=os.environ)
    runs = [
        compile_pyc(order, interpreter, python=PYTHON, placeholder=PREFIX, environ=os.environ, threads=threads)
        for threads, order in ((1, files), (1, files[::-1]), (3, files))
    ]
    assert runs[0] == runs[1] == runs[2]
    assert [path.rpartition("/")[2] for path, _ in runs[0].skipped] == ["broken.py", "null.py", "placed.py"]
    assert "SyntaxError" in runs[0].skipped[0][1]
    assert len(runs[0].files) == 9
    with pytest.raises(HostError, match=r"compiling files for 3\.9 requires that version"):
        compile_pyc(files, interpreter, python="3.9", environ=os.environ)


@pytest.mark.slow
def test_a_real_wheel_of_machine_code(channel: Path, tmp_path: Path) -> None:
    path = wheel("pillow==12.3.0")
    view = map_file(path)
    facts = scan_wheel(view, filename=path.name, only_metadata=True).wheel
    assert facts.metadata
    assert facts.wheel_info
    members = packed_members(
        view, read_directory(view, archive=path.name), facts.record or (), folder=facts.dist_info, archive=path.name
    )
    package, files = conda_package_from_dist(
        members, facts.metadata, facts.wheel_info, subdir="linux-64", python=PYTHON
    )
    written = put(channel, package, with_compiled(files), level=3, threads=2)
    assert check_conda(read_conda(written.path)) == ()
    prefix = tmp_path / "prefix"
    install(channel, prefix, "pillow", cache=tmp_path / "cache")
    code = "from PIL import Image; image = Image.new('L', (3, 2), 7); print(image.tobytes().hex(), Image.__cached__)"
    pixels, cached = run_python(prefix, code).split()
    assert pixels == "07" * 6
    assert Path(cached).is_file()


def test_a_metapackage_has_no_files(channel: Path, tmp_path: Path) -> None:
    put(channel, demo(name="demo-gpu", subdir="noarch", noarch="generic", depends=("python",)), [])
    assert install(channel, tmp_path / "prefix", "demo-gpu", cache=tmp_path / "cache") == ["demo-gpu", "python"]


def test_others_read_what_only_huge_packages_have(
    channel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tar, "_MAX_OCTAL", 1)  # every size as one over 8 GiB
    monkeypatch.setattr(zip_records, "_SLACK", 1 << 33)  # every member as one that may pass 4 GiB
    files = [text("lib/a", b"x" * 100_000), text("lib/" + "n" * 200 + "/" + "m" * 200, b"22")]
    written = put(channel, demo(), files)
    prefix = tmp_path / "prefix"
    install(channel, prefix, "demo", cache=tmp_path / "cache")
    assert all((prefix / file.path).read_bytes() == file.data for file in files)
    api.extract(str(written.path), str(tmp_path / "unpacked"))
    assert all((tmp_path / "unpacked" / file.path).read_bytes() == file.data for file in files)


@pytest.mark.proof
def test_a_package_beyond_four_gib(tmp_path: Path) -> None:
    block = os.urandom(64 << 20)  # further apart than the compressor looks back
    huge = CondaFile(path="lib/huge", data=lambda: [block] * 72, size=72 * len(block))
    written = write_conda_file(tmp_path, demo(), [huge, text("lib/z")], level=1, threads=2)
    assert written.size > 4 << 30
    with zipfile.ZipFile(written.path) as archive:
        assert max(member.file_size for member in archive.infolist()) > 4 << 30
    names = [member.name for _, member in package_streaming.stream_conda_component(str(written.path), component="pkg")]
    assert names == ["lib/huge", "lib/z"]

    async def read() -> object:
        return (await (await PackageArchive.from_path(written.path)).index_json()).build

    assert str(asyncio.run(read())) == demo().build
