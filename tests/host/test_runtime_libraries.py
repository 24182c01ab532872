"""Libraries of an installed SDK: found, preloaded and explained, by the Pythons that the runtime is for."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from support.elfs import compile_library
from support.small_sdk import Site, interpreter, make_site, pip_hint

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

WHERE = """
import ctypes
def where(name):
    function = getattr(ctypes.CDLL(None), name)
    function.restype = ctypes.c_char_p
    return function().decode()
"""
"""``where("rocsparse")``: the distribution whose library is loaded."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """An SDK with all its packages; tests change nothing in it."""
    return make_site(tmp_path_factory.mktemp("sdk"))


def gpus(*targets: str) -> dict[str, str]:
    return {"ROCM_SDK_FORCE_GFX_ARCH": ",".join(targets)}


def answer(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.parametrize("version", ["3.9", "3.11", "3.13"])
def test_libraries_are_found_and_preloaded_by_every_python(site: Site, version: str) -> None:
    code = f"""{WHERE}
import rocm_sdk
print(rocm_sdk.__version__)
print(*rocm_sdk.find_libraries("amdhip64", "rocsparse", "hiprand"), sep="\\n")
rocm_sdk.initialize_process(preload_shortnames=["hipsparse"], check_version="7.*")
print(where("rocsparse"), where("hipsparse"))
"""
    python = sys.executable if version == "3.11" else interpreter(version)
    lines = answer(site.python(code, python=python, env=gpus("gfx1100"))).splitlines()
    assert lines == [
        "7.1.0",
        f"{site.folder}/_rocm_sdk_core/lib/libamdhip64.so.7",
        f"{site.folder}/_rocm_sdk_device_gfx1100/lib/librocsparse.so.1",
        f"{site.folder}/_rocm_sdk_libraries/lib/libhiprand.so.1",
        "rocm-sdk-device-gfx1100 rocm-sdk-libraries",
    ]


def test_the_runtime_works_under_another_name(tmp_path: Path) -> None:
    site = make_site(tmp_path, prefix="tug-kit", module="tug_kit", sdk="tug", dist="tug")
    code = "import tug_kit; print(tug_kit.find_libraries('amdhip64')[0]); tug_kit.preload_libraries('hiprand')"
    assert answer(site.python(code)) == f"{site.folder}/_tug_kit_core/lib/libamdhip64.so.7"
    assert answer(site.command("version")) == "7.1.0"
    done = site.python("import tug_kit; tug_kit.find_libraries('hiprnd')")
    assert "'hiprnd' is not a library in tug (near: hiprand" in done.stderr
    bad = site.command("version", env={"TUG_KIT_TARGET_FAMILY": "x"})
    assert bad.returncode == 0


@pytest.mark.parametrize(
    ("targets", "dist"),
    [
        (["gfx942"], "rocm-sdk-device-gfx942"),
        (["gfx1100"], "rocm-sdk-device-gfx1100"),
        (["gfx941"], "rocm-sdk-libraries-gfx94x"),
        (["gfx942", "gfx941"], "rocm-sdk-libraries-gfx94x"),
        (["gfx1100", "gfx942"], "rocm-sdk-device-gfx1100"),  # nothing serves both: the first
        (["gfx1036"], "rocm-sdk-libraries-gfx94x"),  # nothing serves it: the default
    ],
)
def test_gpu_code_comes_from_the_smallest_package_that_serves_all_gpus(
    site: Site, targets: list[str], dist: str
) -> None:
    code = f"{WHERE}\nimport rocm_sdk; rocm_sdk.preload_libraries('hipsparse'); print(where('rocsparse'))"
    assert answer(site.python(code, env=gpus(*targets))) == dist


def test_a_family_of_the_environment_goes_before_what_is_found(site: Site) -> None:
    code = "import rocm_sdk; print(rocm_sdk.find_libraries('rocsparse')[0].parts[-3])"
    variables = {"ROCM_SDK_TARGET_FAMILY": "gfx94x", **gpus("gfx942")}
    assert answer(site.python(code, env=variables)) == "_rocm_sdk_libraries_gfx94x"


def test_a_family_of_the_environment_is_never_replaced_by_another(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries", "libraries-gfx94x"])
    done = site.python(
        "import rocm_sdk; rocm_sdk.find_libraries('rocsparse')", env={"ROCM_SDK_TARGET_FAMILY": "gfx110x"}
    )
    wanted = "'rocsparse' is provided by rocm-sdk-libraries-gfx110x, which is not installed: "
    assert wanted + pip_hint("'rocm[libraries-gfx110x]==7.1.0'") in done.stderr


def test_the_gpu_package_stays_the_same_for_the_whole_process(site: Site) -> None:
    code = f"""{WHERE}
