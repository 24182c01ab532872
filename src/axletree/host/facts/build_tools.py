"""cmake, ninja, make, linkers, binutils: versions, and which are clients of a job server, found out by running one."""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
import termios
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.check.host.toolchain import BuildTool, Toolchain
from axletree.host.facts.access import SECONDS, existing, find_tool
from axletree.host.facts.compilers import find_compilers
from axletree.host.facts.elf import cxx_runtime
from axletree.host.facts.gpu_compilers import find_gpu_compilers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.check.host.part import HostTool
    from axletree.host.facts.access import Access
    from axletree.host.facts.loader import Loader

_LINKERS = ("ld", "ld.bfd", "ld.gold", "ld.lld", "mold")
_TOOLS = ("as", "ar", "objcopy", "strip", "readelf", "patchelf", "ccache", "sccache", "pkg-config", "perl", "ldconfig")
_TOKENS = 3
_JOBS = 2
_NINJA = """
rule job
  command = : > $out.begun; while [ ! -e go ]; do sleep 0.01; done; : > $out
build a: job
build b: job
"""
_MAKE = """
all: a b
a b:
\t: > $@.begun; while [ ! -e go ]; do sleep 0.01; done; : > $@
"""


def toolchain_facts(access: Access, loader: Loader) -> Toolchain:
    """Compilers, linkers and build tools of a host."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        compilers = pool.submit(find_compilers, access)
        drivers = pool.submit(find_gpu_compilers, access)
        linkers = [pool.submit(find_tool, access, name) for name in _LINKERS]
        builders = [pool.submit(_build_tool, access, name) for name in ("cmake", "ninja", "make")]
        tools = [pool.submit(find_tool, access, name) for name in _TOOLS]
        runtime = loader.find("libstdc++.so.6")
        sources = {
            "compilers": "CC, CUDACXX and similar variables, PATH, CUDA_HOME, ROCM_PATH, /usr/local/cuda, /opt/rocm",
            "runtime": loader.source if runtime else f"{loader.source}: libstdc++.so.6 not found",
        }
        sources |= dict.fromkeys(("linkers", "build_tools", "tools"), "PATH")
        return Toolchain(
            compilers=(*compilers.result(), *drivers.result()),
            linkers=_present(each.result() for each in linkers),
            build_tools=tuple(tool for each in builders if (tool := each.result()) is not None),
            tools=_present(each.result() for each in tools),
            runtime=cxx_runtime(access, runtime, found_by=loader.source) if runtime else None,
            sources=sources,
        )


def _present(tools: Iterable[HostTool | None]) -> tuple[HostTool, ...]:
    return tuple(tool for tool in tools if tool is not None)


def _build_tool(access: Access, name: str) -> BuildTool | None:
    tool = find_tool(access, name)
    if tool is None:
        return None
    sources = dict(tool.sources)
    taken: dict[str, bool | None] = {}
    for style in ("fifo", "pipe"):
        field = f"jobserver_{style}"
        if name == "cmake":
            taken[field], sources[field] = None, "it starts other tools and does not take tokens itself"
        elif access.root != Path("/"):
            taken[field], sources[field] = None, "cannot be tested with a different root"
        else:
            taken[field], sources[field] = takes_tokens(access, tool.path, name, style)
    return BuildTool(
        name=name,
        path=tool.path,
        version=tool.version,
        release=tool.release,
        jobserver_fifo=taken["jobserver_fifo"],
        jobserver_pipe=taken["jobserver_pipe"],
        sources=sources,
    )


def takes_tokens(access: Access, program: str, name: str, style: str) -> tuple[bool | None, str]:
    """Whether a program is a client of a job server (GNU make's manual, "POSIX Jobserver").

    It is given two jobs that wait, and a server with three tokens. Once both jobs run, a client has taken one token and
    uses its own; who ignores the server has taken none.

    Args:
        access: the host.
        program: its path.
        name: ``ninja`` or ``make``.
        style: ``fifo`` or ``pipe``.

    Returns:
        the answer, ``None`` where it could not be tried, and how it was found.
    """
    tried = f"running two jobs with a {style} job server"
    try:
        with tempfile.TemporaryDirectory(prefix="axletree-probe-", dir=existing(access.path(access.tmp))) as made:
            folder = Path(made)
            (folder / ("build.ninja" if name == "ninja" else "Makefile")).write_text(
                _NINJA if name == "ninja" else _MAKE
            )
            if style == "fifo":
                os.mkfifo(folder / "tokens", 0o600)
                ends = (os.open(folder / "tokens", os.O_RDWR), -1)
                auth = f"fifo:{folder / 'tokens'}"
            else:
                ends = os.pipe()
                auth = f"{ends[0]},{ends[1]}"
            try:
                os.write(ends[0] if style == "fifo" else ends[1], b"+" * _TOKENS)
                flags = {"MAKEFLAGS": f" -j{_TOKENS + 1} --jobserver-auth={auth}"}
                return _watch(program, folder, ends, {**access.plain, **flags}, tried)
            finally:
                for end in ends:
                    with suppress(OSError):
                        os.close(end)
    except OSError as error:
        return None, f"{tried}: {error.strerror}"


def _watch(
    program: str, folder: Path, ends: tuple[int, int], environ: Mapping[str, str], tried: str
) -> tuple[bool | None, str]:
    process = subprocess.Popen(
        [program, "all"] if (folder / "Makefile").exists() else [program],
        cwd=folder,
        env={name: value for name, value in environ.items() if name not in {"NINJA_STATUS", "MFLAGS", "MAKELEVEL"}},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=[end for end in ends if end >= 0],
    )
    try:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and process.poll() is None:
            if all((folder / f"{job}.begun").exists() for job in "ab"):
                left = int.from_bytes(fcntl.ioctl(ends[0], termios.FIONREAD, b"\0" * 4), "little")
                return left == _TOKENS - _JOBS + 1, f"{tried}: {_TOKENS - left} of {_TOKENS} tokens were taken"
            time.sleep(0.01)
        if process.poll() is None:
            begun = sum((folder / f"{job}.begun").exists() for job in "ab")
            return None, f"{tried}: {begun} started within {SECONDS:g} s"
        said = process.stderr.read().decode(errors="replace").strip().splitlines() if process.stderr else []
        return False, f"{tried}: exit code {process.returncode}" + (
            f": {said[-1].replace(str(folder), '...')[:200]}" if said else ""
        )
    finally:
        (folder / "go").touch()
        try:
            process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
