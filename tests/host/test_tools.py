"""Programs of the host: found on PATH, asked once, told apart when they change."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from axletree.core.errors import HostError
from axletree.host.tools import Tool, find_programs, find_toolchain, find_tools


class Bin:
    """A folder of made-up programs that count how often they are asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "bin"
        self.asked = folder / "asked"
        self.cache = folder / "cache" / "tools.json"
        self.folder.mkdir()
        self.asked.touch()

    def put(self, name: str, answer: str, *, code: int = 0) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\necho \"{name} $1\" >> {self.asked}\ncat <<'END'\n{answer}\nEND\nexit {code}\n")
        path.chmod(0o755)

    def find(self, *names: str, path: str | None = None) -> dict[str, Tool]:
        return find_tools(names, environ={"PATH": path or f"{self.folder}"}, cache=self.cache)

    def binary(self, name: str) -> Path:
        """A program that is no script and tells its version; what it is does not matter."""
        found = shutil.which("true")
        if found is None or b"true" not in subprocess.run([found, "--version"], capture_output=True, check=True).stdout:
            pytest.skip("needs a `true` that tells its version")
        return Path(shutil.copy(found, self.folder / name))

    def remember(self, version: str) -> None:
        """Replace all answers that are kept, to see who goes by them."""
        kept = json.loads(self.cache.read_bytes())
        self.cache.write_text(json.dumps({stamp: {"version": version} for stamp in kept}))

    @property
    def questions(self) -> list[str]:
        return self.asked.read_text().splitlines()


@pytest.fixture
def programs(tmp_path: Path) -> Bin:
    return Bin(tmp_path)


def test_a_program_is_asked_for_its_version(programs: Bin) -> None:
    programs.put("cmake", "cmake version 4.2.0\n\nCMake suite maintained by others")
    first = programs.find("cmake", "cmake")
    assert first["cmake"].fingerprint == {"version": "cmake version 4.2.0"}
    assert first["cmake"].path == str(programs.folder / "cmake")
    assert programs.questions == ["cmake --version"]


def test_answers_are_kept_until_the_program_changes(programs: Bin) -> None:
    file = programs.binary("cmake")
    first = programs.find("cmake")
    assert "coreutils" in first["cmake"].fingerprint["version"]
    assert programs.find("cmake") == first
    programs.remember("4.2.0")
    assert programs.find("cmake")["cmake"].fingerprint == {"version": "4.2.0"}
    os.utime(file, (1, 1))
    assert programs.find("cmake") == first


@pytest.mark.parametrize("wrapper", ["ccache", "sccache", "distcc"])
def test_answers_of_scripts_and_of_compiler_wrappers_are_not_kept(programs: Bin, wrapper: str) -> None:
    """What they start may be another one the next time, while they are as they were."""
    programs.binary(wrapper)
    (programs.folder / "c++").symlink_to(wrapper)
    programs.put("meson", "")
    (programs.folder / "meson").write_text(f"#!/bin/sh\ncat {programs.folder}/version\n")
    (programs.folder / "version").write_text("1.9.0")
    programs.binary("cmake")
    before = programs.find("c++", "meson", "cmake")
    (programs.folder / "version").write_text("1.9.1")
    programs.remember("kept")
    after = programs.find("c++", "meson", "cmake")
    assert after["c++"] == before["c++"]
    assert after["meson"].fingerprint == {"version": "1.9.1"}
    assert after["cmake"].fingerprint == {"version": "kept"}


def test_a_program_that_tells_no_version_is_known_by_its_content(programs: Bin) -> None:
    programs.put("generate", "made")
    first = programs.find("generate")["generate"].fingerprint
    assert programs.find("generate")["generate"].fingerprint == first
    programs.put("generate", "made otherwise")
    second = programs.find("generate")["generate"].fingerprint
    assert (first["version"], second["version"]) == ("", "")
    assert first["sha256"] != second["sha256"]


def test_another_program_under_the_name_has_another_fingerprint(programs: Bin) -> None:
    programs.put("cmake", "cmake version 4.2.0")
    old = programs.find("cmake")
    programs.put("cmake", "cmake version 4.2.10")
    new = programs.find("cmake")
    assert new["cmake"].fingerprint == {"version": "cmake version 4.2.10"}
    assert old["cmake"].fingerprint != new["cmake"].fingerprint


def test_a_link_that_points_elsewhere_is_another_program(programs: Bin, tmp_path: Path) -> None:
    """As ``update-alternatives`` does it. The path stays the link's: programs look at the name they are called by."""
    programs.put("ninja-a", "1.12.0")
    programs.put("ninja-b", "1.13.2")
    link = programs.folder / "ninja"
    for target, version in (("ninja-a", "1.12.0"), ("ninja-b", "1.13.2"), ("ninja-a", "1.12.0")):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        found = programs.find("ninja")["ninja"]
        assert (found.path, found.fingerprint["version"]) == (str(link), version)


def test_the_fingerprint_holds_no_place(programs: Bin, tmp_path: Path) -> None:
    """The same program in another folder gives the same keys."""
    programs.put("cmake", "cmake version 4.2.0")
    shutil.copytree(programs.folder, tmp_path / "other")
    here, there = programs.find("cmake"), programs.find("cmake", path=str(tmp_path / "other"))
    assert here["cmake"].path != there["cmake"].path
    assert here["cmake"].fingerprint == there["cmake"].fingerprint