import os, rocm_sdk
rocm_sdk.preload_libraries("rocsparse")
os.environ["ROCM_SDK_FORCE_GFX_ARCH"] = "gfx1100"
rocm_sdk.preload_libraries("rocsparse", "hipsparse")
print(where("rocsparse"), rocm_sdk.find_libraries("rocsparse")[0].parts[-3])
"""
    assert answer(site.python(code, env=gpus("gfx942"))) == "rocm-sdk-device-gfx942 _rocm_sdk_device_gfx942"


def test_the_choice_is_explained(site: Site) -> None:
    text = answer(site.python("import rocm_sdk; print(rocm_sdk.explain())", env=gpus("gfx1100", "gfx942")))
    assert text.splitlines() == [
        "set by ROCM_SDK_FORCE_GFX_ARCH=gfx1100,gfx942",
        "requested: gfx1100, gfx942 (by detection)",
        "rocm-sdk-device-gfx1100: has code for gfx1100, but not for gfx942",
        (
            "a process can use only one package: for gfx942, start a separate process with "
            "ROCM_SDK_TARGET_FAMILY set or with fewer GPUs visible"
        ),
    ]


def test_the_explanation_says_what_to_install(tmp_path: Path) -> None:
    site = make_site(
        tmp_path, only=["core", "libraries", "libraries-gfx94x"], versions={"core": "7.0.2", "libraries": "7.1.0.post1"}
    )
    text = answer(site.python("import rocm_sdk; print(rocm_sdk.explain())", env=gpus("gfx1100")))
    assert "for gfx1100: " + pip_hint("'rocm[device-gfx1100]==7.1.0'") in text
    assert (
        "rocm-sdk-core has version 7.0.2, but rocm has version 7.1.0: install the same version of all packages" in text
    )
    assert "post1" not in text
    unknown = answer(site.python("import rocm_sdk; print(rocm_sdk.explain())", env=gpus("gfx1300")))
    assert "rocm 7.1.0 has no code for gfx1300" in unknown


def test_fault_d_a_library_of_a_package_that_is_not_installed_names_the_extra(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    done = site.python("import rocm_sdk; rocm_sdk.find_libraries('hiprand')")
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: 'hiprand' is provided by rocm-sdk-libraries, which is not installed: "
        + pip_hint("'rocm[libraries]==7.1.0'")
    )


def test_fault_e_all_that_is_missing_is_named_at_once_and_no_other_package(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    code = "import rocm_sdk; rocm_sdk.find_libraries('amdhip64', 'hiprand', 'rocsparse', 'hiprnd')"
    said = site.python(code, env=gpus("gfx942")).stderr.splitlines()[-1]
    assert said == (
        "ModuleNotFoundError: 'hiprnd' is not a library in rocm (near: hiprand); "
        "'hiprand' is provided by rocm-sdk-libraries, which is not installed; "
        "'rocsparse' is provided by rocm-sdk-device-gfx942, which is not installed: "
        + pip_hint("'rocm[libraries,device-gfx942]==7.1.0'")
    )


def test_a_file_that_is_gone_is_named_with_its_place(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    place = site.folder / "_rocm_sdk_core/lib/libamdhip64.so.7"
    place.unlink()
    for call in ("find_libraries", "preload_libraries"):
        said = site.python(f"import rocm_sdk; rocm_sdk.{call}('amdhip64')").stderr.splitlines()[-1]
        assert said == f"FileNotFoundError: amdhip64: {place} is missing; reinstall rocm-sdk-core"


def test_fault_f_a_pattern_that_does_not_match_is_a_warning_or_an_error_with_its_text(site: Site) -> None:
    call = "import re, rocm_sdk; rocm_sdk.initialize_process(check_version=re.compile('9.*'){})"
    warned = site.python(call.format(""))
    text = "rocm 7.1.0 is installed, but this program was built for version '9.*'"
    assert (warned.returncode, warned.stdout) == (0, "")
    assert f"UserWarning: {text}" in warned.stderr
    failed = site.python(call.format(", fail_on_version_mismatch=True"))
    assert failed.stderr.splitlines()[-1] == f"RuntimeError: {text}"


def test_fault_g_the_message_shows_the_version_as_the_caller_wrote_it(site: Site) -> None:
    said = site.python("import rocm_sdk; rocm_sdk.initialize_process(check_version='5.2')").stderr
    assert "version '5.2'" in said


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [("7.1.0", True), ("7.*", True), ("*", True), ("7.1", False), ("7.1.", False), ("7?1?0", False), ("*.0", True)],
)
def test_versions_with_stars(site: Site, wanted: str, *, matches: bool) -> None:
    code = "import sys, rocm_sdk; rocm_sdk.initialize_process(check_version=sys.argv[1], fail_on_version_mismatch=True)"
    assert (site.python(code, wanted).returncode == 0) is matches


def test_the_version_is_checked_before_anything_is_loaded(site: Site) -> None:
    code = """
