"""What conda's activation scripts ask of CMake, for each way to tell it."""

from __future__ import annotations

from axletree.buildsystem.cmake.conda import conda_defines, told_to_setup_py

ARGS = (
    '-DCMAKE_FIND_ROOT_PATH="/host;/build/root" -DCMAKE_INSTALL_PREFIX:PATH=/host -DCMAKE_AR:FILEPATH=ar -DOTHER=1 -G X'
)
CONDA = {"BUILD_PREFIX": "/build", "CMAKE_ARGS": ARGS, "CMAKE_PREFIX_PATH": "/host:/build"}


def test_all_but_the_install_prefix_is_defined() -> None:
    expected = {"CMAKE_FIND_ROOT_PATH": "/host;/build/root", "CMAKE_AR:FILEPATH": "ar", "OTHER": "1"}
    assert conda_defines(CONDA) == expected
    assert conda_defines({"CMAKE_ARGS": ARGS}) == {}
    assert conda_defines({"BUILD_PREFIX": "/build"}) == {}


def setup_py(env: dict[str, str]) -> dict[str, str]:
    return told_to_setup_py(env, driver="setup.py", rules="setup.py")


def test_setup_py_gets_them_as_variables_and_its_folders_as_a_list() -> None:
    assert setup_py(CONDA) == {
        **CONDA,
        "CMAKE_PREFIX_PATH": "/host;/build",
        "CMAKE_FIND_ROOT_PATH": "/host;/build/root",
        "CMAKE_AR": "ar",
    }
    assert setup_py({**CONDA, "CMAKE_AR": "/recipe/ar"})["CMAKE_AR"] == "/recipe/ar"


def test_nothing_changes_elsewhere() -> None:
    env = {"CMAKE_ARGS": ARGS, "CMAKE_PREFIX_PATH": "/one:/two"}
    assert setup_py(env) == env, "no conda environment"
    assert told_to_setup_py(CONDA, driver="cmake", rules="setup.py") == CONDA
    assert told_to_setup_py(CONDA, driver="setup.py", rules="setup.py and CMake") == CONDA
