"""``axletree sdk explain`` and ``sdk version``: real packages of Debian, prefixes, inputs that don't fit."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from axletree.cli.main import main
from axletree.package.sdk.versions import compute_version
from support.inputs import debian_archives

if TYPE_CHECKING:
    from collections.abc import Callable

SHIPPED = Path(__file__).parents[2] / "recipes" / "sdk"
PACKAGES = (
    *("hipcc", "libamdhip64-5", "libamdhip64-dev", "rocm-device-libs", "libamd-comgr2", "libhsa-runtime64-1"),
    *("libhsa-runtime-dev", "libhsakmt1", "libhiprtc-builtins5", "rocminfo", "rocm-smi", "librocm-smi64-1"),
    *("librocrand1", "librocrand-dev", "librocprim-dev", "rocm-cmake", "lld-15", "libclang1-15", "clang-tools-15"),
    *("llvm-15-linker-tools", "libfile-which-perl", "liburi-encode-perl", "pciutils", "libpci3"),
)

SMALL = """\
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
components = ["lib"]

[[package]]
name = "tools"
kind = "runtime"
dist = "demo-tools"

[[package.claim]]
components = ["lib", "run"]
files = ["bin/**", "lib/libb.so"]
exclude = ["bin/internal"]
"""


class Done(NamedTuple):
    """What a command said."""

    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture(name="store", scope="module")
def _store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that all tests here share, so that packages are unpacked once."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(name="axletree")
def _axletree(
    isolated_home: Path, store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    monkeypatch.setenv("AXLETREE_STORE", str(store))

    def run(*words: object) -> Done:
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        return Done(int(ended.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture(name="prefix")
def _prefix(tmp_path: Path) -> Path:
    prefix = tmp_path / "prefix"
    for path in ("lib/liba.so", "lib/libb.so", "bin/tool", "bin/internal", "share/doc/x/README"):
        (prefix / path).parent.mkdir(parents=True, exist_ok=True)
        (prefix / path).write_text(path)
    (prefix / "lib/liba.so.1").symlink_to("liba.so")
    return prefix


@pytest.fixture(name="manifest")
def _manifest(tmp_path: Path) -> Path:
    path = tmp_path / "demo.toml"
    path.write_text(SMALL)
    return path


def test_every_file_of_debians_rocm_has_one_place(axletree: Callable[..., Done]) -> None:
    done = axletree("sdk", "explain", "rocm", "--debs", debian_archives("rocm-explain", "bookworm", PACKAGES), "--json")
    report = json.loads(done.stdout)["result"]
    assert done.exit_code == 0, report["unmatched"] or report["disputed"] or report["clashes"]
    sizes = {package["name"]: package for package in report["packages"]}
    assert {"core-hip", "core-runtime", "amd-llvm", "base", "sysdeps"} <= sizes["core"]["artifacts"].keys()
    assert sizes["libraries"]["artifacts"].keys() == {"rand"}
    assert sizes["devel"]["artifacts"]["prim"] > 100
    assert all(each["why"] for each in report["dropped"])


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("lib/x86_64-linux-gnu/libamdhip64.so.5.2.21153", "core"),
        ("lib/x86_64-linux-gnu/libamd_comgr.so.2.4.0", "core"),
        ("lib/x86_64-linux-gnu/amdgcn/bitcode/ockl.bc", "core"),
        ("lib/llvm-15/bin/lld", "core"),
        ("lib/llvm-15/bin/clang-query", "devel"),
        ("lib/librocm_smi64.so.1.0", "core"),
        ("include/hip/hip_runtime.h", "core"),
        ("include/rocrand/rocrand.h", "devel"),
        ("lib/x86_64-linux-gnu/librocrand.so.1.1", "libraries"),
        ("lib/x86_64-linux-gnu/cmake/rocrand/rocrand-config.cmake", "devel"),
        ("share/perl5/File/Which.pm", "core"),
        ("share/doc/librocrand1/copyright", "libraries"),
        ("share/doc/libamdhip64-5/copyright", "core"),
    ],
)
def test_owners_of_debians_rocm(axletree: Callable[..., Done], path: str, owner: str) -> None:
    folder = debian_archives("rocm-explain", "bookworm", PACKAGES)
    done = axletree("sdk", "explain", SHIPPED / "rocm.toml", "--debs", folder, path)
    assert done.exit_code == 0
    assert f"belongs to {owner} (" in done.stdout


def test_what_is_wrong_is_told_and_the_answer_is_no(
    axletree: Callable[..., Done], prefix: Path, manifest: Path
) -> None:
    done = axletree("sdk", "explain", manifest, "--prefix", prefix)
    assert done.exit_code == 1
    assert "Not claimed (2):" in done.stdout
    assert "prefix (doc): 1 file" in done.stdout
    assert "    bin/internal" in done.stdout
    assert "Claimed more than once (1):" in done.stdout
    assert "    lib/libb.so" in done.stdout
    assert "3 entries in exactly one package, but 3 not" in done.stdout
    report = json.loads(axletree("sdk", "explain", manifest, "--prefix", prefix, "--json").stdout)["result"]
    assert [each["path"] for each in report["unmatched"]] == ["bin/internal", "share/doc/x/README"]
    assert [each["claim"] for each in report["disputed"][0]["claims"]] == ["core, claim 1", "tools, claim 1"]


def test_files_are_explained(axletree: Callable[..., Done], prefix: Path, manifest: Path) -> None:
    done = axletree("sdk", "explain", manifest, "--prefix", prefix, "bin/*", "lib/liba.so.1")
    assert done.exit_code == 1
    assert "belongs to tools (demo-tools)" in done.stdout
    assert "excluded by tools, claim 1: exclude bin/internal" in done.stdout
    assert "link -> liba.so" in done.stdout
    done = axletree("sdk", "explain", manifest, "--prefix", prefix, "liba.so")
    assert done.exit_code == 1
    assert "did you mean lib/liba.so?" in done.stdout
    assert axletree("sdk", "explain", manifest, "--prefix", prefix, "lib/liba.so").exit_code == 0


def test_inputs_that_cannot_be_are_refused(
    axletree: Callable[..., Done], prefix: Path, manifest: Path, tmp_path: Path
) -> None:
    for words, text in (
        ((manifest,), "exactly one location of the SDK is required"),
        ((manifest, "--prefix", prefix, "--debs", prefix), "exactly one location of the SDK is required"),
        ((manifest, "--debs", prefix), "does not support Debian packages"),
        (("rocn", "--prefix", prefix), "did you mean 'rocm'?"),
    ):
        done = axletree("sdk", "explain", *words)
        assert done.exit_code == 2
        assert text in done.stderr
    broken = tmp_path / "broken.toml"
    broken.write_bytes(b"\xff")
    assert "is not UTF-8" in axletree("sdk", "explain", broken, "--prefix", prefix).stderr


def test_versions_are_printed_as_build_systems_read_them(
    axletree: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1761000000")  # 2025-10-20
    done = axletree("sdk", "version", "--base", "7.10.0", "--release-type", "nightly")
    assert done.stdout.splitlines() == [
        "rocm_package_version=7.10.0a20251020",
        "rocm_deb_package_version=7.10.0~20251020",
        "rocm_rpm_package_version=7.10.0~20251020",
    ]
    done = axletree("sdk", "version", "--base", "7.10.0", "--custom-version-suffix", ".dev0", "--name", "x")
    assert done.stdout.splitlines()[0] == "x_package_version=7.10.0.dev0"
    assert axletree("sdk", "version", "--base", "7.10.0").exit_code == 2
    assert axletree("sdk", "version", "--base", "7.10.0", "--release-type", "dev").exit_code == 2


def test_a_frameworks_version_is_printed_too(axletree: Callable[..., Done]) -> None:
    words = ("sdk", "version", "--base", "7.10.0", "--release-type", "nightly", "--date", "20251020")
    lines = axletree(*words, "--framework", "2.9.0").stdout.splitlines()
    assert "framework_version=2.9.0+rocm7.10.0a20251020" in lines
    assert axletree(*words, "--framework", "x").exit_code == 2


def test_wheels_in_the_wrong_order_are_found(axletree: Callable[..., Done], tmp_path: Path) -> None:
    labels = ("rocm7.14.0a20260625", "rocm7.15.0a20260728", "rocm10.1.0a20260807")
    for name in ("torch", "torchvision"):
        for label in labels[: 3 if name == "torch" else 2]:
            (tmp_path / f"{name}-2.12.0+{label}-cp312-cp312-linux_x86_64.whl").touch()
    done = axletree("sdk", "check-versions", tmp_path)
    assert done.exit_code == 1
    assert done.stdout.count("is not newer than") == 1
    assert (
        "torch 2.12.0+rocm10.1.0a20260807 is not newer than 2.12.0+rocm7.15.0a20260728 according to pip" in done.stdout
    )
    assert axletree("sdk", "check-versions", "1+rocm.7.1", "1+rocm.10.1").stdout == "2 versions in the correct order.\n"
    assert "neither a folder nor a version" in axletree("sdk", "check-versions", "nowhere").stderr


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="compares with dpkg's own order")
def test_debs_are_in_dpkgs_order() -> None:
    date = {"date": "20251203"}
    made = [
        compute_version("7.10.0", "nightly", "deb", **date),
        compute_version("7.10.0", "nightly-bkc", "deb", base_date="20251203", date="20251204"),
        compute_version("7.10.0", "dev", "deb", git_sha="abcdef1", **date),
        compute_version("7.10.0", "prerelease", "deb", prerelease="2"),
        compute_version("7.10.0", "release", "deb"),
    ]
    for older, newer in itertools.pairwise(made):
        subprocess.run(["dpkg", "--compare-versions", older, "lt", newer], check=True)


def test_versions_and_their_order_as_json(axletree: Callable[..., Done]) -> None:
    done = axletree("sdk", "version", "--base", "7.10.0", "--release-type", "release", "--framework", "2.9.0", "--json")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["command"]) == (0, "sdk version")
    assert document["result"]["variables"]["rocm_package_version"] == "7.10.0"
    assert "framework_version" in document["result"]["variables"]
    done = axletree("sdk", "check-versions", "2.12.0+rocm10.1.0", "2.12.0+rocm7.15.0", "--json")
    (fault,) = json.loads(done.stdout)["result"]["faults"]
    assert (done.exit_code, fault["older"], fault["newer"]) == (1, "2.12.0+rocm7.15.0", "2.12.0+rocm10.1.0")
