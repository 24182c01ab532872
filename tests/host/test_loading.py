"""The model of the loader against the loader itself, on small graphs of libraries."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from axletree.binary.elf.edit import ElfChange
from axletree.binary.elf.facts import ElfFacts, read_elf
from axletree.host.edit import edit_elf
from axletree.package.libraries.loading import find_library, follow_loading
from axletree.package.libraries.relocate import plan_search_paths
from support.elfs import need, run

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("rpath", "runpath", "none")


def build(root: Path, path: str, *needed: str) -> Path:
    """A library that needs others, which need not be there."""
    need("gcc")
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    source = root / "source.c"
    source.write_text(f"int {re.sub(r'[^a-z]', '_', path)}(void) {{ return 1; }}\n")
    run("gcc", "-shared", "-fPIC", "-nostdlib", source, "-o", file, f"-Wl,-soname,{file.name}")
    edit_elf(file, ElfChange(add_needed=needed))
    return file


def set_path(root: Path, path: str, kind: str, *entries: str) -> None:
    edit_elf(
        root / path, ElfChange(rpath=entries if kind != "none" else (), kind="rpath" if kind == "rpath" else "runpath")
    )


def facts(root: Path) -> dict[str, ElfFacts]:
    return {str(file.relative_to(root)): read_elf(file.read_bytes()) for file in sorted(root.rglob("*.so*"))}


def loaded(root: Path, path: str, *before: str) -> list[str] | None:
    """What lies below a folder and is mapped once a library is opened, sorted; ``None``: it can't be opened."""
    code = """\
import ctypes, sys
try:
    libraries = [ctypes.CDLL(path) for path in sys.argv[1:]]
except OSError:
    raise SystemExit(7)
print(open("/proc/self/maps").read())
"""
    command = [sys.executable, "-c", code, *(str(root / each) for each in (*before, path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        assert done.returncode == 7, done.stderr
        return None
    paths = {line.split(maxsplit=5)[5] for line in done.stdout.splitlines() if f" {root}/" in line}
    return sorted(each.removeprefix(f"{root}/") for each in paths)


@pytest.mark.parametrize("top", KINDS)
@pytest.mark.parametrize("middle", KINDS)
def test_inheritance(tmp_path: Path, top: str, middle: str) -> None:
    build(tmp_path, "c/libc1.so")
    build(tmp_path, "b/libb1.so", "libc1.so")
    build(tmp_path, "a/liba1.so", "libb1.so")
    set_path(tmp_path, "a/liba1.so", top, "$ORIGIN/../b", "$ORIGIN/../c")
    set_path(tmp_path, "b/libb1.so", middle, "$ORIGIN")
    loading = follow_loading(facts(tmp_path), "a/liba1.so")
    real = loaded(tmp_path, "a/liba1.so")
    assert (real is None) == bool(loading.missing)
    if real is not None:
        assert real == sorted(["a/liba1.so", *(reach.path or "" for reach in loading.found)])


def test_a_library_is_taken_from_the_first_entry_that_has_it(tmp_path: Path) -> None:
    build(tmp_path, "one/libx1.so")
    build(tmp_path, "two/libx1.so")
    build(tmp_path, "a/liba1.so", "libx1.so")
    for entries in (("one", "two"), ("two", "one")):
        set_path(tmp_path, "a/liba1.so", "rpath", *(f"$ORIGIN/../{each}" for each in entries))
        (reach,) = follow_loading(facts(tmp_path), "a/liba1.so").found
        assert reach.path == f"{entries[0]}/libx1.so"
        assert loaded(tmp_path, "a/liba1.so") == sorted(["a/liba1.so", reach.path])


def test_a_loaded_soname_satisfies_whoever_needs_it(tmp_path: Path) -> None:
    build(tmp_path, "far/libx1.so")
    build(tmp_path, "a/liba1.so", "libx1.so")
    files = facts(tmp_path)
    assert follow_loading(files, "a/liba1.so").missing == (("libx1.so", "a/liba1.so"),)
    assert loaded(tmp_path, "a/liba1.so") is None
    reach = find_library(files, "a/liba1.so", "libx1.so", loaded={"libx1.so": None})
    assert reach is not None
    assert reach.how == "loaded"
    assert loaded(tmp_path, "a/liba1.so", "far/libx1.so") == ["a/liba1.so", "far/libx1.so"]


def test_a_renamed_file_is_not_found_by_its_soname(tmp_path: Path) -> None:
    build(tmp_path, "a/libx1.so").rename(tmp_path / "a/libx1-copy.so")
    build(tmp_path, "a/liba1.so", "libx1.so")
    set_path(tmp_path, "a/liba1.so", "rpath", "$ORIGIN")
    assert follow_loading(facts(tmp_path), "a/liba1.so").missing
    assert loaded(tmp_path, "a/liba1.so") is None


@pytest.mark.parametrize("kind", ["rpath", "runpath"])
def test_planned_paths_load_from_every_file(tmp_path: Path, kind: str) -> None:
    build(tmp_path, "core/lib/libbase1.so.2")
    build(tmp_path, "core/lib/libcore1.so", "libbase1.so.2")
    build(tmp_path, "gpu/lib/libgpu1.so", "libcore1.so", "libengine1.so")
    build(tmp_path, "engine/deep/er/libengine1.so", "libbase1.so.2")
    build(tmp_path, "core/ext1.so", "libgpu1.so", "libcore1.so")
    plan = plan_search_paths(facts(tmp_path), kind="rpath" if kind == "rpath" else "runpath")
    assert plan.unreached == ()
    for each in plan.plans:
        if each.change is not None:
            edit_elf(tmp_path / each.path, each.change)
    files = facts(tmp_path)
    assert [each.changed for each in plan_search_paths(files, kind=plan.plans[0].kind).plans] == [False] * 5
    for path in files:
        loading = follow_loading(files, path)
        assert loading.missing == ()
        assert loaded(tmp_path, path) == sorted([path, *(reach.path or "" for reach in loading.found)])
