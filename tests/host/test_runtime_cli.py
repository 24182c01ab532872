"""The command of an installed SDK, and what its console scripts start."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.small_sdk import Site, interpreter, make_site, pip_hint


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """An SDK without its devel package; tests change nothing in it."""
    made = make_site(tmp_path_factory.mktemp("sdk"))
    made.remove("rocm-sdk-devel")
    return made


def answer(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.parametrize("version", ["3.9", "3.13"])
def test_the_command_runs_on_every_python(site: Site, version: str) -> None:
    python = interpreter(version)
    assert answer(site.command("--help", python=python)).startswith("usage: rocm-sdk ")
    assert answer(site.command("version", python=python)) == "7.1.0"
    assert answer(site.command("targets", python=python)) == "gfx941;gfx942;gfx1100;gfx1101"
    assert site.command("env", python=python).returncode == 0
    assert answer(site.command("select", "libraries", python=python)) == "rocm[libraries-gfx94x]==7.1.0"
    no_command = site.command(python=python)
    assert no_command.returncode == 2
    assert no_command.stderr.count("\n") == 1


def test_each_command_has_a_usage(site: Site) -> None:
    for name in ("path", "init", "repair", "deinit", "targets", "version", "env", "select", "framework"):
        assert answer(site.command(name, "--help")).startswith(f"usage: rocm-sdk {name} ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["path"], "rocm-sdk path: one of the arguments --root --bin --cmake is required"),
        (["path", "--root", "--bin"], "rocm-sdk path: argument --bin: not allowed with argument --root"),
        (["nothing"], "rocm-sdk: argument COMMAND: invalid choice: 'nothing'"),
        (["init", "--link-mode", "magic"], "rocm-sdk init: argument --link-mode: invalid choice: 'magic'"),
        (
            ["select", "nothing"],
            "rocm-sdk: rocm does not provide these extras: nothing; available: devel, device, device-all, ",
        ),
        (["select", "--for", "gfx9999"], "rocm-sdk: --for=gfx9999 is not one of gfx1100, gfx110x, gfx942, gfx94x"),
        (["select", "--lock", "x.txt"], "rocm-sdk: --lock needs --find-links DIR or --index-url URL"),
        (["select", "--find-links", "."], "rocm-sdk: --find-links and --index-url need --lock"),
        (
            ["select", "--lock", "x.toml", "--find-links", "."],
            "rocm-sdk: x.toml is not a valid lock file name: it must be pylock.toml",
        ),
        (
            ["framework", "init-file", "x.py", "--preload", "amdhip65"],
            "rocm-sdk: rocm does not include these libraries: amdhip65; available: ",
        ),
        (["framework", "requirement", "--extra", "x"], "rocm-sdk: rocm does not provide these extras: x; available: "),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(site: Site, words: list[str], said: str) -> None:
    done = site.command(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_what_the_host_lacks_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=[])
    done = site.command("path", "--root")
    assert (done.returncode, done.stdout) == (1, "")
    said = "rocm-sdk: no package that provides the root of rocm is installed: "
    assert done.stderr == said + pip_hint("'rocm[devel]==7.1.0'") + "\n"
    (site.folder / "rocm_sdk/_sdk.json").write_text("[]")
    broken = site.command("version")
    assert (broken.returncode, broken.stderr.count("\n")) == (1, 1)
    assert broken.stderr.startswith("rocm_sdk: ")
    verbose = make_site(tmp_path / "other", only=[]).command("path", "--root", env={"ROCM_SDK_VERBOSE": "1"})
    assert "Traceback" in verbose.stderr


def test_report_13_without_the_devel_package_the_root_is_that_of_the_core_with_a_note(site: Site) -> None:
    core = site.folder / "_rocm_sdk_core"
    note = "rocm-sdk: rocm-sdk-devel is not installed, so this is the folder of core, which does not contain headers"
    for option, place in (("--root", core), ("--bin", core / "bin")):
        done = site.command("path", option)
        assert (done.returncode, Path(done.stdout.strip())) == (0, place)
        assert done.stderr == f"{note}: " + pip_hint("'rocm[devel]==7.1.0'") + "\n"
    cmake = site.command("path", "--cmake")
    assert (cmake.returncode, cmake.stdout) == (1, "")
    assert pip_hint("'rocm[devel]==7.1.0'") in cmake.stderr


def test_report_12_all_who_ask_for_the_root_get_the_same_one(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    code = "from rocm_sdk._sdk import find_root, this_sdk; print(*find_root(this_sdk()))"
    assert answer(site.python(code)) == f"{site.folder}/_rocm_sdk_core core"
    answer(site.command("init", "--quiet"))
    root = site.folder / "_rocm_sdk_devel"
    assert answer(site.python(code)) == f"{root} devel"
    assert answer(site.command("path", "--root")) == str(root)
    variables = json.loads(answer(site.command("env", "--shell", "json")))["set"]
    assert variables == {"ROCM_PATH": str(root), "HIP_DEVICE_LIB_PATH": f"{root}/amdgcn/bitcode"}
    for name in ("hipcc", "rocminfo"):
        assert answer(script(site, name)) == f"{name} {root}/bin/{name}"


def test_the_path_of_cmake_expands_the_devel_package(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    place = Path(answer(site.command("path", "--cmake")))
    assert (place / "hip/hip-config.cmake").is_file()
    assert (Path(answer(site.command("path", "--root"))) / "include/hip/hip_runtime.h").is_file()


def test_report_13_the_environment_of_a_build_for_a_shell(tmp_path: Path) -> None:
    site = make_site(tmp_path / "it's $HOME")
    text = answer(site.command("env"))
    show = 'printf "%s\\n" "$ROCM_PATH" "$PATH" "$CMAKE_PREFIX_PATH"'
    root = site.folder / "_rocm_sdk_devel"
    for before, after in (("", ""), ("export CMAKE_PREFIX_PATH=/else; ", ":/else")):
        shown = subprocess.check_output(["sh", "-c", f"{before}PATH=/usr/bin:/bin; {text}\n{show}"], text=True, env={})
        assert shown.splitlines() == [str(root), f"{root}/bin:/usr/bin:/bin", f"{root}/lib/cmake{after}"]


def test_the_environment_of_a_build_for_fish(tmp_path: Path) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("needs fish")
    site = make_site(tmp_path / "it's $HOME")
    text = answer(site.command("env", "--shell", "fish"))
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CMAKE_PREFIX_PATH": "/else"}
    command = f'{text}\necho $ROCM_PATH; string join : $PATH; env | grep "^CMAKE_PREFIX_PATH="'
    shown = subprocess.check_output([fish, "--no-config", "-c", command], text=True, env=variables)
    root = site.folder / "_rocm_sdk_devel"
    assert shown.splitlines()[0] == str(root)
    assert shown.splitlines()[1].startswith(f"{root}/bin:/usr/bin")
    assert shown.splitlines()[2] == f"CMAKE_PREFIX_PATH={root}/lib/cmake:/else"


def test_the_environment_as_json(site: Site) -> None:
    said = json.loads(site.command("env", "--shell", "json").stdout)
    core = f"{site.folder}/_rocm_sdk_core"
    assert said == {
        "set": {"ROCM_PATH": core},  # not HIP_DEVICE_LIB_PATH: the core has no such folder
        "prepend": {"CMAKE_PREFIX_PATH": f"{core}/lib/cmake", "PATH": f"{core}/bin"},
    }


def test_targets_are_those_of_what_is_installed(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries", "device-gfx942"])
    assert answer(site.command("targets")) == "gfx942"
    site.remove("rocm-sdk-device-gfx942")
    done = site.command("targets")
    assert done.stdout == "gfx941;gfx942;gfx1100;gfx1101\n"
    assert "no package with GPU code is installed" in done.stderr


def test_a_reader_that_goes_away_is_no_traceback(site: Site) -> None:
    command = f"{shlex.quote(sys.executable)} -m rocm_sdk select --json | true"
    done = subprocess.run(
        ["sh", "-c", command], env={**os.environ, "PYTHONPATH": str(site.folder)}, capture_output=True, check=False
    )
    assert b"Traceback" not in done.stderr


def test_the_module_of_a_framework_prepares_the_process(site: Site, tmp_path: Path) -> None:
    package = tmp_path / "frame"
    package.mkdir()
    said = answer(site.command("framework", "init-file", str(package), "--preload", "hiprand,roctx64"))
    assert said == str(package / "_rocm_init.py")
    (package / "__init__.py").write_text(
        "try:\n    from . import _rocm_init\nexcept ModuleNotFoundError:\n    pass\n"
        "else:\n    _rocm_init.initialize()\n    del _rocm_init\n"
    )
    code = f"import sys; sys.path.append({str(tmp_path)!r}); import frame, ctypes; print(ctypes.CDLL(None).hiprand)"
    assert answer(site.python(code, python=interpreter("3.9"))).startswith("<_FuncPtr")


def test_the_module_of_a_framework_names_the_version_that_it_wants(site: Site, tmp_path: Path) -> None:
    place = tmp_path / "init.py"
    answer(site.command("framework", "init-file", str(place)))
    assert "check_version='7.1.0'" in place.read_text()
    assert "'hipsparse'" in place.read_text()  # all libraries, unless some are named
    strange = "7.*'); print('x"
    answer(site.command("framework", "init-file", str(place), "--check-version", strange, "--fail-on-version-mismatch"))
    done = site.python(f"exec(open({str(place)!r}).read()); initialize()")
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].endswith(f"built for version {strange!r}")


def test_the_requirement_of_a_framework(site: Site) -> None:
    assert answer(site.command("framework", "requirement")) == "rocm[libraries]==7.1.0"
    done = site.command("framework", "requirement", "--extra", "libraries", "--extra", "devel")
    assert answer(done) == "rocm[libraries,devel]==7.1.0"


def test_a_module_that_can_not_be_written_is_one_line(site: Site, tmp_path: Path) -> None:
    done = site.command("framework", "init-file", str(tmp_path / "no/such/file.py"))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "cannot be written: No such file or directory" in done.stderr


def script(site: Site, name: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return site.run(site.scripts / name, *words, env=variables)


def test_a_console_script_becomes_the_program_with_its_arguments_and_variables(site: Site) -> None:
    core = site.folder / "_rocm_sdk_core"
    assert answer(script(site, "rocminfo", "-a", "b c")) == f"rocminfo {core}/bin/rocminfo -a b c"
    (site.folder / "_rocm_sdk_core/bin/rocminfo").write_text('#!/bin/sh\necho "$ROCM_PATH"; exit 7\n')
    done = script(site, "rocminfo")
    assert (done.returncode, done.stdout) == (7, f"{core}\n")
    assert script(site, "rocminfo", ROCM_PATH="/mine").stdout == "/mine\n"


def test_a_compiler_without_the_devel_package_is_started_from_its_own(site: Site) -> None:
    assert answer(script(site, "hipcc", "x.hip")) == f"hipcc {site.folder}/_rocm_sdk_core/bin/hipcc x.hip"
    said = script(site, "hipcc", "x.hip", ROCM_SDK_VERBOSE="1").stderr
    assert said == "hipcc: without headers and CMake files (" + pip_hint("'rocm[devel]==7.1.0'") + ")\n"


def test_only_a_program_that_needs_the_whole_sdk_expands_it(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    root = site.folder / "_rocm_sdk_devel"
    answer(script(site, "rocminfo"))
    assert answer(site.command("targets"))
    assert site.python("import rocm_sdk; rocm_sdk.explain()", env={"ROCM_SDK_DISABLE_DETECTION": "0"}).returncode == 0
    assert not root.exists()
    assert answer(script(site, "hipcc")) == f"hipcc {root}/bin/hipcc"


def test_a_program_that_is_gone_is_one_line_and_exit_code_127(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    place = site.folder / "_rocm_sdk_core/bin/rocminfo"
    place.chmod(0o644)
    refused = script(site, "rocminfo")
    assert (refused.returncode, refused.stderr.count("\n")) == (126, 1)
    place.unlink()
    done = script(site, "rocminfo")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == f"rocminfo: {place} is missing: reinstall rocm-sdk-core\n"


def test_a_console_script_of_another_version_is_one_line(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    about = site.folder / "_rocm_sdk_core/_sdk.json"
    about.write_text(about.read_text().replace('"rocminfo"', '"rocm_info"'))
    done = script(site, "rocminfo")
    assert done.returncode == 127
    assert done.stderr == "rocminfo: rocm-sdk-core does not contain this program: install the same version of rocm\n"
