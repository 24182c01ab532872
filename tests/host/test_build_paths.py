"""Search paths that lead into the build's own interpreter or store are gone from what is packed."""

from __future__ import annotations

import sys
import sysconfig
import zipfile
from typing import TYPE_CHECKING

import pytest

from axletree.binary.elf.facts import read_elf
from axletree.check.audit import audit_buffer
from axletree.core.events import StageFinished
from axletree.plan.actions.pack import WheelParameters
from axletree.plan.actions.packages import Described, Taken, TreePart
from axletree.store.store import Store
from support.elfs import need, run
from support.requests import run_action
from support.store import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.binary.elf.facts import ElfFacts

PYTHON = "/home/ada/.pyenv/versions/3.11.7"
BUILD = f"/srv/store/environments/{'0123456789ab' * 2}/lib"
VENDOR = "/opt/rocm/lib"
CODE = """\
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_core", NULL, -1, NULL};
PyMODINIT_FUNC PyInit__core(void) { return PyModule_Create(&module); }
"""
MAKERS = ["gcc", "gcc -fuse-ld=gold", "gcc -fuse-ld=lld", "clang"]
TAGS = ["rpath", "runpath"]


def compiled(folder: Path, maker: str, *entries: str, tag: str = "runpath") -> bytes:
    """An extension module with a search path, from a real compiler and linker."""
    words = maker.split()
    need(words[0], *(word.replace("-fuse-ld=", "ld.") for word in words[1:]))
    (folder / "core.c").write_text(CODE)
    tags = "-Wl,--enable-new-dtags" if tag == "runpath" else "-Wl,--disable-new-dtags"
    paths = [f"-Wl,-rpath,{entry}" for entry in entries]
    include = f"-I{sysconfig.get_paths()['include']}"
    run(*words, "-shared", "-fPIC", include, folder / "core.c", "-o", folder / "core.so", tags, *paths)
    return (folder / "core.so").read_bytes()


def packed(tmp_path: Path, extension: bytes, *, interpreters: tuple[str, ...] = (PYTHON,)) -> tuple[Path, str]:
    """The wheel of a tree with an extension module, and the log."""
    store = Store.open(tmp_path / "store")
    name = f"small/_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    source = store.ingest(write_files(tmp_path / "tree", {"small/__init__.py": b"", name: extension}))
    parameters = WheelParameters(
        package=Described(name="small", version="1.0", summary="Small."),
        part=TreePart(package="small", siblings={"small": Taken(files=("**",))}),
        compressor="",
        generator="test",
        level=1,
        policy=None,
        interpreters=interpreters,
    )
    record = run_action(store, "pack", parameters, {"tree": source}, epoch=1_000_000_000)
    assert not isinstance(record, StageFinished), record.message
    store.materialise(record.tree, tmp_path / "out")
    (wheel,) = (tmp_path / "out").glob("*.whl")
    return wheel, "".join(path.read_text() for path in store.logs.rglob("*.log"))


def module_in(wheel: Path) -> ElfFacts:
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [each for each in opened.namelist() if each.startswith("small/_core")]
        return read_elf(opened.read(name))


def rules(wheel: Path) -> set[str]:
    return {each.rule for each in audit_buffer(wheel.read_bytes(), filename=wheel.name, policies=()).findings}


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("maker", MAKERS)
def test_entries_of_the_build_are_removed_and_others_stay(maker: str, tag: str, tmp_path: Path) -> None:
    entries = (f"{PYTHON}/lib", "$ORIGIN/lib", VENDOR, BUILD)
    before = compiled(tmp_path, maker, *entries, tag=tag)
    assert getattr(read_elf(before), tag) == entries
    wheel, _ = packed(tmp_path, before)
    found = module_in(wheel)
    assert getattr(found, tag) == ("$ORIGIN/lib", VENDOR)
    assert not (found.rpath if tag == "runpath" else found.runpath)
    assert "dist/rpath-absolute" in rules(wheel)


@pytest.mark.parametrize("maker", MAKERS)
def test_the_audit_is_silent_where_only_the_interpreter_was_searched(maker: str, tmp_path: Path) -> None:
    wheel, log = packed(tmp_path, compiled(tmp_path, maker, f"{PYTHON}/lib"))
    found = module_in(wheel)
    assert (found.rpath, found.runpath) == ((), ())
    assert not rules(wheel) & {"dist/rpath-absolute", "dist/rpath-leftover"}
    assert log.count("search paths of the build removed from") == 1
    assert f"{PYTHON}/lib" in log
    run(sys.executable, "-m", "zipfile", "-e", wheel, tmp_path / "site")
    run(sys.executable, "-c", "import small._core", PYTHONPATH=str(tmp_path / "site"))


def test_another_interpreter_is_none_of_the_build(tmp_path: Path) -> None:
    extension = compiled(tmp_path, "gcc", "/home/ada/.pyenv/versions/3.12.1/lib")
    wheel, log = packed(tmp_path, extension)
    assert module_in(wheel).runpath == ("/home/ada/.pyenv/versions/3.12.1/lib",)
    assert "removed" not in log
    assert "dist/rpath-absolute" in rules(wheel)
