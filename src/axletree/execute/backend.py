"""Building a wheel through PEP 517, in an environment that holds what the backend needs.

Isolation is kept: the backend runs with the locked environment's interpreter, sees nothing of the user's, and nothing
is resolved or fetched on the way. What it would ask for and the lock does not hold is an error before the build.
"""

from __future__ import annotations

import shutil
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from build import BuildBackendException, BuildException, ProjectBuilder

from axletree.core.errors import Problem, StageError
from axletree.core.setting import LOCK
from axletree.execute.lacking import lacking_requirements
from axletree.execute.process import run_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TextIO

    from axletree.execute.context import Context


def build_wheel(
    context: Context,
    *,
    source: Path,
    out: Path,
    env: Mapping[str, str],
    config: Mapping[str, Any],
    watch: Callable[[str], None] | None = None,
    ahead: Callable[[ProjectBuilder], None] | None = None,
) -> str:
    """Build a wheel through PEP 517 with the environment's interpreter, and return its file name.

    Args:
        context: the stage's surroundings.
        source: folder of the project.
        out: folder for the wheel.
        env: variables of the backend, which name the environment (:func:`python_prefix`).
        config: config settings of the frontend.
        watch: gets each line that the backend prints.
        ahead: called with the backend before it builds.

    Raises:
        StageError: the backend fails, or the environment lacks what it requires.
    """
    venv = python_prefix(env)
    try:
        with backend_warnings(context):
            builder = open_builder(context, source, env, watch)
            settings = dict(config)
            check_requirements(builder, venv, settings)
            if ahead is not None:
                ahead(builder)
            context.progress("building the wheel")
            path = builder.build("wheel", out, settings)
    except BuildBackendException as error:
        if isinstance(error.exception, StageError):
            raise error.exception from error
        raise StageError(f"the build backend failed: {error}") from error
    except BuildException as error:
        raise StageError(f"the source cannot be built: {error}") from error
    return path.rpartition("/")[2]


def python_prefix(env: Mapping[str, str]) -> Path:
    """The environment whose Python builds: a virtual environment, or the conda prefix that is linked against.

    Raises:
        StageError: it has no Python.
    """
    prefix = Path(env.get("VIRTUAL_ENV") or env["PREFIX"])
    if not (prefix / "bin" / "python").exists():
        hint = "add python to the requires of the conda environment that is linked against"
        raise StageError(f"the environment has no Python to build with: {prefix}", hint=hint)
    return prefix


@contextmanager
def backend_warnings(context: Context) -> Iterator[None]:
    """Put what a backend warns of into the log: pyproject_hooks makes it a warning of this process."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def note(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if category.__name__ == "BuildBackendWarning":  # a new class: releases before 1.3 do not pass warnings on
                context.log.say(warnings.formatwarning(message, category, filename, lineno, line).rstrip())
            else:
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = note
        yield


def open_builder(
    context: Context, source: Path, env: Mapping[str, str], watch: Callable[[str], None] | None = None
) -> ProjectBuilder:
    """The backend of a project, run by the interpreter of the environment that ``env`` names.

    Raises:
        BuildException: the project says of its backend what cannot be.
    """

    def hook(cmd: Sequence[str], cwd: str | None = None, extra_environ: Mapping[str, str] | None = None) -> None:
        code = run_program(
            _seen(cmd, context),
            cwd=source if cwd is None else source / cwd,
            env={**env, **(extra_environ or {})},
            log=context.log,
            progress=context.progress,
            quiet=True,
            watch=watch,
        )
        if code != 0:
            raise StageError(f"the build backend failed with exit code {code}")

    python = python_prefix(env) / "bin" / "python"
    return ProjectBuilder(source, python_executable=str(python), runner=hook)


def _seen(cmd: Sequence[str], context: Context) -> list[str]:
    """The command with the script of ours that it runs where a program in an image finds it, too."""
    python, script, *rest = cmd
    if context.ingredients.image is None:
        return [python, script, *rest]
    copy = context.work / Path(script).name
    if not copy.exists():
        shutil.copyfile(script, copy)
    return [python, str(copy), *rest]


def check_requirements(
    builder: ProjectBuilder, venv: Path, config: dict[str, Any], *, kind: Literal["wheel", "editable"] = "wheel"
) -> None:
    """Name everything that the backend requires and the environment lacks.

    Raises:
        StageError: it lacks something.
    """
    # What the backend asks for by itself can be known only with the backend there.
    missing = lacking_requirements(builder.build_system_requires, venv)
    missing = missing or lacking_requirements(builder.get_requires_for_build(kind, config), venv)
    if missing:
        raise StageError(
            *(
                Problem(
                    message=f"the build backend requires {requirement}, which the environment does not have",
                    hint=f"add it to the environment's requires and run `{LOCK}`",
                )
                for requirement in missing
            )
        )
