"""What is read out of each kind of file: tags, CMake, scripts, pins, requirements, matrices, macros, libraries."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packaging.version import Version

from axletree.binary.elf.facts import ElfFacts, VersionNeed
from axletree.core.errors import IntegrityError
from axletree.package.drift.channel import of_repodata
from axletree.package.drift.cmake import find_pins, project_version
from axletree.package.drift.conda_recipe import read_conda_recipe
from axletree.package.drift.linked import of_libraries
from axletree.package.drift.names import look_up, own_version, parse_table
from axletree.package.drift.requirements import (
    RequirementOrigin,
    of_build_matrix,
    of_pyproject,
    of_requirement,
    of_requirements_file,
    of_setup_py,
)
from axletree.package.drift.scripts import of_pin_file, of_script
from axletree.package.drift.tags import parse_contains, parse_describe, tag_version
from axletree.package.drift.tree import copy_of, is_wanted
from axletree.package.drift.vendored import of_copy, of_submodule
from support import drift

if TYPE_CHECKING:
    from axletree.package.drift.evidence import Evidence

TABLE = drift.table()
C = drift.COMMIT


def specs(evidence: tuple[Evidence, ...]) -> list[tuple[str, str]]:
    return [(each.dependency, each.spec) for each in evidence]


@pytest.mark.parametrize(
    ("tag", "version"),
    [
        ("v2.1.0", "2.1.0"),
        ("release-1.8.0", "1.8.0"),
        ("v3.7.0-rc.2", "3.7.0rc2"),
        ("v2.21.5-1", "2.21.5.post1"),
        ("curl-7_88_1", "7.88.1"),
        ("3.6", "3.6"),
        ("20240722.0", "20240722.0"),
        ("boost-1.82.0", "1.82.0"),
        ("release/1.2", "1.2"),
        ("V1.0", "1.0"),
        ("libpng16-1.6.40", "1.6.40"),
        ("main", None),
        ("last-good", None),
        ("", None),
    ],
)
def test_tags(tag: str, version: str | None) -> None:
    assert tag_version(tag) == (None if version is None else Version(version))


def test_describe_is_read_from_the_right() -> None:
    found = parse_describe(f"v3.7.0-rc.2-1279-g{C}\n")
    assert found is not None
    assert (found.tag, found.commits, found.commit) == ("v3.7.0-rc.2", 1279, C)
    assert parse_describe(C) is None
    assert parse_describe("heads/main") is None


def test_contains() -> None:
    before, exact = parse_contains("v9.0~3^2"), parse_contains("tags/v9.0^0")
    assert before is not None
    assert exact is not None
    assert (before.tag, before.exact) == ("v9.0", False)
    assert (exact.tag, exact.exact) == ("v9.0", True)


@pytest.mark.parametrize(
    ("name", "kind", "text", "own"),
    [
        ("libprotobuf", "tag", "v28.2", "5.28.2"),
        ("libprotobuf", "tag", "v35.1", "7.35.1"),
        ("libprotobuf", "tag", "v21.12", "3.21.12"),
        ("libprotobuf", "tag", "v3.13.0", "3.13.0"),
        ("nccl", "tag", "v2.21.5-1", "2.21.5.1"),
        ("nccl", "pypi", "2.30.7", "2.30.7.*"),
        ("cuda", "pypi", "13.0.3", "13.0.*"),
        ("libabseil", "tag", "lts_2024_07_22", "20240722.*"),
        ("libabseil", "tag", "20240722.0", "20240722.0"),
        ("cudnn", "soname", "9", "9.*"),
        ("sympy", "pypi", "1.13.3", "1.13.3"),
        ("sympy", "tag", "main", None),
    ],
)
def test_versions_in_the_tables_own_form(name: str, kind: str, text: str, own: str | None) -> None:
    assert own_version(TABLE, name, kind, text) == own  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "name", "dependency"),
    [
        ("pypi", "torch", "pytorch"),
        ("pypi", "nvidia-nccl-cu13", "nccl"),
        ("pypi", "nvidia-cudnn-cu12", "cudnn"),
        ("pypi", "typing_extensions", "typing-extensions"),
        ("conda", "typing_extensions", "typing-extensions"),
        ("conda", "libcudnn-dev", "cudnn"),
        ("conda", "mkl-devel", "mkl"),
        ("conda", "libmagma-devel", "magma"),
        ("conda", "cuda-version", "cuda"),
        ("submodule", "protobuf", "libprotobuf"),
        ("pypi", "protobuf", "protobuf"),
        ("cmake", "Eigen3", "eigen"),
        ("soname", "libcublasLt", "libcublas"),
        ("pypi", "whatever-else", "whatever-else"),
    ],
)
def test_names(kind: str, name: str, dependency: str) -> None:
    assert look_up(TABLE, kind, name) == dependency  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "suffixes = []\n[dependencies.a]\nnames = ['x']\n[dependencies.b]\nnames = ['X']\n",
        "suffixes = []\n[dependencies.a]\nversions = [{ of = ['tag'], pattern = '(', to = '' }]\n",
        "suffixes = []\n[dependencies.a]\nother = 1\n",
        "suffixes =",
    ],
)
def test_a_wrong_table_is_refused(text: str) -> None:
    with pytest.raises(IntegrityError):
        parse_table(text.encode(), file="t.toml", conda={})


def test_cmake_pins() -> None:
    text = """\
