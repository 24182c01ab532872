"""``axletree sdk build``: an install tree becomes wheels that pip installs, and that work without the tree."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from axletree.cli.main import main
from axletree.core.errors import HostError, IntegrityError
from axletree.host.sdk.launcher import aim, compile_launcher
from support.elfs import need, run
from support.gizmo_sdk import MANIFEST, make_gizmo

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = {
    "gizmo-2.5-py3-none-any",
    "gizmo_core-2.5-py3-none-manylinux",
    "gizmo_device_gfx1030-2.5-py3-none-manylinux",
    "gizmo_device_gfx900-2.5-py3-none-manylinux",
    "gizmo_device_gfx906-2.5-py3-none-manylinux",
    "gizmo_devel-2.5-py3-none-any",
    "gizmo_libraries-2.5-py3-none-manylinux",
    "gizmo_libraries_gfx9_0-2.5-py3-none-manylinux",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_gizmo(tmp_path_factory.mktemp("gizmo") / "prefix")


def build(tree: Path, out: Path, *options: str, manifest: str = MANIFEST) -> int:
    file = out.with_suffix(".toml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(manifest)
    with pytest.raises(SystemExit) as ended:
        main(["sdk", "build", str(file), "--prefix", str(tree), "--out", str(out), *options])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture(scope="module")
def dist(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "dist"
    assert build(tree, out) == 0
    return out


@pytest.fixture(scope="module")
def site(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pip installs for one GPU, in a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    command = (
        "install",
        "-q",
        "--no-compile",
        "--no-index",
        "--find-links",
        dist,
        "--target",
        folder,
        "gizmo[device-gfx906,devel]",
    )
    run(sys.executable, "-m", "pip", *command)
    return folder


def wheels(folder: Path) -> dict[str, Path]:
    return {path.name.partition("-")[0]: path for path in folder.glob("*.whl")}


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def shipped(folder: Path) -> Any:
    return json.loads((folder / "_sdk.json").read_text())


def test_what_comes_out(dist: Path) -> None:
    assert {re.sub(r"_\d+_\d+_x86_64$", "", path.stem) for path in dist.glob("*.whl")} == NAMES
    assert (dist / "simple/gizmo-core/index.html").exists()


def test_platform_folders_hold_files_only(dist: Path, site: Path) -> None:
    core = site / "_gizmo_core"
    assert sorted(str(path.relative_to(core)) for path in core.rglob("*") if path.is_file()) == [
        "__init__.py",
        "_sdk.json",
        "bin/alias",
        "bin/ask",
        "bin/ask-2",
        "bin/script",
        "lib/libgizmo.so.2",
        "share/gizmo/table.txt",
    ]
    for wheel in wheels(dist).values():
        with zipfile.ZipFile(wheel) as archive:
            assert not any(stat.S_ISLNK(each.external_attr >> 16) for each in archive.infolist())


def test_search_paths_are_what_is_needed(site: Path) -> None:
    need("readelf")

    def rpath(path: str) -> str:
        lines = run("readelf", "-dW", site / path).splitlines()
        assert not any("(RUNPATH)" in line for line in lines)
        return next((line.rpartition("[")[2].rstrip("]") for line in lines if "(RPATH)" in line), "")

    assert rpath("_gizmo_core/bin/ask") == "$ORIGIN/../lib"
    assert rpath("_gizmo_core/lib/libgizmo.so.2") == ""
    assert rpath("_gizmo_device_gfx906/lib/libkernels.so.1") == "$ORIGIN/../../_gizmo_core/lib"
    front = rpath("_gizmo_libraries/lib/libfront.so.3").split(":")
    folders = [f"$ORIGIN/../../_gizmo_{name}/lib" for name in ("libraries_gfx9_0", "device_gfx900", "device_gfx906")]
    assert front == [*folders, "$ORIGIN/../../_gizmo_device_gfx1030/lib"]


def without_libraries(**more: str) -> Mapping[str, str]:
    return {name: value for name, value in {**os.environ, **more}.items() if name != "LD_LIBRARY_PATH"}


def test_everything_loads_and_runs_where_it_was_installed(site: Path) -> None:
    code = f"import ctypes; print(ctypes.CDLL({str(site / '_gizmo_libraries/lib/libfront.so.3')!r}).front())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=without_libraries()
    )
    assert done.stdout == "43\n"
    for name in ("ask", "ask-2"):
        assert run(site / "_gizmo_core/bin" / name) == "42\n"


def test_a_launcher_keeps_the_name_it_was_called_by(tmp_path: Path) -> None:
    show = tmp_path / "deep/real"
    show.parent.mkdir()
    show.write_text('#!/bin/sh\ntr "\\0" " " </proc/$$/cmdline\n')
    show.chmod(0o755)
    launcher = tmp_path / "called-so"
    shutil.copy("/bin/sh", tmp_path / "deep/shell")
    launcher.write_bytes(aim(compile_launcher(os.environ), "deep/shell"))
    launcher.chmod(0o755)
    words = ["any name", "-c", 'printf "%s|" "$0" "$1" "$VALUE"', "zero", "one two"]
    done = subprocess.run(words, executable=launcher, capture_output=True, text=True, check=True, env={"VALUE": "x y"})
    assert done.stdout == "zero|one two|x y|"
    plain = subprocess.run(
        ["any name", "-c", 'tr "\\0" "|" </proc/$$/cmdline; exit 7'],
        executable=launcher,
        capture_output=True,
        text=True,
        check=False,
    )
    assert plain.stdout.startswith("any name|-c|")
    assert plain.returncode == 7


def test_a_launcher_without_its_program_says_so(tmp_path: Path) -> None:
    launcher = tmp_path / "lost"
    launcher.write_bytes(aim(compile_launcher(os.environ), "not/there"))
    launcher.chmod(0o755)
    done = subprocess.run([launcher], capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert done.stderr == f"can't start {tmp_path}/not/there: reinstall the package that it belongs to\n"


def test_launchers_need_a_compiler() -> None:
    with pytest.raises(HostError, match=r"cannot run no-such-compiler(.|\n)*CC"):
        compile_launcher({"CC": "no-such-compiler -O2"})
    with pytest.raises(HostError, match="cannot compile a launcher"):
        compile_launcher({"CC": "false"})
    with pytest.raises(IntegrityError, match="longer than the 4096 bytes"):
        aim(compile_launcher(os.environ), "x/" * 3000)


def test_gpu_packages_hold_what_their_gpus_run(dist: Path, site: Path, tree: Path) -> None:
    one = site / "_gizmo_device_gfx906"
    assert shipped(one)["targets"] == ["gfx906"]
    code = (one / "lib/libkernels.so.1").read_bytes()
    assert b"gfx906" in code
    assert b"gfx900" not in code
    assert b"gfx1030" not in code
    assert len(code) < (tree / "lib/libkernels.so.1").stat().st_size / 1.7
    with zipfile.ZipFile(wheels(dist)["gizmo_libraries_gfx9_0"]) as archive:
        family = archive.read("_gizmo_libraries_gfx9_0/lib/libkernels.so.1")
    assert b"gfx900" in family
    assert b"gfx906" in family
    assert b"gfx1030" not in family


def test_the_devel_payload(dist: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheels(dist)["gizmo_devel"]) as archive:
        archive.extract("gizmo_devel/_devel.tar", tmp_path)
    with tarfile.open(tmp_path / "gizmo_devel/_devel.tar") as payload:
        members = {member.name: member for member in payload}
    assert {name: member.linkname for name, member in members.items() if member.issym()} == {
        "bin/alias": "script",
        "bin/ask": "../../_gizmo_core/bin/ask",
        "bin/ask-2": "ask",
        "bin/script": "../../_gizmo_core/bin/script",
        "lib/libfront.so.3": "../../_gizmo_libraries/lib/libfront.so.3",
        "lib/libgizmo.so.2": "../../_gizmo_core/lib/libgizmo.so.2",
        "lib/libgizmo.so.2.5": "libgizmo.so.2",
        "lib/libkernels.so": "libkernels.so.1",
        "lib/libkernels.so.1.0": "libkernels.so.1",
        "lib64": "lib",
        "share/gizmo/table.txt": "../../../_gizmo_core/share/gizmo/table.txt",
    }
    assert [name for name, member in members.items() if member.isfile()] == [
        "include/gizmo.h",
        "lib/cmake/gizmo/gizmo-config.cmake",
    ]
    assert all(member.isdir() for name, member in members.items() if name in {"lib", "lib/cmake", "include"})


def test_console_scripts_are_the_programs_that_are_there(site: Path) -> None:
    (points,) = site.glob("gizmo_core-*.dist-info/entry_points.txt")
    assert points.read_text() == "[console_scripts]\nask = gizmo_core._cli:ask\nask-2 = gizmo_core._cli:ask_2\n"
    code = "import sys; sys.argv[0] = 'ask'; from gizmo_core._cli import ask; ask()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=without_libraries(PYTHONPATH=str(site)),
    )
    assert done.stdout == "42\n"


def test_scripts_work_without_the_selector(site: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    for name in ("_gizmo_core", "gizmo_core"):
        shutil.copytree(site / name, alone / name)
    done = subprocess.run(
        [sys.executable, "-c", "from gizmo_core._cli import ask; ask()"],
        capture_output=True,
        text=True,
        check=True,
        env=without_libraries(PYTHONPATH=str(alone)),
    )
    assert done.stdout == "42\n"


def test_same_input_same_bytes(tree: Path, dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = tmp_path / "elsewhere/prefix"
    shutil.copytree(tree, moved, symlinks=True)
    for path in moved.rglob("*"):
        if not path.is_symlink():
            os.utime(path, (1, 1))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    for threads in ("1", "3"):
        again = tmp_path / f"threads-{threads}"
        assert build(moved, again, "--threads", threads) == 0
        assert {path.name: path.read_bytes() for path in again.glob("*.whl")} == {
            path.name: path.read_bytes() for path in dist.glob("*.whl")
        }
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    dated = tmp_path / "dated"
    assert build(tree, dated) == 0
    with zipfile.ZipFile(wheels(dated)["gizmo_core"]) as archive:
        assert {each.date_time for each in archive.infolist()} == {(2023, 11, 14, 22, 13, 20)}


def test_a_second_build_leaves_what_is_there(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "dist"
    assert build(tree, out) == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert build(tree, out) == 0
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert build(tree, out, "--level", "1") == 2  # other bytes under a name that is taken
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def copied(tree: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tree, tmp_path / "broken", symlinks=True))


def refused(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], **more: Any) -> str:
    out = tmp_path / "refused"
    assert build(tree, out, **more) == 2
    assert not list(out.glob("*")) or all(path.name.startswith(".") for path in out.glob("*"))
    return capsys.readouterr().err


def test_a_link_that_leads_nowhere(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = copied(tree, tmp_path)
    (broken / "lib/libgone.so.9").symlink_to("libgone.so.9.1")
    said = refused(broken, tmp_path, capsys)
    assert "lib/libgone.so.9" in said
    assert "is a link to libgone.so.9.1, which is not in the tree" in said
    assert "[[drop]]" in said


def test_a_library_that_is_not_there(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = copied(tree, tmp_path)
    for path in broken.glob("lib/libgizmo.so*"):
        path.unlink()
    said = refused(broken, tmp_path, capsys)
    assert (
        "_gizmo_core/bin/ask: libgizmo.so.2: the file needs libgizmo.so.2, which no package installed with it provides"
        in said
    )
    assert '"libgizmo.so.2" = "package of the host"' in said


def test_a_file_that_nobody_owns(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(tree, tmp_path, capsys, manifest=MANIFEST.replace('components = ["doc"]', 'components = ["test"]'))
    assert "share/doc/gizmo/README" in said


def test_a_version_that_installers_can_t_order(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(tree, tmp_path, capsys, manifest=MANIFEST.replace('version = "2.5"', 'version = "2.5-final!"'))
    assert "2.5-final!" in said
    none = refused(tree, tmp_path, capsys, manifest=MANIFEST.replace('version = "2.5"\n', ""))
    assert "--version" in none


def test_what_hosts_must_bring_makes_it_a_plain_linux_wheel(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = copied(tree, tmp_path)
    for path in broken.glob("lib/libgizmo.so*"):
        path.unlink()
    out = tmp_path / "plain"
    assert build(broken, out, "--json", manifest=MANIFEST + '\n[system]\n"libgizmo.so.*" = "libgizmo2 (Debian)"\n') == 0
    report = json.loads(capsys.readouterr().out)["result"]
    core = next(wheel for wheel in report["wheels"] if wheel["file"].startswith("gizmo_core"))
    assert core["system"] == ["libgizmo.so.2"]
    assert core["file"].startswith("gizmo_core-2.5-py3-none-linux_")
    with zipfile.ZipFile(out / core["file"]) as archive:
        told = json.loads(archive.read("_gizmo_core/_sdk.json"))["system"]
    assert told == [{"soname": "libgizmo.so.2", "package": "libgizmo2 (Debian)", "files": ["bin/ask"]}]


def test_the_platform_can_be_told(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tag = f"manylinux_2_99_{platform.machine()}"
    monkeypatch.setenv("GIZMO_WHEEL_PLATFORM_TAG", tag)
    out = tmp_path / "told"
    assert build(tree, out) == 0
    assert wheels(out)["gizmo_core"].stem.endswith(tag)
    assert wheels(out)["gizmo"].stem.endswith("any")


@pytest.mark.parametrize(
    ("option", "text", "told"),
    [
        ("--platform-tag", "../../away", "'../../away' is not a Linux platform tag"),
        ("--platform-tag", "win_amd64", "'win_amd64' is not a Linux platform tag"),
        ("--platform-tag", "manylinux_9", "'manylinux_9' is not a Linux platform tag"),
        ("--platform-tag", "linux_riscv64", "is for riscv64, but the SDK is for "),
        ("--version", "", "'' is not a valid version (PEP 440)"),
        ("--version", "7.1.x", "'7.1.x' is not a valid version (PEP 440)"),
        ("--family", "gfx12", "gfx12: the name matches no GPU target that was built"),
    ],
)
def test_wishes_that_can_t_be_met(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, text: str, told: str
) -> None:
    assert build(tree, tmp_path / "out", option, text) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_install_hints_name_extras_that_there_are(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    local = ("--version", "2.5.dev0+ABC-1", "--level", "0")
    assert build(tree, tmp_path / "out", *local) == 0
    assert "'gizmo[libraries,devel] @ file://" in capsys.readouterr().out
    core, rest = MANIFEST.split('[[package]]\nname = "libraries"')
    left = '["lib/libkernels.*", "lib/libfront.*", "include/**", "lib/cmake/**"]'
    drop = f'[[drop]]\nfiles = {left}\nwhy = "a test"\n\n[targets]'
    manifest = core + rest[rest.index("[[drop]]") :].replace("[targets]", drop)
    assert build(tree, tmp_path / "core", *local, manifest=manifest) == 0
    assert "'gizmo @ file://" in capsys.readouterr().out
