"""Configure, compile and install a project: a CMake build, in a folder that is kept between runs."""

from __future__ import annotations

import importlib
import shutil
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from axletree.buildsystem.cmake.conda import told_to_setup_py
from axletree.core.errors import StageError
from axletree.execute.context import Outcome
from axletree.execute.drivers.job import Job, build_folder
from axletree.execute.environments import stage_environments
from axletree.execute.kept import builds_on_libraries, check_variables, era_of, kept_for
from axletree.execute.preparing import prepare
from axletree.execute.variables import child_environment, note_environment
from axletree.execute.workspace import open_workplace, workplace_variables
from axletree.package.partition import Claim, first_claims
from axletree.plan.actions.compile import CompileFacts

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.buildsystem.era import Era
    from axletree.execute.context import ActionContext
    from axletree.plan.actions.compile import CompileParameters, Driver

_DRIVERS: dict[Driver, str] = {"cmake": "cmake", "setup.py": "setup_py", "scikit-build-core": "scikit_build"}
"""Driver -> its module."""


def run(context: ActionContext[CompileParameters]) -> Outcome:
    """Run the driver that the recipe names or the tree tells, and keep what it installed.

    Only other tools empty the kept folder. Changed settings configure it again, and what was compiled with a command
    that is still the same stays.

    Raises:
        StageError: a command, CMake or a compiler fails, a feature is not as expected, or nothing was installed.
    """
    parameters = context.parameters
    era = era_of(context)
    driver = _driver(context, era)
    environment = context.request.inputs.get("environment")
    if environment is None and driver != "cmake":
        raise StageError(f"driver {driver} needs an environment to run in", hint="set the stage's `environment`")
    venv, host = stage_environments(context)
    out = context.work / "out"
    out.mkdir()
    with ExitStack() as stack:
        settings = kept_for(context, driver, pytorch=era.pytorch)
        alone = builds_on_libraries(context, era)
        place = stack.enter_context(open_workplace(context, settings=settings, alone=alone))
        env = stack.enter_context(
            child_environment(
                context,
                venv=venv,
                host=host,
                compiles=True,
                variables=parameters.env,
                root=place.root,
                steady=True,
            )
        )
        env = told_to_setup_py(env | workplace_variables(context, place), driver=driver, rules=era.rules)
        check_variables(env, era, driver, say=context.log.say)
        note_environment(context, env)
        assert place.source is not None  # noqa: S101 (a compile stage has a source)
        source = place.source / parameters.directory
        job = Job(
            context=context,
            source=source,
            build=build_folder(place, source, driver),
            out=out,
            env=env,
            options=parameters.options,
            targets=parameters.targets,
            prefix=parameters.prefix,
            rules=era.rules,
        )
        prepare(context, place, source, job.build, env)
        importlib.import_module(f"axletree.execute.drivers.{_DRIVERS[driver]}").build(job)
    _keep(out, parameters.files)
    return Outcome(tree=context.store.ingest(out, adopt=True), facts=CompileFacts(driver=driver))


def _driver(context: ActionContext[CompileParameters], era: Era) -> Driver:
    if context.parameters.driver is not None:
        return context.parameters.driver
    found = next((driver for driver in _DRIVERS if driver == era.driver), None)
    if found is None:
        raise StageError(
            f"the source is not a CMake project: {'; '.join(era.evidence)}",
            hint='use action = "build", or set `driver`',
        )
    context.log.say(f"driver {found}: {'; '.join(era.evidence)}")
    return found


def _keep(out: Path, patterns: tuple[str, ...]) -> None:
    """Leave only the files that patterns name."""
    if patterns:
        paths = [path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_symlink() or not path.is_dir()]
        for path, claimed in zip(paths, first_claims(paths, [Claim(files=patterns)]), strict=True):
            if claimed is None:
                (out / path).unlink()
        for folder in sorted((path for path in out.rglob("*") if path.is_dir()), reverse=True):
            with suppress(OSError):
                folder.rmdir()
    if not any(out.iterdir()):
        shutil.rmtree(out)
        wanted = "files that match `files`" if patterns else "files, as the `install` target does"
        raise StageError("nothing was installed", hint=f"one of `targets` must install {wanted}")
