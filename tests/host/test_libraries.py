"""Libraries of this machine are found as the loader finds them, and traced to their package."""

import subprocess
from pathlib import Path

import pytest

from axletree.binary.elf.facts import read_elf
from axletree.host.archive import map_file
from axletree.host.libraries import find_library, package_of, search_folders


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "lib.c").write_text("int one(void) { return 1; }\n")
    (folder / "main.c").write_text("int one(void); int main(void) { return one() - 1; }\n")
    (folder / "lib").mkdir()
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wl,-soname,libone.so.1", "lib.c", "-o", "lib/libone.so.1"], cwd=folder, check=True
    )
    subprocess.run(["cc", "main.c", "lib/libone.so.1", "-o", "main"], cwd=folder, check=True)
    return folder / "main"


def test_given_folders_come_before_the_variable_and_the_system(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{program.parent / 'lib'}")
    folders = search_folders([Path("/given")])
    assert folders[:3] == (Path("/given"), Path("/nowhere"), program.parent / "lib")
    assert len(set(folders)) == len(folders)
    facts = read_elf(map_file(program))
    found = find_library("libone.so.1", folders, like=facts)
    assert found is not None
    assert found.path == program.parent / "lib/libone.so.1"
    assert found.facts.soname == "libone.so.1"
    assert package_of(found.path) is None


def test_the_system_library_is_the_one_that_ldd_names(program: Path) -> None:
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
    named = next(line.split()[2] for line in done.stdout.splitlines() if "libc.so.6 =>" in line)
    found = find_library("libc.so.6", search_folders(), like=read_elf(map_file(program)))
    assert found is not None
    assert found.path.resolve() == Path(named).resolve()


def test_other_processors_scripts_and_paths_are_passed_over(program: Path, tmp_path: Path) -> None:
    facts = read_elf(map_file(program))
    (tmp_path / "libone.so.1").write_text("/* GNU ld script */ INPUT(libone.so)\n")
    assert find_library("libone.so.1", [tmp_path], like=facts) is None
    other = read_elf(map_file(program)).__class__(bits=64, order="little", kind="shared", machine=183)
    assert find_library("libone.so.1", [program.parent / "lib"], like=other) is None
    assert find_library("../lib/libone.so.1", [program.parent / "lib"], like=facts) is None


def test_a_library_is_traced_to_its_debian_package(program: Path) -> None:
    found = find_library("libc.so.6", search_folders(), like=read_elf(map_file(program)))
    assert found is not None
    package = package_of(found.path)
    if package is None:
        pytest.skip("no dpkg-query on this machine, or libc belongs to no package of it")
    assert package.purl.startswith(f"pkg:deb/debian/{package.name}@")
    query = ["dpkg-query", "--show", "--showformat=${Version}", package.name]
    assert subprocess.run(query, capture_output=True, text=True, check=True).stdout == package.version
