"""``drop-needed`` of a relocation: entries that nothing uses go, those that are used stay and are named."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from axletree.core.events import StageFinished
from axletree.core.records import StageRecord
from axletree.host.shipped_data import shipped_digest
from axletree.package.libraries.policy import PLATFORM_POLICIES
from axletree.package.libraries.providers import LIBRARY_PROVIDERS
from axletree.plan.actions.relocate import RelocateFacts, RelocateParameters
from axletree.plan.actions.spec import facts_of
from axletree.recipe.relocation import Relocate
from axletree.store.store import Store
from support.elfs import compile_library, run
from support.requests import run_action

if TYPE_CHECKING:
    from pathlib import Path

DRIVER = "int cuInit(unsigned flags) { return 100; }\nint cuDeviceGet(int *device, int which) { return 100; }\n"
USES = "int cuInit(unsigned);\nint cuDeviceGet(int *, int);\nint work(void) { return cuInit(0) + cuDeviceGet(0, 1); }\n"
IDLE = "int work(void) { return 7; }\n"
EXTRA = "int extra(void) { return 3; }\n"


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    """A folder with the driver's stub and another library of this machine."""
    folder = tmp_path / "host"
    folder.mkdir()
    compile_library(folder / "libcuda.so.1", source=DRIVER)
    compile_library(folder / "libextra.so.1", source=EXTRA)
    return folder


class Tree:
    """A tree, and how it is relocated."""

    def __init__(self, root: Path) -> None:
        self.root, self.store = root, Store.open(root / "store")
        self.folder = root / "tree"
        self.folder.mkdir()

    def library(self, name: str, source: str, *links: Path | str) -> Path:
        return compile_library(self.folder / name, *map(str, links), source=source)

    def relocate(self, *patterns: str, files: str = "**", **more: Any) -> StageRecord | StageFinished:
        for path in self.folder.glob("*.c"):
            path.unlink()
        parameters = RelocateParameters(
            tree="tree",
            relocate=Relocate(**more),
            drop_needed={files: patterns} if patterns else {},
            policy=shipped_digest(PLATFORM_POLICIES),
            providers=shipped_digest(LIBRARY_PROVIDERS),
        )
        source = self.store.ingest(self.folder)
        return run_action(self.store, "relocate", parameters, {"tree": source}, epoch=1_000_000_000)

    def done(self, *patterns: str, **more: Any) -> tuple[Path, StageRecord]:
        record = self.relocate(*patterns, **more)
        assert isinstance(record, StageRecord), record.message
        out = self.root / "out"
        self.store.materialise(record.tree, out)
        return out, record

    def refused(self, *patterns: str, **more: Any) -> str:
        finished = self.relocate(*patterns, **more)
        assert isinstance(finished, StageFinished)
        assert finished.message is not None
        return finished.message


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def needed(path: Path) -> list[str]:
    lines = run("readelf", "-d", path).splitlines()
    return [line.rpartition("[")[2].rstrip("]") for line in lines if "(NEEDED)" in line]


def test_what_is_not_used_goes_and_what_was_linked_still_works(tree: Tree, libraries: Path) -> None:
    tree.library("libidle.so", IDLE, libraries / "libcuda.so.1")
    assert "libcuda.so.1" in needed(tree.folder / "libidle.so")
    out, record = tree.done("libcuda.so.1")
    assert needed(out / "libidle.so") == ["libc.so.6"]
    assert facts_of(record, RelocateFacts).dropped == {"libidle.so": ("libcuda.so.1",)}
    assert not record.findings
    code = f"import ctypes; print(ctypes.CDLL('{out}/libidle.so').work())"
    assert subprocess.run(["python3", "-c", code], capture_output=True, text=True, check=True).stdout == "7\n"


def test_without_the_key_nothing_goes(tree: Tree, libraries: Path) -> None:
    tree.library("libidle.so", IDLE, libraries / "libcuda.so.1")
    out, record = tree.done()
    assert "libcuda.so.1" in needed(out / "libidle.so")
    assert facts_of(record, RelocateFacts).dropped == {}