def test_all_missing_programs_are_named(programs: Bin) -> None:
    programs.put("cmake", "4.2")
    with pytest.raises(HostError) as caught:
        programs.find("c++", "cmake", "nvcc", "meson")
    assert caught.value.exit_code == 3
    said = [problem.message for problem in caught.value.problems]
    assert said == [f"a stage in the recipe needs {name}, which is not on PATH" for name in ("c++", "nvcc", "meson")]
    hints = [problem.hint or "" for problem in caught.value.problems]
    assert "g++" in hints[0]
    assert "CUDA toolkit" in hints[1]
    assert "meson" in hints[2]


def test_a_program_that_cannot_run_is_named(programs: Bin) -> None:
    (programs.folder / "cmake").write_bytes(b"\x7fELF not really")
    (programs.folder / "cmake").chmod(0o755)
    with pytest.raises(HostError, match=f"cannot run {programs.folder}/cmake"):
        programs.find("cmake")


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ("Welcome\n\nThe tool, release 7", "The tool, release 7"),
        (
            (
                "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2025 NVIDIA Corporation\n"
                "Built on Wed_Aug_20\nCuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0/compiler.1"
            ),
            "Cuda compilation tools, release 13.0, V13.0.88",
        ),
        ("no number here", ""),
        ("", ""),
    ],
)
def test_the_line_that_tells_the_version(programs: Bin, answer: str, version: str) -> None:
    programs.put("tool", answer, code=1)
    fingerprint = programs.find("tool")["tool"].fingerprint
    assert fingerprint["version"] == version
    assert ("sha256" in fingerprint) == (not version)


@pytest.mark.parametrize("content", [b"", b"no json", b"[]", b'{"a": 1}'])
def test_a_damaged_cache_is_made_anew(programs: Bin, content: bytes) -> None:
    programs.binary("cmake")
    programs.cache.parent.mkdir()
    programs.cache.write_bytes(content)
    found = programs.find("cmake")
    assert "coreutils" in found["cmake"].fingerprint["version"]
    programs.remember("4.2")
    assert programs.find("cmake")["cmake"].fingerprint == {"version": "4.2"}


def test_a_real_compiler_tells_target_library_and_linker(tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    tool = find_tools(["c++"], environ=os.environ, cache=tmp_path / "tools.json")["c++"]
    assert set(tool.fingerprint) >= {"version", "target", "libc"}
    assert all(tool.fingerprint.values())
    assert "/" not in tool.fingerprint["target"]
    if shutil.which("ld") is not None:
        assert "ld" in tool.fingerprint["linker"].lower()


def test_another_linker_changes_a_compilers_fingerprint(programs: Bin) -> None:
    programs.put("g++", "g++ 14.2")
    programs.put("ld", "GNU ld 2.44")
    programs.find("g++")
    asked = len(programs.questions)
    programs.put("ld", "GNU ld 2.45.1")
    programs.find("g++")
    assert len(programs.questions) > asked


def test_compilers_of_the_system_are_found_where_there_are_some(programs: Bin) -> None:
    """A pure-Python project must build on a machine without any."""
    folders = [str(programs.folder)]
    assert find_toolchain(cache=programs.cache, folders=folders) == {}
    programs.put("cc", "cc 14.2")
    found = find_toolchain(cache=programs.cache, folders=folders)
    assert {name: tool.fingerprint["version"] for name, tool in found.items()} == {"cc": "cc 14.2"}


def test_a_link_to_a_compiler_cache_is_no_compiler(programs: Bin, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    programs.put("ccache", "4.12")
    for name in ("cc", "clang"):
        (programs.folder / name).symlink_to("ccache")
    (other / "cc").symlink_to("/bin/sh")
    path = f"{programs.folder}:{other}"
    assert find_programs(["cc", "clang"], path, but_for=frozenset({"ccache"})) == {"cc": str(other / "cc")}
    assert set(find_programs(["cc", "clang", "c++"], path)) == {"cc", "clang"}


def test_a_link_of_rustup_stands_for_the_program_of_its_toolchain(programs: Bin, tmp_path: Path) -> None:
    programs.put("real", "rustc 1.95.0 (59807616e 2026-04-14)")
    other = tmp_path / "other"
    shutil.copytree(programs.folder, other)
    (other / "real").write_text((other / "real").read_text().replace("1.95.0", "1.96.0"))
    (programs.folder / "rustc").symlink_to("rustup")
    answers = {"rustc 1.95.0 (59807616e 2026-04-14)": programs.folder, "rustc 1.96.0 (59807616e 2026-04-14)": other}
    for version, folder in answers.items():  # the default toolchain changes, and no file that is on PATH
        programs.put("rustup", str(folder / "real"))
        found = programs.find("rustc")["rustc"]
        assert (found.path, found.fingerprint) == (str(folder / "real"), {"version": version})
    assert "rustup which" in programs.questions


def test_a_rustup_without_a_toolchain_leaves_its_link(programs: Bin) -> None:
    programs.put("rustup", "error: no default toolchain is configured", code=1)
    (programs.folder / "rustc").symlink_to("rustup")
    assert programs.find("rustc")["rustc"].path == str(programs.folder / "rustc")
