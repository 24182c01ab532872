"""A channel made of Debian's packages: its compiler, its C library as a sysroot, and libraries.

The files are those that ``dpkg`` has installed on this machine, at the places and under the names that conda-forge's
packages have them; so a build in such environments finds headers and libraries nowhere else. Programs still load the
libraries that they need themselves (``libisl``, ``libcurl``) from the system.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from axletree.package.conda.interpreter import interpreter_packages
from axletree.package.conda.model import PLACEHOLDER, CondaFile, RunExports
from support.conda import put, text
from support.conda_world import TRIPLET, package, reindex
from support.inputs import wheel
from support.tiny import pythons

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

DEBIAN = "x86_64-linux-gnu"
SYSROOT = f"{TRIPLET}/sysroot"
CMAKE = "3.31.10"
"""Of a wheel: that of Debian 12 is older than PyTorch's recipe wants."""
_OMITTED = re.compile(r"share/(?!(?:cmake|eigen3|pkgconfig)\b)|share/cmake-[0-9.]+/Help/|share/cmake/deb|lib/python")
_TOOLS = ("addr2line", "ar", "as", "ld", "nm", "objcopy", "objdump", "ranlib", "readelf", "strip")
_ACTIVATE = f"""\
# As conda-forge's: what is linked against is the host environment of a build, else the environment that is active.
if [ "${{{{CONDA_BUILD:-0}}}}" = 1 ]; then
  used=$PREFIX
  maps=" -ffile-prefix-map=$PREFIX=/usr/local/src/conda-prefix"
  export CMAKE_ARGS="\\
-DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \\
-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH=$PREFIX;$CONDA_PREFIX/{SYSROOT} \\
-DCMAKE_INSTALL_PREFIX=$PREFIX -DCMAKE_INSTALL_LIBDIR=lib"
else
  used=$CONDA_PREFIX maps=
fi
export CONDA_BUILD_SYSROOT="$CONDA_PREFIX/{SYSROOT}"
export {{variable}}="$CONDA_PREFIX/bin/{TRIPLET}-{{program}}"
export {{flags}}="-ftree-vectorize -fPIC -fno-plt -O2 -pipe -isystem $used/include$maps"
export LDFLAGS="-Wl,-O2 -Wl,--as-needed -Wl,-rpath,$used/lib -Wl,-rpath-link,$used/lib -L$used/lib"
unset used maps
"""
_WRAPPER = f"""\
#!/bin/bash
# Debian's compiler does not know where its C library is; conda-forge's is built for it.
here=$(dirname "$(readlink -f "$0")")
exec "$here/{DEBIAN}-{{program}}-{{major}}" --sysroot="${{{{here%/bin}}}}/{SYSROOT}" "$@"
"""


class Library(NamedTuple):
    """A conda package of Debian's packages."""

    name: str
    debian: tuple[str, ...]
    """The first one gives the version."""
    pin: int = 0
    """How many parts of the version its run export keeps; 0: it has none."""
    depends: tuple[str, ...] = ()


LIBRARIES = (
    Library("libgcc", ("libgcc-s1", "libatomic1"), depends=("_openmp_mutex >=4.5",)),
    Library("libstdcxx", ("libstdc++6",), depends=("libgcc",)),
    Library("libgfortran5", ("libgfortran5", "libquadmath0")),
    Library("libblas", ("libblas3", "libblas-dev"), pin=1, depends=("libgfortran5",)),
    Library("liblapack", ("liblapack3", "liblapack-dev"), pin=1, depends=("libblas", "libgfortran5")),
    Library(
        "libprotobuf",
        ("libprotobuf-dev", "libprotobuf32", "libprotobuf-lite32", "libprotoc32", "protobuf-compiler"),
        pin=2,
        depends=("libstdcxx",),
    ),
    Library("flatbuffers", ("libflatbuffers-dev", "libflatbuffers2", "flatbuffers-compiler"), pin=3),
    Library("cpuinfo", ("libcpuinfo-dev", "libcpuinfo0"), pin=1),
    Library("sleef", ("libsleef-dev", "libsleef3"), pin=1, depends=("libgcc",)),
    Library("fmt", ("libfmt-dev", "libfmt9"), pin=1, depends=("libstdcxx",)),
    Library("pthreadpool", ("libpthreadpool-dev", "libpthreadpool0"), pin=1),
    Library("libonnx", ("libonnx-dev", "libonnx1"), pin=2, depends=("libprotobuf",)),
    Library("cpp-httplib", ("libcpp-httplib-dev", "libcpp-httplib0.11"), pin=2, depends=("libstdcxx",)),
    Library("nlohmann_json", ("nlohmann-json3-dev",)),
    Library("eigen", ("libeigen3-dev",)),
    Library("pybind11", ("pybind11-dev",)),
    Library("fp16", ("libfp16-dev",)),
    Library("fxdiv", ("libfxdiv-dev",)),
    Library("psimd", ("libpsimd-dev",)),
    Library("ninja", ("ninja-build",)),
)


