"""Repaired wheels are installed by pip and imported where the libraries of the build machine are gone."""

import json
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from axletree.app.repair import repair_wheel
from axletree.binary.elf.facts import read_elf
from axletree.cli.main import cli
from axletree.core.errors import HostError, IntegrityError, UsageError
from axletree.host.archive import write_wheel_file
from axletree.package.sbom.read import read_bundled
from axletree.package.sbom.write import Component, render_sbom
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.metadata import create_metadata
from axletree.package.wheel.names import WheelName
from axletree.package.wheel.writer import Member
from support.envelopes import result_of

TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
MODULE = """
#include <Python.h>
int one(void);
static PyObject* call(PyObject* self, PyObject* args) { return PyLong_FromLong(one()); }
static PyMethodDef methods[] = {{"call", call, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_core", 0, -1, methods};
PyMODINIT_FUNC PyInit__core(void) { return PyModule_Create(&module); }
"""


def cc(folder: Path, *arguments: str) -> None:
    subprocess.run(["cc", "-shared", "-fPIC", *arguments], cwd=folder, check=True)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An extension module that needs libone, which needs libtwo by a symbol version."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "two.c").write_text("int two(void) { return 2; }\n")
    (folder / "two.map").write_text("TWO_1.0 { global: two; local: *; };\n")
    (folder / "one.c").write_text("int two(void); int one(void) { return two() - 1; }\n")
    (folder / "core.c").write_text(MODULE)
    cc(folder, "two.c", "-Wl,-soname,libtwo.so.2", "-Wl,--version-script=two.map", "-o", "libtwo.so.2")
    cc(folder, "one.c", "libtwo.so.2", "-Wl,-soname,libone.so.1", f"-Wl,-rpath,{folder}", "-o", "libone.so.1")
    include = sysconfig.get_paths()["include"]
    cc(folder, f"-I{include}", "core.c", "libone.so.1", "-Wl,--allow-shlib-undefined", "-o", "_core.so")
    return folder


def make_wheel(
    folder: Path, files: dict[str, bytes], *, requires: tuple[str, ...] = (), platform: str = "linux_x86_64"
) -> Path:
    name = WheelName(project="demo", version="1.0", python=TAG, abi=TAG, platform=platform)
    members = [Member(path=path, data=data, executable=path.endswith(".so")) for path, data in files.items()]
    return write_wheel_file(
        folder,
        name,
        members,
        metadata=create_metadata(name="demo", version="1.0", requires=requires),
        wheel_info=WheelInfo(tags=name.tags, purelib=False),
    ).path


@pytest.fixture
def broken(libraries: Path, tmp_path: Path) -> Path:
    core = (libraries / "_core.so").read_bytes()
    return make_wheel(tmp_path, {"demo/__init__.py": b"", "demo/_core.so": core, "demo/data.txt": b"x" * 5000})


def importable(wheel: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    venv.create(folder, with_pip=False)
    python = folder / "bin/python"
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        str(wheel),
    ]
    subprocess.run(install, check=True)
    return subprocess.run(
        [python, "-c", "from demo import _core; print(_core.call())"], capture_output=True, text=True, check=False
    )


def test_a_library_and_what_it_needs_are_taken_in_and_found(libraries: Path, broken: Path, tmp_path: Path) -> None:
    assert "cannot open shared object file" in importable(broken, tmp_path / "before").stderr
    result = repair_wheel(broken, tmp_path / "out", library_path=[libraries])
    names = {graft.soname: graft.path.removeprefix("demo.libs/") for graft in result.grafts}
    assert names.keys() == {"libone.so.1", "libtwo.so.2"}
    assert result.platform.startswith("manylinux_2_")
    with zipfile.ZipFile(result.path) as archive:
        assert archive.testzip() is None
        for graft in result.grafts:
            facts = read_elf(archive.read(graft.path))
            assert facts.soname == names[graft.soname]
        one = read_elf(archive.read(f"demo.libs/{names['libone.so.1']}"))
        assert names["libtwo.so.2"] in one.needed
        assert [need.file for need in one.versions_needed if "TWO_1.0" in need.versions] == [names["libtwo.so.2"]]
        assert one.rpath == ("$ORIGIN",)
        core = read_elf(archive.read("demo/_core.so"))
        assert core.rpath[0] == "$ORIGIN/../demo.libs"
    # The libraries of the build have other names; nothing else could be loaded in their place.
    done = importable(result.path, tmp_path / "after")
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_the_tag_is_auditwheels(libraries: Path, broken: Path, tmp_path: Path) -> None:
    result = repair_wheel(broken, tmp_path / "out", library_path=[libraries])
    show = [sys.executable, "-m", "auditwheel", "show", str(result.path)]
    told = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    assert result.platform.split(".")[0] in told


