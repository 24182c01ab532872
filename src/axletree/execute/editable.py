"""Builds an editable tree: all of it the first time, then what changed, in the user's own folder.

What is compiled, and how, is decided by the project's own build tools. Here is decided what they would not notice:
that a setting is another one (CMake is configured again, from an empty cache), that a file is new (CMake runs), that a
header changed which setuptools was not told of (its extensions are compiled again, by the compiler cache).
"""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib.metadata import MetadataPathFinder
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from build import BuildException
from packaging.utils import canonicalize_name

from axletree.buildsystem.cmake.cache import CACHE_FILE
from axletree.buildsystem.code import is_header
from axletree.buildsystem.editable import Changes, Count, Way, count_steps, redirect_target
from axletree.buildsystem.ninja import NinjaStep, read_ninja_log
from axletree.buildsystem.pytorch.forwarding import Era
from axletree.core.errors import StageError
from axletree.disk import remove_tree
from axletree.execute.backend import backend_warnings, check_requirements, open_builder
from axletree.execute.context import ActionContext
from axletree.execute.drivers.cmake import configure_command
from axletree.execute.drivers.configure import Build, check_configured, checking
from axletree.execute.drivers.scikit_build import INFO
from axletree.execute.killed import has_ninja, remove_written, was_stopped
from axletree.execute.process import check_program, run_program
from axletree.execute.progress import describe
from axletree.host.files import replace_file
from axletree.host.venvs import editable_command
from axletree.plan.actions.build import BuildParameters
from axletree.plan.actions.compile import CompileParameters, cmake_options
from axletree.plan.actions.project import ProjectParameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CONFIGURING = "configuring"
"""File beside the build folder: from the moment in which settings are found to differ until they are in effect."""
_NINJA_LOG = ".ninja_log"
_PATHS = "axletree-dev.pth"
_MANIFEST = "install_manifest.txt"
_MODULE = re.compile(r"\w+\.(?:cpython-[\w-]+|abi3)\.so")
_STEP = re.compile(r"\s*\[\s*(\d+)/(\d+)\]\s*(.*)")
_SETUP = "import setuptools; setuptools.setup()"
"""What stands for a setup.py where there is none."""
_VARIABLES = {"CMAKE_INSTALL_ALWAYS": "1"}
"""CMake takes an installed file for the same as a built one whose time differs by less than a second."""
_DEFAULTS = {"CMAKE_BUILD_TYPE": "RelWithDebInfo"}
"""Of a tree that is CMake's alone, where the recipe says nothing."""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project in a tree, and what it is built with."""

    context: ActionContext[ProjectParameters]
    source: Path
    """Folder of the project."""
    build: Path
    venv: Path | None
    env: dict[str, str]
    way: Way
    rules: Era | None = None
    """How PyTorch's own tree makes CMake variables of the environment; ``None`` for other projects."""
    scratch: Path
    """Folder that is ours, beside the build folder."""


class Outdated(msgspec.Struct, frozen=True, kw_only=True):
    """What is known to be out of date; what the build tools notice by themselves is not in here."""

    afresh: bool = False
    """Nothing of the build folder is of use."""
    configure: bool = False
    """Settings differ."""
    install: bool = False
    """What says what is installed differs, or it was never installed."""
    killed: bool = False
    """The last build was: files may be half written."""
    files: Changes = Changes()

    def __bool__(self) -> bool:
        """Whether anything is."""
        return bool(self.afresh or self.configure or self.install or self.killed or self.files)


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """What can be imported."""

    distribution: str | None
    modules: tuple[str, ...]


def is_current(project: Project) -> bool:
    """Whether the build tool itself finds nothing to do; asked only where it can tell without doing it."""
    if project.way in {"setuptools", "backend"}:
        return True
    ninja = shutil.which("ninja", path=project.env["PATH"])
    if ninja is None or not (project.build / "build.ninja").exists():
        return False
    said: list[str] = []
    words = [ninja, "-C", str(project.build), "-n"]
    code = run_program(
        words,
        cwd=project.source,
        env=project.env,
        log=project.context.log,
        progress=lambda *_args, **_more: said.append("a step"),
        watch=said.append,
    )
    return code == 0 and any("no work to do" in line for line in said)