def make_debian_world(folder: Path) -> None:
    """Write the channel: the compiler, the libraries, and a Python 3.11 of this machine."""
    if shutil.which("dpkg-query") is None or os.uname().machine != "x86_64":
        pytest.skip("needs Debian on x86-64")
    put_compilers(folder)
    for library in LIBRARIES:
        version = version_of(library.debian[0])
        exports = RunExports(weak=(pinned(library.name, version, library.pin),)) if library.pin else None
        files = debian_files(library.debian, flat, edits=_EDITS.get(library.name))
        put_files(folder, library.name, version, files, depends=library.depends, run_exports=exports)
    put_files(folder, "cmake", CMAKE, cmake_files())
    put_files(folder, "_openmp_mutex", "4.5", debian_files(("libgomp1",), flat))
    interpreter = pythons().get("3.11")
    if interpreter is None:
        pytest.skip("needs Python 3.11")
    for one, content in interpreter_packages(
        program=interpreter.path, version=interpreter.version, free_threaded=False, subdir="linux-64"
    ):
        put(folder, one, content)
    reindex(folder)


def put_compilers(folder: Path) -> None:
    """GCC, its tools, and the C library, in the packages that conda-forge has them in."""
    version = version_of("g++-12")
    major = version.partition(".")[0]
    glibc = ".".join(version_of("libc6-dev").split(".")[:2])
    c_library = debian_files(("libc6-dev", "linux-libc-dev", "libcrypt-dev", "libc6", "libcrypt1"), in_sysroot)
    c_library += [CondaFile(path=f"{SYSROOT}/{name}", link=f"usr/{name}") for name in ("lib", "lib64")]
    exports = RunExports(strong=(f"__glibc >={glibc},<3.0.a0",))
    put_files(folder, "sysroot_linux-64", glibc, c_library, run_exports=exports)
    binutils = debian_files(("binutils-x86-64-linux-gnu",), plain)
    binutils += [CondaFile(path=f"{DEBIAN}/bin/{name}", link=f"../../bin/{DEBIAN}-{name}") for name in ("as", "ld")]
    binutils += [CondaFile(path=f"bin/{TRIPLET}-{name}", link=f"{DEBIAN}-{name}") for name in _TOOLS]
    put_files(folder, "binutils_impl_linux-64", version_of("binutils"), binutils)
    gcc = debian_files((f"gcc-{major}", f"cpp-{major}", f"libgcc-{major}-dev", "libgcc-s1", "libgomp1"), plain)
    gxx = debian_files((f"g++-{major}", f"libstdc++-{major}-dev", "libstdc++6"), plain)
    needs = ("binutils_impl_linux-64", f"sysroot_linux-64 {glibc}")
    put_files(folder, "gcc_impl_linux-64", version, [*gcc, _wrapper("cc", "gcc", major)], depends=needs)
    put_files(
        folder,
        "gxx_impl_linux-64",
        version,
        [*gxx, _wrapper("c++", "g++", major)],
        depends=(f"gcc_impl_linux-64 {version}",),
    )
    for name, variable, flags, program, more, exported in (
        ("gcc", "CC", "CFLAGS", "cc", (), ("libgcc",)),
        ("gxx", "CXX", "CXXFLAGS", "c++", (f"gcc_linux-64 {version}",), ("libgcc", "libstdcxx")),
    ):
        script = _ACTIVATE.format(variable=variable, flags=flags, program=program).encode()
        put_files(
            folder,
            f"{name}_linux-64",
            version,
            [text(f"etc/conda/activate.d/activate-{name}_linux-64.sh", script)],
            depends=(f"{name}_impl_linux-64 {version}", *more),
            run_exports=RunExports(strong=tuple(f"{each} >={major}" for each in exported)),
        )


def _wrapper(name: str, program: str, major: str) -> CondaFile:
    return text(f"bin/{TRIPLET}-{name}", _WRAPPER.format(program=program, major=major).encode(), executable=True)


def put_files(folder: Path, name: str, version: str, files: Sequence[CondaFile], **fields: object) -> None:
    """Write a package, which holds the placeholder where its CMake files do."""
    put(folder, package(name, version, placeholder=PLACEHOLDER, **fields), files, level=3)


