"""A fresh environment by a conda client, for a test: solved from our channel and one made of the locked wheels.

Nothing is fetched. Python is the machine's own interpreter, the other distributions are those of the lock, turned into
packages. What our packages want beside that (compilers' runtimes, BLAS ...) no channel here has: such dependencies are
left out and told, and the libraries of this machine stand in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import StageError
from axletree.core.findings import Finding
from axletree.execute.stage_venvs import LOCK, client_environ
from axletree.host.conda_channel import make_channel, read_channel, write_index
from axletree.host.conda_install import solve_and_install
from axletree.host.shipped_data import read_shipped
from axletree.package.conda.local import without_absent
from axletree.package.conda.platforms import conda_subdir
from axletree.package.conda.repodata import CHANNEL
from axletree.package.conda.requires import CONDA_NAMES
from axletree.recipe.locks import parse_lock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from axletree.core.records import Interpreter
    from axletree.execute.context import ActionContext
    from axletree.plan.actions.test import ClientTestParameters


class CondaEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """What is in an environment."""

    installed: dict[str, str]
    """Name -> version and build string."""
    outside: dict[str, tuple[str, ...]]
    """Package -> its dependencies that nothing here could bring."""


def conda_environment(
    context: ActionContext[ClientTestParameters],
    prefix: Path,
    interpreter: Interpreter,
    python: str,
    *,
    roots: Sequence[Path],
    wheels: Path,
) -> CondaEnvironment:
    """Make the environment, and see that it holds the very builds under test.

    Args:
        context: of a test stage.
        prefix: where it goes.
        interpreter: its Python.
        python: ``3.11`` or ``3.13t``.
        roots: index roots, each with a channel of built packages.
        wheels: folder with a lock and its wheels.

    Raises:
        StageError: there is no solution, two packages have the same file, or another build came in.
        IntegrityError: a locked wheel can't become a conda package.
    """
    lock = parse_lock((wheels / LOCK).read_text(encoding="utf-8"), file=LOCK)
    local = context.work / "local"
    local.mkdir()
    context.progress("creating a channel from the local Python and the locked wheels")
    files = [wheels / wheel.filename for wheel in lock.wheels]
    others = make_channel(local, interpreter=interpreter, python=python, wheels=files, names=read_shipped(CONDA_NAMES))
    folders = [*roots, local]
    reduced = without_absent([read_channel(folder) for folder in folders])
    for folder, lines in zip(folders, reduced.channels, strict=True):
        write_index(folder, lines)
    for name, specs in reduced.dropped.items():
        context.log.say(f"{name}: no package provides {', '.join(specs)}")
    context.progress("installing with conda")
    built = context.parameters.packages
    wanted = [f"{package.name} =={package.version} {package.build}" for package in built]
    solved = solve_and_install(
        prefix,
        [*wanted, *(f"{other.name} =={other.version}" for other in others), f"python ={interpreter.version}"],
        channels=[folder / CHANNEL for folder in folders],
        subdir=conda_subdir(interpreter.platform.replace("-", "_")),
        cache=context.work / "packages",
        virtual=context.parameters.virtual,
        environ=client_environ(context),
        say=context.log.write,
    )
    found = {package.name: f"{package.version} {package.build}" for package in solved}
    wrong = [
        f"{package.name} {found.get(package.name, 'is missing')}, expected {package.version} {package.build}"
        for package in built
        if found.get(package.name) != f"{package.version} {package.build}"
    ]
    if wrong:
        raise StageError(f"conda did not install the built packages: {'; '.join(wrong)}")
    return CondaEnvironment(installed=found, outside=reduced.dropped)


def untried(outside: Mapping[str, Sequence[str]]) -> tuple[Finding, ...]:
    """What a test could not show: a dependency that was left out may be misspelt, or may not exist."""
    return tuple(
        Finding(
            rule="test/dependency-untried",
            severity="warning",
            where=name,
            message="dependencies missing from both the channel and the lock were not tested",
            fix="make sure that your users' channels provide them, or add the distributions to the test's environment",
            evidence=tuple(specs),
        )
        for name, specs in outside.items()
    )
