"""The patches of PyTorch's recipe, on files of a real release: they apply as in builds, and do what they say."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from support.elfs import need
from support.inputs import debian_source

RECIPE = Path(__file__).parents[2] / "recipes" / "pytorch.toml"
FILES = (
    "CMakeLists.txt",
    "aten/src/ATen/CMakeLists.txt",
    "aten/src/ATen/cuda/CUDAConfig.h.in",
    "caffe2/CMakeLists.txt",
)


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("patch", "cmake")
    source, tree = debian_source("pytorch", "trixie"), tmp_path_factory.mktemp("patched")
    for name in FILES:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, tree / name)
    for patch in tomllib.loads(RECIPE.read_text("utf-8"))["patches"]:
        argv = ["patch", "-p1", "--batch", "--forward", "--fuzz=0", f"--input={RECIPE.parent / patch['file']}"]
        done = subprocess.run(argv, cwd=tree, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    return tree


def configured(script: str, folder: Path) -> str:
    """What a script of CMake prints."""
    (folder / "script.cmake").write_text(script)
    argv = ["cmake", "-P", "script.cmake"]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_a_build_without_bindings_has_the_library_too(patched: Path, tmp_path: Path) -> None:
    text = (patched / "CMakeLists.txt").read_text()
    option = text[text.index("cmake_dependent_option(\n  BUILD_LAZY_CUDA_LINALG") :].partition("\ncmake_")[0]
    script = f"include(CMakeDependentOption)\nset(USE_CUDA ON)\nset(LINUX ON)\nset(BUILD_PYTHON OFF)\n{option}\n"
    shown = 'message(STATUS "${BUILD_LAZY_CUDA_LINALG} ${USE_LINALG_MAGMA}")'
    assert configured(script + shown, tmp_path) == "-- ON ON\n"


def test_only_that_library_is_told_that_there_is_no_magma(patched: Path, tmp_path: Path) -> None:
    need("cc")
    template = (patched / "aten/src/ATen/cuda/CUDAConfig.h.in").read_text().replace("@AT_MAGMA_ENABLED@", "1")
    guarded = template[template.index("#ifdef LINALG") : template.index("\n\n", template.index("#ifdef LINALG"))]
    (tmp_path / "use.c").write_text(f"{guarded}\nint magma = AT_MAGMA_ENABLED();\n")
    for define, value in (("-DLINALG_WITHOUT_MAGMA", "0"), ("-DOTHER", "1")):
        argv = ["cc", "-E", "-P", define, "use.c"]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == f"int magma = {value};\n"
    listing = (patched / "caffe2/CMakeLists.txt").read_text()
    assert listing.count("PRIVATE LINALG_WITHOUT_MAGMA)") == 1
    assert "target_compile_definitions(torch_cuda_linalg PRIVATE LINALG_WITHOUT_MAGMA)" in listing


def test_headers_are_found_beside_the_package_of_atens(patched: Path, tmp_path: Path) -> None:
    listing = (patched / "aten/src/ATen/CMakeLists.txt").read_text()
    (line,) = (line for line in listing.splitlines() if line.startswith("set(ATEN_INCLUDE_DIR "))
    (tmp_path / "ATenConfig.cmake.in").write_text('set(ATEN_INCLUDE_DIR "@ATEN_INCLUDE_DIR@")\n')
    folder = tmp_path / "root/share/cmake/ATen"
    made = f'configure_file(ATenConfig.cmake.in "{folder}/ATenConfig.cmake")'
    configured(f"set(AT_INSTALL_INCLUDE_DIR include)\n{line}\n{made}\n", tmp_path)
    found = 'file(REAL_PATH "${ATEN_INCLUDE_DIR}" found)\nmessage(STATUS "${found}")'
    shown = configured(f'include("{folder}/ATenConfig.cmake")\n{found}\n', tmp_path)
    assert shown == f"-- {(tmp_path / 'root/include').resolve()}\n"