import rocm_sdk
try:
    rocm_sdk.initialize_process(preload_shortnames=["nothing"], check_version="8.*", fail_on_version_mismatch=True)
except RuntimeError as error:
    print(error)
"""
    assert "built for version '8.*'" in answer(site.python(code))


def test_arguments_of_later_versions_are_told_and_ignored(site: Site) -> None:
    done = site.python("import rocm_sdk; rocm_sdk.initialize_process(preload_names=['x'])")
    assert done.returncode == 0
    assert "initialize_process ignores unknown arguments: preload_names" in done.stderr


@pytest.mark.parametrize("text", ["hiprand", "hiprand,roctx64", "hiprand; roctx64 ;", " hiprand roctx64,, "])
def test_libraries_that_the_environment_names_are_loaded(site: Site, text: str) -> None:
    code = f"{WHERE}\nimport rocm_sdk; rocm_sdk.initialize_process(); print(where('hiprand'))"
    assert answer(site.python(code, env={"ROCM_SDK_PRELOAD_LIBRARIES": text})) == "rocm-sdk-libraries"
    off = code.replace("initialize_process()", "initialize_process(env_override=False)")
    assert "undefined symbol: hiprand" in site.python(off, env={"ROCM_SDK_PRELOAD_LIBRARIES": text}).stderr


def test_what_the_environment_names_wrongly_is_an_error_that_tells_to_unset_it(site: Site) -> None:
    code = "import rocm_sdk; rocm_sdk.initialize_process()"
    said = site.python(code, env={"ROCM_SDK_PRELOAD_LIBRARIES": "nope"}).stderr.splitlines()[-1]
    assert said == (
        "RuntimeError: ROCM_SDK_PRELOAD_LIBRARIES=nope failed: 'nope' is not a library in rocm. "
        "Unset ROCM_SDK_PRELOAD_LIBRARIES to continue without it"
    )


def test_preloading_takes_what_a_library_needs_first_and_can_be_repeated(site: Site) -> None:
    code = """
import rocm_sdk
from rocm_sdk import _preload
rocm_sdk.preload_libraries("hipsparse", "hiprand")
handles = dict(_preload._HANDLES)
rocm_sdk.preload_libraries("hipsparse", "amdhip64")
assert handles == _preload._HANDLES
print(*(each.partition(".so")[0] for each in handles))
"""
    assert answer(site.python(code)) == (
        "libamd_comgr libhsa-runtime64 libamdhip64 librocsparse libhipsparse librocrand libhiprand"
    )


def test_symbols_are_seen_by_all_only_if_that_is_wanted(site: Site) -> None:
    code = f"""{WHERE}
import rocm_sdk
rocm_sdk.preload_libraries("roctx64", rtld_global=False)
try:
    where("roctx64")
except AttributeError:
    print("not seen")