def bring_up_to_date(project: Project, need: Outdated) -> Count:
    """Configure, compile and install what has to be.

    Raises:
        StageError: a command, the backend, CMake or the compiler fails; a feature is not as expected; the environment
            lacks what the backend requires.
        IntegrityError: CMake's cache is damaged.
    """
    if need.afresh:
        remove_tree(project.build)
        # Done: whoever is killed from now on must not begin with this once more, and lose what it has compiled.
        replace_file(project.scratch / CONFIGURING, b"configure")
    before = _steps(project)
    {
        "setup.py": _by_setup_py,
        "setuptools": _by_setuptools,
        "scikit-build-core": _by_scikit_build,
        "cmake": _by_cmake,
        "backend": _by_backend,
    }[project.way](project, need)
    return count_steps(before, _steps(project))


def mend(project: Project, mark: Path) -> None:
    """Remove from the build folder what a killed build may have half written, unless ninja knows what is whole.

    After a start of the machine the whole of it: what was written may never have come to the disk.

    Args:
        project: the tree; what is not in its build folder may be the user's own work, and is not touched.
        mark: what :func:`axletree.execute.killed.begin` made when the build began.

    Raises:
        OSError: something can't be removed.
    """
    if not _is_ours(project):
        return
    if was_stopped(mark):
        remove_tree(project.build)
    elif not has_ninja(project.build):
        left = remove_written(project.build, mark, ours=lambda _: False)
        project.context.log.say(f"the last build was killed: {left}")


def _is_ours(project: Project) -> bool:
    """Whether the build folder is beside our own files, and nobody else's."""
    return project.build.is_relative_to(project.scratch)


def find_installed(project: Project) -> Installed:
    """The editable install of the project's folder, and what it makes importable."""
    if project.venv is None:
        return Installed(distribution=None, modules=())
    if project.way == "cmake":
        return Installed(distribution=None, modules=_modules_in(project))
    folders = [str(folder) for folder in project.venv.glob("lib/python*/site-packages")]
    for dist in MetadataPathFinder.find_distributions(MetadataPathFinder.Context(path=folders)):
        origin = json.loads(dist.read_text("direct_url.json") or "{}")
        if origin.get("url") == project.source.as_uri():
            name: str = dist.metadata["Name"]
            top = (dist.read_text("top_level.txt") or "").split()
            found = [module for module in top if (project.source / module).exists()] or top
            return Installed(distribution=name, modules=tuple(found) or (canonicalize_name(name).replace("-", "_"),))
    return Installed(distribution=None, modules=())


def lacks_path_file(project: Project) -> bool:
    """Whether nothing leads from the environment to what CMake alone installs."""
    return project.venv is not None and not any(project.venv.glob(f"lib/python*/site-packages/{_PATHS}"))


def _by_setup_py(project: Project, need: Outdated) -> None:
    """A setup.py that configures CMake with what it makes of the environment, then does what is left to do."""
    cache = project.build / CACHE_FILE
    if need.configure:
        cache.unlink(missing_ok=True)
    if not (cache.exists() and any((project.build / name).exists() for name in ("build.ninja", "Makefile"))):
        _configure(project, ["python", "setup.py", "build", "--cmake-only"])
    elif need.files.moved:
        _configure(project, ["cmake", str(project.build)])
    _compile(project, need, "--target", "install")
    _run(project, ["python", "setup.py", "build_ext", "--inplace"], what="setup.py build_ext")
    if need.install or need.configure:
        _install(project, {"editable_mode": "compat"})


