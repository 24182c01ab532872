"""The environment of a stage's children: an allow-list, composed from nothing.

What is here is either a constant, follows from the stage's inputs, or is a part of its key. Nothing else of the user's
shell reaches a build: that keeps keys honest and secrets out.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from axletree.core.values import canonical_json, digest_of
from axletree.disk import part_folder
from axletree.execute.compiler_cache import link_folders, note_use, put_in_front, tell_launchers
from axletree.execute.conda_variables import compiler_names, conda_variables
from axletree.execute.environments import conda_cache
from axletree.execute.stage_venvs import uv_cache
from axletree.host.conda_prefix import is_prefix
from axletree.host.files import replace_file
from axletree.host.jobserver import job_tokens, takes_tokens
from axletree.host.room import find_program, gpu_variables
from axletree.host.sandbox import read_only
from axletree.host.tools import SYSTEM_PATH
from axletree.host.venvs import wheel_shelf
from axletree.plan.keys import TOOLKIT_PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from axletree.execute.context import Context
    from axletree.store.store import Store

ENVIRONMENT_FILE = "environment.json"
"""Where a stage's variables are written down in its folder, for `axletree shell`."""
MAPS = "maps"
"""File of a folder that several environments compile in: the flags that keep its paths out of what is compiled."""
_CMAKE = """\
#!/bin/sh
# The next cmake on PATH, with flags that keep this machine's paths out of what it compiles.
here=${0%/*} path=:$PATH:
path=${path%%":$here:"*}:${path#*":$here:"}
path=${path#:} PATH=${path%:}
maps=@FLAGS@
CFLAGS="${CFLAGS:+$CFLAGS }$maps" CXXFLAGS="${CXXFLAGS:+$CXXFLAGS }$maps"
export PATH CFLAGS CXXFLAGS
exec cmake "$@"
"""
_NUMBERS_OF_JOBS = ("MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL")


@contextmanager
def child_environment(
    context: Context,
    *,
    venv: Path | None,
    host: Path | None = None,
    compiles: bool,
    variables: Mapping[str, str] = MappingProxyType({}),
    root: Path | None = None,
    sealed: Iterable[Path] = (),
    steady: bool = False,
    keep_flags: bool = False,
) -> Iterator[dict[str, str]]:
    """The variables for a stage's programs, with whatever they need set up for as long as the block runs.

    Meanwhile what stages share through hard links is read-only for this one, where the system allows that.

    Args:
        context: The stage's surroundings.
        venv: Environment whose programs come first: a virtual environment, or a conda prefix.
        host: Conda prefix that is linked against, where that is another one.
        compiles: Whether a compiler cache and a number of jobs are wanted.
        variables: The recipe's own.
        root: Folder of the sources that are compiled; default is the stage's own folder.
        sealed: More folders whose files may have other names.
        steady: Whether other environments go on with what is compiled below ``root``: then its flags must not differ.
        keep_flags: Whether the build tools may have flags of their own, ``-O3`` among them, that ``CFLAGS`` would
            replace: setuptools' and Autoconf's are such.
    """
    root = root or context.work
    env = {**image_variables(context), **_base(context)}
    image = context.ingredients.image
    tools = [] if image is not None else _declared_tools(context)
    path = [str(venv / "bin")] if venv is not None and not is_prefix(venv) else []
    system = _system_path(context) if image is None else image.variables.get("PATH", ":".join(SYSTEM_PATH)).split(":")
    cache = put_in_front(context, env, root, rest=[*tools, *system]) if compiles else []
    env["PATH"] = ":".join(dict.fromkeys([*path, *cache, *tools, *system]))
    if venv is not None and not path:
        env = conda_variables(env, build=venv, host=host, root=root, compiles=compiles)
        _name_compilers(context, env, [venv, *filter(None, [host])], behind=[*cache, *tools, *system])
    elif venv is not None:
        env |= _venv_variables(venv, compiles=compiles)
    env |= {name: value for name, value in context.ingredients.environ.items() if value is not None}
    env |= {**variables, **gpu_variables({**env, **variables})}
    if compiles:
        env.setdefault("ZIG_GLOBAL_CACHE_DIR", str(context.store.cache / "zig"))  # its C++ library: 40 s to compile
        env.setdefault("ZIG_LOCAL_CACHE_DIR", str(context.work / "tmp" / "zig"))
        tell_launchers(context, env, cache)
        flags = _steady_maps(context, root, venv) if steady else _maps(root, *filter(None, [venv, host]))
        _add_flags(context.store, env, flags, keep_flags=keep_flags)
    store = context.store
    with ExitStack() as stack:
        if compiles:
            stack.enter_context(_parallelism(context, env))
        note_environment(context, env)
        uv = uv_cache(context)
        shared = (store.environments, uv, wheel_shelf(uv), conda_cache(store), link_folders(store))
        stack.enter_context(read_only([*shared, *sealed]))
        yield env
    if compiles:
        note_use(context)