rocm_sdk.preload_libraries("roctx64")
print(where("roctx64"))
"""
    assert answer(site.python(code)).splitlines() == ["not seen", "rocm-sdk-core"]


def test_a_library_that_was_loaded_from_elsewhere_stays_the_only_one(site: Site, tmp_path: Path) -> None:
    other = compile_library(tmp_path / "libroctx64.so.4", source='const char *roctx64() { return "elsewhere"; }')
    code = f"{WHERE}\nctypes.CDLL({str(other)!r}, mode=ctypes.RTLD_GLOBAL)\nimport rocm_sdk\n"
    done = site.python(f"{code}rocm_sdk.preload_libraries('roctx64'); print(where('roctx64'))")
    assert done.stdout == "elsewhere\n"
    assert f"libroctx64.so.4 was already loaded from {other}, which is used" in done.stderr


def test_a_load_that_fails_names_the_library_what_it_lacks_and_what_to_install(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    site.remove("rocm-sdk-libraries-gfx94x", "rocm-sdk-libraries-gfx110x", "rocm-sdk-device-gfx942")
    site.remove("rocm-sdk-device-gfx1100")
    code = "import rocm_sdk; rocm_sdk.preload_libraries('hipsparse')"
    said = site.python(code, env=gpus("gfx942")).stderr.splitlines()[-1]
    assert re.search(r"LoadError: hipsparse cannot be loaded: the loader cannot find librocsparse\.so\.1 ", said)
    assert said.endswith("it is provided by rocm-sdk-device-gfx942: " + pip_hint("'rocm[device-gfx942]==7.1.0'"))


@pytest.mark.parametrize(
    ("system", "cure"),
    [("libabsent1", "the system must provide it: install libabsent1"), ("", "the system must provide it")],
)
def test_a_library_of_the_system_that_is_missing_is_named_with_its_package(
    tmp_path: Path, system: str, cure: str
) -> None:
    site = make_site(tmp_path)
    stub = compile_library(tmp_path / "libabsent.so.1", source="")
    place = site.folder / "_rocm_sdk_core/lib/libroctx64.so.4"
    compile_library(place, "-Wl,-soname,libroctx64.so.4", str(stub), source="")
    about = site.folder / "_rocm_sdk_core/_sdk.json"
    about.write_text(
        about.read_text().replace(
            '"package":"glibc","soname":"libc.so.6"', f'"package":"{system}","soname":"libabsent.so.1"'
        )
    )
    said = site.python("import rocm_sdk; rocm_sdk.preload_libraries('roctx64')").stderr.splitlines()[-1]
    assert "roctx64 cannot be loaded: the loader cannot find libabsent.so.1" in said
    assert said.endswith(cure)


def test_what_is_only_opened_later_may_fail_and_what_is_needed_is_told_as_the_cause(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    (site.folder / "_rocm_sdk_core/lib/libroctx64.so.4").write_bytes(b"\x7fELF")
    about = site.folder / "_rocm_sdk_core/_sdk.json"
    needs = '"needs":["libamd_comgr.so.3",'
    about.write_text(about.read_text().replace(needs, f'{needs}"libroctx64.so.4",'))
    assert answer(site.python("import rocm_sdk; rocm_sdk.preload_libraries('hiprand')")) == ""
    (site.folder / "_rocm_sdk_core/lib/libamdhip64.so.7").write_bytes(b"")
    said = site.python("import rocm_sdk; rocm_sdk.preload_libraries('hiprand')").stderr.splitlines()[-1]
    assert (
        "LoadError: hiprand cannot be loaded because it needs a library that failed to load: amdhip64 "
        "cannot be loaded: "
    ) in said
    assert said.endswith("file too short; the file is damaged: reinstall rocm-sdk-core")


@pytest.mark.parametrize(
    ("version", "meaning"),
    [
        ("GLIBC_9.9", "it was built for a newer glibc than the one on this system"),
        ("GLIBCXX_3.4.99", "it was built for a newer libstdc++ than the one on this system"),
        (
            "hip_9.9",
            "either packages of different versions are installed, or a different copy of that library was loaded first",
        ),
    ],
)
def test_a_version_of_a_symbol_that_is_not_there_is_explained(tmp_path: Path, version: str, meaning: str) -> None:
    site = make_site(tmp_path)
    folder = site.folder / "_rocm_sdk_core/lib"
    script = tmp_path / "versions"
    script.write_text(f"{version} {{ global: some; }};")
    source = "int some(void) { return 1; }"
    stub = compile_library(tmp_path / "libamd_comgr.so.3", f"-Wl,--version-script={script}", source=source)
    script.write_text("OTHER_1 { global: some; };")
    compile_library(folder / "libamd_comgr.so.3", f"-Wl,--version-script={script}", source=source)
    use = "int some(void); int roctx64(void) { return some(); }"
    compile_library(folder / "libroctx64.so.4", str(stub), "-Wl,-rpath,$ORIGIN", source=use)
    preload = "import rocm_sdk; rocm_sdk.preload_libraries('roctx64')"
    said = site.python(preload).stderr.splitlines()[-1]
    assert f"version `{version}' not found" in said
    assert said.endswith(meaning)
    compile_library(folder / "libamd_comgr.so.3", source="")
    assert f"undefined symbol: some, version {version}; either packages of different" in site.python(preload).stderr


def test_no_gpu_is_looked_for_where_it_would_decide_nothing(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries", "device-gfx942"])
    variables = {"ROCM_SDK_VERBOSE": "1", "ROCM_SDK_DISABLE_DETECTION": "0"}
    code = "import rocm_sdk; print(rocm_sdk.find_libraries('rocsparse', 'amdhip64')[0].parts[-3])"
    assert answer(site.python(code, env=variables)) == "_rocm_sdk_device_gfx942"
    plain = make_site(tmp_path / "all").python(
        "import rocm_sdk; rocm_sdk.preload_libraries('hiprand')", env={"ROCM_SDK_TARGET_FAMILY": "doesnotexist"}
    )
    assert answer(plain) == ""


def test_a_damaged_library_is_told_to_be_installed_again(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    (site.folder / "_rocm_sdk_core/lib/libroctx64.so.4").write_bytes(b"\x7fELF")
    said = site.python("import rocm_sdk; rocm_sdk.preload_libraries('roctx64')").stderr.splitlines()[-1]
    assert said.endswith("the file is damaged: reinstall rocm-sdk-core")


def test_a_library_that_this_platform_lacks_is_left_out(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    about = site.folder / "_rocm_sdk_core/_sdk.json"
    about.write_text(about.read_text().replace('"path":"lib/libroctx64.so.4"', '"optional":true,"path":"lib/none.so"'))
    code = "import rocm_sdk; print([each.name for each in rocm_sdk.find_libraries('roctx64', 'amdhip64')])"
    assert answer(site.python(code)) == "['libamdhip64.so.7']"


def test_report_9_nothing_is_printed_and_no_program_is_run(site: Site, tmp_path: Path) -> None:
    """The answer needs no PATH, and what an own ``offload-arch`` there would print reaches nobody."""
    tool = tmp_path / "offload-arch"
    tool.write_text("#!/bin/sh\ntouch $(dirname $0)/ran\necho gfx1100\n")
    tool.chmod(0o755)
    code = """
