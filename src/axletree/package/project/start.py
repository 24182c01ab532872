"""A project -> the recipe that somebody starts with: what is theirs to decide, and what follows from the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from axletree.core.units import some_of
from axletree.package.project.portable import GLIBC, REPLACED, REQUIREMENT, compilers
from axletree.package.project.recipe import NO_VERSION, about_pythons, common_tools, is_shared, unknown_of
from axletree.package.project.writer import Writer
from axletree.recipe.writing import toml_key

if TYPE_CHECKING:
    from axletree.package.project.model import Project
    from axletree.package.project.recipe import Choices

_SHOWN = 6


def render_recipe(project: Project, choices: Choices) -> str:
    """The text of a recipe that leaves to the defaults what they know.

    Args:
        project: What is known of the project.
        choices: What the user or this host adds to it.
    """
    writer = Writer()
    _head(writer, project, choices)
    if choices.portable:
        _portable(writer, project, choices)
    writer.add("")
    _rest(writer, project, choices)
    for sentence in project.notices:
        writer.comment(f"note: {sentence}")
    for sentence in unknown_of(project, choices):
        writer.comment(f"not known: {sentence}")
    return writer.text()


def _head(writer: Writer, project: Project, choices: Choices) -> None:
    """What a recipe must say."""
    name, stated = canonicalize_name(project.name.value), project.version.stated
    writer.comment(f"Created by `axletree init` from {choices.origin}; comments show where each line comes from.")
    writer.key("name", name, "" if name == project.name.value else f"{project.name.value} in {project.name.place}")
    at = stated.place if stated is not None else "not found; enter it here"
    if stated is not None and stated.file and choices.source[0][0] == "path":
        at += "; remove this line to follow it"
    writer.key("version", stated.value if stated is not None else NO_VERSION, at)
    for key, value in choices.source:
        writer.key(f"source.{key}", value)
    writer.key("axes.python", choices.pythons, about_pythons(project, shared=is_shared(project, choices)))
    if choices.gpus:
        writer.key("axes.gpu", choices.gpus)
    if choices.torches:
        used = project.gpu.torch
        writer.key("axes.torch", choices.torches, f"the project compiles against PyTorch: {used.place}" if used else "")


def _portable(writer: Writer, project: Project, choices: Choices) -> None:
    """What makes the wheel one for an older glibc: Zig instead of the host's compilers."""
    env = compilers(choices.portable)
    if project.backend == "meson-python":
        env["PKG_CONFIG_LIBDIR"] = "/none"  # otherwise meson finds headers and libraries for this host's glibc
    name = canonicalize_name(project.name.value)
    writer.add("")
    writer.comment(f"Compiled and linked by Zig for glibc {GLIBC}; the audit fails if the wheel needs a later version.")
    writer.key("environments.build.requires", (REQUIREMENT,))
    writer.key(
        "stages.build.tools",
        tuple(dict.fromkeys(each for each, _ in common_tools(project, choices) if each not in REPLACED)),
    )
    writer.key("stages.build.env", env)
    writer.key(f"packages.{toml_key(name)}.glibc", GLIBC)


def _rest(writer: Writer, project: Project, choices: Choices) -> None:
    """What need not be said, and how to change it."""
    modules = [each.value for each in (*project.imports, *project.compiled)]
    test = f", and a test that imports {some_of(modules, 3)}" if modules else ""
    backend = project.backend_at.value if project.backend == "other" else project.backend
    writer.comment(
        f"`axletree lock` fills in the rest: environments, a stage that builds with {backend}, the "
        f"package{test}. `axletree check --expanded` prints it. Your keys take precedence, for example:"
    )
    own = dict.fromkeys(each.value.partition(";")[0].strip() for each in project.test_requires)
    if own:
        why = f"its own tests need {some_of([*own], _SHOWN)} ({project.test_requires[0].place})"
    else:
        why = "in addition to the wheel's requirements"
    writer.example("environments.test.requires", ("pytest",), why)
    if project.tests and dict(choices.source).get("path") == ".":
        writer.example("tests.imports.files", (project.tests,), "the test gets a copy of this folder")
        command = f"python -m pytest {project.tests}"
    else:
        module = modules[0] if modules else canonicalize_name(project.name.value).replace("-", "_")
        command = f"python -c 'import {module}'"
    writer.example("tests.imports.commands", (command,), "run in a fresh environment")
    if not choices.portable:
        writer.example("stages.build.env", {"SOME_OPTION": "1"}, "stages do not inherit your shell's variables")