def test_used_symbols_are_named(tree: Tree, libraries: Path) -> None:
    tree.library("libuses.so", USES, libraries / "libcuda.so.1")
    tree.library("libidle.so", IDLE, libraries / "libcuda.so.1")
    said = tree.refused("libcuda.so.1")
    assert (
        "libuses.so: libcuda.so.1: the file uses symbols of this library, so it cannot be dropped: cuDeviceGet, cuInit"
        in said
    )
    assert "libidle.so:" not in said
    out, _ = tree.done("libcuda.so.1", files="libidle.*")
    assert needed(out / "libidle.so") == ["libc.so.6"]
    assert "libcuda.so.1" in needed(out / "libuses.so")


def test_files_are_named_as_they_were_before(tree: Tree, libraries: Path) -> None:
    (tree.folder / "torch/lib").mkdir(parents=True)
    tree.library("torch/lib/libidle.so", IDLE, libraries / "libcuda.so.1")
    (tree.folder / "torch/lib/libidle.c").unlink()
    out, record = tree.done("libcuda.so.1", files="torch/lib/*.so", place={"torch": "libtorch"})
    assert facts_of(record, RelocateFacts).dropped == {"libtorch/lib/libidle.so": ("libcuda.so.1",)}
    assert needed(out / "libtorch/lib/libidle.so") == ["libc.so.6"]


def test_a_file_that_relies_on_another_to_load_the_library_is_named(tree: Tree, libraries: Path) -> None:
    tree.library("libuses.so", USES)
    tree.library("libidle.so", IDLE, libraries / "libcuda.so.1")
    said = tree.refused("libcuda.so.1")
    assert (
        "libuses.so: libcuda.so.1: the file uses symbols of this library (cuDeviceGet, cuInit), which libidle.so loads"
        in said
    )


def test_a_library_of_this_machine_is_read(tree: Tree, libraries: Path) -> None:
    tree.library("libidle.so", IDLE, libraries / "libextra.so.1")
    said = tree.refused("libextra.so.1")
    assert "this library was not found, so it is not known whether the file uses its symbols" in said
    out, _ = tree.done("libextra.so.1", graft_from=(str(libraries),))
    assert needed(out / "libidle.so") == ["libc.so.6"]
    tree.library("libidle.so", "int extra(void);\nint work(void) { return extra(); }\n", libraries / "libextra.so.1")
    assert "cannot be dropped: extra" in tree.refused("libextra.so.1", graft_from=(str(libraries),))


def test_libraries_of_the_tree(tree: Tree) -> None:
    extra = tree.library("libextra.so.1", EXTRA)
    tree.library("libbehind.so", "int behind(void) { return 1; }\n", extra)
    tree.library("libidle.so", IDLE, extra)
    tree.library("libuses.so", "int extra(void);\nint work(void) { return extra(); }\n", tree.folder / "libbehind.so")
    assert "libuses.so: libextra.so.1: the file uses symbols of this library (extra)" in tree.refused("libextra.so.1")
    assert "libuses.so: libbehind.so: the file uses symbols of this library" in tree.refused("libbehind.so")
    (tree.folder / "libuses.so").unlink()
    out, _ = tree.done("libextra.so.1")
    assert needed(out / "libidle.so") == needed(out / "libbehind.so") == ["libc.so.6"]


def test_symbol_versions_are_proof(tree: Tree) -> None:
    tree.library("libidle.so", "#include <math.h>\nvolatile double x;\ndouble work(void) { return cos(x); }\n", "-lm")
    said = tree.refused("libm.so.6")
    assert "libidle.so: libm.so.6: the file needs symbol versions of this library: GLIBC_" in said
    tree.library("libidle.so", IDLE, "-lm")
    out, _ = tree.done("libm.so.6")
    assert needed(out / "libidle.so") == ["libc.so.6"]


def test_a_pattern_that_removes_nothing_is_told(tree: Tree) -> None:
    tree.library("libidle.so", IDLE)
    _, record = tree.done("libcuda.so.*")
    assert [(finding.rule, finding.where) for finding in record.findings] == [("relocate/drop-idle", "libcuda.so.*")]
