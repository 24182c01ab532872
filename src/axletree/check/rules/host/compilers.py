"""Rules about compilers and the tools of builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.backends.bounds import numbers
from axletree.check.engine import Found, Rule, fires, silent
from axletree.check.rules.host.sample import FOR_CUDA, GCC, HEALTHY, NVCC, RUNTIME, WITH_CUDA, on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.host.examined import Examined
    from axletree.check.host.toolchain import BuildTool, Compiler

_FIFO = (4, 4)


def cxx_compilers(facts: Examined) -> tuple[Compiler, ...]:
    """Compilers of C++ for the host, in the order in which builds find them."""
    return tuple(each for each in facts.host.toolchain.compilers or () if each.language == "c++")


def build_tool(facts: Examined, name: str) -> BuildTool | None:
    """A build tool, if it is there."""
    return next((tool for tool in facts.host.toolchain.build_tools or () if tool.name == name), None)


def _no_compiler(facts: Examined) -> Iterator[Found]:
    if facts.host.toolchain.compilers is not None and not cxx_compilers(facts):
        yield Found(
            "PATH", "no C++ compiler found: PATH contains no c++, g++ or clang++, and CXX does not name a compiler"
        )


def _broken(facts: Examined) -> Iterator[Found]:
    for each in facts.host.toolchain.compilers or ():
        if each.works is False:
            what = "compile" if each.kind in ("nvcc", "hipcc") else "compile and link"
            message = f"{each.name} {each.version or ''} cannot {what} a small program".replace("  ", " ")
            yield Found(each.path, message, evidence=_source(each, "works"))


def _source(part: Compiler, field: str) -> tuple[str, ...]:
    return (part.sources[field],) if part.sources.get(field) else ()


def _too_old(facts: Examined) -> Iterator[Found]:
    bounds = facts.bounds.of_torch(facts.wish.torch) if facts.wish.torch else None
    for each in cxx_compilers(facts)[:1]:
        least = bounds.gcc if bounds is not None else ""
        if each.kind == "gcc" and least and each.version and numbers(each.version) < numbers(least):
            message = f"GCC {each.version} is too old: PyTorch {facts.wish.torch} needs {least} or later"
            yield Found(each.path, message)
        elif each.standards is not None and "c++17" not in each.standards:
            message = f"{each.name} {each.version} does not support C++17, which PyTorch and its extensions use"
            yield Found(each.path, message)


def _host_compiler(facts: Examined) -> Iterator[Found]:
    for each in facts.host.toolchain.compilers or ():
        if each.kind != "nvcc" or not each.host_version or not each.version:
            continue
        bound = _bound(facts, each)
        major = numbers(each.host_version)[0]
        if bound is not None and not bound[0] <= major < bound[1]:
            name = "Clang" if each.host_kind == "clang" else "GCC"
            release = ".".join(each.version.split(".")[:2])
            message = (
                f"nvcc {release} supports {name} {bound[0]} to {bound[1] - 1} as the host compiler, but "
                f"{each.host_compiler} is version {each.host_version}"
            )
            yield Found(each.path, message, fix=_other_host(name, bound[1] - 1))


def _bound(facts: Examined, nvcc: Compiler) -> tuple[int, int] | None:
    """What an nvcc takes of the compiler that it has: by its own header where that was read, else by the table."""
    known = facts.bounds.of_cuda(nvcc.version or "")
    clang = nvcc.host_kind == "clang"
    listed = (known.clang if clang else known.gcc) if known is not None else None
    own = next((each for each in facts.host.cuda.toolkits or () if each.nvcc == nvcc.path), None)
    most = None if own is None else own.clang_most if clang else own.gcc_most
    if most is None:
        return listed
    return (listed[0] if listed is not None else 0, most + 1)


def _other_host(name: str, most: int) -> str:
    program, package = ("g++", f"g++-{most}") if name == "GCC" else ("clang++", f"clang-{most}")
    return (
        f"install an older version and select it for nvcc:\n$ apt-get install {package}\n"
        f"$ export CUDAHOSTCXX=/usr/bin/{program}-{most} NVCC_PREPEND_FLAGS='-ccbin /usr/bin/{program}-{most}'"
    )


def _tool_missing(facts: Examined) -> Iterator[Found]:
    for name in facts.wish.missing:
        yield Found("PATH", f"{name} is not on PATH, but a stage needs it")


def _cmake(facts: Examined) -> Iterator[Found]:
    bounds = facts.bounds.of_torch(facts.wish.torch) if facts.wish.torch else None
    cmake = build_tool(facts, "cmake")
    if bounds is None or cmake is None or cmake.version is None or facts.wish.own_cmake:
        return
    least, below = bounds.cmake
    if numbers(cmake.version) < numbers(least):
        message = f"CMake {cmake.version} is too old: PyTorch {facts.wish.torch} needs {least} or later"
        fix = f"install it in the build's environment, which comes first on PATH:\n$ pip install 'cmake>={least}'"
        yield Found(cmake.path, message, fix=fix)
    elif below and numbers(cmake.version) >= numbers(below):
        message = (
            f"CMake {cmake.version} is too new: parts of PyTorch {facts.wish.torch} use policies that CMake {below} "
            "removed"
        )
        fix = f"$ pip install 'cmake<{below}'\nor\n$ export CMAKE_POLICY_VERSION_MINIMUM=3.5"
        yield Found(cmake.path, message, fix=fix)


def _cmake_trap(facts: Examined) -> Iterator[Found]:
    cmake = build_tool(facts, "cmake")
    if cmake is not None and cmake.version == "3.23.0" and facts.host.cuda.toolkits:
        message = "CMake 3.23.0 loses an internal CUDA variable in projects that also use FindCUDA, such as PyTorch"
        yield Found(cmake.path, message)


def _jobserver(facts: Examined) -> Iterator[Found]:
    make, ninja = build_tool(facts, "make"), build_tool(facts, "ninja")
    if make is not None and make.jobserver_fifo is False and make.version and numbers(make.version) < _FIFO:
        message = f"make {make.version} fails if the job server is a FIFO; it supports only pipes"
        yield Found(make.path, message, fix="install make 4.4 or later, or run make and ninja one after the other")
    if ninja is not None and ninja.jobserver_fifo is False and ninja.jobserver_pipe is False:
        message = f"ninja {ninja.version} does not support job servers: concurrent builds start too many compilers"
        yield Found(ninja.path, message, fix="$ pip install 'ninja>=1.13'")


def _old_runtime(facts: Examined) -> Iterator[Found]:
    loaded = facts.host.toolchain.runtime
    for each in cxx_compilers(facts)[:1]:
        linked = each.runtime
        if linked is None or loaded is None or not linked.glibcxx or not loaded.glibcxx:
            continue
        if numbers(loaded.glibcxx) < numbers(linked.glibcxx):
            message = (
                f"{each.name} {each.version} links a libstdc++ with GLIBCXX_{linked.glibcxx}, but the loader uses "
                f"{loaded.path}, which provides versions only up to GLIBCXX_{loaded.glibcxx}, so programs built on "
                "this machine may not start on it"
            )
            yield Found(loaded.path, message, evidence=(f"linked: {linked.path}",))


def _no_openmp(facts: Examined) -> Iterator[Found]:
    for each in cxx_compilers(facts)[:1]:
        if each.openmp is False and each.works is not False:
            message = f"{each.name} {each.version} cannot link with -fopenmp: ATen would run on one core"
            yield Found(each.path, message, evidence=_source(each, "openmp"))


def _changed(compiler: Compiler, **fields: object) -> Compiler:
    return msgspec.structs.replace(compiler, **fields)


def _with_tool(name: str, **fields: object) -> dict[str, object]:
    tools = HEALTHY.toolchain.build_tools or ()
    return {
        "build_tools": tuple(msgspec.structs.replace(tool, **fields) if tool.name == name else tool for tool in tools)
    }


_TORCH = msgspec.structs.replace(FOR_CUDA, torch="2.13.0")
_OLD_TORCH = msgspec.structs.replace(FOR_CUDA, torch="2.5.1")

COMPILER_RULES: tuple[Rule[Examined], ...] = (
    Rule(
        id="host/compiler-missing",
        severity="error",
        title="No C++ compiler found",
        references=('PyTorch, README, "From Source"',),
        why="Extension modules and libraries cannot be compiled.",
        fix="$ apt-get install g++\nor, without root, in a conda environment:\n$ conda install -c conda-forge gxx",
        check=_no_compiler,
        cases=lambda: (
            fires("none", on(toolchain={"compilers": ()})),
            silent("g++", on()),
            silent("compilers not examined", on(toolchain={"compilers": None})),
        ),
    ),
    Rule(
        id="host/compiler-broken",
        severity="error",
        title="A compiler does not work",
        references=("GCC manual",),
        why="Every build stops at its first file or at CMake's compiler check.",
        fix=(
            "install the C library headers and the linker, which are usually what is missing:\n$ apt-get "
            "install libc6-dev binutils\nto see the error itself, compile a small program:\n$ echo 'int main() "
            "{}' | c++ -x c++ - -o /tmp/a.out"
        ),
        check=_broken,
        cases=lambda: (
            fires("g++ without the C library's headers", on(toolchain={"compilers": (_changed(GCC, works=False),)})),
            silent("a working g++", on()),
        ),
    ),
    Rule(
        id="host/compiler-too-old",
        severity="error",
        title="The C++ compiler is too old",
        references=("pytorch/pytorch: CMakeLists.txt, CMAKE_CXX_STANDARD and GCC_VERSION checks",),
        why="The source uses a newer C++ standard, or its CMake files reject the compiler.",
        fix="$ apt-get install g++-12\n$ export CC=gcc-12 CXX=g++-12",
        check=_too_old,
        cases=lambda: (
            fires(
                "GCC 8 for PyTorch 2.13", on(wish=_TORCH, toolchain={"compilers": (_changed(GCC, version="8.5.0"),)})
            ),
            fires(
                "a compiler without C++17 support",
                on(toolchain={"compilers": (_changed(GCC, version="4.8.5", standards=()),)}),
            ),
            silent("GCC 13", on(wish=_TORCH)),
        ),
    ),
    Rule(
        id="host/nvcc-host-compiler",
        severity="error",
        title="nvcc does not support the host compiler",
        references=(
            "pytorch/pytorch#136556",
            'NVIDIA, CUDA Installation Guide for Linux, "Host Compiler Support Policy"',
        ),
        why="nvcc passes host code to GCC or Clang and stops with `unsupported GNU version` if it was not tested "
        "with that version; overriding the check leads to errors in the compiler's headers.",
        fix="select an older host compiler for nvcc",
        check=_host_compiler,
        cases=lambda: (
            fires(
                "nvcc 12.2 with GCC 14",
                on(
                    WITH_CUDA,
                    toolchain={"compilers": (GCC, _changed(NVCC, version="12.2.140", host_version="14.2.0"))},
                    cuda={"toolkits": ()},
                ),
            ),
            fires(
                "a release that is not in the table but states its limit in a header",
                on(WITH_CUDA, toolchain={"compilers": (GCC, _changed(NVCC, version="13.9.1", host_version="16.1.0"))}),
            ),
            silent("nvcc 13.0 with GCC 13", on(WITH_CUDA)),
        ),
    ),
    Rule(
        id="host/tool-missing",
        severity="error",
        title="A program that the build needs is missing",
        references=("recipe key `tools`",),
        why="The stage that needs the program cannot start.",
        fix="install the program, or add its folder to PATH",
        check=_tool_missing,
        cases=lambda: (
            fires("flatc, which a stage needs", on(wish=msgspec.structs.replace(FOR_CUDA, missing=("flatc",)))),
            silent("all programs present", on(wish=FOR_CUDA)),
        ),
    ),
    Rule(
        id="host/cmake-version",
        severity="warning",
        title="PyTorch's source does not support this CMake version",
        references=("pytorch/pytorch#150149", "pytorch/pytorch#153153"),
        why="Configuration stops at the first line of a CMakeLists.txt.",
        fix="install a supported CMake version in the build's environment",
        check=_cmake,
        cases=lambda: (
            fires("CMake 3.25 for PyTorch 2.13", on(wish=_TORCH, toolchain=_with_tool("cmake", version="3.25.1"))),
            fires("CMake 4.0 for PyTorch 2.5", on(wish=_OLD_TORCH, toolchain=_with_tool("cmake", version="4.0.2"))),
            silent("CMake 3.31 for PyTorch 2.13", on(wish=_TORCH)),
            silent(
                "an environment with its own CMake",
                on(
                    wish=msgspec.structs.replace(_TORCH, own_cmake=True),
                    toolchain=_with_tool("cmake", version="3.25.1"),
                ),
            ),
            silent("a build without PyTorch", on(toolchain=_with_tool("cmake", version="3.25.1"))),
        ),
    ),
    Rule(
        id="host/cmake-3-23-0",
        severity="warning",
        title="CMake 3.23.0 cannot configure CUDA projects that use FindCUDA",
        references=("pytorch/pytorch#74985",),
        why="Configuration stops because an internal variable, CMAKE_CUDA_COMPILE_WHOLE_COMPILATION, is missing.",
        fix=(
            "install a different CMake release in the build's environment, then delete the build folder:\n$ "
            "pip install 'cmake!=3.23.0'"
        ),
        check=_cmake_trap,
        cases=lambda: (
            fires("3.23.0", on(WITH_CUDA, toolchain=_with_tool("cmake", version="3.23.0"))),
            silent("3.23.1", on(WITH_CUDA, toolchain=_with_tool("cmake", version="3.23.1"))),
        ),
    ),
    Rule(
        id="host/jobserver",
        severity="info",
        title="make or ninja does not use the shared job server",
        references=('GNU make manual, "POSIX Jobserver Interaction"',),
        why="Concurrent builds share one pool of job tokens; a tool that does not use the pool starts one process "
        "for each core.",
        fix="$ pip install 'ninja>=1.13'\nand install make 4.4 or later",
        check=_jobserver,
        cases=lambda: (
            fires("make 4.3", on(toolchain=_with_tool("make", version="4.3", jobserver_fifo=False))),
            fires(
                "ninja 1.11",
                on(toolchain=_with_tool("ninja", version="1.11.1", jobserver_fifo=False, jobserver_pipe=False)),
            ),
            silent("make 4.4 and ninja 1.13", on()),
        ),
    ),
    Rule(
        id="host/libstdcxx-older",
        severity="warning",
        title="The loader uses an older libstdc++ than the compiler",
        references=('libstdc++ manual, "ABI Policy and Guidelines"', "ld.so(8)"),
        why="Programs built here fail with `GLIBCXX_... not found`, both in tests and in build steps that run "
        "them. Usually LD_LIBRARY_PATH or a conda environment puts an old library first.",
        fix=(
            "remove the folder of the older libstdc++ from LD_LIBRARY_PATH, or update it in the "
            "environment:\n$ conda install -c conda-forge libstdcxx-ng"
        ),
        check=_old_runtime,
        cases=lambda: (
            fires(
                "an old library in a conda environment",
                on(toolchain={"runtime": msgspec.structs.replace(RUNTIME, glibcxx="3.4.26")}),
            ),
            silent("the same library", on()),
        ),
    ),
    Rule(
        id="host/openmp-missing",
        severity="warning",
        title="The compiler does not support OpenMP",
        references=("GCC manual, libgomp", "CMake, FindOpenMP"),
        why="Configuration continues without OpenMP, and the resulting program uses only one core.",
        fix="$ apt-get install libgomp1\nor, for Clang:\n$ apt-get install libomp-dev",
        check=_no_openmp,
        cases=lambda: (
            fires("clang without libomp", on(toolchain={"compilers": (_changed(GCC, kind="clang", openmp=False),)})),
            silent("g++ with libgomp", on()),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: compilers and build tools."""
