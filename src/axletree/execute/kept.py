"""What a kept build folder is good for: which driver builds a source, and what must be the same in the folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axletree.buildsystem.cmake.cache import is_true
from axletree.buildsystem.era import TELLING_FILES, Era, detect_era
from axletree.buildsystem.pytorch import forwarding
from axletree.buildsystem.variables import names_compiler, starts_afresh
from axletree.core.errors import Problem, StageError
from axletree.plan.actions.compile import cmake_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from axletree.execute.context import ActionContext
    from axletree.plan.actions.project import ProjectParameters


_WITHOUT_LIBRARIES = ("BUILD_PYTHON_ONLY", "BUILD_LIBTORCHLESS")


def era_of(context: ActionContext[ProjectParameters]) -> Era:
    """How the source of a stage is built, by its files."""
    tree = context.tree("source")
    directory = context.parameters.directory
    texts: dict[str, str] = {}
    for name in TELLING_FILES:
        entry = tree.find(name if directory == "." else f"{directory}/{name}")
        if entry is not None and entry.blob is not None:
            texts[name] = context.store.read_blob(entry.blob).decode("utf-8", "replace")
    return detect_era(texts)


def check_variables(env: Mapping[str, str], era: Era, driver: str, *, say: Callable[[str], None]) -> None:
    """Say which variables PyTorch takes no notice of, and refuse those that its own scripts would refuse later.

    A tree that is too old for a part of itself would build everything instead.

    Raises:
        StageError: variables that the project refuses, or would misread; all of them.
    """
    if era.rules is None or driver not in {"setup.py", "scikit-build-core"}:
        return
    found = forwarding.forward(env, era.rules)
    for name, hint in found.ignored.items():
        say(f"{name} has no effect when {driver} builds PyTorch: {hint}")
    message = f"the variable cannot be set when {driver} builds PyTorch"
    problems = [Problem(message=message, key=name, hint=hint) for name, hint in found.refused.items()]
    parts = {"BUILD_LIBTORCH_WHL": era.libtorch_wheel, "BUILD_PYTHON_ONLY": era.libtorchless}
    problems += [
        Problem(
            message="this version of PyTorch does not recognize the variable",
            key=name,
            hint="remove it, and build this version as a whole, in a single stage",
        )
        for name, known in parts.items()
        if not known and is_true(env.get(name) or "")
    ]
    if problems:
        raise StageError(*problems)


def builds_on_libraries(context: ActionContext[ProjectParameters], era: Era) -> bool:
    """Whether a stage configures away the targets of the libraries that it links against (``BUILD_PYTHON_ONLY``).

    There is nothing for it to go on with in the folder of the stage that compiled them, and much to lose: when CMake
    generates without a target, ninja forgets what its objects depend on.
    """
    given = {**context.ingredients.environ, **context.parameters.env, **cmake_options(context.parameters)}
    return era.libtorchless and any(is_true(given.get(name) or "") for name in _WITHOUT_LIBRARIES)


def kept_for(context: ActionContext[ProjectParameters], driver: str, *, pytorch: bool) -> dict[str, Any]:
    """What a folder in which CMake builds must have been made with to be of use; all else is configured in it again.

    That is compilers and other tools, the date that they are given, and the variables that act without a trace in any
    command. Stages that agree on this can go on in one another's folder.
    """
    ingredients, parameters = context.ingredients, context.parameters
    environ = {**ingredients.environ, **parameters.env}
    options = {name.partition(":")[0]: value for name, value in cmake_options(parameters).items()}
    return {
        "driver": driver,
        "directory": parameters.directory,
        "tools": ingredients.tools,
        "epoch": ingredients.epoch,
        "environ": {name: value for name, value in environ.items() if starts_afresh(name, pytorch=pytorch)},
        "options": {name: value for name, value in options.items() if names_compiler(name)},
    }
