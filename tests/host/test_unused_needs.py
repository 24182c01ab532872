"""Needed libraries whose symbols are not used: compiled with ``--no-as-needed``, and in wheels of others."""

from __future__ import annotations

import re
import zipfile
from typing import TYPE_CHECKING

import pytest

from axletree.app.audit import audit_paths
from support.elfs import compile_library, need, run
from support.inputs import wheel
from support.wheels import demo_metadata, wheel_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

STUB = "int cuInit(unsigned flags) { return 100; }\nint cuCtxGetCurrent(void **context) { return 0; }\n"
"""What the stub in a CUDA toolkit stands for: libcuda.so with the SONAME libcuda.so.1."""
MODULE = "int work(void);\nint PyInit__core(void) { return work(); }\n"
PLAIN = "int work(void) { return 1; }\n"


class Linker:
    """Compiles libraries into a folder, each linked to some of those before it."""

    def __init__(self, folder: Path) -> None:
        need("gcc")
        self.folder = folder
        (folder / "demo/lib").mkdir(parents=True)
        self.library("libcuda.so.1", STUB)

    def library(self, name: str, source: str, *links: str, flags: tuple[str, ...] = ()) -> Path:
        path = self.folder / "demo" / ("lib" if name.startswith("lib") else "") / name
        found = [str(self.folder / "demo/lib" / link) for link in links]
        return compile_library(path, *flags, *found, "-Wl,-rpath,$ORIGIN:$ORIGIN/lib", source=source)

    def module(self, source: str, *links: str, flags: tuple[str, ...] = ()) -> Path:
        return self.library("_core.cpython-311-x86_64-linux-gnu.so", source, *links, flags=flags)

    def wheel(self) -> Path:
        """Everything but the driver."""
        tree = self.folder / "demo"
        files = {f"demo/{path.relative_to(tree)}": path.read_bytes() for path in tree.rglob("*.so*")}
        del files["demo/lib/libcuda.so.1"]
        wheel = self.folder / "demo-1.0-cp311-cp311-linux_x86_64.whl"
        wheel.write_bytes(wheel_bytes(files, metadata=demo_metadata("1.0"), tag="cp311-cp311-linux_x86_64"))
        return wheel


@pytest.fixture
def linker(tmp_path: Path) -> Linker:
    return Linker(tmp_path)


def found(path: Path) -> Mapping[str, str]:
    """Rule -> message, of those about what is not used or needs a driver."""
    (report,) = audit_paths([path])
    told = {
        finding.rule: f"{finding.where.rpartition('/')[2]}: {finding.message}"
        for finding in report.findings
        if finding.rule in {"dist/driver-unused", "dist/needed-unused", "dist/driver-needed"}
    }
    return {
        rule.removeprefix("dist/"): text.replace(".cpython-311-x86_64-linux-gnu", "") for rule, text in told.items()
    }


@pytest.mark.parametrize(
    ("source", "rules"),
    [
        (PLAIN, {"driver-unused": "_core.so: this file needs libcuda.so.1 from the NVIDIA driver, but uses none of its "
                 "symbols"}),
        ("int cuInit(unsigned);\nint work(void) { return cuInit(0); }\n",
         {"driver-needed": "_core.so: this file needs libcuda.so.1 from the NVIDIA driver"}),
        ("int cuInit(unsigned) __attribute__((weak));\nint work(void) { return cuInit ? cuInit(0) : 1; }\n",
         {"driver-needed": "_core.so: this file needs libcuda.so.1 from the NVIDIA driver"}),
    ],
    ids=["unused", "used", "weak"],
)  # fmt: skip
def test_the_drivers_library(source: str, rules: Mapping[str, str], linker: Linker) -> None:
    linker.module(MODULE + source, "libcuda.so.1")
    assert found(linker.wheel()) == rules
    linker.module(MODULE + source, "libcuda.so.1", flags=("-Wl,--as-needed",))
    used = "driver-needed" in rules and "weak" not in source  # for weak symbols alone no library is kept
    assert [*found(linker.wheel())] == ["driver-needed"] * used, "the linker agrees"


def test_a_folder_is_audited_alike(linker: Linker) -> None:
    linker.module(MODULE + PLAIN, "libcuda.so.1")
    (linker.folder / "demo/lib/libcuda.so.1").rename(linker.folder / "libcuda.so.1")
    assert "driver-unused" in found(linker.folder / "demo")


