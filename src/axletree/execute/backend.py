"""Building a wheel through PEP 517, in an environment that holds what the backend needs.

Isolation is kept: the backend runs with the locked environment's interpreter, sees nothing of the user's, and nothing
is resolved or fetched on the way. What it would ask for and the lock does not hold is an error before the build.
"""

from __future__ import annotations

from importlib.metadata import Distribution, MetadataPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from build import BuildBackendException, BuildException, ProjectBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from axletree.core.errors import Problem, StageError
from axletree.execute.process import run_program
from axletree.host.venvs import marker_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
        env: variables of the backend; ``VIRTUAL_ENV`` is the environment.
        config: config settings of the frontend.
        watch: gets each line that the backend prints.
        ahead: called with the backend before it builds.

    Raises:
        StageError: the backend fails, or the environment lacks what it requires.
    """
    venv = Path(env["VIRTUAL_ENV"])
    try:
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


def open_builder(
    context: Context, source: Path, env: Mapping[str, str], watch: Callable[[str], None] | None = None
) -> ProjectBuilder:
    """The backend of a project, run by the interpreter of the environment that ``env`` names.

    Raises:
        BuildException: the project says of its backend what cannot be.
    """

    def hook(cmd: Sequence[str], cwd: str | None = None, extra_environ: Mapping[str, str] | None = None) -> None:
        code = run_program(
            list(cmd),
            cwd=source if cwd is None else source / cwd,
            env={**env, **(extra_environ or {})},
            log=context.log,
            progress=context.progress,
            quiet=True,
            watch=watch,
        )
        if code != 0:
            raise StageError(f"the build backend failed with exit code {code}")

    python = Path(env["VIRTUAL_ENV"]) / "bin" / "python"
    return ProjectBuilder(source, python_executable=str(python), runner=hook)


def check_requirements(
    builder: ProjectBuilder, venv: Path, config: dict[str, Any], *, kind: Literal["wheel", "editable"] = "wheel"
) -> None:
    """Name everything that the backend requires and the environment lacks.

    Raises:
        StageError: it lacks something.
    """
    # What the backend asks for by itself can be known only with the backend there.
    missing = _missing(builder.build_system_requires, venv)
    missing = missing or _missing(builder.get_requires_for_build(kind, config), venv)
    if missing:
        raise StageError(
            *(
                Problem(
                    message=f"the build backend requires {requirement}, which the environment does not have",
                    hint="add it to the environment's requires and run `axletree lock RECIPE`",
                )
                for requirement in missing
            )
        )


def _missing(requirements: set[str], venv: Path) -> list[str]:
    folders = [str(folder) for folder in venv.glob("lib/python*/site-packages")]
    found: dict[str, Distribution] = {
        canonicalize_name(dist.metadata["Name"]): dist
        for dist in MetadataPathFinder.find_distributions(MetadataPathFinder.Context(path=folders))
    }
    missing: list[str] = []
    wanted = {text: Requirement(text) for text in sorted(requirements)}
    marked = any(requirement.marker is not None for requirement in wanted.values())
    markers = {**marker_environment(venv), "extra": ""} if marked else {}
    for text, requirement in wanted.items():
        if requirement.marker is not None and not requirement.marker.evaluate(markers):
            continue
        dist = found.get(canonicalize_name(requirement.name))
        if dist is None or not requirement.specifier.contains(dist.version, prereleases=True):
            missing.append(text)
    return missing