def _add_flags(store: Store, env: dict[str, str], flags: Sequence[str], *, keep_flags: bool) -> None:
    for variable in ("CPPFLAGS",) if keep_flags else ("CFLAGS", "CXXFLAGS"):
        env[variable] = " ".join([*filter(None, [env.get(variable)]), *flags])
    if keep_flags:
        _tell_cmake(store, env, flags)


def image_variables(context: Context) -> dict[str, str]:
    """What the stage's image sets; nothing where its programs see the host's files."""
    image = context.ingredients.image
    return {} if image is None else dict(image.variables)


def _venv_variables(venv: Path, *, compiles: bool) -> dict[str, str]:
    cmake = {"CMAKE_PREFIX_PATH": str(venv)} if compiles and _has_headers(venv) else {}
    return {"VIRTUAL_ENV": str(venv), **cmake}


def _has_headers(venv: Path) -> bool:
    """Whether wheels brought headers for anybody, as Intel's do: with their libraries they are where CMake looks."""
    return any((venv / "include").glob("*.h"))


def note_environment(context: Context, env: Mapping[str, str]) -> None:
    """Write down what a stage's programs get, for whoever opens a shell in its folder."""
    noted = dict(env)
    if "--jobserver-auth" in noted.get("MAKEFLAGS", ""):  # there are no tokens any more then
        noted["MAKEFLAGS"] = f"-j{context.grant.jobs}"
    (context.work / ENVIRONMENT_FILE).write_text(json.dumps(noted, indent=1, sort_keys=True))


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
        "SOURCE_DATE_EPOCH": str(context.ingredients.epoch or 0),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "GIT_CEILING_DIRECTORIES": str(context.work),  # version tools ask git, and a store may lie in a repository
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "UV_NO_CONFIG": "1",
        "UV_OFFLINE": "1",
    }


def _declared_tools(context: Context) -> list[str]:
    """Folders that bring the declared tools, and nothing else that happens to lie beside them, onto PATH."""
    system = os.pathsep.join(SYSTEM_PATH)
    links: dict[str, str] = {}
    folders: list[str] = []
    for name, path in context.request.local.tools.items():
        if shutil.which(name, path=system) == path:
            continue  # it is the one that is found anyway
        if name in TOOLKIT_PROGRAMS:  # they find their installation by the folder that they are in, so no link
            folders.append(str(Path(path).parent))
        else:
            links[name] = path
    return [str(_links(context.store, links)), *folders] if links else folders


def _system_path(context: Context) -> list[str]:
    """The system's folders; without compilers for GPUs, unless they are declared.

    Build scripts compile for a GPU because one of these is there, although the variant is for the CPU. Hiding needs no
    key: a stage finds what it finds on a host without them. One that declares any sees all, so its key names all.
    """
    if not TOOLKIT_PROGRAMS.isdisjoint(context.request.local.tools):
        return list(SYSTEM_PATH)
    folders: list[str] = []
    for folder in SYSTEM_PATH:
        if any(os.access(f"{folder}/{name}", os.X_OK) for name in TOOLKIT_PROGRAMS):
            others = {each.name: each.path for each in os.scandir(folder) if each.name not in TOOLKIT_PROGRAMS}
            folders.append(str(_links(context.store, dict(sorted(others.items())))))
        else:
            folders.append(folder)
    return folders


