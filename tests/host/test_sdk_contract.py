"""The public contract of ROCm's Python packages, name by name; and the page that says which test holds which part."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest

from axletree.cli.main import main
from support.artifacts import make_artifact
from support.elfs import compile_library, need, run
from support.hip_library import bundles, hip_library

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "sdk-contract.md"
TEST = re.compile(r"`((?:pure|host|flow)/test_\w+\.py)::(test_\w+)`")
GROUP = "gfx110X-all"
VERSION = "7.12.0.dev0"
HELPER = '#!/bin/sh\necho "HIP version: 7.12 $*"\n'

FRAMEWORK = """
import warnings
import rocm_sdk
assert rocm_sdk.__version__ == {version!r}
assert [path.name for path in rocm_sdk.find_libraries("amdhip64", "hiprand")] == ["libamdhip64.so.7", "libhiprand.so.1"]
assert all(path.is_absolute() for path in rocm_sdk.find_libraries("amdhip64", "hiprand"))
rocm_sdk.initialize_process(preload_shortnames=["amdhip64", "hiprand"], check_version={version!r})
maps = open("/proc/self/maps").read()
assert "_rocm_sdk_core/lib/libamdhip64.so.7" in maps
assert "_rocm_sdk_libraries_gfx110X_all/lib/libhiprand.so.1" in maps
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    rocm_sdk.initialize_process(preload_shortnames=[], check_version="6.*")
assert [each.category for each in caught] == [UserWarning]
try:
    rocm_sdk.initialize_process(preload_shortnames=[], check_version="6.*", fail_on_version_mismatch=True)
except RuntimeError:
    print("as it should be")
"""


def rows(heading: str) -> list[tuple[str, ...]]:
    """The lines of the table below a heading."""
    text = PAGE.read_text(encoding="utf-8")
    part = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines[2:]]


@cache
def defined_in(path: str) -> frozenset[str]:
    """The tests that a file defines."""
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("heading", ["What the design says", "Known faults of other tools"])
def test_each_line_of_the_page_names_tests_that_there_are(heading: str) -> None:
    found = rows(heading)
    assert len(found) > 15
    for row in found:
        named = TEST.findall(row[-1])
        assert named, f"no test holds {row[0]!r}"
        assert not (rest := TEST.sub("", row[-1]).strip(" ,")), rest
        for path, test in named:
            assert (ROOT / "tests" / path).exists(), path
            assert test in defined_in(path), f"{path} has no {test}"


def test_all_known_faults_are_on_the_page() -> None:
    assert [row[0] for row in rows("Known faults of other tools")] == list("abcdefghijklmnop")


def test_all_names_of_the_design_are_on_the_page() -> None:
    stated = " ".join(row[0] for row in rows("What the design says"))
    for name in (
        *("`rocm`", "`rocm-sdk-core`", "`rocm-sdk-libraries`", "`rocm-sdk-devel`", "`rocm_sdk`", "`rocm-sdk test`"),
        *("`rocm-sdk path --cmake`", "`--root`", "`--bin`", "`rocm-sdk version`", "`_devel.tar`", "`_devel.tar.xz`"),
        *("`ROCM_SDK_TARGET_FAMILY`", "`DEFAULT_TARGET_FAMILY`", "`rocm[libraries,devel]`", "`_rocm_init.py`"),
        *("`preload_shortnames`", "`check_version`", "`fail_on_version_mismatch`", "`find_libraries(*shortnames)`"),
        *("`PYTORCH_EXTRA_INSTALL_REQUIREMENTS`", "`index.html`", "`{run_id}-{platform}/python/{artifact_group}/`"),
    ):
        assert name in stated, name


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packages that the manifest for ROCm makes of artifacts in TheRock's layout, for one of its groups."""
    need("gcc")
    base = tmp_path_factory.mktemp("rocm")
    folder = base / "artifacts"
    hip = compile_library(base / "libamdhip64.so.7")
    rand = hip_library(base / "libhiprand.so.1", bundles(1, ("gfx1100", "gfx1101")), str(hip))
    runtime: dict[str, bytes | str] = {
        "lib/libamdhip64.so.7": hip.read_bytes(),
        "lib/libamdhip64.so": "libamdhip64.so.7",
    }
    make_artifact(folder, "core-hip_lib_generic", runtime, bases=["core/clr/stage"])
    make_artifact(
        folder, "core-hip_dev_generic", {"include/hip/hip_runtime.h": b"", "lib/cmake/hip/hip-config.cmake": b""}
    )
    make_artifact(folder, "amd-llvm_run_generic", {"bin/hipcc": HELPER.encode()})
    (folder / "amd-llvm_run_generic/core/clr/stage/bin/hipcc").chmod(0o755)
    library: dict[str, bytes | str] = {"lib/libhiprand.so.1": rand.read_bytes(), "lib/libhiprand.so": "libhiprand.so.1"}
    make_artifact(folder, f"rand_lib_{GROUP}", library)
    out = base / "packages"
    command = ["sdk", "build", "rocm", "--artifacts", str(folder), "--out", str(out), "--version", VERSION]
    command += ["--selector", "both"]
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 0
    return out


