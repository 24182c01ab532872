"""Rules about the operating system, git, and variables that change builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.backends.bounds import numbers
from axletree.check.engine import Case, Found, Rule
from axletree.check.host.system import Cgroup
from axletree.check.rules.host.sample import HEALTHY, having, on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.host.examined import Examined
    from axletree.check.host.examined import Wish as _Wish

_SKEW = 1.0
_GLIBC = "2.28"
_OLD_GIT = (2, 13)
_COMPILE = ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "CUDAFLAGS", "NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS")
_SEARCH = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH")


def _charset(facts: Examined) -> Iterator[Found]:
    system = facts.host.system
    if system.charmap is not None and system.charmap.upper().replace("-", "") != "UTF8":
        name = system.utf8_locale if system.utf8_locale not in (None, "none") else "C.UTF-8"
        message = f"programs take text as {system.charmap} (locale {system.locale or 'C'})"
        yield Found(where="locale", message=message, fix=f"$ export LC_ALL={name}")


def _clock(facts: Examined) -> Iterator[Found]:
    skew = facts.host.system.clock_skew
    if skew is not None and abs(skew) > _SKEW:
        yield Found(
            where="clock",
            message=f"a new file's time is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} the clock",
        )


def _glibc(facts: Examined) -> Iterator[Found]:
    system = facts.host.system
    if system.libc == "musl":
        yield Found(where="libc", message="the C library is musl: PyTorch and NVIDIA have no wheels for it")
    elif system.libc == "glibc" and system.libc_version and numbers(system.libc_version) < numbers(_GLIBC):
        yield Found(
            where="libc",
            message=f"glibc {system.libc_version}; PyTorch's wheels since 2.6, and many others, need {_GLIBC}",
        )


def _confined(facts: Examined) -> Iterator[Found]:
    if facts.host.system.namespaces is False:
        yield Found(where="namespaces", message="this process may make no user and PID namespaces")


def _memory_rule(facts: Examined) -> Iterator[Found]:
    cgroup = facts.host.memory.cgroup
    if cgroup is not None and cgroup.may_limit_memory is False:
        why = cgroup.sources.get("may_limit_memory", "")
        yield Found(
            where="cgroup", message="this process may not limit the memory of others", evidence=(why,) if why else ()
        )


def _wsl1(facts: Examined) -> Iterator[Found]:
    if facts.host.system.wsl == 1:
        yield Found(where="WSL", message="this is WSL 1: no GPU, no namespaces, slow disks")


def _git(facts: Examined) -> Iterator[Found]:
    git = facts.host.git
    if facts.wish.git and git.path == "none":
        yield Found(where="PATH", message="git is not there, and the source is fetched with it")
    elif facts.wish.git and git.version and numbers(git.version) < _OLD_GIT:
        yield Found(
            where=git.path or "git", message=f"git {git.version} can't clone submodules in parallel, nor shallowly"
        )


def _git_config(facts: Examined) -> Iterator[Found]:
    config = facts.host.git.config or {}
    if config.get("core.autocrlf", "").lower() == "true":
        yield Found(
            where="core.autocrlf",
            message="git turns line ends into CRLF: shell scripts and patches of a checkout break",
            fix="$ git config --global core.autocrlf input",
        )


def _flags(facts: Examined) -> Iterator[Found]:
    for name in _COMPILE:
        value = facts.host.variable(name) or ""
        if "-march=native" in value or "-mcpu=native" in value:
            yield Found(
                where=name, message=f"{name} has {value!r}: what is built runs on this processor and newer ones only"
            )
        elif "-std=" in value:
            yield Found(
                where=name,
                message=f"{name} has {value!r}: a language standard for every file, against what the project asks for",
            )


def _search(facts: Examined) -> Iterator[Found]:
    for name in _SEARCH:
        value = facts.host.variable(name)
        if value and any(not folder.endswith("/stubs") for folder in value.split(":")):  # CUDA's images name that one
            empty = ": an empty entry in it is the current folder" if "" in value.split(":") else ""
            yield Found(
                where=name, message=f"{name}={value} comes before the compiler's own folders in every build{empty}"
            )


def _python_variables(facts: Examined) -> Iterator[Found]:
    for name in ("PYTHONPATH", "PYTHONHOME"):
        value = facts.host.variable(name)
        if value:
            yield Found(
                where=name,
                message=f"{name}={value} reaches every Python that a build starts, of whatever version",
                fix=f"$ unset {name}",
            )


_FOR_GIT: _Wish = msgspec.structs.replace(on().wish, git=True)

SYSTEM_RULES: tuple[Rule[Examined], ...] = (
    Rule(
        id="host/locale",
        severity="warning",
        title="The locale is not UTF-8",
        references=("pytorch/builder: conda/pytorch-nightly/build.sh", "PEP 538"),
        why="Code generators and compilers that read or print other characters end with UnicodeDecodeError. Axletree's "
        "stages have a UTF-8 locale of their own; shells and others' scripts do not.",
        fix="choose a UTF-8 locale",
        check=_charset,
        cases=lambda: (
            Case(title="LC_ALL=C", facts=on(system={"charmap": "ANSI_X3.4-1968", "locale": "C"}), fires=True),
            Case(title="C.UTF-8", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/clock-skew",
        severity="warning",
        title="Files get times that differ from the clock",
        references=("GNU make manual",),
        why="make and ninja compare times: they build forever, or miss what changed.",
        fix="set the clocks of this machine and of the file server, by NTP",
        check=_clock,
        cases=lambda: (
            Case(title="90 s ahead", facts=on(system={"clock_skew": 90.0}), fires=True),
            Case(title="together", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/libc",
        severity="warning",
        title="The C library is one that published wheels do not fit",
        references=("pytorch/pytorch#123649", "PEP 600"),
        why="pip finds no wheel and tries to build everything from source.",
        fix="build in a container of a newer distribution, or of one with glibc",
        check=_glibc,
        cases=lambda: (
            Case(title="CentOS 7", facts=on(system={"libc_version": "2.17"}), fires=True),
            Case(title="Alpine", facts=on(system={"libc": "musl", "libc_version": "1.2.5"}), fires=True),
            Case(title="2.39", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/not-confined",
        severity="info",
        title="Stages can't be confined",
        references=("user_namespaces(7)",),
        why="Stages still run, but leftover processes are stopped less reliably, and stages can access the network.",
        fix="allow user namespaces: `docker run --security-opt seccomp=unconfined`, or "
        "`sysctl kernel.unprivileged_userns_clone=1`, or `kernel.apparmor_restrict_unprivileged_userns=0`",
        check=_confined,
        cases=lambda: (
            Case(title="refused", facts=on(system={"namespaces": False}), fires=True),
            Case(title="allowed", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/memory-not-limitable",
        severity="info",
        title="No memory limit can be set for a stage",
        references=('Linux, admin-guide/cgroup-v2, "Delegation"',),
        why="A runaway compile can kill others. The number of parallel jobs still depends on memory.",
        fix="delegate a control group to this user, or mount /sys/fs/cgroup writable in the container",
        check=_memory_rule,
        cases=lambda: (
            Case(
                title="a read-only /sys",
                facts=on(memory={"cgroup": Cgroup(version="2", may_create=False, may_limit_memory=False)}),
                fires=True,
            ),
            Case(title="delegated", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/wsl-1",
        severity="warning",
        title="WSL 1",
        references=('Microsoft, "Comparing WSL versions"',),
        why="GPU builds compile there, and run nowhere near.",
        fix="in Windows:\n$ wsl --set-version DISTRIBUTION 2",
        check=_wsl1,
        cases=lambda: (
            Case(title="WSL 1", facts=on(system={"wsl": 1}), fires=True),
            Case(title="WSL 2", facts=on(system={"wsl": 2}), fires=False),
        ),
    ),
    Rule(
        id="host/git",
        severity="error",
        title="git is missing or too old",
        references=("git-submodule(1), --jobs",),
        why="The source can't be fetched.",
        fix="$ apt-get install git",
        check=_git,
        cases=lambda: (
            Case(title="none", facts=on(wish=_FOR_GIT, git={"path": "none", "version": None}), fires=True),
            Case(title="git 2.43", facts=on(wish=_FOR_GIT), fires=False),
            Case(title="not needed", facts=on(git={"path": "none"}), fires=False),
        ),
    ),
    Rule(
        id="host/git-autocrlf",
        severity="warning",
        title="git changes line ends",
        references=("gitattributes(5), git-config(1), core.autocrlf",),
        why="A checkout for Linux has to have the bytes that were committed.",
        fix="$ git config --global core.autocrlf input",
        check=_git_config,
        cases=lambda: (
            Case(title="true", facts=on(git={"config": {"core.autocrlf": "true"}}), fires=True),
            Case(title="input", facts=on(git={"config": {"core.autocrlf": "input"}}), fires=False),
        ),
    ),
    Rule(
        id="variable/compile-flags",
        severity="info",
        title="Flags in the environment reach every compile",
        references=("GCC manual, x86 options, -march=native",),
        why="They are in no project's files, so nobody else gets the same result. Axletree's stages see the variables "
        "that a recipe names, and no others.",
        fix="put them into the recipe, or unset the variable",
        check=_flags,
        cases=lambda: (
            Case(title="-march=native", facts=having(("CXXFLAGS", "-O2 -march=native")), fires=True),
            Case(title="-O2", facts=having(("CXXFLAGS", "-O2")), fires=False),
        ),
    ),
    Rule(
        id="variable/search-path",
        severity="warning",
        title="A variable puts folders before the compiler's own",
        references=('GCC manual, "Environment Variables Affecting GCC"',),
        why="Headers and libraries of another installation win over those that the project found while it was "
        "configured.",
        fix="unset it, and name the folders to the one project that needs them (CMAKE_PREFIX_PATH)",
        check=_search,
        cases=lambda: (
            Case(title="CPATH", facts=having(("CPATH", "/opt/other/include:")), fires=True),
            Case(title="none", facts=on(HEALTHY), fires=False),
        ),
    ),
    Rule(
        id="variable/python",
        severity="warning",
        title="A variable puts modules into every Python",
        references=("Python, command line, PYTHONPATH, PYTHONHOME",),
        why="An isolated build environment is not isolated then: it imports what belongs to another version.",
        fix="unset it",
        check=_python_variables,
        cases=lambda: (
            Case(title="PYTHONPATH", facts=having(("PYTHONPATH", "/opt/lib/python3.9")), fires=True),
            Case(title="none", facts=on(), fires=False),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: the system, git, variables."""
