"""Ownership: each file of an SDK in one package or in none, whatever the claims are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError
from axletree.package.sdk.claims import assign, claimants, excluders, require_owned
from axletree.package.sdk.entries import SdkEntry
from axletree.package.sdk.manifest import Manifest, parse_manifest

RECIPES = Path(__file__).parents[2] / "recipes" / "sdk"

MANIFEST = """\
[sdk]
name = "demo"
module = "demo_sdk"
command = "demo-sdk"
prefix = "DEMO_SDK"

[[package]]
name = "core"
kind = "core"
dist = "demo-core"

[[package.claim]]
artifacts = ["run*"]
components = ["lib", "run"]
exclude = ["**/cmake/**"]

[[package.claim]]
artifacts = ["math"]
components = ["lib"]
files = ["lib/libshared.so"]

[[package]]
name = "libraries"
kind = "libraries"
dist = "demo-libraries"
extra = "libraries"
requires = ["core"]

[[package.claim]]
artifacts = ["math"]
components = ["lib"]

[[package]]
name = "devel"
kind = "devel"
dist = "demo-devel"
extra = "devel"

[[package.claim]]

[[drop]]
components = ["lib", "run", "dev", "doc", "test"]
files = ["share/junk/**"]
why = "junk"
"""


def manifest(text: str = MANIFEST) -> Manifest:
    return parse_manifest(text, filename="demo.toml")


def entry(path: str, artifact: str = "runtime", component: str = "lib", **more: object) -> SdkEntry:
    return SdkEntry(path=path, artifact=artifact, component=component, **more)  # type: ignore[arg-type]


def test_ranks_decide() -> None:
    found = assign(
        [
            entry("lib/liba.so"),
            entry("lib/cmake/a.cmake"),
            entry("lib/libm.so", "math"),
            entry("include/m.h", "math", "dev"),
            entry("share/junk/x", "math", "doc"),
            entry("share/junk", kind="folder"),
            entry("lib/liba.so.1", kind="link", link="liba.so"),
        ],
        manifest(),
    )
    assert not found.faulty
    assert {name: [each.path for each in entries] for name, entries in found.packages.items()} == {
        "core": ["lib/liba.so", "lib/liba.so.1"],
        "libraries": ["lib/libm.so"],
        "devel": ["include/m.h", "lib/cmake/a.cmake"],
    }
    assert [(each.entry.path, each.why) for each in found.dropped] == [("share/junk", "junk"), ("share/junk/x", "junk")]
    assert [each.where for each in found.unused] == ["core, claim 2"]


def test_what_has_no_place_is_reported_with_what_to_do() -> None:
    found = assign([entry("bin/t", "math", "test"), entry("share/doc/x", "math", "doc")], manifest())
    assert [each.path for each in found.unmatched] == ["bin/t", "share/doc/x"]
    with pytest.raises(IntegrityError) as caught:
        require_owned(found)
    tests, docs = caught.value.problems
    assert tests.message == "no package claims a file from math (test): bin/t"
    assert 'kind "tests"' in (tests.hint or "")
    assert "[[drop]]" in (docs.hint or "")


def test_two_claims_are_a_fault_that_names_both() -> None:
    found = assign([entry("lib/libshared.so", "math")], manifest())
    (dispute,) = found.disputed
    assert [claim.where for claim in dispute.claims] == ["core, claim 2", "libraries, claim 1"]
    with pytest.raises(
        IntegrityError,
        match=r"core, claim 2 \(lib of math, lib/libshared\.so\) and .* claim the same files: lib/libshared\.so",
    ):
        require_owned(found)


def test_a_path_that_is_there_twice_is_a_fault() -> None:
    found = assign([entry("lib/a.so"), entry("lib/a.so", "math"), entry("lib/b"), entry("lib/b/c")], manifest())
    assert [(clash.path, clash.why) for clash in found.clashes] == [
        ("lib/a.so", "the file is in math (lib, generic) and runtime (lib, generic)"),
        ("lib/b", "the path is a file in runtime (lib, generic) but a folder in runtime (lib, generic)"),
    ]


def test_the_same_path_for_other_gpus_is_another_file() -> None:
    both = [entry("lib/m.so", "math", target=target) for target in ("gfx90a", "gfx1100", "generic")]
    found = assign(both, manifest())
    assert not found.faulty
    assert len(found.packages["libraries"]) == 3


def test_equal_links_and_folders_of_two_artifacts_are_one() -> None:
    same = [entry("lib64", artifact, kind="link", link="lib") for artifact in ("runtime", "run2")]
    folders = [entry("share/empty", artifact, kind="folder") for artifact in ("runtime", "run2")]
    found = assign([*same, *folders], manifest())
    assert not found.faulty
    assert len(found.packages["core"]) == 2


def test_one_entry_is_explained() -> None:
    cmake = entry("lib/cmake/a.cmake")
    assert [claim.where for claim in claimants(cmake, manifest())] == ["devel, claim 1"]
    assert [(claim.where, pattern) for claim, pattern in excluders(cmake, manifest())] == [
        ("core, claim 1", "**/cmake/**")
    ]


parts = st.sampled_from(["lib", "bin", "cmake", "x", "share", "junk", "libm.so", "liba.so.1"])
paths = st.lists(parts, min_size=1, max_size=4).map("/".join)
entries = st.builds(
    entry,
    paths,
    st.sampled_from(["runtime", "math", "other"]),
    st.sampled_from(["lib", "run", "dbg", "dev", "doc", "test"]),
    target=st.sampled_from(["generic", "gfx90a"]),
)


@given(st.lists(entries, max_size=30))
def test_each_entry_has_exactly_one_verdict(given_entries: list[SdkEntry]) -> None:
    found = assign(given_entries, manifest())
    placed = [each.entry for each in found.owned] + [each.entry for each in found.dropped]
    placed += [*(each.entry for each in found.disputed), *found.unmatched]
    verdicts = [(each.path, each.target) for each in placed]
    assert len(verdicts) == len(set(verdicts))
    assert set(verdicts) == {(each.path, each.target) for each in given_entries}
    assert found == assign(list(reversed(given_entries)), manifest())
    for each in found.owned:
        assert claimants(each.entry, manifest())[0] == each.claim


# Artifacts of TheRock's BUILD_TOPOLOGY.toml and build_python_packages.py, by the package for run time that has them.
THEROCK = {
    "core": "amd-dbgapi amd-llvm aqlprofile base core-amdsmi core-hip core-hipinfo core-kpack core-ocl core-runtime "
    "hipify host-blas host-suite-sparse rocdecode rocgdb rocjpeg rocprofiler-sdk rocr-debug-agent sysdeps "
    "sysdeps-amd-mesa sysdeps-expat sysdeps-gmp sysdeps-mpfr sysdeps-ncurses sysdeps-libpciaccess sysdeps-hwloc",
    "libraries": "blas composable-kernel fft fusilli-plugin hipblasltprovider hipdnn miopen miopen-plugin "
    "miopenprovider rand rccl rocshmem rpp support",
    "profiler": "rocprofiler-compute rocprofiler-systems",
    "devel": "core-hiptests fftw3 flatbuffers fmt libhipcxx nlohmann-json prim rocwmma spdlog",
    "": "aqlprofile-tests rdc rocrtst",
}


@pytest.mark.parametrize(("owner", "names"), THEROCK.items())
def test_therocks_artifacts_have_a_place_in_the_shipped_manifest(owner: str, names: str) -> None:
    shipped = manifest((RECIPES / "rocm.toml").read_text(encoding="utf-8"))
    layout = {
        "lib": "lib/libX.so.1",
        "run": "share/X/data.bin",
        "dev": "include/X/x.h",
        "doc": "share/doc/X/README",
        "test": "bin/X-test",
        "dbg": ".build-id/ab/X.debug",
    }
    found = assign(
        [entry(path.replace("X", name), name, part) for name in names.split() for part, path in layout.items()], shipped
    )
    require_owned(found)
    owners = {(each.entry.artifact, each.entry.component): each.claim.package for each in found.owned}
    dropped = {(each.entry.artifact, each.entry.component) for each in found.dropped}
    for name in names.split():
        assert (owners.get((name, "lib")) or "") == owner
        assert (owners.get((name, "run")) or "") == owner
        assert owners[name, "test"] == "tests"
        assert (name, "dbg") in dropped


def test_an_artifact_that_is_new_in_therock_is_noticed() -> None:
    shipped = manifest((RECIPES / "rocm.toml").read_text(encoding="utf-8"))
    found = assign([entry("lib/libnew.so", "new-thing"), entry("include/new.h", "new-thing", "dev")], shipped)
    assert [each.path for each in found.unmatched] == ["lib/libnew.so"]


@pytest.mark.parametrize(
    ("path", "artifact", "component", "owner"),
    [
        ("lib/llvm/bin/clang-22", "amd-llvm", "run", "core"),
        ("lib/llvm/bin/offload-arch", "amd-llvm", "run", "core"),
        ("lib/llvm/lib/clang/22/include/stddef.h", "amd-llvm", "dev", "core"),
        ("lib/llvm/lib/clang/22/lib/amdgcn/bitcode/ockl.bc", "amd-llvm", "run", "core"),
        ("lib/llvm/lib/clang/22/lib/linux/libclang_rt.asan.so", "amd-llvm", "lib", "devel"),
        ("lib/llvm/bin/clangd", "amd-llvm", "run", "devel"),
        ("bin/amdclang++", "amd-llvm", "run", "core"),
        ("bin/hipcc", "amd-llvm", "run", "core"),
        ("include/hip/hip_runtime.h", "core-hip", "dev", "core"),
        ("lib/cmake/hip/hip-config.cmake", "core-hip", "dev", "devel"),
        ("lib/rocm_sysdeps/lib/librocm_sysdeps_elf.so.1", "sysdeps", "lib", "core"),
        ("lib/rocblas/library/Kernels.so-000-gfx942.hsaco", "blas", "lib", "libraries"),
        (".kpack/blas_lib_gfx942.kpack", "blas", "lib", "libraries"),
        ("share/miopen/db/gfx942.kdb", "miopen", "lib", "libraries"),
        ("bin/rocblas-bench", "blas", "run", "devel"),
        ("share/doc/rocblas/LICENSE.md", "blas", "doc", "libraries"),
    ],
)
def test_owners_in_therocks_layout(path: str, artifact: str, component: str, owner: str) -> None:
    shipped = manifest((RECIPES / "rocm.toml").read_text(encoding="utf-8"))
    (found,) = assign([entry(path, artifact, component)], shipped).owned
    assert found.claim.package == owner
