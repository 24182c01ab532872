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
        message = f"programs interpret text as {system.charmap} (locale {system.locale or 'C'})"
        yield Found(where="locale", message=message, fix=f"$ export LC_ALL={name}")


def _clock(facts: Examined) -> Iterator[Found]:
    skew = facts.host.system.clock_skew
    if skew is not None and abs(skew) > _SKEW:
        yield Found(
            where="clock",
            message=(
                f"the timestamp of a new file is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} the clock"
            ),
        )


def _glibc(facts: Examined) -> Iterator[Found]:
    system = facts.host.system
    if system.libc == "musl":
        yield Found(where="libc", message="the C library is musl, but PyTorch and NVIDIA provide no wheels for musl")
    elif system.libc == "glibc" and system.libc_version and numbers(system.libc_version) < numbers(_GLIBC):
        yield Found(
            where="libc",
            message=(
                f"glibc {system.libc_version} is too old: PyTorch wheels since 2.6, and many others, need "
                f"{_GLIBC} or later"
            ),
        )


def _confined(facts: Examined) -> Iterator[Found]:
    if facts.host.system.namespaces is False:
        yield Found(where="namespaces", message="this process is not allowed to create user and PID namespaces")


def _memory_rule(facts: Examined) -> Iterator[Found]:
    cgroup = facts.host.memory.cgroup
    if cgroup is not None and cgroup.may_limit_memory is False:
        why = cgroup.sources.get("may_limit_memory", "")
        yield Found(
            where="cgroup",
            message="this process is not allowed to limit the memory of other processes",
            evidence=(why,) if why else (),
        )


def _wsl1(facts: Examined) -> Iterator[Found]:
    if facts.host.system.wsl == 1:
        yield Found(where="WSL", message="this is WSL 1, which has no GPU access, no namespaces and slow disks")


def _git(facts: Examined) -> Iterator[Found]:
    git = facts.host.git
    if facts.wish.git and git.path == "none":
        yield Found(where="PATH", message="git is missing, but it is needed to fetch the source")
    elif facts.wish.git and git.version and numbers(git.version) < _OLD_GIT:
        yield Found(
            where=git.path or "git",
            message=f"git {git.version} supports neither parallel nor shallow clones of submodules",
        )


def _git_config(facts: Examined) -> Iterator[Found]:
    config = facts.host.git.config or {}
    if config.get("core.autocrlf", "").lower() == "true":
        yield Found(
            where="core.autocrlf",
            message="git converts line endings to CRLF, which breaks shell scripts and patches in a checkout",
            fix="$ git config --global core.autocrlf input",
        )


def _flags(facts: Examined) -> Iterator[Found]:
    for name in _COMPILE:
        value = facts.host.variable(name) or ""
        if "-march=native" in value or "-mcpu=native" in value:
            yield Found(
                where=name, message=f"{name} contains {value!r}: built code runs only on this processor and newer ones"
            )
        elif "-std=" in value:
            yield Found(
                where=name,
                message=(
                    f"{name} contains {value!r}: it sets the same language standard for every file, overriding "
                    "the project's choice"
                ),
            )


def _search(facts: Examined) -> Iterator[Found]:
    for name in _SEARCH:
        value = facts.host.variable(name)
        if value and any(not folder.endswith("/stubs") for folder in value.split(":")):  # CUDA's images name that one
            empty = ", and an empty entry means the current folder" if "" in value.split(":") else ""
            yield Found(
                where=name,
                message=f"{name}={value} adds folders ahead of the compiler's own search path in every build{empty}",
            )


def _python_variables(facts: Examined) -> Iterator[Found]:
    for name in ("PYTHONPATH", "PYTHONHOME"):
        value = facts.host.variable(name)
        if value:
            yield Found(
                where=name,
                message=f"{name}={value} affects every Python that a build starts, regardless of its version",
                fix=f"$ unset {name}",
            )


_FOR_GIT: _Wish = msgspec.structs.replace(on().wish, git=True)

