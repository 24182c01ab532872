"""Packing a tree in each format: what goes where, what it depends on, and what can't become such a package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from axletree.core.events import StageFinished
from axletree.core.records import LocalFacts, StageRecord
from axletree.core.values import Digest
from axletree.host.conda import read_conda
from axletree.host.interpreters import find_interpreter
from axletree.package.conda.reader import CondaFacts
from axletree.package.sbom.write import Component, render_sbom
from axletree.plan.actions.audit_conda import CondaAuditParameters
from axletree.plan.actions.audit_zip import ZipAuditParameters
from axletree.plan.actions.listing import ListingParameters
from axletree.plan.actions.pack import PackedWheel, WheelParameters
from axletree.plan.actions.pack_conda import CondaParameters, PackedConda
from axletree.plan.actions.pack_zip import ZipParameters
from axletree.plan.actions.packages import Described, Taken, TreePart, Waived
from axletree.plan.actions.relocate import RelocateParameters
from axletree.plan.actions.spec import facts_of
from axletree.recipe.conda import TargetConda
from axletree.recipe.relocation import Relocate
from axletree.store.store import Store
from support.requests import run_action
from support.store import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.plan.actions.spec import Parameters
    from support.store import Files

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
SITE = f"lib/python{PYTHON}/site-packages"
DIST_INFO = {
    "small-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: small\nVersion: 1.0\nRequires-Dist: libsmall\n"
    b'Requires-Dist: torch>=2; extra == "gpu"\n',
    "small-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "small-1.0.dist-info/entry_points.txt": b"[console_scripts]\nsmall = small:main\n",
    "small-1.0.dist-info/licenses/LICENSE": b"Do as you like.\n",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def described(**changes: Any) -> Described:
    """A package as planning describes it."""
    return Described(**{"name": "small", "version": "1.0+cpu", "summary": "Small.", "license": "MIT", **changes})


def part_of(package: str = "small", **siblings: Taken) -> TreePart:
    """What a package takes of a tree: all of it, unless it has siblings."""
    return TreePart(package=package, siblings=siblings or {package: Taken(files=("**",))})


def wanted(**changes: Any) -> TargetConda:
    """Its conda form."""
    form = TargetConda(
        name="small",
        version="1.0",
        build="h1234567_0",
        build_number=0,
        variant={},
        depends=(),
        constrains=(),
        weak=(),
        strong=(),
        track_features=(),
        layout="auto",
        prefix=None,
    )
    return msgspec.structs.replace(form, **changes)


def run(
    store: Store,
    action: str,
    parameters: Parameters,
    inputs: dict[str, Digest],
    *,
    axes: dict[str, str] | None = None,
) -> StageRecord | StageFinished:
    """The record of a stage, or how it failed."""
    local = LocalFacts(interpreters={PYTHON: find_interpreter(PYTHON, environ=os.environ)})
    return run_action(store, action, parameters, inputs, axes=axes or {}, epoch=1_000_000_000, local=local)


def tree(store: Store, tmp_path: Path, files: Files) -> Digest:
    return store.ingest(write_files(tmp_path / f"tree{len(list(tmp_path.iterdir()))}", files))


def conda_parameters(package: Described, form: TargetConda, **changes: Any) -> CondaParameters:
    """What planning asks for where a tree becomes a conda package."""
    given: dict[str, Any] = {
        "package": package,
        "part": part_of(package.name),
        "called": form.name,
        "conda": form,
        "names": None,
        "platform": "linux-x86_64",
        "compressor": "",
        "generator": "test",
        "level": 1,
        "policy": None,
    }
    return CondaParameters(**{**given, **changes})


def conda(
    store: Store,
    source: Digest | None,
    *,
    package: Described | None = None,
    form: TargetConda | None = None,
    axes: dict[str, str] | None = None,
    siblings: dict[str, Taken] | None = None,
    pins: dict[str, str] | None = None,
) -> CondaFacts | str:
    """The package that is made of a tree as it is read back, or why there is none."""
    package = package or described()
    parameters = conda_parameters(
        package,
        form or wanted(),
        part=part_of(package.name, **siblings or {}),
        pins=pins or {},
        python={"version": PYTHON} if axes and "python" in axes else None,
    )
    record = run(store, "pack-conda", parameters, {"tree": source} if source else {}, axes=axes)
    if isinstance(record, StageFinished):
        return record.message or ""
    (entry,) = store.get_tree(record.tree).entries
    assert entry.blob is not None
    facts = facts_of(record, PackedConda)
    assert entry.path == f"{facts.subdir}/{facts.filename}"
    return read_conda(store.blob_path(entry.blob), filename=facts.filename)


def made(facts: CondaFacts | str) -> CondaFacts:
    assert isinstance(facts, CondaFacts), facts
    assert facts.index is not None
    return facts


def paths(facts: CondaFacts) -> set[str]:
    return {member.path for member in facts.members}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A real shared library."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "x.c").write_text("int x(void) { return 1; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "libx.so", "x.c", "-Wl,-soname,libx.so.1"], cwd=folder, check=True)
    return (folder / "libx.so").read_bytes()


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A library that only CPython can load."""
    folder = tmp_path_factory.mktemp("extension")
    (folder / "x.c").write_text(
        "extern int PyLong_FromLong(long);\nint PyInit_x(void) { return PyLong_FromLong(1); }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "x.so", "x.c"], cwd=folder, check=True)
    return (folder / "x.so").read_bytes()


def test_a_cpp_tree_lies_at_the_root_of_the_environment(store: Store, tmp_path: Path, library: bytes) -> None:
    source = tree(
        store,
        tmp_path,
        {"lib/libx.so.1": library, "lib/libx.so": "libx.so.1", "include/x.h": b"", "bin/run!": b"#!/bin/sh\n",
         "share/cmake/x/xConfig.cmake": b"", "LICENSE": b"Do as you like.\n"},
    )  # fmt: skip
    form = wanted(
        depends=("zlib >=1.2",), constrains=("other <0.0a0",), weak=("small >=1",), track_features=("slow",),
        build_number=3, variant={"gpu": "cpu"},
    )  # fmt: skip
    facts = made(conda(store, source, form=form))
    assert paths(facts) == {
        "lib/libx.so.1", "lib/libx.so", "include/x.h", "bin/run", "share/cmake/x/xConfig.cmake"
    }  # fmt: skip
    assert "licenses/LICENSE" in facts.info
    index = facts.index
    assert index is not None
    assert (index.subdir, index.noarch, index.build_number, index.track_features) == ("linux-64", None, 3, "slow")
    assert [spec.partition(" ")[0] for spec in index.depends] == ["__glibc", "zlib"]
    assert index.constrains == ("other <0.0a0",)
    assert facts.run_exports is not None
    assert facts.run_exports.weak == ("small >=1",)
    assert facts.hash_input == {"gpu": "cpu"}
    assert {member.path: member.target for member in facts.members if member.kind == "link"} == {
        "lib/libx.so": "libx.so.1"
    }
    assert {member.path for member in facts.members if member.executable} >= {"bin/run"}
    below = made(conda(store, source, form=wanted(prefix="opt/x")))
    assert "opt/x/lib/libx.so.1" in paths(below)


def test_a_tree_without_machine_code_is_for_all_platforms(store: Store, tmp_path: Path) -> None:
    facts = made(conda(store, tree(store, tmp_path, {"include/x.h": b""})))
    assert facts.index is not None
    assert (facts.index.subdir, facts.index.noarch, facts.index.depends) == ("noarch", "generic", ())


def test_a_distribution_for_any_python(store: Store, tmp_path: Path) -> None:
    source = tree(store, tmp_path, {"small/__init__.py": b"def main(): ...\n", **DIST_INFO})
    facts = made(conda(store, source, pins={"libsmall": "libsmall 1.0 cpu_h7654321_3"}))
    assert paths(facts) >= {"site-packages/small/__init__.py", "site-packages/small-1.0.dist-info/METADATA"}
    assert facts.index is not None
    assert (facts.index.subdir, facts.index.noarch) == ("noarch", "python")
    assert facts.index.depends == ("libsmall 1.0 cpu_h7654321_3", "python")
    assert facts.index.constrains == ("pytorch >=2",)
    assert {"link.json", "licenses/LICENSE"} <= set(facts.info)


def test_a_distribution_for_one_python_has_compiled_files_and_scripts(store: Store, tmp_path: Path) -> None:
    source = tree(store, tmp_path, {"small/__init__.py": b"x = 1\n", "small/also.py": "__init__.py", **DIST_INFO})
    facts = made(conda(store, source, axes={"python": PYTHON}))
    assert paths(facts) >= {
        f"{SITE}/small/__init__.py",
        f"{SITE}/small/also.py",
        f"{SITE}/small/__pycache__/__init__.{sys.implementation.cache_tag}.pyc",
        "bin/small",
    }
    assert facts.index is not None
    assert facts.index.subdir == "linux-64"
    assert f"python_abi {PYTHON}.* *_{TAG}" in facts.index.depends


def test_extensions_tell_their_python_where_no_axis_does(store: Store, tmp_path: Path, extension: bytes) -> None:
    name = f"small/x.cpython-{sys.version_info[0]}{sys.version_info[1]}-x86_64-linux-gnu.so"
    source = tree(store, tmp_path, {name: extension, "small/__init__.py": b""})
    facts = made(conda(store, source, form=wanted(layout="python")))
    assert f"{SITE}/{name}" in paths(facts)
    assert facts.index is not None
    assert f"python_abi {PYTHON}.* *_{TAG}" in facts.index.depends
    stable = tree(store, tmp_path, {"small/x.abi3.so": extension, "small/__init__.py": b""})
    message = conda(store, stable, form=wanted(layout="python"))
    assert "does not record which version it was built for" in str(message)


def test_a_whole_environment_of_a_python(store: Store, tmp_path: Path) -> None:
    """Layout `prefix` with axis `python`: an interpreter's own folders are in the tree already."""
    source = tree(store, tmp_path, {f"{SITE}/small/__init__.py": b"x = 1\n", "lib/note.txt": b""})
    facts = made(conda(store, source, form=wanted(layout="prefix"), axes={"python": PYTHON}))
    assert paths(facts) == {
        f"{SITE}/small/__init__.py",
        f"{SITE}/small/__pycache__/__init__.{sys.implementation.cache_tag}.pyc",
        "lib/note.txt",
    }
    assert facts.index is not None
    assert facts.index.depends == (
        f"python >={PYTHON},<3.{sys.version_info[1] + 1}.0a0",
        f"python_abi {PYTHON}.* *_{TAG}",
    )


def test_a_metapackage_has_no_files(store: Store) -> None:
    package = described(requires=("torch==1.0+cpu", "six"))
    facts = made(conda(store, None, package=package, form=wanted(depends=("pytorch ==1.0 cpu*",))))
    assert facts.members == ()
    assert facts.index is not None
    assert (facts.index.subdir, facts.index.noarch) == ("noarch", "generic")
    assert facts.index.depends == ("pytorch ==1.0 cpu*", "six")


def test_a_metapackage_as_a_wheel(store: Store) -> None:
    package = described(requires=("torch==1.0",), requires_python=">=3.9")
    record = run(store, "pack", wheel_parameters(package, TreePart(package="small", siblings={})), {})
    assert isinstance(record, StageRecord)
    assert facts_of(record, PackedWheel).filename == "small-1.0+cpu-py3-none-any.whl"
    (entry,) = store.get_tree(record.tree).entries
    assert entry.blob is not None
    with zipfile.ZipFile(store.blob_path(entry.blob)) as archive:
        names = archive.namelist()
        assert [name.rpartition("/")[2] for name in names] == ["METADATA", "WHEEL", "RECORD"]
        assert b"Requires-Dist: torch==1.0\n" in archive.read(names[0])


def wheel_parameters(package: Described, part: TreePart) -> WheelParameters:
    """What planning asks for where a tree becomes a wheel."""
    return WheelParameters(package=package, part=part, compressor="", generator="test", level=5, policy=None)


def wheel(
    store: Store,
    source: Digest,
    *,
    package: Described | None = None,
    siblings: dict[str, Taken] | None = None,
    axes: dict[str, str] | None = None,
) -> zipfile.ZipFile | str:
    """The wheel that is made of a tree, or why there is none."""
    package = package or described()
    parameters = wheel_parameters(package, part_of(package.name, **siblings or {}))
    record = run(store, "pack", parameters, {"tree": source}, axes=axes)
    if isinstance(record, StageFinished):
        return record.message or ""
    (entry,) = store.get_tree(record.tree).entries
    assert entry.blob is not None
    return zipfile.ZipFile(store.blob_path(entry.blob))


def metadata_in(made: zipfile.ZipFile | str) -> list[str]:
    assert isinstance(made, zipfile.ZipFile), made
    (path,) = (name for name in made.namelist() if name.endswith(".dist-info/METADATA"))
    return made.read(path).decode().splitlines()


def test_what_was_built_is_not_called_otherwise_in_silence(store: Store, tmp_path: Path) -> None:
    source = tree(store, tmp_path, {"small/__init__.py": b"", **DIST_INFO})
    said = "small-1.0.dist-info/METADATA reports"
    cases: dict[str, dict[str, Any]] = {
        f"name: the recipe sets little, but {said} Name: small": {"name": "little"},
        f"version: the recipe sets 1.1, but {said} Version: 1.0": {"version": "1.1+cpu"},
        f"requires: the recipe sets torch>=1; extra == 'gpu', but {said} Requires-Dist: torch>=2; extra == \"gpu\"": {
            "requires": ["torch>=1; extra == 'gpu'"]
        },
    }
    for message, package in cases.items():
        failed = wheel(store, source, package=described(**package))
        assert isinstance(failed, str)
        assert message in failed
        assert "relabel = true" in failed
        lines = metadata_in(wheel(store, source, package=described(relabel=True, **package)))
        assert f"Name: {package.get('name', 'small')}" in lines
        assert f"Version: {package.get('version', '1.0+cpu')}" in lines
    assert "Version: 1.0.post1" in metadata_in(
        wheel(store, source, package=described(version="1.0.post1", source_version="1.0"))
    )


def test_pythons_of_the_recipe_count_where_the_project_names_none(store: Store, tmp_path: Path) -> None:
    bare = tree(store, tmp_path, {"small/__init__.py": b"", **DIST_INFO})
    assert "Requires-Python: >=3.9" in metadata_in(wheel(store, bare, package=described(requires_python=">=3.9")))
    own = DIST_INFO["small-1.0.dist-info/METADATA"] + b"Requires-Python: >=3.10\n"
    source = tree(store, tmp_path, {"small/__init__.py": b"", **DIST_INFO, "small-1.0.dist-info/METADATA": own})
    assert "Requires-Python: >=3.10" in metadata_in(wheel(store, source))
    failed = str(wheel(store, source, package=described(requires_python=">=3.9")))
    assert (
        "requires-python: the recipe sets >=3.9, but small-1.0.dist-info/METADATA reports Requires-Python: >=3.10"
        in failed
    )
    lines = metadata_in(wheel(store, source, package=described(requires_python=">=3.9", relabel=True)))
    assert [line for line in lines if line.startswith("Requires-Python")] == ["Requires-Python: >=3.9"]


def test_a_part_beside_the_whole_has_its_own_name(store: Store, tmp_path: Path) -> None:
    source = tree(store, tmp_path, {"small/a.py": b"", "extra/b.py": b"", **DIST_INFO})
    both = {name: Taken(files=(f"{name}/**",)) for name in ("small", "extra")}
    assert "Name: extra" in metadata_in(wheel(store, source, package=described(name="extra"), siblings=both))
    assert "Name: small" in metadata_in(wheel(store, source, siblings=both))
    assert "version: the recipe sets 2, but" in str(
        wheel(store, source, package=described(name="extra", version="2"), siblings=both)
    )


def test_a_wheel_for_another_python_is_no_wheel_of_the_variant(store: Store, tmp_path: Path) -> None:
    tags = b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp38-cp38-linux_x86_64\n"
    source = tree(store, tmp_path, {"small/a.py": b"", **DIST_INFO, "small-1.0.dist-info/WHEEL": tags})
    failed = str(wheel(store, source, axes={"python": PYTHON}))
    assert f"the variant is for Python {PYTHON}, but the files were built for cp38-cp38-linux_x86_64" in failed
    assert isinstance(wheel(store, source), zipfile.ZipFile)


def test_a_distribution_that_conda_calls_otherwise_keeps_its_name_in_there(store: Store, tmp_path: Path) -> None:
    info = {name.replace("small", "torch"): data.replace(b"small", b"torch") for name, data in DIST_INFO.items()}
    source = tree(store, tmp_path, {"torch/__init__.py": b"", **info})
    facts = made(conda(store, source, package=described(name="pytorch"), form=wanted(name="pytorch")))
    assert "site-packages/torch-1.0.dist-info/METADATA" in paths(facts)
    failed = conda(store, source, package=described(name="gizmo"), form=wanted(name="gizmo"))
    assert isinstance(failed, str)
    assert "name: the recipe sets gizmo, but torch-1.0.dist-info/METADATA reports Name: torch" in failed


def test_a_prefix_with_another_version_inside_is_refused(store: Store, tmp_path: Path) -> None:
    metadata = b"Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0+cpu\n"
    source = tree(store, tmp_path, {f"{SITE}/torch-2.6.0+cpu.dist-info/METADATA": metadata, "lib/x": b"x"})
    package = described(name="pytorch")
    failed = conda(store, source, package=package, form=wanted(name="pytorch", version="2.7.0", layout="prefix"))
    assert isinstance(failed, str)
    assert f"the recipe sets 2.7.0, but {SITE}/torch-2.6.0+cpu.dist-info/METADATA reports Version: 2.6.0+cpu" in failed
    made(conda(store, source, package=package, form=wanted(name="pytorch", version="2.6.0", layout="prefix")))


def test_links_are_not_left_out_of_a_wheel_in_silence(store: Store, tmp_path: Path, library: bytes) -> None:
    files: Files = {"lib/libx.so.1": library, "lib/libx.so": "libx.so.1", "lib/all": "."}
    source = tree(store, tmp_path, files)
    assert "a wheel cannot contain symbolic links: lib/all, lib/libx.so" in str(wheel(store, source))
    without = {"small": Taken(files=("**",), exclude=("lib/libx.so", "lib/all"))}
    made = wheel(store, source, siblings=without)
    assert isinstance(made, zipfile.ZipFile), made
    with made:
        assert [name for name in made.namelist() if name.startswith("lib/")] == ["lib/libx.so.1"]
    in_metadata = tree(store, tmp_path, {**DIST_INFO, "x.py": b"", "small-1.0.dist-info/licenses/COPYING": "LICENSE"})
    assert "small-1.0.dist-info/licenses/COPYING" in str(wheel(store, in_metadata))


def bill(*libraries: str) -> bytes:
    """What a relocation writes about libraries that it took in."""
    parts = [
        Component(
            name=path.rpartition("/")[2],
            version="1.2",
            origin="bundled",
            purl="pkg:deb/debian/rivet@1.2?arch=amd64",
            sha256="0" * 64,
            paths=(path,),
            note="of the system package rivet",
        )
        for path in libraries
    ]
    return render_sbom(Component(name="small", origin="bundled"), parts, epoch=0)


def places(document: bytes) -> dict[str, list[str]]:
    """Library -> where a bill says that it lies."""
    parts = json.loads(document)["components"]
    return {part["name"]: [each["location"] for each in part["evidence"]["occurrences"]] for part in parts}


def test_a_wheel_has_the_bill_of_what_its_tree_took_in_where_scanners_look(store: Store, tmp_path: Path) -> None:
    libraries = ("lib/librivet-1a2b3c4d.so.2", "lib/libplank-5e6f7a8b.so.3")
    files: Files = {"lib/libx.so": b"", **dict.fromkeys(libraries, b""), "lib/grafts.cdx.json": bill(*libraries)}
    made = wheel(store, tree(store, tmp_path, files), package=described(prefix="small", requires=("six",)))
    assert isinstance(made, zipfile.ZipFile), made
    with made:
        names = set(made.namelist())
        document = made.read("small-1.0+cpu.dist-info/sboms/axletree.cdx.json")
    assert {name for name in names if name.startswith("small/")} == {
        f"small/{path}" for path in files if "cdx" not in path
    }
    rivet, plank, six = json.loads(document)["components"]
    assert rivet["evidence"]["occurrences"] == [{"location": f"small/{libraries[0]}"}]
    assert plank["evidence"]["occurrences"] == [{"location": f"small/{libraries[1]}"}]
    assert (rivet["version"], rivet["purl"]) == ("1.2", "pkg:deb/debian/rivet@1.2?arch=amd64")
    assert rivet["hashes"] == [{"alg": "SHA-256", "content": "0" * 64}]
    assert {"name": "axletree:note", "value": "of the system package rivet"} in rivet["properties"]
    assert six["purl"] == "pkg:pypi/six"
    assert json.loads(document)["metadata"]["component"]["purl"] == "pkg:pypi/small@1.0%2Bcpu"


def test_each_wheel_of_a_divided_tree_has_the_bill_of_its_own_part(store: Store, tmp_path: Path) -> None:
    files: Files = {"a/liba.so.1": b"", "b/libb.so.1": b"", "a/grafts.cdx.json": bill("a/liba.so.1", "b/libb.so.1")}
    source = tree(store, tmp_path, {**files, "c/x.py": b""})
    siblings = {name: Taken(files=(f"{name}/**",)) for name in "abc"}
    found: dict[str, dict[str, list[str]]] = {}
    for name in siblings:
        made = wheel(store, source, package=described(name=name), siblings=siblings)
        assert isinstance(made, zipfile.ZipFile), made
        with made:
            assert "a/grafts.cdx.json" not in made.namelist()
            for path in made.namelist():
                if "/sboms/" in path:
                    found[name] = places(made.read(path))
    assert found == {"a": {"liba.so.1": ["a/liba.so.1"]}, "b": {"libb.so.1": ["b/libb.so.1"]}}


def test_the_bill_of_an_earlier_wheel_is_made_anew_with_what_it_named(store: Store, tmp_path: Path) -> None:
    own = "small-1.0.dist-info/sboms/axletree.cdx.json"
    files: Files = {**DIST_INFO, "small.libs/liba.so.1": b"", "small/lib/libb.so.1": b"", "small/x.py": b""}
    files |= {own: bill("small.libs/liba.so.1"), "small/lib/grafts.cdx.json": bill("small/lib/libb.so.1")}
    both = {"liba.so.1": ["small.libs/liba.so.1"], "libb.so.1": ["small/lib/libb.so.1"]}
    nothing_taken_in = {**files, own: bill()}
    for given, expected in ((files, both), (nothing_taken_in, {"libb.so.1": both["libb.so.1"]})):
        made = wheel(store, tree(store, tmp_path, given))
        assert isinstance(made, zipfile.ZipFile), made
        with made:
            parts = json.loads(made.read("small-1.0+cpu.dist-info/sboms/axletree.cdx.json"))["components"]
            assert not [name for name in made.namelist() if name.endswith("grafts.cdx.json")]
        bundled = {part["name"]: part for part in parts if part["name"] in both}
        where = {name: [each["location"] for each in part["evidence"]["occurrences"]] for name, part in bundled.items()}
        assert where == expected
    foreign: Files = {**DIST_INFO, "small/x.py": b"", "small/grafts.cdx.json": b'{"bomFormat": "CycloneDX"}'}
    made = wheel(store, tree(store, tmp_path, foreign))
    assert isinstance(made, zipfile.ZipFile), made
    with made:
        assert made.read("small/grafts.cdx.json") == foreign["small/grafts.cdx.json"]
        assert not [name for name in made.namelist() if "/sboms/" in name]


def test_a_tree_that_is_relocated_again_keeps_its_bill(store: Store, tmp_path: Path, library: bytes) -> None:
    files: Files = {"lib/liba.so.1": library, "lib/libb.so.1": library, "lib/libx.so": library}
    files["lib/grafts.cdx.json"] = bill("lib/liba.so.1", "lib/libb.so.1")
    files["other/grafts.cdx.json"] = b'{"bomFormat": "CycloneDX"}'
    rules = Relocate(place={"lib": "deep/lib"}, drop=("lib/libb.so.1",))
    parameters = RelocateParameters(tree="tree", relocate=rules, policy=None, providers=None)
    record = run(store, "relocate", parameters, {"tree": tree(store, tmp_path, files)})
    assert isinstance(record, StageRecord), record
    blobs = {entry.path: entry.blob for entry in store.get_tree(record.tree).entries}
    document = store.read_blob(blobs["deep/lib/grafts.cdx.json"] or Digest(""))
    assert places(document) == {"liba.so.1": ["deep/lib/liba.so.1"]}
    assert store.read_blob(blobs["other/grafts.cdx.json"] or Digest("")) == files["other/grafts.cdx.json"]


def test_a_bill_that_was_cut_off_is_no_silent_loss(store: Store, tmp_path: Path) -> None:
    source = tree(store, tmp_path, {"lib/liba.so.1": b"", "lib/grafts.cdx.json": bill("lib/liba.so.1")[:50]})
    assert "lib/grafts.cdx.json: the file is not a bill of materials" in str(wheel(store, source))


def test_a_conda_package_keeps_the_bill(store: Store, tmp_path: Path) -> None:
    """In the metadata of a Python distribution, else beside the libraries: conda has no place of its own for it."""
    files: Files = {"small/liba.so.1": b"", "small/grafts.cdx.json": bill("small/liba.so.1")}
    source = tree(store, tmp_path, files)
    assert set(files) <= paths(made(conda(store, source)))
    installed = made(conda(store, tree(store, tmp_path, {**files, **DIST_INFO})))
    site = {path.removeprefix("site-packages/") for path in paths(installed)}
    assert "small-1.0.dist-info/sboms/axletree.cdx.json" in site
    assert "small/grafts.cdx.json" not in site


@pytest.mark.parametrize("lacking", ["METADATA", "WHEEL"])
def test_metadata_without_its_files_is_told(store: Store, tmp_path: Path, lacking: str) -> None:
    path = f"small-1.0.dist-info/{lacking}"
    files = {name: data for name, data in DIST_INFO.items() if name != path}
    message = f"{path}: the tree contains metadata, but this file is missing"
    assert message in str(wheel(store, tree(store, tmp_path, {"x.py": b"", **files})))


@pytest.mark.parametrize(
    ("files", "changes", "message"),
    [
        ({"lib/x": b""}, {"siblings": {"small": Taken(files=("inc/**",), exclude=("lib/**",))}}, "has no files"),
        (
            {"lib/x": b""},
            {"siblings": {"small": Taken(files=("**",)), "other": Taken(files=("lib/**",))}},
            "packages small and other claim the same files: lib/x",
        ),
        ({"lib/x": "../../y"}, {}, "is outside the package"),
        ({"x": b"", **DIST_INFO}, {"form": wanted(layout="prefix")}, "does not belong at the root of an environment"),
        ({"info/x": b""}, {}, "in a folder that conda reserves"),
        ({"lib/x": b""}, {"form": wanted(build="a-b")}, "is not a valid conda build"),
        ({"lib/x": b""}, {"form": wanted(build="x" * 65)}, "at most 64"),
        ({"lib/x": b""}, {"package": described(requires=("x @ https://example.org/x.whl",))}, "is a URL requirement"),
        (
            {"lib/x": b""},
            {"package": described(requires=('x; python_version < "3.12"',))},
            "depends on python_version, but the package is for any Python",
        ),
    ],
)  # fmt: skip
def test_what_can_not_become_a_package(
    store: Store, tmp_path: Path, files: Files, changes: dict[str, Any], message: str
) -> None:
    assert message in str(conda(store, tree(store, tmp_path, files), **changes))


def zip_parameters(called: str) -> ZipParameters:
    """What planning asks for where a tree becomes an archive."""
    return ZipParameters(part=part_of(), version="1.0+cpu", called=called, source="0123abc", compressor="", level=5)


def archive(store: Store, source: Digest) -> StageRecord | StageFinished:
    record = run(store, "pack-zip", zip_parameters("small"), {"tree": source})
    if isinstance(record, StageFinished):
        return record
    asked = ZipAuditParameters(part=part_of(), called="small", policy=None, providers=None)
    return run(store, "audit-zip", asked, {"tree": source, "archive": record.tree})


def test_an_archive_for_cpp_users(store: Store, tmp_path: Path, library: bytes) -> None:
    source = tree(store, tmp_path, {"lib/libx.so.1": library, "lib/libx.so": "libx.so.1", "bin/run!": b"#!/bin/sh\n"})
    record = run(store, "pack-zip", zip_parameters("wide"), {"tree": source})
    assert isinstance(record, StageRecord)
    (entry,) = store.get_tree(record.tree).entries
    assert entry.path == "wide-shared-with-deps-1.0+cpu.zip"
    assert entry.blob is not None
    subprocess.run(["unzip", "-q", store.blob_path(entry.blob)], cwd=tmp_path, check=True)
    unpacked = tmp_path / "wide"
    assert {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()} == {
        "lib/libx.so.1", "lib/libx.so", "bin/run", "build-version", "build-hash"
    }  # fmt: skip
    assert (unpacked / "lib" / "libx.so").read_bytes() == library
    assert os.access(unpacked / "bin" / "run", os.X_OK)
    assert (unpacked / "build-version").read_text() == "1.0+cpu\n"
    assert (unpacked / "build-hash").read_text() == "0123abc\n"


def test_an_archive_must_hold_what_its_libraries_need(store: Store, tmp_path: Path, library: bytes) -> None:
    (tmp_path / "libx.so.1").write_bytes(library)
    (tmp_path / "y.c").write_text("int x(void);\nint y(void) { return x(); }\n")
    command = ["cc", "-shared", "-fPIC", "-o", "liby.so", "y.c", "-L.", "-l:libx.so.1", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(command, cwd=tmp_path, check=True)
    needing = (tmp_path / "liby.so").read_bytes()
    whole = archive(store, tree(store, tmp_path, {"lib/liby.so": needing, "lib/libx.so.1": library}))
    assert isinstance(whole, StageRecord)
    lacking = archive(store, tree(store, tmp_path, {"lib/liby.so": needing}))
    assert isinstance(lacking, StageFinished)
    assert "the audit of small-shared-with-deps-1.0+cpu.zip found 1 error" in str(lacking.message)
    assert "libx.so.1" in lacking.findings[0].message


def test_a_broken_promise_about_glibc_fails_the_audit(store: Store, tmp_path: Path) -> None:
    (tmp_path / "z.c").write_text("#include <math.h>\ndouble z(double a) { return pow(a, a); }\n")
    subprocess.run(["cc", "-O0", "-shared", "-fPIC", "-o", "libz.so", "z.c", "-lm"], cwd=tmp_path, check=True)
    source = tree(store, tmp_path, {"lib/libz.so": (tmp_path / "libz.so").read_bytes()})
    record = run(store, "pack-conda", conda_parameters(described(), wanted()), {"tree": source})
    assert isinstance(record, StageRecord)
    none, high, low = (
        run(store, "audit-conda", CondaAuditParameters(glibc=glibc, policy=None), {"package": record.tree})
        for glibc in (None, "2.40", "2.17")
    )
    assert isinstance(none, StageRecord)
    assert isinstance(high, StageRecord)
    assert isinstance(low, StageFinished)
    assert low.findings[0].rule == "dist/glibc-above-promise"


def test_headers_of_a_neighbour_fail_the_audit_of_a_build(store: Store, tmp_path: Path, library: bytes) -> None:
    files: Files = {"lib/libsmall.so": library, "include/fmt/core.h": b"//", "include/small/fmt/core.h": b"//"}
    packed = run(store, "pack-conda", conda_parameters(described(), wanted()), {"tree": tree(store, tmp_path, files)})
    assert isinstance(packed, StageRecord)
    waiver = Waived(rule="conda/path-of-neighbour", where="include/fmt/**", reason="fmt is never beside it")
    refused, accepted = (
        run(store, "audit-conda", CondaAuditParameters(policy=None, waive=waive), {"package": packed.tree})
        for waive in ((), (waiver,))
    )
    assert isinstance(refused, StageFinished)
    found = [(each.rule, each.where) for each in refused.findings if each.severity == "error"]
    assert found == [("conda/path-of-neighbour", "include/fmt/core.h")]
    assert isinstance(accepted, StageRecord)


def test_packages_that_share_a_file_make_no_channel(store: Store, tmp_path: Path) -> None:
    inputs = {}
    for name in ("one", "two"):
        source = tree(store, tmp_path, {"include/x.h": b""})
        form = wanted(name=name, depends=("two ==2.0",) if name == "one" else ())
        record = run(store, "pack-conda", conda_parameters(described(name=name), form), {"tree": source})
        assert isinstance(record, StageRecord)
        inputs[f"conda:{name}"] = record.tree
    failed = run(store, "channel", ListingParameters(root="."), inputs)
    assert isinstance(failed, StageFinished)
    assert "include/x.h: another package contains the same file: two-1.0-h1234567_0.conda" in str(failed.message)
    assert "the package depends on two ==2.0 instead of two 1.0 h1234567_0" in str(failed.message)
    single = run(store, "channel", ListingParameters(root="."), {"conda:two": inputs["conda:two"]})
    assert isinstance(single, StageRecord)
    pages = {entry.path: entry.blob for entry in store.get_tree(single.tree).entries}
    repodata = json.loads(store.read_blob(pages["conda/noarch/repodata.json"] or Digest("")))
    assert list(repodata["packages.conda"]) == ["two-1.0-h1234567_0.conda"]
