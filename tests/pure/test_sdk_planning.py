"""The plan of an SDK's packages: payloads, search paths across packages, GPUs, the devel payload."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from axletree.binary.elf.facts import ElfFacts
from axletree.core.errors import IntegrityError
from axletree.package.sdk.describe import first_place, preload_order, shortname
from axletree.package.sdk.entries import Component, SdkEntry
from axletree.package.sdk.links import SdkTree
from axletree.package.sdk.machines import host_files
from axletree.package.sdk.manifest import Manifest, parse_manifest
from axletree.package.sdk.planning import Known, describe_sdk, plan_sdk
from axletree.package.sdk.shipped import PackageFile, ShippedCommand, ShippedLibrary
from axletree.package.sdk.targets import Selection
from axletree.package.sdk.wheels import function_name, package_members

if TYPE_CHECKING:
    from axletree.package.sdk.plan import SdkPlan

MANIFEST = """
[sdk]
name = "gizmo"
module = "gizmo_sdk"
command = "gizmo"
prefix = "GIZMO"
bin = "bin"
cmake = ["lib/nowhere/cmake", "lib/cmake"]

[[package]]
name = "core"
kind = "core"
dist = "gizmo-core"
claim = [{}]

[[package]]
name = "libraries"
kind = "libraries"
dist = "gizmo-libraries"
family = "gizmo-libraries-{family}"
device = "gizmo-device-{target}"
extra = "libraries"
requires = ["core"]
claim = [{}]

[[package]]
name = "extra"
kind = "runtime"
dist = "gizmo-extra"
extra = "extra"
claim = [{}]

[[package]]
name = "devel"
kind = "devel"
dist = "gizmo-devel"
extra = "devel"
requires = ["core", "libraries"]
claim = [{}]

[[command]]
files = ["bin/g++*", "bin/gizmo*"]
devel = true
args = ["--version"]
expect = "1.0"

[libraries]
dependent = ["lib/plugins/**"]
optional = ["maybe*"]

[libraries.opens]
"libgizmo.so.1" = ["libopened.so.2", "libnever.so.9"]

[environment]
GIZMO_PATH = "."
GIZMO_BITCODE = ["bitcode", "lib/bitcode"]
GIZMO_NONE = "nowhere"
GIZMO_PLATFORM = "=gpu"