def test_libraries_of_the_wheel(linker: Linker) -> None:
    linker.library("libused.so", PLAIN)
    linker.library("libidle.so", "int other(void) { return 1; }\n")
    linker.module(MODULE, "libused.so", "libidle.so")
    assert found(linker.wheel()) == {
        "needed-unused": "_core.so: this file needs libidle.so, but uses none of its symbols"
    }


@pytest.mark.parametrize("case", ["interposed", "behind", "underlinked", "versioned", "weak", "aggregator", "empty"])
def test_libraries_of_the_wheel_that_are_used_or_may_be(case: str, linker: Linker, tmp_path: Path) -> None:
    """Nothing is said of any: a first library may be replaced, a third file may rely on it, and so on."""
    linker.library("libused.so", PLAIN)
    match case:
        case "interposed":  # both have it, and which is taken is decided when it runs
            linker.library("libidle.so", PLAIN)
            linker.module(MODULE, "libused.so", "libidle.so")
        case "behind":  # the symbol comes from what the library leads to
            linker.library("libidle.so", "int other(void) { return 1; }\n", "libused.so")
            linker.module(MODULE, "libidle.so", flags=("-Wl,--unresolved-symbols=ignore-all",))
        case "underlinked":  # the library of the middle does not say what it needs
            linker.library("libidle.so", "int other(void) { return 1; }\n")
            linker.library("libmiddle.so", "int other(void);\nint middle(void) { return other(); }\n")
            linker.module(MODULE + "int middle(void);\nint x(void) { return middle(); }\n", "libused.so",
                          "libmiddle.so", "libidle.so")  # fmt: skip
        case "versioned":
            (tmp_path / "map").write_text("DEMO_1 { global: other; local: *; };\n")
            flags = (f"-Wl,--version-script={tmp_path / 'map'}",)
            linker.library("libidle.so", "int other(void) { return 1; }\n", flags=flags)
            linker.module(MODULE + "int other(void);\nint x(void) { return other(); }\n", "libused.so", "libidle.so")
        case "weak":
            linker.library("libidle.so", "int other(void) { return 1; }\n")
            weak = "int other(void) __attribute__((weak));\nint x(void) { return other ? other() : 0; }\n"
            linker.module(MODULE + weak, "libused.so", "libidle.so")
        case "aggregator":  # as libtorch.so: it has no code, and is there to load others
            linker.library("libidle.so", "static int nothing;\n", "libused.so")
            linker.module(MODULE, "libused.so")
        case _:
            linker.library("libidle.so", "static int nothing;\n")
            linker.module(MODULE, "libused.so", "libidle.so")
    assert found(linker.wheel()) == {}


def test_copies_of_a_librarys_data_in_a_program_count(linker: Linker) -> None:
    linker.library("libdata.so", "int table[4] = {1, 2, 3, 4};\n")
    code = linker.folder / "main.c"
    code.write_text("extern int table[4];\nint main(void) { return table[0] - 1; }\n")
    target = linker.folder / "demo/tool.so"  # a name that the wheel of the test takes up
    run("gcc", "-no-pie", "-O1", code, "-o", target, "-Wl,-rpath,$ORIGIN/lib", linker.folder / "demo/lib/libdata.so")
    assert "R_X86_64_COPY" in run("readelf", "-rW", target)
    assert found(linker.wheel()) == {}


@pytest.mark.proof
@pytest.mark.parametrize(
    ("requirement", "count"), [("h5py==3.16.0", 25), ("decord==0.6.0", 1), ("pyarrow==26.0.1", 0), ("scipy==1.17.1", 0)]
)
def test_wheels_of_others(requirement: str, count: int, tmp_path: Path) -> None:
    """Each entry that is reported, by nm: no undefined symbol of the file is one that the library defines."""
    need("nm")
    path = wheel(requirement, python="3.11")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    libraries = {file.name: file for file in tmp_path.rglob("*.so*")}
    (report,) = audit_paths([path])
    entries = [
        (re.search(r"needs? (\S+),", finding.message), file)
        for finding in report.findings
        if finding.rule == "dist/needed-unused"
        for file in finding.evidence or (finding.where,)
    ]
    assert len(entries) == count
    for match, file in entries:
        assert match is not None
        assert not names(tmp_path / file, "--undefined-only") & names(libraries[match[1]], "--defined-only"), file


def names(path: Path, which: str) -> set[str]:
    return {line.split()[-1].partition("@")[0] for line in run("nm", "-D", which, path).splitlines()}