@pytest.fixture(scope="module")
def site(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the design tells users to install, in an environment of its own: its site directory."""
    folder = tmp_path_factory.mktemp("environment")
    python = str(environment(folder))
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--pre"]
    run(*pip, "--find-links", dist, "rocm[libraries,devel]")
    return next(folder.glob("lib/python*/site-packages"))


def environment(folder: Path) -> Path:
    """An environment with nothing in it: its Python."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    return folder / "bin" / "python"


def answer(site: Path, *words: str) -> str:
    """What an installed program prints."""
    done = installed(site, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def installed(site: Path, program: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment on a host without GPUs."""
    env = {"PATH": os.environ["PATH"], "HIP_VISIBLE_DEVICES": "-1", **variables}
    command = [str(site.parents[2] / "bin" / program), *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_files_are_called_as_the_design_calls_them(dist: Path) -> None:
    assert sorted(path.name.partition("-py3-none-")[0] for path in dist.glob("*.whl")) == [
        f"rocm-{VERSION}",
        f"rocm_sdk_core-{VERSION}",
        f"rocm_sdk_devel-{VERSION}",
        f"rocm_sdk_device_gfx1100-{VERSION}",
        f"rocm_sdk_device_gfx1101-{VERSION}",
        f"rocm_sdk_libraries-{VERSION}",
        f"rocm_sdk_libraries_gfx110x_all-{VERSION}",
    ]
    (devel,) = dist.glob("rocm_sdk_devel-*.whl")
    assert "rocm_sdk_devel/_devel.tar" in zipfile.ZipFile(devel).namelist()


def test_modules_and_folders_are_called_as_the_design_calls_them(site: Path) -> None:
    names = {path.name for path in site.iterdir()}
    modules = {"rocm_sdk", "rocm_sdk_core", "rocm_sdk_devel"}
    assert modules | {"_rocm_sdk_core", "_rocm_sdk_libraries_gfx110X_all"} <= names
    assert "rocm" not in names


def test_the_default_family_is_that_of_the_group(site: Path) -> None:
    code = "from rocm_sdk import _dist_info as info; print(info.DEFAULT_TARGET_FAMILY, info.determine_target_family())"
    for variables, family in (({}, GROUP), ({"ROCM_SDK_TARGET_FAMILY": "gfx1101"}, "gfx1101")):
        done = installed(site, "python", "-c", code, **variables)
        assert done.stdout.split() == [GROUP, family], done.stderr


def test_the_command_has_the_words_of_the_design(site: Path) -> None:
    assert answer(site, "rocm-sdk", "version") == VERSION
    assert "gfx1100" in answer(site, "rocm-sdk", "targets")
    answer(site, "rocm-sdk", "init", "--quiet")
    root = Path(answer(site, "rocm-sdk", "path", "--root"))
    assert root == site / "_rocm_sdk_devel"
    assert Path(answer(site, "rocm-sdk", "path", "--bin")) == root / "bin"
    cmake = Path(answer(site, "rocm-sdk", "path", "--cmake"))
    assert (cmake / "hip" / "hip-config.cmake").is_file()
    assert (root / "lib/libhiprand.so").samefile(site / "_rocm_sdk_libraries_gfx110X_all/lib/libhiprand.so.1")
    assert answer(site, "hipcc", "--version") == "HIP version: 7.12 --version"


def test_the_sdist_is_evaluated_where_it_is_installed(dist: Path, tmp_path: Path) -> None:
    page = (dist / "at-install" / "index.html").as_uri()
    python = environment(tmp_path / "environment")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-index", "--pre"]
    pip += ["--find-links", page, "rocm[libraries]"]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "ROCM_"))}
    wrong = {**env, "ROCM_SDK_TARGET_FAMILY": "doesnotexist"}
    done = subprocess.run(pip, env=wrong, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "ROCM_SDK_TARGET_FAMILY=doesnotexist is not one of" in done.stderr
    right = {**env, "ROCM_SDK_TARGET_FAMILY": "gfx1101"}
    done = subprocess.run(pip, env=right, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    site = next((tmp_path / "environment").glob("lib/python*/site-packages"))
    assert sorted(path.name for path in site.glob("_rocm_sdk_*")) == [
        "_rocm_sdk_core",
        "_rocm_sdk_device_gfx1101",
        "_rocm_sdk_libraries",
    ]


def test_a_framework_initialises_as_the_design_says(site: Path) -> None:
    done = installed(site, "python", "-c", FRAMEWORK.format(version=VERSION))
    assert done.stdout == "as it should be\n", done.stderr


def test_the_self_tests_say_that_all_is_well(site: Path) -> None:
    found = json.loads(answer(site, "rocm-sdk", "test", "--json", "--select", "install"))
    assert {each["status"] for each in found["results"]} == {"passed"}