def test_repairing_again_changes_nothing(libraries: Path, broken: Path, tmp_path: Path) -> None:
    first = repair_wheel(broken, tmp_path / "one", library_path=[libraries])
    second = repair_wheel(first.path, tmp_path / "two")
    assert second.grafts == ()
    assert second.left == ()
    assert second.path.read_bytes() == first.path.read_bytes()


def test_members_that_stay_are_copied_as_they_are(libraries: Path, broken: Path, tmp_path: Path) -> None:
    result = repair_wheel(broken, tmp_path / "out", library_path=[libraries])
    with zipfile.ZipFile(broken) as old, zipfile.ZipFile(result.path) as new:
        for name in ("demo/data.txt", "demo/__init__.py"):
            before, after = old.getinfo(name), new.getinfo(name)
            assert (before.CRC, before.compress_size) == (after.CRC, after.compress_size)


def test_a_missing_library_is_named_with_the_file_that_needs_it(broken: Path, tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="neither in the wheel nor on this machine") as caught:
        repair_wheel(broken, tmp_path / "out")
    (problem,) = caught.value.problems
    assert (problem.file, problem.key) == ("demo/_core.so", "libone.so.1")
    assert not (tmp_path / "out").exists()


def test_a_large_library_is_refused(libraries: Path, broken: Path, tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="exceeds the limit") as caught:
        repair_wheel(broken, tmp_path / "out", library_path=[libraries], max_graft=1000)
    assert {problem.key for problem in caught.value.problems} == {"libone.so.1", "libtwo.so.2"}


def test_a_policy_that_cannot_be_reached_names_the_symbols(tmp_path: Path) -> None:
    (tmp_path / "m.c").write_text("#include <math.h>\ndouble f(double x, double y) { return pow(x, y); }\n")
    cc(tmp_path, "m.c", "-lm", "-o", "m.so")  # pow has its version since glibc 2.29
    wheel = make_wheel(tmp_path, {"demo/m.so": (tmp_path / "m.so").read_bytes()})
    with pytest.raises(IntegrityError, match=r"GLIBC_2\.29") as caught:
        repair_wheel(wheel, tmp_path / "out", policy="manylinux_2_17")
    assert caught.value.problems[0].file == "demo/m.so"
    assert "the lowest tag for this wheel is manylinux_2_31" in str(caught.value)
    assert repair_wheel(wheel, tmp_path / "out", policy="manylinux_2_31").platform == "manylinux_2_31_x86_64"
    with pytest.raises(UsageError, match="manylinux_2_18"):
        repair_wheel(wheel, tmp_path / "out", policy="manylinux_2_18")


@pytest.mark.parametrize(
    ("requires", "soname", "owner", "declared"),
    [
        (("torch==2.13.0",), "libtorch_cpu.so", "torch", True),
        ((), "libtorch_cpu.so", "torch", False),
        (("nvidia-cublas-cu12",), "libcublas.so.12", "nvidia-cublas", True),
        ((), "libcuda.so.1", "NVIDIA driver", True),
        (("rocm-sdk-core",), "libamdhip64.so.9", "rocm-sdk-core", True),
    ],
)
def test_what_others_own_is_left_to_them(
    tmp_path: Path,
    requires: tuple[str, ...],
    soname: str,
    owner: str,
    declared: bool,  # noqa: FBT001
) -> None:
    (tmp_path / "x.c").write_text("int x(void) { return 0; }\n")
    cc(tmp_path, "x.c", f"-Wl,-soname,{soname}", "-o", soname)
    (tmp_path / "y.c").write_text("int x(void); int y(void) { return x(); }\n")
    cc(tmp_path, "y.c", soname, "-o", "y.so")
    wheel = make_wheel(tmp_path, {"demo/y.so": (tmp_path / "y.so").read_bytes()}, requires=requires)
    result = repair_wheel(wheel, tmp_path / "out", library_path=[tmp_path])
    assert result.grafts == ()
    assert [(left.soname, left.owner, left.declared) for left in result.left] == [(soname, owner, declared)]