SYSTEM_RULES: tuple[Rule[Examined], ...] = (
    Rule(
        id="host/locale",
        severity="warning",
        title="The locale is not UTF-8",
        references=("pytorch/builder: conda/pytorch-nightly/build.sh", "PEP 538"),
        why="Code generators and compilers that read or print non-ASCII characters fail with UnicodeDecodeError. "
        "Axletree's stages have their own UTF-8 locale, but shells and other scripts do not.",
        fix="set a UTF-8 locale",
        check=_charset,
        cases=lambda: (
            Case(title="LC_ALL=C", facts=on(system={"charmap": "ANSI_X3.4-1968", "locale": "C"}), fires=True),
            Case(title="C.UTF-8", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/clock-skew",
        severity="warning",
        title="File timestamps differ from the clock",
        references=("GNU make manual",),
        why="make and ninja compare timestamps, so they rebuild endlessly or miss changes.",
        fix="synchronize the clocks of this machine and the file server with NTP",
        check=_clock,
        cases=lambda: (
            Case(title="90 s ahead", facts=on(system={"clock_skew": 90.0}), fires=True),
            Case(title="together", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/libc",
        severity="warning",
        title="Published wheels do not support this C library",
        references=("pytorch/pytorch#123649", "PEP 600"),
        why="pip finds no matching wheel and tries to build every package from source.",
        fix="build in a container with a newer distribution, or with one that uses glibc",
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
        title="Stages cannot be isolated",
        references=("user_namespaces(7)",),
        why="Stages still run, but leftover processes are stopped less reliably, and stages can access the network.",
        fix="allow user namespaces: run Docker with `--security-opt seccomp=unconfined`, or set "
        "`kernel.unprivileged_userns_clone=1` or `kernel.apparmor_restrict_unprivileged_userns=0` with sysctl",
        check=_confined,
        cases=lambda: (
            Case(title="refused", facts=on(system={"namespaces": False}), fires=True),
            Case(title="allowed", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/memory-not-limitable",
        severity="info",
        title="A stage's memory cannot be limited",
        references=('Linux, admin-guide/cgroup-v2, "Delegation"',),
        why=(
            "A compilation that uses too much memory can cause other processes to be killed. The number of "
            "parallel jobs still depends on available memory."
        ),
        fix="delegate a control group to this user, or make /sys/fs/cgroup writable in the container",
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
        why="GPU code compiles in WSL 1 but cannot run there.",
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
        why="The source cannot be fetched.",
        fix="$ apt-get install git",
        check=_git,
        cases=lambda: (
            Case(title="none", facts=on(wish=_FOR_GIT, git={"path": "none", "version": None}), fires=True),
            Case(title="git 2.43", facts=on(wish=_FOR_GIT), fires=False),
            Case(title="a build that does not need git", facts=on(git={"path": "none"}), fires=False),
        ),
    ),
    Rule(
        id="host/git-autocrlf",
        severity="warning",
        title="git changes line endings",
        references=("gitattributes(5), git-config(1), core.autocrlf",),
        why="A Linux checkout must contain exactly the bytes that were committed.",
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
        title="Flags in the environment affect every compilation",
        references=("GCC manual, x86 options, -march=native",),
        why="The flags are not in any project file, so nobody else gets the same result. Axletree's stages receive "
        "only the variables that a recipe names.",
        fix="set the variable in the recipe, or unset it",
        check=_flags,
        cases=lambda: (
            Case(title="-march=native", facts=having(("CXXFLAGS", "-O2 -march=native")), fires=True),
            Case(title="-O2", facts=having(("CXXFLAGS", "-O2")), fires=False),
        ),
    ),
    Rule(
        id="variable/search-path",
        severity="warning",
        title="An environment variable puts folders before the compiler's own",
        references=('GCC manual, "Environment Variables Affecting GCC"',),
        why="Headers and libraries from a different installation take precedence over those that the project found "
        "during configuration.",
        fix="unset the variable, and pass the folders only to the project that needs them (CMAKE_PREFIX_PATH)",
        check=_search,
        cases=lambda: (
            Case(title="CPATH", facts=having(("CPATH", "/opt/other/include:")), fires=True),
            Case(title="none", facts=on(HEALTHY), fires=False),
        ),
    ),
    Rule(
        id="variable/python",
        severity="warning",
        title="An environment variable adds modules to every Python interpreter",
        references=("Python, command line, PYTHONPATH, PYTHONHOME",),
        why=(
            "Isolated build environments are then not isolated: they import modules that belong to a different "
            "Python version."
        ),
        fix="unset the variable",
        check=_python_variables,
        cases=lambda: (
            Case(title="PYTHONPATH", facts=having(("PYTHONPATH", "/opt/lib/python3.9")), fires=True),
            Case(title="none", facts=on(), fires=False),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: the system, git, variables."""
