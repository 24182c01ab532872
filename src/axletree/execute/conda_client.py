"""A fresh environment by a conda client, for a test: solved from our channel and one made of what is locked.

Nothing is fetched. If the test's environment is one of conda, the other packages are those of its lock. Else Python is
the machine's own interpreter, and the other distributions are those of the lock, turned into packages.

What our packages want beside that (compilers' runtimes, BLAS ...) no channel here has: such dependencies are
left out and told, and the libraries of this machine stand in.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import StageError
from axletree.core.findings import Finding
from axletree.execute.environments import conda_lock_in, is_conda, wheels_in
from axletree.execute.stage_venvs import client_environ, describe, interpreter_for, uv_cache
from axletree.host.conda_channel import make_channel, read_channel, write_index
from axletree.host.conda_install import solve_and_install
from axletree.host.conda_prefix import PACKAGES
from axletree.host.shipped_data import read_shipped
from axletree.host.venvs import add_wheels
from axletree.package.conda.local import without_absent
from axletree.package.conda.platforms import conda_subdir
from axletree.package.conda.repodata import CHANNEL, ChannelFile
from axletree.package.conda.requires import CONDA_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from axletree.execute.context import ActionContext
    from axletree.plan.actions.test import ClientTestParameters
    from axletree.recipe.conda_locks import LockedPackage


class CondaEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """What is in an environment."""

    installed: dict[str, str]
    """Name -> version and build string."""
    outside: dict[str, tuple[str, ...]]
    """Package -> its dependencies that nothing here could bring."""


def conda_environment(
    context: ActionContext[ClientTestParameters], prefix: Path, *, roots: Sequence[Path], files: Path
) -> CondaEnvironment:
    """Make the environment, and see that it holds the very builds under test.

    Args:
        context: of a test stage.
        prefix: where it goes.
        roots: index roots, each with a channel of built packages.
        files: the laid out tree of the test's environment: locked wheels, or locked conda packages.

    Raises:
        StageError: there is no solution, two packages have the same file, or another build came in.
        IntegrityError: a locked wheel can't become a conda package.
    """
    local = context.work / "local"
    local.mkdir()
    conda = is_conda(context, context.request.inputs["environment"])
    fill = _locked_packages if conda else _packages_of_wheels
    others, subdir = fill(context, local, files)
    folders = [*roots, local]
    reduced = without_absent([read_channel(folder) for folder in folders])
    for folder, lines in zip(folders, reduced.channels, strict=True):
        write_index(folder, lines)
    for name, specs in reduced.dropped.items():
        context.log.say(f"{name}: no package provides {', '.join(specs)}")
    context.progress("installing with conda")
    built = context.parameters.packages
    solved = solve_and_install(
        prefix,
        [*(f"{package.name} =={package.version} {package.build}" for package in built), *others],
        channels=[folder / CHANNEL for folder in folders],
        subdir=subdir,
        cache=context.work / "packages",
        virtual=context.parameters.virtual,
        environ=client_environ(context),
        say=context.log.write,
    )
    if conda and wheels_in(files):
        add_wheels(prefix, files, uv_cache=uv_cache(context), environ=client_environ(context))
    found = {package.name: f"{package.version} {package.build}" for package in solved}
    wrong = [
        f"{package.name} {found.get(package.name, 'is missing')}, expected {package.version} {package.build}"
        for package in built
        if found.get(package.name) != f"{package.version} {package.build}"
    ]
    if wrong:
        raise StageError(f"conda did not install the built packages: {'; '.join(wrong)}")
    return CondaEnvironment(installed=found, outside=reduced.dropped)


def _packages_of_wheels(
    context: ActionContext[ClientTestParameters], local: Path, files: Path
) -> tuple[list[str], str]:
    """A channel of this machine's Python and the locked wheels; what of it is wanted, and the platform."""
    python = describe(context, context.request.inputs["environment"])["version"]
    interpreter = interpreter_for(context, python)
    context.progress("creating a channel from the local Python and the locked wheels")
    others = make_channel(
        local,
        interpreter=interpreter,
        python=python,
        wheels=[files / wheel.filename for wheel in wheels_in(files)],
        names=read_shipped(CONDA_NAMES),
    )
    wanted = [*(f"{other.name} =={other.version}" for other in others), f"python ={interpreter.version}"]
    return wanted, conda_subdir(interpreter.platform.replace("-", "_"))


def _locked_packages(context: ActionContext[ClientTestParameters], local: Path, files: Path) -> tuple[list[str], str]:
    """A channel of the locked packages; all of them are wanted. And the platform."""
    lock = conda_lock_in(files)
    context.progress("creating a channel from the locked packages")
    for package in lock.packages:
        place = local / CHANNEL / package.subdir / package.filename
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(files / PACKAGES / package.subdir / package.filename, place)
    write_index(local, map(_line, lock.packages))
    return [f"{each.name} =={each.version} {each.build}" for each in lock.packages], lock.platform


def _line(package: LockedPackage) -> ChannelFile:
    """What the index of a channel says of a locked package."""
    fields = ("name", "version", "build", "build_number", "subdir", "size", "sha256", "noarch")
    record = {name: value for name in fields if (value := getattr(package, name)) is not None}
    record |= {"depends": list(package.depends), "constrains": list(package.constrains)}
    if package.site_packages is not None:
        record["python_site_packages_path"] = package.site_packages
    return ChannelFile(filename=package.filename, subdir=package.subdir, record=record)


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
