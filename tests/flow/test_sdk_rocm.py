"""The real ROCm of Debian as Python packages: built, installed by pip where nothing else is, tested, compiled with."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from axletree.cli.main import cli
from support.elfs import need
from support.rocm import rocm_archives

PROGRAM = """\
#include <cstdio>
#include <hip/hip_runtime.h>
__global__ void twice(float *x) { x[threadIdx.x] *= 2; }
int main() {
  int count = -1;
  const hipError_t said = hipGetDeviceCount(&count);
  if (said == hipSuccess) twice<<<1, 64>>>(nullptr);
  std::printf("%d %d\\n", said, count);
  return 0;
}
"""
COUNT = """
import ctypes, rocm_sdk
rocm_sdk.initialize_process(preload_shortnames={names!r}, check_version="5.2.*", fail_on_version_mismatch=True)
hip = ctypes.CDLL("libamdhip64.so.5")  # found since it is loaded
number, version = ctypes.c_int(-1), ctypes.c_int(0)
print(hip.hipGetDeviceCount(ctypes.byref(number)), hip.hipRuntimeGetVersion(ctypes.byref(version)), version.value)
for name in {names!r}:
    print(rocm_sdk.find_libraries(name)[0])
"""
NO_DEVICE = 100
"""``hipErrorNoDevice``."""


@dataclass(frozen=True)
class Installed:
    """An environment with the SDK."""

    folder: Path

    @property
    def site(self) -> Path:
        """Its site directory."""
        return next(self.folder.glob("lib/python*/site-packages"))

    def run(self, *words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run one of its programs, without what the machine's variables say, and with no GPU to be seen."""
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder),
            "HIP_VISIBLE_DEVICES": "-1",
            **variables,
        }
        program = self.folder / "bin" / words[0]
        return subprocess.run([program, *words[1:]], env=env, capture_output=True, text=True, check=False)

    def answer(self, *words: str | Path, **variables: str) -> str:
        """What it prints; it must succeed."""
        done = self.run(*words, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()


def build(archives: Path, out: Path) -> Path:
    words = ["sdk", "build", "rocm", "--debs", str(archives), "--version", "5.2.3", "--level", "1", "--out", str(out)]
    assert cli.main(args=words, standalone_mode=False) in (0, None)
    return out


def install(dist: Path, folder: Path, *requirements: str) -> Installed:
    """As users do: an environment with nothing in it, and pip with the wheels as its only source."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        folder / "bin/python",
        "install",
        "-q",
        "--no-index",
    ]
    done = subprocess.run([*pip, "--find-links", dist, *requirements], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Installed(folder)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("gcc", "perl", "g++")
    return build(rocm_archives(), tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def rocm(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The SDK for gfx90a with the devel package; tests change nothing in it but the devel tree."""
    return install(dist, tmp_path_factory.mktemp("rocm") / "venv", "rocm[device-gfx90a,devel]")


def report(rocm: Installed, *words: str, **variables: str) -> dict[str, Any]:
    done = rocm.run("rocm-sdk", "test", "--json", *words, **variables)
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    bad = [f"{each['name']}: {each['text']}" for each in found["results"] if each["status"] == "failed"]
    assert not bad
    assert done.returncode == 0
    return found


def test_the_self_tests_pass(rocm: Installed) -> None:
    found = report(rocm)
    status = {each["name"]: each["status"] for each in found["results"]}
    assert found["passed"] > 70
    assert status["gpu/rocm-sdk-device-gfx90a/code"] == "passed"
    assert status["devel/rocm-sdk-devel/holds rocm-sdk-core"] == "passed"
    assert status["command/rocm-sdk-core/hipcc"] == "passed"
    assert {name.split("/")[0] for name in status} == {
        *("install", "closure", "load", "gpu", "command", "preload", "version", "devel", "cmake")
    }
    if found["system"]:  # this machine lacks libraries that ROCm's packages ask the system for
        assert all(each["hint"].startswith("install ") for each in found["results"] if each["status"] == "system")
    elif shutil.which("cmake", path="/usr/local/bin:/usr/bin:/bin"):
        assert status["cmake/rocm-sdk-devel/hip"] == "passed"


def loads_here(rocm: Installed) -> None:
    """Skip where the system lacks libraries of its own that HIP needs."""
    found = report(rocm, "--select", "load/*/amdhip64,load/*/LLVM*")
    lacking = [each for each in found["results"] if each["status"] == "system"]
    if lacking:
        pytest.skip(f"{lacking[0]['text']}; {lacking[0]['hint']}")


def test_hipcc_compiles_links_and_the_program_finds_no_device(rocm: Installed, tmp_path: Path) -> None:
    loads_here(rocm)
    (tmp_path / "twice.hip").write_text(PROGRAM)
    rocm.answer("hipcc", "--offload-arch=gfx90a", tmp_path / "twice.hip", "-o", tmp_path / "twice")
    assert rocm.answer(tmp_path / "twice").startswith(f"{NO_DEVICE} ")


def test_hip_answers_through_preloaded_libraries(rocm: Installed) -> None:
    loads_here(rocm)
    lines = rocm.answer("python", "-c", COUNT.format(names=["amd_comgr", "amdhip64", "hiprand"])).splitlines()
    said, known, version = map(int, lines[0].split())
    assert (said, known) == (NO_DEVICE, 0)
    assert version // 100000 == 502
    assert all(Path(line).is_relative_to(rocm.site) for line in lines[1:])


def test_the_doctor_has_no_errors_to_tell(rocm: Installed) -> None:
    done = rocm.run("rocm-sdk", "doctor", "--json", ROCM_SDK_DISABLE_DETECTION="1")
    found = json.loads(done.stdout)
    assert [each for each in found["findings"] if each["level"] == "error" and each["code"] != "hidden"] == []


def test_fault_l_it_loads_without_a_search_path_and_fails_when_a_library_goes(rocm: Installed) -> None:
    loads_here(rocm)
    place = next(rocm.site.glob("_rocm_sdk_core/lib/*/libhsa-runtime64.so.1"))
    rocm.answer("python", "-c", f"import ctypes; ctypes.CDLL('{place.with_name('libamdhip64.so.5')}')")
    aside = place.with_suffix(".aside")
    place.rename(aside)
    try:
        done = rocm.run("rocm-sdk", "test", "--json", "--select", "load/rocm-sdk-core/*,closure/*")
    finally:
        aside.rename(place)
    bad = {each["name"]: each["text"] for each in json.loads(done.stdout)["results"] if each["status"] == "failed"}
    assert done.returncode == 1
    assert set(bad) == {"load/rocm-sdk-core/hsa-runtime64", "load/rocm-sdk-core/amdhip64"}
    assert "cannot find libhsa-runtime64.so.1, which rocm-sdk-core provides" in bad["load/rocm-sdk-core/amdhip64"]


def test_what_the_devel_package_made_goes_with_it(dist: Path, tmp_path: Path) -> None:
    rocm = install(dist, tmp_path / "venv", "rocm[devel]")
    before = {path.name for path in rocm.site.iterdir()}
    rocm.answer("rocm-sdk", "init", "--quiet")
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        rocm.folder / "bin/python",
        "uninstall",
        "-q",
        "--yes",
    ]
    subprocess.run([*pip, "rocm-sdk-devel"], check=True)
    assert {path.name for path in rocm.site.iterdir()} == before - {"rocm_sdk_devel", "rocm_sdk_devel-5.2.3.dist-info"}
    found = report(rocm, "--select", "!content,!preload")  # a part of the SDK passes
    assert not [each for each in found["results"] if each["group"] in ("devel", "cmake")]


@pytest.mark.proof
def test_all_of_it_with_the_gpu_code_of_rocsparse(tmp_path: Path) -> None:
    dist = build(rocm_archives(sparse=True), tmp_path / "dist")
    rocm = install(dist, tmp_path / "venv", "rocm[libraries,device-gfx90a,device-gfx1030,devel]")
    found = report(rocm)
    code = [each for each in found["results"] if each["name"].startswith("gpu/") and each["name"].endswith("/code")]
    assert len(code) == 3
    assert {each["status"] for each in code} == {"passed"}
    assert {each["package"] for each in found["results"] if each["name"].endswith("/rocsparse")} >= {
        "rocm-sdk-device-gfx90a",
        "rocm-sdk-device-gfx1030",
    }
