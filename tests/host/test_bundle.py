"""A package with ``bundle = true`` takes along the libraries of this machine that nobody else brings."""

from __future__ import annotations

import json
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from axletree.app.lock_places import LockPlaces
from axletree.app.recipes import LoadedRecipe
from axletree.app.stated import stated
from axletree.binary.elf.facts import read_elf
from axletree.check.audit import audit_buffer
from axletree.core.events import StageFinished
from axletree.core.records import LocalFacts, StageRecord
from axletree.core.values import StageId
from axletree.host.grafts import graft_folders, libraries_digest
from axletree.host.shipped_data import read_shipped, shipped_digest
from axletree.package.libraries.policy import PLATFORM_POLICIES
from axletree.package.libraries.providers import LIBRARY_PROVIDERS
from axletree.plan.actions.audit import WheelAuditParameters
from axletree.plan.actions.pack import WheelParameters
from axletree.plan.actions.packages import Described, Taken, TreePart
from axletree.plan.actions.relocate import Bundled, RelocateFacts, RelocateParameters
from axletree.plan.actions.spec import facts_of
from axletree.recipe.documents import read_document
from axletree.recipe.relocation import Relocate
from axletree.store.store import Store
from support.clean_host import run_clean
from support.elfs import need, run
from support.recipes import recipe_of
from support.requests import run_action
from support.store import write_files
from support.targets import plan_of, targets_at

if TYPE_CHECKING:
    from axletree.core.values import Digest

