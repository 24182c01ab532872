"""The environment of a stage's children: an allow-list, composed from nothing.

What is here is either a constant, follows from the stage's inputs, or is a part of its key. Nothing else of the user's
shell reaches a build: that keeps keys honest and secrets out.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.host.jobserver import job_tokens, takes_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.execute.context import Context

ENVIRONMENT_FILE = "environment.json"
"""Where a stage's variables are written down in its folder, for `axletree shell`."""
_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
_CACHE_SIZE = "10G"
"""Of the compiler cache: what was not used for longest goes."""
_WRAPPED_COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "nvcc")


@contextmanager
def child_environment(
    context: Context, *, venv: Path | None, compiles: bool, root: Path | None = None
) -> Iterator[dict[str, str]]:
    """The variables for a stage's programs, with whatever they need set up for as long as the block runs.

    Args:
        context: The stage's surroundings.
        venv: Environment whose programs come first.
        compiles: Whether a compiler cache and a number of jobs are wanted.
        root: Folder of the sources that are compiled; default is the stage's own folder.
    """
    root = root or context.work
    env = _base(context)
    path = [str(venv / "bin")] if venv is not None else []
    if compiles:
        path += _compiler_cache(context, env, root)
    path += [str(Path(tool).parent) for tool in context.request.local.get("tools", {}).values()]
    env["PATH"] = ":".join(dict.fromkeys([*path, *_SYSTEM_PATH]))
    if venv is not None:
        env["VIRTUAL_ENV"] = str(venv)
    if compiles:
        _map_paths(env, root, venv)
    env |= {name: value for name, value in context.request.ingredients.get("environ", {}).items() if value is not None}
    env |= context.parameters.get("env", {})
    with ExitStack() as stack:
        if compiles:
            stack.enter_context(_parallelism(context, env))
        note_environment(context, env)
        yield env


def note_environment(context: Context, env: Mapping[str, str]) -> None:
    """Write down what a stage's programs get, for whoever opens a shell in its folder."""
    (context.work / ENVIRONMENT_FILE).write_text(json.dumps(dict(env), indent=1, sort_keys=True))


def _base(context: Context) -> dict[str, str]:
    home, temporary = context.work / "home", context.work / "tmp"
    for folder in (home, temporary):
        folder.mkdir(exist_ok=True)
    return {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "SOURCE_DATE_EPOCH": str(context.request.ingredients.get("epoch", 0)),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "UV_NO_CONFIG": "1",
        "UV_OFFLINE": "1",
    }


def _compiler_cache(context: Context, env: dict[str, str], root: Path) -> list[str]:
    """Put ccache in front of the compilers by a folder of links named like them, first on PATH.

    Links work for every build system, where ``CMAKE_CXX_COMPILER_LAUNCHER`` or ``CC="ccache gcc"`` work for some. The
    cache cannot change a result, so it is in no key.
    """
    ccache = context.request.local.get("ccache")
    if ccache is None:
        return []
    folder = context.store.cache / "tools" / "ccache"
    folder.mkdir(parents=True, exist_ok=True)
    for name in _WRAPPED_COMPILERS:
        link = folder / name
        if not link.is_symlink() or os.readlink(link) != ccache:  # noqa: PTH115 (compared as text)
            fresh = folder / f".{name}.{os.getpid()}"
            fresh.symlink_to(ccache)
            fresh.replace(link)
    env["CCACHE_DIR"] = str(context.store.cache / "ccache")
    env["CCACHE_MAXSIZE"] = _CACHE_SIZE
    if root == context.work:
        # The folder is another one for each key. Not in a kept workspace: there make reads the dependency files, and
        # would not know its targets by the relative paths that ccache writes into them.
        env["CCACHE_BASEDIR"] = str(root)
    env["CCACHE_COMPILERCHECK"] = "content"
    env["CCACHE_NOHASHDIR"] = "1"
    env["TORCH_NO_COMPILER_WRAPPER"] = "1"  # PyTorch puts ccache in front by itself, a second time
    return [str(folder)]


def _map_paths(env: dict[str, str], root: Path, venv: Path | None) -> None:
    """Keep the paths of this machine out of what compilers write: ``__FILE__``, debug information."""
    flags = [f"-ffile-prefix-map={root}=."]
    if venv is not None:
        flags.append(f"-ffile-prefix-map={venv}=/environment")
        python = (venv / "bin" / "python").resolve().parents[1]
        if not python.is_relative_to("/usr"):  # the system's own is at the same place everywhere
            flags.append(f"-ffile-prefix-map={python}=/python")
    for variable in ("CFLAGS", "CXXFLAGS"):
        env[variable] = " ".join(flags)


@contextmanager
def _parallelism(context: Context, env: dict[str, str]) -> Iterator[None]:
    """Pass the granted number of jobs on, in one way only: tokens, or a number, or setuptools' own threads."""
    jobs, how = context.grant.jobs, context.grant.parallel
    if how == "auto":
        how = "tokens" if takes_tokens(env) else "jobs"
    if how == "tokens":
        with job_tokens(context.work / "jobs.fifo", jobs) as flags:
            env["MAKEFLAGS"] = flags
            yield
        return
    env["MAX_JOBS"] = env["CMAKE_BUILD_PARALLEL_LEVEL"] = "1" if how == "setuptools" else str(jobs)
    if how == "setuptools":
        extra = context.work / "setuptools.cfg"
        extra.write_text(f"[build_ext]\nparallel = {jobs}\n")
        env["DIST_EXTRA_CONFIG"] = str(extra)
    yield