[system]
"libnuma.so.*" = "libnuma1"
"""
PROMISED = frozenset({"libc.so.6", "libm.so.6"})


def manifest(text: str = MANIFEST) -> Manifest:
    return parse_manifest(text, filename="gizmo.toml")


def library(soname: str | None, *needed: str, **more: Any) -> ElfFacts:
    return ElfFacts(
        bits=64, order="little", kind="shared", machine=62, dynamic=True, soname=soname, needed=needed, **more
    )


def program(*needed: str) -> ElfFacts:
    return ElfFacts(
        bits=64,
        order="little",
        kind="shared",
        machine=62,
        dynamic=True,
        needed=needed,
        interpreter="/lib64/ld-linux-x86-64.so.2",
    )


class Sdk:
    """An SDK that is written down file by file."""

    def __init__(self) -> None:
        self.entries: list[SdkEntry] = []
        self.owned: dict[str, tuple[SdkEntry, ...]] = dict.fromkeys(("core", "libraries", "extra", "devel"), ())
        self.facts: dict[str, ElfFacts] = {}
        self.code: dict[str, tuple[str, ...]] = {}
        self.selection = Selection(targets=(), families={}, choices={}, hierarchy={})

    def file(
        self,
        package: str | None,
        path: str,
        facts: ElfFacts | None = None,
        *,
        code: tuple[str, ...] = (),
        target: str = "generic",
        component: Component = "lib",
        artifact: str = "a",
    ) -> SdkEntry:
        source = f"{path}@{artifact}-{target}"
        entry = SdkEntry(
            path=path,
            artifact=artifact,
            component=component,
            source=source,
            size=1,
            target=target,
            executable=facts is not None and facts.interpreter is not None,
        )
        if facts is not None:
            self.facts[source] = facts
        if code:
            self.code[source] = code
        return self.add(package, entry)

    def link(self, package: str | None, path: str, link: str) -> SdkEntry:
        return self.add(package, SdkEntry(path=path, kind="link", artifact="a", component="lib", link=link))

    def add(self, package: str | None, entry: SdkEntry) -> SdkEntry:
        self.entries.append(entry)
        if package is not None:
            self.owned[package] += (entry,)
        return entry

    @property
    def known(self) -> Known:
        return Known(
            entries=tuple(self.entries),
            owned=self.owned,
            facts=self.facts,
            code=self.code,
            selection=self.selection,
            promised=PROMISED,
        )

    def plan(self) -> SdkPlan:
        return plan_sdk(manifest(), self.known, version="1.0")


@pytest.fixture
def sdk() -> Sdk:
    """A runtime library that opens another, a compiler with a second name, a library with GPU code, headers."""
    sdk = Sdk()
    sdk.file("core", "lib/libgizmo.so.1.2.3", library("libgizmo.so.1", "libc.so.6", "libnuma.so.1"))
    sdk.link("core", "lib/libgizmo.so.1", "libgizmo.so.1.2.3")
    sdk.link("devel", "lib/libgizmo.so", "libgizmo.so.1")
    sdk.file("core", "lib/libopened.so.2", library("libopened.so.2"))
    sdk.file("core", "bin/gizmocc", program("libgizmo.so.1"))
    sdk.link("core", "bin/g++", "gizmocc")
    sdk.file("core", "lib/bitcode/a.bc")
    sdk.file("libraries", "lib/libfront.so.0", library("libfront.so.0", "libkernels.so.3", "libgizmo.so.1"))
    sdk.file(
        "libraries",
        "lib/libkernels.so.3.0",
        library("libkernels.so.3", "libgizmo.so.1"),
        code=("gfx900", "gfx906:xnack-", "gfx1030"),
    )
    sdk.link("libraries", "lib/libkernels.so.3", "libkernels.so.3.0")
    sdk.link("devel", "lib/libkernels.so", "libkernels.so.3")
    sdk.file("devel", "include/gizmo.h", component="dev")
    sdk.file("devel", "lib/cmake/gizmo/gizmo-config.cmake", component="dev")
    sdk.selection = Selection(
        targets=("gfx900", "gfx906", "gfx1030"),
        families={"gfx9_0": ("gfx900", "gfx906")},
        choices={"gfx9_0": ("gfx900", "gfx906"), "gfx900": ("gfx900",)},
        hierarchy={"gfx900": ("gfx9_0", "gfx9")},
        default="gfx9_0",
    )
    return sdk


def items(plan: SdkPlan, dist: str) -> dict[str, Any]:
    package = next(each for each in plan.packages if each.shipped.dist == dist)
    return {item.path: item for item in package.items}


def rpath(item: Any) -> tuple[str, ...] | None:
    return item.change.rpath if item.change is not None else None


def test_libraries_are_there_once_under_their_sonames(sdk: Sdk) -> None:
    core = items(sdk.plan(), "gizmo-core")
    assert sorted(core) == ["bin/g++", "bin/gizmocc", "lib/bitcode/a.bc", "lib/libgizmo.so.1", "lib/libopened.so.2"]
    assert core["lib/libgizmo.so.1"].entry.path == "lib/libgizmo.so.1.2.3"


def test_plugins_keep_the_name_that_they_are_opened_by(sdk: Sdk) -> None:
    sdk.file("core", "lib/python3/_gizmo.cpython-311-x86_64-linux-gnu.so", library("_gizmo.so"))
    sdk.file("core", "lib/plugins/plug.so.1", library("libplug.so"))
    sdk.link("core", "lib/plugins/plug.so", "plug.so.1")
    sdk.file("core", "lib/libodd.so", library("../build/libodd.so.1"))
    sdk.link("core", "lib/odd.so", "libodd.so")
    plan = sdk.plan()
    core = items(plan, "gizmo-core")
    kept = {"lib/python3/_gizmo.cpython-311-x86_64-linux-gnu.so", "lib/plugins/plug.so.1", "lib/libodd.so"}
    assert kept < core.keys()
    assert core["lib/plugins/plug.so"].entry.path == "lib/plugins/plug.so.1"
    assert core["lib/odd.so"].entry.path == "lib/libodd.so"
    devel = {item.path: item.link for item in plan.devel}
    assert devel["lib/plugins/plug.so.1"] == "../../../_gizmo_core/lib/plugins/plug.so.1"
    assert devel["lib/plugins/plug.so"] == "plug.so.1"


def test_a_library_is_found_by_a_soname_that_no_link_of_the_tree_gives_it(sdk: Sdk) -> None:
    sdk.file("core", "lib/libnumbered.so.7.1", library("libnumbered.so.7"))
    sdk.file("core", "lib/wanted.so", library("libwanted.so.2"))
    sdk.file("core", "lib/private/impl.so", library("libimpl.so.3"))
    sdk.link("core", "lib/libimpl.so.3", "private/impl.so")
    sdk.file("core", "lib/libuser.so.1", library("libuser.so.1", "libwanted.so.2", "libimpl.so.3"))
    core = items(sdk.plan(), "gizmo-core")
    assert {"lib/libnumbered.so.7", "lib/libwanted.so.2", "lib/private/libimpl.so.3"} < core.keys()
    assert rpath(core["lib/libuser.so.1"]) == ("$ORIGIN", "$ORIGIN/private")


def test_a_link_to_a_program_becomes_a_launcher(sdk: Sdk) -> None:
    sdk.link("extra", "libexec/deep/gizmocc-1", "../../bin/gizmocc")
    plan = sdk.plan()
    launcher = items(plan, "gizmo-core")["bin/g++"]
    assert (launcher.role, launcher.launches) == ("launcher", "gizmocc")
    across = items(plan, "gizmo-extra")["libexec/deep/gizmocc-1"]
    assert across.launches == "../../../_gizmo_core/bin/gizmocc"


def test_a_link_to_a_script_among_programs_becomes_a_launcher_too(sdk: Sdk) -> None:
    script = SdkEntry(path="libexec/tool/tool.py", artifact="a", component="lib", source="tool.py", executable=True)
    sdk.add("core", script)
    sdk.link("core", "bin/tool", "../libexec/tool/tool.py")
    sdk.link("core", "share/tool.py", "../libexec/tool/tool.py")
    core = items(sdk.plan(), "gizmo-core")
    assert (core["bin/tool"].role, core["bin/tool"].launches) == ("launcher", "../libexec/tool/tool.py")
    assert (core["share/tool.py"].role, core["share/tool.py"].entry) == ("file", script)


def test_a_static_program_is_no_library(sdk: Sdk) -> None:
    static = library(None, static_program=True, runpath=("/build/lib",))
    sdk.file("core", "bin/static", static)
    sdk.link("core", "bin/name", "static")
    plan = sdk.plan()
    core = items(plan, "gizmo-core")
    assert (core["bin/name"].role, core["bin/name"].launches) == ("launcher", "static")
    assert core["bin/static"].change is None
    assert "bin/static" not in {each.path for each in plan.packages[0].shipped.libraries}


def test_other_links_become_copies_and_links_to_folders_stay_out(sdk: Sdk) -> None:
    sdk.link("core", "share/a.bc", "../lib/bitcode/a.bc")
    sdk.link("core", "code", "lib/bitcode")
    sdk.link("core", "share/through", "../code/a.bc")
    plan = sdk.plan()
    core = items(plan, "gizmo-core")
    assert core["share/a.bc"].entry.path == core["share/through"].entry.path == "lib/bitcode/a.bc"
    assert "code" not in core
    assert {item.path: item.link for item in plan.devel}["code"] == "lib/bitcode"


@pytest.mark.parametrize("target", ["missing.so", "/usr/lib/libc.so.6", "../../out", "self"])
def test_a_link_that_leads_nowhere_is_an_error(sdk: Sdk, target: str) -> None:
    sdk.link("core", "lib/self", target)
    sdk.link("core", "lib/other", "nothing")
    with pytest.raises(IntegrityError) as caught:
        sdk.plan()
    text = str(caught.value)
    assert "lib/self" in text
    assert "lib/other: a: the path is a link to nothing, which is not in the tree" in text
    assert "[[drop]]" in text


def test_two_files_for_one_place_are_an_error(sdk: Sdk) -> None:
    sdk.file("core", "lib/libgizmo.so.1.2.4", library("libgizmo.so.1"))
    with pytest.raises(IntegrityError, match=r"libgizmo\.so\.1\.2\.3 and lib/libgizmo\.so\.1\.2\.4 would both become"):
        sdk.plan()


def test_search_paths_lead_to_what_is_needed_and_nowhere_else(sdk: Sdk) -> None:
    sdk.file("core", "lib/plugins/libplug.so", library(None, "libc.so.6", runpath=("/build/lib", "$ORIGIN/../x")))
    sdk.file("core", "lib/libfine.so.1", library("libfine.so.1", "libopened.so.2", rpath=("$ORIGIN",)))
    plan = sdk.plan()
    core = items(plan, "gizmo-core")
    assert rpath(core["bin/gizmocc"]) == ("$ORIGIN/../lib",)
    assert rpath(core["lib/libgizmo.so.1"]) == ("$ORIGIN",)  # what it opens lies beside it
    assert rpath(core["lib/plugins/libplug.so"]) == ()
    assert core["lib/libfine.so.1"].change is None
    assert core["lib/libopened.so.2"].change is None
    devices = [f"$ORIGIN/../../_gizmo_{name}/lib" for name in ("libraries_gfx9_0", "device_gfx900", "device_gfx906")]
    front = rpath(items(plan, "gizmo-libraries")["lib/libfront.so.0"])
    assert front == (*devices, "$ORIGIN/../../_gizmo_device_gfx1030/lib", "$ORIGIN/../../_gizmo_core/lib")


def test_a_library_that_nobody_brings_is_an_error(sdk: Sdk) -> None:
    sdk.file("core", "bin/lost", program("libnowhere.so.7", "libc.so.6"))
    sdk.file("core", "bin/lost-too", program("libnowhere.so.7"))
    with pytest.raises(IntegrityError) as caught:
        sdk.plan()
    assert "bin/lost: libnowhere.so.7: the file needs libnowhere.so.7 (and 1 more file)" in str(caught.value)
    assert '"libnowhere.so.7" = "package of the host"' in str(caught.value)


def test_a_library_of_a_package_that_is_not_required_is_an_error(sdk: Sdk) -> None:
    sdk.file("core", "bin/upward", program("libfront.so.0"))
    with pytest.raises(IntegrityError) as caught:
        sdk.plan()
    assert "needs libfront.so.0, which only package libraries provides" in str(caught.value)
    assert 'add "libraries" to `requires` of [[package]] "core"' in str(caught.value)


def test_what_hosts_bring_is_written_down(sdk: Sdk) -> None:
    shipped = sdk.plan().packages[0].shipped
    assert [(need.soname, need.package, need.files) for need in shipped.system] == [
        ("libnuma.so.1", "libnuma1", ("lib/libgizmo.so.1",))
    ]


def test_an_own_library_is_preferred_to_the_hosts(sdk: Sdk) -> None:
    sdk.file("core", "lib/deps/libnuma.so.1", library("libnuma.so.1"))
    plan = sdk.plan()
    assert plan.packages[0].shipped.system == ()
    assert rpath(items(plan, "gizmo-core")["lib/libgizmo.so.1"]) == ("$ORIGIN/deps", "$ORIGIN")


def test_gpu_code_goes_into_packages_for_families_and_targets(sdk: Sdk) -> None:
    plan = sdk.plan()
    made = {each.shipped.dist: each for each in plan.packages}
    assert list(made) == [
        "gizmo-core",
        "gizmo-libraries",
        "gizmo-libraries-gfx9-0",
        "gizmo-device-gfx900",
        "gizmo-device-gfx906",
        "gizmo-device-gfx1030",
    ]
    assert list(items(plan, "gizmo-libraries")) == ["lib/libfront.so.0"]
    family = made["gizmo-libraries-gfx9-0"]
    assert (family.extra, family.shipped.folder) == ("libraries-gfx9-0", "_gizmo_libraries_gfx9_0")
    assert family.requires == ("gizmo-libraries", "gizmo-core")
    (kernels,) = family.items
    assert (kernels.path, kernels.thin) == ("lib/libkernels.so.3", ("gfx900", "gfx906"))
    assert rpath(kernels) == ("$ORIGIN/../../_gizmo_core/lib",)
    (single,) = made["gizmo-device-gfx906"].items
    assert single.thin == ("gfx906",)


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("lib/kernels/Kernels_gfx900.co", {"gizmo-libraries-gfx9-0", "gizmo-device-gfx900"}),
        ("share/db/gfx1030.kdb", {"gizmo-device-gfx1030"}),
        ("lib/kernels/fallback.dat", {"gizmo-libraries"}),
        ("lib/gfx900.py", {"gizmo-libraries"}),
    ],
)
def test_files_that_kernels_are_kept_in_go_by_their_names(sdk: Sdk, path: str, where: set[str]) -> None:
    sdk.file("libraries", path)
    plan = sdk.plan()
    assert {each.shipped.dist for each in plan.packages if path in items(plan, each.shipped.dist)} == where


def test_artifacts_for_single_targets_may_bring_the_same_path(sdk: Sdk) -> None:
    sdk.file("libraries", "lib/db/tuning.txt", target="gfx900", artifact="blas")
    sdk.file("libraries", "lib/db/tuning.txt", target="gfx1030", artifact="blas")
    plan = sdk.plan()
    sources = {
        each.shipped.dist: items(plan, each.shipped.dist)["lib/db/tuning.txt"].entry.target
        for each in plan.packages
        if "lib/db/tuning.txt" in items(plan, each.shipped.dist)
    }
    assert sources == {
        "gizmo-libraries-gfx9-0": "gfx900",
        "gizmo-device-gfx900": "gfx900",
        "gizmo-device-gfx1030": "gfx1030",
    }


@pytest.mark.parametrize(
    ("path", "dists"),
    [
        ("share/db/gfx90678.kdb", {"gizmo-libraries-gfx9-0", "gizmo-device-gfx906"}),
        ("share/db/gfx1030_36.db.txt", {"gizmo-device-gfx1030"}),
        ("share/db/gfx90a68.kdb", {"gizmo-libraries"}),
        ("lib/kernels/Kernels_gfx1201.co", {"gizmo-libraries"}),
    ],
)
def test_what_is_named_for_a_gpu_is_somewhere(sdk: Sdk, path: str, dists: set[str]) -> None:
    sdk.file("libraries", path)
    plan = sdk.plan()
    found = {each.shipped.dist for each in plan.packages if path in {item.path for item in each.items}}
    assert found == dists
    noted = [f"{path}: included in gizmo-libraries, because the code is for GPUs that have no package of their own"]
    assert list(plan.notes) == (noted if dists == {"gizmo-libraries"} else [])


def test_what_artifacts_bring_for_gpus_without_a_package_is_for_all_once(sdk: Sdk) -> None:
    sdk.file("libraries", "lib/db/tuning.txt", target="gfx94X-dcgpu", artifact="blas")
    plan = sdk.plan()
    assert "lib/db/tuning.txt" in items(plan, "gizmo-libraries")
    (mirrored,) = (item for item in plan.devel if item.path == "lib/db/tuning.txt")
    assert mirrored.link == "../../../_gizmo_libraries/lib/db/tuning.txt"
    sdk.file("libraries", "lib/db/tuning.txt", target="gfx120X-all", artifact="blas")
    with pytest.raises(IntegrityError, match="is in blas for gfx120X-all and in blas for gfx94X-dcgpu"):
        sdk.plan()


@pytest.mark.parametrize("path", ["__init__.py", "_sdk.json"])
@pytest.mark.parametrize("package", ["core", "devel"])
def test_names_that_packages_have_themselves_are_refused(sdk: Sdk, path: str, package: str) -> None:
    sdk.file(package, path)
    with pytest.raises(IntegrityError, match=r"reserves this path for its own file") as caught:
        sdk.plan()
    assert "[[drop]]" in str(caught.value)


def test_devel_has_the_links_to_libraries_of_artifacts_for_single_gpus(sdk: Sdk) -> None:
    for target in ("gfx900", "gfx1030"):
        blas = library("libblas.so.4", "libc.so.6")
        sdk.file("libraries", "lib/libblas.so.4.1", blas, target=target, artifact="blas", code=(target,))
        for path, link in (("lib/libblas.so.4", "libblas.so.4.1"), ("lib/libblas.so", "libblas.so.4")):
            sdk.add(
                "libraries",
                SdkEntry(path=path, kind="link", artifact="blas", component="lib", link=link, target=target),
            )
    plan = sdk.plan()
    for target in ("gfx900", "gfx1030"):
        found = items(plan, f"gizmo-device-{target}")["lib/libblas.so.4"]
        assert (found.entry.target, found.thin) == (target, (target,))
    devel = {item.path: item.link for item in plan.devel if "blas" in item.path}
    assert devel == {"lib/libblas.so": "libblas.so.4", "lib/libblas.so.4.1": "libblas.so.4"}


def test_a_library_that_others_need_is_there_for_gpus_that_it_has_no_code_for(sdk: Sdk) -> None:
    sdk.file("libraries", "lib/libsmall.so.1", library("libsmall.so.1", "libc.so.6"), code=("gfx900",))
    sdk.file("libraries", "lib/libalone.so.1", library("libalone.so.1", "libc.so.6"), code=("gfx900",))
    user = library("libuser.so.1", "libsmall.so.1", "libc.so.6")
    sdk.file("libraries", "lib/libuser.so.1", user, code=("gfx900", "gfx906", "gfx1030"))
    plan = sdk.plan()
    for device in ("gizmo-device-gfx900", "gizmo-device-gfx1030", "gizmo-libraries-gfx9-0"):
        found = items(plan, device)
        assert rpath(found["lib/libuser.so.1"]) == ("$ORIGIN",)
        assert ("lib/libsmall.so.1" in found, "lib/libalone.so.1" in found) == (True, device != "gizmo-device-gfx1030")


def test_two_targets_of_a_family_can_t_bring_the_same_path(sdk: Sdk) -> None:
    sdk.file("libraries", "lib/db/tuning.txt", target="gfx900", artifact="blas")
    sdk.file("libraries", "lib/db/tuning.txt", target="gfx906", artifact="blas")
    with pytest.raises(IntegrityError, match="is in blas for gfx900 and in blas for gfx906"):
        sdk.plan()


def test_files_for_one_gpu_belong_in_no_other_kind_of_package(sdk: Sdk) -> None:
    sdk.file("core", "lib/tuned.txt", target="gfx900")
    with pytest.raises(IntegrityError, match="is for gfx900 only, but package core is for all GPUs"):
        sdk.plan()


def test_the_devel_payload_is_the_whole_sdk(sdk: Sdk) -> None:
    sdk.add("devel", SdkEntry(path="share/empty", kind="folder", artifact="a", component="dev"))
    sdk.file("devel", "lib/libonly.so.4.4", library("libonly.so.4", "libgizmo.so.1", "libkernels.so.3"))
    sdk.file("devel", "lib/libstatic.a", component="dev")
    plan = sdk.plan()
    members = {item.path: item for item in plan.devel}
    links = {path: item.link for path, item in members.items() if item.kind == "link"}
    assert links == {
        "bin/g++": "gizmocc",
        "bin/gizmocc": "../../_gizmo_core/bin/gizmocc",
        "lib/bitcode/a.bc": "../../../_gizmo_core/lib/bitcode/a.bc",
        "lib/libfront.so.0": "../../_gizmo_libraries/lib/libfront.so.0",
        "lib/libgizmo.so": "libgizmo.so.1",
        "lib/libgizmo.so.1": "../../_gizmo_core/lib/libgizmo.so.1",
        "lib/libgizmo.so.1.2.3": "libgizmo.so.1",
        "lib/libkernels.so": "libkernels.so.3",
        "lib/libkernels.so.3.0": "libkernels.so.3",
        "lib/libonly.so.4.4": "libonly.so.4",
        "lib/libopened.so.2": "../../_gizmo_core/lib/libopened.so.2",
    }
    assert "lib/libkernels.so.3" not in members  # comes with the package of the GPU that is there
    assert members["lib/libonly.so.4"].change is not None
    assert members["lib/libonly.so.4"].change.rpath == ("$ORIGIN",)
    assert [path for path, item in members.items() if item.kind == "folder"] == [
        "bin",
        "include",
        "lib",
        "lib/bitcode",
        "lib/cmake",
        "lib/cmake/gizmo",
        "share",
        "share/empty",
    ]
    assert plan.devel_requires == ("gizmo-core", "gizmo-libraries")


def test_a_devel_link_to_what_was_dropped_is_an_error(sdk: Sdk) -> None:
    sdk.file(None, "share/dropped.txt")
    sdk.link("devel", "share/pointer.txt", "dropped.txt")
    with pytest.raises(IntegrityError, match=r"is a link to dropped\.txt, which is dropped"):
        sdk.plan()


def test_packages_with_nothing_in_them_are_not_made(sdk: Sdk) -> None:
    sdk.owned["libraries"] = ()
    sdk.owned["devel"] = tuple(entry for entry in sdk.owned["devel"] if "kernels" not in entry.path)
    plan = sdk.plan()
    assert [each.shipped.dist for each in plan.packages] == ["gizmo-core"]
    assert plan.devel_requires == ("gizmo-core",)


def test_what_the_selector_says(sdk: Sdk) -> None:
    plan = sdk.plan()
    said = describe_sdk(manifest(), sdk.known, plan, version="1.0")
    assert said.environment == {
        "GIZMO_BITCODE": "{root}/lib/bitcode",
        "GIZMO_PATH": "{root}",
        "GIZMO_PLATFORM": "gpu",
    }
    assert (said.bin, said.cmake, said.default_family) == ("bin", "lib/cmake", "gfx9_0")
    assert said.preload_order.index("opened") < said.preload_order.index("gizmo") < said.preload_order.index("kernels")
    assert said.preload_order.index("kernels") < said.preload_order.index("front")
    assert [each.extra for each in said.packages] == [
        "",
        "libraries",
        "libraries-gfx9-0",
        "device-gfx900",
        "device-gfx906",
        "device-gfx1030",
        "devel",
    ]


def test_commands_are_those_that_the_payload_has(sdk: Sdk) -> None:
    sdk.file("core", "sbin/gizmo-admin", program())
    sdk.file("core", "bin/other", program())
    commands = sdk.plan().packages[0].shipped.commands
    assert [(each.name, each.path, each.devel, each.expect) for each in commands] == [
        ("g++", "bin/g++", True, "1.0"),
        ("gizmocc", "bin/gizmocc", True, "1.0"),
    ]


def test_programs_whose_names_no_script_can_have_get_none(sdk: Sdk) -> None:
    for name in ("gizmo=1", "gizmo[x]", "gizmo me", "gizmo:x", "gizmo.py"):
        sdk.file("core", f"bin/{name}", program())
    commands = sdk.plan().packages[0].shipped.commands
    assert [each.name for each in commands] == ["g++", "gizmo.py", "gizmocc"]


@pytest.mark.parametrize("name", ["amdclang++", "2to3", "import", "os", "sys", "Path", "_run", "a.b-c"])
def test_scripts_are_python_whatever_their_names_are(name: str) -> None:
    command = ShippedCommand(name=name, path=f"bin/{name}")
    about = PackageFile(
        sdk="g", package="core", kind="core", dist="g-core", version="1", folder="_g_core", commands=(command,)
    )
    made = {member.path: member.data for member in package_members(about, runtime="g_sdk")}
    code = made["g_core/_cli.py"]
    assert isinstance(code, bytes)
    space: dict[str, Any] = {"__file__": "/site/g_core/_cli.py"}
    exec(compile(code, "_cli.py", "exec"), space)
    called: list[tuple[str, str]] = []
    function = space[function_name(name)]
    space["_run"] = lambda *told: called.append(told)
    function()
    assert called == [(name, f"bin/{name}")]
    assert (space["os"], space["sys"]) == (os, sys)


def test_libraries_are_listed_with_what_they_need_of_the_sdk(sdk: Sdk) -> None:
    sdk.file("core", "lib/plugins/libgizmo.so", library("libgizmo.so.1", "libc.so.6"))
    sdk.file("core", "lib/libmaybe2.so.1", library("libmaybe2.so.1"))
    libraries = {each.path: each for each in sdk.plan().packages[0].shipped.libraries}
    assert libraries["lib/libgizmo.so.1"] == ShippedLibrary(
        shortname="gizmo", path="lib/libgizmo.so.1", soname="libgizmo.so.1", needs=("libopened.so.2",)
    )
    plugin = libraries["lib/plugins/libgizmo.so"]
    assert (plugin.shortname, plugin.standalone) == ("libgizmo.so.1", False)
    assert libraries["lib/libmaybe2.so.1"].optional


def test_files_for_other_machines_are_data() -> None:
    native = {f"lib/lib{number}.so": library(f"lib{number}.so") for number in range(3)}
    others = {
        "lib/libclang_rt.asan-i386.so": ElfFacts(bits=32, order="little", kind="shared", machine=3, dynamic=True),
        "target/agent": ElfFacts(bits=64, order="little", kind="executable", machine=183, dynamic=True),
        "lib/kernels_gfx90a.hsaco": ElfFacts(bits=64, order="little", kind="shared", machine=224, dynamic=True),
    }
    found = host_files({**others, **native}, {path: path for path in (*native, *others)})
    assert (found.machine, found.facts) == ("x86_64", native)
    assert [note.partition(",")[0] for note in found.notes] == [
        "target/agent: for aarch64",
        "lib/libclang_rt.asan-i386.so: for i686",
    ]
    assert host_files({"a.hsaco": others["lib/kernels_gfx90a.hsaco"]}, {"a.hsaco": "a.hsaco"}).facts == {}


@pytest.mark.parametrize(
    ("soname", "short"),
    [
        ("libamdhip64.so.5", "amdhip64"),
        ("libLLVM-15.so.1", "LLVM-15"),
        ("libhiprtc-builtins.so.5.2", "hiprtc-builtins"),
        ("LLVMgold.so", "LLVMgold"),
        ("libfoo.so", "foo"),
        ("odd", "odd"),
    ],
)
def test_short_names(soname: str, short: str) -> None:
    assert shortname(soname) == short


def test_libraries_that_need_each_other_are_still_ordered() -> None:
    def shipped(name: str, *needs: str) -> ShippedLibrary:
        return ShippedLibrary(
            shortname=name, path=name, soname=f"lib{name}.so", needs=tuple(f"lib{n}.so" for n in needs)
        )

    libraries = [shipped("a", "b"), shipped("b", "a", "c"), shipped("c"), shipped("d", "d", "a")]
    order = preload_order(libraries)
    assert sorted(order) == ["a", "b", "c", "d"]
    assert order.index("c") < order.index("b")
    assert order.index("a") < order.index("d")
    assert preload_order(reversed(libraries)) == order


def test_links_are_followed_inside_the_tree_only() -> None:
    def link(path: str, target: str) -> SdkEntry:
        return SdkEntry(path=path, kind="link", artifact="a", component="lib", link=target)

    tree = SdkTree(
        [
            SdkEntry(path="lib/real/x.so", artifact="a", component="lib"),
            link("lib64", "lib/./real"),
            link("deep/er/one", "../../lib64/x.so"),
            link("two", "deep/er/../er/one"),
            link("loop", "pool"),
            link("pool", "loop"),
            link("up", "../two"),
            link("absolute", "/lib/real/x.so"),
            link("into", "lib/real/x.so/more"),
        ]
    )
    assert tree.real("two") == "lib/real/x.so"
    assert tree.real("lib64/x.so") == "lib/real/x.so"
    assert tree.real("lib64") == "lib/real"
    assert [tree.real(path) for path in ("loop", "up", "absolute", "into", "nothing")] == [None] * 5


def test_the_first_place_that_is_there_counts() -> None:
    assert first_place(("a", "b"), {"b", "c"}) == "b"
    assert first_place("a", {"b"}) is None
    assert first_place(".", set()) == "."