def _links(store: Store, links: Mapping[str, str]) -> Path:
    """A folder with these links, name -> target, at a path that follows from them."""

    def fill(fresh: Path) -> None:
        for name, target in links.items():
            (fresh / name).symlink_to(target)

    return _made_once(link_folders(store) / digest_of(canonical_json(dict(links)))[:24], fill)


def _made_once(folder: Path, fill: Callable[[Path], None]) -> Path:
    """A folder that is whole or not there, whoever else makes it at the same time."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with part_folder(folder) as fresh:
        fill(fresh)
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise
    return folder


def _maps(root: Path, *environments: Path) -> list[str]:
    """Flags that keep the paths of this machine out of what compilers write: ``__FILE__``, debug information."""
    flags = [f"-ffile-prefix-map={root}=."]
    for folder in environments:
        flags.append(f"-ffile-prefix-map={folder}=/environment")
        python = (folder / "bin" / "python").resolve().parents[1]
        if not python.is_relative_to("/usr") and python != folder:  # the system's own is at the same place everywhere
            flags.append(f"-ffile-prefix-map={python}=/python")
    return flags


def _name_compilers(context: Context, env: dict[str, str], prefixes: Sequence[Path], *, behind: Sequence[str]) -> None:
    """Let builds that call ``c++`` without being told another name get that of the prefixes, not the host's."""
    names = compiler_names(env, prefixes)
    if names:
        rest = ":".join(dict.fromkeys(behind))
        head = env["PATH"].removesuffix(rest)
        env["PATH"] = f"{head}{_links(context.store, names)}:{rest}"


def _tell_cmake(store: Store, env: dict[str, str], flags: Iterable[str]) -> None:
    """CMake is alone in not reading ``CPPFLAGS``: one that a build calls by name gets the flags where it looks."""
    if find_program("cmake", env["PATH"]) is None:
        return
    text = _CMAKE.replace("@FLAGS@", shlex.quote(" ".join(flags)))

    def fill(fresh: Path) -> None:
        (fresh / "cmake").write_text(text, encoding="utf-8")
        (fresh / "cmake").chmod(0o755)

    folder = _made_once(link_folders(store) / f"cmake-{digest_of(text.encode())[:16]}", fill)
    env["PATH"] = f"{folder}:{env['PATH']}"


def _steady_maps(context: Context, root: Path, venv: Path | None) -> list[str]:
    """As :func:`_maps`, but the same for every environment: a flag is a part of each command that ninja compares.

    So environments and interpreters are named by the folders that hold them, and a kept folder keeps its flags.
    """
    record = root / MAPS
    if record.exists():
        return record.read_text(encoding="utf-8").splitlines()
    flags = [f"-ffile-prefix-map={root}=."]
    if venv is not None:
        flags.append(f"-ffile-prefix-map={context.store.environments}=/environments")
        python = (venv / "bin" / "python").resolve().parents[1]
        if not python.is_relative_to("/usr"):
            flags.append(f"-ffile-prefix-map={python.parent}=/python")
    replace_file(record, "\n".join(flags).encode())  # half of them would be other flags for all that is compiled
    return flags


@contextmanager
def _parallelism(context: Context, env: dict[str, str]) -> Iterator[None]:
    """Pass the granted number of jobs on, in one way only: tokens, or a number, or setuptools' own threads."""
    jobs, how = context.grant.jobs, context.grant.parallel
    if how == "auto":
        how = "tokens" if context.ingredients.image is None and takes_tokens(env) else "jobs"
    for name in _NUMBERS_OF_JOBS:
        env.pop(name, None)  # a recipe's: beside tokens, tools would go by the number
    if how == "tokens":
        with job_tokens(context.work / "jobs.fifo", jobs) as flags:
            env["MAKEFLAGS"] = flags
            yield
        return
    env |= dict.fromkeys(_NUMBERS_OF_JOBS, "1" if how == "setuptools" else str(jobs))
    if how == "setuptools":
        extra = context.work / "setuptools.cfg"
        extra.write_text(f"[build_ext]\nparallel = {jobs}\n")
        env["DIST_EXTRA_CONFIG"] = str(extra)
    yield
