"""Rules about the operating system, git, and variables that change builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.backends.bounds import numbers
from axletree.check.engine import Found, Rule, fires, silent
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
        yield Found("locale", message, fix=f"$ export LC_ALL={name}")


def _clock(facts: Examined) -> Iterator[Found]:
    skew = facts.host.system.clock_skew
    if skew is not None and abs(skew) > _SKEW:
        yield Found(
            "clock",
            f"the timestamp of a new file is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} the clock",
        )


def _glibc(facts: Examined) -> Iterator[Found]:
    system = facts.host.system
    if system.libc == "musl":
        yield Found("libc", "the C library is musl, but PyTorch and NVIDIA provide no wheels for musl")
    elif system.libc == "glibc" and system.libc_version and numbers(system.libc_version) < numbers(_GLIBC):
        yield Found(
            "libc",
            (
                f"glibc {system.libc_version} is too old: PyTorch wheels since 2.6, and many others, need "
                f"{_GLIBC} or later"
            ),
        )


def _confined(facts: Examined) -> Iterator[Found]:
    if facts.host.system.namespaces is False:
        yield Found("namespaces", "this process is not allowed to create user and PID namespaces")


def _memory_rule(facts: Examined) -> Iterator[Found]:
    cgroup = facts.host.memory.cgroup
    if cgroup is not None and cgroup.may_limit_memory is False:
        why = cgroup.sources.get("may_limit_memory", "")
        yield Found(
            "cgroup",
            "this process is not allowed to limit the memory of other processes",
            evidence=(why,) if why else (),
        )


def _wsl1(facts: Examined) -> Iterator[Found]:
    if facts.host.system.wsl == 1:
        yield Found("WSL", "this is WSL 1, which has no GPU access, no namespaces and slow disks")


def _git(facts: Examined) -> Iterator[Found]:
    git = facts.host.git
    if facts.wish.git and git.path == "none":
        yield Found("PATH", "git is missing, but it is needed to fetch the source")
    elif facts.wish.git and git.version and numbers(git.version) < _OLD_GIT:
        yield Found(git.path or "git", f"git {git.version} supports neither parallel nor shallow clones of submodules")


def _git_config(facts: Examined) -> Iterator[Found]:
    config = facts.host.git.config or {}
    if config.get("core.autocrlf", "").lower() == "true":
        yield Found(
            "core.autocrlf",
            "git converts line endings to CRLF, which breaks shell scripts and patches in a checkout",
            fix="$ git config --global core.autocrlf input",
        )


def _flags(facts: Examined) -> Iterator[Found]:
    for name in _COMPILE:
        value = facts.host.variable(name) or ""
        if "-march=native" in value or "-mcpu=native" in value:
            yield Found(name, f"{name} contains {value!r}, so built code runs only on this processor and newer ones")
        elif "-std=" in value:
            yield Found(
                name,
                (
                    f"{name} contains {value!r}, which sets the same language standard for every file and overrides "
                    "the project's choice"
                ),
            )


def _search(facts: Examined) -> Iterator[Found]:
    for name in _SEARCH:
        value = facts.host.variable(name)
        if value and any(not folder.endswith("/stubs") for folder in value.split(":")):  # CUDA's images name that one
            empty = ", and an empty entry means the current folder" if "" in value.split(":") else ""
            yield Found(
                name, f"{name}={value} adds folders ahead of the compiler's own search path in every build{empty}"
            )


def _python_variables(facts: Examined) -> Iterator[Found]:
    for name in ("PYTHONPATH", "PYTHONHOME"):
        value = facts.host.variable(name)
        if value:
            yield Found(
                name,
                f"{name}={value} affects every Python that a build starts, regardless of its version",
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
            fires("LC_ALL=C", on(system={"charmap": "ANSI_X3.4-1968", "locale": "C"})),
            silent("C.UTF-8", on()),
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
            fires("90 s ahead", on(system={"clock_skew": 90.0})),
            silent("together", on()),
        ),
    ),
    Rule(
        id="host/libc",
        severity="warning",
        title="Published wheels do not support this C library",
        references=("pytorch/pytorch#123649", "PEP 600"),
        why="pip finds no matching wheel and tries to build every package from source.",
        fix="build in a container whose distribution uses glibc 2.28 or later, such as quay.io/pypa/manylinux_2_28",
        check=_glibc,
        cases=lambda: (
            fires("CentOS 7", on(system={"libc_version": "2.17"})),
            fires("Alpine", on(system={"libc": "musl", "libc_version": "1.2.5"})),
            silent("2.39", on()),
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
            fires("refused", on(system={"namespaces": False})),
            silent("allowed", on()),
        ),
    ),
    Rule(
        id="host/memory-not-limitable",
        severity="info",
        title="A stage's memory cannot be limited",
        references=('Linux, admin-guide/cgroup-v2, "Delegation"',),
        why="A compilation that uses too much memory can cause other processes to be killed. The number of "
        "parallel jobs still depends on available memory.",
        fix=(
            "delegate a control group to this user (systemd: Delegate=yes), or make /sys/fs/cgroup writable in "
            "the container"
        ),
        check=_memory_rule,
        cases=lambda: (
            fires(
                "a read-only /sys", on(memory={"cgroup": Cgroup(version="2", may_create=False, may_limit_memory=False)})
            ),
            silent("delegated", on()),
        ),
    ),
    Rule(
        id="host/wsl-1",
        severity="warning",
        title="This machine runs WSL 1",
        references=('Microsoft, "Comparing WSL versions"',),
        why="GPU code compiles in WSL 1 but cannot run there.",
        fix="in Windows:\n$ wsl --set-version DISTRIBUTION 2",
        check=_wsl1,
        cases=lambda: (
            fires("WSL 1", on(system={"wsl": 1})),
            silent("WSL 2", on(system={"wsl": 2})),
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
            fires("none", on(wish=_FOR_GIT, git={"path": "none", "version": None})),
            silent("git 2.43", on(wish=_FOR_GIT)),
            silent("a build that does not need git", on(git={"path": "none"})),
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
            fires("true", on(git={"config": {"core.autocrlf": "true"}})),
            silent("input", on(git={"config": {"core.autocrlf": "input"}})),
        ),
    ),
    Rule(
        id="variable/compile-flags",
        severity="info",
        title="Flags in the environment affect every compilation",
        references=("GCC manual, x86 options, -march=native",),
        why="The flags are not in any project file, so nobody else gets the same result. Axletree's stages receive "
        "only the variables that a recipe names.",
        fix="unset the variable; if the build needs these flags, set them in the recipe's env",
        check=_flags,
        cases=lambda: (
            fires("-march=native", having(("CXXFLAGS", "-O2 -march=native"))),
            silent("-O2", having(("CXXFLAGS", "-O2"))),
        ),
    ),
    Rule(
        id="variable/search-path",
        severity="warning",
        title="An environment variable puts folders before the compiler's own",
        references=('GCC manual, "Environment Variables Affecting GCC"',),
        why="Headers and libraries from a different installation take precedence over those that the project found "
        "during configuration.",
        fix="unset the variable, and set CMAKE_PREFIX_PATH only for the project that needs these folders",
        check=_search,
        cases=lambda: (
            fires("CPATH", having(("CPATH", "/opt/other/include:"))),
            silent("none", on(HEALTHY)),
        ),
    ),
    Rule(
        id="variable/python",
        severity="warning",
        title="An environment variable adds modules to every Python interpreter",
        references=("Python, command line, PYTHONPATH, PYTHONHOME",),
        why="Isolated build environments are then not isolated: they import modules that belong to a different "
        "Python version.",
        fix="unset the variable",
        check=_python_variables,
        cases=lambda: (
            fires("PYTHONPATH", having(("PYTHONPATH", "/opt/lib/python3.9"))),
            silent("none", on()),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: the system, git, variables."""