NAME = f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
CODE = """\
#include <Python.h>
extern const char *rl_library_version;
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_core", NULL, -1, NULL};
PyMODINIT_FUNC PyInit__core(void) {
  PyObject *made = PyModule_Create(&module);
  if (made) PyModule_AddStringConstant(made, "version", rl_library_version);
  return made;
}
"""
USE = "import small._core; print(small._core.version)"
DIST_INFO = {
    "small-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: small\nVersion: 1.0\n",
    "small-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\n"
    + f"Tag: cp3{sys.version_info[1]}-cp3{sys.version_info[1]}-linux_x86_64\n".encode(),
}
SYSTEM = ("libreadline.so.8", "libtinfo.so.6")
"""What the extension module needs of this machine, and what that needs in turn."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


@pytest.fixture
def source(store: Store, tmp_path: Path) -> Digest:
    """A tree with an extension module that is linked to a library of this machine."""
    need("gcc")
    found = {name: folder / name for folder in graft_folders() for name in SYSTEM if (folder / name).exists()}
    if found.keys() != set(SYSTEM):
        pytest.skip(f"needs {' and '.join(SYSTEM)}")
    (tmp_path / "core.c").write_text(CODE)
    include = f"-I{sysconfig.get_paths()['include']}"
    run("gcc", "-shared", "-fPIC", include, tmp_path / "core.c", "-o", tmp_path / "core.so", found[SYSTEM[0]])
    module = (tmp_path / "core.so").read_bytes()
    files = {"small/__init__.py": b"", f"small/{NAME}": module, "other/__init__.py": b"", **DIST_INFO}
    return store.ingest(write_files(tmp_path / "tree", files))


def bundle(store: Store, source: Digest, **changes: Any) -> StageRecord | StageFinished:
    """The record of the stage, or how it failed."""
    siblings = {"small": Taken(files=("small/**",)), "other": Taken(files=("other/**",))}
    bundled = Bundled(part=TreePart(package="small", siblings=siblings), libraries=libraries_digest(graft_folders()))
    parameters = RelocateParameters(
        tree="tree",
        relocate=Relocate(graft_to="small.libs"),
        bundled=msgspec.structs.replace(bundled, **changes),
        policy=shipped_digest(PLATFORM_POLICIES),
        providers=shipped_digest(LIBRARY_PROVIDERS),
    )
    return run_action(store, "relocate", parameters, {"tree": source}, epoch=1_000_000_000)


def packed(store: Store, tree: Digest, folder: Path) -> Path:
    """A wheel of all of a tree."""
    parameters = WheelParameters(
        package=Described(name="small", version="1.0", summary="Small."),
        part=TreePart(package="small", siblings={"small": Taken(files=("**",))}),
        compressor="",
        generator="test",
        level=1,
        policy=None,
    )
    record = run_action(store, "pack", parameters, {"tree": tree}, epoch=1_000_000_000)
    assert isinstance(record, StageRecord), record
    store.materialise(record.tree, folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def unresolved(wheel: Path) -> list[str]:
    report = audit_buffer(
        wheel.read_bytes(),
        filename=wheel.name,
        policies=read_shipped(PLATFORM_POLICIES),
        providers=read_shipped(LIBRARY_PROVIDERS),
    )
    return [each.message for each in report.findings if each.rule == "dist/needed-unresolved"]


def test_the_wheel_loads_where_the_libraries_are_not(store: Store, source: Digest, tmp_path: Path) -> None:
    record = bundle(store, source)
    assert isinstance(record, StageRecord), record
    wheel, before = packed(store, record.tree, tmp_path / "with"), packed(store, source, tmp_path / "without")
    assert unresolved(wheel) == []
    assert len(unresolved(before)) == 1
    hidden = [folder / name for folder in graft_folders() for name in SYSTEM if (folder / name).exists()]
    for each, fails in ((wheel, False), (before, True)):
        run(sys.executable, "-m", "zipfile", "-e", each, each.parent / "site")
        environ = {"PYTHONPATH": str(each.parent / "site")}
        printed = run_clean(sys.executable, "-c", USE, hide=hidden, environ=environ, fails=fails)
        assert (SYSTEM[0] in printed) is fails


def test_what_is_taken_in_is_said_with_its_package_and_size(store: Store, source: Digest, tmp_path: Path) -> None:
    record = bundle(store, source)
    assert isinstance(record, StageRecord), record
    grafts = facts_of(record, RelocateFacts).grafts
    assert [graft.soname for graft in grafts] == list(SYSTEM)
    (finding,) = record.findings
    assert (finding.rule, finding.severity) == ("relocate/taken-in", "info")
    assert {line.partition(":")[0] for line in finding.evidence} == set(SYSTEM)
    assert all(graft.package in " ".join(finding.evidence) for graft in grafts)
    (log,) = store.logs.rglob("*.log")
    assert "copies 2 libraries, " in log.read_text()
    with zipfile.ZipFile(packed(store, record.tree, tmp_path / "out")) as opened:
        names = opened.namelist()
        bill = json.loads(opened.read(next(name for name in names if "/sboms/" in name)))
    assert set(SYSTEM) <= {part["name"] for part in bill["components"]}


def test_only_the_files_of_the_package_count(store: Store, source: Digest) -> None:
    record = bundle(store, source)
    assert isinstance(record, StageRecord), record
    tops = {entry.path.partition("/")[0] for entry in store.get_tree(record.tree).entries}
    assert tops == {"small", "small.libs", "small-1.0.dist-info"}
    siblings = {"small": Taken(files=("small/**",)), "other": Taken(files=("other/**",))}
    record = bundle(store, source, part=TreePart(package="other", siblings=siblings))
    assert isinstance(record, StageRecord), record
    assert facts_of(record, RelocateFacts).grafts == ()
    assert record.findings == ()


def test_a_library_that_the_recipe_says_somebody_brings_is_left(store: Store, source: Digest) -> None:
    record = bundle(store, source, provided_by={"Lines": ("libreadline.so*",)})
    assert isinstance(record, StageRecord), record
    facts = facts_of(record, RelocateFacts)
    assert facts.grafts == ()
    assert ("libreadline.so.8", "Lines") in facts.outside


RECIPE = """\
name = "small"
version = "1.0"
source = { path = "src" }
[stages.lib]
action = "run"
commands = ["make"]
[stages.tree]
action = "relocate"
inputs = ["lib"]
[stages.tree.relocate]
graft = ["libx.so*"]
graft-to = "small.libs"
[packages.small]
from = "lib"
"""


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (RECIPE, "set packages.small.bundle = true (small.toml:13), or "),
        (
            RECIPE.replace('from = "lib"', 'from = "tree"'),
            "add the library to stages.tree.relocate.graft (small.toml:11), or ",
        ),
    ],
)
def test_in_a_build_the_fix_is_a_line_of_the_recipe(
    store: Store, source: Digest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, fix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(text)
    loaded = LoadedRecipe(
        recipe=recipe_of(text),
        path=Path("small.toml"),
        places=LockPlaces(companion=Path("small"), locks=Path("small")),
        asked="small.toml",
        document=read_document(text, "small.toml"),
    )
    (target,) = targets_at(text)
    stage = plan_of(text).stages[StageId("audit:small")]
    tree = store.ingest(packed(store, source, tmp_path / "wheels").parent)
    parameters = WheelAuditParameters(
        policy=shipped_digest(PLATFORM_POLICIES), providers=shipped_digest(LIBRARY_PROVIDERS)
    )
    for local, wanted in (
        (LocalFacts(stated=stated(loaded, target, stage)), fix),
        (LocalFacts(), "copy the library into the wheel (`axletree repair`), or "),
    ):
        failed = run_action(store, "audit", parameters, {"wheel": tree}, local=local)
        assert isinstance(failed, StageFinished)
        (found,) = [each for each in failed.findings if each.rule == "dist/needed-unresolved"]
        assert (found.fix or "").startswith(wanted)


def test_libraries_that_changed_since_planning_stop_it(store: Store, source: Digest) -> None:
    failed = bundle(store, source, libraries="0" * 64)
    assert isinstance(failed, StageFinished)
    assert failed.message is not None
    assert "the libraries of this machine have changed since the build was planned" in failed.message


def test_the_digest_changes_with_the_libraries(tmp_path: Path) -> None:
    (tmp_path / "libx.so.1").write_bytes(b"x")
    before = libraries_digest([tmp_path, tmp_path / "gone"])
    (tmp_path / "readme").write_bytes(b"")
    assert libraries_digest([tmp_path]) == before
    (tmp_path / "liby.so").symlink_to("gone")
    assert libraries_digest([tmp_path]) == before
    (tmp_path / "libx.so.1").write_bytes(b"xx")
    assert libraries_digest([tmp_path]) != before


def test_the_extension_finds_them_in_the_wheel(store: Store, source: Digest) -> None:
    record = bundle(store, source)
    assert isinstance(record, StageRecord), record
    entries = {entry.path: entry for entry in store.get_tree(record.tree).entries}
    blob = entries[f"small/{NAME}"].blob
    assert blob is not None
    facts = read_elf(store.read_blob(blob))
    assert facts.rpath == ("$ORIGIN/../small.libs",)
    assert SYSTEM[0] not in facts.needed
    assert any(name.startswith("libreadline-") for name in facts.needed)