def cmake_files() -> list[CondaFile]:
    """CMake as its wheel has it."""
    with zipfile.ZipFile(wheel(f"cmake=={CMAKE}")) as archive:
        folder = re.compile(r"cmake/data/((?:bin|share/cmake-[0-9.]+)/.*[^/])")
        found = [(match[1], info) for info in archive.infolist() if (match := folder.fullmatch(info.filename))]
        return [
            CondaFile(path=path, data=archive.read(info), executable=path.startswith("bin/"))
            for path, info in found
            if not _OMITTED.match(path)
        ]


def pinned(name: str, version: str, parts: int) -> str:
    """The run export of a package that keeps the first parts of its version."""
    numbers = [*version.split("."), "0", "0"][:parts]
    upper = ".".join([*numbers[:-1], str(int(numbers[-1]) + 1)])
    return f"{name} >={version},<{upper}.0a0"


def version_of(debian: str) -> str:
    """Upstream's version of an installed package of Debian."""
    command = ["dpkg-query", "-W", "-f", "${Version}", debian]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f"needs Debian's package {debian}: scripts/setup pytorch installs it where apt and root exist")
    number = re.search(r"^(?:\d+:)?(\d+(?:\.\d+)*)", found.stdout)
    assert number is not None, found.stdout
    return number[1]


def plain(path: str) -> str:
    """Debian's own layout, below the prefix."""
    return path.removeprefix("usr/")


def in_sysroot(path: str) -> str:
    """The same, as the root of a system."""
    return f"{SYSROOT}/{path}"


def flat(path: str) -> str:
    """``lib`` and ``include`` without the folder of the platform; the implementations of BLAS are no alternatives."""
    path = path.removeprefix("usr/")
    for old in (f"lib/{DEBIAN}/blas/", f"lib/{DEBIAN}/lapack/", f"lib/{DEBIAN}/"):
        path = f"lib/{path.removeprefix(old)}" if path.startswith(old) else path
    return path.replace(f"include/{DEBIAN}/", "include/", 1)


def debian_files(
    packages: Sequence[str], place: Callable[[str], str], *, edits: Mapping[str, bytes] | None = None
) -> list[CondaFile]:
    """The files of installed packages of Debian; links to what none of them has are left out.

    Args:
        packages: their names.
        place: path below the root -> path below the prefix.
        edits: path below the prefix -> what is added to that file.
    """
    for name in packages:
        version_of(name)
    listed = subprocess.run(["dpkg", "-L", *packages], capture_output=True, text=True, check=True)
    places = {path: place(path) for path in sorted({*_paths(listed.stdout)})}
    places = {path: to for path, to in places.items() if not _OMITTED.match(to)}
    found: list[CondaFile] = []
    for path, to in places.items():
        source = Path("/", path)
        if not source.is_symlink():
            data = source.read_bytes()
            data = _moved(data) if place is flat and path.endswith((".cmake", ".pc")) else data
            executable = bool(source.stat().st_mode & 0o100)
            found.append(CondaFile(path=to, data=data + (edits or {}).get(to, b""), executable=executable))
            continue
        target = _below_usr(posixpath.normpath(str(source.parent / source.readlink()))[1:])
        if target in places:
            link = posixpath.relpath(places[target], posixpath.dirname(to) or ".")
            found.append(CondaFile(path=to, link=link))
    return found


def _paths(listed: str) -> Iterator[str]:
    for line in listed.splitlines():
        if line.startswith("/") and (Path(line).is_symlink() or Path(line).is_file()):
            yield _below_usr(line[1:])


def _below_usr(path: str) -> str:
    """The path in a system whose ``/lib`` is a link to ``/usr/lib``."""
    return f"usr/{path}" if path.startswith(("lib/", "lib64/", "bin/", "sbin/")) else path


def _moved(data: bytes) -> bytes:
    """A CMake or pkg-config file of Debian's layout, for the flat one."""
    content = data.decode()
    content = content.replace(f"lib/{DEBIAN}", "lib").replace(f"include/{DEBIAN}", "include")
    content = re.sub(r"/usr(?=[/\"\n])", PLACEHOLDER, content)
    root = f'set(_IMPORT_PREFIX "{PLACEHOLDER}")\n'
    content = content.replace('if(_IMPORT_PREFIX STREQUAL "/")', f'{root}if(_IMPORT_PREFIX STREQUAL "/")')
    content = re.sub(
        r"get_filename_component\(PACKAGE_PREFIX_DIR .* ABSOLUTE\)", f'set(PACKAGE_PREFIX_DIR "{PLACEHOLDER}")', content
    )
    return content.encode()


_NEWER = b"".join(
    b"static inline bool cpuinfo_has_x86_amx_%s(void) { return false; }\n" % name
    for name in (b"tile", b"int8", b"fp16")
)
_EDITS = {"cpuinfo": {"include/cpuinfo.h": b"\n/* Newer than Debian 12, and asked for by PyTorch. */\n" + _NEWER}}
