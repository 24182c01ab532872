"""Exported targets in a new layout: names, paths, what they link to, and what must not be left in them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from axletree.core.errors import IntegrityError
from axletree.package.cmake.exports import CMakeTree, adapt_exports

TARGETS = "torch/share/cmake/Caffe2/Caffe2Targets.cmake"
RELEASE = "torch/share/cmake/Caffe2/Caffe2Targets-release.cmake"
CONFIG = "torch/share/cmake/Caffe2/Caffe2Config.cmake"
PREFIX = """\
get_filename_component(_IMPORT_PREFIX "${CMAKE_CURRENT_LIST_FILE}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)
if(_IMPORT_PREFIX STREQUAL "/")
  set(_IMPORT_PREFIX "")
endif()
"""
TARGETS_TEXT = f"""\
{PREFIX}
add_library(c10 SHARED IMPORTED)
set_target_properties(c10 PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${{_IMPORT_PREFIX}}/include"
)
add_library(torch_cpu SHARED IMPORTED)
set_target_properties(torch_cpu PROPERTIES
  INTERFACE_COMPILE_DEFINITIONS "USE_RPC;USE_TENSORPIPE"
  INTERFACE_INCLUDE_DIRECTORIES "${{_IMPORT_PREFIX}}/include;/usr/include/eigen3"
  INTERFACE_LINK_LIBRARIES "protobuf::libprotobuf;c10;fmt::fmt;\\$<LINK_ONLY:sleef>;/usr/lib/libonnx.so;-lm"
)
set(_IMPORT_PREFIX)
foreach(_target "protobuf::libprotobuf" "fmt::fmt" )
  if(NOT TARGET "${{_target}}" )
  endif()
endforeach()
"""
RELEASE_TEXT = """\
set_property(TARGET c10 APPEND PROPERTY IMPORTED_CONFIGURATIONS RELEASE)
set_target_properties(c10 PROPERTIES
  IMPORTED_LINK_DEPENDENT_LIBRARIES_RELEASE "cpuinfo"
  IMPORTED_LOCATION_RELEASE "${_IMPORT_PREFIX}/lib/libc10.so.2.6.0"
  IMPORTED_SONAME_RELEASE "libc10.so.2.6"
  )
list(APPEND _cmake_import_check_files_for_c10 "${_IMPORT_PREFIX}/lib/libc10.so.2.6.0" )
"""
FILES = {TARGETS: TARGETS_TEXT, RELEASE: RELEASE_TEXT, CONFIG: "find_package(Threads)\n"}
INSIDE = ("protobuf", "fmt", "sleef", "onnx", "cpuinfo", "m")


def tree(**fields: object) -> CMakeTree:
    libraries = {f"torch/lib/libc10.so{version}": "libtorch/lib/libc10.so" for version in ("", ".2.6", ".2.6.0")}
    folders = ("torch/include", "torch/lib", "torch/share", "torch/share/cmake", "torch/share/cmake/Caffe2")
    plain = CMakeTree(
        moved={path: f"lib{path}" for path in FILES} | libraries,
        folders={folder: f"lib{folder}" for folder in folders} | {"torch": "torch"},
        names={"libc10.so.2.6": "libc10.so", "libc10.so.2.6.0": "libc10.so"},
        inside=INSIDE,
        private=("/usr/include/eigen3",),
    )
    return replace(plain, **fields)


def problems(files: dict[str, str], where: CMakeTree) -> list[str]:
    with pytest.raises(IntegrityError) as caught:
        adapt_exports(files, where)
    return [f"{problem.file}:{problem.line} {problem.message}" for problem in caught.value.problems]


def test_names_become_those_that_are_kept() -> None:
    changes = adapt_exports(FILES, tree())
    assert changes.texts[RELEASE] == (
        RELEASE_TEXT.replace(".so.2.6.0", ".so").replace(".so.2.6", ".so").replace('"cpuinfo"', '""')
    )


def test_what_is_inside_and_what_is_private_is_left_out_and_all_else_stays() -> None:
    changes = adapt_exports(FILES, tree())
    new = TARGETS_TEXT.replace(";/usr/include/eigen3", "").replace(
        "protobuf::libprotobuf;c10;fmt::fmt;\\$<LINK_ONLY:sleef>;/usr/lib/libonnx.so;-lm", "c10"
    )
    assert changes.texts[TARGETS] == new.replace('_target "protobuf::libprotobuf" "fmt::fmt" )', "_target   )")
    assert changes.left_out == (
        "-lm",
        "/usr/include/eigen3",
        "/usr/lib/libonnx.so",
        "cpuinfo",
        "fmt::fmt",
        "protobuf::libprotobuf",
        "sleef",
    )
    assert set(changes.texts) == set(changes.exports) == {TARGETS, RELEASE}


def test_a_second_time_nothing_changes() -> None:
    once = {f"lib{path}": text for path, text in (FILES | adapt_exports(FILES, tree()).texts).items()}
    where = tree()
    again = replace(
        where, moved={path: path for path in where.moved.values()}, folders={"libtorch/include": "libtorch/include"}
    )
    assert adapt_exports(once, again).texts == {}


def test_paths_are_those_of_files_that_were_placed_apart() -> None:
    """Libraries in ``lib``, headers in ``include/torch``, CMake files deeper than before."""
    where = tree()
    moved = {
        path: new.replace("libtorch/lib", "lib").replace("libtorch/share", "opt/torch/share")
        for path, new in where.moved.items()
    }
    changes = adapt_exports(FILES, replace(where, moved=moved, folders={"torch/include": "include/torch"}))
    assert '"${_IMPORT_PREFIX}/../../include/torch"' in changes.texts[TARGETS]
    assert 'IMPORTED_LOCATION_RELEASE "${_IMPORT_PREFIX}/../../lib/libc10.so"' in changes.texts[RELEASE]


def test_a_folder_that_was_divided_is_included_whole() -> None:
    where = replace(tree(), spread={"torch/include": ("include", "include/libtorch")})
    text = adapt_exports(FILES, where).texts[TARGETS]
    assert '"${_IMPORT_PREFIX}/../include;${_IMPORT_PREFIX}/../include/libtorch"' in text
    linked = {TARGETS: TARGETS_TEXT.replace("INTERFACE_INCLUDE_DIRECTORIES", "INTERFACE_LINK_DIRECTORIES")}
    kept = adapt_exports(FILES | linked, where).texts[TARGETS]
    assert "include/libtorch" not in kept, "only what is searched for headers"


def test_an_absolute_prefix_is_computed_from_then_on() -> None:
    absolute = TARGETS_TEXT.replace(PREFIX, 'set(_IMPORT_PREFIX "/opt/torch")\n').replace(
        '"${_IMPORT_PREFIX}/include"\n)', '"/opt/torch/include"\n)'
    )
    text = adapt_exports(FILES | {TARGETS: absolute}, tree()).texts[TARGETS]
    assert "/opt/torch" not in text
    assert text.startswith("\n".join(PREFIX.splitlines()[:4]))
    assert 'INTERFACE_INCLUDE_DIRECTORIES "${_IMPORT_PREFIX}/include"\n' in text


def test_absolute_paths_of_the_build_machine_are_errors() -> None:
    assert problems(FILES, tree(private=(), inside=("protobuf", "fmt", "cpuinfo"))) == [
        f"{TARGETS}:16 torch_cpu: INTERFACE_INCLUDE_DIRECTORIES refers to /usr/include/eigen3 on the build machine",
        f"{TARGETS}:17 torch_cpu: INTERFACE_LINK_LIBRARIES refers to /usr/lib/libonnx.so on the build machine",
    ]


def test_targets_that_nobody_defines_are_errors_unless_they_are_looked_for() -> None:
    lost = tree(inside=("fmt", "sleef", "onnx", "cpuinfo", "m"))
    message = "torch_cpu links to protobuf::libprotobuf, which no CMake file in the tree defines or looks for"
    assert problems(FILES, lost) == [f"{TARGETS}:17 {message}"]
    for config in ("find_package(Protobuf REQUIRED)", "include(CMakeFindDependencyMacro)\nfind_dependency(protobuf)"):
        assert "protobuf::libprotobuf;c10" in adapt_exports(FILES | {CONFIG: config}, lost).texts[TARGETS]
    alias = "add_library(protobuf::libprotobuf ALIAS dummy)"
    assert "protobuf::libprotobuf;c10" in adapt_exports(FILES | {CONFIG: alias}, lost).texts[TARGETS]
    assert "protobuf::libprotobuf;c10" in adapt_exports(FILES, lost, beside=[alias]).texts[TARGETS]


def test_files_that_are_gone_are_errors() -> None:
    where = tree()
    moved = {path: new for path, new in where.moved.items() if "libc10" not in path}
    missing = "the file refers to torch/lib/libc10.so.2.6.0, which is not in the tree"
    assert problems(FILES, replace(where, moved=moved)) == [f"{RELEASE}:4 {missing}", f"{RELEASE}:7 {missing}"]
    dropped = problems(FILES, replace(where, moved=moved, dropped=("torch/lib/libc10.so.2.6.0",)))
    assert dropped[0] == f"{RELEASE}:4 the file refers to torch/lib/libc10.so.2.6.0, which `drop` removes"


def test_static_libraries_keep_what_they_link_to() -> None:
    """Nothing comes along with a static library: who links to it needs all that it was made with."""
    static = TARGETS_TEXT.replace("torch_cpu SHARED", "torch_cpu STATIC").replace(";/usr/lib/libonnx.so", "")
    files = FILES | {TARGETS: static, CONFIG: "find_package(Protobuf)\nfind_package(fmt)\n"}
    assert (
        '"protobuf::libprotobuf;c10;fmt::fmt;\\$<LINK_ONLY:sleef>;-lm"' in adapt_exports(files, tree()).texts[TARGETS]
    )


def test_other_cmake_files_are_left_alone() -> None:
    other = {CONFIG: 'set(X "/usr/lib/libonnx.so")\nset_target_properties(x PROPERTIES A "/usr")\n'}
    assert adapt_exports(other, tree()).texts == {}
    with pytest.raises(IntegrityError, match=r"Caffe2Config.cmake:1: the file is not a valid CMake file"):
        adapt_exports({CONFIG: "set("}, tree())
