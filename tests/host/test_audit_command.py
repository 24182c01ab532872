"""``axletree audit`` on wheels on disk: made ones, and the real ones that this machine has."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from axletree.app.audit import audit_paths
from axletree.cli.audit import command
from axletree.core.errors import AxletreeError, HostError, IntegrityError, UsageError
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.policy import MANYLINUX_POLICIES
from support.conda import PREFIX, demo, put, text
from support.inputs import official_cpu_wheel
from support.inputs import wheel as input_wheel
from support.wheels import demo_metadata, make_elf, wheel_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from axletree.check.audit import AuditReport

SIZE = re.compile(r"[\d.]+ kB")
TAG = "cp311-cp311-manylinux_2_17_x86_64"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """An extension that needs the libraries of a distribution that it requires."""
    core = make_elf(
        needed=("libbase.so.2", "libstdc++.so.6", "libc.so.6"),
        needs={"libc.so.6": ("GLIBC_2.14",), "libstdc++.so.6": ("GLIBCXX_3.4.9",)},
        undefined=("PyModule_Create2",),
        exported=("PyInit__core",),
        runpath="$ORIGIN",
    )
    files = {"demo/__init__.py": b"", "demo/_core.cpython-311-x86_64-linux-gnu.so": core}
    path = tmp_path / f"demo-1.0-{TAG}.whl"
    path.write_bytes(wheel_bytes(files, tag=TAG, metadata=demo_metadata(requires=("base==2.13.0",))))
    return path


def run(*arguments: str | Path) -> tuple[int, str]:
    """Exit code and output; an error of the tool counts as its exit code."""
    done = CliRunner().invoke(command, [str(argument) for argument in arguments], standalone_mode=False)
    if isinstance(done.exception, AxletreeError):
        return done.exception.exit_code, str(done.exception)
    if done.exception is not None:
        raise done.exception
    return done.return_value, SIZE.sub("SIZE", done.output)  # the size depends on the version of zlib


def reports(*arguments: str | Path) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = json.loads(run(*arguments)[1])["result"]["files"]
    return files


def put_conda(folder: Path, library: bytes = b"") -> Path:
    package = demo(placeholder=PREFIX, depends=("__glibc >=2.17,<3.0.a0",))
    files = [text("lib/libdemo.so", library or make_elf()), text("etc/demo", PREFIX.encode())]
    return put(folder, package, files).path


def test_libraries_of_a_conda_package_are_read(tmp_path: Path) -> None:
    code, output = run(put_conda(tmp_path, make_elf(stack=7)))
    assert code == 1
    assert "error lib/libdemo.so: " in output
    assert "[dist/stack-executable]" in output
    code, output = run(put_conda(tmp_path, b"\x7fELF"))
    assert code == 1
    assert "error lib/libdemo.so: " in output
    assert "[dist/elf-damaged]" in output
    assert "NOBODY" not in output


def test_a_library_that_would_fill_the_disk_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axletree.host.conda_code.LARGEST", 100)
    code, output = run(put_conda(tmp_path))
    assert code == 1
    assert "bytes, more than the limit of 100 [dist/elf-damaged]" in output


def test_a_conda_package_is_compared_with_its_lists(tmp_path: Path) -> None:
    path = put_conda(tmp_path)
    code, output = run(path)
    assert code == 0
    lines = output.splitlines()
    assert lines[0] == "demo-1.0-h1234567_0.conda"
    assert lines[1].startswith("  2 files, 1 of them ELF files, ")
    assert lines[2] == "  platform: a conda package for linux-64, glibc >=2.17,<3.0.a0"
    assert re.fullmatch(r"  paths compared with: known paths of \d+ packages", lines[3])
    assert lines[4:] == ["  no problems found"]
    assert reports("--json", path.parent)[0]["file"] == path.name  # the folder that it lies in
    renamed = path.rename(path.with_name("other-1.0-h1234567_0.conda"))
    with zipfile.ZipFile(renamed) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(renamed, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("demo-1.0", "other-1.0"), data)
    code, output = run(renamed)
    assert code == 1
    assert "error name: the value is 'demo' in info/index.json, but 'other' in the file name [conda/name]" in output


@pytest.mark.parametrize(("data", "how"), [(b"1", "the same content"), (b"2", "different content")])
def test_a_conda_package_is_compared_with_its_neighbours(tmp_path: Path, data: bytes, how: str) -> None:
    own = put(tmp_path / "own", demo(), [text("bin/x", b"1"), text("bin/y")]).path
    for name, files in (("tools", [text("bin/x", data)]), ("others", [text("bin/z")])):
        put(tmp_path / "channel", demo(name=name), files)
    code, output = run(own, "--neighbours", tmp_path / "channel")
    assert code == 1
    assert f"error bin/x: this file is also in tools-1.0-h1234567_0.conda, with {how} [conda/path-shared]" in output
    assert re.search(r"  paths compared with: known paths of \d+ packages, all paths of 2 packages\n", output)
    assert run(own, "--neighbours", tmp_path / "channel" / "linux-64" / "others-1.0-h1234567_0.conda")[0] == 0


def test_neighbours_that_can_not_be_compared_with(tmp_path: Path) -> None:
    own, folder = put_conda(tmp_path), tmp_path / "empty"
    folder.mkdir()
    code, output = run(own, "--neighbours", folder)
    assert (code, "the folder contains no conda packages to compare with" in output) == (2, True)
    (folder / "other-1.0-0.conda").write_bytes(b"junk")
    code, output = run(own, "--neighbours", folder)
    assert (code, "other-1.0-0.conda" in output) == (IntegrityError.exit_code, True), "not compared is not fine"


def test_headers_of_a_neighbour_are_known(tmp_path: Path) -> None:
    files = [
        text(f"include/{name}") for name in ("fmt/core.h", "pybind11/cast.h", "pybind11/eval.h", "psimd.h", "own.h")
    ]
    code, output = run(put(tmp_path, demo(), files).path)
    assert code == 1
    assert "error include/fmt/core.h: this file belongs to the conda package fmt [conda/path-of-neighbour]" in output
    assert "this file and 1 other belong to the conda package pybind11 [conda/path-of-neighbour]" in output
    assert "warning include/psimd.h: this file belongs to the project psimd [conda/path-vendored]" in output
    assert "own.h" not in output


@pytest.mark.parametrize("damage", ["cut off", "no archive", "no name"])
def test_a_conda_package_that_is_refused(tmp_path: Path, damage: str) -> None:
    path = put_conda(tmp_path)
    data = path.read_bytes()
    if damage == "no name":
        path = path.rename(path.with_name("demo.conda"))
    path.write_bytes({"cut off": data[: len(data) // 2], "no archive": b"junk"}.get(damage, data))
    code, output = run(path)
    assert code == 1
    assert "[archive/refused]" in output
    assert reports("--json", path)[0]["findings"][0]["rule"] == "archive/refused"


def audit_wheel(path: Path) -> AuditReport:
    return next(audit_paths([path]))


def test_a_good_wheel(wheel: Path, golden: Callable[[str, str], None]) -> None:
    code, output = run(wheel, "--provided-by", "base=libbase*.so.*", "--glibc", "2.28")
    assert code == 0
    golden("audit/good.txt", output)


def test_errors_make_exit_code_1(wheel: Path, golden: Callable[[str, str], None]) -> None:
    code, output = run(wheel, "--glibc", "2.12")
    assert code == 1
    golden("audit/bad.txt", output)


def test_json_is_one_line_for_all_files(wheel: Path) -> None:
    code, output = run(wheel, wheel, "--json")
    assert code == 1
    assert output.count("\n") == 1
    first, second = json.loads(output)["result"]["files"]
    assert first == second
    assert first["file"] == wheel.name
    assert [finding["rule"] for finding in first["findings"]] == ["dist/needed-unresolved"]


def test_bad_usage(wheel: Path) -> None:
    code, message = run(wheel, "--provided-by", "torch")
    assert code == UsageError.exit_code
    assert message.startswith("--provided-by: 'torch' is not of the form DIST=PATTERN\n  hint: for example")
    assert run(wheel, "--glibc", "new")[0] == UsageError.exit_code


def test_what_is_no_wheel(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    with pytest.raises(HostError, match="cannot be read"):
        audit_wheel(path)
    path.write_bytes(b"PK\x03\x04 and then nothing")
    (finding,) = audit_wheel(path).findings
    assert (finding.rule, finding.severity, finding.where) == ("archive/refused", "error", path.name)
    assert "truncated or not a ZIP archive" in finding.message


def test_names_that_would_steer_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_bytes(wheel_bytes({"demo/\x1b]0;owned\x07\x1b[31m.so": b"\x7fELF, cut off"}))
    code, output = run(path)
    assert code == 1
    assert "demo/.so: damaged ELF file" in output
    assert output.replace("\n", "").isprintable()


def test_auditwheels_policies_can_be_read() -> None:
    policies = read_shipped(MANYLINUX_POLICIES)
    names = [policy.name for policy in policies]
    assert names.index("manylinux_2_17") < names.index("manylinux_2_28")
    assert "libstdc++.so.6" in policies[0].libraries


def test_a_folder_of_wheels_and_an_unpacked_wheel_say_the_same(wheel: Path, tmp_path: Path) -> None:
    options = ("--provided-by", "base=libbase*.so.*", "--json")
    (single,) = reports(wheel, *options)
    assert reports(wheel.parent, *options) == [single]
    tree = tmp_path / "tree"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tree)
    (unpacked,) = reports(tree, *options)
    assert run(tree, *options)[0] == 0
    assert unpacked["file"] == str(tree)
    for key in ("tags", "needs", "floors", "versions", "verdict", "findings"):
        assert unpacked[key] == single[key], key
    assert run(tree)[0] == 1


def test_a_tree_without_metadata_is_judged_by_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib" / "libx.so").write_bytes(make_elf(soname="libx.so"))
    (tmp_path / "bin" / "tool").write_bytes(make_elf(needed=("libx.so",), interpreter="/lib64/ld-linux-x86-64.so.2"))
    report = next(audit_paths([tmp_path]))
    assert [(finding.rule, finding.where) for finding in report.findings] == [("dist/program-cut-off", "bin/tool")]
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match="the folder contains no wheels, conda packages or machine code"):
        list(audit_paths([empty]))


def test_a_policy_by_name(wheel: Path) -> None:
    options = ("--provided-by", "base=libbase*.so.*")
    assert run(wheel, *options, "--policy", "manylinux_2_28")[0] == 0
    code, output = run(wheel, *options, "--policy", "manylinux_2_12")
    assert code == 1
    assert "this file needs GLIBC_2.14 from libc.so.6, which is more than manylinux_2_12_x86_64 promises" in output
    code, output = run(wheel, "--policy", "manylinux_2_82")
    assert code == UsageError.exit_code
    assert "did you mean 'manylinux_2_28'?" in output
    assert "manylinux_2_5, manylinux_2_12" in output


def test_where_there_is_no_torch(wheel: Path, tmp_path: Path) -> None:
    assert run(wheel, "--torch", tmp_path)[0] == UsageError.exit_code


@pytest.mark.parametrize("requirement", ["pillow==12.3.0", "msgspec==0.22.0", "cffi==2.1.1"])
def test_auditwheel_agrees_on_the_floor(requirement: str) -> None:
    path = input_wheel(requirement)
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", path], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r'platform tag to[\s"]*(manylinux_\d+_\d+_x86_64)', shown)
    report = audit_wheel(path)
    assert found is not None
    assert report.floors == {"x86_64": found[1]}
    assert [finding for finding in report.findings if finding.severity != "info"] == []


def test_torchvision_has_two_cuda_runtimes() -> None:
    report = audit_wheel(input_wheel("torchvision==0.29.1"))
    assert report.failed
    (finding,) = [finding for finding in report.findings if finding.severity == "error"]
    assert finding.rule == "dist/cuda-runtime-twice"
    assert "torchvision/image_stable.so loads torchvision.libs/libcudart.faf08d9a.so.13" in finding.message
    assert "torchvision/_C_stable.so loads libcudart.so.13 from nvidia-cuda-runtime" in finding.message
    assert ("libcudart.so.13", "distribution", "torch") in {(n.soname, n.owner, n.via) for n in report.needs}


def test_what_is_for_some_users_only_is_no_fault() -> None:
    report = audit_wheel(input_wheel("numba==0.68.0"))
    assert [finding for finding in report.findings if finding.severity != "info"] == []
    optional = {need.soname: (need.by, need.why) for need in report.needs if need.owner == "optional"}
    assert optional == {"libtbb.so.12": ("tbb", "alternative"), "libgomp.so.1.0.0": ("", "alternative")}


def test_the_official_cpu_build_of_torch() -> None:
    report = audit_wheel(official_cpu_wheel())
    assert report.elf_files > 10
    assert report.floors == {"x86_64": "manylinux_2_28_x86_64"}
    assert report.verdict.startswith("complies with its tags; its symbols allow manylinux_2_28_x86_64 (GLIBC 2.28")
    assert {need.owner for need in report.needs} == {"wheel", "system"}
    assert not report.failed
    cut_off = [finding for finding in report.findings if finding.rule.endswith("cut-off")]
    assert [finding.where for finding in cut_off] == ["torch/bin/test_shim"]
    assert "libc10.so, libtorch.so, libtorch_cpu.so" in cut_off[0].message
    (absolute,) = [finding for finding in report.findings if finding.rule == "dist/rpath-absolute"]
    assert "this file and 68 others search /lib/intel64, /lib/intel64_win, /lib/win-x64" in absolute.message


@pytest.mark.xdist_group("torch-cuda")
def test_the_official_cuda_build_of_torch_has_nothing_wrong() -> None:
    report = audit_wheel(input_wheel("torch==2.14.1"))
    assert [finding for finding in report.findings if finding.severity != "info"] == []
    owners = {need.soname: (need.owner, need.by) for need in report.needs}
    assert owners["libcublasLt.so.13"] == ("distribution", "nvidia-cublas")
    assert owners["libcudnn.so.9"] == ("distribution", "nvidia-cudnn")
    assert owners["libcuda.so.1"] == ("driver", "NVIDIA driver")
    assert owners["libgomp.so.1"] == ("wheel", "torch/lib/libgomp.so.1")
    assert not {"nobody", "undeclared", "optional", "sibling"} & {need.owner for need in report.needs}


def test_it_says_which_file_it_is_at(wheel: Path) -> None:
    said: list[str] = []
    for number, _ in enumerate(audit_paths([wheel, wheel.parent], at_work=said.append), 1):
        assert said == [wheel.name] * number