def _by_setuptools(project: Project, need: Outdated) -> None:
    """Extensions of setuptools: compiled into the tree; objects stay in the folder build."""
    _check_requirements(project)
    setup = ["setup.py"] if (project.source / "setup.py").exists() else ["-c", _SETUP]
    # setuptools compares an extension with the sources that it was told of, by time; nothing else makes it compile.
    blind = [*filter(is_header, need.files.edited), *need.files.moved]
    again = ["--force"] if blind or need.configure or need.killed else []
    project.context.progress("compiling")
    _run(project, ["python", *setup, "build_ext", "--inplace", *again], what="setup.py build_ext")
    _in_effect(project)
    if need.install or need.configure:
        _install(project, {"editable_mode": "compat", **_config(project)})


def _by_scikit_build(project: Project, need: Outdated) -> None:
    """The backend configures and installs; from then on CMake builds in its folder and installs to the same place."""
    cache = project.build / CACHE_FILE
    target = _redirected(project)
    anew = need.configure or not cache.exists()
    if anew:
        cache.unlink(missing_ok=True)
        (project.build / INFO).unlink(missing_ok=True)
    if anew or need.install or target is None:
        _install_by_scikit_build(project)
        return
    manifest = _manifest(project)
    if need.files.moved:
        _configure(project, ["cmake", str(project.build)])
    _compile(project, need)
    _run(project, ["cmake", "--install", str(project.build), f"--prefix={target}"], what="the installation")
    if _manifest(project) != manifest:  # the redirect knows the files of the time when it was made
        _install_by_scikit_build(project)


def _install_by_scikit_build(project: Project) -> None:
    _check_requirements(project)
    defines = {f"cmake.define.{name}": value for name, value in cmake_options(project.context.parameters).items()}
    watch, end = checking(_build_of(project), project.source)
    config = {"editable.mode": "redirect", "editable.rebuild": "false", **_config(project), **defines}
    _install(project, {**config, "build-dir": str(project.build)}, watch=watch)
    end()
    _in_effect(project)


def _by_cmake(project: Project, need: Outdated) -> None:
    """CMake alone: installed beside the build folder, and a path file leads to the extension modules among that."""
    parameters = project.context.parameters
    cache, target = project.build / CACHE_FILE, project.scratch / "install"
    if need.configure:
        cache.unlink(missing_ok=True)
    if need.files.moved or not cache.exists():
        options = cmake_options(parameters)
        command = configure_command(
            project.source, project.build, env=project.env, options=options, prefix=target, defaults=_DEFAULTS
        )
        _configure(project, command)
    named = parameters.targets if isinstance(parameters, CompileParameters) else ()
    targets = [word for name in named if name != "install" for word in ("--target", name)]
    _compile(project, need, *targets)
    _run(project, ["cmake", "--install", str(project.build)], what="the installation")
    if project.venv is not None:
        folders = sorted({str(path.parent) for path in _module_files(project)})
        for site in project.venv.glob("lib/python*/site-packages"):
            replace_file(site / _PATHS, "".join(f"{folder}\n" for folder in folders).encode())


def _by_backend(project: Project, _need: Outdated) -> None:
    """Any other backend: it alone knows what is up to date, so it is asked each time."""
    _check_requirements(project)
    _install(project, _config(project))
    _in_effect(project)


def _config(project: Project) -> dict[str, str]:
    parameters = project.context.parameters
    return dict(parameters.config) if isinstance(parameters, BuildParameters) else {}


def _configure(project: Project, words: list[str]) -> None:
    project.context.progress("configuring")
    lines: list[str] = []
    _run(project, words, what="configuring", watch=lines.append)
    check_configured(_build_of(project), project.build / CACHE_FILE, lines)
    _in_effect(project)


def _build_of(project: Project) -> Build:
    return Build(context=project.context, driver=project.way, rules=project.rules, env=project.env)


def _in_effect(project: Project) -> None:
    (project.scratch / CONFIGURING).unlink(missing_ok=True)


