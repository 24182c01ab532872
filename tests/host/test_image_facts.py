"""Facts of images from their files: real Debian systems, and roots that are odd, foreign or hostile."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from axletree.check.image import ImageFacts, read_macros
from axletree.host.image_facts import read_image_facts
from support.debian_root import debian_root, run_in_root
from support.elfs import need
from support.wheels import make_elf

LOADER = "/lib64/ld-linux-x86-64.so.2"
BANNER = b"\0GNU C Library (GNU libc) stable release version 2.17, by Roland McGrath et al.\0"
CONFIG = "# define _GLIBCXX_USE_DUAL_ABI {}\n# define _GLIBCXX_USE_CXX11_ABI 1\n"


def put(root: Path, path: str, content: bytes | str = b"") -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    file.chmod(0o755)


def glibc_root(folder: Path) -> Path:
    """Laid out as CentOS 7 with a devtoolset."""
    tools = "/opt/devtoolset-10/usr"
    put(folder, "/usr/bin/bash", make_elf(interpreter=LOADER, needed=("libc.so.6",)))
    put(folder, "/usr/lib64/libc.so.6", make_elf(soname="libc.so.6", defines=("libc.so.6", "GLIBC_2.17")) + BANNER)
    versions = ("libstdc++.so.6", "GLIBCXX_3.4.9", "GLIBCXX_3.4.19", "GLIBCXX_LDBL_3.4", "CXXABI_1.3.7")
    put(folder, "/usr/lib64/libstdc++.so.6.0.19", make_elf(soname="libstdc++.so.6", defines=versions))
    (folder / "usr/lib64/libstdc++.so.6").symlink_to("libstdc++.so.6.0.19")
    (folder / "lib64").symlink_to("/usr/lib64")
    (folder / "bin").symlink_to("usr/bin")
    put(folder, "/usr/bin/g++")
    put(folder, "/usr/libexec/gcc/x86_64-redhat-linux/4.8.2/cc1plus")
    (folder / "usr/lib/gcc/x86_64-redhat-linux/4.8.2").mkdir(parents=True)
    put(folder, f"{tools}/bin/g++")
    put(folder, f"{tools}/libexec/gcc/x86_64-redhat-linux/10/cc1plus")
    (folder / f"{tools[1:]}/lib/gcc/x86_64-redhat-linux/10").mkdir(parents=True)
    put(folder, f"{tools}/include/c++/10/x86_64-redhat-linux/bits/c++config.h", CONFIG.format(0))
    return folder


@pytest.mark.parametrize(
    ("suite", "facts"),
    [
        ("bullseye", ("2.31", "3.4.28", "1.3.12", 10, True, True)),
        ("trixie", ("2.41", "3.4.33", "1.3.15", 14, True, True)),
    ],
)
def test_debian(suite: str, facts: tuple[object, ...]) -> None:
    root = debian_root(suite, ["g++"])
    found = read_image_facts(root, name=suite)
    assert (found.glibc, found.glibcxx, found.cxxabi, found.gcc, found.cxx11, found.dual) == facts
    assert suite in found.title
    # The system says the same of itself.
    ask = "ldd --version | head -1; echo '#include <string>' | c++ -dM -E -x c++ -"
    first, _, macros = run_in_root(root, "sh", "-c", ask, network=False).stdout.partition("\n")
    assert first.endswith(f" {found.glibc}")
    said = read_macros(macros)
    assert (said.gcc, said.cxx11, said.dual) == (found.gcc, found.cxx11, found.dual)


def test_this_machine() -> None:
    need("ldd", "c++")
    found = read_image_facts(Path("/"), name="here")
    listed = subprocess.run(["ldd", "--version"], capture_output=True, text=True, check=True).stdout
    assert found.glibc == os.confstr("CS_GNU_LIBC_VERSION").split()[-1]  # type: ignore[union-attr]
    assert str(found.glibc) in listed


def test_another_layout_and_the_path_of_its_configuration(tmp_path: Path) -> None:
    root = glibc_root(tmp_path)
    plain = read_image_facts(root, name="centos")
    assert (plain.glibc, plain.glibcxx, plain.cxxabi, plain.gcc) == ("2.17", "3.4.19", "1.3.7", 4)
    assert plain.cxx11 is None
    assert plain.sources["cxx11"] == "no c++config.h of GCC 4 in /usr/include"
    variables = {"PATH": "/opt/devtoolset-10/usr/bin:/usr/bin"}
    found = read_image_facts(root, name="centos", variables=variables)
    assert (found.gcc, found.cxx11, found.dual) == (10, False, False)


def test_musl_is_not_glibc(tmp_path: Path) -> None:
    put(tmp_path, "/bin/busybox", make_elf(interpreter="/lib/ld-musl-x86_64.so.1", needed=("libc.musl-x86_64.so.1",)))
    (tmp_path / "bin/sh").symlink_to("/bin/busybox")
    put(tmp_path, "/etc/os-release", 'ID=alpine\nPRETTY_NAME="Alpine Linux v3.20"\n')
    # gcompat brings a file of that name.
    put(tmp_path, "/lib/libc.so.6", make_elf(soname="libc.so.6") + BANNER)
    found = read_image_facts(tmp_path, name="alpine")
    assert (found.libc, found.glibc, found.title) == ("musl", None, "Alpine Linux v3.20")
    assert found.sources["glibc"] == "the programs of the image need musl"


def test_libraries_of_another_machine_do_not_count(tmp_path: Path) -> None:
    root = glibc_root(tmp_path)
    other = make_elf(bits=32, soname="libc.so.6") + BANNER.replace(b"2.17", b"2.99")
    put(root, "/usr/lib/i386-linux-gnu/libc.so.6", other)
    assert read_image_facts(root, name="multiarch").glibc == "2.17"
    (root / "usr/lib64/libc.so.6").unlink()
    found = read_image_facts(root, name="multiarch")
    assert (found.libc, found.glibc) == (None, None)
    assert found.sources["glibc"].startswith("no libc.so.6 in ")


def test_nothing_is_concluded_from_what_is_not_there(tmp_path: Path) -> None:
    found = read_image_facts(tmp_path, name="empty")
    assert found == ImageFacts(name="empty", sources=found.sources)
    assert set(found.sources) == {"glibc", "glibcxx", "gcc", "cxx11"}


@pytest.mark.parametrize("fault", ["linker script", "no banner", "damaged", "folder", "clang"])
def test_odd_files_are_unknown(tmp_path: Path, fault: str) -> None:
    root = glibc_root(tmp_path)
    library, compiler = root / "usr/lib64/libc.so.6", root / "usr/bin/g++"
    match fault:
        case "linker script":
            library.write_text("GROUP ( /lib64/libc.so.6 )")
        case "no banner":
            library.write_bytes(library.read_bytes().replace(BANNER, b""))
        case "damaged":
            library.write_bytes(library.read_bytes()[:100])
        case "folder":
            library.unlink()
            library.mkdir()
        case _:
            compiler.unlink()
            put(root, "/usr/bin/clang-14")
            compiler.symlink_to("clang-14")
    found = read_image_facts(root, name="odd")
    assert (found.gcc if fault == "clang" else found.glibc) is None
    assert found.glibcxx == "3.4.19"


def test_links_do_not_lead_out_of_the_root(tmp_path: Path) -> None:
    """Read as the image's own, this machine's files would tell of another system."""
    root = tmp_path / "root"
    root.mkdir()
    host = next(path for path in Path("/lib").glob("*-linux-gnu/libc.so.6"))
    up = "../" * 20
    for folder, target in (("lib", f"{up}lib"), ("lib64", str(host.parent)), ("usr", f"{up}usr"), ("bin", f"{up}bin")):
        (root / folder).symlink_to(target)
    (root / "etc").symlink_to("/etc")
    found = read_image_facts(root, name="hostile")
    assert found == ImageFacts(name="hostile", sources=found.sources)
    shutil.rmtree(root)