import rocm_sdk, rocm_sdk._dist_info
rocm_sdk.initialize_process(preload_shortnames=["hipsparse"])
rocm_sdk._dist_info.determine_target_family()
"""
    variables = {"ROCM_SDK_DISABLE_DETECTION": "0", "PATH": str(tmp_path), "ROCM_SDK_VERBOSE": "1"}
    done = site.python(code, env=variables)
    assert (done.returncode, done.stdout) == (0, "")
    assert "rocm-sdk: " in done.stderr  # verbose speaks on stderr
    assert not (tmp_path / "ran").exists()


def test_the_names_of_rocms_own_packages_for_what_they_are(site: Site) -> None:
    code = """
from rocm_sdk import _dist_info as info
print(info.__version__, info.DEFAULT_TARGET_FAMILY, info.AVAILABLE_TARGET_FAMILIES, info.determine_target_family())
try:
    info.NOTHING
except AttributeError as error:
    print(error)
"""
    lines = answer(site.python(code, env=gpus("gfx1101"))).splitlines()
    assert lines == [
        "7.1.0 gfx94x ['gfx1100', 'gfx110x', 'gfx942', 'gfx94x'] gfx110x",
        "module 'rocm_sdk._dist_info' has no attribute 'NOTHING'",
    ]


def test_importing_does_no_work(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    (site.folder / "rocm_sdk/_sdk.json").write_text("{")
    assert answer(site.python("import rocm_sdk, sys; print('ctypes' in sys.modules)")) == "False"
    said = site.python("import rocm_sdk; rocm_sdk.__version__").stderr.splitlines()[-1]
    assert "_sdk.json is damaged" in said


def test_a_file_that_a_newer_builder_wrote_is_read_or_refused_by_its_schema(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    about = site.folder / "_rocm_sdk_core/_sdk.json"
    text = about.read_text()
    about.write_text(text.replace("{", '{"invented":[{"x":1}],', 1))
    code = "import rocm_sdk; print(rocm_sdk.find_libraries('roctx64')[0].name)"
    assert answer(site.python(code)) == "libroctx64.so.4"
    about.write_text(text.replace("{", '{"schema":2,', 1))
    assert (
        "has schema 2, but this runtime supports schema 1: install the same version of all" in site.python(code).stderr
    )


def test_a_folder_that_an_uninstallation_left_is_no_package(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries"])
    site.remove("rocm-sdk-libraries")
    left = site.folder / "_rocm_sdk_libraries/cache"
    left.mkdir(parents=True)
    said = site.python("import rocm_sdk; rocm_sdk.find_libraries('hiprand')").stderr.splitlines()[-1]
    assert "which is not installed" in said


def test_packages_in_another_site_directory_are_found(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    other = make_site(tmp_path / "other")
    both = {"PYTHONPATH": f"{site.folder}:{other.folder}"}
    code = "import rocm_sdk; print(*rocm_sdk.find_libraries('amdhip64', 'hiprand'))"
    assert answer(site.python(code, env=both)) == (
        f"{site.folder}/_rocm_sdk_core/lib/libamdhip64.so.7 {other.folder}/_rocm_sdk_libraries/lib/libhiprand.so.1"
    )
