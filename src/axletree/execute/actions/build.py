"""Build a wheel from the source through PEP 517."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from axletree.buildsystem.cmake.conda import told_to_setup_py
from axletree.execute.agreeing import ask_backend, check_source, check_wheel_name
from axletree.execute.backend import build_wheel
from axletree.execute.context import Outcome
from axletree.execute.drivers import scikit_build
from axletree.execute.drivers.configure import Build, checking, make_room, vouch
from axletree.execute.drivers.installed import clear_leftovers
from axletree.execute.drivers.job import build_folder, own_files
from axletree.execute.drivers.setup_py import configure_again
from axletree.execute.environments import stage_environments
from axletree.execute.kept import builds_on_libraries, check_variables, era_of, kept_for
from axletree.execute.preparing import prepare
from axletree.execute.variables import child_environment, note_environment
from axletree.execute.workspace import open_workplace, workplace_variables
from axletree.plan.actions.build import BuiltWheel

if TYPE_CHECKING:
    from axletree.execute.context import ActionContext
    from axletree.plan.actions.build import BuildParameters

_BY_CMAKE = ("setup.py", "scikit-build-core")
"""Drivers whose backends configure and build by CMake, in a folder that can be configured again."""


def run(context: ActionContext[BuildParameters]) -> Outcome:
    """Build the wheel; a source that is a wheel already is passed on as it is.

    In a kept folder a project that CMake builds is configured again where settings changed, as in a compile stage. Of
    other projects nobody knows what their build tools notice: any change but that of files empties the folder.

    Raises:
        StageError: a command or the backend fails, the environment lacks what it requires, or a feature is not as
            expected; or what is built is not what the recipe calls it.
    """
    ready = [entry for entry in context.tree("source").entries if entry.path.endswith(".whl") and "/" not in entry.path]
    if ready and len(ready) == len(context.tree("source").entries):
        check_wheel_name(context, ready[0].path)
        return Outcome(tree=context.request.inputs["source"], facts=BuiltWheel(wheel=ready[0].path))
    venv, host = stage_environments(context)
    era = era_of(context)
    by_cmake = era.driver in _BY_CMAKE
    out = context.work / "wheel"
    config = dict(context.parameters.config)
    with ExitStack() as stack:
        settings = kept_for(context, era.driver, pytorch=era.pytorch) if by_cmake else None
        alone = builds_on_libraries(context, era)
        place = stack.enter_context(open_workplace(context, settings=settings, alone=alone))
        env = stack.enter_context(
            child_environment(
                context,
                venv=venv,
                host=host,
                compiles=True,
                variables=context.parameters.env,
                root=place.root,
                steady=by_cmake,
                keep_flags=not by_cmake,
            )
        )
        env = told_to_setup_py(env | workplace_variables(context, place), driver=era.driver or "", rules=era.rules)
        check_variables(env, era, era.driver, say=context.log.say)
        note_environment(context, env)
        assert place.source is not None  # noqa: S101 (the plan gives a build its source)
        source = place.source / context.parameters.directory
        build = build_folder(place, source, era.driver)
        chosen = {f"config.{name}": value for name, value in config.items()} | {"driver": era.driver}
        again = False
        if by_cmake:
            clear_leftovers(source, build, ours=own_files(context))
            room = scikit_build.make_room if era.driver == "scikit-build-core" else make_room
            again = not room(context, build, env=env, settings=chosen)
        if era.driver == "scikit-build-core":
            config["build-dir"] = str(build)
        prepare(context, place, source, build, env)
        ahead = None if check_source(context, source, era, env) else partial(ask_backend, context, config=config)
        told = Build(context=context, driver=era.driver, rules=era.rules, env=env)
        watch, end = checking(told, source)
        if again and era.driver == "setup.py":
            configure_again(context, source, build, env, watch)
        wheel = build_wheel(context, source=source, out=out, env=env, config=config, watch=watch, ahead=ahead)
        end()
        if by_cmake and build.is_dir():
            vouch(context, build, env=env, settings=chosen)
    return Outcome(tree=context.store.ingest(out, adopt=True), facts=BuiltWheel(wheel=wheel))