def test_the_openmp_runtime_is_torchs_for_who_links_torch(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text("int x(void) { return 0; }\n")
    cc(tmp_path, "x.c", "-Wl,-soname,libc10.so", "-o", "libc10.so")
    source = "int omp_get_max_threads(void); int x(void); int y(void) { return omp_get_max_threads() + x(); }\n"
    (tmp_path / "y.c").write_text(source)
    cc(tmp_path, "y.c", "libc10.so", "-fopenmp", "-o", "with.so")
    (tmp_path / "z.c").write_text(source.replace("int x(void);", "static int x(void) { return 0; }"))
    cc(tmp_path, "z.c", "-fopenmp", "-o", "without.so")
    wheel = make_wheel(tmp_path, {"demo/y.so": (tmp_path / "with.so").read_bytes()}, requires=("torch",))
    with_torch = repair_wheel(wheel, tmp_path / "out")
    assert {left.soname: left.owner for left in with_torch.left} == {"libc10.so": "torch", "libgomp.so.1": "torch"}
    wheel = make_wheel(tmp_path, {"demo/z.so": (tmp_path / "without.so").read_bytes()})
    without = repair_wheel(wheel, tmp_path / "out")
    assert [graft.soname for graft in without.grafts] == ["libgomp.so.1"]


def test_the_bill_of_materials_says_where_a_library_came_from(tmp_path: Path) -> None:
    (tmp_path / "z.c").write_text("int omp_get_max_threads(void); int z(void) { return omp_get_max_threads(); }\n")
    cc(tmp_path, "z.c", "-fopenmp", "-o", "z.so")
    wheel = make_wheel(tmp_path, {"demo/z.so": (tmp_path / "z.so").read_bytes()}, requires=("numpy==2.0",))
    result = repair_wheel(wheel, tmp_path / "out")
    (graft,) = result.grafts
    with zipfile.ZipFile(result.path) as archive:
        document = json.loads(archive.read("demo-1.0.dist-info/sboms/axletree.cdx.json"))
    bundled, required = document["components"]
    assert bundled["name"] == "libgomp.so.1"
    assert bundled["hashes"][0]["content"] == graft.sha256
    assert bundled["evidence"]["occurrences"] == [{"location": graft.path}]
    if graft.package:
        assert bundled["purl"].startswith(f"pkg:deb/debian/{graft.package}@")
    assert required["purl"] == "pkg:pypi/numpy@2.0"


def test_what_an_earlier_bill_names_is_named_again(libraries: Path, broken: Path, tmp_path: Path) -> None:
    """A library that came in when the wheel's tree was relocated is still there after a repair."""
    rivet = Component(name="librivet.so.2", version="2.1", origin="bundled", paths=("demo/lib/librivet-1a.so.2",))
    earlier = render_sbom(Component(name="demo", origin="bundled"), [rivet], epoch=0)
    with zipfile.ZipFile(broken) as source:
        files = {name: source.read(name) for name in source.namelist() if ".dist-info/" not in name}
    files |= {"demo-1.0.dist-info/sboms/axletree.cdx.json": earlier, rivet.paths[0]: b""}
    result = repair_wheel(make_wheel(tmp_path / "given", files), tmp_path / "out", library_path=[libraries])
    with zipfile.ZipFile(result.path) as archive:
        document = archive.read("demo-1.0.dist-info/sboms/axletree.cdx.json")
    first, *others = read_bundled(document, file="x")
    assert first == rivet
    assert [other.name for other in others] == [graft.soname for graft in result.grafts] != []


def test_a_metadata_folder_that_is_not_normalised_is_renamed(libraries: Path, broken: Path, tmp_path: Path) -> None:
    """Older tools called it ``Demo-1.0.dist-info``."""
    old = tmp_path / "old" / broken.name
    old.parent.mkdir()
    with zipfile.ZipFile(broken) as source, zipfile.ZipFile(old, "w") as target:
        for info in source.infolist():
            data = source.read(info).replace(b"demo-1.0.dist-info", b"Demo-1.0.dist-info")
            target.writestr(info.filename.replace("demo-1.0.dist-info", "Demo-1.0.dist-info"), data)
    result = repair_wheel(old, tmp_path / "out", library_path=[libraries])
    with zipfile.ZipFile(result.path) as archive:
        assert not [name for name in archive.namelist() if name.startswith("Demo-")]
    assert importable(result.path, tmp_path / "venv").stdout == "1\n"


def test_a_folder_that_can_not_be_made_is_named(libraries: Path, broken: Path, tmp_path: Path) -> None:
    (tmp_path / "data.txt").touch()
    with pytest.raises(HostError, match=r"data\.txt/demo-.*cannot be written"):
        repair_wheel(broken, tmp_path / "data.txt", library_path=[libraries])


def test_other_systems_wheels_are_answered_clearly(tmp_path: Path) -> None:
    macho = bytes.fromhex("cffaedfe0c000001") + bytes(4096)
    wheel = make_wheel(tmp_path, {"demo/_core.so": macho}, platform="macosx_11_0_arm64")
    with pytest.raises(IntegrityError, match="is not a Linux wheel"):
        repair_wheel(wheel, tmp_path / "out")


def test_the_command_tells_what_it_did(libraries: Path, broken: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["repair", str(broken), "--out", str(out), "--library-path", str(libraries)]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert "  copied " in done.output
    assert "demo.libs/libone-" in done.output
    done = CliRunner().invoke(cli, [*arguments, "--json"], catch_exceptions=False)
    assert {graft["soname"] for graft in result_of(done.output)["wheels"][0]["grafts"]} == {
        "libone.so.1",
        "libtwo.so.2",
    }
    with pytest.raises(UsageError, match="is not a size"):
        CliRunner().invoke(cli, [*arguments, "--max-graft", "big"], catch_exceptions=False)