set(FMT_WANTED 11.0.2)
set(TWICE 1)
set(TWICE 2)
if(USE_X)
  find_package(fmt ${FMT_WANTED} REQUIRED)
  find_package(Eigen3 3.3...<4 QUIET)
  find_package(pybind11 2.13 EXACT)
  find_package(Threads REQUIRED)
  find_package(two ${TWICE})
endif()
FetchContent_Declare(json GIT_REPOSITORY https://github.com/nlohmann/json.git GIT_TAG v3.11.3)
ExternalProject_Add(mkldnn_ep URL https://example.org/onednn/archive/v3.5.3.tar.gz URL_HASH SHA256=00)
ExternalProject_Add(nccl_external SOURCE_DIR x)
FetchContent_Declare(gloo GIT_REPOSITORY https://github.com/pytorch/gloo
  GIT_TAG a6bfc237255a6bac1513f7c1ebde6d8aed6b5191)
ExternalProject_Add(fxdiv
  URL https://example.org/FXdiv/archive/a6bfc237255a6bac1513f7c1ebde6d8aed6b5191.zip)
"""
    found = find_pins(text, file="cmake/x.cmake", table=TABLE)
    assert specs(found) == [
        ("fmt", ">=11.0.2"),
        ("eigen", ">=3.3,<4"),
        ("pybind11", "2.13"),
        ("threads", "*"),
        ("two", "*"),
        ("nlohmann_json", "3.11.3"),
        ("onednn", "3.5.3"),
        ("gloo", C),
        ("fxdiv", C),
    ]
    assert [each.line for each in found[:2]] == [5, 6]
    assert found[-1].range is None
    assert {each.confidence for each in found} == {"likely"}


def test_a_file_that_is_no_cmake_says_nothing() -> None:
    assert find_pins("find_package(", file="x.cmake", table=TABLE) == ()
    assert project_version("project(", file="CMakeLists.txt") is None


def test_project_versions() -> None:
    text = "set(V 1.2)\nproject(\n  x VERSION ${V} LANGUAGES C)\n"
    assert project_version(text, file="CMakeLists.txt") == ("1.2", 2)
    assert project_version("project(x C)", file="CMakeLists.txt") is None


def test_scripts_are_about_the_cuda_that_they_name() -> None:
    text = """\
function install_126 {
  CUDNN_VERSION=9.10.2.21
  # CUDNN_VERSION=1
}
function install_130() {
  CUDNN_VERSION=9.19.0.56
}
pip_install "expecttest==0.3.0"
conda_install mkl=2021.4.0 mkl-include=2021.4.0
CUSPARSELT_NAME="libcusparse_lt-linux-${arch}-0.7.1.0-archive"
git clone --depth 1 --branch v0.3.25 https://github.com/OpenMathLib/OpenBLAS.git
OTHER_VERSION=${CUDNN_VERSION}
"""
    found = of_script(text, file=".ci/x.sh", table=TABLE)
    assert [(each.dependency, each.spec, each.gpus) for each in found] == [
        ("cudnn", "9.10.2.21", ("cu126",)),
        ("cudnn", "9.19.0.56", ("cu130",)),
        ("expecttest", "==0.3.0", ()),
        ("mkl", "2021.4.0", ()),
        ("cusparselt", "0.7.1.0", ()),
        ("openblas", "0.3.25", ()),
    ]
    assert [each.line for each in found] == [2, 6, 8, 9, 10, 11]


@pytest.mark.parametrize(
    ("file", "text", "expected", "gpus"),
    [
        (".ci/docker/ci_commit_pins/nccl-cu12.txt", "v2.27.5-1\n", ("nccl", "2.27.5.1"), ("cu12",)),
        (".ci/docker/ci_commit_pins/nccl.txt", "v2.27.5\n", ("nccl", "2.27.5.*"), ()),
        (".ci/docker/triton_version.txt", "3.7.1\n", ("triton", "3.7.1"), ()),
        (".ci/docker/ci_commit_pins/triton.txt", f"{C}\n", ("triton", C), ()),
        ("third_party/eigen_pin.txt", "3.4.0\n", ("eigen", "3.4.0"), ()),
        (".github/ci_commit_pins/vision.txt", f"# why\n{C}\n", ("torchvision", C), ()),
    ],
)
def test_pin_files(file: str, text: str, expected: tuple[str, str], gpus: tuple[str, ...]) -> None:
    (found,) = of_pin_file(text, file=file, table=TABLE)
    assert (found.dependency, found.spec) == expected
    assert found.gpus == gpus


@pytest.mark.parametrize("text", ["", "two words", "v1\nv2\n", "main\n"])
def test_what_is_no_pin_says_nothing(text: str) -> None:
    assert of_pin_file(text, file="ci_commit_pins/x.txt", table=TABLE) == ()


MATRIX = """\
CUDA_ARCHES_FULL_VERSION: dict[str, str] = {"12.6": "12.6.3", "13.0": "13.0.2"}
PYTORCH_EXTRA_INSTALL_REQUIREMENTS = {
    "12.6": (
        "nvidia-cudnn-cu12==9.10.2.21; platform_system == 'Linux' | "  # noqa: B950
        "nvidia-nccl-cu12==2.28.9; platform_system == 'Linux'"
    ),
    "xpu": ("intel-pti==0.10.1; platform_system == 'Windows' | " "umf==0.9.1"),
}
"""


def test_the_build_matrix() -> None:
    found = of_build_matrix(MATRIX, file="m.py", table=TABLE)
    assert [(each.dependency, each.spec, each.gpus, each.line) for each in found] == [
        ("cuda", "12.6.3", ("cu126",), 1),
        ("cuda", "13.0.2", ("cu130",), 1),
        ("cudnn", "==9.10.2.21", ("cu126",), 4),
        ("nccl", "==2.28.9.*", ("cu126",), 5),
        ("umf", "==0.9.1", ("xpu",), 7),
    ]
    assert of_build_matrix("def f(:", file="m.py", table=TABLE) == ()


def test_a_toolkits_extras_fan_out() -> None:
    text = 'cuda-toolkit[cublas,nvrtc]==13.0.3; platform_system == "Linux"'
    origin = RequirementOrigin(column="wheel", role="requires", file="w")
    whole, *parts = of_requirement(text, origin, table=TABLE)
    assert (whole.dependency, whole.spec) == ("cuda", "==13.0.*")
    assert [(each.dependency, each.range) for each in parts] == [("cuda-nvrtc", None), ("libcublas", None)]
    assert "cuda-toolkit ==13.0.*" in parts[0].note


def test_markers_decide_for_linux_and_the_pythons_that_matter() -> None:
    origin = RequirementOrigin(column="wheel", role="requires", file="w", pythons=("3.11", "3.14t"))
    for text, kept in {
        'a; platform_system == "Windows"': False,
        'a; python_version < "3.10"': False,
        'a; python_version >= "3.14"': True,
        'a; extra == "x" and sys_platform == "linux"': True,
        'a; extra == "x" and sys_platform == "win32"': False,
        "a @ https://example.org/a.whl": True,
        "no requirement !": False,
    }.items():
        assert bool(of_requirement(text, origin, table=TABLE)) is kept, text


def test_projects_own_lists() -> None:
    text = """\
[build-system]
requires = ["setuptools>=77,<82", "cmake>=3.27"]
[project]
dependencies = ["filelock"]
[project.optional-dependencies]
optree = ["optree>=0.13.0"]
"""
    found = of_pyproject(text, file="pyproject.toml", table=TABLE)
    assert [(each.dependency, each.spec, each.phase, each.optional, each.line) for each in found] == [
        ("setuptools", ">=77,<82", "build", "", 2),
        ("cmake", ">=3.27", "build", "", 2),
        ("filelock", "*", "run", "", 4),
        ("optree", ">=0.13.0", "run", "optree", 6),
    ]
    script = (
        'install_requires = [\n "filelock",\n "sympy==1.13.1",\n]\nsetup(extras_require={"oe": ["opt-einsum>=3.3"]})\n'
    )
    found = of_setup_py(script, file="setup.py", table=TABLE)
    assert [(each.dependency, each.spec, each.optional, each.line) for each in found] == [
        ("filelock", "*", "", 2),
        ("sympy", "==1.13.1", "", 3),
        ("opt-einsum", ">=3.3", "oe", 5),
    ]


NCCL = """\
##### version
NCCL_MAJOR   := 2
NCCL_MINOR   := 21
NCCL_PATCH   := 5
NCCL_SUFFIX  :=
PKG_REVISION := 1
"""
COGS = "#define COGS_MAJOR 1\n#define COGS_MINOR 2\n#define COGS_PATCH 3\n"


@pytest.mark.parametrize(
    ("folder", "files", "expected"),
    [
        ("third_party/fmt", {"include/fmt/base.h": "#define FMT_VERSION 110002\n"}, ("fmt", "11.0.2")),
        (
            "third_party/protobuf",
            {"src/google/protobuf/port_def.inc": "#define PROTOBUF_VERSION 3013000\n"},
            ("libprotobuf", "3.13.0"),
        ),
        ("third_party/onnx", {"VERSION_NUMBER": "1.17.0\n"}, ("onnx", "1.17.0")),
        ("third_party/kineto", {"CMakeLists.txt": "project(kineto VERSION 0.1)"}, ("kineto", "0.1")),
        ("third_party/miniz-3.0.2", {}, ("miniz", "3.0.2")),
        (
            "third_party/gloo",
            {"gloo/config.h.in": "#define GLOO_VERSION_MAJOR 0\n#define GLOO_VERSION_MINOR 5\n"},
            ("gloo", "0.5"),
        ),
        (
            "third_party/NVTX",
            {"c/include/nvtx_version.h": '#define OTHER_VERSION "9.9.9"\n#define NVTX_VERSION "3.1.0"\n'},
            ("nvtx", "3.1.0"),
        ),
        ("third_party/nccl", {"makefiles/version.mk": NCCL}, ("nccl", "2.21.5.1")),
        ("third_party/nccl", {"makefiles/version.mk": NCCL.replace(" := 1", " := 2")}, ("nccl", "2.21.5.2")),
        ("third_party/nccl", {"makefiles/version.mk": NCCL.partition("PKG")[0]}, ("nccl", "2.21.5.*")),
        ("third_party/cogs", {"version.mk": NCCL.replace("NCCL", "COGS")}, ("cogs", "2.21.5")),
        (
            "third_party/cogs",
            {"make/version.mk": "COGS_VERSION_MAJOR = 1\nCOGS_VERSION_MINOR ?= 4\n# COGS_VERSION_PATCH = 9\n"},
            ("cogs", "1.4"),
        ),
        (
            "third_party/cogs",
            {"cogs/version.h": "#define COGS_MAJOR 1\n#define COGS_MINOR 2\n#define COGS_REVISION 3\n"},
            ("cogs", "1.2.3"),
        ),
        (
            "third_party/cogs",
            {"cogs/version.h": f"{COGS}#define COGS_PKG_REVISION 4\n"},
            ("cogs", "1.2.3"),
        ),
    ],
)
def test_versions_in_a_vendored_copy(folder: str, files: dict[str, str], expected: tuple[str, str]) -> None:
    assert specs(of_copy(folder, files, table=TABLE)) == [expected]


@pytest.mark.parametrize(
    ("fields", "spec", "note"),
    [
        ({"described": f"v3.1.0-0-g{C}"}, "3.1.0", ""),
        ({"described": f"v2.1.0-705-g{C}"}, "2.1.0+", ""),
        ({"described": f"v2.1.0-3-g{C}", "contained": "v2.2.0~3"}, "2.1.0+ (before 2.2.0)", ""),
        ({"described": f"v3.0-3-g{C}", "contained": "v2.2.0~3"}, "3.0+", ""),
        ({"described": "", "contained": "v9.0~3"}, "(before 9.0)", "no tagged commit is an ancestor"),
        ({"described": "", "tags": 0, "shallow": True}, C[:12], "it is shallow"),
        ({"described": "", "here": False, "checked_out": None, "tags": 0}, C[:12], "not checked out"),
        ({"described": f"v1.5-2-g{C}", "annotated": f"v1.0-4-g{C}"}, "1.5+", "`git submodule status` reports v1.0, 4"),
        ({"described": f"v1.0-0-g{C}", "url": "https://github.com/someone/fmt"}, "1.0", "a fork"),
        ({"described": f"v1.0-0-g{C}", "checked_out": "f" * 40}, "1.0", "a different commit is checked out"),
        ({"described": f"nightly-0-g{C}"}, C[:12], "is not a version"),
    ],
)
def test_a_vendored_commit(fields: dict[str, object], spec: str, note: str) -> None:
    found = of_submodule(drift.submodule("third_party/fmt", **fields), table=TABLE)  # type: ignore[arg-type]
    assert (found.dependency, found.spec) == ("fmt", spec)
    assert note in found.note
    assert (found.confidence == "certain") == (spec == "3.1.0")


def test_bounds_take_the_versions_of_both_tags_in() -> None:
    module = drift.submodule("third_party/fmt", f"v2.1.0-3-g{C}", contained="v2.2.0~3")
    found = of_submodule(module, table=TABLE).range
    assert found is not None
    assert [v for v in ("2.0", "2.1.0", "2.1.9", "2.2.0", "2.2.1") if Version(v) in found] == [
        "2.1.0",
        "2.1.9",
        "2.2.0",
    ]


def test_libraries() -> None:
    facts = ElfFacts(
        bits=64,
        order="little",
        kind="shared",
        machine=62,
        needed=("libnccl.so.2", "libcublasLt.so.13", "libgomp-a34b3233.so.1", "libc.so.6", "libprotobuf.so.28.2.0"),
        versions_needed=(VersionNeed(file="libc.so.6", versions=("GLIBC_2.17", "GLIBC_2.9", "GLIBC_PRIVATE")),),
    )
    found = of_libraries([("torch/lib/libtorch.so", facts)], file="w.whl", table=TABLE)
    assert specs(found) == [
        ("nccl", "2.*"),
        ("libcublas", "13.*"),
        ("libprotobuf", "5.28.2"),
        ("glibc", ">=2.17"),
    ]


def test_a_recipe_yaml() -> None:
    text = """\
context:
  version: "2.13.0"
  number: 1
package:
  name: libtorch
  version: ${{ version }}
requirements:
  build:
    - ${{ compiler('cxx') }}
  host:
    - sleef >=3.6
    - if: cuda_compiler_version == "13.0"
      then:
        - nccl <2.29
        - libcudnn-dev
      else:
        - mkl-devel <2024
    - if: win
      then: windows-thing
    - libtorch ==${{ version }}
tests:
  - requirements:
      run:
        - pytest
"""
    found = read_conda_recipe(text, file="recipe.yaml", table=TABLE)
    assert found.version == "2.13.0"
    assert [(each.dependency, each.spec, each.gpus) for each in found.evidence] == [
        ("sleef", ">=3.6", ()),
        ("nccl", "<2.29", ("cu130",)),
        ("cudnn", "*", ("cu130",)),
        ("mkl", "<2024", ()),
    ]  # libtorch is what it makes
    assert found.passed_over == ("9: ${{ compiler('cxx') }}",)


def test_repodata() -> None:
    data = (
        b'{"packages": {"a-1.0-0.tar.bz2": {"name": "sleef", "version": "3.6"}}, "removed": ["b-3-0.conda"],'
        b' "packages.conda": {"b-3-0.conda": {"name": "sleef", "version": "3.9"},'
        b' "c-3-0.conda": {"name": "sleef", "version": "3.10rc1"}, "d-1-0.conda": {"name": "other", "version": "1"}}}'
    )
    (offer,) = of_repodata(data, {"sleef"}, file="r.json", table=TABLE)
    assert [text for _, text in offer.versions] == ["3.6"]
    assert of_repodata(data, {"sleef"}, file="r.json", table=TABLE, before=1e9) == ()  # no times in it
    with pytest.raises(IntegrityError):
        of_repodata(b"[]", {"sleef"}, file="r.json", table=TABLE)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (".ci/docker/ci_commit_pins/nccl-cu12.txt", True),
        (".ci/docker/triton_version.txt", True),
        (".ci/docker/common/install_mkl.sh", True),
        (".github/scripts/generate_binary_build_matrix.py", True),
        ("cmake/Dependencies.cmake", True),
        ("third_party/eigen_pin.txt", True),
        ("third_party/fmt/CMakeLists.txt", True),
        ("third_party/fmt/include/fmt/base.h", True),
        ("third_party/NNPACK/cmake/DownloadSix.cmake", True),
        ("third_party/fmt/test/CMakeLists.txt", False),
        ("test/cpp/CMakeLists.txt", False),
        ("torch/version.txt", False),
        ("README.md", False),
        ("src/isa_l/CMakeLists.txt", True),
    ],
)
def test_which_files_are_read(path: str, *, wanted: bool) -> None:
    headers = frozenset({"base.h"})
    assert is_wanted(path, modules=["src/isa_l"], headers=headers) is wanted


def test_the_innermost_copy_is_meant() -> None:
    assert copy_of("third_party/kineto/libkineto/third_party/fmt/a.h") == "third_party/kineto/libkineto/third_party/fmt"
    assert copy_of("third_party/README.md") is None
    assert copy_of("src/isa_l/a/b.c", ["src/isa_l"]) == "src/isa_l"


ALPHABET = "aA1.=-_ \n\t\"'#$(){}[]<>!~,;:/*|\\%@+" + "é"
PARTS = st.sampled_from(
    [
        "find_package(",
        "set(",
        "requirements:\n",
        "  run:\n",
        "- a ",
        ">=1",
        "==2.*",
        "${X}",
        "{{ v }}",
        "_VERSION=",
        "1" * 5000,
    ]
)


@example("_VERSION=" + "1" * 5000)  # TOML whose number has more digits than Python turns into one
@given(st.lists(st.one_of(st.text(ALPHABET, max_size=12), PARTS), max_size=14).map("".join))
def test_no_text_breaks_a_reader(text: str) -> None:
    origin = RequirementOrigin(column="ci", role="pin", file="f", pythons=("3.11",))
    found = [
        *of_script(text, file="f", table=TABLE),
        *of_pin_file(text, file="x/pins/f", table=TABLE),
        *find_pins(text, file="f", table=TABLE),
        *of_requirements_file(text, origin, table=TABLE),
        *of_pyproject(text, file="f", table=TABLE),
        *of_setup_py(text, file="f", table=TABLE),
        *of_build_matrix(text, file="f", table=TABLE),
        *read_conda_recipe(text, file="f", table=TABLE).evidence,
        *of_copy("f", {"VERSION": text, "CMakeLists.txt": text, "a/version.h": text}, table=TABLE),
    ]
    lines = len(re.split(r"\r\n?|\n", text))
    for each in found:
        assert each.dependency
        assert each.spec
        assert posixpath.basename(each.file) in {"f", "VERSION", "CMakeLists.txt", "version.h"}
        assert each.line is None or 1 <= each.line <= lines
    version = tag_version(text)
    assert version is None or re.search(r"\d", text)


@pytest.mark.parametrize(
    "text", ["build-system = 1", "project = [1]", "[project]\ndependencies = 'a'\noptional-dependencies = 3"]
)
def test_a_pyproject_of_another_shape_says_nothing(text: str) -> None:
    assert of_pyproject(text, file="pyproject.toml", table=TABLE) == ()


def test_long_lines_are_read_in_one_pass() -> None:
    """What looked at each part of them again and again would come to no end here."""
    for text in ("a-" * 400_000, " " * 400_000 + "x", "x-linux-" + "1-" * 400_000, "1." * 400_000):
        assert of_script(text, file="f.sh", table=TABLE) == ()
        assert len(of_pin_file(text.strip(), file="x/pins/f.txt", table=TABLE)) <= 1
        recipe = read_conda_recipe(f"requirements:\n  run:\n    - {text}\n", file="meta.yaml", table=TABLE)
        assert len(recipe.evidence) + len(recipe.passed_over) <= 1
        assert tag_version(text) is None
