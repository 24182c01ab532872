"""Self tests of an installed SDK, ``rocm-sdk test``: each passes on what is whole, and fails for a fault of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from support.elfs import compile_library, compile_program, need, run
from support.small_sdk import Site, interpreter, make_site, pip_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CORE, LIBRARIES = "_rocm_sdk_core", "_rocm_sdk_libraries"
COMGR, HIP, HIPRAND = "lib/libamd_comgr.so.3", "lib/libamdhip64.so.7", "lib/libhiprand.so.1"
GFX942, GFX94X = "rocm-sdk-device-gfx942", "rocm-sdk-libraries-gfx94x"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The whole SDK; tests change nothing in it."""
    return make_site(tmp_path_factory.mktemp("sdk"))


def report(site: Site, *words: str, **options: Any) -> dict[str, Any]:
    """What the tests say in JSON; nothing else is printed."""
    done = site.command("test", "--json", *words, **options)
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == int(found["failed"] > 0)
    return found


def others(site: Site, *words: str, **options: Any) -> dict[str, dict[str, Any]]:
    """Results of tests that did not pass, by name."""
    return {each["name"]: each for each in report(site, *words, **options)["results"] if each["status"] != "passed"}


def failed(site: Site, *words: str, **options: Any) -> dict[str, str]:
    """Names of tests that failed, with what they say; each says what to do or has a text of its own."""
    found = others(site, *words, **options)
    assert all("Traceback" not in each["text"] and "\n" not in each["text"] for each in found.values())
    return {name: f"{each['text']}; {each['hint']}" for name, each in found.items() if each["status"] == "failed"}


