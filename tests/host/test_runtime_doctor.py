"""``rocm-sdk doctor``: nothing on a host that is well, and for each thing that is in the way the command that helps."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from axletree_runtime._doctor import examine
from axletree_runtime._host import Host
from axletree_runtime._sdk import load_sdk
from support.elfs import compile_library
from support.small_sdk import Site, interpreter, make_site, pip_hint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from axletree_runtime._doctor import Finding

CORE = "_rocm_sdk_core"
NODES = "sys/class/kfd/kfd/topology/nodes"


@dataclass(frozen=True)
class FakeHost(Host):
    """A host below a folder, with libraries and rights as told."""

    missing: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()

    def ask(self, command: Sequence[str | Path]) -> tuple[str, str]:
        """Which of the libraries that it is asked for are missing."""
        return json.dumps([name for name in self.missing if name in command]), ""

    def may_use(self, path: str) -> bool:
        """What is not closed."""
        return path not in self.closed

    def group_of(self, path: str) -> str:
        """The group of Debian's devices."""
        return "video" if path.startswith("/dev/dri") else "render"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The whole SDK, expanded; tests change nothing in it."""
    made = make_site(tmp_path_factory.mktemp("sdk"))
    assert made.command("init", "--quiet").returncode == 0
    return made


def make_host(tmp_path: Path, *targets: int, integrated: Sequence[int] = (), **environ: str) -> FakeHost:
    """A host with AMD GPUs (number of the target as the kernel has it: 90402), and the right to use them."""
    root = tmp_path / "host"
    write(root, f"{NODES}/0/properties", "cpu_cores_count 16\nsimd_count 0\n")
    for number, target in enumerate(targets, 1):
        write(root, f"{NODES}/{number}/properties", f"simd_count 64\nvendor_id 4098\ngfx_target_version {target}\n")
        kind = 0 if target in integrated else 1
        write(root, f"{NODES}/{number}/mem_banks/0/properties", f"heap_type {kind}\n")
        write(root, f"dev/dri/renderD{127 + number}", "")
    if targets:
        write(root, "dev/kfd", "")
    return FakeHost(root=root, environ={"PATH": "/nowhere", **environ})


def with_variable(host: FakeHost, name: str, text: str) -> FakeHost:
    return replace(host, environ={**host.environ, name: text})


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def look(site: Site, host: Host) -> list[Finding]:
    """What is found; the worst is first."""
    found = examine(load_sdk(site.folder / "rocm_sdk"), host)
    levels = [["error", "warning", "note"].index(each.level) for each in found]
    assert levels == sorted(levels)
    assert all(each.code != "unchecked" for each in found), found
    return found


def only(found: Sequence[Finding], code: str) -> Finding:
    (one,) = (each for each in found if each.code == code)
    return one


def codes(found: Sequence[Finding]) -> set[str]:
    """Kinds of what is wrong."""
    return {each.code for each in found if each.level != "note"}


def test_a_host_that_is_well_has_nothing_but_notes(site: Site, tmp_path: Path) -> None:
    found = look(site, make_host(tmp_path, 90402))
    assert codes(found) == set()
    assert only(found, "choice").text == (
        "GPU code for libraries comes from rocm-sdk-device-gfx942: the smallest package that has code for gfx942"
    )


# GPUs


def test_a_host_without_a_gpu_is_no_fault(site: Site, tmp_path: Path) -> None:
    found = look(site, make_host(tmp_path))
    assert codes(found) == set()
    assert "no GPU was found" in only(found, "no-gpu").text


def test_a_gpu_without_its_driver(site: Site, tmp_path: Path) -> None:
    host = make_host(tmp_path)
    write(host.root, "sys/bus/pci/devices/0000:03:00.0/vendor", "0x1002\n")
    write(host.root, "sys/bus/pci/devices/0000:03:00.0/class", "0x030000\n")
    shutil.rmtree(host.root / NODES)
    found = only(look(site, host), "no-driver")
    assert (found.level, found.next) == ("error", "sudo modprobe amdgpu")
    write(host.root, "sys/bus/pci/devices/0000:03:00.0/class", "0x040300\n")  # sound
    assert codes(look(site, host)) == set()
    write(host.root, "sys/bus/pci/devices/0000:03:00.0/class", "0x030000\n")
    write(host.root, "sys/bus/pci/devices/0000:03:00.0/vendor", "0x10de\n")
    assert codes(look(site, host)) == set()


def test_a_container_without_the_gpus_devices(site: Site, tmp_path: Path) -> None:
    host = make_host(tmp_path, 90402)
    (host.root / "dev/kfd").unlink()
    found = only(look(site, host), "no-kfd")
    assert (found.level, found.next) == ("error", "docker run --device /dev/kfd --device /dev/dri ...")
    write(host.root, "dev/kfd", "")
    shutil.rmtree(host.root / "dev/dri")
    assert codes(look(site, host)) == {"no-render-node"}


@pytest.mark.parametrize(
    ("closed", "groups"),
    [
        (("/dev/kfd",), "render"),
        (("/dev/kfd", "/dev/dri/renderD128"), "render,video"),
        (("/dev/dri/renderD128",), "video"),
    ],
)
def test_devices_that_the_user_may_not_open(site: Site, tmp_path: Path, closed: tuple[str, ...], groups: str) -> None:
    found = only(look(site, replace(make_host(tmp_path, 90402), closed=closed)), "kfd-permission")
    assert found.level == "error"
    assert found.next == f"sudo usermod --append --groups {groups} $USER"
    if groups == "video":  # one GPU of two is enough
        host = replace(make_host(tmp_path, 90402, 90402), closed=closed)
        assert codes(look(site, host)) == set()


def test_report_21_wsl(site: Site, tmp_path: Path) -> None:
    host = make_host(tmp_path)
    write(host.root, "dev/dxg", "")
    found = only(look(site, host), "wsl")
    assert (found.level, found.next) == ("error", "export HSA_ENABLE_DXG_DETECTION=1")
    assert codes(look(site, replace(host, environ={"HSA_ENABLE_DXG_DETECTION": "1"}))) == set()


def test_report_10_an_integrated_gpu_that_is_first(site: Site, tmp_path: Path) -> None:
    host = make_host(tmp_path, 100306, 110000, integrated=[100306])
    found = only(look(site, host), "integrated-first")
    assert (found.level, found.next) == ("warning", "export HIP_VISIBLE_DEVICES=1")
    assert "device 0 is gfx1036, which is integrated into the processor; device 1 is gfx1100" in found.text
    assert codes(look(site, replace(host, environ={"HIP_VISIBLE_DEVICES": "1"}))) == set()
    behind = make_host(tmp_path / "behind", 110000, 100306, integrated=[100306])
    assert codes(look(site, behind)) == set()


def test_an_override_of_the_target(site: Site, tmp_path: Path) -> None:
    found = look(site, make_host(tmp_path, 90402, HSA_OVERRIDE_GFX_VERSION="11.0.0"))
    assert only(found, "override").next == "unset HSA_OVERRIDE_GFX_VERSION"
    assert "the SDK has native code for gfx942" in only(found, "override").text
    one = look(site, make_host(tmp_path / "one", 110002, HSA_OVERRIDE_GFX_VERSION_1="11.0.0"))
    assert only(one, "override").next == "unset HSA_OVERRIDE_GFX_VERSION_1"
    assert "itself" not in only(one, "override").text


@pytest.mark.parametrize("variable", ["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"])
def test_variables_that_hide_all_gpus(site: Site, tmp_path: Path, variable: str) -> None:
    found = only(look(site, with_variable(make_host(tmp_path, 90402, 90402), variable, "7")), "hidden")
    assert (found.level, found.next) == ("error", f"unset {variable}")
    assert f"{variable}=7 hides all 2 GPUs" in found.text
    assert codes(look(site, with_variable(make_host(tmp_path / "one", 90402), variable, "0"))) == set()


def test_gpus_that_no_installed_package_has_code_for(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries", "device-gfx1100"])
    found = only(look(site, make_host(tmp_path, 90402)), "no-code")
    assert (found.level, found.next) == ("error", pip_hint("'rocm[device-gfx942]==7.1.0'"))
    assert "no installed package of libraries has code for gfx942" in found.text
    nothing = only(look(site, make_host(tmp_path / "other", 120001)), "no-code")
    assert (nothing.level, nothing.next) == ("error", "")
    assert "rocm 7.1.0 does not provide any" in nothing.text
    second = only(look(site, make_host(tmp_path / "second", 110000, 90402)), "no-code")
    assert second.level == "warning"
    assert codes(look(site, make_host(tmp_path / "well", 110000))) == set()


def test_who_does_not_use_the_libraries_is_not_told_to_install_them(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    assert codes(look(site, make_host(tmp_path, 90402))) == set()


def test_libraries_without_any_gpu_code(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries"])
    found = only(look(site, make_host(tmp_path)), "no-gpu-code")
    assert (found.level, found.next) == ("warning", pip_hint("'rocm[libraries-gfx94x]==7.1.0'"))
    with_gpu = only(look(site, make_host(tmp_path / "gpu", 110001)), "no-code")
    assert with_gpu.next == pip_hint("'rocm[libraries-gfx110x]==7.1.0'")


def test_fault_h_a_family_that_was_chosen_for_another_host(site: Site, tmp_path: Path) -> None:
    found = only(look(site, make_host(tmp_path, 90402, ROCM_SDK_TARGET_FAMILY="gfx110x")), "frozen-family")
    assert (found.level, found.next) == ("error", "unset ROCM_SDK_TARGET_FAMILY")
    assert "this host has gfx942" in found.text
    assert codes(look(site, make_host(tmp_path / "same", 90402, ROCM_SDK_TARGET_FAMILY="gfx94x"))) == set()
    unknown = only(look(site, make_host(tmp_path / "unknown", 90402, ROCM_SDK_TARGET_FAMILY="gfx9")), "family")
    assert "ROCM_SDK_TARGET_FAMILY=gfx9 is not one of" in unknown.text


# The installation


def test_report_18_libraries_that_the_system_lacks(site: Site, tmp_path: Path) -> None:
    host = replace(make_host(tmp_path), missing=("libc.so.6",))
    found = only(look(site, host), "system-library")
    assert (found.level, found.next) == ("warning", "install glibc")
    assert "libc.so.6 is missing from this system" in found.text
    assert "of rocm-sdk-core" in found.text


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ("ID=ubuntu\nID_LIKE=debian\n", "sudo apt install libnuma1"),
        ('ID="mint"\nID_LIKE="ubuntu debian"\n', "sudo apt install libnuma1"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "sudo dnf install numactl-libs"),
        ("ID=arch\n", "install libnuma1 (Debian, Ubuntu), numactl-libs (Fedora, RHEL)"),
    ],
)
def test_what_to_install_is_told_for_the_system(tmp_path: Path, release: str, command: str) -> None:
    site = make_site(tmp_path, only=["core"])
    about = site.folder / CORE / "_sdk.json"
    value = json.loads(about.read_text())
    package = "libnuma1 (Debian, Ubuntu), numactl-libs (Fedora, RHEL)"
    files = [f"lib/lib{name}.so.1" for name in ("a", "b", "c", "d")]
    value["system"] = [{"soname": "libnuma.so.1", "package": package, "files": files}]
    about.write_text(json.dumps(value))
    host = replace(make_host(tmp_path), missing=("libnuma.so.1",))
    write(host.root, "etc/os-release", release)
    found = only(look(site, host), "system-library")
    assert found.next == command
    assert found.text.endswith("libc.so.1 of rocm-sdk-core and 1 more need it")


def test_another_copy_of_a_library_where_the_loader_looks_first(site: Site, tmp_path: Path) -> None:
    other = compile_library(tmp_path / "libamd_comgr.so.3", source="int other(void) { return 0; }")
    found = only(look(site, make_host(tmp_path, LD_LIBRARY_PATH=f"/nowhere:{tmp_path}")), "shadowed")
    assert (found.level, found.next) == ("warning", "unset LD_LIBRARY_PATH")
    assert f"LD_LIBRARY_PATH contains {tmp_path}, whose libamd_comgr.so.3 differs from the SDK's" in found.text
    assert only(look(site, make_host(tmp_path / "x", LD_PRELOAD=str(other))), "shadowed").next == "unset LD_PRELOAD"
    own = f"{site.folder}/{CORE}/lib"
    assert codes(look(site, make_host(tmp_path / "own", LD_LIBRARY_PATH=own))) == set()


def test_variables_that_name_another_sdk(site: Site, tmp_path: Path) -> None:
    found = only(look(site, make_host(tmp_path, ROCM_PATH="/opt/rocm")), "other-sdk")
    assert found.next == "unset ROCM_PATH"
    host = make_host(tmp_path / "both", ROCM_PATH="/opt/rocm", HIP_DEVICE_LIB_PATH="/opt/rocm/amdgcn/bitcode")
    both = only(look(site, host), "other-sdk")
    assert both.next == "unset HIP_DEVICE_LIB_PATH ROCM_PATH"
    root = f"{site.folder}/_rocm_sdk_devel"
    assert codes(look(site, make_host(tmp_path / "own", ROCM_PATH=f"{root}/."))) == set()


def test_programs_of_another_sdk_that_are_found_first(site: Site, tmp_path: Path) -> None:
    write(tmp_path, "rocm/bin/hipcc", "#!/bin/sh\n")
    (tmp_path / "rocm/bin/hipcc").chmod(0o755)
    host = make_host(tmp_path, PATH=f"/nowhere:{tmp_path}/rocm/bin:{site.scripts}")
    found = only(look(site, host), "other-programs")
    assert found.text == f"hipcc on PATH comes from {tmp_path}/rocm/bin instead of this SDK"
    assert found.next == 'eval "$(rocm-sdk env)"'
    first = make_host(tmp_path / "first", PATH=f"{site.scripts}:{tmp_path}/rocm/bin")
    assert codes(look(site, first)) == set()


def test_mixed_versions(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries"], versions={"libraries": "7.0.0"})
    found = only(look(site, make_host(tmp_path)), "mixed-versions")
    assert (found.level, found.next) == ("error", pip_hint("'rocm[libraries]==7.1.0'"))
    assert found.text == "rocm has version 7.1.0, but rocm-sdk-libraries 7.0.0 is installed"


def test_what_an_interrupted_update_left(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    shutil.copytree(site.folder / "rocm_sdk_core-7.1.0.dist-info", site.folder / "rocm_sdk_core-7.0.0.dist-info")
    found = only(look(site, make_host(tmp_path)), "installed-twice")
    assert (found.level, found.next) == ("error", "pip uninstall --yes rocm-sdk-core rocm-sdk-core")


def test_packages_that_are_missing_or_damaged(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["libraries"])
    found = only(look(site, make_host(tmp_path)), "missing-package")
    assert (found.level, found.next) == ("error", pip_hint("'rocm==7.1.0'"))
    other = make_site(tmp_path / "other", only=["core", "libraries"])
    (other.folder / "_rocm_sdk_libraries/_sdk.json").write_text("{")
    damaged = only(look(other, make_host(tmp_path / "x")), "damaged-package")
    assert damaged.next == pip_hint("--force-reinstall --no-deps 'rocm-sdk-libraries==7.1.0'")


def test_packages_that_lie_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = make_site(tmp_path, only=["core", "libraries"])
    (tmp_path / "other").mkdir()
    (site.folder / "_rocm_sdk_libraries").rename(tmp_path / "other/_rocm_sdk_libraries")
    monkeypatch.syspath_prepend(tmp_path / "other")
    found = only(look(site, make_host(tmp_path)), "apart")
    assert found.level == "error"
    assert f"rocm-sdk-libraries in {tmp_path}/other" in found.text


def test_report_21_long_paths_on_windows(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    site = make_site(deep, only=["core"])
    host = make_host(tmp_path)
    assert codes(look(site, host)) == set()
    found = only(look(site, replace(host, windows=True)), "long-path")
    assert (found.level, found.next) == ("warning", "python -m venv C:\\sdk")


# The devel tree


def test_a_devel_package_that_is_not_expanded_is_a_note(tmp_path: Path) -> None:
    found = only(look(make_site(tmp_path), make_host(tmp_path)), "not-expanded")
    assert (found.level, found.next) == ("note", "rocm-sdk init")


def test_a_devel_tree_that_packages_were_installed_beside_later(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries", "devel"])
    assert site.command("init", "--quiet").returncode == 0
    assert codes(look(site, make_host(tmp_path))) == {"no-gpu-code"}
    make_site(tmp_path, only=["device-gfx942"])
    found = only(look(site, make_host(tmp_path / "x", 90402)), "devel-tree")
    assert (found.level, found.next) == ("warning", "rocm-sdk init")


def test_a_devel_tree_that_was_damaged(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    assert site.command("init", "--quiet").returncode == 0
    (site.folder / "_rocm_sdk_devel/_devel.json").unlink()
    found = only(look(site, make_host(tmp_path)), "devel-tree")
    assert found.level == "warning"
    assert found.next == "rocm-sdk init"


def test_fault_c_a_devel_tree_without_its_package(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    assert site.command("init", "--quiet").returncode == 0
    shutil.rmtree(site.folder / "rocm_sdk_devel")
    shutil.rmtree(site.folder / "rocm_sdk_devel-7.1.0.dist-info")
    found = only(look(site, make_host(tmp_path)), "devel-tree")
    assert found.next == "rocm-sdk deinit"
    assert site.command("deinit").returncode == 0
    assert codes(look(site, make_host(tmp_path / "x"))) == set()


def test_what_a_killed_expansion_left(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    write(site.folder, "_rocm_sdk_devel.tmp/new/lib/x", "")
    found = only(look(site, make_host(tmp_path)), "devel-leftovers")
    assert (found.level, found.next) == ("warning", "rocm-sdk init")
    assert site.command("init", "--quiet").returncode == 0
    assert codes(look(site, make_host(tmp_path / "x"))) == set()


def test_report_1_libraries_of_the_tree_that_are_copies(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    assert site.command("init", "--quiet", "--link-mode", "copy").returncode == 0
    found = only(look(site, make_host(tmp_path)), "devel-copies")
    assert (found.level, found.next) == ("warning", "rocm-sdk init --link-mode symlink")
    assert site.command("init", "--quiet", "--link-mode", "symlink").returncode == 0
    assert codes(look(site, make_host(tmp_path / "x"))) == set()


def test_report_22_trees_in_the_cache_of_what_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolated_home: Path
) -> None:
    site = make_site(tmp_path)
    assert site.command("init", "--quiet").returncode == 0
    cached = isolated_home / ".cache/rocm-sdk/devel-0123"
    shutil.copytree(site.folder / "_rocm_sdk_devel", cached / "_rocm_sdk_devel")
    mark = cached / "_rocm_sdk_devel/_devel.json"
    assert codes(look(site, make_host(tmp_path / "a"))) == set()
    value = json.loads(mark.read_text())
    mark.write_text(json.dumps({**value, "site": "/nowhere/site-packages"}))
    gone = only(look(site, make_host(tmp_path / "b")), "orphaned-tree")
    assert (gone.level, gone.next) == ("warning", f"rm -r {cached}")
    mark.write_text(json.dumps({**value, "version": "7.0.0"}))
    assert "version 7.0.0" in only(look(site, make_host(tmp_path / "c")), "orphaned-tree").text
    monkeypatch.delenv("XDG_CACHE_HOME")
    shutil.rmtree(cached)
    assert codes(look(site, make_host(tmp_path / "d"))) == set()


# The command


@pytest.mark.parametrize("version", ["3.9", "3.13"])
def test_the_command_prints_findings_and_ends_with_1_where_one_is_an_error(tmp_path: Path, version: str) -> None:
    site = make_site(tmp_path, only=["core", "libraries"], versions={"libraries": "7.0.0"})
    python = interpreter(version)
    done = site.command("doctor", python=python)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("ERROR    rocm has version 7.1.0, but rocm-sdk-libraries 7.0.0 is installed\n")
    assert "\n         > " + pip_hint("'rocm[libraries]==7.1.0'") + "\n" in done.stdout
    assert done.stdout.endswith(f"rocm 7.1.0 in {site.folder}: 1 error, 1 warning\n")
    report: dict[str, Any] = json.loads(site.command("doctor", "--json", python=python).stdout)
    assert (report["schema"], report["errors"], report["warnings"]) == (1, 1, 1)
    assert report["findings"][0]["code"] == "mixed-versions"
    assert set(report["findings"][0]) == {"level", "code", "text", "next"}
    wrong = site.command("doctor", "--jsno", python=python)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


def test_without_errors_the_command_ends_with_0(site: Site) -> None:
    done = site.command("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("no errors, no warnings\n")


def test_a_check_that_breaks_does_not_stop_the_others(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries"], versions={"libraries": "7.0.0"})
    path = site.folder / "rocm_sdk/_doctor_gpu.py"
    path.write_text(path.read_text().replace("    nodes = [", '    raise KeyError("what")\n    nodes = [', 1))
    done = site.command("doctor")
    assert "warning  a check failed to run: KeyError: 'what'" in done.stdout
    assert "rocm-sdk-libraries 7.0.0 is installed" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