def _compile(project: Project, need: Outdated, *words: str) -> None:
    project.context.progress("compiling")
    # In the user's own tree nothing is removed but by the build tool. What a killed compiler half wrote, make takes for
    # finished; ninja's log says what is.
    blind = need.killed and not _is_ours(project) and not (project.build / "build.ninja").exists()
    clean = ["--clean-first"] if blind else []
    _run(project, ["cmake", "--build", str(project.build), *words, *clean], what="the build")


def _install(project: Project, config: Mapping[str, str], watch: Callable[[str], None] | None = None) -> None:
    if project.venv is None:
        raise StageError("an editable install needs an environment", hint="set the stage's `environment`")
    project.context.progress("creating the editable install")

    def both(line: str) -> None:
        if watch is not None:
            watch(line)
        if step := _STEP.match(line):  # pip indents what the backend prints
            project.context.progress(describe(step[3]), done=int(step[1]), total=int(step[2]))

    _run(project, editable_command(project.venv, project.source, config), what="pip install --editable", watch=both)


def _check_requirements(project: Project) -> None:
    if project.venv is None:
        return
    try:
        with backend_warnings(project.context):
            builder = open_builder(project.context, project.source, project.env)
            check_requirements(builder, project.venv, dict(_config(project)), kind="editable")
    except BuildException as error:
        raise StageError(f"the source cannot be built: {error}") from error


def _run(project: Project, words: list[str], *, what: str, watch: Callable[[str], None] | None = None) -> None:
    check_program(
        words,
        cwd=project.source,
        env={**project.env, **_VARIABLES},
        log=project.context.log,
        progress=project.context.progress,
        what=what,
        watch=watch,
    )


def _steps(project: Project) -> dict[str, NinjaStep]:
    """What ninja's logs of the build folder say; where there are none, the objects in it."""
    found: dict[str, NinjaStep] = {}
    for log in sorted(project.build.rglob(_NINJA_LOG)) if project.build.is_dir() else ():
        where = log.parent.relative_to(project.build).as_posix()
        text = log.read_text(encoding="utf-8", errors="replace")
        found |= {f"{where}/{path}": step for path, step in read_ninja_log(text).items()}
    return found or _objects(project)


def _objects(project: Project) -> dict[str, NinjaStep]:
    found = project.build.rglob("*.o") if project.build.is_dir() else ()
    paths = {path.relative_to(project.build).as_posix(): path.stat().st_mtime_ns for path in found}
    return {path: NinjaStep(path=path, milliseconds=0, command=path, start=stamp) for path, stamp in paths.items()}


def _redirected(project: Project) -> Path | None:
    """Where scikit-build-core's redirect looks for what CMake installs; ``None`` where there is no redirect to it."""
    installed = find_installed(project).distribution
    if installed is None or project.venv is None:
        return None
    name = canonicalize_name(installed).replace("-", "_")
    for site in project.venv.glob("lib/python*/site-packages"):
        for path in (site / f"_editable_skbc_{name}.py", site / f"_{name}_editable.py"):
            target = redirect_target(path.read_text(encoding="utf-8")) if path.exists() else None
            if target is not None:
                return site / target
    return None


def _manifest(project: Project) -> list[str]:
    """What CMake installed last, below the folder that all of it lies in: a wheel is put together somewhere else."""
    try:
        text = (project.build / _MANIFEST).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    paths = [line for line in text.splitlines() if line]
    top = os.path.commonpath(paths) if paths else ""
    return sorted(os.path.relpath(path, top) for path in paths)


def _module_files(project: Project) -> list[Path]:
    """Extension modules that CMake installed or, where it installs none, built."""
    for folder in (project.scratch / "install", project.build):
        found = [path for path in sorted(folder.rglob("*.so")) if _MODULE.fullmatch(path.name)]
        if found:
            return found
    return []


def _modules_in(project: Project) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path.name.partition(".")[0] for path in _module_files(project)))