def change_json(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def library_of(value: dict[str, Any], shortname: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = (each for each in value["libraries"] if each["shortname"] == shortname)
    return found


# The whole


def test_a_whole_sdk_passes_and_says_so_in_a_line(whole: Site) -> None:
    done = whole.command("test", "--select", "!code")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("rocm 7.1.0: 94 passed in ")
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("version", ["3.9", "3.13"])
def test_the_tests_run_on_every_python(whole: Site, version: str) -> None:
    done = whole.command("test", "--select", "load,gpu,preload,version,closure", python=interpreter(version))
    assert (done.returncode, done.stderr) == (0, "")
    assert " failed" not in done.stdout


@pytest.mark.parametrize(
    "only", [["core"], ["core", "libraries"], ["core", "devel", "libraries"], ["device-gfx942", "core"]]
)
def test_fault_m_a_part_of_an_sdk_passes(tmp_path: Path, only: list[str]) -> None:
    site = make_site(tmp_path, only=only)
    found = others(site, "--select", "!cmake")
    assert not [each for each in found.values() if each["status"] == "failed"]
    if "libraries" in only:  # its GPU code is in a package that is not there
        lacking = found["load/rocm-sdk-libraries/hipsparse"]
        assert lacking["status"] == "skipped"
        assert "librocsparse.so.1, which is not installed" in lacking["text"]
        assert pip_hint("'rocm[libraries-gfx94x]==7.1.0'") in lacking["hint"]


def test_an_sdk_of_which_nothing_is_installed_is_no_success(tmp_path: Path) -> None:
    done = make_site(tmp_path, only=[]).command("test")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "rocm-sdk: no package of rocm is installed: " + pip_hint("'rocm==7.1.0'") + "\n"


def test_what_is_tested_comes_from_the_packages_under_any_name(tmp_path: Path) -> None:
    site = make_site(tmp_path, prefix="tug-kit", module="tug_kit", sdk="tug", dist="tug", only=["core"])
    names = site.command("test", "--list").stdout.split("\n")
    assert "load/tug-kit-core/amdhip64" in names
    assert not [name for name in names if "rocm_sdk" in name or "rocm-sdk" in name]
    assert site.command("test").returncode == 0
    about = site.folder / "_tug_kit_core/_sdk.json"
    change_json(about, lambda value: value.update(libraries=[], commands=[]))
    left = site.command("test", "--list").stdout
    assert "load/" not in left
    assert "rocminfo" not in left


# How packages lie


def test_a_package_in_another_place_fails(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries"])
    (tmp_path / "other").mkdir()
    (site.folder / LIBRARIES).rename(tmp_path / "other" / LIBRARIES)
    found = failed(site, "--select", "siblings", env={"PYTHONPATH": f"{site.folder}:{tmp_path}/other"})
    assert list(found) == ["install/rocm-sdk-libraries/siblings"]
    assert f"{tmp_path}/other/{LIBRARIES} is not in {site.folder}" in found["install/rocm-sdk-libraries/siblings"]
    (site.folder / CORE).rename(tmp_path / CORE)
    (site.folder / CORE).symlink_to(tmp_path / CORE)
    assert "is a link" in failed(site, "--select", "siblings")["install/rocm-sdk-core/siblings"]


def test_another_version_fails_but_not_a_post_release(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries"], versions={"libraries": "7.0.0", "core": "7.1.0.post1"})
    found = failed(site, "--select", "install/*/version")
    assert found == {
        "install/rocm-sdk-libraries/version": "rocm-sdk-libraries has version 7.0.0, but rocm has version 7.1.0; "
        + pip_hint("'rocm-sdk-libraries==7.1.0'")
    }


def test_two_versions_of_one_package_fail(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    shutil.copytree(site.folder / "rocm_sdk_core-7.1.0.dist-info", site.folder / "rocm_sdk_core-7.0.0.dist-info")
    metadata = site.folder / "rocm_sdk_core-7.0.0.dist-info/METADATA"
    metadata.write_text(metadata.read_text().replace("7.1.0", "7.0.0"))
    assert "7.0.0 and 7.1.0" in failed(site, "--select", "install/*/version")["install/rocm-sdk-core/version"]


def test_files_that_are_gone_cut_off_or_changed_fail(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    (site.folder / CORE / "bin/rocminfo").unlink()
    found = failed(site, "--select", "install")
    assert found == {
        "install/rocm-sdk-core/files": f"{CORE}/bin/rocminfo: No such file or directory; "
        + pip_hint("--force-reinstall --no-deps 'rocm-sdk-core==7.1.0'")
    }
    header = site.folder / CORE / HIP
    content = header.read_bytes()
    header.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    found = failed(site, "--select", "install")
    assert f"{CORE}/{HIP} was modified" in found["install/rocm-sdk-core/content"]
    header.write_bytes(content[:100])
    assert f"{CORE}/{HIP} has a size of 100 bytes" in failed(site, "--select", "files")["install/rocm-sdk-core/files"]


def test_packages_without_a_record_are_told_apart_from_whole_ones(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    (site.folder / "rocm_sdk_core-7.1.0.dist-info/RECORD").unlink()
    found = others(site, "--select", "install")
    assert {name: each["status"] for name, each in found.items()} == {
        "install/rocm-sdk-core/files": "skipped",
        "install/rocm-sdk-core/content": "skipped",
    }


# Libraries

SOURCES = {
    "cut off": ("damaged", None),
    "no such symbol": (
        "undefined symbol: nowhere",
        "extern int nowhere(void); int amd_comgr(void) { return nowhere(); }",
    ),
    "abort": (
        "was killed by SIGABRT while it loaded libamd_comgr.so.3",
        "#include <stdlib.h>\n__attribute__((constructor)) static void start(void) { abort(); }",
    ),
    "exit": (
        "exited with code 3 while it loaded",
        "#include <unistd.h>\n__attribute__((constructor)) static void start(void) { _exit(3); }",
    ),
    "hang": (
        "did not finish in time and was killed",
        "#include <unistd.h>\n__attribute__((constructor)) static void start(void) { for (;;) pause(); }",
    ),
    "crash at the end": (
        "was killed by SIGSEGV",
        "#include <signal.h>\n__attribute__((destructor)) static void stop(void) { raise(SIGSEGV); }",
    ),
}


@pytest.mark.parametrize("fault", SOURCES)
def test_a_library_that_can_not_be_loaded_fails(tmp_path: Path, fault: str) -> None:
    site = make_site(tmp_path, only=["core"])
    said, source = SOURCES[fault]
    place = site.folder / CORE / COMGR
    if source is None:
        place.write_bytes(place.read_bytes()[:40])
    else:
        compile_library(place, "-Wl,--allow-shlib-undefined", source=source)
    seconds = "1" if fault == "hang" else "60"
    for group in ("load", "preload"):
        found = failed(site, "--select", f"{group}/*/amd_comgr", "--timeout", seconds)
        ((name, text),) = found.items()
        assert said in text
        assert name == ("load/rocm-sdk-core/amd_comgr" if group == "load" else "preload/rocm/amd_comgr")


def test_a_library_that_is_gone_fails_and_an_optional_one_does_not(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    (site.folder / CORE / COMGR).unlink()
    assert "is missing" in failed(site, "--select", "load/*/amd_comgr")["load/rocm-sdk-core/amd_comgr"]
    about = site.folder / CORE / "_sdk.json"
    change_json(about, lambda value: library_of(value, "amd_comgr").update(optional=True))
    assert others(site, "--select", "load/*/amd_comgr")["load/rocm-sdk-core/amd_comgr"]["status"] == "skipped"


def test_a_library_that_is_a_plugin_is_not_loaded_alone(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    compile_library(
        site.folder / CORE / COMGR, "-Wl,--allow-shlib-undefined", source=SOURCES["no such symbol"][1] or ""
    )
    change_json(site.folder / CORE / "_sdk.json", lambda value: library_of(value, "amd_comgr").update(standalone=False))
    names = site.command("test", "--list", "--select", "load").stdout
    assert "amd_comgr" not in names
    assert "amdhip64" in names


def plant_need(site: Site, tmp_path: Path, soname: str, *, declared: bool) -> None:
    """Let a library need another one that is nowhere."""
    stub = compile_library(tmp_path / soname, source="")
    compile_library(site.folder / CORE / COMGR, str(stub), source="int amd_comgr(void) { return 0; }")
    stub.unlink()
    need_of_host = {"soname": soname, "package": "libfar1 (Debian)", "files": [COMGR]}
    if declared:
        change_json(site.folder / CORE / "_sdk.json", lambda value: value["system"].append(need_of_host))


def test_report_18_a_library_that_the_system_must_bring_is_no_fault_of_the_sdk(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    plant_need(site, tmp_path, "libfar.so.1", declared=True)
    found = report(site, "--select", "load,preload")
    lacking = [each for each in found["results"] if each["status"] == "system"]
    names = {each["name"] for each in lacking}
    assert names >= {"load/rocm-sdk-core/amd_comgr", "load/rocm-sdk-core/amdhip64", "preload/rocm/amdhip64"}
    assert {(each["text"], each["hint"]) for each in lacking} == {
        ("missing from this system: libfar.so.1", "install libfar1 (Debian)")
    }
    assert (found["failed"], found["system"]) == (0, len(lacking))
    text = site.command("test", "--select", "load").stdout
    assert (
        "SYSTEM  load/rocm-sdk-core/amd_comgr and 1 more: missing from this system: libfar.so.1; install libfar1"
        in text
    )
    assert "2 not run because system libraries are missing" in text


def test_a_library_that_nobody_brings_is_a_fault_of_the_sdk(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    plant_need(site, tmp_path, "libfar.so.1", declared=False)
    for name, text in failed(site, "--select", "load").items():
        assert "libfar.so.1" in text
        assert "no package in the SDK provides it" in text, name


def test_fault_l_a_library_that_does_not_find_another_of_the_sdk_fails(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    compile_library(
        site.folder / LIBRARIES / HIPRAND, str(site.folder / CORE / HIP), source="int hiprand(void) { return 0; }"
    )
    found = failed(site, "--select", "hiprand")
    assert list(found) == ["load/rocm-sdk-libraries/hiprand"]  # preloading loads first what it needs
    assert "cannot find libamdhip64.so.7, which rocm-sdk-core provides" in found["load/rocm-sdk-libraries/hiprand"]


def test_programs_and_libraries_whose_search_paths_lead_nowhere_fail(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    core = site.folder / CORE
    assert failed(site, "--select", "closure") == {}
    library = compile_library(tmp_path / "libamd_comgr.so.3", source="int answer(double x) { return (int)x; }")
    program = compile_program(core / "bin/tool", library)
    found = failed(site, "--select", "closure")
    assert f"bin/tool searches {tmp_path}, which is outside the SDK" in found["closure/rocm-sdk-core/search paths"]
    run("patchelf", "--set-rpath", "$ORIGIN/../libs", program)
    text = failed(site, "--select", "closure")["closure/rocm-sdk-core/search paths"]
    assert "bin/tool needs libamd_comgr.so.3 from rocm-sdk-core, but only searches $ORIGIN/../libs" in text
    run("patchelf", "--set-rpath", "$ORIGIN/../lib", program)
    assert failed(site, "--select", "closure") == {}
    (core / "bin/tool.bad").write_bytes(program.read_bytes()[:1000])
    assert "damaged ELF file" in failed(site, "--select", "closure")["closure/rocm-sdk-core/search paths"]


def test_a_library_of_another_place_that_takes_the_name_of_ours_fails(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    other = compile_library(tmp_path / "libamd_comgr.so.3", source="int amd_comgr(void) { return 0; }")
    found = failed(site, "--select", "load/*/amdhip64", env={"LD_PRELOAD": str(other)})
    assert f"{other} was loaded instead of the SDK's own libamd_comgr.so.3" in found["load/rocm-sdk-core/amdhip64"]
    assert "unset LD_LIBRARY_PATH" in found["load/rocm-sdk-core/amdhip64"]


# The runtime itself

BREAKS = {
    "version": ("_process.py", "if matches_version(sdk.file.version, wanted):", "if True:"),
    "preload/rocm/environment*": ("_process.py", "    if not names:\n        return", "    return"),
}


def test_a_runtime_that_does_not_check_versions_fails(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    break_runtime(site, *BREAKS["version"])
    assert set(failed(site, "--select", "version/*")) == {
        "version/rocm/mismatch raises",
        "version/rocm/pattern mismatch raises",
        "version/rocm/mismatch warns",
    }
    break_runtime(site, "_process.py", "if True:", "if False:")
    assert set(failed(site, "--select", "version/*")) == {
        f"version/rocm/{each}" for each in ("exact", "any", "beginning", "pattern")
    }


def test_a_runtime_that_passes_over_its_variable_fails(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    break_runtime(site, *BREAKS["preload/rocm/environment*"])
    found = failed(site, "--select", "environment*")
    assert set(found) == {f"preload/rocm/environment: {each}" for each in ("one", "commas", "semicolons and blanks")}
    assert "did not load" in found["preload/rocm/environment: one"]


def break_runtime(site: Site, name: str, before: str, after: str) -> None:
    path = site.folder / "rocm_sdk" / name
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


# Console scripts


def change_program(site: Site, text: str) -> None:
    path = site.folder / CORE / "bin/rocminfo"
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("#!/bin/sh\necho other\n", "rocminfo -h should print 'rocminfo', but printed other"),
        ("#!/bin/sh\necho rocminfo; exit 3\n", "rocminfo -h exited with code 3: rocminfo"),
        ("#!/bin/sh\nkill -SEGV $$\n", "rocminfo -h was killed by SIGSEGV"),
        ("#!/bin/sh\necho rocminfo; sleep 60\n", "rocminfo -h did not finish in time"),
        ("#!/nowhere/sh\n", "rocminfo -h exited with code 1"),
    ],
)
def test_a_program_that_does_not_answer_fails(tmp_path: Path, program: str, said: str) -> None:
    site = make_site(tmp_path, only=["core"])
    change_program(site, program)
    seconds = "1" if "sleep" in program else "60"
    found = failed(site, "--select", "command/rocm-sdk-core/rocminfo", "--timeout", seconds)
    assert said in found["command/rocm-sdk-core/rocminfo"]


def test_a_program_may_end_as_the_manifest_says(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    change_program(site, "#!/bin/sh\necho rocminfo; exit 3\n")
    change_json(site.folder / CORE / "_sdk.json", lambda value: value["commands"][1].update(expect_exit=[1, 3]))
    assert others(site, "--select", "command/rocm-sdk-core/rocminfo") == {}


def test_programs_see_no_gpu(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    change_program(
        site, '#!/bin/sh\necho "rocminfo $HIP_VISIBLE_DEVICES $ROCR_VISIBLE_DEVICES $CUDA_VISIBLE_DEVICES"\n'
    )
    change_json(
        site.folder / CORE / "_sdk.json", lambda value: value["commands"][1].update(expect="rocminfo -1 -1 -1\n")
    )
    assert others(site, "--select", "command", env={"HIP_VISIBLE_DEVICES": "0"}) == {}


def test_a_program_that_is_gone_or_can_not_be_started_fails(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    path = site.folder / CORE / "bin/hipcc"  # which has no arguments to be called with
    path.chmod(0o644)
    assert "is not executable" in failed(site, "--select", "hipcc")["command/rocm-sdk-core/hipcc"]
    path.unlink()
    assert "is missing" in failed(site, "--select", "hipcc")["command/rocm-sdk-core/hipcc"]


def test_fault_o_console_scripts_of_programs_that_are_not_shipped_fail(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    info = site.folder / "rocm_sdk_core-7.1.0.dist-info/entry_points.txt"
    (site.folder / "rocm_sdk_core").mkdir()
    (site.folder / "rocm_sdk_core/__init__.py").write_text("")
    (site.folder / "rocm_sdk_core/_cli.py").write_text("def hipcc(): ...\ndef rocgdb(): ...\n")
    info.write_text("[console_scripts]\nhipcc = rocm_sdk_core._cli:hipcc\n")
    assert failed(site, "--select", "entry points") == {}
    with info.open("a") as file:
        file.write("rocgdb = rocm_sdk_core._cli:rocgdb\nrocminfo = rocm_sdk_core._cli:rocminfo\n")
    text = failed(site, "--select", "entry points")["command/rocm-sdk-core/entry points"]
    assert "rocgdb is a console script, but rocm-sdk-core does not contain that program" in text
    assert "rocminfo calls rocm_sdk_core._cli:rocminfo, which does not exist" in text


def test_the_sdks_own_command_that_breaks_fails(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    break_runtime(site, "_cli.py", "_say(sdk.file.version)", 'raise SystemExit("broken")')
    found = failed(site, "--select", "command/rocm/*")
    assert list(found) == ["command/rocm/rocm-sdk version"]


# GPU code


def bundle(*targets: str, packed: bool = False, empty: Iterable[str] = ()) -> bytes:
    """An offload bundle as Clang makes it, with code for some targets."""
    names = [b"host-x86_64-unknown-linux-gnu-", *(f"hipv4-amdgcn-amd-amdhsa--{each}".encode() for each in targets)]
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names))
    at = len(head) + sum(24 + len(name) for name in names)
    rows, code = b"", b""
    for name in names:
        size = 0 if name.startswith(b"host") or any(name.endswith(each.encode()) for each in empty) else 64
        rows += struct.pack("<QQQ", at + len(code), size, len(name)) + name
        code += b"c" * size
    whole = head + rows + code
    if not packed:
        return whole
    body = zlib.compress(whole)
    return struct.pack("<4sHHIIQ", b"CCOB", 2, 0, 24 + len(body), len(whole), 0) + body


def plant_code(site: Site, dist: str, *bundles: bytes) -> None:
    """Give the library of a package with GPU code a section with some."""
    folder = site.folder / f"_{dist.replace('-', '_')}"
    place = folder / "lib/librocsparse.so.1"
    content = b"".join(each.ljust(-(-len(each) // 4096) * 4096, b"\0") for each in bundles) or b"\0" * 64
    blob = folder.parent.parent / "blob"
    blob.write_bytes(content)
    asm = f'__asm__(".section .hip_fatbin,\\"a\\",@progbits\\n.p2align 12\\n.incbin \\"{blob}\\"\\n.previous");'
    compile_library(place, source=f"{asm}\nint rocsparse(void) {{ return 0; }}\n")


@pytest.mark.parametrize("packed", [False, True])
def test_gpu_code_for_exactly_the_targets_of_the_package_passes(tmp_path: Path, *, packed: bool) -> None:
    site = make_site(tmp_path, only=["core", "device-gfx942", "libraries-gfx94x"])
    plant_code(site, GFX942, bundle("gfx942:sramecc+:xnack-", packed=packed), bundle("gfx942:xnack+", packed=packed))
    plant_code(site, GFX94X, bundle("gfx941", packed=packed), bundle("gfx942", packed=packed))
    assert others(site, "--select", "gpu") == {}


@pytest.mark.parametrize(
    ("bundles", "said"),
    [
        ([bundle("gfx942", "gfx1100")], "has code for gfx1100, but the package is for gfx942"),
        ([bundle("gfx90a")], "no library has code for gfx942"),
        ([bundle("gfx942", empty=["gfx942"])], "no library has code for gfx942"),
        ([], "has a section for GPU code, but the section contains no code"),
        ([bundle("gfx942"), bundle("gfx1100", packed=True)], "has code for gfx1100"),
        ([bundle("gfx942")[:30]], "damaged"),
        ([bundle("gfx942", packed=True)[:40]], "damaged"),
    ],
)
def test_report_17_gpu_code_for_other_targets_fails(tmp_path: Path, bundles: list[bytes], said: str) -> None:
    site = make_site(tmp_path, only=["core", "device-gfx942"])
    plant_code(site, GFX942, *bundles)
    assert said in failed(site, "--select", "gpu")[f"gpu/{GFX942}/code"]


def test_gpu_code_that_this_python_can_not_unpack_is_told(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "device-gfx942"])
    plant_code(site, GFX942, struct.pack("<4sHHIIQ", b"CCOB", 2, 1, 40, 400, 0) + b"(\xb5/\xfd" + b"\0" * 12)
    found = others(site, "--select", "gpu/*/code", python=interpreter("3.9"))[f"gpu/{GFX942}/code"]
    assert found["status"] == "skipped"
    assert "1 of 1 containers are compressed with zstd" in found["text"]


def test_report_17_files_named_after_other_targets_fail(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "device-gfx942"])
    folder = site.folder / "_rocm_sdk_device_gfx942/lib/library"
    folder.mkdir()
    (folder / "Kernels.so-000-gfx942-xnack-.hsaco").write_bytes(b"")
    assert others(site, "--select", "gpu/*/names") == {}
    (folder / "gfx90a68.kdb").write_bytes(b"")  # a number of compute units stands behind the target
    (folder / "TensileLibrary_gfx1100.co").write_bytes(b"")
    text = failed(site, "--select", "gpu/*/names")[f"gpu/{GFX942}/names"]
    assert "lib/library/TensileLibrary_gfx1100.co is for gfx1100, but the package is for gfx942" in text


# The devel tree


@pytest.fixture
def expanded(tmp_path: Path) -> Site:
    site = make_site(tmp_path)
    assert site.command("init", "--quiet").returncode == 0
    return site


def root_of(site: Site) -> Path:
    return site.folder / "_rocm_sdk_devel"


def test_the_tests_expand_the_devel_tree_if_they_need_it(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    assert site.command("test", "--select", "load/rocm-sdk-core/*").returncode == 0
    assert not root_of(site).exists()
    assert site.command("test", "--select", "devel").returncode == 0
    assert (root_of(site) / HIP).is_file()


def test_a_damaged_payload_fails_once_and_skips_the_rest(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    payload = site.folder / "rocm_sdk_devel/_devel.tar"
    payload.write_bytes(payload.read_bytes()[:2000])
    found = others(site, "--select", "devel/*,cmake")
    assert {each["status"] for name, each in found.items() if "expansion" not in name} == {"skipped"}
    assert found["devel/rocm-sdk-devel/expansion"]["status"] == "failed"
    assert "cannot be expanded" in found["devel/rocm-sdk-devel/expansion"]["text"]


def test_report_15_files_that_the_devel_tree_lacks_or_has_otherwise_fail(expanded: Site) -> None:
    root = root_of(expanded)
    (root / "bin/rocminfo").unlink()
    (root / COMGR).unlink()
    (root / COMGR).write_bytes(b"other")
    text = failed(expanded, "--select", "holds*")["devel/rocm-sdk-devel/holds rocm-sdk-core"]
    assert "bin/rocminfo is not in the devel tree" in text
    assert f"{COMGR} in the devel tree differs from rocm-sdk-core" in text
    assert "rocm-sdk repair" in text
    assert expanded.command("repair").returncode == 0
    assert failed(expanded, "--select", "holds*") == {}


def test_a_copy_of_equal_content_in_the_devel_tree_passes(expanded: Site) -> None:
    place = root_of(expanded) / HIP
    content = place.read_bytes()
    place.unlink()
    place.write_bytes(content)
    assert failed(expanded, "--select", "holds*,names of libraries") == {}


def test_report_15_names_of_a_library_that_lead_to_another_one_fail(expanded: Site) -> None:
    alias = root_of(expanded) / "lib/libamdhip64.so"
    assert alias.exists()
    alias.unlink()
    compile_library(alias, "-Wl,-soname,libamdhip64.so.7", source="int another(void) { return 1; }")
    text = failed(expanded, "--select", "devel")["devel/rocm-sdk-devel/names of libraries"]
    assert "lib/libamdhip64.so is different from the libamdhip64.so.7 in rocm-sdk-core" in text


def test_links_that_lead_nowhere_or_out_of_the_sdk_fail(expanded: Site, tmp_path: Path) -> None:
    (root_of(expanded) / "lib/libgone.so").symlink_to("libgone.so.1")
    (root_of(expanded) / "lib/away").symlink_to(tmp_path)
    text = failed(expanded, "--select", "links")["devel/rocm-sdk-devel/links"]
    assert "lib/libgone.so points to libgone.so.1, which does not exist" in text
    assert "lib/away points outside the SDK" in text


def test_report_12_answers_that_differ_about_the_root_fail(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    break_runtime(site, "_cli.py", '"bin": sdk.file.bin', '"bin": "else"')
    text = failed(site, "--select", "roots")["devel/rocm-sdk-devel/roots"]
    assert f"path --bin prints '{root_of(site)}/else' with exit code 0, expected {root_of(site)}/bin" in text


# CMake

CONFIG = b"""\
add_library(hip::host SHARED IMPORTED)
set_target_properties(hip::host PROPERTIES
  IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/../../libamdhip64.so.7"
  INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}/../../../include")
"""
PROGRAM = """\
#include <cstring>
#include <hip/hip_runtime.h>
extern "C" const char *amdhip64(void);
int main() { return std::strcmp(amdhip64(), "rocm-sdk-core"); }
"""


def cmake_site(tmp_path: Path, config: bytes = CONFIG, program: str = PROGRAM, **changes: Any) -> Site:
    need("cmake", "g++")
    files = {"lib/cmake/hip/hip-config.cmake": config}
    return make_site(tmp_path, devel_files=files, cmake_targets=("hip::host",), cmake_program=program, **changes)


def test_a_program_is_built_with_the_cmake_package_and_runs(tmp_path: Path) -> None:
    assert others(cmake_site(tmp_path), "--select", "cmake") == {}


def test_without_a_program_an_empty_one_is_linked_and_loads_the_library(tmp_path: Path) -> None:
    site = cmake_site(tmp_path, program="")
    assert others(site, "--select", "cmake") == {}
    broken = cmake_site(tmp_path / "broken", program="")
    compile_library(broken.folder / CORE / HIP, source=SOURCES["abort"][1] or "")
    text = failed(broken, "--select", "cmake")["cmake/rocm-sdk-devel/hip"]
    assert "the program was built, but cannot be run: it was killed by SIGABRT" in text


@pytest.mark.parametrize(
    ("config", "program", "said"),
    [
        (
            b'message(FATAL_ERROR "AMDDeviceLibs is missing")',
            PROGRAM,
            "CMake cannot configure a project with find_package(hip)",
        ),
        (b"", PROGRAM, "CMake cannot configure a project"),
        (CONFIG, "int main() { return missing(); }", "cannot build a program with hip::host"),
        (CONFIG, "int main() { return 7; }", "the program was built, but cannot be run: it exited with code 7"),
    ],
)
def test_a_cmake_package_that_does_not_do_fails(tmp_path: Path, config: bytes, program: str, said: str) -> None:
    assert said in failed(cmake_site(tmp_path, config, program), "--select", "cmake")["cmake/rocm-sdk-devel/hip"]


def test_where_there_is_no_cmake_its_test_is_skipped(tmp_path: Path) -> None:
    found = others(cmake_site(tmp_path), "--select", "cmake", env={"PATH": "/nowhere"})
    assert found["cmake/rocm-sdk-devel/hip"]["status"] == "skipped"
    assert found["cmake/rocm-sdk-devel/hip"]["hint"] == "pip install cmake ninja"


def test_a_compiler_that_the_manifest_names_must_be_there(tmp_path: Path) -> None:
    site = cmake_site(tmp_path, cmake_compiler="bin/amdclang++")
    assert "bin/amdclang++ is missing" in failed(site, "--select", "cmake")["cmake/rocm-sdk-devel/hip"]


# Selection, reports, ends


def names(site: Site, *words: str) -> list[str]:
    done = site.command("test", "--list", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_tests_are_selected_by_group_package_and_pattern(whole: Site) -> None:
    everything = names(whole)
    assert len(everything) == len(set(everything)) == 98
    assert names(whole, "--select", "load") == [each for each in everything if each.startswith("load/")]
    core = [each for each in everything if each.split("/")[1] == "rocm-sdk-core"]
    assert names(whole, "--select", "rocm-sdk-core") == names(whole, "--select", "core") == core
    assert names(whole, "--select", "load/*/*rocsparse") == [
        each for each in everything if each.startswith("load/") and each.endswith("rocsparse")
    ]
    assert names(whole, "--select", "amdhip64") == ["load/rocm-sdk-core/amdhip64", "preload/rocm/amdhip64"]
    chosen = names(whole, "--select", "load, preload", "--select", "!core")
    assert chosen == [each for each in everything if each.startswith(("load/", "preload/")) and each not in core]
    assert names(whole, "--select", "!load,!preload") == [
        each for each in everything if not each.startswith(("load/", "preload/"))
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--select", "laod"], "rocm-sdk: --select laod: no test, group or package matches (near: load"),
        (["--select", "load,!load"], "rocm-sdk: --select load,!load does not select any tests"),
        (["--jobs", "0"], "rocm-sdk test: argument --jobs: '0' is not a valid number of tests"),
        (["--timeout", "-1"], "rocm-sdk test: argument --timeout: '-1' is not a valid number of seconds"),
        (["more"], "rocm-sdk test: unrecognized arguments: more"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(whole: Site, words: list[str], said: str) -> None:
    done = whole.command("test", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_results_come_in_the_same_order_however_many_run_at_once(whole: Site) -> None:
    found = [report(whole, "--select", "load,install", "--jobs", jobs) for jobs in ("1", "6")]
    listed = names(whole, "--select", "load,install")
    for each in found:
        assert [result["name"] for result in each["results"]] == listed
        assert (each["schema"], each["sdk"], each["version"]) == (1, "rocm", "7.1.0")
        assert each["passed"] == len(listed)
        assert set(each["results"][0]) == {"name", "group", "package", "status", "text", "hint", "seconds"}


def test_verbose_prints_a_line_for_each_test(whole: Site) -> None:
    done = whole.command("test", "-v", "--select", "version/*")
    assert done.stdout.count("passed  version/rocm/") == 7


def test_the_junit_report_is_valid_whatever_is_in_it(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries"])
    change_program(site, "#!/bin/sh\nprintf 'a\\033[31m<&>\"\\001\\377 ]]>\\n'\n")
    out = tmp_path / "report.xml"
    done = site.command("test", "--junit", str(out), "--select", "command,load")
    assert done.returncode == 1
    suites = ET.fromstring(out.read_bytes())
    assert suites.tag == "testsuites"
    assert [suite.get("name") for suite in suites] == ["load", "command"]
    cases = suites.findall(".//testcase")
    assert int(suites.get("tests", "")) == len(cases)
    (failure,) = suites.findall(".//failure")
    assert '<&>"' in failure.get("message", "")
    assert len(suites.findall(".//skipped")) == sum(int(suite.get("skipped", "")) for suite in suites) == 1
    assert {case.get("classname") for case in cases} >= {"load.rocm-sdk-core", "command.rocm"}
    missing = site.command("test", "--junit", str(tmp_path / "no/report.xml"), "--select", "version/rocm/any")
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)


def test_damaged_manifests_are_one_line(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    (site.folder / CORE / "_sdk.json").write_text("{")
    done = site.command("test")
    assert (done.returncode, done.stdout) == (1, "")
    assert "_sdk.json is damaged" in done.stderr
    assert "reinstall rocm-sdk-core" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_test_that_breaks_is_one_that_fails(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "device-gfx942"])
    break_runtime(site, "_gpu_code.py", "    elf = read_elf(path)", '    raise KeyError("what")')
    text = failed(site, "--select", "gpu")[f"gpu/{GFX942}/code"]
    assert "the test failed to run: KeyError: 'what'" in text


def test_an_interrupt_stops_all_that_runs(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    mark = tmp_path / "pids"
    change_program(site, f"#!/bin/sh\nsleep 600 &\necho $$ $! >> {mark}\nwait\n")
    # Whoever runs the tests in the background has interrupts ignored, and children inherit that.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from rocm_sdk.__main__ import main; main()"
    words = [sys.executable, "-c", code, "test", "--select", "command/rocm-sdk-core/rocminfo"]
    env = {**os.environ, "PYTHONPATH": str(site.folder), "ROCM_SDK_DISABLE_DETECTION": "1"}
    started = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (mark.exists() and mark.read_text().endswith("\n")):
        time.sleep(0.02)
    started.send_signal(signal.SIGINT)
    out, error = started.communicate()
    assert (started.returncode, out, error) == (130, "", "")
    for pid in mark.read_text().split():
        state = Path(f"/proc/{pid}/stat")
        while state.exists() and state.read_text().rpartition(")")[2].split()[0] not in "ZX":
            time.sleep(0.02)
